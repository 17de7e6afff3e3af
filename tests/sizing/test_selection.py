"""The array choice: Tables 12 and 13 exactly, the six steps of the paper, and a reason for every
row not chosen.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.sizing.catalogue import (
    EQUALLOGIC_2010,
    ArrayRow,
    Conditions,
    read_catalogue,
    read_drive_classes,
)
from plimsoll.sizing.raid import (
    RAID_LEVELS,
    RaidLevel,
    data_drive_count,
    planner_iops,
    usable_capacity_gb,
    write_penalty,
)
from plimsoll.sizing.selection import Need, Selection, arrays_needed, select_arrays

ROWS = read_catalogue(EQUALLOGIC_2010).rows
PAPER = Need(volumes_gb=15_768, database_iops=900, copies=2, databases=12)

TABLE_12 = {
    ("PS6000XV", "RAID 50"): 1745,
    ("PS6000XV", "RAID 10"): 2165,
    ("PS6000X", "RAID 50"): 1100,
    ("PS6000X", "RAID 10"): 1365,
    ("PS6500E", "RAID 50"): 1800,
    ("PS6500E", "RAID 10"): 2400,
}
TABLE_13 = [
    (("PS6000E",), 250, 3000, 1750),
    (("PS6000X", "PS6000XV"), 300, 3600, 2100),
    (("PS6000X",), 400, 4800, 2800),
    (("PS6000XV",), 450, 5400, 3150),
    (("PS6000E",), 500, 6000, 3500),
    (("PS6000X", "PS6000XV"), 600, 7200, 4200),
    (("PS6000E",), 1000, 12000, 7000),
    (("PS6000E",), 2000, 24000, 14000),
    (("PS6500E",), 500, 19500, 11500),
    (("PS6500X",), 600, 23400, 13800),
    (("PS6500E",), 1000, 39000, 23000),
    (("PS6500E",), 2000, 78000, 46000),
]


def statuses(selection: Selection) -> dict[str, tuple[str, str]]:
    """Status and reason by the row's title."""
    return {
        candidate.row.title: (candidate.status, candidate.reason)
        for candidate in selection.candidates
    }


def test_CAL_08_table_12_is_shipped_exactly() -> None:
    """A wrong figure here buys the wrong array.

    Models the table leaves out must not get a figure.
    """
    published = {
        (row.model, row.raid): row.transactional_iops for row in ROWS if row.transactional_iops
    }
    assert published == TABLE_12
    assert {row.model for row in ROWS if row.transactional_iops is None} == {"PS6000E", "PS6500X"}


def test_CAL_08_table_13_is_shipped_exactly() -> None:
    """All 28 combinations of model, drive and RAID level, and not one more."""
    expected = {
        (model, drive_gb, raid): usable_gb
        for models, drive_gb, raid_50_gb, raid_10_gb in TABLE_13
        for model in models
        for raid, usable_gb in (("RAID 50", raid_50_gb), ("RAID 10", raid_10_gb))
    }
    assert {
        (row.model, row.drive_capacity_gb, row.raid): row.usable_capacity_gb for row in ROWS
    } == expected
    assert len(ROWS) == len(expected) == 28


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_CAL_09_the_raid_rule_gives_every_row_of_table_13(row: ArrayRow) -> None:
    """The rule derived from the table must reproduce the whole table, or it is no rule."""
    assert (
        usable_capacity_gb(row.raid, row.drive_slots, row.hot_spares, row.drive_capacity_gb)
        == row.usable_capacity_gb
    )


def test_CAL_09_data_drives_are_12_7_39_and_23() -> None:
    """The four counts the paper's table rests on."""
    counts = [
        data_drive_count(raid, drives) for drives in (14, 46) for raid in ("RAID 50", "RAID 10")
    ]
    assert counts == [12, 7, 39, 23]
    assert [
        data_drive_count("RAID 5", 7),
        data_drive_count("RAID 6", 12),
        data_drive_count("RAID 0", 3),
    ] == [6, 10, 3]
    assert data_drive_count("RAID 1", 2) == 1


def test_CAL_08_the_papers_worked_example_is_chosen() -> None:
    """5,000 users in two copies: one PS6500E with 500 GB drives at RAID 50 for each copy."""
    selection = select_arrays(PAPER, ROWS)
    assert selection.chosen is not None
    assert selection.chosen.row.title == "PS6500E, 500 GB SATA 7.2k, RAID 50"
    assert (selection.chosen.arrays_per_copy, selection.chosen.arrays_total) == (1, 2)
    assert (selection.chosen.row.usable_capacity_gb, selection.chosen.iops_per_copy) == (
        19_500,
        1_800,
    )
    assert [step.number for step in selection.steps] == [1, 2, 3, 4, 5, 6]
    assert any(
        "up to 4 databases on an array; here it has 12" in caveat for caveat in selection.caveats
    )


def test_CAL_08_every_other_row_says_why_not() -> None:
    """A list of choices without reasons cannot be argued with; each reason names what decided."""
    found = statuses(select_arrays(PAPER, ROWS))
    assert len(found) == 28
    assert all(reason for _, reason in found.values())
    assert found["PS6000E, 2000 GB SATA 7.2k, RAID 50"] == (
        "rejected",
        "no IOPS published, so step 4 cannot be checked",
    )
    assert (
        "3 arrays per copy, not 1 (capacity decides; IOPS alone take 1)"
        in found["PS6000XV, 600 GB SAS 15k, RAID 50"][1]
    )
    assert "leaves 19,500 GB more unused" in found["PS6500E, 1000 GB SATA 7.2k, RAID 50"][1]


def test_CAL_08_iops_add_arrays_of_the_same_model() -> None:
    """Step 4: where capacity fits but IOPS do not, more arrays of that model are taken."""
    selection = select_arrays(
        replace(PAPER, volumes_gb=3_000, database_iops=4_000, raid_levels=("RAID 50",)), ROWS
    )
    by_title = {candidate.row.title: candidate for candidate in selection.candidates}
    candidate = by_title["PS6000XV, 300 GB SAS 15k, RAID 50"]
    assert (
        candidate.arrays_for_capacity,
        candidate.arrays_for_iops,
        candidate.arrays_per_copy,
    ) == (1, 3, 3)
    assert candidate.arrays_total == 6
    assert statuses(selection)["PS6500E, 500 GB SATA 7.2k, RAID 10"] == (
        "rejected",
        "RAID 10 is not among the levels asked for (RAID 50)",
    )


def test_CAL_08_drives_rank_and_are_counted_with_their_spares() -> None:
    """Three arrays of 16 in two copies are 96 drives, as many as two of 48.

    Then the fewer arrays win.
    """
    selection = select_arrays(replace(PAPER, ranking="drives"), ROWS)
    by_title = {candidate.row.title: candidate for candidate in selection.candidates}
    assert by_title["PS6000XV, 600 GB SAS 15k, RAID 50"].drives_total == 3 * 2 * 16
    assert by_title["PS6500E, 500 GB SATA 7.2k, RAID 50"].drives_total == 1 * 2 * 48
    assert selection.chosen is not None
    assert selection.chosen.row.title == "PS6500E, 500 GB SATA 7.2k, RAID 50"
    found = statuses(selection)
    assert (
        found["PS6000XV, 600 GB SAS 15k, RAID 10"][1]
        == "would do, but takes 128 drives instead of 96"
    )
    assert "takes 3 arrays per copy, not 1" in found["PS6000XV, 600 GB SAS 15k, RAID 50"][1]


def test_CAL_08_the_steps_say_what_was_done() -> None:
    """The six steps are read by a person; their figures must be those of the choice."""
    texts = [step.text for step in select_arrays(PAPER, ROWS).steps]
    assert texts[1].endswith("= 15,768 GB (decimal) for one copy")
    assert texts[3] == "1 array x 1,800 = 1,800 IOPS for 900 needed"
    assert texts[4] == "28 rows tried, 10 rejected"
    assert texts[5].startswith("2 copies x 1 = 2 arrays")
    nothing = select_arrays(replace(PAPER, hot_spares_minimum=9), ROWS)
    assert [step.text for step in nothing.steps][2:4] == ["no row can serve", "900 IOPS needed"]


def test_CAL_08_one_spare_is_enough_unless_more_are_asked_for() -> None:
    """The default asks for a spare, not for two."""
    one_spare = [replace(row, hot_spares=1) for row in ROWS]
    assert select_arrays(PAPER, one_spare).chosen is not None
    none = [replace(row, hot_spares=0) for row in ROWS]
    assert select_arrays(PAPER, none).chosen is None


def test_CAL_08_log_iops_are_counted_only_where_the_catalogue_excludes_them() -> None:
    """BP-Q19: Table 12 already carries log I/O, and adding it again buys too much."""
    need = Need(volumes_gb=1_000, database_iops=1_700, log_iops=378)
    assert select_arrays(need, ROWS).required_iops == 1_700
    bare = [replace(row, conditions=Conditions(log_iops_included=False)) for row in ROWS]
    assert select_arrays(need, bare).required_iops == 2_078


def test_CAL_08_reserves_and_other_clients_are_part_of_the_need() -> None:
    """Step 2 sums snapshots, clones and replicas; mobile clients raise the IOPS."""
    need = replace(PAPER, snapshot_gb=2_000, clone_gb=1_000, replication_gb=1_000, extra_iops=950)
    selection = select_arrays(need, ROWS)
    assert (selection.required_gb, selection.required_iops) == (19_768, 1_850)
    assert selection.chosen is not None
    assert selection.chosen.row.title == "PS6500E, 1000 GB SATA 7.2k, RAID 10"


def test_CAL_08_spares_price_and_number_of_arrays_reject_with_all_reasons() -> None:
    """One row may fail several ways, and the buyer must see all of them."""
    need = replace(
        PAPER,
        hot_spares_minimum=3,
        arrays_per_copy_maximum=2,
        ranking="price",
        drive_classes=("SAS 10k",),
    )
    selection = select_arrays(need, ROWS)
    assert selection.chosen is None
    status, reason = statuses(selection)["PS6000XV, 300 GB SAS 15k, RAID 10"]
    assert status == "rejected"
    assert reason.split("; ") == [
        "SAS 15k drives were not asked for (SAS 10k)",
        "has 2 hot spares where 3 are asked for",
        "needs 8 arrays per copy where at most 2 are allowed",
        "the catalogue states no price to rank it by",
    ]


def test_CAL_08_price_ranks_when_the_catalogue_has_prices() -> None:
    """A cheaper design of more arrays must be able to win."""
    priced = [
        replace(row, price_usd=40_000.0 if row.model == "PS6500E" else 9_000.0) for row in ROWS
    ]
    chosen = select_arrays(replace(PAPER, ranking="price"), priced).chosen
    assert chosen is not None
    assert (chosen.row.title, chosen.price_total_usd) == (
        "PS6000XV, 450 GB SAS 15k, RAID 50",
        54_000.0,
    )
    found = statuses(select_arrays(replace(PAPER, ranking="price"), priced))
    assert (
        found["PS6500E, 500 GB SATA 7.2k, RAID 50"][1] == "would do, but costs 26,000.00 USD more"
    )


def test_CAL_08_no_model_stands_beside_the_formula_yet_and_says_so() -> None:
    """An absent figure has a name and a reason, never a zero."""
    selection = select_arrays(PAPER, ROWS, read_drive_classes())
    assert selection.chosen is not None
    assert selection.chosen.model_absence == "no modelled preset stands for PS6500E: not evaluated"
    assert selection.chosen.planner_iops_per_copy == pytest.approx(46 * 75 / 2.5)


def test_SIM_02_write_costs_and_planner_formula() -> None:
    """RAID 10 costs two disk I/Os a write and RAID 50 four (Q-29: two in total, not two more)."""
    assert [write_penalty(raid) for raid in RAID_LEVELS] == [1, 2, 4, 6, 2, 4]
    assert planner_iops("RAID 50", 14, 180, 1.0) == pytest.approx(14 * 180)
    assert planner_iops("RAID 50", 14, 180, 0.0) == pytest.approx(14 * 180 / 4)


NEEDS = st.builds(
    Need,
    volumes_gb=st.floats(1, 1e6),
    database_iops=st.floats(0, 1e6),
    copies=st.integers(1, 16),
    snapshot_gb=st.floats(0, 1e5),
    raid_levels=st.sampled_from([(), ("RAID 10",), ("RAID 50",)]),
    ranking=st.sampled_from(["arrays", "drives"]),
)


@settings(deadline=None)  # on a busy machine an example takes as long as it takes
@given(NEEDS)
def test_a_choice_always_serves_the_need(need: Need) -> None:
    """Whatever is asked, what is chosen holds it, carries it, and nothing else does with fewer
    arrays.
    """
    selection = select_arrays(need, ROWS)
    chosen = selection.chosen
    assert chosen is not None
    assert chosen.arrays_per_copy * chosen.row.usable_capacity_gb >= selection.required_gb
    assert (chosen.iops_per_copy or 0) >= selection.required_iops
    assert chosen.arrays_total == chosen.arrays_per_copy * need.copies
    possible = [candidate for candidate in selection.candidates if candidate.status != "rejected"]
    key = "arrays_total" if need.ranking == "arrays" else "drives_total"
    assert getattr(chosen, key) == min(getattr(candidate, key) for candidate in possible)
    assert len(selection.candidates) == len(ROWS)
    assert sum(candidate.status == "chosen" for candidate in selection.candidates) == 1


@settings(deadline=None)  # on a busy machine an example takes as long as it takes
@given(NEEDS, st.floats(0, 1e5), st.floats(0, 1e5))
def test_more_need_never_takes_fewer_arrays(need: Need, more_gb: float, more_iops: float) -> None:
    """Monotone in capacity and IOPS, row by row."""
    bigger = replace(
        need, volumes_gb=need.volumes_gb + more_gb, database_iops=need.database_iops + more_iops
    )
    before = {
        candidate.row: candidate.arrays_total for candidate in select_arrays(need, ROWS).candidates
    }
    after = {
        candidate.row: candidate.arrays_total
        for candidate in select_arrays(bigger, ROWS).candidates
    }
    assert all(after[row] >= before[row] for row in before)


@settings(deadline=None)  # on a busy machine an example takes as long as it takes
@given(st.floats(0.001, 1e9), st.floats(0.001, 1e6))
def test_arrays_needed_is_the_smallest_number_that_suffices(
    required: float, per_array: float
) -> None:
    """One array fewer must not be enough."""
    count = arrays_needed(required, per_array)
    assert count * per_array >= required * (1 - 1e-12)
    assert count == 1 or (count - 1) * per_array < required * (1 + 1e-12)


@pytest.mark.parametrize(
    ("raid", "fewest"),
    [("RAID 0", 1), ("RAID 1", 2), ("RAID 5", 3), ("RAID 6", 4), ("RAID 10", 4), ("RAID 50", 6)],
)
def test_raid_needs_its_fewest_drives_and_no_more(raid: RaidLevel, fewest: int) -> None:
    """One drive fewer is an impossible array, which a file must not describe."""
    assert data_drive_count(raid, fewest) >= 1
    with pytest.raises(ValueError, match=f"{raid} cannot be built of {fewest - 1} drives"):
        data_drive_count(raid, fewest - 1)


@settings(deadline=None)  # on a busy machine an example takes as long as it takes
@given(st.sampled_from(RAID_LEVELS), st.integers(0, 200))
def test_raid_never_holds_more_than_its_drives(raid: str, drives: int) -> None:
    """Impossible groups are errors, possible ones hold between half of their drives and all of
    them.
    """
    with suppress(ValueError):
        data = data_drive_count(raid, drives)  # type: ignore[arg-type]
        assert drives / 2 <= data <= drives
