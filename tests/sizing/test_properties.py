"""What must hold for every design.

More asked for is never less to buy, and totals are sums of their parts.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.sizing.design import Sizing, size
from plimsoll.sizing.requirements import Requirements
from tests.support.sizing_designs import make, several

# Where a figure depends on an input, it must not fall when the input rises.
GROWS_WITH: dict[str, tuple[str, ...]] = {
    "count": (
        "total_database_size_gb",
        "database_count",
        "total_capacity_gb",
        "database_iops",
        "log_iops",
    ),
    "mailbox_quota_mb": (
        "mailbox_size_mb",
        "dumpster_mb",
        "total_database_size_gb",
        "total_capacity_gb",
    ),
    "messages_per_day": (
        "white_space_mb",
        "dumpster_mb",
        "iops_per_user",
        "database_iops",
        "total_capacity_gb",
    ),
    "message_size_kb": (
        "white_space_mb",
        "message_size_factor",
        "total_database_size_gb",
        "total_capacity_gb",
    ),
    "growth_fraction": ("user_count", "total_capacity_gb", "database_iops"),
    "extra_iops_per_user": (
        "iops_per_user",
        "database_iops",
        "server_database_iops",
        "path_utilisation_pct",
    ),
}
RANGES = {
    "count": st.integers(1, 20_000),
    "mailbox_quota_mb": st.floats(1, 10_000),
    "messages_per_day": st.floats(1, 1000),
    "message_size_kb": st.floats(1, 1000),
    "growth_fraction": st.floats(0, 2),
    "extra_iops_per_user": st.floats(0, 1),
}


@st.composite
def designs(draw: st.DrawFn) -> dict[str, Any]:
    users = {name: draw(values) for name, values in RANGES.items()}
    servers = draw(st.integers(2, 6))
    copies = {"mode": "dag", "count": draw(st.integers(2, servers)), "servers": servers}
    return {
        "users": users,
        "copies": copies,
        "edition": draw(st.sampled_from(["exchange_2010", "exchange_2019"])),
    }


@several
@given(designs(), st.sampled_from(list(RANGES)), st.data())
def test_more_of_anything_never_needs_less(
    design: dict[str, Any], name: str, data: st.DataObject
) -> None:
    """A calculator that answers less for more has lost a term or turned a sign."""
    more = data.draw(RANGES[name])
    users = design["users"]
    lower, upper = sorted((users[name], more))
    small = size(make(**design | {"users": users | {name: lower}})).results
    large = size(make(**design | {"users": users | {name: upper}})).results
    for figure in GROWS_WITH[name]:
        assert large[figure].value >= small[figure].value * (1 - 1e-12), figure


@several
@given(designs(), st.integers(0, 30), st.integers(0, 30), st.floats(0, 1), st.floats(0, 1))
def test_logs_grow_with_retention_lag_and_moves(
    design: dict[str, Any], days: int, more_days: int, moved: float, more_moved: float
) -> None:
    def log_volume(retention: int, share: float) -> float:
        logs = {"retention_days": 1 + retention, "mailboxes_moved_fraction": share}
        return size(make(**design, logs=logs)).results["log_volume_size_gb"].value

    (shorter, longer), (fewer, most) = sorted((days, more_days)), sorted((moved, more_moved))
    assert log_volume(longer, most) >= log_volume(shorter, fewer) * (1 - 1e-12)


# Beside the users: each of these tables asks for more when its number rises.
RESERVES = {
    ("storage", "snapshot_reserve_fraction"): ("snapshot_reserve_gb", "total_capacity_gb"),
    ("storage", "replication_reserve_fraction"): ("replication_reserve_gb", "total_capacity_gb"),
    ("storage", "clone_count"): ("clone_capacity_gb", "total_capacity_gb"),
    ("databases", "recovery_count"): ("recovery_database_capacity_gb", "total_capacity_gb"),
    ("databases", "offline_maintenance_count"): (
        "offline_maintenance_capacity_gb",
        "total_capacity_gb",
    ),
    ("databases", "count_min"): ("database_count",),
    ("backup", "interval_days"): ("log_space_days", "log_volume_size_gb", "replay_h"),
    ("backup", "replay_time_per_log_s"): ("replay_h",),
}


@several
@given(designs(), st.sampled_from(list(RESERVES)), st.integers(1, 8), st.integers(1, 8))
def test_more_reserve_is_never_less_space(
    design: dict[str, Any], where: tuple[str, str], one: int, other: int
) -> None:
    table, key = where
    lower, upper = sorted((one, other))
    small = size(make(**design, **{table: {key: lower}})).results
    large = size(make(**design, **{table: {key: upper}})).results
    for figure in RESERVES[where]:
        assert large[figure].value >= small[figure].value * (1 - 1e-12), figure


@several
@given(designs(), st.integers(2, 6))
def test_more_copies_never_need_less(design: dict[str, Any], copies: int) -> None:
    """Another copy costs its space and the reading of its logs.

    It costs no database I/O of the active one.
    """
    servers = max(design["copies"]["servers"], copies)
    lower, upper = sorted((design["copies"]["count"], copies))
    small, large = (
        size(
            make(**design | {"copies": {"mode": "dag", "count": count, "servers": servers}})
        ).results
        for count in (lower, upper)
    )
    for figure in (
        "total_capacity_all_copies_gb",
        "log_iops",
        "section_3_3_2_log_iops",
        "replication_gb_per_day",
    ):
        assert large[figure].value >= small[figure].value * (1 - 1e-12), figure
    assert large["database_iops"].value == small["database_iops"].value


@several
@given(designs())
def test_totals_are_the_sums_of_their_parts(design: dict[str, Any]) -> None:
    sizing = size(make(**design))
    figures = sizing.results
    parts = (
        "volume_capacity_gb",
        "snapshot_reserve_gb",
        "replication_reserve_gb",
        "clone_capacity_gb",
        "recovery_database_capacity_gb",
        "offline_maintenance_capacity_gb",
    )
    assert figures["total_capacity_gb"].value == pytest.approx(
        sum(figures[part].value for part in parts)
    )
    assert figures["database_size_gb"].value * figures["database_count"].value == pytest.approx(
        figures["total_database_size_gb"].value
    )
    assert figures["total_capacity_all_copies_gb"].value == pytest.approx(
        figures["total_capacity_gb"].value * design["copies"]["count"]
    )


@several
@given(designs())
def test_every_database_stays_within_its_limit(design: dict[str, Any]) -> None:
    sizing = size(make(**design))
    assert sizing.results["database_size_gb"].value <= 2048 * (1 + 1e-9)


@several
@given(designs())
def test_the_volumes_hold_what_was_sized(design: dict[str, Any]) -> None:
    """The provisioning plan has a database and a log volume for each copy, none smaller than its
    figure.
    """
    sizing = size(make(**design))
    count, copies = int(sizing.results["database_count"].value), design["copies"]["count"]
    assert len(sizing.volumes) == 2 * count * copies
    assert len({volume.name for volume in sizing.volumes}) == len(sizing.volumes)
    for volume in sizing.volumes:
        assert volume.size_gb >= sizing.results[f"{volume.role}_volume_size_gb"].value - 1e-6


def formulas_agree(sizing: Sizing) -> None:
    """Read every formula as Python and compare it with the value.

    What is shown is what was computed.
    """
    functions = {
        "ceil": lambda x: -(-round(x, 9) // 1),
        "floor": lambda x: round(x, 9) // 1,
        "round_half_up": lambda x: (x + 0.5) // 1,
        "if_at_most": lambda x, limit, then, otherwise: then if x <= limit else otherwise,
        "max": max,
        "min": min,
    }
    values = {step.name: step.value for step in sizing.steps}
    for step in sizing.steps:
        if step.formula:
            assert eval(step.formula, functions | values) == pytest.approx(step.value, rel=1e-12), (
                step.name
            )


@several
@given(designs())
def test_the_formula_shown_gives_the_value_shown(design: dict[str, Any]) -> None:
    formulas_agree(size(make(**design)))


def test_the_published_reading_and_transactions_show_their_formulas_too() -> None:
    formulas_agree(size(make(), "dell_2010"))
    formulas_agree(size(transactional()))


def transactional(**more: Any) -> Requirements:
    load = {
        "per_second": 800,
        "database_ios_each": 4,
        "data_size": "500 GB",
        "log_size_each": "6 KB",
    }
    return make(
        users=None, transactions=load | more, copies={"mode": "dag", "count": 2, "servers": 2}
    )


def test_a_transactional_load_that_is_not_mail() -> None:
    """The generic profile: I/O and log bytes are stated for a transaction instead of following from
    messages.
    """
    figures = size(transactional()).results
    assert figures["database_iops"].value == pytest.approx(800 * 4 * 1.2)
    assert figures["total_database_size_gb"].value == pytest.approx(600)
    assert figures["log_growth_mb_per_day"].value == pytest.approx(800 * 6 / 1024 * 8 * 3600)
    assert "mailbox_size_mb" not in figures
    more = size(transactional(per_second=900, data_size="600 GB")).results
    assert all(more[name].value >= figures[name].value for name in figures)
