"""What every load did for each of its users, next to what was possible."""

from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.plan.complete import plan_of_options
from plimsoll.report.published_cells import per_user_table
from plimsoll.workloads.store.rate import ceiling

PLAN = plan_of_options(
    {
        "target": [{"name": "disk", "path": "/nowhere"}],
        "instance": [{"name": "shop", "backend": "store"}],
        "workload": [{"name": "orders", "instances": ["shop"], "load": {"sessions": 2}}],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}, {"kind": "stop"}],
    }
)


@pytest.mark.parametrize(("think_s", "most"), [(1.5, 4.0), (15.0, 0.4), (0.0, None)])
def test_think_time_sets_what_each_user_can_order(think_s: float, most: float | None) -> None:
    """Four a minute are those of the published think time of 1.5 s, and of no other."""
    bound = ceiling(2, think_s, 0.0)
    store = SimpleNamespace(workload="orders", opm=8, think_bound_opm=bound)
    summary: Any = SimpleNamespace(store=[store], files=())
    table = per_user_table(PLAN, summary)
    assert table is not None
    ((_, users, _, each, possible, share),) = table.rows
    assert (users, each, possible) == (20, 0.4, most)
    assert share == (None if most is None else pytest.approx(100 * 0.4 / most))


def test_a_note_on_think_time_stands_only_where_a_store_is() -> None:
    files = SimpleNamespace(workload="share", users=10, target_iops=None, iops=5, iops_per_user=0.5)
    summary: Any = SimpleNamespace(store=(), files=[files])
    table = per_user_table(PLAN, summary)
    assert table is not None and "think time" not in table.note
