"""Every number of a requirements file moves the sizing one way only, and none is forgotten.

`test_properties.py` takes the users, the reserves, the logs and the copies; the rest stands here:
the transactional load, and what relieves a design when there is more of it. The last test holds the
list against the keys of the file."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.inputs.schema import Number
from plimsoll.sizing import requirement_fields as fields
from plimsoll.sizing.design import Sizing, size
from tests.sizing.test_properties import RANGES, RESERVES
from tests.support.sizing_designs import make, several

LOAD = {"per_second": 800, "database_ios_each": 4, "data_size_gb": 500, "log_size_each_kb": 6}
IOPS = ("database_iops", "log_iops", "server_database_iops", "outstanding_io_count")
LOGS = ("log_growth_mb_per_day", "log_volume_size_gb", "total_capacity_gb")
SPACE = ("total_database_size_gb", "database_count", "total_capacity_gb")
LOAD_GROWS: dict[str, tuple[st.SearchStrategy[float], tuple[str, ...]]] = {
    "per_second": (st.floats(0.001, 1e5), IOPS),
    "database_ios_each": (st.floats(0, 100), IOPS),
    "data_size_gb": (st.floats(0.01, 1e5), SPACE),
    "log_size_each_kb": (st.floats(0.001, 100), LOGS),
    "busy_time_h": (st.floats(0.001, 24), LOGS),
    "growth_fraction": (st.floats(0, 10), (*IOPS, *SPACE)),
}
# More of these is never a worse figure: the sign says which way the figure goes.
UP, DOWN = 1, -1
ANSWERS: dict[tuple[str, str], tuple[st.SearchStrategy[float], int, tuple[str, ...]]] = {
    ("copies", "servers"): (
        st.integers(2, 16),
        DOWN,
        ("databases_per_server_count", "database_copies_per_server_count"),
    ),
    ("databases", "max_size_gb"): (
        st.floats(20, 2048),
        DOWN,
        ("database_count", "database_volume_size_gb"),
    ),
    ("databases", "users_max"): (st.integers(20, 10_000), DOWN, ("database_count",)),
    ("backup", "window_h"): (st.floats(1, 168), DOWN, ("database_count",)),
    ("backup", "read_rate_mb_per_s"): (
        st.floats(1, 10_000),
        DOWN,
        ("database_backup_h", "backup_window_h"),
    ),
    ("backup", "parallel_count"): (st.integers(1, 50), DOWN, ("backup_window_h",)),
    ("storage", "compression_ratio"): (st.floats(1.01, 20), DOWN, ("physical_capacity_gb",)),
    ("storage", "deduplication_ratio"): (st.floats(1.01, 20), DOWN, ("physical_capacity_gb",)),
    ("network", "port_count"): (st.integers(1, 64), DOWN, ("path_utilisation_pct",)),
    ("network", "port_speed_mbit_per_s"): (st.floats(100, 1e5), DOWN, ("path_utilisation_pct",)),
    ("network", "protocol_overhead_fraction"): (st.floats(0, 0.9), UP, ("path_utilisation_pct",)),
    ("server", "memory_gb"): (st.floats(4, 1024), UP, ("cache_mb_per_user",)),
}
# Where more is not less of a figure: a larger limit means fewer and larger databases.
OPPOSITE = {("databases", "max_size_gb"): ("database_volume_size_gb",)}
# Compared with a rule or laid out, never summed; `test_requirements.py`, `test_network.py` and
# `test_storage.py` look.
LOOKED_AT = {
    "storage": {"allocation_unit_kb", "partition_offset_kb", "controller_count"},
    "network": {
        *(
            "switch_count",
            "client_port_count",
            "server_frame_bytes",
            "switch_frame_bytes",
            "storage_frame_bytes",
        ),
        "virtual_nic_count",
    },
    "server": {"thread_count"},
    "machine": {"memory_gb", "vcpu_count"},
}
ELSEWHERE = {
    "copies": {"count", "lagged_count", "replay_lag_days"},
    "logs": {"retention_days", "mailboxes_moved_fraction"},
    "storage": {"measured_iops", "measured_capacity_gb"},
}


def rises(small: Sizing, large: Sizing, figure: str, sign: int) -> bool:
    before, after = small.results[figure].value, large.results[figure].value
    return sign * (after - before) >= -1e-9 * max(abs(before), 1)


@several
@given(st.sampled_from(list(LOAD_GROWS)), st.data())
def test_a_larger_transactional_load_never_needs_less(name: str, data: st.DataObject) -> None:
    """The generic profile has formulas of its own for load and logs, which no mail design
    exercises.
    """
    values, figures = LOAD_GROWS[name]
    lower, upper = sorted((data.draw(values), data.draw(values)))
    small, large = (
        size(make(users=None, transactions=LOAD | {name: value})) for value in (lower, upper)
    )
    for figure in figures:
        assert rises(small, large, figure, UP), figure


@several
@given(st.sampled_from(list(ANSWERS)), st.data())
def test_every_further_answer_moves_its_figure_one_way(
    where: tuple[str, str], data: st.DataObject
) -> None:
    """A port more that raises the use of the ports, or a limit that adds databases by growing, is a
    turned sign.
    """
    table, key = where
    values, sign, figures = ANSWERS[where]
    lower, upper = sorted((data.draw(values), data.draw(values)))
    base: dict[str, Any] = {"mode": "dag", "count": 2} if table == "copies" else {}
    small, large = (size(make(**{table: base | {key: value}})) for value in (lower, upper))
    for figure in figures:
        assert rises(small, large, figure, -sign if figure in OPPOSITE.get(where, ()) else sign), (
            figure
        )


@pytest.mark.parametrize(
    ("key", "column"),
    [("measured_iops", "users_by_iops"), ("measured_capacity_gb", "users_by_capacity")],
)
def test_a_better_array_never_carries_fewer_users(key: str, column: str) -> None:
    """The table of users against mailbox size is read as a promise of the array that was
    measured.
    """
    storage = {"measured_iops": 1000, "measured_capacity_gb": 10_000}
    counts = []
    for value in (storage[key], storage[key] * 3):
        table = size(make(storage=storage | {key: value})).users_table
        assert table
        counts.append([getattr(row, column) for row in table.rows])
    assert all(more > fewer for fewer, more in zip(*counts, strict=True))


def test_no_number_of_the_file_is_left_out() -> None:
    """A new key is either shown to move figures one way, or said to be looked at only."""
    tables = {
        "users": fields.USERS,
        "transactions": fields.TRANSACTIONS,
        "copies": fields.COPIES,
        "databases": fields.DATABASES,
        "logs": fields.LOGS,
        "backup": fields.BACKUP,
        "storage": fields.STORAGE,
        "network": fields.NETWORK,
        "server": fields.SERVER,
        "machine": fields.MACHINE,
    }
    numbers = {
        (table, key)
        for table, keys in tables.items()
        for key, field in keys.items()
        if isinstance(field.kind, Number)
    }
    known = {("users", key) for key in RANGES} | {("transactions", key) for key in LOAD_GROWS}
    known |= set(RESERVES) | set(ANSWERS)
    known |= {
        (table, key)
        for listed in (LOOKED_AT, ELSEWHERE)
        for table, keys in listed.items()
        for key in keys
    }
    assert numbers == known
