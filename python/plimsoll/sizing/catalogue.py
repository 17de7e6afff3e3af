"""A catalogue of storage arrays: what each array with each drive and RAID level holds and carries.

A row is one purchasable choice. Two catalogues are shipped: classes of storage of the 2020s, and
the published EqualLogic one (Tables 12 and 13 of the Dell Exchange 2010 sizing paper). Anyone adds
arrays by writing another file of `kind = "catalogue"`. Every column must be there: a model whose
IOPS nobody measured says "not published", or "by formula" where the planner's formula over the
rates of its drives shall stand for them. Limits: capacities are decimal GB; a row whose usable
capacity exceeds what its data drives hold is refused.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.schema import (
    READERS,
    Collector,
    Field,
    Flag,
    Given,
    ListOf,
    Number,
    Table,
    Tables,
    Text,
    require_kind,
)
from plimsoll.inputs.toml_lines import read_located
from plimsoll.sizing.raid import (
    RAID_LEVELS,
    DriveRates,
    RaidLevel,
    data_drive_count,
    planner_iops,
)

NOT_PUBLISHED, BY_FORMULA = "not published", "by formula"
#: What a row's IOPS rest on: a figure that somebody published, or the planner's formula.
IopsBasis = Literal["published", "formula"]
DATA_FOLDER = Path(__file__).parent.parent / "data"
SHIPPED_CATALOGUE = DATA_FOLDER / "catalogue_2020s.toml"
EQUALLOGIC_2010 = DATA_FOLDER / "catalogue_equallogic_2010.toml"
#: The built-in catalogues by the names that commands know them by; the first is the default.
CATALOGUES = {"shipped": SHIPPED_CATALOGUE, "equallogic_2010": EQUALLOGIC_2010}
#: Reads as a share of database I/O in the planner's formula; the paper gives writes as 40 to 60 %,
#: 50 % used.
READ_FRACTION = 0.5

#: Which command reads which kind of file, for the hint about a file of the wrong kind.
_ROW_FIELDS = {
    "model": Field(Text(), required=True, meaning="the array's model name"),
    "series": Field(
        Text(), required=True, meaning="the name of a [[series]], which states slots and spares"
    ),
    "drive_class": Field(Text(), required=True, meaning='such as "SAS 15k" or "SATA 7.2k"'),
    "drive_capacity_gb": Field(
        Number(1, 1e6), required=True, meaning="decimal GB of one drive, as sold"
    ),
    "raid": Field(Text(RAID_LEVELS), required=True, meaning="one of " + ", ".join(RAID_LEVELS)),
    "usable_capacity_gb": Field(
        Number(1, 1e9), required=True, meaning="decimal GB a full array offers"
    ),
    "transactional_iops": Field(
        Number(1, 1e9, words=(NOT_PUBLISHED, BY_FORMULA)),
        required=True,
        meaning=f'measured host IOPS, "{NOT_PUBLISHED}", or "{BY_FORMULA}" of the planner',
    ),
    "source": Field(Text(), required=True, meaning="where the row's figures come from"),
    "price_usd": Field(Number(0, 1e9), meaning="purchase price of the full array"),
    "preset": Field(Text(), meaning="the modelled array that stands for it, see `plimsoll model`"),
}
_SERIES_FIELDS = {
    "name": Field(Text(), required=True, meaning="what the rows call this series"),
    "drive_slots": Field(
        Number(1, 10_000, whole=True),
        required=True,
        meaning="drives in a full array, spares included",
    ),
    "hot_spares": Field(
        Number(0, 1_000, whole=True), required=True, meaning="drives kept as hot spares"
    ),
    "source": Field(Text(), required=True, meaning="where these figures come from"),
    "spares_by_provider": Field(
        Flag(), default=False, meaning="whether the provider replaces drives, so that none is owned"
    ),
    "iops_max": Field(
        Number(1, 1e9), meaning="host IOPS that links or controllers pass on, whatever the drives"
    ),
}
_CONDITION_FIELDS = {
    "databases_max": Field(
        Number(1, 1e6, whole=True), meaning="databases per array the IOPS were measured with"
    ),
    "arrays_max": Field(
        Number(1, 1e6, whole=True), meaning="arrays up to which scaling was measured"
    ),
    "log_iops_included": Field(
        Flag(), default=False, meaning="whether log I/O ran on the array while IOPS were measured"
    ),
    "dedicated": Field(Flag(), default=False, meaning="whether the array served nothing else"),
    "excluded": Field(ListOf(Text()), default=[], meaning="models left out, and why"),
}
_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the catalogue"),
    "source": Field(Text(), required=True, meaning="where its figures come from"),
    "rows": Field(
        Tables(_ROW_FIELDS, count_minimum=1),
        required=True,
        meaning="one row per array, drive and RAID level",
    ),
    "series": Field(
        Tables(_SERIES_FIELDS, count_minimum=1, unique="name"),
        required=True,
        meaning="slots and spares",
    ),
    "conditions": Field(Table(_CONDITION_FIELDS), meaning="what the measured IOPS hold for"),
}


@dataclass(frozen=True)
class Conditions:
    """What a catalogue's measured IOPS hold for; None means not stated."""

    databases_max: int | None = None
    arrays_max: int | None = None
    log_iops_included: bool = False
    dedicated: bool = False
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArrayRow:
    """One array with one drive and one RAID level.

    Attributes:
        model: model name.
        drive_class: interface and speed of the drives.
        drive_capacity_gb: decimal GB of one drive.
        raid: RAID level of the whole array.
        usable_capacity_gb: decimal GB the array offers.
        transactional_iops: host IOPS, None when not published.
        drive_slots: drives in the array, spares included.
        hot_spares: spares among them.
        price_usd: purchase price, None when not stated.
        source: where the figures come from.
        conditions: what the measured IOPS hold for.
        iops_basis: whether the IOPS were published, or follow from the planner's formula.
        spares_by_provider: whether the provider replaces failed drives, so that no spare is owned.
        preset: the modelled array that stands for it, None where none does.
    """

    model: str
    drive_class: str
    drive_capacity_gb: float
    raid: RaidLevel
    usable_capacity_gb: float
    transactional_iops: float | None
    drive_slots: int
    hot_spares: int
    price_usd: float | None
    source: str
    conditions: Conditions = Conditions()
    iops_basis: IopsBasis = "published"
    spares_by_provider: bool = False
    preset: str | None = None

    @property
    def title(self) -> str:
        """The row in words: `PS6500E, 500 GB SATA 7.2k, RAID 50`."""
        return f"{self.model}, {self.drive_capacity_gb:g} GB {self.drive_class}, {self.raid}"

    @property
    def active_drives(self) -> int:
        """Drives in the RAID set, spares not counted."""
        return self.drive_slots - self.hot_spares


@dataclass(frozen=True)
class Catalogue:
    """The rows of one file."""

    name: str
    source: str
    rows: tuple[ArrayRow, ...]


def read_catalogue(path: Path = SHIPPED_CATALOGUE) -> Catalogue:
    """Read a catalogue file.

    Raises:
        InputError: with every mistake in the file: missing columns, unknown series, impossible
            RAID, too much capacity.
    """
    document = read_located(path)
    require_kind(document, ("catalogue",), READERS)
    collector = Collector(document)
    content = collector.top(_FIELDS)
    series = {
        entry["name"]: entry for entry in content["series"] or [] if isinstance(entry["name"], str)
    }
    stated = dict(content["conditions"] or {})
    conditions = Conditions(**{**stated, "excluded": tuple(stated.get("excluded", ()))})
    rows = [
        _row(row, index, series, conditions, collector)
        for index, row in enumerate(content["rows"] or [])
    ]
    collector.raise_if_any()
    return Catalogue(content["name"], content["source"], tuple(row for row in rows if row))


def _row(
    row: Given,
    index: int,
    series: dict[str, Given],
    conditions: Conditions,
    collector: Collector,
) -> ArrayRow | None:
    """One row joined with its series; None, with mistakes noted, when it does not hold together."""
    known = series.get(row["series"])
    if row["series"] is not None and known is None:
        names = ", ".join(f'"{name}"' for name in series)
        collector.add(
            ("rows", index, "series"),
            f'is "{row["series"]}", which no [[series]] describes',
            f"known: {names}",
        )
    if known is None or any(
        row[key] is None for key, field in _ROW_FIELDS.items() if field.required
    ):
        return None
    slots, spares = known["drive_slots"], known["hot_spares"]
    if slots is None or spares is None:
        return None
    try:
        data_drives = data_drive_count(row["raid"], slots - spares)
    except ValueError as error:
        collector.add(
            ("rows", index, "raid"),
            f"is impossible here: {error}",
            f"{row['series']} has {slots} slots, {spares} spares",
        )
        return None
    if row["usable_capacity_gb"] > data_drives * row["drive_capacity_gb"]:
        message = (
            f"is {row['usable_capacity_gb']:g}, but {data_drives} data drives of "
            f"{row['drive_capacity_gb']:g} GB hold less"
        )
        collector.add(
            ("rows", index, "usable_capacity_gb"),
            message,
            "check the drive size, the spares and the RAID level",
        )
        return None
    stated = row["transactional_iops"]
    by_formula = stated == BY_FORMULA
    rates = read_drive_classes().get(row["drive_class"])
    if by_formula and rates is None:
        collector.add(
            ("rows", index, "drive_class"),
            f'is "{row["drive_class"]}", for which the planner\'s formula has no rate',
            nearest_names(row["drive_class"], read_drive_classes()),
        )
        return None
    iops = None if by_formula or stated == NOT_PUBLISHED else float(stated)
    if by_formula and rates is not None:
        iops = planner_iops(row["raid"], slots - spares, rates, READ_FRACTION)
        iops = min(iops, known["iops_max"] or iops)
    return ArrayRow(
        model=row["model"],
        drive_class=row["drive_class"],
        drive_capacity_gb=row["drive_capacity_gb"],
        raid=row["raid"],
        usable_capacity_gb=row["usable_capacity_gb"],
        transactional_iops=iops,
        drive_slots=int(slots),
        hot_spares=int(spares),
        price_usd=row["price_usd"],
        source=row["source"],
        conditions=conditions,
        iops_basis="formula" if by_formula else "published",
        spares_by_provider=bool(known["spares_by_provider"]),
        preset=row["preset"],
    )


@cache
def read_drive_classes(path: Path = DATA_FOLDER / "drives.toml") -> dict[str, DriveRates]:
    """Planning rates of one drive, by drive class.

    Raises:
        InputError: with every mistake in the file.
    """
    document = read_located(path)
    require_kind(document, ("drives",), READERS)
    fields = {
        "name": Field(Text(), required=True),
        "classes": Field(
            Tables(
                {
                    "name": Field(Text(), required=True),
                    "planning_iops": Field(Number(1, 1e7), required=True),
                    "planning_write_iops": Field(Number(1, 1e7)),
                    "source": Field(Text(), required=True),
                },
                unique="name",
            ),
            required=True,
        ),
    }
    collector = Collector(document)
    content = collector.top(fields)
    collector.raise_if_any()
    return {
        entry["name"]: DriveRates(
            entry["planning_iops"], entry["planning_write_iops"] or entry["planning_iops"]
        )
        for entry in content["classes"]
    }
