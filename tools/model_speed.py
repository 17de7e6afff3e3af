"""`python -m tools.model_speed light|engine ...`: how fast the model runs here.

One line of JSON, for `make bench`.

light PRESET SIMULATED_SECONDS     host I/Os of the light workload for each second of this process's
processor time engine PRESET HOURS SESSIONS       the engine on the modelled array: wall time,
processor time, memory
"""

from __future__ import annotations

import json
import resource
import sys
import time

from plimsoll import _native
from plimsoll.arrays.mail_streams import light_spec
from plimsoll.arrays.presets import array_preset
from tools.engine_trace import engine_figures, engine_plan


def light(preset: str, simulated_s: float) -> dict[str, object]:
    """The light workload on two databases, one thread."""
    spec = light_spec(array_preset(preset), 2, 8, warm_up_s=1, measure_s=simulated_s)
    text = json.dumps(spec)
    wall, processor = time.monotonic(), time.process_time()
    outcome = json.loads(_native.simulate(text))
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    return {
        "requests": outcome["request_count"],
        "events": outcome["event_count"],
        "wall_s": wall,
        "processor_s": processor,
        "requests_per_processor_s": outcome["request_count"] / processor,
        "simulated_s": simulated_s + 1,
    }


def engine(preset: str, hours: float, session_count: int) -> dict[str, object]:
    """The engine for so long; the warm-up is part of the time it takes."""
    seconds = hours * 3600
    run = engine_plan(preset, "2010", session_count, seconds)
    wall, processor = time.monotonic(), time.process_time()
    figures = engine_figures(run, seconds)
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    iops = figures["database_read"][0] + figures["database_write"][0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "hours": hours,
        "wall_s": wall,
        "processor_s": processor,
        "memory_bytes": memory,
        "database_iops": iops,
    }


def main() -> None:
    """Measure what the command line names."""
    kind, preset, amount, *more = sys.argv[1:]
    found = (
        light(preset, float(amount))
        if kind == "light"
        else engine(preset, float(amount), int(more[0]))
    )
    print(json.dumps(found | {"release_build": _native.is_release_build}))


if __name__ == "__main__":
    main()
