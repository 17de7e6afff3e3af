"""`plimsoll combine`: the runs of several hosts against one storage as one result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.folder_errors import reading
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict
from plimsoll.files import folder
from plimsoll.multihost import CombineError, judge_again, read
from plimsoll.multihost import combine as combine_runs
from plimsoll.multihost.combined_folder import OVERLAP_PERCENT
from plimsoll.multihost.page import lines_of
from plimsoll.multihost.reading import parse_argument
from plimsoll.pipeline import qualify
from plimsoll.verdict.text import lines_of as verdict_lines

Hosts = Annotated[
    list[str], typer.Argument(help="A run folder of each host; NAME=DIR calls the host so.", metavar="[NAME=]DIR...")
]


def combine(
    hosts: Hosts,
    out: Annotated[
        Path | None, typer.Option("--out", help="The new folder; one below runs/ if left out.", metavar="DIR")
    ] = None,
    overlap_percent: Annotated[
        float,
        typer.Option(min=1, max=100, help="How much of the longest measured time must be common to all hosts."),
    ] = OVERLAP_PERCENT,
    different_plans: Annotated[
        bool, typer.Option("--different-plans", help="Add up runs of different pages, editions, tests or limits too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Add up the runs of several hosts against one storage: rates as sums, percentiles from merged distributions, worst result.

    Each host carries out its own run; copy the run folders to one place first. Exits with 0, 1 or 3 as the worst host did, 2
    when the runs cannot be added up.

    Example: plimsoll combine runs/alpha runs/beta --out runs/both
    """
    named = [parse_argument(text) for text in hosts]
    try:
        with reading(*(path for _, path in named)):
            home, verdict = combine_runs(named, out, overlap_percent=overlap_percent, different_plans=different_plans)
            write_page(home)
            show(home, verdict, as_json=as_json)
    except CombineError as error:
        qualify.stop_with(qualify.EXIT_USAGE, *error.problems)
    except OSError as error:
        qualify.stop_with(qualify.EXIT_USAGE, f"{error.filename}: {(error.strerror or str(error)).lower()}")
    raise typer.Exit(qualify.EXIT_BY_RESULT[verdict.result])


def report_again(home: Path) -> None:
    """Judge such a folder again from its copies and write its page; leave with the exit code of its result."""
    try:
        verdict = judge_again(home)
    except CombineError as error:
        qualify.stop_with(qualify.EXIT_USAGE, *error.problems)
    write_page(home)
    show(home, verdict, as_json=False)
    raise typer.Exit(qualify.EXIT_BY_RESULT[verdict.result])


def write_page(home: Path) -> None:
    """The page of all hosts, where its libraries are installed."""
    try:
        from plimsoll.multihost.page import render

        folder.write_text(home / folder.REPORT, render(home, *read(home)))
    except ModuleNotFoundError as error:
        qualify.say(f"warning: no report.html was written, because {error.name} is not installed")


def show(home: Path, verdict: Verdict, *, as_json: bool) -> None:
    """The result on the output."""
    if as_json:
        typer.echo(json.dumps({**verdict.plain(), "run_folder": str(home)}, indent=2))
        return
    summary = Summary.read(home / folder.SUMMARY)
    typer.echo("\n" + "\n".join([*lines_of(*read(home), summary), "", *verdict_lines(verdict)]))
    typer.echo(f"\nrun folder: {home}")
    if (home / folder.REPORT).exists():
        typer.echo(f"report:     {home / folder.REPORT}")
