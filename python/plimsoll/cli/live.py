"""Showing a run while it goes on: a few lines that stay in place on a terminal, plain lines anywhere else.

Everything here goes to the error stream; the output is kept for the result. Colour only helps: each figure that is above its
limit also says so, and NO_COLOR is heeded. What is shown is also written to `progress.json` in the run folder, for
`plimsoll status` and `plimsoll watch`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll import folder
from plimsoll.cli.figures import SHOWN, Figures, in_words

if TYPE_CHECKING:
    from rich.console import Group

PLAIN_EVERY_S = 5.0
FILE_EVERY_S = 2.0
BAR_WIDTH = 28
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


class TerminalProgress(Progress):
    """The same on a terminal: events scroll by, the figures stay below them."""

    def __init__(self, figures: Figures, run_folder: Path | None) -> None:
        super().__init__(figures, run_folder, quiet=False)
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    @contextmanager
    def on_screen(self) -> Iterator[None]:
        """While this lasts the figures are in place."""
        with self._live:
            yield

    def _print(self, line: str) -> None:
        style = "yellow" if " warning: " in line else "bold red" if " error: " in line else None
        self._console.print(line, style=style, markup=False, soft_wrap=True)
        self._show()

    def _show(self) -> None:
        self._live.update(_panel(self.figures.snapshot(), self.figures.limits_ms), refresh=True)


def _panel(shown: dict[str, Any], limits_ms: dict[str, float]) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(f"\n  {shown['phase'] or 'starting'}  ", style="bold")
    share = shown["phase_share_done"]
    if share is not None:
        done = round(BAR_WIDTH * share)
        head.append("━" * done + "╌" * (BAR_WIDTH - done), style="cyan")
        head.append(f" {share:4.0%}")
    if shown["doing"] is not None:
        head.append(shown["doing"])
    head.append(f"  {in_words(shown['phase_elapsed_s'])} so far", style="not bold")
    if shown["phase_remaining_s"] is not None:
        head.append(f", {in_words(shown['phase_remaining_s'])} left", style="not bold")
        head.append(f" (the whole run: {in_words(shown['total_remaining_s'])})", style="not bold")
    if shown["worked_mib"] is not None:
        done = f"  {shown['worked_mib']:,} MiB, {shown['worked_mib_per_s']:,} MiB/s   {shown['errors']} errors"
        return Group(head, Text(done))
    table = Table(box=None, padding=(0, 2), show_edge=True, header_style="dim")
    for title, side in (("", "left"), ("per second", "right"), ("mean", "right"), ("limit", "right"), ("", "left")):
        table.add_column(title, justify="right" if side == "right" else "left")
    for name in SHOWN:
        latency, limit = shown[f"{name}_latency_ms_mean"], limits_ms.get(name)
        above = latency is not None and limit is not None and latency > limit
        table.add_row(
            TITLES[name],
            f"{shown[f'{name}_per_s']:,.0f}",
            "-" if latency is None else f"{latency:.2f} ms",
            "" if limit is None else f"{limit:g} ms",
            Text("above the limit", style="bold red") if above else "",
        )
    foot = Text(f"  database IOPS {shown['database_iops']:,.0f}")
    if shown["cache_percent"] is not None:
        foot.append(f"   cache {shown['cache_percent']:.0f} % full")
    foot.append(f"   {shown['errors']} errors", style="bold red" if shown["errors"] else "")
    return Group(head, table, foot)


@contextmanager
def showing(figures: Figures, run_folder: Path | None, *, quiet: bool) -> Iterator[Progress]:
    """The way of showing that suits where the error stream leads."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not quiet
    progress = TerminalProgress(figures, run_folder) if terminal else Progress(figures, run_folder, quiet=quiet)
    try:
        if isinstance(progress, TerminalProgress):
            with progress.on_screen():
                yield progress
        else:
            yield progress
    finally:
        progress.end()
