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
COMMANDS: dict[str, list[str]] = {
    "report": [],
    "export": [],
    "status": [],
    "watch": [],
    "runs": [],
    "advise": [],
    "compare": ["{other}", "--html", "{home}/page.html"],
    "combine": ["{other}", "--out", "{home}/both"],
    "pack": ["--redact", "--out", "{home}/run.tar.gz"],
}
OTHERS: list[Any] = [None, True, -1, 0, 1e308, "", "x", "é" * 300, [], [1], {}, {"a": 1}]


@cache
def sound() -> Path:
    """A copy of the golden run with its later stages done."""
    run = Path(tempfile.mkdtemp(prefix="plimsoll-sound-")) / "run"
    shutil.copytree(GOLDEN, run)
    outcome(["report", str(run)])
    return run


@cache
def other() -> Path:
    """The same run on another host at the same time."""
    run = sound().with_name("other")
    shutil.copytree(sound(), run)
    for name, keys in (("outcome.json", ("anchors", 0, "utc_ns")), ("environment.json", ("machine", "host_name"))):
        content = held = json.loads((run / name).read_text())
        for key in keys[:-1]:
            held = held[key]
        held[keys[-1]] = "other" if isinstance(held[keys[-1]], str) else held[keys[-1]] + 1_000_000
        (run / name).write_text(json.dumps(content))
    return run


def outcome(words: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it said about its failure."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = run_program(words)
    return code, errors.getvalue()


def further_words(command: str, home: Path) -> list[str]:
    """What a command is told beside the run."""
    return [word.format(home=home, other=other()) for word in COMMANDS[command]]


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
        command = chance.choice(list(COMMANDS))
        words = [command, str(run), *further_words(command, Path(home))]
        code, errors = outcome(words)
        assert code != EXIT_INTERNAL, f"{command} with damaged {path.name}: {errors}"
