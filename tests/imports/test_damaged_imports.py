"""Importers meet damaged files.

Every one ends in a report or in a message with the file's name, never in a traceback.

Valid files are damaged as files are in real life (cut, doubled, in another encoding, digits
changed) and as strangers would (entities, depth, absurd numbers). What is read all the same must
also become a run folder."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.imports.detect import joined
from plimsoll.imports.iometer.icf import read_icf
from plimsoll.imports.iometer.results_csv import IometerResults, read_results
from plimsoll.imports.iometer.to_plan import IometerPlans, plans_of_icf
from plimsoll.imports.jetstress.config_read import import_config
from plimsoll.imports.jetstress.report_html import decode, page_of, read_html
from plimsoll.imports.jetstress.report_xml import read_xml
from plimsoll.imports.papers.text import read_paper
from plimsoll.imports.report_model import sections_of
from plimsoll.imports.to_run_folder import write_run_folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.safe_xml import parse_xml
from tests.imports.test_iometer_config import SMALL as ICF
from tests.imports.test_iometer_results import WORKER, others, table
from tests.support.jetstress_files import config_2010, config_2013
from tests.support.paper_shape import BELOW, SPACE, paper
from tests.support.published import REPORTS
from tests.support.xml_results import result_xml

PAGES = {
    name: page_of("Report", sections_of(report())).encode() for name, report in REPORTS.items()
}
PAPER = paper(
    [("C", REPORTS["appendix_c"](), BELOW), ("F", REPORTS["appendix_f_replay"](), SPACE)]
).encode()

RESULTS = table(*others(WORKER), WORKER)


def _paper(name: str, content: bytes) -> list[dict[str, Any]]:
    return read_paper(name, decode(name, content))


def _results(name: str, content: bytes) -> IometerResults:
    return read_results(name, decode(name, content))


def _icf(name: str, content: bytes) -> IometerPlans:
    return plans_of_icf(name, read_icf(name, decode(name, content)))


KINDS: dict[str, tuple[list[bytes], Callable[[str, bytes], Any]]] = {
    "configuration": ([config_2010().encode(), config_2013().encode()], import_config),
    "page": (list(PAGES.values()), read_html),
    "results": ([result_xml(REPORTS["appendix_c"]()).encode()], read_xml),
    "paper": ([PAPER], _paper),
    "iometer configuration": ([ICF.encode(), ICF.encode("utf-16")], _icf),
    "iometer results": ([RESULTS.encode()], _results),
}
#: What becomes a plan or a table of its own, and no report.
NO_REPORTS = ("configuration", "iometer configuration", "iometer results")
ABSURD = [
    b"1e400",
    b"-1",
    b"NaN",
    b"99999999999999999999999999",
    b"0",
    b"",
    b"\x00",
    b"\xff\xfe",
    b"<",
    b"&#0;",
    b"&x;",
    "٣".encode(),
    "²".encode(),
    b"9" * 5000,
    b"x" * 200_000,
    b"1.2.3",
]


def _damage(content: bytes, chance: random.Random) -> bytes:
    """One to four injuries."""
    for _ in range(chance.randint(1, 4)):
        size = len(content)
        start = chance.randrange(size + 1)
        end = min(size, start + chance.choice([1, 1, 3, 20, 200, 2000]))
        match chance.randrange(8):
            case 0:
                content = content[:start]
            case 1:
                content = content[:start] + content[end:]
            case 2:
                content = content[:end] + content[start:]
            case 3:
                content = content[:start] + chance.choice(ABSURD) + content[end:]
            case 4:
                content = content[:start] + chance.randbytes(end - start) + content[end:]
            case 5:
                content = content.decode("utf-8", "replace").encode(
                    chance.choice(["utf-16", "cp1252", "utf-8-sig"]), "replace"
                )
            case 6:
                digits = [
                    place
                    for place in range(start, min(size, start + 3000))
                    if content[place : place + 1].isdigit()
                ]
                if digits:
                    place = chance.choice(digits)
                    content = content[:place] + chance.choice(ABSURD) + content[place + 1 :]
            case _:
                lines = content.split(b"\n")
                chance.shuffle(lines) if chance.random() < 0.2 else lines.insert(
                    chance.randrange(len(lines) + 1), chance.choice(lines)
                )
                content = b"\n".join(lines)
    return content


def survives(kind: str, seed: int) -> None:
    """A damaged file is read or refused; a report that is read becomes a run folder."""
    chance = random.Random(seed)
    originals, read = KINDS[kind]
    content = _damage(chance.choice(originals), chance)
    try:
        found = read(f"{kind}.bin", content)
    except InputError as error:
        assert error.mistakes
        assert f"{kind}.bin" in str(error)
        return
    if kind in NO_REPORTS:
        return
    reports = (
        found
        if isinstance(found, list)
        else [found | {"source": {"files": ["x"], "format": "html"}}]
    )
    for report in joined(reports):
        with tempfile.TemporaryDirectory(prefix="plimsoll-imports-") as folder:
            write_run_folder(Path(folder), report)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_file_never_crashes_an_importer(kind: str, seed: int) -> None:
    """Files come by mail, from wikis, out of PDFs."""
    survives(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_damaged_files_never_crash_an_importer(kind: str, seed: int) -> None:
    """The same for as long as nobody waits."""
    survives(kind, seed)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE c [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + place)} "{f"&{chr(97 + place)};" * 10}">' for place in range(9))
    + "]><configuration>&j;</configuration>"
)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (BOMB.encode(), "document type"),
        (b'<!DOCTYPE c SYSTEM "file:///etc/passwd"><configuration/>', "document type"),
        (b"<a>" * 100_000, "nests elements"),
        (b'<?xml version="1.0" encoding="klingon"?><configuration/>', "unknown encoding"),
        (b"", "no element"),
        (b"\x00\x01\x02", "not well-formed"),
    ],
)
def test_an_xml_bomb_costs_nothing(content: bytes, word: str) -> None:
    """Ten levels of ten entities would be ten thousand million letters."""
    begun = time.monotonic()
    with pytest.raises(InputError) as found:
        parse_xml("bomb.xml", content)
    assert word in str(found.value)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "piece", [b"<!--", b"<![", b"<?", b"<a ", b"<", b"&#", b"<td>", b"</", b"<script", b"a"]
)
def test_a_hostile_page_takes_no_longer_than_its_size(piece: bytes) -> None:
    """The standard library's parser took minutes for 200 kB of comments that never end.

    A scanner in one pass does not.
    """
    begun = time.monotonic()
    content = (
        b"<html><fieldset><legend>Checksum Statistics - All</legend><table><tr><td>"
        + piece * (200_000 // len(piece))
    )
    with pytest.raises(InputError):
        read_html("hostile.html", content)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("piece", ["x (complete) and and ", "\fa\n", "Instance1.1 ", "1.", "a"])
def test_a_hostile_text_takes_no_longer_than_its_size(piece: str) -> None:
    """Patterns over words can be made to try everything; no line of a paper is so long."""
    begun = time.monotonic()
    text = (
        "Test Summary\nTransactional I/O Performance\nTest Log\n4/21/2011 3:43:49 AM -- "
        + piece * (100_000 // len(piece))
    )
    with pytest.raises(InputError):
        read_paper("hostile.txt", text)
    assert time.monotonic() - begun < 10
