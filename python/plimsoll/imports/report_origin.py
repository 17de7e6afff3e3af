"""What a report says of itself: which tool wrote it, what the run is called, when it began and by
which limits it was judged.
"""

from __future__ import annotations

import re
from datetime import datetime

from plimsoll.documents.figures import Origin
from plimsoll.documents.reported import ReportedTest

TOOL = "Jetstress"


def origin_of(report: ReportedTest) -> Origin:
    """The mark of an imported run: from which file and tool."""
    summary, source = report.get("test_summary") or {}, report.get("source") or {}
    return Origin(
        tool=TOOL,
        tool_version=summary.get("jetstress_version"),
        engine_version=summary.get("ese_version"),
        files=source.get("files") or [],
        format=source.get("format"),
        test_type=report["test_type"],
        repairs=report.get("repairs") or [],
        losses=report.get("losses") or [],
    )


def run_name(report: ReportedTest) -> str:
    """What to call an imported run."""
    summary = report.get("test_summary") or {}
    parts = [report["test_type"].replace("_", " "), summary.get("machine_name")]
    name = " ".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9 ._-]+", "-", name)[:60].strip() or "imported"


def limit_set(report: ReportedTest) -> str:
    """The limits that the log announced; by the kind of test where it did not."""
    for event in report.get("test_log_events") or []:
        if event["event"] == "db_read_latency_thresholds":
            return "lenient" if event["maximum_ms"] > 100 else "strict"
    return "lenient" if report["test_type"] == "stress" else "strict"


def local_time(report: ReportedTest) -> datetime | None:
    """When the test began, on the clock of its machine."""
    events = report.get("test_log_events") or []
    text = (report.get("test_summary") or {}).get("test_start") or (
        events[0]["t"] if events else None
    )
    return datetime.fromisoformat(text) if text else None
