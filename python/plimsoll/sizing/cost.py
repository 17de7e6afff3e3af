"""What an option costs: drives, enclosures, rack space, purchase, power, cooling, failures, and
cost per delivered unit.

Source: the cost analysis of the SanDisk paper on SSDs for Exchange (2014 prices), generalised. An
option is a drive that was tested in a small group; the analysis asks how many of them deliver what
is needed, and what that many cost. The count assumes that IOPS grow in proportion to drives, as the
paper does; no array was measured at 72 drives. Power is a range because data sheets give one. Every
figure is a `Step` with its formula, so a reader can follow each sum. Limits: one currency, written
as USD; no discounts, interest, support contracts or floor rent; failures follow from the stated
MTBF alone; drives are rounded up to pairs for mirrors, not to whole parity groups. A figure whose
inputs are not stated is absent, and `absences` says which input is missing.
"""

from __future__ import annotations

from typing import Literal, get_args

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.raid import RaidLevel, data_drive_count
from plimsoll.sizing.traced import Amount, Expression, Step, ceil, floor, maximum, round_half_up

CountRule = Literal["exact", "rounded_factor"]
PAPER = "SanDisk: improving Exchange performance with SSDs"
GIVEN = "stated in the cost file"
ARITHMETIC = "arithmetic"


@dataclass(frozen=True)
class CostOption:
    """One way to build the storage.

    Attributes:
        name: short name used in comparisons.
        title: what it is.
        source: where its figures come from.
        tested_drive_count: drives in the group that was measured.
        tested_iops: transactional IOPS that group carried within limits.
        drive_capacity_gb: decimal GB of one drive.
        drive_price_usd: price of one drive.
        raid: RAID level of the measured group; capacity for data follows from it.
        count_rule: "exact" rounds the number of drives up; "rounded_factor" multiplies the measured
            group by the rounded ratio of IOPS, as the paper does.
        used_capacity_fraction: share of each drive that is used; 0.1 for short-stroked drives.
        drive_power_low_w: least power of one drive, None when not stated; likewise
            `drive_power_high_w`.
        mtbf_h: mean time between failures of one drive, None when not stated.
        enclosure_drive_slots: drives in one enclosure, None when the drives fit the server.
        enclosure_rack_units: height of one enclosure.
        enclosure_price_usd: price of one enclosure.
        enclosure_power_w: power of an enclosure without drives, None when not stated.
    """

    name: str
    title: str
    source: str
    tested_drive_count: int
    tested_iops: float
    drive_capacity_gb: float
    drive_price_usd: float
    raid: RaidLevel = "RAID 0"
    count_rule: CountRule = "exact"
    used_capacity_fraction: float = 1.0
    drive_power_low_w: float | None = None
    drive_power_high_w: float | None = None
    mtbf_h: float | None = None
    enclosure_drive_slots: int | None = None
    enclosure_rack_units: int = 0
    enclosure_price_usd: float = 0.0
    enclosure_power_w: float | None = None


@dataclass(frozen=True)
class Goal:
    """What every option must deliver.

    Attributes:
        iops: transactional IOPS.
        capacity_gb: decimal GB for data, None to let IOPS decide alone.
        users: number of users to share the cost, None to use as many as the IOPS carry.
        iops_per_user: IOPS of one user, None when there are no users.
        years: years of running cost to add to the purchase.
    """

    iops: float
    capacity_gb: float | None = None
    users: int | None = None
    iops_per_user: float | None = None
    years: float = 1.0


@dataclass(frozen=True)
class Energy:
    """What running a watt costs.

    Attributes:
        electricity_usd_per_kwh: price of electricity.
        cooling_w_per_w: power spent on cooling for each watt of load.
        hours_per_year: hours of operation in a year.
        source: where the prices come from.
    """

    electricity_usd_per_kwh: float
    cooling_w_per_w: float
    hours_per_year: float
    source: str


@dataclass(frozen=True)
class OptionCost:
    """The figures of one option.

    Attributes:
        option: what was costed.
        figures: every figure by name, in the order a reader follows.
        absences: figures that could not be given, with the missing input.
    """

    option: CostOption
    figures: dict[str, Step]
    absences: dict[str, str]


def figure(name: str, unit: str, definition: Amount | Expression, title: str, source: str) -> Step:
    """Name a figure of the cost analysis.

    A plain number is a given one, an expression a derived one.
    """
    if isinstance(definition, Expression):
        return Step(definition.value, "step", (), name, unit, title, source, definition)
    return Step(float(definition), "step", (), name, unit, title, source)


def equivalent_drive_count(
    required_iops: Amount, tested_iops: Amount, tested_drive_count: Amount, rule: CountRule
) -> Expression:
    """Drives that deliver the required IOPS, in proportion to a measured group.

    Args:
        required_iops: IOPS needed.
        tested_iops: IOPS of the measured group.
        tested_drive_count: drives in it.
        rule: see `CostOption.count_rule`.

    Source: SanDisk cost analysis: 4 drives x 18 = 72.

    >>> equivalent_drive_count(8909.77, 495.15, 4, "rounded_factor").value
    72.0
    """
    factor = required_iops / _step(tested_iops)
    if rule == "rounded_factor":
        return maximum(round_half_up(factor), 1) * tested_drive_count
    return maximum(ceil(factor * tested_drive_count), 1)


def enclosure_count(drive_count: Amount, slots_per_enclosure: Amount) -> Expression:
    """Enclosures for a number of drives.

    Source: SanDisk cost analysis: 72 drives at 24 slots are 3.

    >>> enclosure_count(72, 24).value
    3.0
    """
    return ceil(drive_count / _step(slots_per_enclosure))


def purchase_usd(
    drives: Amount, drive_usd: Amount, enclosures: Amount, enclosure_usd: Amount
) -> Expression:
    """Price of drives and enclosures. Source: SanDisk cost analysis: 72 x 307.99 + 3 x 4,000 USD.

    >>> round(purchase_usd(72, 307.99, 3, 4000).value, 2)
    34175.28
    """
    return drives * _step(drive_usd) + enclosures * _step(enclosure_usd)


def failures_per_year(drive_count: Amount, hours_per_year: Amount, mtbf_h: Amount) -> Expression:
    """Drive failures to expect in a year of operation, from the stated mean time between failures.

    >>> failures_per_year(4, 8760, 2_000_000).value
    0.01752
    """
    return drive_count * _step(hours_per_year) / _step(mtbf_h)


def option_cost(option: CostOption, goal: Goal, energy: Energy) -> OptionCost:
    """Every figure of one option, each after those it rests on."""
    ledger = _Ledger(option)
    _count(ledger, option, goal)
    _purchase(ledger, option)
    _delivery(ledger, option, goal)
    _power(ledger, option, goal, energy)
    _failures(ledger, option, energy)
    return OptionCost(option, ledger.figures, ledger.absences)


class _Ledger:
    """Figures and absences as they are worked out."""

    def __init__(self, option: CostOption) -> None:
        self.source = option.source
        self.figures: dict[str, Step] = {}
        self.absences: dict[str, str] = {}

    def add(
        self,
        name: str,
        unit: str,
        definition: Amount | Expression,
        title: str,
        source: str = ARITHMETIC,
    ) -> Step:
        self.figures[name] = figure(name, unit, definition, title, source)
        return self.figures[name]

    def given(self, name: str, unit: str, value: float, title: str) -> Step:
        return self.add(name, unit, value, title, self.source)


def _count(ledger: _Ledger, option: CostOption, goal: Goal) -> None:
    """TCO-01: drives for the IOPS and for the capacity."""
    required = ledger.add("required_iops", "IOPS", goal.iops, "IOPS to deliver", GIVEN)
    tested = ledger.given("tested_iops", "IOPS", option.tested_iops, "IOPS of the measured group")
    group = ledger.given(
        "tested_drive_count", "drives", option.tested_drive_count, "Drives in the measured group"
    )
    ledger.add("iops_factor", "ratio", required / tested, "Needed over measured IOPS", PAPER)
    both = {
        rule: equivalent_drive_count(required, tested, group, rule) for rule in get_args(CountRule)
    }
    exact = ledger.add(
        "drives_for_iops_exact_count", "drives", both["exact"], "Drives for the IOPS, rounded up"
    )
    rounded = ledger.add(
        "drives_for_iops_rounded_count",
        "drives",
        both["rounded_factor"],
        "Drives by the rounded factor",
        PAPER,
    )
    for_iops = rounded if option.count_rule == "rounded_factor" else exact
    size = ledger.given(
        "drive_capacity_gb", "GB", option.drive_capacity_gb, "Capacity of one drive"
    )
    data = ledger.add(
        "data_fraction",
        "ratio",
        data_drive_count(option.raid, option.tested_drive_count) / option.tested_drive_count,
        f"Share of drives that hold data at {option.raid}",
        "RAID arithmetic on the measured group",
    )
    used = ledger.given(
        "used_capacity_fraction", "ratio", option.used_capacity_fraction, "Share of a drive used"
    )
    count: Expression = for_iops
    if goal.capacity_gb is not None:
        needed = ledger.add(
            "required_capacity_gb", "GB", goal.capacity_gb, "Capacity to deliver", GIVEN
        )
        for_data = ledger.add(
            "drives_for_capacity_count",
            "drives",
            ceil(needed / (size * data * used)),
            "Drives for the capacity",
        )
        count = maximum(for_iops, for_data)
    if option.raid in ("RAID 1", "RAID 10"):
        ledger.add(
            "drive_count", "drives", ceil(count / 2) * 2, "Drives to buy", "mirrors take pairs"
        )
    else:
        ledger.add("drive_count", "drives", count, "Drives to buy")


def _purchase(ledger: _Ledger, option: CostOption) -> None:
    """TCO-02 and TCO-03: enclosures, rack units, purchase."""
    drives = ledger.figures["drive_count"]
    price = ledger.given("drive_price_usd", "USD", option.drive_price_usd, "Price of one drive")
    if option.enclosure_drive_slots is None:
        enclosures = ledger.add(
            "enclosure_count", "enclosures", 0, "Enclosures", "none: the drives fit the server"
        )
    else:
        slots = ledger.given(
            "enclosure_drive_slots",
            "drives",
            option.enclosure_drive_slots,
            "Drives in an enclosure",
        )
        enclosures = ledger.add(
            "enclosure_count", "enclosures", enclosure_count(drives, slots), "Enclosures", PAPER
        )
    units = ledger.given(
        "enclosure_rack_units", "U", option.enclosure_rack_units, "Height of an enclosure"
    )
    ledger.add("rack_units", "U", enclosures * units, "Rack space of the enclosures", PAPER)
    shell = ledger.given(
        "enclosure_price_usd", "USD", option.enclosure_price_usd, "Price of an enclosure"
    )
    ledger.add("drives_cost_usd", "USD", drives * price, "Drives")
    ledger.add("enclosures_cost_usd", "USD", enclosures * shell, "Enclosures")
    ledger.add(
        "purchase_usd", "USD", purchase_usd(drives, price, enclosures, shell), "Purchase", PAPER
    )


def _delivery(ledger: _Ledger, option: CostOption, goal: Goal) -> None:
    """TCO-05: what the purchase delivers, and its price per IOPS, GB and user."""
    figures = ledger.figures
    drives, paid = figures["drive_count"], figures["purchase_usd"]
    linear = "in proportion to drives, as the paper assumes"
    delivered = ledger.add(
        "delivered_iops",
        "IOPS",
        figures["tested_iops"] * drives / figures["tested_drive_count"],
        "IOPS delivered",
        linear,
    )
    ledger.add("usd_per_iops", "USD/IOPS", paid / delivered, "Purchase per delivered IOPS")
    raw = ledger.add(
        "raw_capacity_gb", "GB", drives * figures["drive_capacity_gb"], "Capacity of all drives"
    )
    usable = ledger.add(
        "usable_capacity_gb", "GB", raw * figures["data_fraction"], "Capacity for data"
    )
    used = ledger.add(
        "used_capacity_gb",
        "GB",
        usable * figures["used_capacity_fraction"],
        "Capacity used for data",
    )
    ledger.add("usd_per_raw_gb", "USD/GB", paid / raw, "Purchase per GB of drives")
    ledger.add("usd_per_usable_gb", "USD/GB", paid / usable, "Purchase per GB for data")
    ledger.add("usd_per_used_gb", "USD/GB", paid / used, "Purchase per GB used")
    if goal.users is not None:
        users = ledger.add("users_count", "users", goal.users, "Users", GIVEN)
    elif goal.iops_per_user is not None:
        each = ledger.add("iops_per_user", "IOPS", goal.iops_per_user, "IOPS of one user", GIVEN)
        users = ledger.add("users_count", "users", floor(delivered / each), "Users the IOPS carry")
    else:
        ledger.absences["usd_per_user"] = "neither users nor IOPS per user are stated"
        return
    if users.value == 0:
        ledger.absences["usd_per_user"] = "the IOPS carry no user"
        return
    ledger.add("usd_per_user", "USD/user", paid / users, "Purchase per user")


def _power(ledger: _Ledger, option: CostOption, goal: Goal, energy: Energy) -> None:
    """TCO-04: power, energy and cooling of a year, lowest and highest."""
    drives, enclosures, paid = (
        ledger.figures[name] for name in ("drive_count", "enclosure_count", "purchase_usd")
    )
    if option.drive_power_low_w is None or option.drive_power_high_w is None:
        for name in ("power_low_w", "power_high_w", "total_low_usd", "total_high_usd"):
            ledger.absences[name] = "the power of a drive is not stated"
        return
    if option.enclosure_power_w is None and enclosures.value > 0:
        ledger.absences["enclosures_power_w"] = (
            "the power of an enclosure is not stated: left out of power and running cost"
        )
    shells = enclosures * ledger.given(
        "enclosure_power_w", "W", option.enclosure_power_w or 0.0, "Power of an enclosure"
    )
    hours = ledger.add(
        "hours_per_year", "h", energy.hours_per_year, "Hours of operation in a year", energy.source
    )
    tariff = ledger.add(
        "electricity_usd_per_kwh",
        "USD/kWh",
        energy.electricity_usd_per_kwh,
        "Electricity",
        energy.source,
    )
    overhead = ledger.add(
        "cooling_w_per_w",
        "ratio",
        energy.cooling_w_per_w,
        "Cooling per watt of load",
        energy.source,
    )
    years = ledger.add("years", "years", goal.years, "Years of operation", GIVEN)
    for side, watts in (("low", option.drive_power_low_w), ("high", option.drive_power_high_w)):
        each = ledger.given(f"drive_power_{side}_w", "W", watts, f"Power of one drive, {side}")
        power = ledger.add(f"power_{side}_w", "W", drives * each + shells, f"Power, {side}", PAPER)
        used = ledger.add(
            f"energy_{side}_kwh_per_year",
            "kWh/year",
            power * hours / 1000,
            f"Energy in a year, {side}",
        )
        bill = ledger.add(
            f"power_{side}_usd_per_year",
            "USD/year",
            used * tariff,
            f"Electricity in a year, {side}",
        )
        cooling = ledger.add(
            f"cooling_{side}_usd_per_year",
            "USD/year",
            bill * overhead,
            f"Cooling in a year, {side}",
        )
        ledger.add(
            f"total_{side}_usd",
            "USD",
            paid + (bill + cooling) * years,
            f"Purchase and running cost, {side}",
        )


def _failures(ledger: _Ledger, option: CostOption, energy: Energy) -> None:
    """TCO-06: drive failures to expect in a year."""
    if option.mtbf_h is None:
        ledger.absences["failures_per_year"] = "the MTBF of a drive is not stated"
        return
    mtbf = ledger.given("mtbf_h", "h", option.mtbf_h, "Mean time between failures of one drive")
    hours = ledger.figures.get("hours_per_year") or ledger.add(
        "hours_per_year", "h", energy.hours_per_year, "Hours of operation in a year", energy.source
    )
    drives = ledger.figures["drive_count"]
    ledger.add(
        "failures_per_year",
        "drives/year",
        failures_per_year(drives, hours, mtbf),
        "Drive failures in a year",
    )


def _step(value: Amount) -> Expression:
    """A plain number as an operand, so that dividing two numbers still records the division."""
    return value if isinstance(value, Expression) else Expression(float(value))
