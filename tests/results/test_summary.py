"""What the summary says of a run beyond the arithmetic of single figures.

Totals, rests of intervals, and moments in a day.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.documents.outcome import Outcome
from plimsoll.files import folder
from plimsoll.results.measurements import Measurements
from tests.support.plain_stages import summarize
from tests.support.synthetic import EMC, START_S, finish, make_folder, transfers

SECOND = 1_000_000_000


def test_every_figure_stands_for_each_place_and_in_total(published: Path) -> None:
    """Counts of all places add up to the total's; no figure is only in one of the two."""
    summary = folder.read_json(published / folder.SUMMARY)
    for places in ("databases", "instances"):
        figures = [
            name
            for name, value in summary[places][0].items()
            if isinstance(value, dict) and "per_s" in value
        ]
        assert len(figures) == 4, places
        for name in figures:
            total = summary["total"][name]
            assert total["count"] == sum(place[name]["count"] for place in summary[places]), name
            assert total.keys() == summary[places][0][name].keys(), name
            assert total["per_s"] == pytest.approx(
                sum(place[name]["per_s"] for place in summary[places])
            )
            for quantile in ("p50", "p90", "p95", "p99", "p999", "max"):
                assert f"latency_ms_{quantile}" in total


def after_the_last_interval(path: Path, rest_s: float) -> dict[str, Any]:
    """The published run, ten minutes of it, that ends a little late.

    In the rest lies one read of 90 ms.
    """
    end_s = START_S + 600 + rest_s
    slow = transfers("measure", "instance1", "database_read", 1, [end_s], 1, (1, 32768, 90_000_000))
    slow["interval_ns"] = np.array([int(rest_s * SECOND)], np.uint64)
    run = make_folder(path, seconds=600, further=[slow])
    outcome = json.loads((run / folder.OUTCOME).read_text())
    outcome["phases"][1]["end_ns"] = int(end_s * SECOND)
    folder.write_json(run / folder.OUTCOME, outcome)
    read: dict[str, Any] = summarize(run)["databases"][0]["database_read"]
    return read


def test_a_short_rest_is_no_sample_of_its_own(tmp_path: Path) -> None:
    """One slow read in the last millisecond is one of sixty thousand, not one of forty samples that
    are judged.
    """
    read = after_the_last_interval(tmp_path / "short", 0.25)
    assert read["latency_ms_sample_mean_max"] < 12.2
    assert read["latency_ms_mean_of_samples"] == pytest.approx(12.056, rel=0.001)
    long = after_the_last_interval(tmp_path / "long", 9.0)
    assert long["latency_ms_sample_mean_max"] == pytest.approx(90.0), (
        "a rest of more than half an interval is one"
    )


def test_MON_05_a_bad_moment_of_a_day_stays_visible(tmp_path: Path) -> None:
    """A day is drawn in a few hundred points.

    The worst sample must be among them, and the mean must not be lifted by it.
    """
    spike = transfers(
        "measure", "instance1", "database_read", 1, [START_S + 40_000], 15, (1, 32768, 500_000_000)
    )
    spike["latency_ns_p99"] = np.array([500_000_000], np.uint64)
    run = finish(make_folder(tmp_path / "run", seconds=24 * 3600, rates=EMC[:1], further=[spike]))
    with Measurements(run, Outcome.read(run / folder.OUTCOME)) as measured:
        points = measured.series("database_read", 240)
    assert len(points) == 240
    worst = max(points, key=lambda point: point["latency_ms_p99"])
    assert worst["latency_ms_p99"] == 500.0
    assert abs(worst["second"] - 40_000) <= 24 * 3600 / 240
    assert worst["latency_ms_mean"] == pytest.approx(12.056, rel=0.01)
    assert "48.2 to 500 ms" in (run / folder.REPORT).read_text()
