"""The published results as a permanent test of the model.

The bars are those of `page.py`; misses are named, not hidden.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plimsoll.arrays.papers.assessment import (
    CONSTANTS,
    REASONS,
    beyond,
    held_out_errors,
    mean_iops_error,
)
from plimsoll.arrays.papers.error_band import band_percent, left_out, paper_results
from plimsoll.arrays.papers.leave_one_out import (
    NO_CONSTANT,
    NOTHING_FITTED,
    calibrated_points,
    leave_one_out_lines,
)
from plimsoll.arrays.papers.points import layouts, mixes, read_points
from plimsoll.arrays.papers.runner import Result, Trial, run_papers, run_point
from plimsoll.arrays.presets import CHANGES, shipped_arrays
from plimsoll.cli import app
from tools.papers_page import papers_page
from tools.papers_trials import RUNS, TRIALS, trials_lines

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
#: Figures known to lie beyond their bar; each has its reason on the page.
KNOWN_MISSES = {
    ("emc-6-threads", "log_write_latency"),
}

#: The points on which the seek factors of the EqualLogic arrays were chosen.
RAID_50 = ("ps6000xv-raid50", "ps6000x-raid50", "ps6500e-raid50")
EMC = {"iops", "database_read_latency", "database_write_latency"}
#: Figures on which a constant was chosen, by points.
CHOSEN = {
    "emc-3-threads": EMC,
    "emc-6-threads": EMC,
    "emc-24-hours": EMC,
    "emc-without-maintenance": EMC,
    "sandisk-ssd": {"iops", "database_read_latency"},
    "ps6000xv-raid10": {"iops"},
    "ps6000x-raid10": {"iops"},
    "ps6500e-raid10": {"iops"},
    **{name: {"iops"} for name in RAID_50},
    "emc-backup": {"backup_reads", "backup_latency"},
    "emc-checksum": {"checksum_reads", "checksum_latency"},
}


def test_every_figure_on_which_a_constant_was_chosen_is_marked() -> None:
    """A fit that is shown as a prediction makes the model look better than it is, in the data, the
    JSON and the page.
    """
    points = read_points()
    for name, metrics in CHOSEN.items():
        marks = {
            figure.metric: figure.fitted
            for figure in points[name].figures
            if figure.metric in metrics
        }
        assert marks == dict.fromkeys(metrics, True), name
    stored = {(row.id, row.metric): row.fitted for row in paper_results()}
    assert stored == {
        (point.id, row.metric): row.fitted for point in points.values() for row in point.figures
    }
    page = PAGE.read_text(encoding="utf-8")
    fitted = sum(stored.values())
    assert page.count("| fitted") == fitted
    assert (
        f"{len(CONSTANTS)} constants were chosen on {fitted} of the {len(stored)} published figures"
        in page
    )


def test_the_band_of_an_array_that_was_never_calibrated_is_the_leave_one_out_error() -> None:
    """The errors of arrays that were fitted, nine percent at most, were printed for arrays that
    nobody ever measured.
    """
    rows = left_out()
    assert {row.array for row in rows} == {
        "equallogic-ps6000xv",
        "equallogic-ps6000x",
        "equallogic-ps6500e",
    }
    assert {row.id for row in rows} == {point.id for point in calibrated_points()} and len(
        rows
    ) == 12
    errors = [abs(row.error_percent) for row in rows if row.way == NO_CONSTANT]
    worst = max(errors)
    # The goal: at most 10 % in the mean and 20 % at worst.
    assert sum(errors) / len(errors) <= 10
    assert 15 <= worst <= 20
    assert band_percent("database_iops") == worst
    assert band_percent("database_read") >= worst
    page = PAGE.read_text(encoding="utf-8")
    assert all(line in page for line in leave_one_out_lines(rows) if line)


def test_a_left_out_array_is_run_without_its_own_constant() -> None:
    """A factor left in would give the fitted error once more, and a band of nearly nothing. The
    share of old data was left in, although it was chosen on these very arrays.
    """
    (row,) = [row for row in left_out() if (row.id, row.way) == ("ps6000x-raid50", NO_CONSTANT)]
    constants = {"seek_scale": row.seek_scale, "old_data_share": row.old_data_share}
    assert constants == NOTHING_FITTED
    found = run_point(read_points()[row.id], Trial(constants, widens_curve=True))["iops"]
    assert found == pytest.approx(row.modelled, rel=0.01)


def test_STU_04_mirrors_gain_what_was_published_without_rounding() -> None:
    """The model gave 1.197 where 1.2 was asked, and passed by rounding: the share of old data in
    the cache was too high. Published: 1.24, 1.24 and 1.33.
    """
    rates = {row.id: row.modelled for row in paper_results() if row.metric == "iops"}
    for array in ("ps6000xv", "ps6000x", "ps6500e"):
        assert 1.2 <= rates[f"{array}-raid10"] / rates[f"{array}-raid50"] <= 1.4, array


def test_every_point_names_what_there_is() -> None:
    """A point with a misspelt mix or layout would fail only when somebody runs it."""
    points = read_points()
    assert all(run.layout in layouts() for point in points.values() for run in point.runs)
    named = {
        row["mix"]
        for point in points.values()
        for row in point.streams
        if row["kind"] == "sessions"
    }
    assert named == set(mixes()), "a mix nobody uses, or one that is not there"
    assert {run.layout for point in points.values() for run in point.runs} == set(layouts())
    assert all(point.source and point.array in shipped_arrays() for point in points.values())


def check(results: list[Result]) -> None:
    """Every figure within its bar, but for the known misses."""
    for result in results:
        assert not beyond(result) or (result.id, result.metric) in KNOWN_MISSES, result


def test_the_quick_points_stay_within_their_bars() -> None:
    """A change of the model that spoils its predictions must not pass unnoticed.

    SIM-10: the backup's rate among them.
    """
    results = run_papers(["emc-3-threads", "emc-backup", "sandisk-hdd"])
    check(results)
    rates = {(result.id, result.metric): result.error_percent for result in results}
    assert abs(rates["emc-backup", "backup_reads"]) <= 10
    # SIM-03: the write-back cache answers in well under a millisecond.
    assert (
        next(
            r.modelled
            for r in results
            if (r.id, r.metric) == ("sandisk-hdd", "database_write_latency")
        )
        < 1
    )


@pytest.mark.slow
def test_all_points_stay_within_their_bars() -> None:
    """SIM-04 and the bars: every IOPS within 10 %, their mean within 5 %, latencies within
    theirs.
    """
    results = run_papers()
    check(results)
    # The bar was set when only the RAID 50 points counted as fitted. Of those that nothing was
    # chosen on three are left.
    rates = [
        abs(row.error_percent) for row in results if row.metric == "iops" and row.id not in RAID_50
    ]
    assert sum(rates) / len(rates) <= 5
    mean = mean_iops_error(results)
    assert mean is not None and mean <= 8
    # STU-03: the order of the arrays; STU-04: mirrors against parity; STU-06: near-linear growth.
    iops = {result.id: result.modelled for result in results if result.metric == "iops"}
    assert iops["ps6000xv-raid50"] > iops["ps6000x-raid50"]
    for array in ("ps6000xv", "ps6000x", "ps6500e"):
        assert 1.2 <= iops[f"{array}-raid10"] / iops[f"{array}-raid50"] <= 1.4, array
    assert iops["ps6000xv-3-members"] >= 2.7 * iops["ps6000xv-raid50"]
    # STU-11: flash against hard drives, 18 times as printed.
    assert 16 <= iops["sandisk-ssd"] / iops["sandisk-hdd"] <= 20


def test_the_page_names_every_point_and_every_miss() -> None:
    """The page is what people read.

    It must hold every figure, and a reason beside each known miss.
    """
    text = PAGE.read_text(encoding="utf-8")
    for point in read_points().values():
        assert f"## {point.title}" in text
    for miss in KNOWN_MISSES:
        assert REASONS[miss][:40] in text
    assert "MODELLED" in text


def test_what_was_tried_for_a_miss_is_shown_with_its_errors() -> None:
    """A miss without the attempts reads like one that nobody looked into.

    A wrong error there would hide a way out.
    """
    published = {
        name: {row.metric: row.published for row in point.figures}
        for name, point in read_points().items()
    }
    metrics = [
        published[name] | {"log_write_latency": 1.5 * published[name]["log_write_latency"]}
        for name in RUNS
    ]
    lines = trials_lines([("a change", metrics)])
    assert lines[-2] == "| a change | +0 %, +50 % | +0 %, +50 % | +0 %, +50 % |"
    assert lines[0] in PAGE.read_text(encoding="utf-8")
    keys = {key for _, changes in TRIALS for key in changes}
    assert keys - {"burst_ms"} <= set(CHANGES), "a trial must change a figure that there is"


def test_a_figure_beyond_its_bar_is_marked() -> None:
    """A miss that looked like a hit would be worse than none."""
    row = Result("emc-3-threads", "iops", "1/s", 100.0, 120.0, 20.0, False)
    assert "beyond 10 %" in papers_page([row])
    assert "beyond 10 %" not in papers_page(
        [Result("emc-3-threads", "iops", "1/s", 100.0, 109.0, 9.0, False)]
    )


def test_held_out_arrays_are_those_without_a_fitted_rate() -> None:
    """The band for a new array must not be flattered by arrays that were fitted."""
    rows = [
        Result("emc-3-threads", "iops", "1/s", 100.0, 104.0, 4.0, False),
        Result("ps6000x-raid50", "iops", "1/s", 100.0, 100.0, 0.0, True),
        Result("ps6000x-raid10", "iops", "1/s", 100.0, 101.0, 1.0, False),
    ]
    assert held_out_errors(rows) == [4.0]


def test_the_command_prints_json_and_refuses_unknown_points() -> None:
    """Other programs read the JSON; a misspelt point is told the nearest."""
    done = CliRunner().invoke(app, ["papers", "emc-checksum", "--json"])
    rows = json.loads(done.stdout)
    assert done.exit_code == 0
    assert set(rows[0]) == {
        "id",
        "metric",
        "unit",
        "published",
        "modelled",
        "error_percent",
        "fitted",
    }
    assert rows[0]["fitted"] and abs(rows[0]["error_percent"]) < 5
    wrong = CliRunner().invoke(app, ["papers", "emc-checksums"])
    assert wrong.exit_code == 2
    assert "did you mean `emc-checksum`" in wrong.stderr
