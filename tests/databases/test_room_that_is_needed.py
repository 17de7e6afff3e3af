"""What a run will need of its volumes: databases with their growth, and the logs next to them."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.databases import preflight
from plimsoll.pipeline.forecast import as_lines
from plimsoll.plan.complete import plan_of_options

MIB = 1 << 20


def expected(home: Path, instance: dict[str, Any], load: dict[str, Any]) -> tuple[Any, Any]:
    plan = plan_of_options(
        {
            "name": "room",
            "target": [{"name": "disk", "path": str(home / "disk")}],
            "instance": [{"name": "one", **instance}],
            "workload": [{"name": "all", "load": load}],
            "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}],
        }
    )
    (home / "disk").mkdir()
    return plan, preflight.inspect(plan.run, plan.source)


@pytest.mark.parametrize(
    ("instance", "load"),
    [
        ({"backend": "engine", "database_size_mib": 64}, {"sessions": 1}),
        ({"backend": "store", "store_size": "10MB"}, {"sessions": 1}),
        ({"backend": "mail_store", "mailbox_mib": 1}, {"users": 5}),
    ],
)
def test_every_engine_needs_room_for_growth_and_logs(
    tmp_path: Path, instance: dict[str, Any], load: dict[str, Any]
) -> None:
    """Stores were left out: they write logs and grow as any database does."""
    plan, found = expected(tmp_path, instance, load)
    sizes = sum(item.size_bytes for item in plan.run.instances[0].databases)
    (needed,) = found.bytes_needed.values()
    assert needed == pytest.approx(1.25 * sizes + 256 * MIB, abs=4)
    assert "logs and checkpoint, about 256 MiB" in "\n".join(as_lines(plan, found))


def test_ENG_23_a_lag_in_logs_needs_room_beforehand(tmp_path: Path) -> None:
    lagged = [{"name": "far", "lag_logs": 300}, {"name": "near", "lag_logs": 10}]
    instance = {"database_size_mib": 64, "lagged_copies": lagged}
    _, found = expected(tmp_path, instance, {"sessions": 1})
    (needed,) = found.bytes_needed.values()
    assert needed == (80 + 256 + 300) * MIB
