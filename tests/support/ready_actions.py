"""What tests of ready actions share: steps, tools of our own, a machine as an action sees it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.ready_actions import Step
from plimsoll.run.actions import Surroundings
from plimsoll.run.steps import carry_out_steps


def here(tmp_path: Path, **changes: object) -> Surroundings:
    """This machine and a run, with other trees or another user in their place."""
    known: dict[str, object] = {"event": "one", "run_folder": tmp_path, "targets": {}}
    return Surroundings(**{**known, **changes})  # type: ignore[arg-type]


def done(
    steps: Sequence[Step], tmp_path: Path, timeout_s: float = 10, *, to_the_end: bool = False
) -> str | None:
    """Carry out steps; what went wrong, None where nothing did."""
    return carry_out_steps(steps, timeout_s, {}, tmp_path, to_the_end=to_the_end).error


def tool(place: Path, name: str, script: str) -> None:
    """A program of our own in the place of a tool; it notes how it was called."""
    place.mkdir(exist_ok=True)
    text = f'#!/bin/sh\necho "{name} $*" >> {place}/calls\n{script}\n'
    (place / name).write_text(text)
    (place / name).chmod(0o755)
