"""A cost file: options side by side, and the statements of a paper or a vendor beside what the
figures give.

A cost file has `kind = "cost"`. Besides the options it may carry measurements (for an improvement
table: rates compare new over old, latencies old over new) and claims: a stated number and the
expression that should yield it. A claim holds, or it does not and the computed figure stands beside
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plimsoll.files.paths import StrPath
from plimsoll.inputs.expression import ExpressionError, Fact, evaluate, parse_expression
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.schema import (
    READERS,
    Collector,
    Field,
    Flag,
    Given,
    Number,
    Numbers,
    Table,
    Tables,
    Text,
    require_kind,
)
from plimsoll.inputs.toml_lines import read_located
from plimsoll.sizing.catalogue import DATA_FOLDER
from plimsoll.sizing.consolidation import Asset, Consolidation, consolidate
from plimsoll.sizing.cost import CostOption, Energy, Goal, OptionCost, option_cost
from plimsoll.sizing.raid import RAID_LEVELS, data_drive_count

SHIPPED_STUDY = DATA_FOLDER / "cost_sandisk_2014.toml"

_POSITIVE = Number(1e-9, 1e12)
_PRICE = Number(0, 1e9)
_WATTS = Number(0, 1e6)
_OPTION_FIELDS = {
    "name": Field(Text(), required=True, meaning="short name used in comparisons and claims"),
    "title": Field(Text(), required=True, meaning="what the drives are"),
    "source": Field(Text(), required=True, meaning="where the figures come from"),
    "tested_drive_count": Field(
        Number(1, 1e5, whole=True), required=True, meaning="drives in the measured group"
    ),
    "tested_iops": Field(
        Number(1e-3, 1e9), required=True, meaning="IOPS that group carried within limits"
    ),
    "drive_capacity_gb": Field(Number(1, 1e6), required=True, meaning="decimal GB of one drive"),
    "drive_price_usd": Field(Number(0.01, 1e7), required=True, meaning="price of one drive"),
    "raid": Field(Text(RAID_LEVELS), default="RAID 0", meaning="RAID level of the measured group"),
    "count_rule": Field(
        Text(("exact", "rounded_factor")), default="exact", meaning="how drives are counted"
    ),
    "used_capacity_fraction": Field(
        Number(0.001, 1), default=1.0, meaning="share of each drive used; 0.1 short-stroked"
    ),
    "drive_power_low_w": Field(_WATTS, meaning="least power of one drive"),
    "drive_power_high_w": Field(_WATTS, meaning="most power of one drive"),
    "mtbf_h": Field(Number(1, 1e9), meaning="mean time between failures of one drive"),
    "enclosure_drive_slots": Field(Number(1, 1e4, whole=True), meaning="drives in an enclosure"),
    "enclosure_rack_units": Field(
        Number(0, 60, whole=True), default=0, meaning="height of an enclosure"
    ),
    "enclosure_price_usd": Field(_PRICE, default=0.0, meaning="price of an enclosure"),
    "enclosure_power_w": Field(_WATTS, meaning="power of an enclosure without drives"),
}
_CLAIM_FIELDS = {
    "id": Field(Text(), required=True, meaning="what to call the claim"),
    "statement": Field(Text(), required=True, meaning="the claim in a sentence"),
    "stated": Field(Number(-1e12, 1e12), required=True, meaning="the number it states"),
    "computed": Field(Text(), required=True, meaning="the expression that should yield it"),
    "relation": Field(
        Text(("about", "more_than", "at_most")), default="about", meaning="how the two compare"
    ),
    "tolerance_pct": Field(Number(0, 100), default=1.0, meaning="what `about` allows"),
}
_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the study"),
    "source": Field(Text(), required=True, meaning="where its figures come from"),
    "price_date": Field(Text(), required=True, meaning='when the prices held, such as "2014-06"'),
    "reference": Field(
        Text(), meaning="the option the others are compared with; the first one when left out"
    ),
    "goal": Field(
        Table(
            {
                "iops": Field(_POSITIVE, required=True, meaning="IOPS every option must deliver"),
                "capacity_gb": Field(_POSITIVE, meaning="decimal GB for data"),
                "users": Field(Number(1, 1e9, whole=True), meaning="users who share the cost"),
                "iops_per_user": Field(Number(1e-6, 1e6), meaning="IOPS of one user"),
                "years": Field(Number(0, 100), default=1.0, meaning="years of running cost"),
            }
        ),
        required=True,
        meaning="[goal] with the IOPS every option must deliver",
    ),
    "energy": Field(
        Table(
            {
                "electricity_usd_per_kwh": Field(
                    Number(0, 100), required=True, meaning="price of electricity"
                ),
                "cooling_w_per_w": Field(
                    Number(0, 10), required=True, meaning="cooling power per watt of load"
                ),
                "hours_per_year": Field(
                    Number(1, 8784), default=8760.0, meaning="hours of operation"
                ),
                "source": Field(
                    Text(),
                    required=True,
                    meaning='where the prices come from; "assumed" is a source',
                ),
            }
        ),
        required=True,
        meaning="[energy] with the price of electricity and the share of cooling",
    ),
    "options": Field(
        Tables(_OPTION_FIELDS, count_minimum=1, unique="name"),
        required=True,
        meaning="at least one",
    ),
    "measurements": Field(
        Tables(
            {
                "name": Field(Text(), required=True, meaning="what was measured"),
                "unit": Field(Text(), required=True, meaning="its unit"),
                "better": Field(
                    Text(("higher", "lower")), required=True, meaning="which direction is better"
                ),
                "values": Field(
                    Numbers(Number(0, 1e15)), required=True, meaning="a number for each option"
                ),
                "source": Field(Text(), required=True, meaning="where the numbers come from"),
            },
            unique="name",
        ),
        default=[],
    ),
    "claims": Field(Tables(_CLAIM_FIELDS, unique="id"), default=[]),
    "assets": Field(
        Tables(
            {
                "name": Field(Text(), required=True, meaning="what is counted"),
                "count_before": Field(
                    Number(0, 1e6, whole=True), required=True, meaning="how many before"
                ),
                "count_after": Field(
                    Number(0, 1e6, whole=True), required=True, meaning="how many after"
                ),
                "is_virtual": Field(
                    Flag(), default=False, meaning="whether it is a virtual machine"
                ),
                "rack_units_each": Field(Number(0, 60)),
                "floor_space_each_m2": Field(Number(0, 1000)),
                "power_each_w": Field(_WATTS),
                "price_each_usd": Field(_PRICE),
            },
            unique="name",
        ),
        default=[],
    ),
}


@dataclass(frozen=True)
class Measurement:
    """One measured quantity on every option, and how many times better each is than the other."""

    name: str
    unit: str
    better: str
    values: dict[str, float]
    source: str

    def improvement(self, old: str, new: str) -> float | None:
        """How many times better `new` is: a ratio of rates, or the inverse ratio of latencies.

        None for a zero.
        """
        over, under = (new, old) if self.better == "higher" else (old, new)
        if over not in self.values or not self.values.get(under):
            return None
        return self.values[over] / self.values[under]


@dataclass(frozen=True)
class Claim:
    """A statement beside what the figures give.

    Attributes:
        computed: what the expression yields; None when a figure it needs is absent.
        difference_pct: how far the stated number is from it.
        holds: whether the statement agrees; None when it cannot be computed.
        reason: why, in a few words.
    """

    id: str
    statement: str
    stated: float
    relation: str
    expression: str
    computed: float | None
    difference_pct: float | None
    holds: bool | None
    reason: str


@dataclass(frozen=True)
class CostStudy:
    """Everything a cost file yields."""

    name: str
    source: str
    price_date: str
    reference: str
    goal: Goal
    options: tuple[OptionCost, ...]
    measurements: tuple[Measurement, ...]
    claims: tuple[Claim, ...]
    consolidation: Consolidation | None

    def option(self, name: str) -> OptionCost:
        """The figures of one option."""
        return next(cost for cost in self.options if cost.option.name == name)

    def ratio(self, name: str, figure: str) -> float | None:
        """A figure of one option over that of the reference.

        None where either lacks it or the reference's is 0.
        """
        mine, base = (
            self.option(name).figures.get(figure),
            self.option(self.reference).figures.get(figure),
        )
        return mine.value / base.value if mine and base and base.value else None


def read_cost_study(path: StrPath = SHIPPED_STUDY) -> CostStudy:
    """Read a cost file and work it out.

    Raises:
        InputError: with every mistake in the file.
    """
    path = Path(path)
    document = read_located(path)
    require_kind(document, ("cost",), READERS)
    collector = Collector(document)
    content = collector.top(_FIELDS)
    _check_across_tables(content, collector)
    collector.raise_if_any()
    return _study(content)


def _check_across_tables(content: Given, collector: Collector) -> None:
    """Mistakes that only show between two keys."""
    names = [option["name"] for option in content["options"] or []]
    if content["reference"] is not None and content["reference"] not in names:
        collector.add(
            ("reference",),
            f'is "{content["reference"]}", which is no option',
            "options: " + ", ".join(map(str, names)),
        )
    for index, option in enumerate(content["options"] or []):
        if option["name"] and not option["name"].isidentifier():
            hint = "claims refer to it, so write letters, digits and _, beginning with a letter"
            collector.add(
                ("options", index, "name"),
                f'is "{option["name"]}", which cannot stand in a formula',
                hint,
            )
        low, high = option["drive_power_low_w"], option["drive_power_high_w"]
        if (low is None) != (high is None):
            collector.add(
                ("options", index, "drive_power_low_w" if low is None else "drive_power_high_w"),
                "is missing",
                "give both",
            )
        elif low is not None and low > high:
            collector.add(
                ("options", index, "drive_power_low_w"),
                f"is {low:g}, above the highest power of {high:g}",
            )
        if option["raid"] and option["tested_drive_count"]:
            try:
                data_drive_count(option["raid"], int(option["tested_drive_count"]))
            except ValueError as error:
                collector.add(("options", index, "raid"), f"is impossible here: {error}")
    for index, measurement in enumerate(content["measurements"]):
        for name in measurement["values"] or {}:
            if name not in names:
                collector.add(
                    ("measurements", index, "values", name),
                    "is no option",
                    "options: " + ", ".join(map(str, names)),
                )
    for index, claim in enumerate(content["claims"]):
        try:
            parse_expression(claim["computed"] or "0")
        except ExpressionError as error:
            collector.add(
                ("claims", index, "computed"),
                str(error),
                "for instance hdd.purchase_usd / ssd.purchase_usd",
            )


def _study(content: Given) -> CostStudy:
    goal, energy = Goal(**content["goal"]), Energy(**content["energy"])
    costs = tuple(option_cost(CostOption(**option), goal, energy) for option in content["options"])
    measurements = tuple(Measurement(**measurement) for measurement in content["measurements"])
    facts = _facts(costs, measurements)
    assets = tuple(Asset(**asset) for asset in content["assets"])
    return CostStudy(
        name=content["name"],
        source=content["source"],
        price_date=content["price_date"],
        reference=content["reference"] or costs[0].option.name,
        goal=goal,
        options=costs,
        measurements=measurements,
        claims=tuple(judge_claim(claim, facts) for claim in content["claims"]),
        consolidation=consolidate(assets) if assets else None,
    )


def _facts(costs: tuple[OptionCost, ...], measurements: tuple[Measurement, ...]) -> dict[str, Fact]:
    """What claims may refer to: `hdd.purchase_usd`, `measured.transactional_iops.ssd`."""
    facts: dict[str, Fact] = {}
    for cost in costs:
        facts |= {f"{cost.option.name}.{name}": step.value for name, step in cost.figures.items()}
    for measurement in measurements:
        facts |= {
            f"measured.{measurement.name}.{name}": value
            for name, value in measurement.values.items()
        }
    return facts


def judge_claim(claim: Given, facts: Mapping[str, Fact]) -> Claim:
    """Compare a stated number with what its expression yields.

    Args:
        claim: a checked `[[claims]]` table.
        facts: figures by dotted name.
    """
    stated, relation, tolerance = (
        float(claim["stated"]),
        claim["relation"],
        float(claim["tolerance_pct"]),
    )
    head = (claim["id"], claim["statement"], stated, relation, claim["computed"])
    try:
        computed = float(evaluate(parse_expression(claim["computed"]), facts))
    except (ExpressionError, TypeError) as error:
        return Claim(*head, None, None, None, f"not evaluated: {error}")
    difference = None if computed == 0 else (stated / computed - 1) * 100
    if relation == "more_than":
        holds, asked = computed > stated, "more than stated"
    elif relation == "at_most":
        holds, asked = computed <= stated, "at most as stated"
    else:
        holds = computed == stated or (difference is not None and abs(difference) <= tolerance)
        asked = f"within {tolerance:g} %"
    return Claim(*head, computed, difference, holds, f"{asked}: {'yes' if holds else 'no'}")
