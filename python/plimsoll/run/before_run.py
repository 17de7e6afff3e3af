"""What is done before each run of a series: commands, waiting until a server answers, settling.

Whoever stops the series meanwhile ends it here. A command that runs is waited for, because half a
restored server is none; Ctrl-C and signals kill it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.plan import RepeatPlan
from plimsoll.documents.repeats import CommandBefore
from plimsoll.run.event_command import carry_out, shown

#: How often a server that boots is asked.
ASK_EVERY_S = 1.0


@dataclass(frozen=True)
class Prepared:
    """Whether a run may begin.

    Attributes:
        may_begin: whether all was done, and nobody stopped the series.
        problem: what went wrong, in a sentence; None where nothing did.
    """

    may_begin: bool
    problem: str | None = None


def commands_of(repeat: RepeatPlan) -> list[str]:
    """Every command that is started before a run, for consent and for a dry run."""
    lines = [
        f"before each run: runs `{shown(argv)}`, at most {repeat.timeout_s:g} s"
        for argv in repeat.before
    ]
    if repeat.ready:
        lines.append(
            f"before each run: asks `{shown(repeat.ready)}` until it ends with 0, at most "
            f"{repeat.ready_timeout_s:g} s"
        )
    return lines


def prepare_run(
    repeat: RepeatPlan,
    run_folder: Path,
    number: int,
    say: Callable[[str], None],
    stop: threading.Event,
    note: Callable[[Sequence[CommandBefore]], None],
) -> Prepared:
    """Do what a plan wants done before a run.

    Args:
        repeat: what that is.
        run_folder: of the run.
        number: of the run, from 1.
        say: told what is done, in sentences.
        stop: set from another thread to stop the series.
        note: told what was done so far, after each command.

    Raises:
        KeyboardInterrupt: with a sentence where a command was killed.
    """
    variables = {"PLIMSOLL_RUN_FOLDER": str(run_folder), "PLIMSOLL_RUN_NUMBER": str(number)}
    done: list[CommandBefore] = []

    def carried_out(argv: Sequence[str], timeout_s: float) -> CommandBefore:
        begun_s = time.monotonic()
        try:
            ended = carry_out(argv, timeout_s, variables, run_folder)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"`{shown(argv)}` was killed") from None
        return CommandBefore(
            command=argv,
            seconds=time.monotonic() - begun_s,
            exit_code=ended.exit_code,
            output=ended.output,
            error=ended.error,
        )

    for argv in repeat.before:
        if stop.is_set():
            return Prepared(may_begin=False)
        say(f"before run {number}: {shown(argv)}")
        done.append(carried_out(argv, repeat.timeout_s))
        note(done)
        if done[-1].error is not None:
            return Prepared(may_begin=False, problem=f"before run {number}: {done[-1].error}")
    if repeat.ready:
        until_s = time.monotonic() + repeat.ready_timeout_s
        asked = carried_out(repeat.ready, repeat.ready_timeout_s)
        while asked.error is not None:
            left_s = until_s - time.monotonic()
            if asked.exit_code is None or left_s <= 0:
                note([*done, asked])
                late = f"nobody was ready within {repeat.ready_timeout_s:g} s: {asked.error}"
                wrong = asked.error if asked.exit_code is None else late
                return Prepared(may_begin=False, problem=f"before run {number}: {wrong}")
            if stop.wait(min(ASK_EVERY_S, left_s)):
                return Prepared(may_begin=False)
            if (left_s := until_s - time.monotonic()) > 0:
                asked = carried_out(repeat.ready, left_s)
        note([*done, asked])
    if repeat.settle_s:
        say(f"before run {number}: settles for {repeat.settle_s:g} s")
    return Prepared(may_begin=not stop.wait(repeat.settle_s))
