"""Measured while bursting: planted steps are found with their sustained rate, and runs without a
step are left alone.
"""

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from plimsoll.documents.outcome import Outcome
from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from plimsoll.results.measurements import Measurements
from plimsoll.results.rate_steps import find_step, plateaus
from plimsoll.results.sustained import blocks_of
from tests.support.cloud_volume import run_on_cloud_volume
from tests.support.plain_stages import judge, summarize
from tests.support.synthetic import EMC, make_folder

SECONDS = 240


def noisy(levels: list[tuple[int, float]], spread: float, seed: int) -> list[float]:
    """Blocks around their levels; each resembles the one before, as rates of a storage do."""
    drawn, off, found = random.Random(seed), 0.0, []
    for count, level in levels:
        for _ in range(count):
            off = 0.5 * off + drawn.gauss(0, spread)
            found.append(level * (1 + off))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_found_where_it_is(seed: int) -> None:
    """A quarter and more, up or down, early or late, in noise of five percent."""
    for at, low in ((20, 0.6), (60, 0.7), (100, 0.5)):
        for levels in (
            [(at, 1000.0), (120 - at, 1000 * low)],
            [(at, 1000 * low), (120 - at, 1000.0)],
        ):
            step = find_step(noisy(levels, 0.05, seed))
            assert step is not None
            assert abs(step.index - at) <= 2
            assert step.after == pytest.approx(levels[1][1], rel=0.1)


@pytest.mark.parametrize("seed", range(20))
def test_noise_and_drift_are_no_step(seed: int) -> None:
    """A warning that cries wolf is switched off.

    Neighbouring blocks that resemble each other, a ramp, a stall, a small step.
    """
    steady = noisy([(120, 1000.0)], 0.10, seed)
    assert find_step(steady) is None
    ramp = [
        value * (1.0 - 0.4 * place / 120)
        for place, value in enumerate(noisy([(120, 1000.0)], 0.02, seed))
    ]
    assert find_step(ramp) is None
    stalled = [
        0.0 if 50 <= place < 53 else value
        for place, value in enumerate(noisy([(120, 1000.0)], 0.05, seed))
    ]
    assert find_step(stalled) is None
    assert find_step(noisy([(60, 1000.0), (60, 900.0)], 0.05, seed)) is None
    assert find_step(noisy([(5, 1000.0), (5, 500.0)], 0.05, seed)) is None


def bursting_run(path: Path, saved: float, seconds: int = SECONDS) -> dict[str, Any]:
    """The summary of a run on a modelled cloud volume of 300 requests a second that bursts to 900
    while it has credits.
    """
    plan = plan_of_options(
        {
            "name": "burst",
            "target": [{"name": "volume", "modelled": "cloud-volume"}],
            "instance": [
                {
                    "name": "one",
                    "database_size_mib": 1024,
                    "cache_mib_max": 16,
                    "maintenance": False,
                }
            ],
            "workload": [{"name": "mix", "load": {"sessions": 24}, "sluggish": 0}],
            "phase": [
                {"kind": "prepare"},
                {"kind": "warm_up", "cache_percent": 0},
                {"kind": "measure", "duration_s": seconds},
                {"kind": "stop"},
            ],
        }
    ).plain()
    return run_on_cloud_volume(path, plan, saved)


def test_a_volume_that_runs_out_of_credit_was_measured_while_bursting(tmp_path: Path) -> None:
    """The planted bottleneck of every cloud benchmark.

    The whole run's mean is a rate the volume never holds.
    """
    summary = bursting_run(tmp_path / "run", saved=60_000.0)
    found = summary["plateaus"]
    assert found["kind"] == "burst"
    assert found["text"].startswith("measured while bursting")
    # Credits of 60,000 at 600 more than come in last for 100 s; the engine's other I/O and the
    # prepare phase take part of both.
    assert 40 < found["first_s"] < 130
    sustained = [
        rate for second, rate in _rates(tmp_path / "run", summary) if second > found["first_s"] + 5
    ]
    assert found["sustained_iops"] == pytest.approx(sum(sustained) / len(sustained), rel=0.03)
    assert found["sustained_iops"] < 320 < summary["total"]["database_iops"]


@pytest.mark.parametrize("saved", [0.0, pytest.param(1e9, marks=pytest.mark.slow)])
def test_a_volume_that_keeps_its_rate_is_left_alone(tmp_path: Path, saved: float) -> None:
    """The other direction: held back all the time, or never."""
    assert bursting_run(tmp_path / "run", saved, SECONDS // 3)["plateaus"]["kind"] == "none"


def _rates(path: Path, summary: dict[str, Any]) -> list[tuple[float, float]]:
    """Database IOPS of every second that was measured, as somebody else would add them up."""
    outcome = Outcome.read(path / folder.OUTCOME)
    found: dict[float, float] = {}
    with Measurements(path, outcome) as measured:
        for metric in ("database_read", "database_write"):
            for row in measured.series(metric, 1000):
                found[row["second"]] = found.get(row["second"], 0.0) + row["per_s"]
    return sorted(found.items())


def planted(
    path: Path, share: float, required: float | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summary and verdict of the published two hours whose second half makes only a share of the
    reads and writes.
    """
    run_folder = make_folder(path, rates=EMC)
    samples = run_folder / folder.SAMPLES
    half = (
        "phase = 'measure' AND end_ns > 3720000000000 AND metric IN ('database_read', "
        "'database_write')"
    )
    changed = ", ".join(
        f"CASE WHEN {half} THEN ({name} * {share})::UBIGINT ELSE {name} END AS {name}"
        for name in ("count", "bytes", "latency_ns_sum")
    )
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({changed}) FROM '{samples}') TO '{path / 'changed'}' (FORMAT "
        f"parquet)"
    )
    (path / "changed").rename(samples)
    plan = folder.read_json(run_folder / folder.PLAN)
    plan["judgement"]["required_iops"] = required
    summary = summarize(run_folder)
    return summary, judge(plan, summary, folder.read_json(run_folder / folder.ENVIRONMENT))


def test_what_is_required_is_held_against_the_sustained_rate(tmp_path: Path) -> None:
    """A mean over a burst would pass a requirement that the volume meets for an hour and never
    again.
    """
    summary, verdict = planted(tmp_path / "burst", 0.5, required=240.0)
    sustained = summary["plateaus"]["sustained_iops"]
    assert sustained == pytest.approx(0.5 * 329.489, rel=0.01)
    check = next(check for check in verdict["checks"] if check["name"] == "required_iops")
    assert (check["status"], check["measured"]) == ("fail", sustained)
    assert summary["total"]["database_iops"] > 240
    assert verdict["warnings"][0] in verdict["not_qualifying_because"]
    _, steady = planted(tmp_path / "steady", 1.0, required=240.0)
    assert (
        next(check for check in steady["checks"] if check["name"] == "required_iops")["status"]
        == "pass"
    )
    assert steady["warnings"] == []


def test_a_rate_that_rises_is_a_start_that_was_slow(tmp_path: Path) -> None:
    """Caches that were not warm make a run look worse than the storage is; that too is said."""
    summary, verdict = planted(tmp_path / "rise", 1.5)
    assert summary["plateaus"]["kind"] == "slow_start"
    assert "longer warm-up" in verdict["warnings"][0]


def test_block_means_know_no_gaps() -> None:
    """Doctest aside: a series of equal values has no step however it is cut."""
    assert find_step(list(np.full(60, 7.0))) is None


def wave(shape: str, period: int, drawn: random.Random) -> list[float]:
    """120 blocks of a slow cycle of two fifths, in noise of five percent."""
    begin, found = drawn.random(), []
    for block in range(120):
        place = (block / period + begin) % 1
        height = {"square": 0.2 if place < 0.5 else -0.2, "saw": 0.4 * (place - 0.5)}[shape]
        found.append(1000 * (1 + height) * (1 + drawn.gauss(0, 0.05)))
    return found


def correlated(correlation: float, spread: float, drawn: random.Random) -> list[float]:
    """120 blocks of noise whose neighbours resemble each other."""
    off, found = drawn.gauss(0, 1), []
    for _ in range(120):
        off = correlation * off + (1 - correlation**2) ** 0.5 * drawn.gauss(0, 1)
        found.append(max(1.0, 1000 * (1 + spread * off)))
    return found


@pytest.mark.parametrize(
    ("shape", "period"), [("square", 30), ("square", 60), ("square", 120), ("saw", 120)]
)
def test_a_slow_cycle_is_no_step(shape: str, period: int) -> None:
    """Steps were found in 39 to 86 % of runs over which a square wave went.

    It comes back, so no level of it ended.
    """
    drawn = random.Random(3)
    assert sum(find_step(wave(shape, period, drawn)) is not None for _ in range(60)) <= 3


@pytest.mark.parametrize("correlation", [0.9, 0.95, 0.98])
def test_noise_whose_neighbours_resemble_each_other_is_no_step(correlation: float) -> None:
    """At a lag-1 correlation of 0.98 one run in ten had a step that was not there."""
    drawn = random.Random(5)
    assert sum(find_step(correlated(correlation, 0.2, drawn)) is not None for _ in range(60)) <= 2


def test_a_burst_below_a_tenth_of_the_time_is_seen() -> None:
    """Twelve minutes of two hours, or five seconds of a minute, were below what was looked for."""
    for blocks in (2, 5, 10):
        step = find_step(noisy([(blocks, 6500.0), (120 - blocks, 80.0)], 0.05, blocks))
        assert step is not None
        assert step.index == blocks


@pytest.mark.parametrize("required", [None, 250.0])
def test_a_rate_that_ended_is_called_sustained_nowhere(
    tmp_path: Path, required: float | None
) -> None:
    """Fast for nine tenths of two hours and slow from then on.

    The check said 33 of 250, the headroom beside it 1.31, and the users were those of the burst.
    """
    run = late_drop(tmp_path / "run")
    plan = folder.read_json(run / folder.PLAN)
    plan["judgement"]["required_iops"] = required
    summary = summarize(run)
    warm = {"name": "warm", "kind": "warm_up", "start_utc": None, "seconds": 60.0, "complete": True}
    summary["phases"] = [warm, *summary["phases"]]
    verdict = judge(plan, summary, folder.read_json(run / folder.ENVIRONMENT))
    rest = summary["plateaus"]["sustained_iops"]
    assert rest == pytest.approx(0.1 * 329.489, rel=0.02)
    assert verdict["sustained_iops"] == rest
    assert verdict["throughput"].startswith("33 database IOPS sustained (")
    heavy = next(row for row in verdict["user_equivalents"] if row["profile"] == "heavy")
    assert heavy["users"] < 350
    if required:
        assert verdict["headroom"] == pytest.approx(rest / required)


def late_drop(path: Path) -> Path:
    """The published two hours whose last tenth makes only a tenth of the reads and writes."""
    run = make_folder(path, rates=EMC)
    samples = run / folder.SAMPLES
    late = (
        "phase = 'measure' AND end_ns > 6600000000000 AND metric IN ('database_read', "
        "'database_write')"
    )
    changed = ", ".join(
        f"CASE WHEN {late} THEN ({name} * 0.1)::UBIGINT ELSE {name} END AS {name}"
        for name in ("count", "bytes", "latency_ns_sum")
    )
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({changed}) FROM '{samples}') TO '{path / 'changed'}' (FORMAT "
        f"parquet)"
    )
    (path / "changed").rename(samples)
    return run


def test_where_nothing_was_measured_there_are_no_levels() -> None:
    """A run may be stopped between the begin of a phase and its first sample."""
    assert blocks_of([[]], 0.0) == []
    assert plateaus([[]]).plain() == {"kind": "none", "blocks_count": 0}
