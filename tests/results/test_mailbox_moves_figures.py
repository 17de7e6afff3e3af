"""Figures of moved mailboxes: the rate next to the one asked for, and the factors of the log."""

from typing import Any

import pytest

from plimsoll.plan.complete import plan_of_options
from plimsoll.report.mailbox_moves import moves_table
from plimsoll.results.distributions import Counted
from plimsoll.results.mailbox_moves import moves_of

MIB = 1 << 20


def figures(logs: int, moved: int = 10, moves: dict[str, float] | None = None) -> Any:
    """Ten of 200 mailboxes moved in half an hour: 40 MiB written with 100 MiB of log."""
    plan = plan_of_options(
        {
            "name": "moves",
            "target": [{"name": "disk", "path": "/srv/disk"}],
            "instance": [{"name": "mail", "backend": "mail_store"}],
            "workload": [
                {
                    "name": "mail",
                    "load": {"users": 200},
                    "day_h": 2,
                    "moves": moves or {"percent_per_day": 24},
                }
            ],
        }
    )

    def ask(query: str, places: dict[str, Any]) -> list[dict[str, Any]]:
        if "log_generation" in query:
            assert places == {"instance": "mail"}
            return [{"logs": logs}]
        if "bucket" in query:
            return [{"upper_ns": 2_000_000, "count": moved}]
        sizes = {"read": 50, "written": 40, "log": 100}
        return [
            {"metric": f"mail_moves_{name}_bytes", "bytes": size * MIB}
            for name, size in sizes.items()
        ]

    counted = {
        "mail_moves_planned": Counted(12, 0.0, 0),
        "mail_mailbox_moved": Counted(moved, moved * 2e6, 2_000_000),
        "mail_mailbox_closed": Counted(moved, moved * 1e6, 1_000_000),
    }
    asked = plan.judgement.mail["mail"]
    load: Any = plan.run.workloads[0]
    found = moves_of(plan.run.mail_stores[0], load, asked, counted, ask, 1800.0, ["measure"])
    assert found is not None
    return found


def test_ENG_24_the_rate_stands_next_to_the_one_asked_for() -> None:
    """24 % of 200 in a day of two hours are 24 an hour; ten in half an hour are 20."""
    found = figures(logs=600)
    assert (found.asked_percent_per_day, found.asked_per_h) == (24, pytest.approx(24))
    assert (found.reached_per_h, found.planned_count, found.moved_count) == (20, 12, 10)
    assert found.moved.ms_mean == 2 and found.closed.ms_max == 1


def test_ENG_24_the_log_of_moves_stands_next_to_what_sizing_counts() -> None:
    """Of 600 MiB of log 100 are of moves, so the others count 1.2 times; sizing has 10 of 200."""
    found = figures(logs=600)
    assert found.log_per_written_byte == 2.5
    assert found.other_log_bytes == 500 * MIB
    assert found.measured_factor == pytest.approx(1.2)
    assert found.sizing_factor == pytest.approx(1.05)
    rows = {row[0]: row[1] for row in moves_table("mail", found).rows}
    assert rows["Move factor of the log, measured"] == pytest.approx(1.2)
    assert rows["Logged for each byte written"] == 2.5


def test_ENG_24_what_no_generation_tells_is_not_known() -> None:
    found = figures(logs=0)
    assert found.other_log_bytes is None and found.measured_factor is None
