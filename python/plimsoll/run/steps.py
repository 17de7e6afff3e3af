"""Carries out steps of events and says them in words.

What proves something is looked at until it holds or the time is over, because devices and servers
take a moment. To remove a folder that is not there, or to end a process that has gone, is no
mistake: a step that undoes may be carried out twice.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from plimsoll.documents.ready_actions import Step
from plimsoll.errors.system_errors import system_reason
from plimsoll.host import processes
from plimsoll.run.event_command import Ended, carry_out, environment_of, never, shown, untold

_LOOK_EVERY_S = 0.05
#: How long a process that is asked to stop gets before it is killed, as a share of the time of its
#: step.
_GENTLE_SHARE = 0.7


@dataclass(frozen=True)
class Limit:
    """How long a step may take: seconds, and what cuts it short; and who is told of its command."""

    seconds: float
    is_cut: Callable[[], bool] = never
    on_start: Callable[[int], None] = untold


def carry_out_steps(
    steps: Sequence[Step],
    timeout_s: float,
    own: Mapping[str, str],
    cwd: Path,
    *,
    to_the_end: bool = False,
    is_cut: Callable[[], bool] = never,
    on_start: Callable[[int], None] = untold,
) -> Ended:
    """Carry out steps in their order.

    Args:
        steps: what is to be done.
        timeout_s: seconds that each of them may take.
        own: as in `carry_out`.
        cwd: where commands run.
        to_the_end: go on where one fails, as for an undo.
        is_cut: whether no step is waited for any longer.
        on_start: as in `carry_out`, of commands that change something.

    Returns:
        The exit code of the last command (0 where none ran), what all commands wrote, and
        everything that went wrong.
    """
    code: int | None = 0
    output, wrong = "", list[str]()
    lives_on: int | None = None
    limit = Limit(timeout_s, is_cut, on_start)
    for step in steps:
        ended = _one(step, limit, own, cwd)
        output += ended.output
        lives_on = lives_on or ended.lives_on
        if step.kind == "run":
            code = ended.exit_code
        if ended.error is not None:
            wrong.append(ended.error)
            if not to_the_end:
                break
    return Ended(code, output, "; ".join(wrong) or None, lives_on)


def _one(step: Step, limit: Limit, own: Mapping[str, str], cwd: Path) -> Ended:
    if step.kind == "run":
        ended = carry_out(step.argv, limit.seconds, own, cwd, limit.is_cut, limit.on_start)
        if ended.error is None or not step.otherwise:
            return ended
        other = carry_out(step.otherwise, limit.seconds, own, cwd, limit.is_cut, limit.on_start)
        error = None if other.error is None else f"{ended.error}; {other.error}"
        lives_on = ended.lives_on or other.lives_on
        return Ended(other.exit_code, ended.output + other.output, error, lives_on)
    try:
        error = _DOES[step.kind](step, limit, own, cwd)
    except OSError as found:
        error = f"{step_in_words(step)}: {system_reason(found)}"
    return Ended(0, "", error)


Does = Callable[[Step, Limit, Mapping[str, str], Path], str | None]


def _write(step: Step, _limit: Limit, _own: Mapping[str, str], _cwd: Path) -> None:
    # The kernel takes a setting as one write, and makes no file where there is none.
    descriptor = os.open(_path(step), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, os.fsencode(step.text or ""))
    finally:
        os.close(descriptor)


def _release(step: Step, limit: Limit, own: Mapping[str, str], cwd: Path) -> None:
    with suppress(FileNotFoundError):
        _write(step, limit, own, cwd)


def _make(step: Step, _limit: Limit, _own: Mapping[str, str], _cwd: Path) -> None:
    _path(step).mkdir()


def _remove(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    def is_gone() -> bool:
        # A control group is busy for a moment after its last process has left.
        try:
            _path(step).rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    if _holds(is_gone, limit):
        return None
    _path(step).rmdir()
    return None


def _empty(step: Step, _limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    members = _path(step) / "cgroup.procs"
    for _ in range(100):
        try:
            numbers = members.read_text().split()
        except FileNotFoundError:
            return None
        if not numbers:
            return None
        for number in numbers:
            # It may end meanwhile, and then has left as well.
            with (
                suppress(ProcessLookupError),
                (Path(step.text or "") / "cgroup.procs").open("w") as to,
            ):
                to.write(number)
    return f"{step.path} does not get empty"


def _kill(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    assert step.process is not None and step.began_ticks is not None
    if not processes.lives(step.process, step.began_ticks):
        return None
    members = processes.family(step.process)
    for member in members:
        with suppress(ProcessLookupError):
            os.kill(member.number, signal.SIGKILL)
    if _holds(lambda: not _alive(members), limit):
        return None
    return f"process {step.process} was killed and still lives after {limit.seconds:g} s"


def _stop(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    for number, share in ((signal.SIGTERM, _GENTLE_SHARE), (signal.SIGKILL, 1 - _GENTLE_SHARE)):
        members = processes.with_arguments(partial(_is_run_into, step.text or ""))
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member.number, number)
        share_of = replace(limit, seconds=share * limit.seconds)
        if _holds(lambda found=members: not _alive(found), share_of):  # type: ignore[misc]
            return None
    return f"the run into {step.text} still lives after {limit.seconds:g} s"


def _is_run_into(run_folder: str, arguments: Sequence[str]) -> bool:
    """Whether a command line is `plimsoll run ... --out FOLDER`: others may name it as well."""
    for place, word in enumerate(arguments[1:], 1):
        program = arguments[place - 1]
        if word == "run" and (program == "plimsoll.cli" or Path(program).name == "plimsoll"):
            return ("--out", run_folder) in pairwise(arguments[place:])
    return False


def _start(step: Step, _limit: Limit, own: Mapping[str, str], cwd: Path) -> str | None:
    if _is_up(step):
        return None
    environment = environment_of(own) if not step.inherits else {**os.environ, **own}
    with _output_of(step, cwd) as output:
        started = subprocess.Popen(
            list(step.argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        )
    # Should it end meanwhile, somebody asks how, and nothing of it is left.
    threading.Thread(target=started.wait, daemon=True).start()
    return None


def _is_up(step: Step) -> bool:
    """Whether the server of a step is there, as far as its port or its pid file tells."""
    if step.port is not None:
        return _is_open(step.port)
    if step.pid_file is None:
        return False
    try:
        number = processes.from_pid_file(Path(step.pid_file))
    except processes.ProcessError:
        return False
    # The number of a server that was killed may have gone to a process that is none.
    return number != step.process or processes.lives(number, step.began_ticks or 0)


def _runs(step: Step, limit: Limit, _own: Mapping[str, str], cwd: Path) -> str | None:
    if _holds(lambda: _is_up(step), limit):
        return None
    text = f"{step.pid_file} names no process that lives after {limit.seconds:g} s"
    return f"{text}{_what_it_wrote(step, cwd)}"


def _what_it_wrote(step: Step, run_folder: Path) -> str:
    """Where a program that was started says why it does not work."""
    if step.path is None or not (file := run_folder / _path(step).name).exists():
        return ""
    return f"; what it wrote lies in {file}"


def _output_of(step: Step, run_folder: Path) -> BinaryIO:
    """Where a program writes: the folder may have been moved since the step was written down."""
    try:
        return (run_folder / _path(step).name).open("ab")
    except OSError:
        return Path(os.devnull).open("ab")


def _contains(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    if _holds(lambda: (step.text or "") in _content(step), limit):
        return None
    return f"{step.path} does not contain {step.text!r}"


def _lacks(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    if _holds(lambda: (step.text or "") not in _content(step), limit):
        return None
    return f"{step.path} contains {step.text!r}"


def _gone(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    assert step.process is not None and step.began_ticks is not None
    number, began_ticks = step.process, step.began_ticks
    if _holds(lambda: not processes.lives(number, began_ticks), limit):
        return None
    return f"process {number} lives"


def _answers(step: Step, limit: Limit, _own: Mapping[str, str], cwd: Path) -> str | None:
    assert step.port is not None
    port = step.port
    if _holds(lambda: _is_open(port), limit):
        return None
    text = f"no process answers on port {port} after {limit.seconds:g} s"
    return f"{text}{_what_it_wrote(step, cwd)}"


def _silent(step: Step, limit: Limit, _own: Mapping[str, str], _cwd: Path) -> str | None:
    assert step.port is not None
    port = step.port
    return None if _holds(lambda: not _is_open(port), limit) else f"port {port} answers"


def _shows(step: Step, limit: Limit, own: Mapping[str, str], cwd: Path) -> str | None:
    return _printed(step, limit, own, cwd, wanted=True)


def _hides(step: Step, limit: Limit, own: Mapping[str, str], cwd: Path) -> str | None:
    return _printed(step, limit, own, cwd, wanted=False)


def _printed(
    step: Step, limit: Limit, own: Mapping[str, str], cwd: Path, *, wanted: bool
) -> str | None:
    failed: str | None = None

    def is_so() -> bool:
        nonlocal failed
        ended = carry_out(step.argv, limit.seconds, own, cwd, limit.is_cut)
        if _words(step.text or "") in _words(ended.output):
            failed = None
            return wanted
        # A tool that failed says nothing of what there is.
        failed = None if ended.exit_code == step.none_code else ended.error
        return not wanted and failed is None

    if _holds(is_so, limit):
        return None
    return failed or f"`{shown(step.argv)}` {'does not show' if wanted else 'shows'} {step.text!r}"


def _words(text: str) -> str:
    """A text to look for whole words in: /dev/sda is not in what speaks of /dev/sdaa."""
    return f" {' '.join(text.split())} "


_DOES: Mapping[str, Does] = {
    "write": _write,
    "release": _release,
    "make": _make,
    "remove": _remove,
    "empty": _empty,
    "kill": _kill,
    "stop": _stop,
    "start": _start,
    "contains": _contains,
    "lacks": _lacks,
    "gone": _gone,
    "answers": _answers,
    "silent": _silent,
    "runs": _runs,
    "shows": _shows,
    "hides": _hides,
}


def _path(step: Step) -> Path:
    assert step.path is not None
    return Path(step.path)


def _content(step: Step) -> str:
    try:
        return _path(step).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _holds(condition: Callable[[], bool], limit: Limit) -> bool:
    until = time.monotonic() + limit.seconds
    while not condition():
        if time.monotonic() >= until or limit.is_cut():
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _alive(members: Sequence[processes.Process]) -> bool:
    return any(processes.lives(member.number, member.began_ticks) for member in members)


def _is_open(port: int) -> bool:
    for host in ("127.0.0.1", "::1"):
        with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
            return True
    return False


def step_in_words(step: Step) -> str:
    """A step as it is listed before anything is done.

    >>> step_in_words(Step(kind="write", path="/sys/block/sdb/device/state", text="offline"))
    "writes 'offline' to /sys/block/sdb/device/state"
    """
    match step.kind:
        case "run":
            other = f", else `{shown(step.otherwise)}`" if step.otherwise else ""
            return f"runs `{shown(step.argv)}`{other}"
        case "write" | "release":
            return f"writes {step.text!r} to {step.path}"
        case "make":
            return f"makes {step.path}"
        case "remove":
            return f"removes {step.path}"
        case "empty":
            return f"moves every process of {step.path} to {step.text}"
        case "kill":
            return f"kills process {step.process} and its descendants"
        case "stop":
            return f"stops the run into {step.text}"
        case "start":
            return f"starts `{shown(step.argv)}`"
        case "contains":
            return f"looks for {step.text!r} in {step.path}"
        case "lacks":
            return f"looks that {step.path} lacks {step.text!r}"
        case "gone":
            return f"looks that process {step.process} is gone"
        case "answers":
            return f"waits for port {step.port} to answer"
        case "runs":
            return f"waits until {step.pid_file} names a process that lives"
        case "shows" | "hides":
            word = "looks for" if step.kind == "shows" else "looks that there is no"
            return f"{word} {step.text!r} in what `{shown(step.argv)}` prints"
        case _:
            return f"looks that port {step.port} is silent"
