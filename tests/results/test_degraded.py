"""Latencies while something is degraded, from samples in which they were planted."""

from pathlib import Path

import duckdb
import pytest

from plimsoll.documents.event_figures import LoadResponse
from plimsoll.documents.plan import Plan
from plimsoll.documents.staged_events import EventLimits, StagedEvent, StagedEventsFile
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.report.findings import figure_list
from plimsoll.report.verdicts import check_table
from plimsoll.results.degraded import degraded_span
from plimsoll.verdict.checks import all_checks
from plimsoll.verdict.events import event_checks
from tests.support.plain_stages import summarize, verdict_of
from tests.support.planted_run import SECOND, run_folder

EVENT = {
    "name": "path",
    "after_s": 2,
    "command": ["true"],
    "undo": ["true"],
    "undo_after_s": 8,
    "prove": ["true"],
}


def staged(judge: EventLimits) -> StagedEvent:
    """From the third to the eighth second of ten that are measured, which begin with 1 s."""
    return StagedEvent(
        name="path",
        phase="measure",
        kind="command",
        planned_s=2.0,
        begun_s=3.0,
        applied_s=3.0,
        undo_begun_s=9.0,
        undone_s=9.0,
        proved=True,
        exit_code=0,
        output="",
        undo_exit_code=0,
        undo_output="",
        error=None,
        judge=judge,
    )


def degraded_run(path: Path, slow_ms: float, usual_ms: float = 5.0) -> Summary:
    """The planted run, whose reads take 5 ms, or `usual_ms`, and `slow_ms` while it lasts."""
    judge = {"degraded_limits": "strict"}
    usual = {("database_read", 1): {"each_ns": usual_ms * 1e6}}
    run = run_folder(path, usual, event=[{**EVENT, "judge": judge}])
    samples = run / folder.SAMPLES
    slow = f"metric = 'database_read' AND end_ns > {3 * SECOND} AND end_ns <= {9 * SECOND}"
    changed = f"CASE WHEN {slow} THEN count * {int(slow_ms * 1e6)} ELSE latency_ns_sum END::UBIGINT"
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({changed} AS latency_ns_sum) FROM '{samples}') "
        f"TO '{path / 'changed'}' (FORMAT parquet)"
    )
    (path / "changed").rename(samples)
    found = StagedEventsFile(schema_version=1, events=[staged(EventLimits(**judge))])
    found.write(run / folder.STAGED_EVENTS)
    assert Plan.read(run / folder.PLAN).events[0].judge.degraded_limits == "strict"
    return Summary.from_plain(summarize(run))


@pytest.mark.parametrize(("slow_ms", "expected"), [(19.0, "pass"), (25.0, "fail")])
def test_the_latency_while_it_lasts_is_judged_by_its_own_limits(
    tmp_path: Path, slow_ms: float, expected: str
) -> None:
    """25 ms for six of ten seconds are 17 ms in the mean of the run, which would pass."""
    summary = degraded_run(tmp_path / "run", slow_ms)
    (event,) = summary.events
    assert (event.degraded_from_s, event.degraded_until_s) == (3.0, 9.0)
    (reads,) = [row for row in event.degraded if row.metric == "database_read"]
    assert reads.count == 600 and reads.latency_ms_mean == pytest.approx(slow_ms)
    checks = [check for check in event_checks(summary) if check.name == "event_degraded"]
    (mean,) = [
        check for check in checks if (check.metric, check.statistic) == ("database_read", "mean")
    ]
    assert mean.status == expected and mean.measured == pytest.approx(slow_ms)
    logs = [check for check in checks if check.metric == "log_write"]
    assert logs and all(check.status == "pass" for check in logs)


@pytest.mark.parametrize(
    ("slow_ms", "usual_ms", "expected"), [(60.0, 5.0, "pass"), (60.0, 45.0, "fail")]
)
def test_the_limits_of_the_run_leave_out_the_time_of_an_event(
    tmp_path: Path, slow_ms: float, usual_ms: float, expected: str
) -> None:
    """60 ms for six of ten seconds fail the run's own limits, which the event has its own for."""
    summary = degraded_run(tmp_path / "run", slow_ms, usual_ms)
    quiet = summary.undisturbed
    assert quiet is not None
    assert (quiet.events, quiet.left_out_s, quiet.seconds) == (("path",), 6.0, 4.0)
    plan = Plan.read(tmp_path / "run" / folder.PLAN)
    checks = [
        check
        for check in all_checks(plan, summary)
        if (check.name, check.metric) == ("database_read_latency_mean", "database_read")
    ]
    assert checks and {check.status for check in checks} == {expected}
    assert all("6 s in which event path lasted are left out" in check.reason for check in checks)
    # Where it lasted all of the time nothing is left to judge.
    alone = summary.replace(undisturbed=quiet.replace(figures=(), seconds=0.0))
    statuses = {
        check.status
        for check in all_checks(plan, alone)
        if (check.name, check.metric) == ("database_read_latency_mean", "database_read")
    }
    assert statuses == {"not_evaluated"}


def test_the_report_says_what_a_limit_of_the_run_was_judged_by(tmp_path: Path) -> None:
    """The card said "within its limit: 190 % of it used", and the table nothing of an event."""
    summary = degraded_run(tmp_path / "run", 60.0, 5.0)
    checks = all_checks(Plan.read(tmp_path / "run" / folder.PLAN), summary)
    verdict = verdict_of({}).replace(checks=checks)
    (card,) = [card for card in figure_list(summary, verdict) if card.title == "Database reads"]
    assert card.used == pytest.approx(5 / 20) and card.status == "pass"
    assert "judged by 5 ms, where 6 s of events are left out" in card.details
    table = check_table(verdict)
    rows = [row for row in table.rows if row[1] == "Average database read latency"]
    assert rows and all("6 s in which event path lasted are left out" in row[-1] for row in rows)
    assert "Remark" in table.headings


def test_no_lower_limit_is_said_to_be_used_up(tmp_path: Path) -> None:
    """A load that worked all of the time "used" 105 % of the 95 % that are wanted."""
    summary = degraded_run(tmp_path / "run", 19.0).replace(overlaps={"mix": 1.0, "other": 0.9})
    checks = all_checks(Plan.read(tmp_path / "run" / folder.PLAN), summary)
    table = check_table(verdict_of({}).replace(checks=checks))
    used = {row[5] for row in table.rows if row[1] == "All loads worked at the same time"}
    assert used == {None}


def test_a_database_that_answered_nothing_while_it_lasted_is_named(tmp_path: Path) -> None:
    """Its log goes on; that no read is slow where none came back says nothing."""
    path = tmp_path / "run"
    degraded_run(path, 19.0)
    samples = path / folder.SAMPLES
    silent = f"metric = 'database_read' AND end_ns > {3 * SECOND} AND end_ns <= {9 * SECOND}"
    duckdb.sql(
        f"COPY (SELECT * REPLACE (CASE WHEN {silent} THEN 0 ELSE count END::UBIGINT AS count) "
        f"FROM '{samples}') TO '{path / 'changed'}' (FORMAT parquet)"
    )
    (path / "changed").rename(samples)
    summary = Summary.from_plain(summarize(path))
    checks = [check for check in event_checks(summary) if check.name == "event_degraded"]
    reads = [check for check in checks if check.metric == "database_read"]
    assert reads and {check.status for check in reads} == {"not_evaluated"}
    assert all("nothing was answered by" in check.reason for check in reads)
    assert all(check.status == "pass" for check in checks if check.metric == "log_write")


def answer(detected_s: float | None, recovered_s: float | None) -> LoadResponse:
    names = LoadResponse.__annotations__
    known = dict.fromkeys(names) | {"workload": "mix", "baseline_s": 60.0, "pause_s": 0.0}
    known |= {"detected_s": detected_s, "recovered_s": recovered_s}
    return LoadResponse.from_plain(known)


@pytest.mark.parametrize(
    ("loads", "span"),
    [
        ([answer(0.0, 2.0), answer(0.0, 3.0)], (6.0, 9.0)),
        ([answer(0.0, 2.0), answer(0.0, None)], (3.0, 9.0)),
        ([answer(0.0, 7.0)], (3.0, 9.0)),
        ([answer(None, None)], (3.0, 9.0)),
    ],
)
def test_the_limits_hold_from_recovery_or_from_when_it_was_applied(
    loads: list[LoadResponse], span: tuple[float, float]
) -> None:
    assert degraded_span(staged(EventLimits()), loads, 11.0) == span


def test_a_set_without_latencies_is_refused() -> None:
    options = {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one", "database_size_mib": 64}],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 10}],
        "event": [{**EVENT, "judge": {"degraded_limits": "files"}}],
    }
    with pytest.raises(InputError, match="degraded_limits"):
        plan_of_options(options)
