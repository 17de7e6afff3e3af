"""What a running run shows is what its samples say, and a remaining time is never guessed."""

from typing import Any

import numpy as np

from plimsoll.documents.event import Event
from plimsoll.live.listener import Listener
from plimsoll.live.plain_display import figures_line
from plimsoll.live.progress import SHOWN_METRICS, Figures
from plimsoll.plan.complete import plan_of_options

METRICS = [
    *SHOWN_METRICS,
    "prepare",
    "checksum",
    "backup",
    "log_read",
    "log_generation",
    "cache_used",
    "cache_limit",
]
MIB = 1 << 20


def figures(**more: Any) -> Figures:
    plan = plan_of_options(
        {
            **more,
            "name": "case",
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [{"name": "one", "database_size_mib": 64}],
            "phase": [
                {"kind": "prepare"},
                {"kind": "warm_up"},
                {"kind": "measure", "duration_s": 100},
                {"kind": "checksum"},
                {"kind": "generate_logs", "logs": 20},
            ],
        }
    )
    return Figures(
        plan,
        METRICS,
        64 * MIB,
        {"prepare": 130.0, "warm_up": 120.0, "measure": 20.0, "checksum": 0.0},
    )


def event(kind: str, phase: str, at_s: int) -> Event:
    return Event(time_ns=at_s * 10**9, utc_ns=0, level="info", kind=kind, phase=phase, text="")


def started(shown: Figures, phase: str, at_s: int) -> None:
    shown.event(event("phase_started", phase, at_s))


def sample(shown: Figures, end_s: int, **values: tuple[int, float, float]) -> None:
    """One second: metric = (count, latency of each in ms, bytes or level)."""
    rows = list(values.items())
    names = {
        "end_ns": [end_s * 10**9] * len(rows),
        "interval_ns": [10**9] * len(rows),
        "metric": [METRICS.index(name) for name, _ in rows],
        "count": [count for _, (count, _, _) in rows],
        "errors": [0] * len(rows),
        "bytes": [int(size) for _, (_, _, size) in rows],
        "latency_ns_sum": [int(count * latency * 1e6) for _, (count, latency, _) in rows],
    }
    table: dict[str, Any] = {
        name: np.array(column, dtype=np.uint64) for name, column in names.items()
    }
    table["instance"] = np.zeros(len(rows), dtype=np.uint32)
    table["value"] = np.array([size for _, (_, _, size) in rows], dtype=float)
    shown.sample(table)


def test_rates_and_latencies_are_those_of_the_last_seconds() -> None:
    """A figure from minutes ago would hide that the storage just became slow."""
    shown = figures()
    started(shown, "measure", 0)
    for second in range(1, 20):
        sample(shown, second, database_read=(100, 1.0, 0))
    for second in range(20, 27):
        sample(shown, second, database_read=(50, 9.0, 0))
    snapshot = shown.snapshot()
    assert (snapshot["database_read_per_s"], snapshot["database_read_latency_ms_mean"]) == (
        50.0,
        9.0,
    )
    assert (snapshot["phase_remaining_s"], snapshot["total_remaining_s"]) == (74.0, 94.0)
    assert snapshot["log_write_latency_ms_mean"] is None, "no log write is not a fast one"


def test_time_that_nobody_can_know_is_not_shown() -> None:
    """A warm-up ends when the cache is warm.

    A bar shows how far that is, and no time is promised.
    """
    shown = figures()
    started(shown, "warm_up", 0)
    sample(shown, 1, database_read=(10, 1.0, 0), cache_used=(0, 0, 45.0), cache_limit=(0, 0, 100.0))
    snapshot = shown.snapshot()
    assert (
        snapshot["phase_share_done"],
        snapshot["phase_remaining_s"],
        snapshot["cache_percent"],
    ) == (0.5, None, 45.0)


def test_a_warm_cache_is_not_the_end_of_a_warm_up_that_calibrates() -> None:
    """40 s of "100 %" look like a program that hangs.

    What it does meanwhile is said, and nothing once the phase is over.
    """
    shown = figures(workload=[{"name": "mix", "load": {"target_iops": 240}}])
    started(shown, "warm_up", 0)
    sample(shown, 1, database_read=(10, 1.0, 0), cache_used=(0, 0, 95.0), cache_limit=(0, 0, 100.0))
    shown.event(event("cache_warm", "warm_up", 1))
    snapshot = shown.snapshot()
    assert (snapshot["phase_share_done"], snapshot["doing"]) == (
        None,
        "measuring the I/O of a transaction",
    )
    assert "warm_up: measuring the I/O of a transaction" in figures_line(snapshot)
    started(shown, "measure", 2)
    assert shown.snapshot()["doing"] is None
    without = figures()
    started(without, "warm_up", 0)
    without.event(event("cache_warm", "warm_up", 1))
    assert without.snapshot()["doing"] is None


def test_a_line_takes_figures_as_a_listener_has_them_and_names_their_phase() -> None:
    """A program that prints what `begins` brought ended in an error; closing had no name."""
    shown = figures()
    started(shown, "stop after early end", 0)
    sample(shown, 1, cache_used=(0, 0, 95.0), cache_limit=(0, 0, 100.0))
    assert figures_line(shown) == figures_line(shown.snapshot())
    assert "stop after early end, cache 95 %" in figures_line(shown)


def test_preparing_is_forecast_from_its_own_rate() -> None:
    """The assumed rate gives way to the measured one as soon as there is one."""
    shown = figures()
    started(shown, "prepare", 0)
    sample(shown, 1, prepare=(16, 1.0, 16 * MIB))
    snapshot = shown.snapshot()
    assert (snapshot["phase_share_done"], snapshot["phase_remaining_s"]) == (0.25, 3.0)
    assert "prepare 25%, 3 s left, 16 MiB, 16 MiB/s" in figures_line(snapshot)


def test_a_new_phase_begins_with_nothing() -> None:
    """The last interval of one phase comes after the next has begun.

    Its figures are not those of the next.
    """
    shown = figures()
    started(shown, "measure", 0)
    sample(shown, 1, database_read=(100, 1.0, 0))
    started(shown, "checksum", 2)
    sample(shown, 2, database_read=(100, 1.0, 0))
    assert shown.snapshot()["database_read_per_s"] == 0.0


def test_generating_logs_goes_on_by_the_logs_written() -> None:
    """A phase without a length is as far as the instance that has written least."""
    shown = figures()
    started(shown, "generate_logs", 100)
    sample(shown, 101, log_generation=(0, 0.0, 7))
    sample(shown, 111, log_generation=(0, 0.0, 12))
    assert shown.share_done() == 0.25
    assert shown.remaining_s() == 33.0


def test_the_time_for_finding_a_rate_is_forecast() -> None:
    """Two windows of 20 s are always waited for.

    "about 14 s in all" before a minute of work is a wrong promise.
    """
    from plimsoll.databases.preflight import Preflight
    from plimsoll.pipeline import forecast

    def total(load: dict[str, Any]) -> float:
        phases = [{"kind": "prepare"}, {"kind": "warm_up"}, {"kind": "measure", "duration_s": 100}]
        instance = {"name": "one", "database_size_mib": 64}
        target = {"name": "disk", "path": "/data"}
        workload = {"name": "mix", "load": load}
        wanted = {
            "name": "case",
            "target": [target],
            "instance": [instance],
            "workload": [workload],
            "phase": phases,
        }
        plan = plan_of_options(wanted)
        return forecast.total_s(plan, Preflight(plan.run, plan.run))

    assert total({"target_iops": 240}) == total({"sessions": 3}) + 40


def test_the_first_line_says_that_warm_caches_are_waited_for() -> None:
    """ "about 10 s in all" stood above a run that took two minutes to fill its caches."""
    from plimsoll.databases.preflight import Preflight
    from plimsoll.pipeline import forecast

    plan = plan_of_options(
        {"target": [{"name": "a", "path": "/data"}], "instance": [{"name": "i"}]}
    )
    said: list[str] = []
    listener = Listener()
    listener.say = said.append  # type: ignore[method-assign]
    forecast._tell(plan, Preflight(plan.run, plan.run), listener)
    assert "waiting for warm caches not counted" in said[0] and "in all" not in said[0]


def test_each_of_several_loads_has_its_rate_in_the_line() -> None:
    """A dip of one of them is not seen in the sum of the disk's operations."""
    plan = plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [
                {"name": "one", "database_size_mib": 64},
                {"name": "two", "database_size_mib": 64},
            ],
            "workload": [
                {"name": "orders", "instances": ["one"], "load": {"transactions_per_s": 5}},
                {
                    "name": "the mail of everyone in the branch offices",
                    "instances": ["two"],
                    "load": {"transactions_per_s": 70},
                },
            ],
            "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 100}],
        }
    )
    shown = Figures(plan, [*METRICS, "insert"], 0)
    started(shown, "measure", 0)
    count = np.array([5, 70], dtype=np.uint64)
    table: dict[str, Any] = {
        "end_ns": np.full(2, 10**9, dtype=np.uint64),
        "interval_ns": np.full(2, 10**9, dtype=np.uint64),
        "metric": np.full(2, len(METRICS), dtype=np.uint64),
        "workload": np.array([1, 2], dtype=np.uint64),
        "count": count,
        "errors": np.zeros(2, dtype=np.uint64),
        "bytes": np.zeros(2, dtype=np.uint64),
        "latency_ns_sum": count * 2_500_000,
        "instance": np.zeros(2, dtype=np.uint32),
        "value": np.zeros(2),
    }
    shown.sample(table)
    assert shown.snapshot()["loads"][0] == {"name": "orders", "per_s": 5.0, "ms_mean": 2.5}
    line = figures_line(shown)
    assert "orders 5/s 2.50 ms" in line and "the mail of …nch offices 70/s 2.50 ms" in line
