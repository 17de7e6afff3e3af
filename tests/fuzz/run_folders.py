"""Run folders with damaged files, given to the commands that read them: each has to end in a result or in a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from injuries import damage

from plimsoll.cli import EXIT_INTERNAL, run_program

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
COMMANDS = ("report", "export", "status", "watch", "runs", "compare", "combine")
OTHERS: list[Any] = [None, True, -1, 0, 1e308, "", "x", "é" * 300, [], [1], {}, {"a": 1}]


@cache
def sound() -> Path:
    """A copy of the golden run with its later stages done."""
    run = Path(tempfile.mkdtemp(prefix="plimsoll-sound-")) / "run"
    shutil.copytree(GOLDEN, run)
    _outcome(["report", str(run)])
    return run


def _outcome(words: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it said about its failure."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = run_program(words)
    return code, errors.getvalue()


def _exchange(content: Any, chance: random.Random) -> None:
    """Takes something out of a value of JSON, or puts something else there, anywhere in it."""
    while isinstance(content, (dict, list)) and content:
        key = chance.choice(list(content)) if isinstance(content, dict) else chance.randrange(len(content))
        if chance.random() < 0.35:
            if chance.random() < 0.5:
                del content[key]
            else:
                content[key] = chance.choice(OTHERS)
            return
        content = content[key]


def survives_run_folder(seed: int) -> None:
    """One file of a run is damaged, and a command reads it.

    Raises:
        AssertionError: the command takes it for a fault of its own.
    """
    chance = random.Random(f"run folder {seed}")
    with tempfile.TemporaryDirectory(prefix="plimsoll-fuzz-") as home:
        run = Path(home) / "run"
        shutil.copytree(sound(), run)
        path = chance.choice(sorted(run.glob("*.*")))
        content = path.read_bytes()
        if path.suffix == ".json" and chance.random() < 0.7:
            value = json.loads(content)
            for _ in range(chance.randint(1, 3)):
                _exchange(value, chance)
            path.write_text(json.dumps(value))
        else:
            path.write_bytes(damage(content, [content], chance))
        command = chance.choice(COMMANDS)
        words = [command, str(run)] + ([str(sound())] if command in ("compare", "combine") else [])
        code, errors = _outcome(words)
        assert code != EXIT_INTERNAL, f"{command} with damaged {path.name}: {errors}"
