"""TCO-07: what is counted, housed, powered and paid before and after several machines become fewer.

Source: the consolidation the papers show rather than compute: sixteen virtual machines on two
cluster nodes (Dell MD3000i), mailbox servers as virtual machines (Dell EqualLogic), fewer drives
and rack units (SanDisk). Items are multiplied and summed; an item that is a virtual machine takes
no rack space, power or purchase of its own. Limits: a figure nobody stated for an item counts as
nothing and is listed, so a saving is never claimed silently.
"""

from __future__ import annotations

from plimsoll.inputs.records import dataclass


@dataclass(frozen=True)
class Asset:
    """One kind of thing that is counted before and after.

    Attributes:
        name: what it is.
        count_before: how many there are before; likewise `count_after`.
        is_virtual: whether it is a virtual machine.
        rack_units_each: height of one, None when not stated; likewise the other `each` figures.
    """

    name: str
    count_before: int
    count_after: int
    is_virtual: bool = False
    rack_units_each: float | None = None
    floor_space_each_m2: float | None = None
    power_each_w: float | None = None
    price_each_usd: float | None = None


@dataclass(frozen=True)
class Totals:
    """Sums over all assets on one side."""

    physical_count: int
    virtual_count: int
    rack_units: float
    floor_space_m2: float
    power_w: float
    price_usd: float


@dataclass(frozen=True)
class Consolidation:
    """Both sides, what is saved, and which figures were not stated."""

    before: Totals
    after: Totals
    saved: Totals
    virtual_per_physical_after: float | None
    not_stated: tuple[str, ...]


_EACH = {
    "rack_units": "rack_units_each",
    "floor_space_m2": "floor_space_each_m2",
    "power_w": "power_each_w",
    "price_usd": "price_each_usd",
}


def consolidate(assets: tuple[Asset, ...]) -> Consolidation:
    """Sum the assets before and after.

    >>> host = Asset("node", 16, 2, rack_units_each=2)
    >>> consolidate((host, Asset("virtual machine", 0, 16, is_virtual=True))).saved.rack_units
    28.0
    """
    before, after = _totals(assets, "count_before"), _totals(assets, "count_after")
    saved = Totals(
        **{
            name: getattr(before, name) - getattr(after, name)
            for name in Totals.__dataclass_fields__
        }
    )
    ratio = after.virtual_count / after.physical_count if after.physical_count else None
    not_stated = tuple(
        f"{asset.name}: {name}"
        for asset in assets
        if not asset.is_virtual
        for name, each in _EACH.items()
        if getattr(asset, each) is None
    )
    return Consolidation(before, after, saved, ratio, not_stated)


def _totals(assets: tuple[Asset, ...], side: str) -> Totals:
    physical = [asset for asset in assets if not asset.is_virtual]
    sums = {
        name: float(sum(getattr(asset, side) * (getattr(asset, each) or 0.0) for asset in physical))
        for name, each in _EACH.items()
    }
    return Totals(
        physical_count=sum(getattr(asset, side) for asset in physical),
        virtual_count=sum(getattr(asset, side) for asset in assets if asset.is_virtual),
        **sums,
    )
