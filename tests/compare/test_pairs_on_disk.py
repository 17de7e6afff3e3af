"""What pairs of runs on a disk are counted as: a gate that counts nothing passes everything."""

import pytest

from tests.compare.on_disk import FOUND, is_different, report


@pytest.mark.parametrize(
    ("word", "different"),
    [
        ("worse", True),
        ("better", True),
        ("changed", True),
        ("same", False),
        ("not told apart", False),
        ("none, worse", True),
        ("none, same", False),
        ("none, None", False),
    ],
)
def test_a_word_tells_apart_or_not(word: str, different: bool) -> None:
    """Also without an interval: who reads "worse" takes the runs for different."""
    assert is_different(word) == different


def test_pairs_are_counted_once_and_figures_by_name() -> None:
    """Five per cent of pairs may be called different, in however many figures."""
    found = [
        {FOUND: "worse", "database_iops": "worse"},
        {FOUND: "worse", "database_iops": "same"},
        {FOUND: "not told apart", "database_iops": "none, same"},
    ]
    lines = report("slower", found)
    assert lines[0].startswith("2 of 3 pairs called different")
    assert lines[1] == f"pairs whose figure has an interval: {{'{FOUND}': 3, 'database_iops': 2}}"
    assert lines[2] == f"2 of 3 found in {FOUND}"
