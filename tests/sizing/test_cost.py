"""The cost analysis: every figure of the SanDisk paper exactly, its statements judged, and sums
that always add up.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.sizing.consolidation import Asset, consolidate
from plimsoll.sizing.cost import (
    CostOption,
    Energy,
    Goal,
    enclosure_count,
    equivalent_drive_count,
    failures_per_year,
    option_cost,
    purchase_usd,
)
from plimsoll.sizing.cost_study import Measurement, read_cost_study

STUDY = read_cost_study()
OPTION = CostOption(
    name="x",
    title="x",
    source="x",
    tested_drive_count=4,
    tested_iops=500,
    drive_capacity_gb=300,
    drive_price_usd=100,
)
ENERGY = Energy(0.1, 0.5, 8760, "assumed")


def value(option: str, figure: str) -> float:
    """A figure of the shipped study."""
    return STUDY.option(option).figures[figure].value


def test_TCO_01_72_hard_drives_carry_what_4_ssds_do() -> None:
    """The paper rounds the factor to 18; rounding the exact count up gives the same 72."""
    assert value("hdd", "iops_factor") == 8909.77 / 495.15
    assert value("hdd", "drives_for_iops_rounded_count") == 72
    assert value("hdd", "drives_for_iops_exact_count") == 72
    assert value("ssd", "drive_count") == 4
    assert equivalent_drive_count(8909.77, 495.15, 4, "exact").value == 72


def test_TCO_01_the_two_counting_rules_can_differ() -> None:
    """At 2.4 times the IOPS the rounded factor buys too little; the exact count does not."""
    assert equivalent_drive_count(1200, 500, 4, "rounded_factor").value == 8
    assert equivalent_drive_count(1200, 500, 4, "exact").value == 10
    assert equivalent_drive_count(1, 5000, 4, "exact").value == 1, (
        "a small need still takes a drive"
    )
    assert equivalent_drive_count(1, 5000, 4, "rounded_factor").value == 4


def test_TCO_01_capacity_can_decide_the_count() -> None:
    """Large mailboxes on fast drives are bound by space, not by IOPS."""
    cost = option_cost(replace(OPTION, raid="RAID 10"), Goal(iops=500, capacity_gb=3_000), ENERGY)
    assert cost.figures["drives_for_iops_exact_count"].value == 4
    assert (
        cost.figures["drive_count"].value == cost.figures["drives_for_capacity_count"].value == 20
    )
    assert (
        option_cost(replace(OPTION, raid="RAID 10"), Goal(iops=600), ENERGY)
        .figures["drive_count"]
        .value
        == 6
    )
    assert option_cost(OPTION, Goal(iops=600), ENERGY).figures["drive_count"].value == 5
    short = option_cost(
        replace(OPTION, used_capacity_fraction=0.1), Goal(iops=500, capacity_gb=3_000), ENERGY
    )
    assert short.figures["drive_count"].value == 100


def test_TCO_02_three_enclosures_take_six_rack_units() -> None:
    """24 slots of 2 U each; 73 drives would need a fourth."""
    assert (value("hdd", "enclosure_count"), value("hdd", "rack_units")) == (3, 6)
    assert (value("ssd", "enclosure_count"), value("ssd", "rack_units")) == (0, 0)
    assert [enclosure_count(drives, 24).value for drives in (1, 24, 25, 72, 73)] == [1, 1, 2, 3, 4]


def test_TCO_03_purchase_and_ratio() -> None:
    """S-03, S-04: 34,175.28 and 5,600 USD are 6.10 apart, not almost seven."""
    assert purchase_usd(72, 307.99, 3, 4000).value == pytest.approx(34_175.28, abs=1e-9)
    assert value("hdd", "purchase_usd") == pytest.approx(34_175.28, abs=1e-9)
    assert value("hdd", "drives_cost_usd") == pytest.approx(22_175.28, abs=1e-9)
    assert value("hdd", "enclosures_cost_usd") == 12_000
    assert value("ssd", "purchase_usd") == 5_600
    assert STUDY.ratio("hdd", "purchase_usd") == pytest.approx(6.1027, abs=5e-5)


def test_TCO_04_power_energy_and_cooling() -> None:
    """1,080 W against 20 to 28 W; energy and cooling follow from stated prices."""
    assert (value("hdd", "power_low_w"), value("hdd", "power_high_w")) == (1080, 1080)
    assert (value("ssd", "power_low_w"), value("ssd", "power_high_w")) == (20, 28)
    assert value("hdd", "energy_low_kwh_per_year") == pytest.approx(9_460.8)
    assert value("hdd", "power_low_usd_per_year") == pytest.approx(946.08)
    assert value("hdd", "cooling_low_usd_per_year") == pytest.approx(473.04)
    assert value("ssd", "power_high_usd_per_year") == pytest.approx(24.528)
    assert value("hdd", "total_low_usd") == pytest.approx(34_175.28 + 3 * (946.08 + 473.04))
    absent = STUDY.option("hdd").absences["enclosures_power_w"]
    assert absent == "the power of an enclosure is not stated: left out of power and running cost"


def test_TCO_05_cost_per_iops_gb_and_user() -> None:
    """0.63 against 3.83 USD per IOPS; a short-stroked hard drive is dear per GB used."""
    assert value("ssd", "usd_per_iops") == pytest.approx(0.6285, abs=5e-5)
    assert value("hdd", "usd_per_iops") == pytest.approx(3.8344, abs=6e-5)
    assert value("hdd", "delivered_iops") == pytest.approx(18 * 495.15)
    assert value("ssd", "usd_per_raw_gb") == 3.5
    assert value("hdd", "usd_per_raw_gb") == pytest.approx(34_175.28 / 21_600)
    assert value("hdd", "usd_per_used_gb") == pytest.approx(34_175.28 / (72 * 300 * 0.75 * 0.1))
    assert value("ssd", "users_count") == 37_124
    assert value("ssd", "usd_per_user") == pytest.approx(5600 / 37_124)


def test_TCO_05_without_users_the_figure_is_absent_with_its_reason() -> None:
    """A missing input must never become a zero or a silent gap."""
    cost = option_cost(OPTION, Goal(iops=500), ENERGY)
    assert "usd_per_user" not in cost.figures
    assert cost.absences["usd_per_user"] == "neither users nor IOPS per user are stated"
    assert cost.absences["failures_per_year"] == "the MTBF of a drive is not stated"
    assert cost.absences["power_low_w"] == "the power of a drive is not stated"
    given_users = option_cost(OPTION, Goal(iops=500, users=1000), ENERGY)
    assert given_users.figures["usd_per_user"].value == 400 / 1000


def test_TCO_06_failures_expected_in_a_year() -> None:
    """2,000,000 h and 4 drives: one failure in 57 years.

    The paper gives no MTBF for the hard drives.
    """
    assert value("ssd", "failures_per_year") == pytest.approx(4 * 8760 / 2_000_000)
    assert failures_per_year(72, 8760, 1_200_000).value == pytest.approx(0.5256)
    assert STUDY.option("hdd").absences["failures_per_year"] == "the MTBF of a drive is not stated"


def test_TCO_07_consolidation_sums_items() -> None:
    """Sixteen servers as virtual machines on two nodes of 2 U (the MD3000i cluster).

    Unstated figures are listed.
    """
    assets = (
        Asset("server", 16, 2, rack_units_each=2, power_each_w=350, price_each_usd=6000),
        Asset("virtual machine", 0, 16, is_virtual=True),
    )
    result = consolidate(assets)
    assert (
        result.before.physical_count,
        result.after.physical_count,
        result.after.virtual_count,
    ) == (16, 2, 16)
    assert (result.saved.rack_units, result.saved.power_w, result.saved.price_usd) == (
        28,
        4_900,
        84_000,
    )
    assert result.virtual_per_physical_after == 8
    assert result.not_stated == ("server: floor_space_m2",)


@pytest.mark.parametrize(
    ("claim_id", "stated", "computed", "holds"),
    [
        ("S-01", 18, 17.9941, False),
        ("T1-iops", 18, 17.9941, True),
        ("T1-reads", 19, 18.9745, True),
        ("T1-writes", 16, 16.1612, True),
        ("T1-log-reads", 11, 10.9838, True),
        ("T1-log-writes", 11.4, 11.3993, True),
        ("S-02", 25, 27.3134, False),
        ("T1-log-read-latency", 2, 2.0679, True),
        ("S-05a", 1, 1.2143, False),
        ("S-05b", 1, 1.1304, False),
        ("S-06", 8909.77, 8909.76, True),
        ("equivalent-drives", 72, 72, True),
        ("enclosures", 3, 3, True),
        ("rack-units", 6, 6, True),
        ("ssd-price", 5600, 5600, True),
        ("S-04", 34_200, 34_175.28, True),
        ("S-03a", 7, 6.1027, False),
        ("S-03b", 0.142857, 0.16386, False),
        ("S-10a", 0.5, 0.33333, False),
        ("S-10b", 0.5, 0.46667, True),
    ],
)
def test_TCO_03_each_statement_of_the_paper_stands_beside_its_figure(
    claim_id: str, stated: float, computed: float, holds: bool
) -> None:
    """The inconsistencies S-01 to S-06 and S-10, computed rather than copied."""
    claim = next(claim for claim in STUDY.claims if claim.id == claim_id)
    assert claim.stated == stated
    assert claim.computed == pytest.approx(computed, abs=5e-5)
    assert claim.holds is holds


def test_every_statement_is_judged() -> None:
    """A claim added to the data file without a test above would go unchecked."""
    assert len(STUDY.claims) == 20
    assert all(claim.holds is not None for claim in STUDY.claims)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("transactional_iops", 17.994),
        ("database_reads_per_second", 18.974),
        ("database_writes_per_second", 16.161),
        ("log_reads_per_second", 10.984),
        ("log_writes_per_second", 11.399),
        ("database_read_latency_ms", 27.313),
        ("log_read_latency_ms", 2.068),
        ("database_write_latency_ms", 1 / 1.2143),
        ("log_write_latency_ms", 1 / 1.1304),
    ],
)
def test_table_1_improvements(name: str, factor: float) -> None:
    """Rates compare new over old, latencies old over new.

    Writes got slower, which the paper calls the same.
    """
    measurement = next(
        measurement for measurement in STUDY.measurements if measurement.name == name
    )
    assert measurement.improvement("hdd", "ssd") == pytest.approx(factor, abs=6e-4)


def test_an_improvement_needs_both_figures() -> None:
    """A missing or zero figure gives no factor, not a division by zero."""
    measurement = Measurement("reads", "per second", "higher", {"old": 0.0, "new": 5.0}, "test")
    assert measurement.improvement("old", "new") is None
    assert measurement.improvement("new", "none") is None
    assert measurement.improvement("none", "new") is None
    assert replace(measurement, better="lower").improvement("old", "new") == 0


OPTIONS = st.builds(
    CostOption,
    name=st.just("x"),
    title=st.just("x"),
    source=st.just("x"),
    tested_drive_count=st.integers(2, 50).map(lambda count: count * 2),
    tested_iops=st.floats(1, 1e6),
    drive_capacity_gb=st.floats(1, 1e5),
    drive_price_usd=st.floats(0.01, 1e5),
    raid=st.sampled_from(["RAID 0", "RAID 10"]),
    count_rule=st.sampled_from(["exact", "rounded_factor"]),
    drive_power_low_w=st.floats(0, 10),
    drive_power_high_w=st.floats(10, 30),
    mtbf_h=st.floats(1e3, 1e8),
    enclosure_drive_slots=st.one_of(st.none(), st.integers(1, 100)),
    enclosure_rack_units=st.integers(0, 10),
    enclosure_price_usd=st.floats(0, 1e5),
    enclosure_power_w=st.one_of(st.none(), st.floats(0, 1e3)),
)
GOALS = st.builds(
    Goal,
    iops=st.floats(0.01, 1e6),
    capacity_gb=st.one_of(st.none(), st.floats(1, 1e6)),
    users=st.one_of(st.none(), st.integers(1, 10**6)),
    years=st.floats(0, 10),
)


@given(OPTIONS, GOALS)
def test_totals_equal_the_sum_of_their_parts(option: CostOption, goal: Goal) -> None:
    """Whatever is costed, purchase is drives plus enclosures and the total adds energy and
    cooling.
    """
    figures = {name: step.value for name, step in option_cost(option, goal, ENERGY).figures.items()}
    assert figures["purchase_usd"] == pytest.approx(
        figures["drives_cost_usd"] + figures["enclosures_cost_usd"]
    )
    for side in ("low", "high"):
        yearly = figures[f"power_{side}_usd_per_year"] + figures[f"cooling_{side}_usd_per_year"]
        assert figures[f"total_{side}_usd"] == pytest.approx(
            figures["purchase_usd"] + goal.years * yearly
        )
    assert figures["power_low_w"] <= figures["power_high_w"]
    assert figures["drive_count"] >= 1
    if option.count_rule == "exact":
        assert figures["delivered_iops"] >= goal.iops * (1 - 1e-6)


@given(OPTIONS, GOALS, st.floats(1, 100))
def test_more_iops_never_cost_less(option: CostOption, goal: Goal, factor: float) -> None:
    """Monotone in the load."""
    before = option_cost(option, goal, ENERGY).figures
    after = option_cost(option, replace(goal, iops=goal.iops * factor), ENERGY).figures
    for name in (
        "drive_count",
        "enclosure_count",
        "purchase_usd",
        "power_high_w",
        "failures_per_year",
    ):
        assert after[name].value >= before[name].value


@given(
    st.lists(
        st.builds(
            Asset,
            st.text(min_size=1),
            st.integers(0, 99),
            st.integers(0, 99),
            st.booleans(),
            rack_units_each=st.one_of(st.none(), st.integers(0, 40)),
        ),
        max_size=8,
    )
)
def test_consolidation_is_additive(assets: list[Asset]) -> None:
    """The totals of a list are the sums over its items."""
    whole = consolidate(tuple(assets))
    parts = [consolidate((asset,)) for asset in assets]
    assert whole.saved.rack_units == sum(part.saved.rack_units for part in parts)
    assert whole.before.physical_count == sum(part.before.physical_count for part in parts)
