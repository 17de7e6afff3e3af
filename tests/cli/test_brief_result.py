"""What a test leaves on the terminal.

Its verdict first and last, in no more than 25 rows, each warning once.
"""

from pathlib import Path

import pytest

from plimsoll.cli import run_program
from plimsoll.cli.live import PlainListener
from plimsoll.databases.other_runs import OtherRuns
from plimsoll.documents.verdict import Verdict, read_verdict
from plimsoll.files import folder
from plimsoll.verdict.brief import brief_of, rows_of
from tests.support.synthetic import finish, make_slow_folder

ROWS = 25
WIDTH = 80


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fails in several places."""
    return finish(make_slow_folder(tmp_path_factory.mktemp("slow") / "run"))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    run_program(list(arguments))
    return capsys.readouterr().out.strip().splitlines()


def test_the_result_fits_a_terminal(
    slow: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty lines scrolled the verdict away.

    It stands first and last now, with what failed and why below the first.
    """
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    found = read_verdict(slow / folder.VERDICT)
    lines = printed(capsys, "report", str(slow))
    assert rows_of(["", *lines], WIDTH) <= ROWS
    assert lines[0] == lines[-1] == found.headline
    failed = [check for check in found.checks if check.status == "fail"]
    assert failed and any(failed[0].reason in line for line in lines)
    assert not any(
        check.reason in line for check in found.checks if check.status == "pass" for line in lines
    )
    text = "\n".join(lines)
    assert str(slow / folder.REPORT) in text
    assert f"plimsoll report {slow} --verbose" in text


def test_verbose_prints_every_check(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is lost: what the short form counts, the long form says."""
    text = "\n".join(printed(capsys, "report", str(slow), "--verbose"))
    assert all(check.reason in text for check in read_verdict(slow / folder.VERDICT).checks)


def crowded(slow: Path) -> Verdict:
    """A verdict with more of everything than any run has had, in long sentences."""
    found = read_verdict(slow / folder.VERDICT)
    failed = next(check for check in found.checks if check.status == "fail")
    long = (
        "a sentence that goes on for longer than a terminal is wide, as those about storage often "
        "do, " * 3
    )
    many = [f"{number}: {long}" for number in range(30)]
    return found.replace(
        checks=[failed.replace(reason=text) for text in many],
        cautions=many,
        warnings=many,
        not_qualifying_because=many,
        not_tested=many,
    )


def test_no_verdict_is_too_long(slow: Path) -> None:
    """Thirty of everything still fit.

    How many are left out is said, and the verdict is not among them.
    """
    found = crowded(slow)
    lines = brief_of(found, before=["the answer"], after=["figures"] * 9, width=WIDTH)
    assert rows_of(lines, WIDTH) <= ROWS - 8
    assert lines[:2] == ["the answer", found.headline]
    assert any("more" in line for line in lines)


def test_a_check_that_is_a_reason_is_said_once(slow: Path) -> None:
    """Each failed check stood there twice, and of others it said "5 more such checks" of none."""
    found = read_verdict(slow / folder.VERDICT)
    failed = next(check for check in found.checks if check.status == "fail")
    text = "\n".join(brief_of(found))
    assert text.count(f"{failed.title} ({failed.scope}): {failed.reason}") == 1
    text = "\n".join(brief_of(found.replace(checks=crowded(slow).checks), width=WIDTH))
    assert "more checks that do not pass" in text


def test_each_warning_is_said_once(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A disk's block size was warned of before the run, and three times more below the verdict."""
    warning = (
        "vda writes 4096 byte blocks but is addressed in 512 bytes (512e): a torn block can lose a "
        "commit"
    )
    remark = warning.replace("vda", "I/O: the device below /srv/instance1")
    listener = PlainListener(quiet=True)
    for text in (warning, warning):
        listener.warning(text)
    assert capsys.readouterr().err.count(warning) == 1
    found = read_verdict(slow / folder.VERDICT).replace(
        not_qualifying_because=[warning, remark, "60 s were measured"], checks=[]
    )
    text = "\n".join(brief_of(found, told=listener.warnings))
    assert "torn block" not in text
    assert "60 s were measured" in text
    assert "2 that were warned of above" in text
    assert "torn block" in "\n".join(brief_of(found))


def test_another_run_on_the_same_storage_stands_below_the_headline(slow: Path) -> None:
    """Its work is in every figure, and it was the last of a list that ends after two."""
    others = OtherRuns([])
    others._found = {Path("/mnt/array/mail"): 4242}
    (sentence,) = others.sentences
    found = read_verdict(slow / folder.VERDICT)
    crowd = [*(f"warning {number}" for number in range(9)), sentence]
    lines = brief_of(found.replace(warnings=crowd), told=[sentence])
    place = next(number for number, line in enumerate(lines) if sentence in line)
    assert place <= 1 + len(found.reasons) + 1
    assert rows_of(lines, WIDTH) <= ROWS


def test_what_the_load_did_stands_before_what_speaks_against_quoting_it(slow: Path) -> None:
    """The rate of a test of files gave way to warnings, and stood nowhere on the terminal."""
    found = crowded(slow).replace(checks=[], bottlenecks=[], cautions=[], warnings=[])
    lines = brief_of(found, after=["3,846 I/O per second"], width=WIDTH)
    assert "  3,846 I/O per second" in lines
    assert any("more reasons in verdict.json" in line for line in lines)
