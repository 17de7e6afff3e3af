"""Showing a run while it goes on.

A few lines that stay in place on a terminal, plain lines anywhere else.

Everything here goes to the error stream; the output is kept for the result. Colour only helps: each
figure that is above its limit also says so, and NO_COLOR is heeded.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import plimsoll
from plimsoll import (
    SHOWN_METRICS,
    Figures,
    Listener,
    duration_in_words,
    event_line,
    figures_line,
    metric_title,
)
from plimsoll.cli.hung_lines import HUNG, HungLines
from plimsoll.cli.terminal import say, warn

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 28
PLAIN_EVERY_S = 5.0


class PlainListener(Listener):
    """Shows a run as plain lines, at most one of figures every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._figures: Figures | None = None
        self._hung = HungLines((), 0.0)
        self._said, self._said_ns = 0.0, 0
        #: What was warned of, once each.
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        say(text)

    def note(self, text: str) -> None:
        say(f"note: {text}")

    def warning(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            warn(text)

    def begins(self, figures: Figures) -> None:
        self._figures, self._said, self._said_ns = figures, time.monotonic(), 0
        self._hung = HungLines(figures.places, figures.hung_after_s)

    def ends(self) -> None:
        now_ns = 0 if self._figures is None else self._figures.now_ns
        for line in self._hung.rest(now_ns):
            self._print(line)

    def event(self, event: plimsoll.Event) -> None:
        if event.kind == HUNG:
            line = self._hung.line(event)
            if line is not None:
                self._print(line)
        elif not self._quiet or event.level != "info":
            self._print(event_line(event))

    def sample(self, table: plimsoll.Columns) -> None:
        if self._figures is not None:
            self._show(self._figures)

    @property
    def can_confirm(self) -> bool:
        return sys.stdin is not None and sys.stdin.isatty()

    def confirmed(self) -> bool:
        if not self.can_confirm or not select.select([sys.stdin], [], [], 0)[0]:
            return False
        return bool(sys.stdin.readline())

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _show(self, figures: Figures) -> None:
        if (
            self._quiet
            or time.monotonic() - self._said < PLAIN_EVERY_S
            or figures.now_ns == self._said_ns
        ):
            return
        self._print(figures_line(figures.snapshot()))
        self._said, self._said_ns = time.monotonic(), figures.now_ns


class JsonLinesListener(PlainListener):
    """Writes every sample and event to the output as a line of JSON; warnings go to the error
    stream as ever.
    """

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._lines: plimsoll.JsonLines | None = None
        self._left = False

    def begins(self, figures: Figures) -> None:
        super().begins(figures)
        self._lines = figures.json_lines()

    def event(self, event: plimsoll.Event) -> None:
        super().event(event)
        self.write([plimsoll.json_line_of_event(event)])

    def sample(self, table: plimsoll.Columns) -> None:
        if self._lines is not None:
            self.write(self._lines.of_samples(table))

    def write(self, lines: Iterable[str]) -> None:
        """Write lines; whoever reads them may leave, and the run goes on."""
        if self._left:
            return
        try:
            for line in lines:
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            self._left = True
            # What is still in the buffer has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.warning("nobody reads the lines of JSON any more; the run goes on")


class TerminalListener(PlainListener):
    """The same on a terminal: events scroll by, the figures stay below them."""

    def __init__(self) -> None:
        super().__init__(quiet=False)
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def begins(self, figures: Figures) -> None:
        super().begins(figures)
        self._live.start()

    def ends(self) -> None:
        super().ends()
        self._live.stop()

    def _print(self, line: str) -> None:
        style = "yellow" if " warning: " in line else "bold red" if " error: " in line else None
        self._console.print(line, style=style, markup=False, soft_wrap=True)
        if self._figures is not None:
            self._show(self._figures)

    def _show(self, figures: Figures) -> None:
        self._live.update(_panel(figures.snapshot(), figures.limits_ms), refresh=True)


def showing(*, quiet: bool, json_lines: bool = False) -> PlainListener:
    """The way of showing that suits where the error stream leads, or lines of JSON."""
    if json_lines:
        return JsonLinesListener()
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return PlainListener(quiet=quiet)
    return TerminalListener()


def _panel(shown: plimsoll.Content, limits_ms: dict[str, float]) -> Group:
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
    head.append(f"  {duration_in_words(shown['phase_elapsed_s'])} so far", style="not bold")
    if shown["phase_remaining_s"] is not None:
        head.append(f", {duration_in_words(shown['phase_remaining_s'])} left", style="not bold")
        head.append(
            f" (the whole run: {duration_in_words(shown['total_remaining_s'])})", style="not bold"
        )
    if shown["worked_mib"] is not None:
        done = (
            f"  {shown['worked_mib']:,} MiB, {shown['worked_mib_per_s']:,} MiB/s   "
            f"{shown['errors']} errors"
        )
        return Group(head, Text(done))
    if shown.get("mail"):
        return Group(head, Text(f"  {shown['mail']}"), Text(f"  {shown['errors']} errors"))
    table = Table(box=None, padding=(0, 2), show_edge=True, header_style="dim")
    for title, side in (
        ("", "left"),
        ("per second", "right"),
        ("mean", "right"),
        ("limit", "right"),
        ("", "left"),
    ):
        table.add_column(title, justify="right" if side == "right" else "left")
    for name in SHOWN_METRICS:
        latency, limit = shown[f"{name}_latency_ms_mean"], limits_ms.get(name)
        above = latency is not None and limit is not None and latency > limit
        table.add_row(
            metric_title(name),
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
