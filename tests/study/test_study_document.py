"""The document of a study: every chapter in every format, and no finding without its figures."""

import re
import zipfile
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plimsoll.cli import run_program
from plimsoll.documents.study import StudyFindings
from plimsoll.files import folder
from plimsoll.pages.tables import shown
from plimsoll.study.charts import Bar, bars, curve
from plimsoll.study.key_findings import key_findings
from tests.study.test_study_command import LIGHT, written
from tests.support.chart_schema import hold_charts

TOPOLOGY = Path(__file__).parents[2] / "examples/topology_virtual_cluster.toml"
AXIS = """
kind = "study"
schema_version = 1
name = "sessions"
description = "How many sessions the array carries."
repeat = 2
topology = "topology.toml"

[light]
array = "emc-vnxe3300"
databases = 2
database_gb = 400
volume_gb = 500
sessions = 2
warm_up_s = 5
measure_s = 20

[[axes]]
key = "light.sessions"
title = "sessions"
values = [2, 4, 8]
"""
CHAPTERS = (
    "Executive summary",
    "Key findings",
    "Method",
    "Environment",
    "Results",
    "Conclusion",
    "Appendix A: Variants",
    "Appendix B: Every figure",
    "Appendix C: Every difference",
    "Appendix D: What must be known first",
    "Appendix E: The study file",
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study along an axis, with a topology beside it, and its documents."""
    home = tmp_path_factory.mktemp("study")
    (home / "topology.toml").write_text(TOPOLOGY.read_text())
    out = home / "out"
    arguments = ["study", str(written(home, AXIS)), "--out", str(out), "--document", "html,docx"]
    assert run_program(arguments) == 0
    return out


def text_of(page: Path) -> str:
    """What a reader sees."""
    body = re.sub(r"<(style|script|title)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "\n", body))


def test_every_chapter_is_there_in_every_format(study: Path) -> None:
    """The shape of a published study, on paper and for who edits it."""
    assert "curve-database-iops" in hold_charts((study / folder.REPORT).read_text())
    headings = re.findall(r"<h1>(.*?)</h1>", (study / "document.html").read_text())
    assert [heading for heading in headings if heading in CHAPTERS] == list(CHAPTERS)
    with zipfile.ZipFile(study / "document.docx") as archive:
        words = "".join(ElementTree.fromstring(archive.read("word/document.xml")).itertext())
        pictures = [name for name in archive.namelist() if name.endswith(".png")]
    assert all(chapter in words for chapter in CHAPTERS)
    page = (study / "document.html").read_text()
    assert len(pictures) == page.count("<svg ") > 6, "every drawing stands in both"
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "nothing is loaded"


def test_every_number_of_a_finding_is_a_figure_of_the_study(study: Path) -> None:
    """A sentence of a summary is repeated by people who never see the table."""
    found = StudyFindings.from_plain(folder.read_json(study / "study.json"))
    findings = key_findings(found)
    assert len(findings) >= 4
    for finding in findings:
        held = {shown(trace.value) for trace in finding.traces}
        for trace in finding.traces:
            row = next(row for row in found.figures if row.name == trace.figure)
            index = [side.name for side in found.sides].index(trace.variant)
            assert row.sides[index].value == trace.value
            held |= {f"{trace.value:.0f}", trace.variant}
            against = row.against_baseline[index]
            held |= {
                f"{value:#.3g}" for value in (against.factor, against.low, against.high) if value
            }
        said = finding.text.replace("1/s", "")
        for name in (side.name for side in found.sides):
            said = said.replace(name, "")
        numbers = re.findall(r"\d[\d,]*\.?\d*", said)
        counts = {str(len(found.ranking)), "95", "20", "2", "4", "8"}
        assert set(numbers) <= held | counts, (said, held)


def test_findings_stand_in_the_document_with_their_figures(study: Path) -> None:
    """By the names that study.json has."""
    text = text_of(study / "document.html")
    found = StudyFindings.from_plain(folder.read_json(study / "study.json"))
    for finding in key_findings(found):
        assert finding.text in text
        assert all(trace.in_words() in text for trace in finding.traces)
    assert "MODELLED" in text
    assert "sessions" in text and 'array = "emc-vnxe3300"' in text, "the study file is there"


def test_the_topology_is_drawn(study: Path) -> None:
    """Hosts, machines before and after a loss, disks: as `plimsoll advise --html` draws them."""
    text = text_of(study / "document.html")
    assert "After the loss of r710-1: 8 machines moved" in text
    assert text.count("md3000i") > 2


def test_a_finished_study_gets_its_document_without_a_run(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wants it as PDF later has not to carry it out again."""
    (study / "document.html").unlink()
    again = ["study", str(study.parent / "study.toml"), "--out", str(study), "--document", "html"]
    assert run_program(again) == 0
    said = capsys.readouterr()
    assert "simulations to do" not in said.err
    assert "document.html" in said.out + said.err
    assert (study / "document.html").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('topology = "none.toml"', "none.toml"),
        ('topology = "broken.toml"', "cannot be drawn"),
    ],
)
def test_a_topology_that_cannot_be_drawn_is_a_mistake_of_the_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    """Before anything is carried out."""
    (tmp_path / "broken.toml").write_text('kind = "topology"\nschema_version = 1\n')
    text = LIGHT.replace("repeat = 3\n", f"repeat = 3\n{change}\n")
    assert run_program(["study", str(written(tmp_path, text)), "--out", str(tmp_path / "o")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_an_unknown_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before hours of runs."""
    assert run_program(["study", str(written(tmp_path)), "--document", "odt"]) == 2
    assert "html, pdf, docx" in capsys.readouterr().err


def test_charts_show_every_value_and_what_is_missing() -> None:
    """A bar for each variant; without a value a word, not a bar of nothing."""
    rows = [Bar("a <b>", 120.0, 0.05), Bar("c", 240.0), Bar("d", None)]
    svg = bars("Rate", "1/s", rows)
    drawn = ElementTree.fromstring(svg)
    kinds = [group.get("class") for group in drawn.iter("{http://www.w3.org/2000/svg}g")]
    assert kinds == ["bar", "bar", "missing"]
    words = "".join(drawn.itertext())
    assert all(word in words for word in ("a <b>", "120", "240", "none"))
    assert svg.count('class="interval"') == 1
    line = ElementTree.fromstring(curve("t", ("x", "y"), [(1, 5.0), (2, 9.0)], 8.0))
    assert "limit 8" in "".join(line.itertext())
