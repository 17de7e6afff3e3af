"""`plimsoll audit`: what a power cut has taken, held against what the witness remembers, and what
that says of the storage.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.terminal import refusing, say, stop_with

EXAMPLES_SHOWN = 3


def audit(
    directory: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="As it was given to `plimsoll powercut`.")
    ] = None,
    witness_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `plimsoll witness` has written.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the copy is made that is recovered; a temporary place if left out.",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the recovered copy.")] = False,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Recover the files themselves: they are evidence no longer."
        ),
    ] = False,
    cut_under_load: Annotated[
        bool,
        typer.Option(
            "--cut-under-load",
            help="The power went while the work went on, of the storage alone or of a virtual "
            "machine.",
        ),
    ] = False,
    rehearse: Annotated[
        str | None,
        typer.Option(
            help="Audit a simulated cut instead: honest, drops_flushes, tears or reorders. Touches "
            "nothing."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Recover what a power cut left and list what the storage lost, tore or reordered.

    The files are only read; a copy is recovered, unless --in-place asks for it. Exits with 0 when
    everything acknowledged is there, 1 when something is not as it must be, 2 when there is nothing
    to audit, 3 when nothing was at risk or the audit cannot tell.

    Example: plimsoll audit /mnt/array --witness-log witness.log
    """
    if rehearse is not None:
        found = _rehearsed(rehearse)
    else:
        found = _audited(
            directory, witness_log, work=work, in_place=in_place, keep=keep, was_cut=cut_under_load
        )
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _show(found)
    raise typer.Exit(exit_codes.BY_RESULT[found["result"]])


def _rehearsed(behaviour: str) -> plimsoll.PowercutAudit:
    if behaviour not in plimsoll.REHEARSED_BEHAVIOURS:
        known = ", ".join(plimsoll.REHEARSED_BEHAVIOURS)
        stop_with(exit_codes.USAGE, f"--rehearse is {behaviour}; write one of {known}")
    return plimsoll.rehearse_powercut(behaviour)


def _audited(
    directory: Path | None,
    log: Path | None,
    *,
    work: Path | None,
    in_place: bool,
    keep: bool,
    was_cut: bool,
) -> plimsoll.PowercutAudit:
    if directory is None or log is None:
        stop_with(
            exit_codes.USAGE,
            "name PATH and --witness-log FILE, or --rehearse to see what an audit says",
        )
    where = (
        "the files themselves are recovered, as asked"
        if in_place
        else "a copy is recovered, the files are only read"
    )
    say(f"auditing {directory}: {where}")
    with refusing(plimsoll.PowercutError), reading(directory, log):
        return plimsoll.audit_powercut(
            directory, log, work_in=work, in_place=in_place, keep=keep, was_cut=was_cut
        )


def _show(found: plimsoll.PowercutAudit) -> None:
    figures = found["figures"]
    if "rehearsed" in found:
        typer.echo(
            f"REHEARSAL on a simulated disk ({found['rehearsed']}); it says nothing about any "
            f"storage"
        )
    typer.echo(f"{found['result'].upper()}")
    for reason in found["reasons"]:
        typer.echo(f"  {reason}")
    for finding in found["findings"]:
        word = {True: "", False: " (allowed)", None: " (its promise is not known)"}[
            finding["counts_against"]
        ]
        typer.echo(f"\n{finding['name']}{word}: {finding['text']}\n  {finding['meaning']}")
        for example in finding["examples"][:EXAMPLES_SHOWN]:
            typer.echo(f"  e.g. {example}")
        if len(finding["examples"]) > EXAMPLES_SHOWN:
            typer.echo("  --json lists more")
    typer.echo(
        f"\nacknowledged: {figures['acknowledged_commits']:,} commits, "
        f"{figures['acknowledged_marks']:,} marks; "
        f"{figures['looked_for']:,} looked for, {figures['lost_commits']:,} commits and "
        f"{figures['lost_marks']:,} marks lost"
    )
    if recovery := found["recovery"]:
        what = "recovered" if recovery["recovered"] else "had been closed"
        typer.echo(f"database: {what}, {recovery['rolled_back']} transactions taken back")
    if before := found.get("pages_before_recovery"):
        typer.echo(
            f"pages before recovery: {before['verdict']}, {before['bad']} bad of "
            f"{before['pages_seen']}"
        )
    if after := found.get("pages_after_recovery"):
        typer.echo(
            f"pages after recovery: {after['verdict']}, {after.get('deep_findings', 0)} deep "
            f"findings"
        )
    if "witness_ended" in figures and "rehearsed" not in found:
        typer.echo(
            f"witness: the link ended {figures['witness_ended'] or 'with the log'}; "
            f"{figures['acknowledged_last_second']:,} acknowledgements within the last "
            f"second or two; {figures['witness_lines_unreadable']} lines unreadable"
        )
