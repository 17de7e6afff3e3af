"""Showing a run as plain lines, and as `progress.json` in its folder for `plimsoll status` and `plimsoll watch`.

Lines go to the error stream; the output is kept for the result.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plimsoll.files import folder
from plimsoll.live.progress import SHOWN, Figures, in_words

PLAIN_EVERY_S = 5.0
FILE_EVERY_S = 2.0
TITLES = {"database_read": "database reads", "database_write": "database writes", "log_write": "log writes"}


def event_line(event: dict[str, Any]) -> str:
    """An event as a line."""
    mark = "" if event["level"] == "info" else f"{event['level']}: "
    return f"  {event['time_ns'] / 1e9:8.1f} s  {mark}{event['text']}"


class Progress:
    """Takes the events and samples of a run and shows them as plain lines, at most one of figures every few seconds."""

    def __init__(self, figures: Figures, run_folder: Path | None, *, quiet: bool) -> None:
        self.figures = figures
        self.quiet = quiet
        self._file = None if run_folder is None else run_folder / folder.PROGRESS
        self._written = self._said = time.monotonic()
        self._said_ns = 0

    def event(self, event: dict[str, Any]) -> None:
        """Show an event."""
        self.figures.event(event)
        if not self.quiet or event["level"] != "info":
            self._print(event_line(event))
        self._write_file(at_once=event["kind"] == "phase_started")

    def sample(self, table: dict[str, Any]) -> None:
        """Take a batch of samples and show the figures when it is time."""
        self.figures.sample(table)
        self._write_file(at_once=False)
        self._show()

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _show(self) -> None:
        if self.quiet or time.monotonic() - self._said < PLAIN_EVERY_S or self.figures.now_ns == self._said_ns:
            return
        self._print(plain_line(self.figures.snapshot()))
        self._said, self._said_ns = time.monotonic(), self.figures.now_ns

    def _write_file(self, *, at_once: bool) -> None:
        if self._file is None or not (at_once or time.monotonic() - self._written >= FILE_EVERY_S):
            return
        self._written = time.monotonic()
        folder.write_json(self._file, {**self.figures.snapshot(), "process_id": os.getpid()})

    def end(self) -> None:
        """Take the progress file away: the run has other files now."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def plain_line(shown: dict[str, Any]) -> str:
    """A snapshot in one line."""
    parts = []
    if shown["phase_share_done"] is not None:
        parts.append(f"{shown['phase']} {shown['phase_share_done']:.0%}")
    if shown["doing"] is not None:
        parts.append(f"{shown['phase']}: {shown['doing']}")
    if shown["phase_remaining_s"] is not None:
        parts.append(f"{in_words(shown['phase_remaining_s'])} left")
    if shown["worked_mib"] is not None:
        parts.append(f"{shown['worked_mib']:,} MiB, {shown['worked_mib_per_s']:,} MiB/s")
    for name in SHOWN:
        latency = shown[f"{name}_latency_ms_mean"]
        if latency is not None:
            parts.append(f"{TITLES[name]} {shown[f'{name}_per_s']:.0f}/s {latency:.2f} ms")
    if shown["cache_percent"] is not None:
        parts.append(f"cache {shown['cache_percent']:.0f} %")
    if shown["errors"]:
        parts.append(f"{shown['errors']} errors")
    return f"  {shown['elapsed_s']:8.1f} s  " + ", ".join(parts or [str(shown["phase"])])


@contextmanager
def plainly(figures: Figures, run_folder: Path | None, *, quiet: bool) -> Iterator[Progress]:
    """The display of a run as plain lines."""
    progress = Progress(figures, run_folder, quiet=quiet)
    try:
        yield progress
    finally:
        progress.end()
