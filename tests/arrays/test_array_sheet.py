"""The types of what files of arrays hold are those of the fields that check them."""

from collections.abc import Mapping
from typing import get_type_hints

import pytest

from plimsoll.arrays.faults import FAULT
from plimsoll.arrays.neighbours import NEIGHBOUR
from plimsoll.arrays.pools import GROUP, VOLUME
from plimsoll.arrays.presets import _ARRAY, _FLASH_DRIVE, _HARD_DRIVE
from plimsoll.documents import array_sheet
from plimsoll.inputs.schema import Field

#: What is put to a row after it was checked.
ADDED = {"sources", "drive_sheet", "log_drive_sheet"}


@pytest.mark.parametrize(
    ("sheet", "fields"),
    [
        (array_sheet.ArraySheet, _ARRAY),
        (array_sheet.DriveSheet, _HARD_DRIVE | _FLASH_DRIVE),
        (array_sheet.GroupSheet, GROUP),
        (array_sheet.VolumeSheet, VOLUME),
        (array_sheet.NeighbourSheet, NEIGHBOUR),
        (array_sheet.FaultSheet, FAULT),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_field_has_its_key(sheet: type, fields: Mapping[str, Field]) -> None:
    """A figure without a type would be missed by the type checker where it is used."""
    hints = get_type_hints(sheet)
    assert hints.keys() - ADDED == fields.keys()
    may_be_absent = {
        name for name, hint in hints.items() if type(None) in getattr(hint, "__args__", ())
    }
    assert may_be_absent == {
        name for name, field in fields.items() if not field.required and field.default is None
    }
