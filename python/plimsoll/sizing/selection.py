"""The six-step array choice.

From capacity and IOPS to a model, a drive, a RAID level and a number of arrays.

Source: section 3.4.1 of the Dell EqualLogic Exchange 2010 sizing paper. (1) settle the RAID level;
(2) sum all volumes, reserves, clones and replicas; (3) take enough arrays for the capacity; (4)
check their IOPS and add arrays of the same model where they fall short, never counting log IOPS
when the catalogue's figures already include them; (5) try every other row the same way; (6)
multiply by the number of copies, each on arrays of its own. Capacity needs are 1024-based, arrays
are sold in decimal GB, and the two are converted before they are compared (the paper compares them
directly). Limits: IOPS are taken to add up over arrays, as measured up to the catalogue's
`arrays_max`. The modelled rate that stands beside the formula is added by the command, from
`modelled.selected`; nothing is chosen by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.catalogue import READ_FRACTION, ArrayRow, Conditions
from plimsoll.sizing.raid import DriveRates, RaidLevel, planner_iops
from plimsoll.sizing.traced import WHOLE_DIGITS

Ranking = Literal["arrays", "drives", "price"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
Status = Literal["chosen", "possible", "rejected"]
SOURCE = "Dell EqualLogic Exchange 2010 sizing, section 3.4.1"
GB_PER_GIB = 1024**3 / 1000**3


@dataclass(frozen=True)
class Need:
    """What the arrays of one copy must hold and carry.

    Attributes:
        volumes_gb: decimal GB of all database and log volumes of one copy.
        database_iops: transactional database IOPS, log IOPS not counted.
        copies: copies of each database, the active one included.
        snapshot_gb: reserve for snapshots; likewise `clone_gb` and `replication_gb`.
        extra_iops: mobile, search and other clients outside the profile.
        log_iops: counted only against a catalogue whose figures exclude log I/O.
        databases: number of databases, None when unknown.
        raid_levels: RAID levels allowed; empty for any.
        drive_classes: drive classes allowed; empty for any.
        hot_spares_minimum: spares each array must have.
        arrays_per_copy_maximum: None for any number.
        ranking: what makes one possible row better than another.
    """

    volumes_gb: float
    database_iops: float
    copies: int = 1
    snapshot_gb: float = 0.0
    clone_gb: float = 0.0
    replication_gb: float = 0.0
    extra_iops: float = 0.0
    log_iops: float = 0.0
    databases: int | None = None
    raid_levels: tuple[RaidLevel, ...] = ()
    drive_classes: tuple[str, ...] = ()
    hot_spares_minimum: int = 1
    arrays_per_copy_maximum: int | None = None
    ranking: Ranking = "arrays"


@dataclass(frozen=True)
class Candidate:
    """One catalogue row judged against a need.

    Attributes:
        row: the catalogue row.
        arrays_for_capacity: arrays one copy needs for its capacity.
        arrays_for_iops: arrays one copy needs for its IOPS; None when no IOPS are published.
        arrays_per_copy: the larger of the two.
        arrays_total: over all copies.
        drives_total: over all copies, spares included.
        unused_gb: usable capacity of one copy left over.
        iops_per_copy: IOPS of one copy's arrays, on the basis the row states; None when not
            published.
        planner_iops_per_copy: what the planner's formula gives; None for an unknown drive class.
        model_absence: why no modelled figure stands beside the formula, where none does.
        price_total_usd: over all copies; None when the catalogue states no price.
        status: chosen, possible or rejected.
        reason: why, in a sentence.
    """

    row: ArrayRow
    arrays_for_capacity: int
    arrays_for_iops: int | None
    arrays_per_copy: int
    arrays_total: int
    drives_total: int
    unused_gb: float
    iops_per_copy: float | None
    planner_iops_per_copy: float | None
    model_absence: str
    price_total_usd: float | None
    status: Status
    reason: str


@dataclass(frozen=True)
class SelectionStep:
    """One of the six steps as it was carried out."""

    number: int
    title: str
    text: str


@dataclass(frozen=True)
class Selection:
    """The choice, every candidate with its reason, and what the choice rests on.

    Attributes:
        need: the need as given.
        required_gb: decimal GB of one copy, reserves included.
        required_iops: IOPS one copy must carry.
        chosen: the best possible candidate, None when there is none.
        candidates: every catalogue row, best first.
        steps: the six steps in words.
        caveats: where the need goes beyond what the catalogue was measured with.
    """

    need: Need
    required_gb: float
    required_iops: float
    chosen: Candidate | None
    candidates: tuple[Candidate, ...]
    steps: tuple[SelectionStep, ...]
    caveats: tuple[str, ...]


def required_capacity_gb(need: Need) -> float:
    """Step 2: all volumes of one copy plus reserves, in decimal GB."""
    return need.volumes_gb + need.snapshot_gb + need.clone_gb + need.replication_gb


def required_iops(need: Need, conditions: Conditions) -> float:
    """Step 4's requirement: database IOPS plus other clients.

    Log IOPS only where the catalogue excludes them.
    """
    return (
        need.database_iops
        + need.extra_iops
        + (0.0 if conditions.log_iops_included else need.log_iops)
    )


def arrays_needed(required: float, per_array: float) -> int:
    """Arrays that together reach a requirement; at least one.

    >>> arrays_needed(15768, 19500), arrays_needed(15768, 7200), arrays_needed(3 * 0.1, 0.1)
    (1, 3, 3)
    """
    # What binary fractions add to a fit that is exact buys no array.
    return max(1, math.ceil(round(required / per_array, WHOLE_DIGITS)))


def select_arrays(
    need: Need, rows: Sequence[ArrayRow], drive_iops: Mapping[str, DriveRates] | None = None
) -> Selection:
    """Carry out the six steps over every row of one or more catalogues.

    Args:
        need: what one copy must hold and carry, and how many copies.
        rows: the rows to choose from.
        drive_iops: planning IOPS by drive class, for the planner's formula beside the measured
            figure.

    Returns:
        The choice with every other row's reason. Rows that cannot serve come last.
    """
    judged = [_judge(row, need, drive_iops or {}) for row in rows]
    possible = sorted(
        (c for c in judged if c.status == "possible"), key=lambda c: _rank(c, need.ranking)
    )
    rejected = sorted(
        (c for c in judged if c.status == "rejected"), key=lambda c: _rank(c, "arrays")
    )
    chosen = (
        replace(possible[0], status="chosen", reason=_why_chosen(possible[0])) if possible else None
    )
    others = [
        replace(c, reason=_why_not_chosen(c, possible[0], need.ranking)) for c in possible[1:]
    ]
    candidates = ((chosen,) if chosen else ()) + tuple(others) + tuple(rejected)
    conditions = chosen.row.conditions if chosen else Conditions(log_iops_included=True)
    return Selection(
        need=need,
        required_gb=required_capacity_gb(need),
        required_iops=required_iops(need, conditions),
        chosen=chosen,
        candidates=candidates,
        steps=_steps(need, chosen, candidates),
        caveats=_caveats(need, chosen) if chosen else (),
    )


def _judge(row: ArrayRow, need: Need, drive_iops: Mapping[str, DriveRates]) -> Candidate:
    """Steps 1, 3 and 4 for one row; possible until the ranking says otherwise."""
    iops = required_iops(need, row.conditions)
    capacity_gb = required_capacity_gb(need)
    for_capacity = arrays_needed(capacity_gb, row.usable_capacity_gb)
    for_iops = arrays_needed(iops, row.transactional_iops) if row.transactional_iops else None
    per_copy = max(for_capacity, for_iops or 1)
    class_iops = drive_iops.get(row.drive_class)
    planned = (
        planner_iops(row.raid, row.active_drives, class_iops, READ_FRACTION) * per_copy
        if class_iops
        else None
    )
    objection = _objection(row, need, for_iops, per_copy)
    return Candidate(
        row=row,
        arrays_for_capacity=for_capacity,
        arrays_for_iops=for_iops,
        arrays_per_copy=per_copy,
        arrays_total=per_copy * need.copies,
        drives_total=per_copy * need.copies * row.drive_slots,
        unused_gb=per_copy * row.usable_capacity_gb - capacity_gb,
        iops_per_copy=row.transactional_iops * per_copy if row.transactional_iops else None,
        planner_iops_per_copy=planned,
        model_absence=_model_absence(row),
        price_total_usd=None if row.price_usd is None else row.price_usd * per_copy * need.copies,
        status="rejected" if objection else "possible",
        reason=objection,
    )


def _model_absence(row: ArrayRow) -> str:
    """Why no modelled rate stands beside the formula, and how to get one where that can be."""
    if row.preset is None:
        return f"no modelled preset stands for {row.model}: not evaluated"
    return f"not run here, it takes minutes: `plimsoll model {row.preset}`"


def _objection(row: ArrayRow, need: Need, for_iops: int | None, per_copy: int) -> str:
    """Every reason why a row cannot serve, or an empty text."""
    objections: list[str] = []
    if need.raid_levels and row.raid not in need.raid_levels:
        objections.append(
            f"{row.raid} is not among the levels asked for ({', '.join(need.raid_levels)})"
        )
    if need.drive_classes and row.drive_class not in need.drive_classes:
        objections.append(
            f"{row.drive_class} drives were not asked for ({', '.join(need.drive_classes)})"
        )
    if row.hot_spares < need.hot_spares_minimum and not row.spares_by_provider:
        objections.append(
            f"has {row.hot_spares} hot spares where {need.hot_spares_minimum} are asked for"
        )
    if for_iops is None:
        objections.append("no IOPS published, so step 4 cannot be checked")
    maximum = need.arrays_per_copy_maximum
    if maximum is not None and per_copy > maximum:
        objections.append(f"needs {_arrays(per_copy)} per copy where at most {maximum} are allowed")
    if need.ranking == "price" and row.price_usd is None:
        objections.append("the catalogue states no price to rank it by")
    return "; ".join(objections)


def _rank(candidate: Candidate, ranking: Ranking) -> tuple[float, ...]:
    """Smaller is better; ties fall to fewer arrays, less unused space, more IOPS."""
    first = {
        "arrays": float(candidate.arrays_total),
        "drives": float(candidate.drives_total),
        "price": candidate.price_total_usd if candidate.price_total_usd is not None else math.inf,
    }[ranking]
    return (first, candidate.arrays_total, candidate.unused_gb, -(candidate.iops_per_copy or 0.0))


def _why_chosen(candidate: Candidate) -> str:
    bound = _bound(candidate)
    return (
        f"{_arrays(candidate.arrays_per_copy)} per copy; {bound}; {candidate.unused_gb:,.0f} GB of "
        f"a copy stay unused"
    )


def _why_not_chosen(candidate: Candidate, best: Candidate, ranking: Ranking) -> str:
    if ranking == "price" and candidate.price_total_usd != best.price_total_usd:
        difference = (candidate.price_total_usd or 0.0) - (best.price_total_usd or 0.0)
        return f"would do, but costs {difference:,.2f} USD more"
    if ranking == "drives" and candidate.drives_total != best.drives_total:
        return f"would do, but takes {candidate.drives_total} drives instead of {best.drives_total}"
    if candidate.arrays_total != best.arrays_total:
        return (
            f"would do, but takes {_arrays(candidate.arrays_per_copy)} per copy, not "
            f"{best.arrays_per_copy} ({_bound(candidate)})"
        )
    if candidate.unused_gb > best.unused_gb:
        return (
            f"would do, but leaves {candidate.unused_gb - best.unused_gb:,.0f} GB more unused in "
            f"each copy"
        )
    return "would do as well as the chosen one"


def _bound(candidate: Candidate) -> str:
    for_iops = candidate.arrays_for_iops or 0
    if for_iops > candidate.arrays_for_capacity:
        return f"IOPS decide; capacity alone takes {candidate.arrays_for_capacity}"
    if for_iops < candidate.arrays_for_capacity:
        return f"capacity decides; IOPS alone take {for_iops}"
    return "capacity and IOPS ask for the same number"


def _steps(
    need: Need, chosen: Candidate | None, candidates: tuple[Candidate, ...]
) -> tuple[SelectionStep, ...]:
    iops = required_iops(
        need, chosen.row.conditions if chosen else Conditions(log_iops_included=True)
    )
    levels = (
        ", ".join(need.raid_levels)
        or "any level of the catalogue; RAID 10 for IOPS and rebuilds, RAID 50 for space"
    )
    capacity = required_capacity_gb(need)
    reserves = (
        f"{need.snapshot_gb:,.0f} snapshots + {need.clone_gb:,.0f} clones + "
        f"{need.replication_gb:,.0f} replicas"
    )
    total = (
        f"{need.volumes_gb:,.0f} GB volumes + {reserves} = {capacity:,.0f} GB (decimal) for one "
        f"copy"
    )
    rejected = sum(1 for candidate in candidates if candidate.status == "rejected")
    others = f"{len(candidates)} rows tried, {rejected} rejected"
    if chosen is None:
        texts = ("no row can serve", f"{iops:,.0f} IOPS needed", others, "nothing to multiply")
    else:
        row = chosen.row
        fits = (
            f"{_arrays(chosen.arrays_for_capacity)} x {row.usable_capacity_gb:,.0f} GB of "
            f"{row.title}"
        )
        carries = (
            f"{_arrays(chosen.arrays_per_copy)} x {row.transactional_iops or 0:,.0f} = "
            f"{chosen.iops_per_copy or 0:,.0f} IOPS"
            f"{' by formula' if row.iops_basis == 'formula' else ''}"
        )
        copies = f"{need.copies} copies" if need.copies > 1 else "1 copy"
        multiplied = (
            f"{copies} x {chosen.arrays_per_copy} = {_arrays(chosen.arrays_total)}, no array holds "
            f"two copies of a database"
        )
        texts = (fits, f"{carries} for {iops:,.0f} needed", others, multiplied)
    titles = ("RAID level", "Capacity", "Arrays for capacity", "IOPS check", "Other rows", "Copies")
    numbered = zip(titles, (levels, total, *texts), strict=True)
    return tuple(
        SelectionStep(number, title, text) for number, (title, text) in enumerate(numbered, start=1)
    )


def _caveats(need: Need, chosen: Candidate) -> tuple[str, ...]:
    """Where the need leaves the ground the catalogue was measured on."""
    conditions, arrays, caveats = chosen.row.conditions, chosen.arrays_per_copy, []
    per_array = math.ceil((need.databases or 0) / arrays)
    if conditions.databases_max and per_array > conditions.databases_max:
        caveats.append(
            f"IOPS were measured with up to {conditions.databases_max} databases on an array; here "
            f"it has {per_array}, "
            "and each one's background maintenance adds reads"
        )
    if conditions.arrays_max and arrays > conditions.arrays_max:
        caveats.append(
            f"scaling was measured up to {conditions.arrays_max} arrays; here a copy spans {arrays}"
        )
    if conditions.log_iops_included and need.log_iops:
        caveats.append(
            f"{need.log_iops:,.0f} log IOPS are not added: the catalogue's figures already carry "
            f"log I/O"
        )
    if chosen.row.iops_basis == "formula":
        caveats.append(
            "nobody published IOPS of this class at database pages: they follow from the planner's "
            "formula over the rates of its drives"
        )
    if conditions.dedicated:
        caveats.append("the IOPS hold for arrays that serve nothing else")
    if need.copies == 1:
        caveats.append(
            "with one copy, logs and databases belong on different RAID sets, and backups off the "
            "array"
        )
    return (*caveats, "published IOPS are a starting point: test the own profile before buying")


def _arrays(count: int) -> str:
    return "1 array" if count == 1 else f"{count} arrays"
