"""Showing a run while it goes on: a few lines that stay in place on a terminal, plain lines anywhere else.

Everything here goes to the error stream; the output is kept for the result. Colour only helps: each figure that is above its
limit also says so, and NO_COLOR is heeded. What is shown is also written to `progress.json` in the run folder, for
`plimsoll status` and `plimsoll watch`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.live.plain_display import TITLES, Progress, plainly
from plimsoll.live.progress import SHOWN, Figures, in_words

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 28


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
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        with plainly(figures, run_folder, quiet=quiet) as plain:
            yield plain
        return
    progress = TerminalProgress(figures, run_folder)
    try:
        with progress.on_screen():
            yield progress
    finally:
        progress.end()
