"""Moves of mailboxes in a plan: what they become, every mistake at once with its line, and what the
forecast says of them.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.databases import preflight
from plimsoll.inputs.mistakes import InputError
from plimsoll.pipeline.forecast import as_lines
from plimsoll.plan.complete import plan_of_options, read_plan
from plimsoll.workloads.mail.moves import forecast_moves


def options(
    moves: dict[str, float] | None, instance: dict[str, Any] | None = None, path: str = "/srv/disk"
) -> dict[str, Any]:
    return {
        "name": "moves",
        "target": [{"name": "disk", "path": path}],
        "instance": [{"name": "mail", "backend": "mail_store", **(instance or {})}],
        "workload": [
            {
                "name": "mail",
                "load": {"users": 200},
                "day_h": 2,
                **({} if moves is None else {"moves": moves}),
            }
        ],
    }


@pytest.mark.parametrize(
    ("moves", "per_h", "percent"),
    [({"percent_per_day": 10}, 10.0, 10.0), ({"percent_per_week": 70}, 10.0, 10.0)],
)
def test_ENG_24_a_rate_becomes_mailboxes_an_hour_and_a_further_database(
    moves: dict[str, float], per_h: float, percent: float
) -> None:
    """A tenth of 200 mailboxes in a day of two hours is ten an hour."""
    plan = plan_of_options(options(moves)).plain()
    load, [store] = plan["run"]["workloads"][0], plan["run"]["instances"]
    assert load["mailbox_moves_per_h"] == pytest.approx(per_h)
    names = [item["file_name"] for item in store["databases"]]
    assert names == ["database001.edb", "database002.edb", "database003.edb"]
    asked = plan["judgement"]["mail"]["mail"]
    assert asked["moved_percent_per_day"] == pytest.approx(percent)


def test_ENG_24_without_moves_there_is_no_further_database_unless_asked_for() -> None:
    plain = plan_of_options(options(None)).plain()
    assert plain["run"]["workloads"][0]["mailbox_moves_per_h"] is None
    assert len(plain["run"]["instances"][0]["databases"]) == 2
    kept = plan_of_options(options(None, {"further_database": True})).run
    assert [item.file_name for item in kept.mail_stores[0].databases][2:] == ["database003.edb"]


def test_ENG_24_every_mistake_of_moves_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        """kind = "plan"
schema_version = 1
name = "moves"

[[target]]
name = "disk"
path = "/srv/disk"

[[instance]]
name = "mail"
backend = "mail_store"
layout = "shared"
indexed = true
further_database = false

[[workload]]
name = "mail"
load = { users = 20 }
moves = { percent_per_day = 10, percent_per_week = 10 }
""",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        read_plan(path)
    text = str(caught.value)
    for line, part in (
        (12, "is shared, but a mailbox that is moved takes its own messages with it"),
        (13, "is true, but the index of words does not go with a mailbox that is moved"),
        (14, "is false, but a workload moves mailboxes"),
        (19, "states both percent_per_day and percent_per_week"),
    ):
        [found] = [row for row in text.splitlines() if part in row]
        assert f":{line}" in found or f"line {line}" in found, found


def test_ENG_24_a_server_moves_no_mailboxes() -> None:
    given = options({"percent_per_day": 1})
    given["target"] = [{"name": "server"}]
    given["instance"] = [
        {"name": "mail", "backend": "imap", "endpoints": ["imap://h:1"], "deliver": ["lmtp://h:1"]}
    ]
    with pytest.raises(InputError, match="means nothing on a mail server"):
        plan_of_options(given)


def test_ENG_24_the_forecast_counts_moves_and_their_log(tmp_path: Path) -> None:
    """Half an hour at 400 an hour moves 200 mailboxes: all of them, with the log of their bytes."""
    phases = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 1800}, {"kind": "stop"}]
    plans = [
        plan_of_options(options(moves, {"mailbox_mib": 1}, str(tmp_path)) | {"phase": phases})
        for moves in (None, {"percent_per_day": 400})
    ]
    assert list(forecast_moves(plans[0].run)) == []
    [moves] = forecast_moves(plans[1].run)
    assert moves.count == 200
    size = plans[1].run.mail_stores[0].databases[0].size_bytes
    assert moves.size_bytes == moves.kept_bytes == pytest.approx(size, rel=0.01)
    assert moves.log_bytes > moves.size_bytes
    without, with_moves = (preflight.inspect(plan.run, plan.source) for plan in plans)
    [told] = [line for line in as_lines(plans[1], with_moves) if "200 mailboxes" in line]
    assert "MiB of log" in told and "mailbox moves" not in "\n".join(as_lines(plans[0], without))
    needed = [sum(found.bytes_needed.values()) for found in (without, with_moves)]
    assert needed[1] - needed[0] >= moves.kept_bytes
