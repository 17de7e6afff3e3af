"""Result pages and files of the test tool.

Every figure of the published reports comes back as it was.
"""

import pytest

from plimsoll.imports.detect import joined
from plimsoll.imports.jetstress.report_html import page_of, read_html
from plimsoll.imports.jetstress.report_xml import read_xml
from plimsoll.imports.report_model import checksums_of, sections_of
from plimsoll.inputs.mistakes import InputError
from tests.support.published import REPORTS, appendix_c, differences
from tests.support.xml_results import result_xml


def page(report: dict[str, object]) -> bytes:
    """A report as the tool's page."""
    return page_of("Test Result Report", sections_of(report)).encode()


@pytest.mark.parametrize("name", REPORTS)
def test_RPT_26_every_published_figure_survives_the_page(name: str) -> None:
    """A figure that is read wrongly is worse than one that is not read."""
    expected = REPORTS[name]()
    found = read_html(f"{name}.html", page(expected))
    assert differences(expected, found) == []
    assert found["other"] == {}


def test_RPT_10_the_log_keeps_its_order_and_its_values() -> None:
    """The log tells thresholds and mix, which stand nowhere else."""
    events = [
        event["event"] for event in read_html("c.html", page(appendix_c()))["test_log_events"]
    ]
    order = [
        "testing_begins",
        "attach_databases",
        "cache_settings",
        "db_read_latency_thresholds",
        "operation_mix",
        "prerequisite_met",
        "perf_logging_ends",
        "instance_result",
        "html_report_saved",
        "verify_checksums",
    ]
    assert [event for event in dict.fromkeys(events) if event in order] == order
    assert "other" not in events


def test_a_line_of_the_log_that_nobody_knows_is_kept() -> None:
    """Later builds say more; what they say must not vanish."""
    text = page(appendix_c()).replace(
        b"Creating test report ...", b"Volume E: had 3 errors of kind 51"
    )
    events = read_html("c.html", text)["test_log_events"]
    assert [event["text"] for event in events if event["event"] == "other"] == [
        "Volume E: had 3 errors of kind 51"
    ]


def test_labels_without_a_name_here_are_kept() -> None:
    """The tool of 2013 reports more than that of 2010."""
    text = page(appendix_c()).replace(
        b"</legend>", b"</legend><table><tr><td>Volume Errors</td><td>7</td></tr></table>", 2
    )
    found = read_html("c.html", text)
    assert found["other"] == {
        "Test Summary": ["Volume Errors | 7"],
        "Database Sizing and Throughput": ["Volume Errors | 7"],
    }


def test_a_page_with_decimal_commas_means_the_same() -> None:
    """The tool prints numbers as the language of the system wants them."""
    import re

    report = appendix_c()
    text = re.sub(r"(?<=<td>)(\d+)\.(\d+)", r"\1,\2", page(report).decode()).replace(
        "14,01.", "14.01."
    )
    assert (
        differences(
            report["transactional_io"], read_html("c.html", text.encode())["transactional_io"]
        )
        == []
    )


def test_the_xml_holds_the_averages_of_the_page() -> None:
    """The two files of one run must agree after the import."""
    report = appendix_c()
    found = read_xml("c.xml", result_xml(report).encode())
    for part in (
        "test_summary",
        "jetstress_system_parameters",
        "transactional_io",
        "background_database_maintenance_io",
        "log_replication_io",
        "total_io",
        "host_system_performance",
    ):
        assert differences(report[part], found[part]) == [], part


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("102.641", "1O2.641", "a number was expected"),
        ("4/21/2011 3:43:49 AM</td>", "yesterday</td>", "a time was expected"),
        ("<td>12.056</td>", "", "12 were expected"),
        ("995402 MBytes/12298 sec", "995402", "MBytes/12298 sec was expected"),
        ("102.641", "-102.641", "0 to 1e18"),
        ("102.641", "9" * 24, "0 to 1e18"),
    ],
)
def test_a_damaged_cell_is_named_with_its_line(old: str, new: str, word: str) -> None:
    """Whoever has to mend a table must know which one."""
    text = page(appendix_c()).decode()
    changed = text.replace(old, new, 1)
    with pytest.raises(InputError) as found:
        read_html("c.html", changed.encode())
    mistake = found.value.mistakes[0]
    assert word in f"{mistake.message} {mistake.hint}"
    assert mistake.where
    lines = text.split("\n")
    place = next(number for number, line in enumerate(lines, 1) if old in line)
    assert abs(mistake.line - place) <= 1 or "MBytes" in word


def test_a_page_that_is_no_report_says_what_was_expected() -> None:
    """The usual slip is the wrong file."""
    with pytest.raises(InputError, match="holds no results of the test tool"):
        read_html("x.html", b"<html><h1>Holiday pictures</h1></html>")


def test_a_line_of_the_log_with_an_impossible_number_is_kept() -> None:
    """Found by fuzzing: a share without digits is no share, and no reason to give up the report."""
    text = (
        page(appendix_c())
        .replace(b"(100% processed)", b"(% processed)")
        .replace(b"has 487 samples", b"has " + b"4" * 5000 + b" samples")
    )
    events = read_html("c.html", text)["test_log_events"]
    assert len([event for event in events if event["event"] == "other"]) == 2


def test_a_checksum_without_its_table_still_goes_to_its_test() -> None:
    """Found by fuzzing: a page cut off before the table says that the files were read, and nothing
    about them.
    """
    test = read_html("c.html", page(appendix_c())) | {"source": {"files": ["c.html"]}}
    del test["checksum"]
    cut = {"test_type": "checksum", "source": {"files": ["d.html"]}}
    (report,) = joined([test, cut])
    assert report["source"]["files"] == ["c.html", "d.html"]
    assert checksums_of(report) == []
