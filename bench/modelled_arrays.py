"""How fast modelled arrays run.

The light workload, the engine for two hours and for a day, and the toy queue against SimPy.
"""

import json
import venv
from typing import Any

from environment import load_average
from figure import Figure
from programs import PYTHON, ROOT, ours, run

SECTION = "Modelled arrays"
#: An interpreter of its own for the rival, so that the product's locks need not know it.
RIVAL = ROOT / ".tools" / "simpy"
RIVAL_VERSION = "simpy==4.1.1"
LIGHT_PER_SECOND_MIN = 800_000
HOURS_2_WALL_S_MAX, HOURS_24_WALL_S_MAX, MEMORY_BYTES_MAX = 60, 600, 4 << 30
TOY_RATIO_MIN = 50
CUSTOMERS = 16


def _speed(*words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run([PYTHON, "-m", "tools.model_speed", *words]).splitlines()[-1]
    )
    return found


def light(quick: bool) -> list[Figure]:
    """Host I/Os of the light workload for each second of a core."""
    found = []
    for preset in ("emc-vnxe3300", "equallogic-ps6000xv", "nearline-raid6"):
        load = load_average()
        words = ("light", preset, 10 if quick else 1200)
        one = _speed(*words)
        rate = one["requests_per_processor_s"]
        found.append(
            Figure(
                SECTION,
                f"modelled host I/Os per second of one core, light workload, {preset}",
                f"{rate:,.0f} ({one['requests']:,} I/Os in {one['wall_s']:.1f} s)",
                f"at least {LIGHT_PER_SECOND_MIN:,}",
                rate >= LIGHT_PER_SECOND_MIN,
                f"python -m tools.model_speed {' '.join(map(str, words))}",
                load,
                data=one,
            )
        )
    return found


def engine(quick: bool, hours: float = 2) -> list[Figure]:
    """The engine on the EMC array for two hours, or a day."""
    load = load_average()
    words = ("engine", "emc-vnxe3300", 0.01 if quick else hours, 3)
    one = _speed(*words)
    most = HOURS_2_WALL_S_MAX if hours <= 2 else HOURS_24_WALL_S_MAX
    met = one["wall_s"] < most and (hours <= 2 or one["memory_bytes"] < MEMORY_BYTES_MAX)
    bar = f"below {most} s" + ("" if hours <= 2 else " and 4 GiB")
    return [
        Figure(
            SECTION,
            f"a {hours:g} h test of the engine on the modelled EMC VNXe3300, 3 sessions on each of "
            f"2 databases",
            f"{one['wall_s']:.1f} s ({one['processor_s']:.1f} s of processor), "
            f"{one['memory_bytes'] / 2**30:.2f} GiB",
            bar,
            None if quick else met,
            f"python -m tools.model_speed {' '.join(map(str, words))}",
            load,
            data=one,
        )
    ]


def toy(quick: bool) -> list[Figure]:
    """The closed queue on our events and on SimPy's, in turns; both must agree about the queue."""
    if not (RIVAL / "bin" / "python").exists():
        venv.create(RIVAL, with_pip=True)
    run(
        [
            RIVAL / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            RIVAL_VERSION,
        ]
    )
    load = load_average()
    mine, theirs = (20_000, 2_000) if quick else (4_000_000, 100_000)
    pairs = []
    for _ in range(1 if quick else 5):
        us = ours("closed_queue", {"customers": CUSTOMERS, "requests": mine})
        words = [
            RIVAL / "bin" / "python",
            ROOT / "bench" / "closed_queue_simpy.py",
            CUSTOMERS,
            theirs,
        ]
        pairs.append((us, json.loads(run(words).splitlines()[-1])))
    ratios = sorted(us["requests_per_second"] / them["requests_per_second"] for us, them in pairs)
    ratio = ratios[len(ratios) // 2]
    us, them = pairs[-1]
    value = (
        f"{ratio:.0f} times ({us['requests_per_second'] / 1e6:.1f} M against "
        f"{them['requests_per_second'] / 1e6:.3f} M a second; "
        f"mean response {us['response_ms']:.2f} and {them['response_ms']:.2f} ms)"
    )
    return [
        Figure(
            SECTION,
            "toy closed M/G/1 queue, requests per second over SimPy's in the same run",
            value,
            f"at least {TOY_RATIO_MIN}",
            ratio >= TOY_RATIO_MIN,
            f"target/release/closed_queue customers={CUSTOMERS} requests={mine}; {RIVAL_VERSION}",
            load,
            data={"pairs": [[one["requests_per_second"] for one in pair] for pair in pairs]},
        )
    ]
