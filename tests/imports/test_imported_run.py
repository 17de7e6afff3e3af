"""An imported report is a run folder.

Figures in our words where they mean the same, the verdict as the original said it.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.imports.jetstress.report_html import page_of
from plimsoll.imports.report_model import sections_of
from tests.support.published import REPORTS, appendix_c, read


def run(*arguments: str | Path) -> Any:
    """Run a command of the program."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def page(path: Path, report: dict[str, Any]) -> Path:
    """A report as a file."""
    path.write_text(page_of("Test Result Report", sections_of(report)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every published report, imported."""
    parent = tmp_path_factory.mktemp("published")
    files = [page(parent / f"{name}.html", report()) for name, report in REPORTS.items()]
    result = run("import", *files, "--out", parent / "runs")
    assert result.exit_code == 0, result.output
    return parent / "runs"


def read_json(path: Path) -> Any:
    """A file of a run folder."""
    return json.loads(path.read_text(encoding="utf-8"))


def test_RPT_26_figures_stand_in_our_words(runs: Path) -> None:
    """Table 6 of the report follows from the summary alone."""
    total = read_json(runs / "appendix_c" / "summary.json")["total"]
    table = read("summary_tables_6_to_8")["table_6_individual_server_metrics"]
    assert total["database_iops"] == table["database_disk_transfers_per_sec"]
    assert total["database_read"]["per_s"] == pytest.approx(table["database_disk_reads_per_sec"])
    assert total["database_write"]["per_s"] == pytest.approx(table["database_disk_writes_per_sec"])
    assert total["database_read"]["latency_ms_mean_of_samples"] == pytest.approx(
        table["average_database_disk_read_latency_ms"]
    )
    assert total["log_write"]["per_s"] == pytest.approx(table["log_disk_writes_per_sec"])


def test_what_the_original_does_not_hold_is_null_and_named(runs: Path) -> None:
    """A plain mean of samples is not a mean weighted by operations, however close it may be."""
    folder = runs / "appendix_c"
    database = read_json(folder / "summary.json")["databases"][0]["database_read"]
    assert database["latency_ms_mean_of_samples"] == 12.056
    assert [
        database[name] for name in ("latency_ms_mean", "latency_ms_p99", "latency_ms_max", "count")
    ] == [None] * 4
    assert "percentiles" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_verdict_is_that_of_the_original(runs: Path) -> None:
    """An import judges nothing, and never qualifies."""
    verdict = read_json(runs / "appendix_d" / "verdict.json")
    assert verdict["result"] == "pass"
    assert verdict["headline"] == "Pass (imported: said by Jetstress 14.01.0180.003)"
    assert verdict["limits"] == "lenient"
    assert verdict["qualifying"] is False
    reads = {
        check["scope"]: check["measured"]
        for check in verdict["checks"]
        if check["name"] == "database_read_latency_mean"
    }
    assert reads == {"Instance2804.1": 17.92, "Instance2804.2": 18.153}


def test_a_fail_stays_a_fail(tmp_path: Path) -> None:
    """The word of the original decides, not our arithmetic."""
    report = appendix_c()
    report["test_summary"]["overall_result"] = "Fail"
    result = run("import", page(tmp_path / "x.html", report), "--out", tmp_path / "runs")
    assert "Fail (imported" in result.output
    assert read_json(tmp_path / "runs" / "x" / "verdict.json")["result"] == "fail"


@pytest.mark.parametrize("name", REPORTS)
def test_every_file_says_that_it_was_imported(runs: Path, name: str) -> None:
    """Nobody may take the figures for ours."""
    for file in ("plan.json", "environment.json", "outcome.json", "summary.json", "verdict.json"):
        assert read_json(runs / name / file)["imported"]["tool"] == "Jetstress", file
    assert "imported" in (runs / name / "report.html").read_text(encoding="utf-8").lower()


def test_backup_and_replay_have_their_figures(runs: Path) -> None:
    """Tables 7 and 8 follow from these."""
    backups = read_json(runs / "appendix_e" / "summary.json")["backups"]
    assert [item["mib_per_s"] for item in backups] == [58.87, 57.96]
    replays = read_json(runs / "appendix_f_replay" / "summary.json")["recoveries"]
    assert [round(item["seconds_per_log"], 4) for item in replays] == [2.2254, 2.2375]


def test_plimsoll_report_makes_it_again(runs: Path, tmp_path: Path) -> None:
    """Whatever the later stages left can be thrown away."""
    copy = tmp_path / "copy"
    shutil.copytree(runs / "appendix_c", copy)
    before = (copy / "report.html").read_text(encoding="utf-8")
    for name in ("plan.json", "summary.json", "verdict.json", "report.html", "consistency.json"):
        (copy / name).unlink()
    result = run("report", copy)
    assert result.exit_code == 0, result.output
    assert (copy / "report.html").read_text(encoding="utf-8") == before


def test_a_checksum_page_joins_the_test_it_followed(tmp_path: Path) -> None:
    """The tool writes two pages; a run has one folder."""
    report = appendix_c()
    checksum = {
        "checksum": report.pop("checksum"),
        "test_log_events": [{"t": "2011-04-21T05:46:06", "event": "verify_checksums"}],
    }
    files = [
        page(tmp_path / "DBChecksum.html", checksum),
        page(tmp_path / "Performance.html", report),
    ]
    result = run("import", *files, "--out", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["Performance"]
    assert (
        read_json(tmp_path / "runs" / "Performance" / "summary.json")["total"]["pages_verified"]
        == 63720068
    )


def test_nothing_is_overwritten(runs: Path, tmp_path: Path) -> None:
    """A second import must not replace notes that somebody added to the first."""
    result = run("import", page(tmp_path / "appendix_c.html", appendix_c()), "--out", runs)
    assert result.exit_code == 2
    assert "nothing is overwritten" in result.output


def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path) -> None:
    """Several files, one of them a PDF: the message must say which."""
    pdf = tmp_path / "paper.pdf"
    pdf.write_bytes(b"%PDF-1.5 ...")
    result = run("import", page(tmp_path / "c.html", appendix_c()), pdf, "--out", tmp_path / "runs")
    assert result.exit_code == 2
    assert "paper.pdf" in result.output
    assert "pdftotext" in result.output
    assert not (tmp_path / "runs").exists()


def test_RPT_28_compare_accepts_imported_runs(runs: Path) -> None:
    """The published increase from three to six threads, 40 %, from the two reports.

    A report against itself differs in nothing.
    """
    result = run("compare", runs / "appendix_c", runs / "appendix_d")
    assert result.exit_code == 0, result.output
    assert re.search(r"Database IOPS[^%]*?1\.40", result.output), result.output
    assert "imported from another tool's report" in result.output
    result = run("compare", runs / "appendix_c", runs / "appendix_c")
    assert "a run differs from itself in nothing" in result.output
    assert "13 same" in result.output
