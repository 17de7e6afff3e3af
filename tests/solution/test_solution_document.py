"""The solution document: tables by the published rules, drawings with everything in them, every
figure as it was imported.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.imports.jetstress.report_html import read_html
from plimsoll.imports.papers.text import read_paper
from plimsoll.inputs.mistakes import InputError
from plimsoll.pages.tables import Table
from plimsoll.solution import tables
from plimsoll.solution.document import document_of
from plimsoll.solution.drawings import architecture, disk_layout, mailbox_chart
from plimsoll.solution.solution import Solution, read_solution
from plimsoll.solution.write_html import find_browser, page_of
from tests.imports.write_examples import pages
from tests.support.published import REPORTS, differences, read

EXAMPLE = Path(__file__).parents[2] / "examples" / "esrp"
APPENDIX = {"appendix_b": "b", "appendix_c": "c", "appendix_d": "d", "appendix_e": "e"}


@pytest.fixture(scope="module")
def solution() -> Solution:
    """The example, made of the published figures."""
    return read_solution(EXAMPLE / "solution.toml")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents of the example, without the PDF."""
    out = tmp_path_factory.mktemp("esrp")
    result = CliRunner().invoke(
        app,
        ["esrp", str(EXAMPLE / "solution.toml"), "--out", str(out), "--formats", "html,docx,xlsx"],
    )
    assert result.exit_code == 0, result.output
    return out


def values(table: Table) -> list[str]:
    """The second column."""
    return [table.shown(row[1], 1) for row in table.rows]


def test_the_example_holds_the_published_figures() -> None:
    """Its pages are made by `write_examples.py`; a figure changed by hand would be nobody's."""
    for name, text in pages().items():
        assert (EXAMPLE / name).read_text(encoding="utf-8") == text, name


def test_RPT_19_table_6_is_the_published_one(solution: Solution) -> None:
    """Sums of rates and plain means of latencies, each digit as printed."""
    published = read("summary_tables_6_to_8")["table_6_individual_server_metrics"]
    keys = (
        "database_disk_transfers_per_sec",
        "database_disk_reads_per_sec",
        "database_disk_writes_per_sec",
        "average_database_disk_read_latency_ms",
        "average_database_disk_write_latency_ms",
        "log_disk_writes_per_sec",
        "average_log_disk_write_latency_ms",
    )
    assert values(tables.table_6(solution)) == [str(published[key]) for key in keys]


def test_RPT_20_tables_7_and_8_are_the_published_ones(solution: Solution) -> None:
    """Mean and sum of a backup, mean of elapsed by logs that were really replayed."""
    published = read("summary_tables_6_to_8")
    seventh = published["table_7_database_read_only_performance"]
    assert values(tables.table_7(solution)) == [
        str(seventh["mb_read_per_sec_per_database"]),
        str(seventh["mb_read_per_sec_total_per_server"]),
    ]
    eighth = published["table_8_log_replay_performance"]
    assert values(tables.table_8(solution)) == [
        str(eighth["average_time_to_play_one_log_s"]),
        "501, 501",
    ]


def test_RPT_22_table_9_is_the_published_one(solution: Solution) -> None:
    """Capacity limits large mailboxes, I/O small ones.

    The arithmetic behind the stated limit is shown.
    """
    published = read("solution_and_tables_1_to_5_and_9")["table_9_maximum_user_count"]
    found = [(users, size) for size, users, _ in tables.maximum_users(solution)]
    assert found == [(row["max_users"], row["mailbox_size_gb"]) for row in published]
    assert (
        "462.483 I/O per second by 0.24 of a user are 1,927 users"
        in tables.users_by_iops(solution)[1]
    )


def test_RPT_21_capacities_have_their_formula(solution: Solution) -> None:
    """The published 76.4 % is truncated.

    Here the last digit is rounded, and the note says how it is made.
    """
    fourth = tables.table_4(solution)
    assert (
        dict(zip([row[0] for row in fourth.rows], values(fourth), strict=True))[
            "Storage capacity utilisation (%)"
        ]
        == "76.46"
    )
    assert "raw capacity" in fourth.note
    first = tables.table_1(solution)
    assert (
        dict(zip([row[0] for row in first.rows], values(first), strict=True))[
            "Size of all databases in the performance test (GB)"
        ]
        == "1944.6"
    )


def test_RPT_19_several_servers_have_a_column_for_all(tmp_path: Path) -> None:
    """Rates of servers add up; latencies do not."""
    folder = tmp_path / "esrp"
    shutil.copytree(EXAMPLE, folder)
    text = (folder / "solution.toml").read_text(encoding="utf-8")
    text = re.sub(r'^(\w+ = \[)("\w+\.html")\]', r"\1\2, \2]", text, flags=re.MULTILINE)
    (folder / "solution.toml").write_text(text, encoding="utf-8")
    table = tables.table_6(read_solution(folder / "solution.toml"))
    assert table.headings[-1] == "All servers"
    assert table.rows[0][1:] == ["329.489", "329.489", "658.978"]
    assert table.rows[3][1:] == ["12.774", "12.774", "12.774"]


def test_RPT_18_every_chapter_is_there(solution: Solution) -> None:
    """Cover, disclaimer, features, description, profile, tables 1 to 9, practices, summary,
    conclusion, appendices A to F.
    """
    text = page_of(document_of(solution))
    for chapter in (
        "Disclaimer",
        "Features",
        "Solution description",
        "Targeted customer profile",
        "Tested deployment",
        "Best practices",
        "Test result summary",
        "Conclusion",
    ):
        assert f"<h1>{chapter}</h1>" in text
    assert [number for number in range(1, 10) if f"<caption>Table {number}:" not in text] == []
    assert re.findall(r'id="appendix-([a-f])"', text) == list("abcdef")
    assert re.search(r'(src|href)="(?!#)', text) is None, "the page needs nothing else"


@pytest.mark.parametrize("name", APPENDIX)
def test_RPT_18_an_appendix_gives_every_number_back(solution: Solution, name: str) -> None:
    """Imported, regenerated, imported again: nothing is lost on the way."""
    text = page_of(document_of(solution))
    section = text.split(f'<section id="appendix-{APPENDIX[name]}"')[1].split("</section>")[0]
    assert (
        differences(REPORTS[name](), read_html(f"{name}.html", f"<html><p {section}".encode()))
        == []
    )


def test_RPT_23_the_drawings_show_every_disk_host_and_link(solution: Solution) -> None:
    """A drawing that leaves something out describes another solution."""
    content = solution.content
    layout, picture = (
        ElementTree.fromstring(disk_layout(solution)),
        ElementTree.fromstring(architecture(solution)),
    )
    svg = "{http://www.w3.org/2000/svg}"
    assert len(layout.findall(f"{svg}g[@class='disk']")) == sum(
        pool["disks"] for pool in content["pool"]
    )
    texts = [element.text or "" for element in layout.iter(f"{svg}text")]
    assert [
        volume for pool in content["pool"] for volume in pool["volumes"] if volume not in texts
    ] == []
    names = [element.text for element in picture.iter(f"{svg}text")]
    assert [
        box["name"]
        for kind in ("host", "switch", "array")
        for box in content[kind]
        if box["name"] not in names
    ] == []
    assert len(picture.findall(f"{svg}line[@class='link']")) == sum(
        link["count"] for link in content["link"]
    )
    chart = ElementTree.fromstring(mailbox_chart(solution))
    assert len(chart.findall(f"{svg}circle[@class='row']")) == 5


def test_the_text_document_holds_the_tables_and_pictures(written: Path) -> None:
    """Makers edit before they publish; what they get must be all of it."""
    with zipfile.ZipFile(written / "solution.docx") as file:
        names = file.namelist()
        root = ElementTree.fromstring(file.read("word/document.xml"))
        for part in names:
            if part.endswith((".xml", ".rels")):
                ElementTree.fromstring(file.read(part))
    word = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    text = " ".join(element.text or "" for element in root.iter(f"{word}t"))
    assert [
        figure
        for figure in ("329.489", "8.475", "58.415", "2.23", "1114.9027582", "33744.792")
        if figure not in text
    ] == []
    assert sum(name.startswith("word/media/") for name in names) == 3


def test_the_workbook_computes_table_6(written: Path) -> None:
    """A sheet that only shows what was computed elsewhere can be wrong unseen."""
    with zipfile.ZipFile(written / "solution.xlsx") as file:
        book = ElementTree.fromstring(file.read("xl/workbook.xml"))
        space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
        sheets = [sheet.get("name") for sheet in book.iter(f"{space}sheet")]
        sixth = ElementTree.fromstring(file.read("xl/worksheets/sheet6.xml"))
    assert sheets == [
        *(f"Table {number}" for number in range(1, 10)),
        *(f"Appendix {letter}" for letter in "BCDEF"),
    ]
    formulas = [element.text for element in sixth.iter(f"{space}f")]
    assert [formula.partition("(")[0] for formula in formulas if formula] == [
        "SUM",
        "SUM",
        "AVERAGE",
        "AVERAGE",
        "SUM",
        "AVERAGE",
    ]


@pytest.mark.browser
def test_RPT_32_the_pdf_says_what_the_page_says(solution: Solution, tmp_path: Path) -> None:
    """Printed, taken as text and imported again, every published figure is still there.

    No cell of a table is broken.
    """
    if find_browser() is None or shutil.which("pdftotext") is None:
        pytest.skip("needs chromium and pdftotext")
    result = CliRunner().invoke(
        app, ["esrp", str(EXAMPLE / "solution.toml"), "--out", str(tmp_path), "--formats", "pdf"]
    )
    assert result.exit_code == 0, result.output
    subprocess.run(
        ["pdftotext", "-layout", tmp_path / "solution.pdf", tmp_path / "solution.txt"], check=True
    )
    text = (tmp_path / "solution.txt").read_text(encoding="utf-8")
    for (name, report), found in zip(
        REPORTS.items(), read_paper("solution.txt", text), strict=True
    ):
        assert differences(report(), found) == [], name
    page = unescape(
        re.sub(
            r"<style>.*?</style>|<nav.*?</nav>|<title>[^<]*</title>|<[^>]*>",
            " ",
            page_of(document_of(solution)),
            flags=re.DOTALL,
        )
    )
    printed = set(text.replace("\f", " ").split())
    missing = {
        word for word in page.split() if re.fullmatch(r"[\d.,:%]+", word) and word not in printed
    }
    assert missing == set()


def changed(tmp_path: Path, old: str, new: str) -> list[str]:
    """The mistakes of the example with one change."""
    folder = tmp_path / "esrp"
    if not folder.exists():
        shutil.copytree(EXAMPLE, folder)
    text = (EXAMPLE / "solution.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "solution.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as found:
        read_solution(folder / "solution.toml")
    return [mistake.render("solution.toml") for mistake in found.value.mistakes]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('stress = ["stress.html"]\n', "", "`runs.stress` is missing"),
        ('"stress.html"', '"nowhere"', "is not a finished run"),
        ('"stress.html"', f'"{300 * "9"}"', "cannot be read: File name too long"),
        ('backup = ["backup.html"]', 'backup = ["recovery.html"]', "is a recovery test"),
        ('backup = ["backup.html"]', 'backup = ["stress.html"]', "holds no backup"),
        (
            'performance = ["performance.html"]',
            'performance = ["performance.html", "stress.html"]',
            "but performance has 2",
        ),
        (
            'from = "Mailbox server 1"',
            'from = "Mailbox server 9"',
            "which is no host, switch or array",
        ),
        ('array = "Array 1"', 'array = "Array 7"', "which is no array"),
        ("users = 1000\n", "users = 1000\nuser = 3\n", "is not a key of this table"),
        ('"backup.html"', '"solution.toml"', "cannot be imported"),
    ],
)
def test_a_submission_with_a_gap_is_refused_with_the_line(
    tmp_path: Path, old: str, new: str, word: str
) -> None:
    """A document without its evidence must not come into being."""
    mistakes = changed(tmp_path, old, new)
    assert any(word in mistake for mistake in mistakes), mistakes
    assert all(re.match(r"solution\.toml:\d+: ", mistake) for mistake in mistakes)


def _own_run(tmp_path: Path, change: dict[str, Any]) -> str:
    """The mistake of a solution whose performance run is a changed golden one."""
    folder = tmp_path / "esrp"
    shutil.copytree(EXAMPLE, folder)
    shutil.copytree(Path(__file__).parents[1] / "golden" / "run", folder / "own")
    for name, fields in change.items():
        content = json.loads((folder / "own" / name).read_text(encoding="utf-8"))
        for path, value in fields.items():
            *steps, last = path.split("/")
            place = content
            for step in steps:
                place = place[step]
            place[last] = value
        (folder / "own" / name).write_text(json.dumps(content), encoding="utf-8")
    return " ".join(changed(tmp_path, '"performance.html"', '"own"'))


def test_a_modelled_run_is_refused_as_evidence(tmp_path: Path) -> None:
    """A model shows what to expect; a submission shows what was measured."""
    assert "was modelled, not measured" in _own_run(
        tmp_path, {"plan.json": {"judgement/modelled": {"title": "x"}}}
    )


def test_virtual_time_and_debug_builds_are_refused(tmp_path: Path) -> None:
    """Neither says anything about a storage."""
    assert "was modelled, not measured" in _own_run(
        tmp_path / "a", {"summary.json": {"virtual_time": True}}
    )
    assert "debug build" in _own_run(tmp_path / "b", {"summary.json": {"debug_build": True}})


def test_a_failed_run_is_no_evidence(tmp_path: Path) -> None:
    """Nobody publishes a solution by a test that it failed."""
    assert "has the result fail" in _own_run(tmp_path, {"verdict.json": {"result": "fail"}})


def test_several_hosts_are_listed_one_by_one(tmp_path: Path) -> None:
    """Table 6 has a column for each server.

    What `plimsoll combine` has added up already would be one server that never was.
    """
    shutil.copytree(EXAMPLE, tmp_path / "esrp")
    (tmp_path / "esrp" / "all").mkdir()
    (tmp_path / "esrp" / "all" / "hosts.json").write_text("{}", encoding="utf-8")
    assert "list the run of each server: all/host-1" in " ".join(
        changed(tmp_path, '"performance.html"', '"all"')
    )


def test_a_run_of_our_own_is_evidence(tmp_path: Path) -> None:
    """Measured and imported runs stand side by side; the document says which is which."""
    folder = tmp_path / "esrp"
    shutil.copytree(EXAMPLE, folder)
    shutil.copytree(Path(__file__).parents[1] / "golden" / "run", folder / "own")
    text = (
        (folder / "solution.toml")
        .read_text(encoding="utf-8")
        .replace('"performance.html"', '"own"')
    )
    (folder / "solution.toml").write_text(text, encoding="utf-8")
    solution = read_solution(folder / "solution.toml")
    page = page_of(document_of(solution))
    assert values(tables.table_6(solution))[0] == "4262.779"
    assert "Rehearsal passed" in page or "rehearsal" in page
    assert "<h3>Transactional I/O</h3>" in page


def test_without_a_browser_the_page_is_written_and_the_way_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine room has no browser; the page goes home and is printed there."""
    monkeypatch.setenv("PLIMSOLL_BROWSER", "/nowhere/browser")
    result = CliRunner().invoke(
        app, ["esrp", str(EXAMPLE / "solution.toml"), "--out", str(tmp_path), "--formats", "pdf"]
    )
    assert result.exit_code == 0
    assert "no PDF was written" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["solution.html"]


@pytest.mark.parametrize("formats", ["odt", "", "html,doc"])
def test_an_unknown_format_is_refused(formats: str, tmp_path: Path) -> None:
    """Nothing is written before the whole command is understood."""
    result = CliRunner().invoke(
        app, ["esrp", str(EXAMPLE / "solution.toml"), "--out", str(tmp_path), "--formats", formats]
    )
    assert result.exit_code == 2
    assert "write some of html, pdf, docx, xlsx" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_topology_file_is_drawn_in_the_document(tmp_path: Path) -> None:
    """Hosts, machines before and after a loss, disks; a mistake in the file is one of this."""
    home = tmp_path / "esrp"
    shutil.copytree(EXAMPLE, home)
    shutil.copy(EXAMPLE.parent / "topology_virtual_cluster.toml", home / "topology.toml")
    description = home / "solution.toml"
    kind = 'kind = "solution"\n'
    named = f'{kind}topology = "topology.toml"\n'
    description.write_text(description.read_text().replace(kind, named, 1))
    page = page_of(document_of(read_solution(description)))
    assert "After the loss of r710-1: 8 machines moved" in page
    assert page.count("<svg ") == 3 + 5
    (home / "topology.toml").write_text('kind = "topology"\nschema_version = 1\n')
    with pytest.raises(InputError, match="cannot be drawn"):
        read_solution(description)
