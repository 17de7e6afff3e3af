"""A catalogue written by a user: what is accepted, and every mistake in one named at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.sizing.catalogue import read_catalogue

GOOD = """kind = "catalogue"
name = "own arrays"
source = "vendor quotation of March"
rows = [
  { model = "A1", series = "A", drive_class = "SSD", drive_capacity_gb = 1920, raid = "RAID 6", usable_capacity_gb = 19200, transactional_iops = 90000, price_usd = 41000, source = "quotation" },
]
[[series]]
name = "A"
drive_slots = 13
hot_spares = 1
source = "data sheet"
"""  # noqa: E501


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """What the reader says about a catalogue, one line per mistake."""
    path = tmp_path / "catalogue.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_catalogue(path)
    return [
        f"{mistake.line} {mistake.where}: {mistake.message}" for mistake in caught.value.mistakes
    ]


def test_a_users_own_catalogue_is_read(tmp_path: Path) -> None:
    """Anyone adds arrays with a file; nothing about them is built in."""
    path = tmp_path / "own.toml"
    path.write_text(GOOD)
    (row,) = read_catalogue(path).rows
    assert (row.model, row.active_drives, row.transactional_iops, row.price_usd) == (
        "A1",
        12,
        90_000,
        41_000,
    )
    assert row.conditions.log_iops_included is False


def test_DAT_02_a_row_with_a_missing_column_is_named(tmp_path: Path) -> None:
    """A forgotten column is not the same as a figure nobody published."""
    found = mistakes(tmp_path, GOOD.replace("transactional_iops = 90000, ", ""))
    assert found == ["5 rows[1].transactional_iops: is missing"]


def test_all_mistakes_of_a_catalogue_come_at_once(tmp_path: Path) -> None:
    """Wrong numbers, unknown series, unknown keys and impossible RAID in one file are one round of
    correction.
    """
    text = GOOD.replace("drive_slots = 13", "drive_slots = -13\ncolour = 1").replace(
        'series = "A"', 'series = "B"'
    )
    found = mistakes(tmp_path, text.replace('"RAID 6"', '"RAID6"').replace("1920,", '"1.92 TB",'))
    assert [line.split(":")[0] for line in found] == [
        "5 rows[1].drive_capacity_gb",
        "5 rows[1].raid",
        "5 rows[1].series",
        "9 series[1].drive_slots",
        "10 series[1].colour",
    ]


def test_a_series_without_its_spares_is_named_once(tmp_path: Path) -> None:
    """Without the spares nothing can be said of the rows, so nothing is."""
    assert mistakes(tmp_path, GOOD.replace("hot_spares = 1\n", "")) == [
        "7 series[1].hot_spares: is missing"
    ]
    assert mistakes(tmp_path, GOOD.replace("drive_slots = 13\n", "")) == [
        "7 series[1].drive_slots: is missing"
    ]


def test_a_row_cannot_hold_more_than_its_drives(tmp_path: Path) -> None:
    """Ten data drives of 1,920 GB hold 19,200 GB.

    21,000 is a typing error or a forgotten parity drive.
    """
    found = mistakes(
        tmp_path, GOOD.replace("usable_capacity_gb = 19200", "usable_capacity_gb = 21000")
    )
    assert found == [
        "5 rows[1].usable_capacity_gb: is 21000, but 10 data drives of 1920 GB hold less"
    ]
    found = mistakes(tmp_path, GOOD.replace("drive_slots = 13", "drive_slots = 4"))
    assert found == ["5 rows[1].raid: is impossible here: RAID 6 cannot be built of 3 drives"]


def test_a_file_of_another_kind_is_refused_with_its_reader(tmp_path: Path) -> None:
    """Handing a requirements file to the wrong command is the likeliest mix-up."""
    path = tmp_path / "requirements.toml"
    path.write_text('kind = "requirements"\n')
    with pytest.raises(
        InputError,
        match=r'"catalogue" was expected\n    hint: `plimsoll size` reads files of this kind',
    ):
        read_catalogue(path)
