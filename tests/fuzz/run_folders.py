"""Run folders with damaged files, given to the commands that read them.

Each has to end in a result or in a sentence.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from plimsoll import exit_codes
from plimsoll.cli import run_program
from tests.fuzz.injuries import damage, exchanged

ROOT = Path(__file__).parents[2]
GOLDEN, SOLUTION = ROOT / "tests" / "golden" / "run", ROOT / "examples" / "esrp" / "solution.toml"
COMMANDS: dict[str, list[str]] = {
    "report": ["{run}"],
    "export": ["{run}"],
    "status": ["{run}"],
    "watch": ["{run}"],
    "runs": ["{run}"],
    "advise": ["{run}"],
    "compare": ["{run}", "{other}", "--html", "{home}/page.html"],
    "combine": ["{run}", "{other}", "--out", "{home}/both"],
    "pack": ["{run}", "--redact", "--out", "{home}/run.tar.gz"],
    "esrp": ["{solution}", "--out", "{home}/document", "--formats", "html,docx,xlsx"],
}


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
    for name, keys in (
        ("outcome.json", ("anchors", 0, "utc_ns")),
        ("environment.json", ("machine", "host_name")),
    ):
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


def _solution_of(run: Path) -> Path:
    """The description of a solution that was tested by this run, beside it."""
    text = SOLUTION.read_text(encoding="utf-8").replace('"performance.html"', json.dumps(str(run)))
    path = run.with_name("solution.toml")
    path.write_text(re.sub(r'\["(\w+\.html)"', rf'["{SOLUTION.parent}/\1"', text), encoding="utf-8")
    return path


def read_with(command: str, run: Path) -> tuple[int, str]:
    """The exit code of a command that reads a run, and what it said about its failure.

    What it writes lies beside the run.
    """
    words = {"run": run, "other": other(), "home": run.parent, "solution": _solution_of(run)}
    return outcome([command, *(word.format_map(words) for word in COMMANDS[command])])


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
            path.write_bytes(exchanged(content, chance))
        else:
            path.write_bytes(damage(content, [content], chance))
        command = chance.choice(list(COMMANDS))
        code, errors = read_with(command, run)
        assert code != exit_codes.INTERNAL, f"{command} with damaged {path.name}: {errors}"
