"""Orders that came to nothing: what an event took away is judged as its answer."""

from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

from plimsoll.documents.summary import StoreFigures, StoreRisk
from plimsoll.plan.complete import plan_of_options
from plimsoll.results.answering import counts_while_answering
from plimsoll.verdict.store import store_checks
from tests.support.event_answers import event, response

SECOND = 1_000_000_000


FIGURES = StoreFigures(
    workload="load",
    orders_count=5000,
    rolled_back_count=100,
    retries_count=0,
    given_up_count=0,
    opm=1000,
    opm_clean=980.0,
    rollback_percent=2.0,
    sessions=20,
    think_s=1.0,
    ceiling_opm=None,
    think_bound_opm=None,
    is_think_bound=False,
    windows=None,
    steps=(),
)
ARRIVALS: dict[str, Any] = {"transactions_per_s": 100}


def plan_of(load: dict[str, Any] | None = None, lines: int = 5, **more: Any) -> Any:
    """The plan of a store whose orders have so many lines."""
    return plan_of_options(
        {
            "target": [{"name": "t", "path": "/mnt/t"}],
            "instance": [{"name": "shop", "backend": "store"}],
            "workload": [{"name": "load", "load": load or {"sessions": 20}, "lines_mean": lines}],
            "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}],
            **more,
        }
    )


def checked(name: str, plan: Any = None, risks: Any = (), **counts: Any) -> tuple[str, str]:
    """A check of a store that took 5,000 orders, unless told otherwise."""
    summary: Any = SimpleNamespace(
        store_audits=(), stores_at_risk=risks, store=[FIGURES.replace(**counts)]
    )
    checks = store_checks(plan or plan_of(), summary)
    (found,) = [check for check in checks if check.name == name]
    return found.status, found.reason


def refused(**counts: int) -> tuple[str, str]:
    """The check of a store of 20 sessions that took 5,000 orders."""
    return checked("store_refused", **counts)


def test_a_server_that_an_event_killed_and_started_can_pass() -> None:
    """All 20 sessions lost their connection, and 40 orders found none, until it was back."""
    gone = {"connections_lost_count": 20, "connections_refused_count": 40}
    assert refused(**gone)[0] == "not_evaluated"
    status, reason = refused(**gone, answers_lost_count=20, answers_refused_count=40)
    assert status == "pass"
    assert "60 of them from an event until the load was back" in reason


def test_what_came_to_nothing_apart_from_the_event_counts_as_before() -> None:
    lost = {"connections_lost_count": 45, "answers_lost_count": 20}
    assert refused(**lost)[0] == "not_evaluated"
    assert refused(**lost, no_space_count=1)[0] == "fail"


@pytest.mark.parametrize(
    ("recovered_s", "seen", "expected"),
    [(8.0, True, (9, 4)), (None, True, (0, 0)), (None, False, (0, 0))],
)
def test_refusals_are_the_event_s_until_the_load_is_back(
    recovered_s: float | None, *, seen: bool, expected: tuple[int, int]
) -> None:
    """Those of a load that never came back, or of an event that changed nothing, are no answer."""
    database = duckdb.connect()
    database.sql(
        "CREATE TABLE measured (workload VARCHAR, metric VARCHAR, count BIGINT, end_ns BIGINT,"
        " interval_ns BIGINT)"
    )
    for end_s, metric, count in (
        (50, "store_connection_lost", 1),
        (101, "store_connection_lost", 9),
        (104, "store_connection_refused", 4),
        (120, "store_connection_refused", 2),
    ):
        database.execute(
            "INSERT INTO measured VALUES (?, ?, ?, ?, ?)",
            ["load", metric, count, end_s * SECOND, SECOND],
        )

    def ask(query: str, values: Any = None) -> list[dict[str, Any]]:
        cursor = database.execute(query, values or [])
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    staged = event(100.0, 106.0, response(recovered_s, seen=seen))
    names = ["store_connection_lost", "store_connection_refused"]
    counts = counts_while_answering("load", names, ask, [staged])
    assert tuple(counts[name] for name in names) == expected


@pytest.mark.parametrize(
    ("lines", "percent", "expected"),
    [
        (5, 2.0, "pass"),
        (5, 0.9, "not_evaluated"),
        (5, 3.2, "not_evaluated"),
        # Orders of one line fail a fifth as often as those of five.
        (1, 0.4, "pass"),
        (2, 0.8, "pass"),
        (10, 3.1, "pass"),
        (1000, 3.9, "pass"),
        (1, 2.0, "not_evaluated"),
        (1000, 2.0 / 2, "not_evaluated"),
    ],
)
def test_the_share_of_rollbacks_is_that_of_orders_with_so_many_lines(
    lines: int, percent: float, expected: str
) -> None:
    """A load of one or two lines an order was never the planned one, whatever it did."""
    found = checked(
        "store_rollbacks", plan_of(lines=lines), orders_count=200_000, rollback_percent=percent
    )
    assert found[0] == expected, found


def test_chance_takes_no_sound_run_for_another_load() -> None:
    """Of orders and stocks drawn as in a new store, one run of thirty was inconclusive."""
    generator = np.random.default_rng(22)
    lines = generator.integers(1, 10, 1000)
    unlucky = 0
    for _ in range(1000):
        stocks = generator.integers(0, 501, 10_000)
        failing = sum(int((stocks < quantity).sum()) for quantity in (1, 2, 3)) / 30_000
        back = int((generator.random(1000) > (1 - failing) ** lines).sum())
        status, _ = checked("store_rollbacks", orders_count=1000, rollback_percent=back / 10)
        unlucky += status != "pass"
    assert unlucky <= 5


@pytest.mark.parametrize(
    ("orders", "spacing", "expected"),
    [
        (6000, "poisson", "pass"),
        (5700, "poisson", "pass"),
        (5600, "poisson", "fail"),
        (5870, "regular", "fail"),
        (5890, "regular", "pass"),
    ],
)
def test_arrivals_that_are_not_carried_fail(orders: int, spacing: str, expected: str) -> None:
    """A server that took half of the customers passed, at a response time of minutes."""
    plan = plan_of({**ARRIVALS, "spacing": spacing})
    found = checked("store_carried", plan, orders_count=orders, due_count=6000)
    assert found[0] == expected, found


def test_what_came_to_nothing_is_another_check_s() -> None:
    plan = plan_of(ARRIVALS)
    told = {"orders_count": 4000, "connections_refused_count": 2000, "due_count": 6000}
    assert checked("store_carried", plan, **told)[0] == "pass"
    assert checked("store_refused", plan, **told)[0] == "not_evaluated"
    held = plan_of(ARRIVALS, max_iops=50)
    assert checked("store_carried", held, orders_count=100, due_count=6000)[0] == "not_evaluated"


def test_from_commits_that_are_not_durable_nothing_is_concluded() -> None:
    risk = StoreRisk(instance="shop", settings=["fsync is off", "synchronous_commit is off"])
    status, reason = checked("store_durable", risks=[risk])
    assert status == "not_evaluated"
    assert "fsync is off; synchronous_commit is off: orders are acknowledged before" in reason
