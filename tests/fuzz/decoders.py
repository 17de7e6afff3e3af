"""Every reader of files that come from people or strangers, with its corpus.

The shipped examples and `corpus/`, all of them ours.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll.advice.rules import read_rules
from plimsoll.advice.topology import read_topology
from plimsoll.arrays.presets import read_arrays, read_drives
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import read_plan
from plimsoll.plan.limits import LimitError, parse_limit
from plimsoll.plan.stop_conditions import ConditionError, parse
from plimsoll.sizing.catalogue import read_catalogue
from plimsoll.sizing.cost_study import read_cost_study
from plimsoll.sizing.requirements import read_requirements
from plimsoll.solution.solution import read_solution
from plimsoll.study.description import read_study
from tests.fuzz.archives import survives_archive
from tests.fuzz.injuries import damage
from tests.fuzz.power_cuts import survives_power_cut
from tests.fuzz.run_folders import survives_run_folder

ROOT = Path(__file__).parents[2]
#: One input may take this long: more is a way to keep somebody waiting.
SECONDS_MAX = 20.0
FILES: dict[str, Callable[[Path], Any]] = {
    "plan": read_plan,
    "requirements": read_requirements,
    "catalogue": read_catalogue,
    "cost": read_cost_study,
    "study": read_study,
    "topology": read_topology,
    "solution": read_solution,
    "modelled_arrays": read_arrays,
    "modelled_drives": read_drives,
    "rules": read_rules,
}
CONDITIONS = [
    b"db_read_latency_ms_p99>50 for 3s",
    b"log_write_latency_ms_mean >= 10 for 2 min",
    b"database_write_per_s<1",
]
IMPORTS = ("configuration", "page", "results", "paper")
FOLDERS = {
    "archive": survives_archive,
    "power_cut": survives_power_cut,
    "run_folder": survives_run_folder,
}
NAMES = [*FILES, "condition", "limit", *FOLDERS, *IMPORTS]


@cache
def corpus(kind: str) -> list[bytes]:
    """The sound files of a kind, told by their first key."""
    places = [
        *(ROOT / "examples").rglob("*.toml"),
        *Path(__file__).with_name("corpus").glob("*.toml"),
    ]
    places += (ROOT / "python/plimsoll").rglob("data/*.toml")
    texts = [path.read_bytes() for path in sorted(places)]
    return [
        text
        for text in texts
        if any(line.strip() == f'kind = "{kind}"'.encode() for line in text.split(b"\n")[:40])
    ]


def inputs_of(home: Path) -> Path:
    """A folder for inputs, with the plans beside it that studies name by `../`."""
    for plan in (ROOT / "examples").glob("*.toml"):
        shutil.copy(plan, home)
    inputs = home / "inputs"
    inputs.mkdir()
    return inputs


def survives(name: str, seed: int) -> None:
    """A damaged input is read or refused in words, and soon.

    Raises:
        AssertionError: it took too long.
    """
    chance = random.Random(f"{name} {seed}")
    began = time.monotonic()
    if name in FILES:
        _survives_file(name, chance)
    elif name in IMPORTS:
        from tests.imports.test_damaged_imports import survives as survives_import

        survives_import(name, seed)
    elif name in FOLDERS:
        FOLDERS[name](seed)
    else:
        _survives_words(name, chance)
    seconds = time.monotonic() - began
    assert seconds < SECONDS_MAX, f"{name} {seed} took {seconds:.1f} s"


def _survives_file(name: str, chance: random.Random) -> None:
    sound = corpus(name)
    assert sound, f"there is no corpus of {name}"
    with tempfile.TemporaryDirectory(prefix="plimsoll-fuzz-") as folder:
        path = inputs_of(Path(folder)) / f"{name}.toml"
        path.write_bytes(damage(chance.choice(sound), sound, chance))
        try:
            FILES[name](path)
        except InputError as error:
            assert error.mistakes
            assert str(error)


def _survives_words(name: str, chance: random.Random) -> None:
    text = damage(chance.choice(CONDITIONS), CONDITIONS, chance).decode("utf-8", "replace")
    try:
        parse(text) if name == "condition" else parse_limit(text)
    except (ConditionError, LimitError) as error:
        assert str(error)
