"""`python -m tools.engine_trace FILE`.

What the engine makes for each page read, from the engine itself.

The engine runs each edition's mix on a modelled array in virtual time with the sessions and cache
the edition is known for; what it transferred is divided by its reads. The latencies of the array
enter only the share of a log write that a commit waits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from plimsoll import _native
from plimsoll.arrays.plan_storage import filling_mib
from plimsoll.arrays.presets import array_preset
from plimsoll.files.folder import Content
from plimsoll.plan.complete import plan_of_options

ARRAY, DATABASES, MEASURE_S = "emc-vnxe3300", 2, 300
#: After a warm cache it takes a while until as many pages are written as are changed.
SETTLE_S = 30
EDITIONS = ("2003", "2007", "2010", "2013")


def engine_figures(
    run: Content, seconds: float, phase: str = "measure"
) -> dict[str, tuple[float, float, float, float]]:
    """Rate, mean bytes, mean latency in ms and count of each metric of a phase, all places
    together.
    """
    native = _native.Run(json.dumps(run))
    while native.next_samples(1.0) is not None:
        native.next_events()
    outcome = json.loads(native.outcome())
    if outcome["ending"] != "complete":
        raise RuntimeError(f"the engine did not come to its end: {outcome['error']}")
    number = [item["name"] for item in outcome["phases"]].index(phase)
    sums: dict[str, list[int]] = {}
    for figure in outcome["figures"]:
        if figure["phase"] == number:
            kept = sums.setdefault(figure["metric"], [0, 0, 0])
            for index, key in enumerate(("count", "bytes", "latency_ns_sum")):
                kept[index] += figure[key]
    return {
        name: (count / seconds, size / count, total_ns / count / 1e6, float(count))
        for name, (count, size, total_ns) in sums.items()
        if count
    }


def engine_plan(
    array: str,
    edition: str,
    session_count: int,
    seconds: float,
    databases: int = DATABASES,
    cache_mib: int | None = None,
) -> Content:
    """The `run` part of a plan that puts the engine on a modelled array."""
    size = filling_mib(array_preset(array), databases)
    instance = {"edition": edition, "database_size_mib": size} | (
        {"cache_mib_max": cache_mib} if cache_mib else {}
    )
    plan = plan_of_options(
        {
            "target": [{"name": "target", "modelled": array}],
            "instance": [
                {"name": f"instance{number}", **instance} for number in range(1, databases + 1)
            ],
            "workload": [{"name": "mix", "load": {"sessions": session_count}}],
            "phase": [
                {"kind": "prepare"},
                {"kind": "warm_up"},
                {"kind": "measure", "name": "settle", "duration_s": SETTLE_S},
                {"kind": "measure", "duration_s": seconds},
                {"kind": "stop"},
            ],
        }
    )
    return plan.run.plain()


def ratios(edition: str) -> dict[str, float]:
    """What the light workload needs to know of an edition."""
    figures = engine_figures(engine_plan(ARRAY, edition, 3, MEASURE_S), MEASURE_S)
    reads = figures["database_read"][3]
    operations = sum(
        figures[kind][3] for kind in ("insert", "delete", "replace", "read") if kind in figures
    )
    waits, log = figures.get("log_flush_wait", (0.0, 0.0, 0.0, 0.0)), figures["log_write"]
    found = {
        "read_bytes": figures["database_read"][1],
        "writes_per_read": figures["database_write"][3] / reads,
        "write_bytes": figures["database_write"][1],
        "log_writes_per_read": log[3] / reads,
        "log_write_bytes": log[1],
        "log_waits_per_read": waits[3] * waits[2] / log[2] / reads,
        "transactions_per_read": operations / reads,
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def main() -> None:
    """Trace every edition and write the data file."""
    lines = [
        "# What the engine makes for each page read, by edition; written by `python -m "
        "tools.engine_trace FILE` from runs of",
        f"# the engine on the modelled {ARRAY} ({MEASURE_S} s, {DATABASES} databases, 3 sessions "
        f"each). Change the program, not this file.",
        "",
        'kind = "engine_load"',
    ]
    for edition in EDITIONS:
        lines += [
            "",
            f"[editions.{edition}]",
            *(f"{key} = {value!r}" for key, value in ratios(edition).items()),
        ]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
