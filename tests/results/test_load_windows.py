"""What loads made in their windows, on samples that were written by hand, and what is concluded."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.plan import Plan
from plimsoll.files.parquet import Query, database
from plimsoll.pipeline.forecast import forecast, windows
from plimsoll.plan.complete import plan_of_options
from plimsoll.report.load import windows_table
from plimsoll.results.distributions import window_counts
from plimsoll.results.windows import load_windows
from plimsoll.verdict.windows import window_checks
from plimsoll.workloads.mail.fields import OPERATIONS
from tests.support.event_answers import event, response

SECONDS = 120
FAMILIES: dict[str, dict[str, Any]] = {
    "records": {"database_size_mib": 64},
    "files": {"backend": "files"},
    "store": {"backend": "store"},
    "mail": {"backend": "mail_store"},
    "home_folders": {"backend": "home_folders"},
}


def plan_of(family: str, load: dict[str, Any], *others: dict[str, Any], **more: Any) -> Plan:
    return plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "it", **FAMILIES[family]}],
            "workload": [{"name": "load", **load}, *others],
            "phase": [
                {"kind": "prepare"},
                {"kind": "measure", "duration_s": SECONDS},
                {"kind": "stop"},
            ],
            **more,
        }
    )


def asked_of(rows: list[tuple[str, int, str, str, str, int]]) -> Query:
    """Answers questions to samples: phase, second, workload, instance, metric, count."""
    connection = database()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE measured (phase VARCHAR, end_ns UBIGINT, interval_ns UBIGINT,"
        " workload VARCHAR, instance VARCHAR, metric VARCHAR, count UBIGINT)"
    )
    connection.executemany(
        "INSERT INTO measured VALUES (?, ?, 1000000000, ?, ?, ?, ?)",
        [[phase, second * 1_000_000_000, *rest] for phase, second, *rest in rows],
    )

    def ask(query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        cursor = connection.execute(query, values)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return ask


def samples(
    metrics: dict[str, int],
    workload: str = "load",
    change: Callable[[int, int], int] = lambda _, count: count,
) -> Query:
    """The same counts in every second, changed where it is asked for; and what others did."""
    rows = [
        ("measure", second, workload, "it", metric, change(second, count))
        for second in range(1, SECONDS + 1)
        for metric, count in metrics.items()
    ]
    rows += [
        ("measure", second, "other", "elsewhere", metric, 7 * count)
        for second in range(1, SECONDS + 1)
        for metric, count in metrics.items()
    ]
    return asked_of(rows)


def concluded(plan: Plan, ask: Query, *events: EventFigures) -> tuple[Any, Any]:
    """The figures of the one load, and its check."""
    (figures,) = load_windows(plan, ask, events)
    summary: Any = SimpleNamespace(load_windows=[figures])
    (check,) = window_checks(plan, summary)
    return figures, check


LOADS: list[tuple[str, dict[str, Any], dict[str, int], dict[str, list[float]], float]] = [
    (
        "records",
        {"load": {"sessions": 3}},
        {"insert": 10, "read": 30, "arrival_lag": 500},
        {"transactions_per_s": [38, 42]},
        40,
    ),
    (
        "files",
        {"load": {"users": 200, "iops_per_user": 0.70}},
        {"file_io_4k": 100, "file_io_64k": 40, "file_read": 90},
        {"iops_per_user": [0.60, 0.75]},
        0.70,
    ),
    (
        "files",
        {"load": {"target_iops": 140}},
        {"file_io_4k": 100, "file_io_64k": 40},
        {"iops": [130, 150]},
        140,
    ),
    (
        "store",
        {"load": {"users": 200}},
        {"order": 13, "store_login": 9},
        {"orders_per_min": [700, 800]},
        780,
    ),
    (
        "store",
        {"load": {"users": 200}},
        {"order": 13, "store_login": 9},
        {"orders_per_user_per_min": [3.5, 4.0]},
        3.9,
    ),
    (
        "home_folders",
        {"load": {"users": 3600}, "scenarios_per_h": 2},
        {"home_scenario": 2, "home_edit": 1},
        {"scenarios_per_user_per_h": [1.9, 2.1]},
        2,
    ),
    (
        "home_folders",
        {"load": {"users": 3600}, "scenarios_per_h": 2},
        {"home_scenario": 2},
        {"scenarios_per_s": [1.9, 2.1]},
        2,
    ),
]
NAMES = [f"{family}, {next(iter(window))}" for family, _, _, window, _ in LOADS]


@pytest.mark.parametrize(("family", "load", "metrics", "window", "made"), LOADS, ids=NAMES)
def test_a_load_outside_of_its_window_is_inconclusive_and_never_a_fail(
    family: str,
    load: dict[str, Any],
    metrics: dict[str, int],
    window: dict[str, Any],
    made: float,
) -> None:
    """Within, too little in one window, and too much in one window; others' work counts nothing."""
    plan = plan_of(family, {**load, "window": {**window, "over_s": 20}})
    figures, check = concluded(plan, samples(metrics))
    assert (figures.count, figures.outside_count, figures.left_out_count) == (6, 0, 0)
    assert [figures.min, figures.mean, figures.max] == pytest.approx([made] * 3)
    assert check.status == "pass" and f"{figures.unit} in all 6 windows of 20 s" in check.reason
    assert (check.unit, check.scope, check.statistic) == (figures.unit, "load", "window")

    little = samples(metrics, change=lambda second, count: 0 if second > 100 else count)
    figures, check = concluded(plan, little)
    assert (figures.outside_count, figures.min) == (1, 0)
    assert (check.status, check.measured) == ("not_evaluated", 0)
    assert "in 1 of 6 windows of 20 s: the load was not as planned" in check.reason

    much = samples(metrics, change=lambda second, count: 2 * count if second <= 20 else count)
    figures, check = concluded(plan, much)
    assert (figures.outside_count, figures.max) == (1, pytest.approx(2 * made))
    assert (check.status, check.measured) == ("not_evaluated", pytest.approx(2 * made))


def test_tasks_of_mail_users_are_counted_in_days_of_their_own() -> None:
    """A day of 36 seconds: twenty users with so many tasks a second."""
    usual = plan_of("mail", {"load": {"users": 20}, "day_h": 0.01})
    (load,) = usual.run.workloads
    planned = sum(task.per_day for task in load.tasks)
    each = {"tasks_per_user_per_day": [0.5 * planned, 1.5 * planned]}
    plan = plan_of("mail", {"load": {"users": 20}, "day_h": 0.01, "window": each})
    assert plan.judgement.load_windows["load"].over_s == SECONDS, "ten minutes are not measured"
    metric = OPERATIONS[0]
    per_s = round(20 * planned / 36)
    figures, check = concluded(plan, samples({metric: per_s}))
    assert figures.mean == pytest.approx(36 * per_s / 20) and check.status == "pass"
    figures, check = concluded(plan, samples({metric: 2 * per_s}))
    assert check.status == "not_evaluated"
    in_all = {"tasks_per_s": [0.5 * per_s, 1.5 * per_s], "over_s": 60}
    plan = plan_of("mail", {"load": {"users": 20}, "day_h": 0.01, "window": in_all})
    figures, check = concluded(plan, samples({metric: per_s}))
    assert (figures.mean, figures.count) == (pytest.approx(per_s), 2)


def test_database_io_is_that_of_the_instances_of_a_load() -> None:
    """Reads and writes have no workload; what others do elsewhere is not counted."""
    load = {"load": {"users": 100, "iops_per_user": 0.5}, "window": {"iops_per_user": [0.4, 0.6]}}
    phases = [{"kind": "warm_up", "timeout_s": 9}, {"kind": "measure", "duration_s": SECONDS}]
    plan = plan_of("records", load, phase=phases)
    figures, check = concluded(plan, samples({"database_read": 30, "database_write": 20}, ""))
    assert (figures.mean, check.status) == (pytest.approx(0.5), "pass")


FILES = {"load": {"target_iops": 140}, "window": {"iops": [130, 150], "over_s": 10}}


def answering(second: int, count: int) -> int:
    """Nothing from 41 to 55 s, and what had waited until 70 s."""
    return 0 if 40 < second <= 55 else 2 * count if 55 < second <= 70 else count


def test_windows_in_which_an_event_changed_the_load_are_left_out() -> None:
    """What a load does while a path is gone is the answer to the event, with limits of its own."""
    plan = plan_of("files", FILES)
    ask = samples({"file_io_4k": 140}, change=answering)
    _, check = concluded(plan, ask)
    assert check.status == "not_evaluated", "without an event that was the load"
    figures, check = concluded(plan, ask, event(40.0, 50.0, response(15.0)))
    assert (figures.count, figures.left_out_count, figures.outside_count) == (9, 3, 0)
    assert check.status == "pass" and "3 in which an event changed it are left out" in check.reason
    # Where nothing changed, and where another load answered, nothing is left out.
    _, check = concluded(plan, ask, event(40.0, 50.0, response(None, seen=False)))
    assert check.status == "not_evaluated"
    _, check = concluded(plan, ask, event(40.0, 50.0, response(15.0).replace(workload="other")))
    assert check.status == "not_evaluated"


def test_what_comes_at_once_after_an_event_that_was_not_seen_is_no_other_load() -> None:
    """A throttle just below the rate: nobody sees less in a sample, and then all comes at once."""
    plan = plan_of("files", FILES)

    def little(second: int, count: int) -> int:
        return 133 if 40 < second <= 50 else 160 if 50 < second <= 60 else count

    ask = samples({"file_io_4k": 140}, change=little)
    unseen = event(40.0, 50.0, response(None, seen=False))
    figures, check = concluded(plan, ask, unseen)
    assert (figures.left_out_count, figures.outside_count, check.status) == (1, 0, "pass")
    elsewhere = event(40.0, 50.0, response(15.0).replace(workload="other"))
    assert concluded(plan, ask, elsewhere)[1].status == "not_evaluated"


def test_a_load_that_is_outside_again_long_after_an_event_is_outside() -> None:
    plan = plan_of("files", FILES)

    def late(second: int, count: int) -> int:
        return 0 if second > 110 else answering(second, count)

    ask = samples({"file_io_4k": 140}, change=late)
    figures, check = concluded(plan, ask, event(40.0, 50.0, response(15.0)))
    assert (figures.outside_count, check.status) == (1, "not_evaluated")


def test_a_load_that_never_comes_back_has_the_windows_before() -> None:
    plan = plan_of("files", FILES)
    ask = samples({"file_io_4k": 140}, change=lambda second, count: 0 if second > 60 else count)
    figures, check = concluded(plan, ask, event(60.0, None, response(None)))
    assert (figures.count, figures.left_out_count, check.status) == (6, 6, "pass")
    # Too early to know what was before: all that lasts is left out, and nothing is a pass.
    figures, check = concluded(plan, ask, event(0.0, None, response(None, known=False)))
    assert (figures.count, check.status) == (0, "not_evaluated")
    assert check.reason == "events touch all windows of 10 s"


def test_only_phases_in_which_the_load_works_count() -> None:
    """Two loads that are measured one after the other."""
    phases = [
        {"kind": "prepare"},
        {"kind": "measure", "name": "one", "duration_s": 60, "workloads": ["load"]},
        {"kind": "measure", "name": "two", "duration_s": 60, "workloads": ["other"]},
    ]
    plan = plan_of("files", FILES, {"name": "other", "load": {"target_iops": 10}}, phase=phases)
    rows = [("one", second, "load", "it", "file_io_4k", 140) for second in range(1, 61)]
    rows += [("two", second, "other", "it", "file_io_4k", 10) for second in range(61, 121)]
    figures, check = concluded(plan, asked_of(rows))
    assert (figures.count, check.status) == (6, "pass")


def test_what_was_not_measured_is_no_pass_and_what_is_not_planned_no_check() -> None:
    plan = plan_of("files", FILES)
    nothing: Any = SimpleNamespace(load_windows=())
    (check,) = window_checks(plan, nothing)
    assert check.status == "not_evaluated" and "less than a window of 10 s" in check.reason
    prepared = plan.replace(run=plan.run.replace(phases=plan.run.phases[:1]))
    assert window_checks(prepared, nothing) == []


def test_the_report_shows_windows_next_to_what_was_made() -> None:
    figures, _ = concluded(plan_of("files", FILES), samples({"file_io_4k": 140}))
    shown: Any = SimpleNamespace(load_windows=[figures])
    (table,) = windows_table(shown)
    assert table.rows == [
        ["load", "I/O per second", 130, 150, 10, 140, 140, 140, "0 of 12", 0],
    ]
    assert windows_table(SimpleNamespace(load_windows=())) == []  # type: ignore[arg-type]


def test_the_forecast_says_what_each_load_must_make() -> None:
    """Before the run, so that nobody learns afterwards what it was held to."""
    plan = plan_of("files", FILES)
    assert windows(plan)[1:] == [
        "windows of loads",
        "  load: 130 to 150 I/O per second in every 10 s",
    ]
    assert windows(plan_of("files", {"load": {"target_iops": 140}})) == []
    listed = plan_of("files", FILES, target=[{"name": "disk", "modelled": "dell-md3000i"}])
    assert set(windows(plan)) <= set(forecast(listed).lines())


def test_every_whole_window_counts_where_a_phase_begins_within_a_sample() -> None:
    """25.3 s in samples of a second, of which the first is the rest of one: two windows of 10 s."""
    connection = database()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE measured AS SELECT 'measure' AS phase,"
        " (700000000 + second * 1000000000)::UBIGINT AS end_ns,"
        " (CASE WHEN second = 0 THEN 300000000 ELSE 1000000000 END)::UBIGINT AS interval_ns,"
        " 'load' AS workload, 'it' AS instance, 'order' AS metric,"
        " (CASE WHEN second = 0 THEN 3 ELSE 10 END)::UBIGINT AS count"
        " FROM range(26) AS each(second)"
    )

    def ask(query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        cursor = connection.execute(query, values)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    found = window_counts(ask, ["order"], 10, workload="load")
    assert [(window.count, round(window.seconds, 1)) for window in found] == [
        (103, 10.3),
        (100, 10),
    ]
