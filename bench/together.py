"""Several loads at once: what four of them cost the busiest thread, against each of them alone at
the same rates, and how long the published combined test takes on the modelled array.
"""

import json
import re
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from pairs import lower_bound, spread
from programs import PLIMSOLL, PYTHON, ROOT, ProgramError, run

COST, MODELLED = "Several loads at once", "The published combined test"
#: A disk that costs no more than copying; where there is none, the benchmark's directory.
RAM = Path("/dev/shm")
LOADS = ("records", "store", "files", "mail")
OVER_SUM_MAX = 1.10
ROUNDS = 5
PLAN = ROOT / "examples" / "md3000i_together_500.toml"
WALL_S_MAX = 90
#: Exit codes of a run that came to its end: pass, fail, inconclusive.
JUDGED = (0, 1, 3)


def cost(directory: Path, quick: bool) -> list[Figure]:
    """Each load alone and all four at once, in turns; each goes first in some rounds."""
    place = Path(tempfile.mkdtemp(prefix="plimsoll-bench-", dir=RAM if RAM.is_dir() else directory))
    load = load_average()
    seconds, rounds = (4, 1) if quick else (12, ROUNDS)
    sides = [*((name,) for name in LOADS), LOADS]
    words = [PYTHON, "-m", "tools.load_cost", place]
    try:
        for side in sides:
            _one([*words, 3, *side])  # makes the databases, and is not counted
        runs: dict[tuple[str, ...], list[dict[str, Any]]] = {side: [] for side in sides}
        for number in range(rounds):
            first = number % len(sides)
            for side in (*sides[first:], *sides[:first]):
                runs[side].append(_one([*words, seconds, *side]))
    finally:
        shutil.rmtree(place)
    busiest = {side: [one["busiest"] for one in found] for side, found in runs.items()}
    sums = [sum(each) for each in zip(*(busiest[(name,)] for name in LOADS), strict=True)]
    ratios = [both / single for both, single in zip(busiest[LOADS], sums, strict=True)]
    ratio, upper = spread(ratios), -lower_bound([-value for value in ratios])
    alone = ", ".join(f"{name} {spread(busiest[(name,)]).median:.1%}" for name in LOADS)
    return [
        Figure(
            COST,
            "processor time of the busiest thread, all four at once over the sum of each alone",
            f"{ratio.text(3)}; upper bound {upper:.3f}; {spread(busiest[LOADS]).median:.1%} of a "
            f"processor at once, alone {alone}",
            f"upper bound at most {OVER_SUM_MAX:.2f}",
            upper <= OVER_SUM_MAX,
            f"python -m tools.load_cost DIRECTORY {seconds} [LOAD ...]",
            load,
            "Every load arrives evenly at the same rate alone and at once, on a RAM disk. The "
            "processor time is that of the thread which has most of it, as the kernel's scheduler "
            "counts it.",
            data={"runs": {" and ".join(side): found for side, found in runs.items()}},
        )
    ]


def _one(words: list[object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(words).splitlines()[-1])
    if found["ending"] != "complete":
        raise ProgramError(f"{' '.join(map(str, words))} ended as {found['ending']}")
    return found


def modelled(directory: Path, quick: bool) -> list[Figure]:
    """Five hundred users of mail, store and two file servers for thirty minutes."""
    place = Path(tempfile.mkdtemp(prefix="together-", dir=directory))
    load = load_average()
    plan = place / "plan.toml"
    text = PLAN.read_text()
    plan.write_text(re.sub(r"duration_s = \d+", "duration_s = 2", text) if quick else text)
    runs = []
    try:
        for number in range(1 if quick else 3):
            runs.append(_run(plan, place / f"run-{number}"))
    finally:
        shutil.rmtree(place)
    wall = spread([one["wall_s"] for one in runs])
    processor = spread([one["processor_s"] for one in runs])
    return [
        Figure(
            MODELLED,
            "mail, a store and two file servers of 500 users, 30 minutes on the modelled MD3000i",
            f"{wall.text(1)} s; {processor.median:.1f} s of processor",
            f"at most {WALL_S_MAX} s",
            None if quick else wall.most <= WALL_S_MAX,
            f"plimsoll run {PLAN.relative_to(ROOT)} --yes --out DIRECTORY",
            load,
            "From the start of the process to the report.",
            data={"runs": runs},
        )
    ]


def _run(plan: Path, out: Path) -> dict[str, float]:
    words = [str(word) for word in (PLIMSOLL, "run", plan, "--yes", "--out", out)]
    used, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in JUDGED:
        raise ProgramError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    spent = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {"wall_s": wall, "processor_s": spent}
