"""The built-in catalogue of the 2020s: its figures follow from the sources it names, and the preset
of each row is the same storage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.arrays.presets import array_preset, shipped_arrays, shipped_drives
from plimsoll.inputs.mistakes import InputError
from plimsoll.pipeline.offers import storage_offers
from plimsoll.sizing.catalogue import (
    EQUALLOGIC_2010,
    READ_FRACTION,
    ArrayRow,
    read_catalogue,
    read_drive_classes,
)
from plimsoll.sizing.design import size
from plimsoll.sizing.raid import planner_iops, usable_capacity_gb
from plimsoll.sizing.selection import Need, select_arrays
from tests.support.sizing_designs import make

ROWS = read_catalogue().rows
PAGE_BYTES = 32_768
#: As printed: MB/s of reads in sequence, random reads and random writes of 4 KiB a second.
SHEETS = {
    "NVMe TLC": (6_600, 1_000_000, 190_000),
    "NVMe QLC": (7_000, 1_005_000, 38_000),
    "SAS SSD": (2_100, 400_000, 50_000),
}


@pytest.mark.parametrize("name", SHEETS)
def test_rates_of_flash_follow_from_its_data_sheet(name: str) -> None:
    """A sheet's rate at 4 KiB taken for database pages would promise eight times too much."""
    read_mb_per_s, reads, writes = SHEETS[name]
    rates = read_drive_classes()[name]
    assert rates.read_iops == round(min(reads, read_mb_per_s * 1e6 / PAGE_BYTES))
    assert rates.write_iops == writes * 4_096 / PAGE_BYTES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.title}, {row.transactional_iops:g}")
def test_every_row_holds_what_its_drives_hold_and_carries_what_its_formula_gives(
    row: ArrayRow,
) -> None:
    """A row typed by hand drifts from its drives."""
    assert row.usable_capacity_gb == usable_capacity_gb(
        row.raid, row.drive_slots, row.hot_spares, row.drive_capacity_gb
    )
    if row.iops_basis == "published":
        assert row.drive_class == "cloud volume", "only caps of cloud volumes are published"
        return
    rates = read_drive_classes()[row.drive_class]
    formula = planner_iops(row.raid, row.active_drives, rates, READ_FRACTION)
    links = 390_625 if row.model.startswith("All-flash") else float("inf")
    assert row.transactional_iops == pytest.approx(min(formula, links))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.preset], ids=lambda row: str(row.preset)
)
def test_the_preset_of_a_row_is_the_same_storage(row: ArrayRow) -> None:
    """A modelled rate of other drives beside a row would be worse than none."""
    array = array_preset(str(row.preset))
    if row.spares_by_provider:
        bytes_limit = array["cap_mb_per_s"] * 1e6 / PAGE_BYTES
        limit = min(array["cap_iops"], bytes_limit)
        assert row.transactional_iops == pytest.approx(limit, rel=1e-3)
        return
    assert (array["level"], sum(array["sets"])) == (row.raid, row.active_drives)
    assert (array["spare_count"], array["slot_count"]) == (row.hot_spares, row.drive_slots)
    assert array["drive_sheet"]["capacity_gb"] == row.drive_capacity_gb


def test_every_preset_of_the_2020s_stands_in_the_catalogue_or_is_older() -> None:
    """A preset that no row names would be found by nobody who chooses."""
    named = {row.preset for row in ROWS}
    older = {"nvme-server", "sata-ssd-raid", "nearline-raid6"}
    papers = {name for name in shipped_arrays() if name.startswith(("emc-", "equallogic-"))}
    papers |= {"netapp-fas3050", "dell-md3000i", "sandisk-server-hdd", "sandisk-server-ssd"}
    assert set(shipped_arrays()) - papers - older == named - {None}
    assert len(shipped_drives()) == 18


def test_a_provider_needs_no_spare_and_a_server_does() -> None:
    """A volume of a cloud has no slots for spares; that must not reject it."""
    need = Need(volumes_gb=10_000, database_iops=1_000)
    found = {row.row.title: row for row in select_arrays(need, ROWS).candidates}
    assert found["NVMe server, 4 drives, 7680 GB NVMe TLC, RAID 10"].reason == (
        "has 0 hot spares where 1 are asked for"
    )
    cloud = [row for row in found.values() if row.row.spares_by_provider]
    assert cloud and all(row.status != "rejected" for row in cloud)


def test_bursts_are_never_the_rate_of_a_cloud_volume() -> None:
    """What credits pay for ends after half an hour; a database stays."""
    rates = {row.model: row.transactional_iops for row in ROWS}
    assert rates["Cloud volume, burst credits, 500 GiB"] == 1_500
    assert rates["Cloud disk, burst credits, 512 GiB"] == 2_300


def test_a_formula_needs_a_rate_for_its_drives(tmp_path: Path) -> None:
    """A misspelt class must not end in a row without IOPS, nor in a traceback."""
    text = (
        'kind = "catalogue"\nname = "x"\nsource = "x"\nrows = [\n'
        '{ model = "A", series = "S", drive_class = "NVMe TLD", drive_capacity_gb = 10, '
        'raid = "RAID 10", usable_capacity_gb = 20, transactional_iops = "by formula", '
        'source = "x" },\n]\n'
        '[[series]]\nname = "S"\ndrive_slots = 4\nhot_spares = 0\nsource = "x"\n'
    )
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_catalogue(path)
    (mistake,) = refusal.value.mistakes
    assert (mistake.line, mistake.where) == (5, "rows[1].drive_class")
    assert "no rate" in mistake.message and "NVMe TLC" in mistake.hint
    path.write_text(text.replace("TLD", "TLC").replace("spares = 0", "spares = 0\niops_max = 9"))
    assert read_catalogue(path).rows[0].transactional_iops == 9


def test_a_sizing_is_shown_storage_that_holds_it() -> None:
    """Who sizes wants to know what to look for; each offer holds the result and carries it."""
    sizing = size(make())
    offers = storage_offers(sizing)
    assert 1 <= len(offers) <= 3
    assert len({offer.row.drive_class for offer in offers}) == len(offers)
    for offer in offers:
        assert offer.unused_gb >= 0
        assert (offer.iops_per_copy or 0) >= sizing.results["database_iops"].value
    of_2010 = {row.model for row in read_catalogue(EQUALLOGIC_2010).rows}
    assert not of_2010 & {offer.row.model for offer in offers}
