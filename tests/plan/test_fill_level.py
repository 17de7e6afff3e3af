"""Databases far smaller than the design flatter the storage.

Warned of before the run, and again after it.
"""

from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.fill_level import far_below_design

GIB = 1 << 30


def found(size_gib: int, **target: Any) -> list[str]:
    """The warnings of one database on a file system of 1000 GiB."""
    options = {
        "target": [{"name": "disk", "path": "/data", **target}],
        "instance": [{"name": "one", "database_size_mib": size_gib * 1024}],
    }
    facts = {"file_system": {"size_bytes": 1000 * GIB, "mount_point": "/data"}}
    return far_below_design(plan_of_options(options), [facts])


@pytest.mark.parametrize(("size_gib", "is_warned"), [(399, True), (400, False), (900, False)])
def test_without_a_design_the_published_tests_are_the_measure(
    size_gib: int, is_warned: bool
) -> None:
    """They filled 46 to 80 %; below 40 % a disk shows its fastest tracks only."""
    assert bool(found(size_gib)) == is_warned


@pytest.mark.parametrize(
    ("size_gib", "percent", "is_warned"), [(639, 80, True), (641, 80, False), (161, 20, False)]
)
def test_a_stated_design_is_the_measure(size_gib: int, percent: int, is_warned: bool) -> None:
    """A design that fills a fifth is honest at a fifth, and one that fills four fifths is not
    tested at half of it.
    """
    warnings = found(size_gib, design_used_percent=percent)
    assert bool(warnings) == is_warned
    assert all(f"{percent}% of the design" in text for text in warnings)


def test_an_impossible_design_is_a_mistake() -> None:
    """More than the whole cannot be filled."""
    with pytest.raises(InputError, match="design_used_percent"):
        found(100, design_used_percent=180)


def test_a_device_without_a_file_system_is_not_judged() -> None:
    """A database on a whole device fills all of it."""
    plan = plan_of_options(
        {"target": [{"name": "d", "path": "/data"}], "instance": [{"name": "one"}]}
    )
    assert far_below_design(plan, [{"file_system": None}]) == []
