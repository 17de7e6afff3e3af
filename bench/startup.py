"""How long a person waits before the program says anything: whole processes, from start to exit."""

import subprocess
import time

from environment import load_average
from figure import Figure
from pairs import spread
from programs import PLIMSOLL, PYTHON, ROOT, ProgramError

SECTION = "Start-up"
#: Seconds that a command may take, start of the interpreter included.
COMMANDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "plimsoll --help": (0.1, ("--help",)),
    "a sizing": (
        0.15,
        (
            "size",
            "--users",
            "5000",
            "--quota-mb",
            "2048",
            "--messages-per-day",
            "150",
            "--copies",
            "2",
            "--dag",
            "--max-database-gb",
            "1024",
        ),
    ),
}


def startup(quick: bool) -> list[Figure]:
    """The two commands whose start-up is promised, 21 times each, with the interpreter alone in
    between.
    """
    if not PLIMSOLL.exists():
        raise ProgramError("the program is not installed here; run `make setup` first")
    load = load_average()
    rounds = 1 if quick else 21
    interpreter = [seconds_of([str(PYTHON), "-c", ""]) for _ in range(rounds)]
    found = []
    for name, (seconds_max, words) in COMMANDS.items():
        taken = spread([seconds_of([str(PLIMSOLL), *words]) for _ in range(rounds)])
        found.append(
            Figure(
                SECTION,
                f"{name}, seconds",
                taken.text(3),
                f"below {seconds_max:g}",
                taken.median < seconds_max,
                f"plimsoll {' '.join(words)}",
                load,
                data={"interpreter_alone_s": spread(interpreter).median},
            )
        )
    alone = spread(interpreter)
    found.append(
        Figure(
            SECTION,
            "the interpreter alone, seconds",
            alone.text(3),
            "beside it",
            None,
            "python -c ''",
            load,
        )
    )
    return found


def seconds_of(words: list[str]) -> float:
    """Wall seconds of one process; its output is thrown away."""
    started = time.perf_counter()
    done = subprocess.run(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    taken = time.perf_counter() - started
    if done.returncode != 0:
        raise ProgramError(
            f"{' '.join(words)} ended with {done.returncode}: "
            f"{done.stderr.decode(errors='replace')}"
        )
    return taken
