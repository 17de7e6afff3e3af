"""Puts the report together: data from the run folder, tables and charts from their modules, layout from the template."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from plimsoll import __version__, folder
from plimsoll.measurements import Measurements
from plimsoll.report.charts import chart_list, script_bundle
from plimsoll.report.tables import Table, section_list, shown

NOT_MEASURED = (
    "Which part of the system is slow: latencies are those the host sees, not split over kernel queue, path and device.",
    "Behaviour during failures: degraded arrays, lost paths, power cuts.",
    "Latency of database writes is shown but not judged, as in the published test.",
    "Other loads at the same time: backup windows, snapshots, other hosts.",
)


def write_report(run_folder: Path) -> Path:
    """Write `report.html` into a run folder that holds a summary and a verdict.

    Args:
        run_folder: the folder of a run.

    Returns:
        The report's path.

    Raises:
        FolderError: an earlier stage's file is missing.
    """
    path = run_folder / folder.REPORT
    path.write_text(render(run_folder), encoding="utf-8")
    return path


def render(run_folder: Path) -> str:
    """The report as text."""
    plan = folder.read_json(run_folder / folder.PLAN)
    summary = folder.read_json(run_folder / folder.SUMMARY)
    verdict = folder.read_json(run_folder / folder.VERDICT)
    environment = folder.read_json(run_folder / folder.ENVIRONMENT)
    outcome = folder.read_json(run_folder / folder.OUTCOME)
    events = folder.read_events(run_folder)
    with Measurements(run_folder, outcome) as measured:
        charts = chart_list(plan, measured)
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page.filters["shown"] = shown
    template = page.from_string(_resource("page.html.j2"))
    return template.render(
        plan=plan,
        summary=summary,
        verdict=verdict,
        checks=check_table(verdict),
        sections=section_list(plan, summary, environment, run_folder),
        charts=charts,
        specs=Markup(_safe_json({chart.name: chart.spec for chart in charts})),
        bundle=Markup(script_bundle() if charts else ""),
        style=Markup(_resource("page.css")),
        events=[{**event, "seconds": event["time_ns"] / 1e9} for event in events],
        not_measured=NOT_MEASURED,
        version=__version__,
        mark={"pass": "✓", "fail": "✗", "inconclusive": "?"}[verdict["result"]],
    )


def check_table(verdict: dict[str, Any]) -> Table:
    """One row for each check."""
    words = {
        "pass": "✓ pass",
        "fail": "✗ fail",
        "not_evaluated": "? not evaluated",
        "not_applicable": "– not applicable",
    }
    rows = [
        [words[check["status"]], check["title"], check["scope"], check["reason"], check["source"]]
        for check in verdict["checks"]
    ]
    return Table("Checks", ["Result", "Check", "Where", "Reason", "Source of the limit"], rows)


def _resource(name: str) -> str:
    return files("plimsoll.report").joinpath(name).read_text(encoding="utf-8")


def _safe_json(value: Any) -> str:
    """JSON that can stand inside a script element whatever the plan's names are."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
