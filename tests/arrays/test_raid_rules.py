"""What drives can form is one truth.

Sizing, selection and the modelled array agree on every level and number of drives.
"""

import pytest

from plimsoll import _native
from plimsoll.arrays.presets import described_array
from plimsoll.sizing.raid import RAID_LEVELS, data_drive_count, sets_of

#: Drives' worth of data of 1 to 16 drives, by the definition of each level; None where it cannot be
#: built.
EXPECTED = {
    "RAID 0": list(range(1, 17)),
    "RAID 1": [None, 1] + [None] * 14,
    "RAID 5": [None, None, *range(2, 16)],
    "RAID 6": [None, None, None, *range(2, 15)],
    "RAID 10": [None, None, None, 2, None, 3, None, 4, None, 5, None, 6, None, 7, None, 8],
    "RAID 50": [None] * 5 + [4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 13],
}


def test_the_levels_are_the_same_everywhere() -> None:
    assert tuple(_native.raid_levels()) == RAID_LEVELS == tuple(EXPECTED)


@pytest.mark.parametrize("level", RAID_LEVELS)
def test_sizing_and_model_agree_on_what_can_be_built(level: str) -> None:
    """A design that sizing proposes and the model refuses is of no use to anybody, and the reverse
    hides what would do.
    """
    for drive_count, expected in enumerate(EXPECTED[level], start=1):
        sets = sets_of(level, drive_count)
        assert sum(sets) == drive_count
        usable, reasons = _native.raid_group(level, sets)
        changed, problems = described_array(
            "nearline-raid6", {"level": level, "sets": sets, "slot_count": 64}
        )
        problems = [problem for problem in problems if problem[0] == ("sets",)]
        assert usable == expected, (level, drive_count)
        assert bool(problems) == bool(reasons) == (expected is None), (
            level,
            drive_count,
            changed["sets"],
        )
        if expected is None:
            with pytest.raises(
                ValueError, match=f"{level} cannot be built of {drive_count} drives"
            ):
                data_drive_count(level, drive_count)
        else:
            assert data_drive_count(level, drive_count) == expected


def test_one_set_is_no_raid_50_and_two_are_no_raid_5() -> None:
    """Sets are counted by the same rule that counts drives."""
    assert _native.raid_group("RAID 50", [6])[1][0][0] == "has 1 sets, which RAID 50 cannot have"
    assert _native.raid_group("RAID 5", [3, 3])[1][0][0] == "has 2 sets, which RAID 5 cannot have"
    assert _native.raid_group("RAID 50", [3, 3]) == (4, [])


def test_a_level_that_is_none_is_told_what_there_is() -> None:
    with pytest.raises(_native.ConfigError, match="name one of RAID 0, RAID 1, RAID 5"):
        _native.raid_group("RAID 7", [3])
