"""Commands for tests that draw chains of them, each in a process of its own that can be killed.

A server that has the program's modules loaded forks a process for every command, so that what
remains of its cost is its own work.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine

PASS, FAIL, USAGE, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 4
#: How a test ends that came to its end, whatever it found.
ENDED = (PASS, FAIL, INCONCLUSIVE)
SECONDS_MAX = 240
_LOADED = (
    "cli.test",
    "cli.run",
    "cli.verify",
    "cli.resume",
    "cli.prepare",
    "cli.clean",
    "pipeline.qualify",
    "report.page",
)


def no_fault_of_ours(
    arguments: Sequence[object], code: int, text: str, codes: Sequence[int]
) -> None:
    """Hold that a command ended with one of `codes`, and not by a fault of Plimsoll."""
    assert "Traceback" not in text and "internal error" not in text, f"{arguments}: {text}"
    assert code in codes, f"{arguments} ended with {code}, not {codes}: {text}"


def run_chains(machine: type["RuleBasedStateMachine"], count: int, steps: int) -> None:
    """Carry out `count` chains of at most `steps` commands; one that fails is made short."""
    # Imported here, for the processes of commands have no use for it.
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    everything = list(HealthCheck)
    chosen = settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=everything,
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]


class Command:
    """A command that goes on in a process of its own; what it says goes to a file."""

    def __init__(self, arguments: Sequence[object], output: Path) -> None:
        self.arguments = [str(argument) for argument in arguments]
        self._output = output
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([f"plimsoll.{name}" for name in _LOADED])
        self._process: Any = context.Process(
            target=_carry_out, args=(self.arguments, str(output)), daemon=True
        )
        self._process.start()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it still goes on, once it is ready to be sent one."""
        while self._process.is_alive() and not self._output.exists():
            time.sleep(0.01)
        if self._process.is_alive():
            os.kill(self._process.pid, number)

    def goes_on(self) -> bool:
        """Whether it has not ended yet."""
        return bool(self._process.is_alive())

    def end(self) -> tuple[int, str]:
        """Wait for it: its exit code, negative after a signal, and everything it said."""
        self._process.join(SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise AssertionError(
                f"{self.arguments} did not end within {SECONDS_MAX} s: {self.said()}"
            )
        return self._process.exitcode, self.said()

    def said(self) -> str:
        """Everything it has said so far."""
        return (
            self._output.read_text(encoding="utf-8", errors="replace")
            if self._output.exists()
            else ""
        )


def _carry_out(arguments: list[str], output: str) -> None:
    """What happens in the process of a command: as in the program's `main`."""
    from plimsoll.cli import run_program

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # Whoever sends signals waits for this file.
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = run_program(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
