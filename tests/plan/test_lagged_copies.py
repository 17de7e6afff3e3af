"""Copies with a lag in a plan: what they become, and every mistake at once.

ENG-23: log is kept for as long as the most lagged copy needs it.
"""

from typing import Any

import pytest

from plimsoll.documents.run_spec import LaggedCopy
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options


def options(*instances: dict[str, Any], phases: list[dict[str, Any]] | None = None) -> Any:
    return {
        "name": "lagged",
        "target": [{"name": "disk", "path": "/srv/disk"}],
        "instance": [{"name": f"i{number}", **item} for number, item in enumerate(instances)],
        "phase": phases or [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}],
    }


def mistakes(*instances: dict[str, Any], phases: list[dict[str, Any]] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        plan_of_options(options(*instances, phases=phases))
    return "\n".join(f"{item.where} {item.message}; {item.hint}" for item in caught.value.mistakes)


def test_ENG_23_lags_are_stated_in_hours_or_in_logs() -> None:
    copies = [{"name": "far", "lag_h": 24}, {"name": "near", "lag_logs": 200}]
    plan = plan_of_options(options({"lagged_copies": copies, "log_room_gib": 1.5}, {}))
    first, second = plan.run.engine_instances
    assert list(first.lagged_copies) == [
        LaggedCopy(name="far", lag_s=86400.0, lag_logs=None),
        LaggedCopy(name="near", lag_s=None, lag_logs=200),
    ]
    assert not second.lagged_copies
    assert plan.judgement.log_room_bytes == {"i0": 1536 << 20}
    # The native side takes no fraction where it counts, and a time as one.
    plain = plan.plain()["run"]["instances"]
    assert plain[0]["lagged_copies"][0]["lag_s"] == 86400.0
    assert "lagged_copies" not in plain[1]


def test_ENG_23_a_mail_store_and_a_store_have_such_copies_too() -> None:
    copies = [{"name": "far", "lag_logs": 3}]
    for backend, load in (("store", {"sessions": 2}), ("mail_store", {"users": 5})):
        given = options({"backend": backend, "lagged_copies": copies})
        given["workload"] = [{"name": "all", "load": load}]
        plan = plan_of_options(given)
        assert plan.run.engine_instances[0].lagged_copies[0].lag_logs == 3


def test_ENG_23_every_mistake_of_a_lag_is_told_at_once() -> None:
    copies = [
        {"name": "both", "lag_h": 1, "lag_logs": 5},
        {"name": "none"},
        {"name": "long", "lag_h": 400},
        {"name": "none", "lag_logs": 1},
    ]
    text = mistakes({"lagged_copies": copies})
    for part in (
        "states both lag_h and lag_logs; write either lag_h or lag_logs",
        "does not say how far it lags; write either lag_h or lag_logs",
        "336",
        "none",
    ):
        assert part in text, text


def test_ENG_23_copies_that_change_nothing_are_refused() -> None:
    """All log is kept where nothing deletes any; with truncation by a backup both count."""
    copies = [{"name": "far", "lag_logs": 3}]
    kept = {"lagged_copies": copies, "circular_log": False}
    assert "has nothing to let go: all log is kept anyway" in mistakes(kept)
    phases: list[dict[str, Any]] = [
        {"kind": "prepare"},
        {"kind": "backup", "to": "/srv/kept"},
        {"kind": "restore", "truncate_log": True},
        {"kind": "stop"},
    ]
    plan = plan_of_options(options(kept, phases=phases))
    assert plan.run.engine_instances[0].lagged_copies
    raw = mistakes({"lagged_copies": copies, "backend": "raw_files"})
    assert "needs the engine, but the instance is raw files" in raw
    assert "lagged_copies" in mistakes({"lagged_copies": copies, "backend": "files"})


def test_a_hint_names_a_header_that_TOML_reads() -> None:
    """Headers of TOML count no entries: `[[instance[1].lagged_copies]]` is none."""
    found = mistakes({"lagged_copies": 2})
    assert "instance[1].lagged_copies must be a list of tables" in found
    assert found.endswith("begin each one with [[instance.lagged_copies]]")
