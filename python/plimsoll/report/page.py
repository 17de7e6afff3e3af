"""Puts the report together.

Data from the run folder, tables and charts from their modules, layout from the templates.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from markupsafe import Markup

from plimsoll import __version__
from plimsoll.arrays.text import WARNING
from plimsoll.documents.environment import read_environment
from plimsoll.documents.outcome import Outcome, Points
from plimsoll.documents.plan import Plan
from plimsoll.documents.reported import read_findings, read_reported
from plimsoll.documents.summary import AnySummary, Summary
from plimsoll.documents.verdict import read_verdict
from plimsoll.files import folder
from plimsoll.pages.chart_script import script_bundle
from plimsoll.pages.kit import Chapter, page_style, safe_json, template_environment
from plimsoll.pages.tables import Table, duration_shown
from plimsoll.plan.places import tested_in_words
from plimsoll.report import environment as circumstances
from plimsoll.report import imported
from plimsoll.report.backup_recovery import backup_sections, recovery_sections
from plimsoll.report.charts import histograms, time_series
from plimsoll.report.checksums import checksum_sections
from plimsoll.report.counters import counter_tables, device_view_table
from plimsoll.report.engine_ratios import self_check_table
from plimsoll.report.files import files_charts, files_tables
from plimsoll.report.findings import figure_list, finding_list
from plimsoll.report.homes import homes_tables
from plimsoll.report.integrity import integrity_sections
from plimsoll.report.load import knee_charts, load_tables, search_tables
from plimsoll.report.log_space import log_space_charts, log_space_tables
from plimsoll.report.mail import mail_charts, mail_tables, only_servers
from plimsoll.report.modelled import modelled_sections
from plimsoll.report.overview import overview
from plimsoll.report.run_log import log_lines, log_table, told_by
from plimsoll.report.sections import published_sections
from plimsoll.report.storage_state import condition_tables
from plimsoll.report.store import store_charts, store_tables
from plimsoll.report.together import together_charts, together_tables
from plimsoll.report.verdicts import (
    Bottlenecks,
    bottlenecks_of,
    check_table,
    limit_sources,
    not_measured,
)
from plimsoll.results.measurements import Measurements
from plimsoll.verdict.text import colour_of

#: What the user may add to a run folder by hand: a table of texts, shown with the environment.
NOTES = "notes.toml"
MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}
FILES = {
    folder.SUMMARY: "every figure, for each database and in total",
    folder.VERDICT: "every check with its limit and reason",
    folder.SAMPLES: "every sample, as columns",
    folder.COUNTERS: "every counter of the published reports, interval by interval",
    folder.CONTENT: "how compressible and repetitive the written pages are",
    folder.HISTOGRAMS: "every distribution, bucket by bucket",
    folder.EVENTS: "the test log, one JSON object a line",
    folder.POINTS: "every rate a search tried",
    folder.KERNEL_LOG: "what the kernel said of the disks",
    folder.LOG_CHECK: "what was found in logs, checkpoints and flush maps",
    folder.STAGED_EVENTS: "what was staged while it ran, and what became of it",
    folder.SERVER_USAGE: "processor time and memory of the servers and of the run itself",
    folder.PLAN: "what was asked for, with every default filled in",
    folder.ENVIRONMENT: "the machine and the storage as they were found",
    folder.OUTCOME: "how the run ended, phase by phase",
    folder.REPORTED: "everything that the imported report said, under its own names",
    folder.CONSISTENCY: "what does not add up in the imported report",
}


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
    folder.write_text(path, render(run_folder))
    return path


def render(run_folder: Path) -> str:
    """The report as text."""
    if folder.is_imported(run_folder):
        return _render_imported(run_folder)
    plan, summary = Plan.read(run_folder / folder.PLAN), Summary.read(run_folder / folder.SUMMARY)
    verdict = read_verdict(run_folder / folder.VERDICT)
    environment = read_environment(run_folder / folder.ENVIRONMENT)
    outcome = Outcome.read(run_folder / folder.OUTCOME)
    points = (
        Points.read(run_folder / folder.POINTS).searches
        if (run_folder / folder.POINTS).exists()
        else ()
    )
    tests_shown = published_sections(plan, summary, environment, run_folder.absolute().name)
    if only_servers(plan):
        # Nothing but the summary: no database of ours was there.
        tests_shown = tests_shown[:1]
    with Measurements(run_folder, outcome) as measured:
        first = overview(verdict, measured)
        lines = log_lines(plan, summary, verdict, outcome, measured, told_by(run_folder))
        chapters = [
            Chapter("modelled", "The modelled array", modelled_sections(plan, summary, verdict)),
            Chapter("test", "Test report", tests_shown),
            Chapter(
                "together",
                "Together",
                together_tables(plan, summary),
                together_charts(plan, summary, outcome, measured),
            ),
            Chapter(
                "access",
                "Files",
                [*files_tables(plan, summary), *homes_tables(plan, summary)],
                files_charts(summary.files),
            ),
            Chapter("store", "Store", store_tables(plan, summary), store_charts(summary.store)),
            Chapter(
                "mail", "Mail", mail_tables(plan, summary), mail_charts(summary.mail, measured)
            ),
            Chapter(
                "checksum", "Checksum", [*checksum_sections(summary), *integrity_sections(summary)]
            ),
            Chapter("backup", "Backup", backup_sections(summary)),
            Chapter("recovery", "Soft recovery", recovery_sections(summary)),
            Chapter(
                "logs",
                "Log space",
                log_space_tables(summary.log_space),
                log_space_charts(summary.log_space, measured),
            ),
            Chapter(
                "latency",
                "Latency",
                [circumstances.latency_detail(summary), circumstances.responses(summary)],
                histograms(summary, measured),
            ),
            Chapter("time", "Over time", [], time_series(summary, verdict, measured)),
            Chapter(
                "search", "Search for the highest rate", search_tables(points), knee_charts(points)
            ),
            Chapter(
                "load",
                "Load generator and cache",
                [
                    *load_tables(summary),
                    circumstances.generator(summary),
                    circumstances.instances(summary),
                ],
            ),
            Chapter("conditions", "Conditioning and content", condition_tables(summary)),
            Chapter(
                "counters", "Counters", [*device_view_table(summary), *counter_tables(summary)]
            ),
            Chapter(
                "environment",
                "Environment",
                [
                    *circumstances.environment_tables(environment, _notes(run_folder)),
                    *circumstances.drive_tables(summary),
                    circumstances.phases(summary),
                ],
            ),
        ]
    chapters = [chapter for chapter in chapters if chapter.tables or chapter.charts]
    specs = {
        chart.name: chart.spec
        for chart in [*first, *(chart for chapter in chapters for chart in chapter.charts)]
    }
    bottlenecks = Bottlenecks() if only_servers(plan) else bottlenecks_of(summary, verdict)
    self_check = self_check_table(plan, summary)
    return (
        template_environment()
        .get_template("page.html.j2")
        .render(
            plan=plan,
            verdict=verdict,
            where=_where(plan, summary),
            mark=MARKS[verdict.result],
            colour=colour_of(verdict),
            overview=first,
            modelled=WARNING if plan.judgement.modelled else "",
            figures=figure_list(summary, verdict),
            findings=finding_list(summary, verdict),
            checks=check_table(verdict),
            limit_sources=limit_sources(verdict),
            bottlenecks=bottlenecks,
            chapters=chapters,
            contents=_contents(
                chapters,
                has_bottlenecks=bool(bottlenecks.tables),
                has_self_check=self_check is not None,
            ),
            log=log_table(lines),
            not_measured=not_measured(summary, verdict),
            files=[
                (name, meaning) for name, meaning in FILES.items() if (run_folder / name).exists()
            ],
            self_check=self_check,
            specs=Markup(safe_json(specs)) if specs else "",
            bundle=Markup(script_bundle() if specs else ""),
            style=page_style(),
            version=__version__,
        )
    )


def _render_imported(run_folder: Path) -> str:
    """The report of a run that another tool made."""
    plan = folder.read_json(run_folder / folder.PLAN)
    report = read_reported(run_folder / folder.REPORTED)
    consistency = read_findings(run_folder / folder.CONSISTENCY)
    summary, verdict = (
        AnySummary.read(run_folder / folder.SUMMARY),
        read_verdict(run_folder / folder.VERDICT),
    )
    chapters = [
        Chapter(
            "consistency", "What does not add up", imported.consistency_tables(report, consistency)
        ),
        Chapter("test", "Test report", imported.report_tables(report)),
        Chapter("checksum", "Checksum", imported.checksum_tables(report)),
        Chapter("other", "What else it says", imported.other_tables(report)),
        Chapter(
            "environment",
            "Notes",
            [Table("Notes", [], [list(note) for note in _notes(run_folder).items()])],
        ),
    ]
    chapters = [chapter for chapter in chapters if any(table.rows for table in chapter.tables)]
    return (
        template_environment()
        .get_template("page.html.j2")
        .render(
            plan=plan,
            verdict=verdict,
            where=imported.where(report, summary),
            mark=MARKS[verdict.result],
            colour=colour_of(verdict),
            overview=[],
            modelled="",
            figures=imported.figures(summary, verdict),
            findings=imported.findings(consistency),
            checks=check_table(verdict),
            limit_sources=limit_sources(verdict),
            bottlenecks=Bottlenecks(),
            chapters=chapters,
            contents=_contents(chapters, has_bottlenecks=False, has_self_check=False),
            log=imported.log_table(report),
            not_measured=imported.not_measured(report, summary),
            files=[
                (name, meaning) for name, meaning in FILES.items() if (run_folder / name).exists()
            ],
            self_check=None,
            specs="",
            bundle="",
            style=page_style(),
            version=__version__,
        )
    )


def _where(plan: Plan, summary: Summary) -> str:
    """One line: what was tested, when and for how long."""
    array = plan.judgement.modelled
    paths = array["title"] if array else ", ".join(tested_in_words(plan.run.plain()))
    window = summary.window
    when = (window.start_utc or "").replace("T", " ")[:16]
    test = f"{plan.judgement.test.capitalize()} test of {paths}"
    if not window.seconds:
        started = (
            (summary.phases[0].start_utc or "").replace("T", " ")[:16] if summary.phases else ""
        )
        return f"{test}, {started} UTC" if started else test
    if array:
        return f"{test}, simulated for {duration_shown(window.seconds)}"
    return f"{test}, {when} UTC, measured for {duration_shown(window.seconds)}" if when else test


def _contents(
    chapters: list[Chapter], *, has_bottlenecks: bool, has_self_check: bool
) -> list[tuple[str, str]]:
    found = [("verdict", "Verdict"), ("figures", "Key figures"), ("checks", "Checks")]
    found += [("bottlenecks", "Where the time went")] if has_bottlenecks else []
    found += [(chapter.id, chapter.title) for chapter in chapters]
    found += [("log", "Test log"), ("not-measured", "What was not measured"), ("files", "Files")]
    return found + ([("self-check", "Appendix: self-check")] if has_self_check else [])


def _notes(run_folder: Path) -> dict[str, str]:
    try:
        content = tomllib.loads((run_folder / NOTES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise folder.FolderError(
            f'{run_folder / NOTES} cannot be read: {error}; write lines like `array = "model"`'
        ) from error
    return {name: str(text) for name, text in content.items()}
