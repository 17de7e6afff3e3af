"""The data files: every row has a source and a basis, every name its unit, and what is changed
takes effect.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sizing.design import COMPARED_EDITIONS, size
from plimsoll.sizing.guidance import BASES, cite, editions, profiles, read_data
from plimsoll.sizing.output_json import sizing_data
from plimsoll.sizing.requirement_fields import EDITIONS, QUANTITIES
from plimsoll.units import unit_of_name
from tests.support.sizing_designs import make
from tools.sizing_reference import rewritten

GUIDANCE = read_data("guidance.toml")
FIGURES = [
    (row["name"], name, figure)
    for row in GUIDANCE["edition"]
    for name, figure in row["figures"].items()
]


@pytest.mark.parametrize(
    ("edition", "name", "figure"), FIGURES, ids=[f"{row[0]}-{row[1]}" for row in FIGURES]
)
def test_every_figure_has_unit_source_and_basis(
    edition: str, name: str, figure: dict[str, Any]
) -> None:
    """DAT-02, DAT-03: a number without a source is an opinion, and without a unit not even that."""
    assert set(figure) == {"value", "source", "basis"}
    assert unit_of_name(name)
    assert figure["basis"] in BASES
    assert figure["source"].strip()
    if figure["basis"] in ("read", "derived"):
        assert cite(figure["source"], GUIDANCE["sources"]) != figure["source"], (
            "a figure that was read names its document"
        )


def test_every_profile_row_has_a_source() -> None:
    """DAT-02: profiles are data, editable, each row with where it comes from."""
    data = read_data("profiles.toml")
    for row in [*data["profile"], *data["row"]]:
        assert row["source"]
        assert row["basis"] in BASES
    assert profiles()["very heavy"].messages_per_day == 150


def test_editions_inherit_and_state_only_what_differs() -> None:
    known = editions()
    assert set(EDITIONS) <= set(known)
    assert known["exchange_2019"].number("log_file_mb") == known["exchange_2010"].number(
        "log_file_mb"
    )
    assert known["exchange_2019"].number("max_database_standalone_gb") == 200
    assert known["exchange_2010"].number("max_database_standalone_gb") == 100


def test_a_changed_figure_changes_the_sizing() -> None:
    """DAT-02: nothing repeats the figures of the data files in code."""
    figure = {"value": 2.0, "source": "test", "basis": "assumed"}
    extra = {
        "edition": [{"name": "exchange_2010", "figures": {"database_overhead_factor": figure}}]
    }
    changed = editions(extra=extra)["exchange_2010"]
    usual, other = size(make()), size(replace(make(), guidance=changed))
    ratio = (
        other.results["total_database_size_gb"].value
        / usual.results["total_database_size_gb"].value
    )
    assert ratio == pytest.approx(2 / 1.2)
    assert any("database_overhead_factor" in finding.message for finding in other.findings), (
        "an assumption is told"
    )


def test_modern_guidance_stands_beside_that_of_2010() -> None:
    """Each edition's row says how well its figures are known, so that a recalled one is not quoted
    as read.
    """
    rows = {row.edition: row for row in size(make()).editions}
    assert tuple(rows) == COMPARED_EDITIONS
    assert rows["exchange_2013"].iops_per_user == pytest.approx(0.1005)
    assert rows["exchange_2013"].iops_per_user < rows["exchange_2010"].iops_per_user
    assert "recalled" in rows["exchange_2013"].bases
    assert set(rows["exchange_2010"].bases) <= {"read", "derived"}


def test_the_reference_page_is_that_of_the_fields() -> None:
    """A key that is not documented is found by reading the source, which is not how people find
    keys.
    """
    page = (Path(__file__).parents[2] / "docs/reference/sizing.md").read_text()
    assert rewritten(page) == page, "run python -m tools.sizing_reference docs/reference/sizing.md"
    for table, quantities in QUANTITIES.items():
        assert all(f"| `{key}` |" in page for key in quantities), table


def numbers_without_units(value: Any, path: str = "") -> list[str]:
    """Keys of plain data that hold a number and do not end in a unit."""
    free = {
        "value",
        "published",
        "formulas",
        "users",
        "users_by_capacity",
        "users_by_iops",
        "count",
        "servers",
    }
    free |= {
        "database",
        "worst_failed_server",
        "lagged_count",
        "per_second",
        "database_ios_each",
        "users_max",
    }
    free |= {"count_min", "active_count", "passive_count"}
    found = []
    if isinstance(value, dict):
        for key, item in value.items():
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            if number and key not in free and unit_of_name(key) is None:
                found.append(f"{path}.{key}")
            found += numbers_without_units(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            found += numbers_without_units(item, path)
    return found


def test_every_number_of_the_json_has_its_unit_in_its_name() -> None:
    """DAT-03: the lint for names, over everything that `--json` writes."""
    assert numbers_without_units(sizing_data(size(make(storage={"measured_iops": 1000})))) == []
