"""`plimsoll runs`: the list of what was run, in columns, sorted as you like."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import stop_with
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.pages.tables import duration_shown, shown

FIGURES = ("database_iops", "database_read_latency_ms_mean", "log_write_latency_ms_mean")
#: Column by the name to sort by: key of an entry, heading, whether the largest comes first.
SORTS = {
    "time": ("start_utc", True),
    "name": ("folder", False),
    "storage": ("storage", False),
    "test": ("test", False),
    "result": ("result", False),
    "kind": ("qualifying", True),
    "iops": ("database_iops", True),
    "read-latency": ("database_read_latency_ms_mean", False),
    "log-latency": ("log_write_latency_ms_mean", False),
}


#: What a run is worth quoting as, by whether it qualifies.
KINDS = {True: "qualification", False: "rehearsal", None: "–"}


def runs(
    directory: Annotated[
        Path, typer.Argument(help="Where to look.", metavar="DIR")
    ] = plimsoll.DEFAULT_PARENT,
    sort: Annotated[str, typer.Option(help=f"One of {', '.join(SORTS)}.")] = "time",
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the runs below a directory; also those that are broken, go on or were never finished.

    Example: plimsoll runs runs --sort iops
    """
    if sort not in SORTS:
        stop_with(
            exit_codes.USAGE,
            f"--sort {sort}: there is no such column; {nearest_names(sort, SORTS)}",
        )
    if not directory.is_dir():
        what = "is a file" if directory.exists() else "does not exist"
        stop_with(exit_codes.USAGE, f"{directory} {what}; name a directory with run folders in it")
    found = ordered(plimsoll.list_runs(directory), sort, reverse=reverse)
    if as_json:
        typer.echo(
            json.dumps(
                {"schema_version": 1, "runs": [entry.plain() for entry in found]},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    typer.echo("\n".join(lines_of(found)) if found else f"no run below {directory}")


def ordered(
    entries: list[plimsoll.RunEntry], sort: str, *, reverse: bool
) -> list[plimsoll.RunEntry]:
    """The entries by a column; what has nothing there comes last either way."""
    key, largest_first = SORTS[sort]
    known = sorted(
        (entry for entry in entries if getattr(entry, key) is not None), key=attrgetter(key)
    )
    if largest_first is not reverse:
        known.reverse()
    return known + [entry for entry in entries if getattr(entry, key) is None]


def lines_of(entries: list[plimsoll.RunEntry]) -> list[str]:
    """The list for a terminal: figures in columns, what is wrong below its run."""
    rows = [
        [
            "run",
            "began (UTC)",
            "storage",
            "test",
            "result",
            "kind",
            "measured",
            "IOPS",
            "read ms",
            "log ms",
        ]
    ]
    for entry in entries:
        began = (entry.start_utc or "")[:16].replace("T", " ")
        measured = duration_shown(entry.measured_s) if entry.measured_s else "–"
        rows.append(
            [
                entry.folder,
                began or "–",
                entry.storage or "–",
                entry.test or "–",
                entry.result if entry.state == "ended" and entry.result else (entry.state or "–"),
                "modelled"
                if (entry.storage or "").startswith("MODELLED")
                else KINDS[entry.qualifying],
                measured,
                *(shown(getattr(entry, name)) for name in FIGURES),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for index, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column > 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
        if index and entries[index - 1].problem:
            lines.append(f"    {entries[index - 1].problem}")
    return lines
