"""Orders that came to nothing: what an event took away is judged as its answer."""

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from plimsoll.documents.summary import StoreFigures
from plimsoll.results.answering import counts_while_answering
from plimsoll.verdict.store import store_checks
from tests.support.event_answers import event, response

SECOND = 1_000_000_000


def refused(**counts: int) -> tuple[str, str]:
    """The check of a store of 20 sessions that took 5,000 orders."""
    figures = StoreFigures(
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
    ).replace(**counts)
    summary: Any = SimpleNamespace(store_audits=(), store=[figures])
    checks = store_checks(summary)
    (found,) = [check for check in checks if check.name == "store_refused"]
    return found.status, found.reason


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
