"""The checker finds in the published reports what people found by hand, and nothing in a report
that adds up.
"""

import copy
from typing import Any

import pytest

from plimsoll.imports.consistency_checks import CONTRADICTION, ODDITY, ROUNDING, Finding, check
from plimsoll.imports.report_model import test_type as kind_of_test
from tests.support.published import REPORTS, appendix_c


def findings(report: dict[str, Any]) -> list[Finding]:
    """What does not add up in a report."""
    return check(report | {"test_type": kind_of_test(report)})


#: Entries of the list made by hand that one report alone shows: appendix, rule, kind, words.
BY_HAND = {
    "E-03": ("appendix_e", "backup_reads", CONTRADICTION, "58.87 is printed, 5.89"),
    "E-11 long": ("appendix_b", "type_and_duration", ODDITY, "performance test of 24 h"),
    "E-11 short": ("appendix_d", "type_and_duration", ODDITY, "stress test of 2 h"),
    "E-14": ("appendix_b", "log_result", ODDITY, "repeats the latency of log writes"),
    "E-15": ("appendix_b", "checksum_time", ODDITY, "wall clock"),
    "E-17": ("appendix_e", "backup_size", ODDITY, "994882.09"),
    "E-18": ("appendix_f_generation", "log_volume", ODDITY, "2.07 MiB"),
    "E-19 sum": ("appendix_d", "achieved_iops", ROUNDING, "462.483 is printed, 462.484"),
    "E-19 total": ("appendix_c", "total_reads", ROUNDING, "125.06 is printed, 125.059"),
    "E-19 total of B": ("appendix_b", "total_reads", ROUNDING, "127.095 is printed, 127.096"),
    "E-20": ("appendix_e", "backup_rate", ROUNDING, "58.87 is printed, 58.87"),
    "E-23": ("appendix_c", "sample_count", ODDITY, "478 samples were queried of 479"),
    "E-24": ("appendix_c", "log_write_share", ODDITY, "0.80 of database writes"),
    "E-25": ("appendix_f_replay", "replay_latency", ODDITY, "no limit applies"),
    "E-26": ("appendix_f_generation", "parameters_missing", "missing", "copies per database"),
}


@pytest.mark.parametrize("entry", BY_HAND)
def test_RPT_27_an_entry_found_by_hand_is_found(entry: str) -> None:
    """The checker replaces a reader with a pocket calculator."""
    name, rule, kind, words = BY_HAND[entry]
    found = [
        finding
        for finding in findings(REPORTS[name]())
        if finding.rule == rule and words in finding.text
    ]
    assert found
    assert found[0].kind == kind


@pytest.mark.parametrize("name", REPORTS)
def test_RPT_27_a_published_report_contradicts_itself_only_where_a_digit_was_lost(
    name: str,
) -> None:
    """A checker that cries wolf is switched off."""
    contradictions = [
        finding.rule for finding in findings(REPORTS[name]()) if finding.kind == CONTRADICTION
    ]
    assert contradictions == (["backup_reads"] * 2 if name == "appendix_e" else [])


def _changed(path: str, value: Any) -> dict[str, Any]:
    report = copy.deepcopy(appendix_c())
    place: Any = report
    *steps, last = path.split("/")
    for step in steps:
        place = place[int(step) if isinstance(place, list) else step]
    place[last] = value
    return report


PLANTED = {
    "transactional_io/Instance3328.1/db_reads_per_sec": (
        112.641,
        ["achieved_iops", "total_bytes", "total_reads"],
    ),
    "total_io/Instance3328.1/db_read_avg_bytes": (81562.83, ["total_bytes"]),
    "test_summary/achieved_transactional_iops": (339.489, ["achieved_iops"]),
    "test_summary/final_database_size_bytes": (2087979188225, ["checksum_final_size"]),
    "test_summary/collection_end": ("2011-04-21T03:45:48", ["time_order"]),
    "test_summary/database_files_count": (3, ["database_count"]),
    "jetstress_system_parameters/read_operations_pct": (45, ["operation_mix"]),
    "jetstress_system_parameters/maximum_database_cache_mb": (
        1024.0,
        ["cache_bound", "flush_thresholds"],
    ),
    "transactional_io/Instance3328.1/db_read_avg_latency_ms": (22.056, ["pass_over_limit"]),
    "transactional_io/Instance3328.2/log_write_avg_latency_ms": (14.192, ["pass_over_limit"]),
    "checksum/statistics/2/seen_pages": (63720069, ["checksum_sums"]),
    "checksum/statistics/0/bad_pages": (1, ["checksum_sums", "pass_over_limit"]),
    "checksum/statistics/0/seen_pages": (
        31852000,
        ["checksum_final_size", "checksum_pages", "checksum_sums"],
    ),
    "host_system_performance/processor_time_pct": (
        {"average": 50.0, "minimum": 1.0, "maximum": 11.0},
        ["average_between"],
    ),
}


@pytest.mark.parametrize("path", PLANTED)
def test_RPT_27_a_planted_contradiction_is_found(path: str) -> None:
    """Each rule must be able to fail."""
    value, rules = PLANTED[path]
    found = sorted(
        {
            finding.rule
            for finding in findings(_changed(path, value))
            if finding.kind == CONTRADICTION
        }
    )
    assert found == rules


def test_samples_without_an_interval_are_not_counted() -> None:
    """An interval of nothing is damage, not a reason to divide by it."""
    report = copy.deepcopy(appendix_c())
    begun = [
        event for event in report["test_log_events"] if event["event"] == "perf_logging_begins"
    ]
    assert begun
    for event in begun:
        event["interval_ms"] = 0
    assert "sample_count" not in {finding.rule for finding in findings(report)}
