"""The published figures of the EMC VNXe3300 report, as reports of the test tool.

`tests/golden/published` names its source.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"
EMC = PUBLISHED / "emc_vnxe3300"
#: What the machine-readable results hold beside what the report prints.
NOT_PRINTED = ("provenance", "notes", "derived", "test_log_note")
CONFIGURATION = "database_configuration"


def read(name: str) -> dict[str, Any]:
    """One file of the published results."""
    found: dict[str, Any] = json.loads((EMC / f"{name}.json").read_text(encoding="utf-8"))
    return found


def printed(name: str) -> dict[str, Any]:
    """An appendix as its report prints it: the digit that appendix E lost is lost here, too."""
    found = {
        key: value for key, value in copy.deepcopy(read(name)).items() if key not in NOT_PRINTED
    }
    for table in (
        found.get("transactional_io"),
        found.get("replay_phase", {}).get("transactional_io"),
    ):
        for row in (table or {}).values():
            if "db_read_avg_bytes_as_printed" in row:
                row["db_read_avg_bytes"] = row.pop("db_read_avg_bytes_as_printed")
    if "checksum" in found:
        found["checksum"].pop("page_size_bytes_derived")
    return found


def appendix_b() -> dict[str, Any]:
    """The 24-hour run."""
    return printed("appendix_b_stress_24h")


def appendix_c() -> dict[str, Any]:
    """The two-hour run."""
    return printed("appendix_c_performance_2h")


def appendix_d() -> dict[str, Any]:
    """The run with most threads."""
    return printed("appendix_d_max_iops")


def appendix_e() -> dict[str, Any]:
    """The backup."""
    return printed("appendix_e_backup_readonly")


def appendix_f() -> tuple[dict[str, Any], dict[str, Any]]:
    """The replay, and the generation of its logs."""
    both = printed("appendix_f_soft_recovery")
    events = both["test_log_events"]
    replay = {key: both[key] for key in ("soft_recovery_statistics", CONFIGURATION)} | both[
        "replay_phase"
    ]
    # The page of the first phase is saved when that ends, with the log up to then.
    saved = next(
        place for place, event in enumerate(events) if event["event"] == "html_report_saved"
    )
    generation = both["log_generation_phase"] | {
        CONFIGURATION: both[CONFIGURATION],
        "test_log_events": events[: saved + 1],
    }
    return replay | {"test_log_events": events}, generation


REPORTS = {
    "appendix_b": appendix_b,
    "appendix_c": appendix_c,
    "appendix_d": appendix_d,
    "appendix_e": appendix_e,
    "appendix_f_replay": lambda: appendix_f()[0],
    "appendix_f_generation": lambda: appendix_f()[1],
}


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Every value that is expected and not there as it is.

    What is found beyond it does not matter.
    """
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{path}: {found!r} is no table"]
        return [
            line
            for key, value in expected.items()
            for line in differences(value, found.get(key), f"{path}/{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{path}: {expected!r} became {found!r}"]
        return [
            line
            for place, value in enumerate(expected)
            for line in differences(value, found[place], f"{path}[{place}]")
        ]
    return [] if expected == found else [f"{path}: {expected!r} became {found!r}"]
