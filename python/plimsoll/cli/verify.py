"""`plimsoll verify`: check database files page by page, without changing them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import stop_with
from plimsoll.files.sanitize import plain

FINDINGS_SHOWN_MAX = 20


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Databases, logs, checkpoints, flush maps, or their directories."),
    ],
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check trees, space, indexes and catalog.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole report as JSON.")
    ] = False,
) -> None:
    """Check every page and both headers of database files, and whole logs, checkpoints and flush
    maps. Never writes.

    Exits with 0 when everything is sound, 1 when something is damaged or needs correction,
    otherwise 2 when a file cannot be used, another program wrote it, or something could not be
    looked at.
    """
    try:
        found = plimsoll.verify_files(paths, deep=deep)
    except KeyboardInterrupt:
        stop_with(exit_codes.INTERRUPTED, "stopped before the end")
    for line in found.unseen:
        typer.echo(f"not looked at: {line}", err=True)
    report = found.report
    if report is None and found.unseen:
        raise typer.Exit(exit_codes.USAGE)
    if report is None:
        stop_with(
            exit_codes.USAGE,
            "there are no files of the format there; name a file to check it anyway",
        )
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        maps = {
            file["path"]
            for file in report["files"]
            if file["kind"] == "flush_map" and file["verdict"] == "sound"
        }
        for file in report["files"]:
            _show(file, maps)
    verdicts = {file["verdict"] for file in report["files"]}
    unseen = found.unseen + [
        file["path"]
        for file in report["files"]
        if file["deep_error"] and file["verdict"] == "sound"
    ]
    if not verdicts <= {"sound", "not_judged", "unusable"}:
        # Damage that was seen stays damage, whatever could not be looked at.
        raise typer.Exit(exit_codes.FAIL)
    # What was not judged is no pass, and no damage either.
    raise typer.Exit(exit_codes.PASS if verdicts == {"sound"} and not unseen else exit_codes.USAGE)


def _no_map(database: Path, maps: Collection[str]) -> str:
    """Why a database was compared with no flush map, and what to do.

    Args:
        database: whose map it would be.
        maps: those that were found sound.
    """
    beside = database.with_suffix(".jfm")
    if str(beside) in maps:
        return f"{beside.name} beside it belongs to another database; name its own"
    if beside != database and beside.exists():
        return f"{beside.name} beside it is damaged or belongs to another database; name its own"
    return "name its .jfm, too"


def _show(file: plimsoll.VerifiedFile, maps: Collection[str]) -> None:
    if file["error"]:
        typer.echo(f"{file['path']}: {file['verdict'].replace('_', ' ')}: {plain(file['error'])}")
        return
    if file["kind"] == "log_prepared" and not file["bad"]:
        # There are no pages in it that could be sound.
        typer.echo(
            f"{file['path']}: empty, as a log that is made ready or held in reserve is; "
            f"{file['file_bytes']:,} bytes"
        )
        return
    typer.echo(
        f"{file['path']}: {file['verdict']}; {file['pages_seen']:,} pages of {file['page_bytes']} "
        f"bytes, "
        f"{file['bad']} bad, {file['correctable']} correctable, {file['wrong_page_number']} wrong "
        f"page number, "
        f"{file['uninitialized']} uninitialized, {file['unreadable']} unreadable; "
        f"{file['seconds']:.1f} s, {file['mib_per_s']:.0f} MiB/s"
    )
    for sentence in file["reasons"] + file["remarks"]:
        typer.echo(f"  {sentence}")
    if file.get("left_over"):
        typer.echo("  left over: it was deleted, and a power cut brought it back; nothing needs it")
    if file["kind"] == "database" and file["state"] == "Clean" and not file["flush_map"]:
        typer.echo(
            f"  not compared with a flush map, so a page whose last write was lost looks sound; "
            f"{_no_map(Path(file['path']), maps)}"
        )
    if deep := file.get("deep"):
        typer.echo(
            f"  deep: {deep['tables']} tables, {deep['records']:,} records, "
            f"{deep['pages_reached']:,} pages reached, "
            f"{deep['pages_free']:,} free, {len(deep['findings']) + deep['findings_unlisted']} "
            f"findings"
        )
        for finding in deep["findings"][:FINDINGS_SHOWN_MAX]:
            typer.echo(f"  {plain(finding)}")
        for left in deep["unchecked"][:FINDINGS_SHOWN_MAX]:
            typer.echo(f"  {plain(left)}")
        if len(deep["unchecked"]) > FINDINGS_SHOWN_MAX:
            typer.echo(
                f"  and {len(deep['unchecked']) - FINDINGS_SHOWN_MAX} more not checked; --json "
                f"lists them"
            )
    if file.get("deep_error"):
        typer.echo(f"  could not be checked deeply: {file['deep_error']}")
    for page in file["findings"][:FINDINGS_SHOWN_MAX]:
        what = page["class"].replace("_", " ")
        whose = f", it is page {page['found']}" if "found" in page else ""
        typer.echo(f"  page {page['page']} at offset {page['offset']}: {what}{whose}")
    hidden = len(file["findings"]) - FINDINGS_SHOWN_MAX + file["findings_not_listed"]
    if hidden > 0:
        typer.echo(f"  and {hidden} more; --json lists them")
