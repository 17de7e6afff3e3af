"""`plimsoll verify`: check database files page by page, without changing them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import exit_codes
from plimsoll.cli.terminal import stop_with
from plimsoll.files import folder
from plimsoll.files.folder import printable
from plimsoll.files.sanitize import parse_json

FINDINGS_SHOWN_MAX = 20
#: Databases, logs, checkpoints, flush maps.
SUFFIXES = {".edb", ".log", ".chk", ".jfm", ".jrs"}


def verify(
    paths: Annotated[
        list[Path], typer.Argument(help="Databases, logs, checkpoints, flush maps, or their directories.")
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Also check trees, space, indexes and catalog.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
) -> None:
    """Check every page and both headers of database files, and whole logs, checkpoints and flush maps. Never writes.

    Exits with 0 when everything is sound, 1 when something is damaged or needs correction, 2 when a file cannot be used or something could
    not be looked at.
    """
    from plimsoll import _native

    unseen: list[str] = []
    files = [file for path in paths for file in (_files_in(path, unseen) if path.is_dir() else [path])]
    for line in unseen:
        typer.echo(f"not looked at: {line}", err=True)
    if not files and unseen:
        raise typer.Exit(exit_codes.USAGE)
    if not files:
        stop_with(exit_codes.USAGE, "there are no files of the format there; name a file to check it anyway")
    try:
        report = parse_json(_native.verify([str(path) for path in files], "deep" if deep else "pages"))
    except KeyboardInterrupt:
        stop_with(exit_codes.INTERRUPTED, "stopped before the end")
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for file in report["files"]:
            _show(file)
    verdicts = {file["verdict"] for file in report["files"]}
    unseen += [file["path"] for file in report["files"] if file["deep_error"] and file["verdict"] == "sound"]
    if "unusable" in verdicts or unseen:
        raise typer.Exit(exit_codes.USAGE)
    raise typer.Exit(exit_codes.PASS if verdicts == {"sound"} else exit_codes.FAIL)


def _files_in(directory: Path, unseen: list[str]) -> list[Path]:
    """The files of the format in a directory and below it, in the order of their names; logs of a run folder are other logs.

    What cannot be entered is noted in `unseen`, because nobody knows what is in it.
    """

    def note(error: OSError) -> None:
        unseen.append(f"{printable(Path(error.filename or directory))}: {(error.strerror or str(error)).lower()}")

    found = []
    for place, _, names in os.walk(directory, onerror=note):
        for name in names:
            path = Path(place, name)
            try:
                wanted = path.suffix in SUFFIXES and name not in (folder.EVENTS, folder.TERMINAL) and _is_file(path)
            except OSError as error:
                note(error)
                continue
            if wanted:
                found.append(path)
    return sorted(found)


def _is_file(path: Path) -> bool:
    """Whether a path is a file; a link that leads nowhere is none, and what may not be looked at is an error."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _show(file: dict[str, Any]) -> None:
    if file["error"]:
        typer.echo(f"{file['path']}: {file['verdict']}: {file['error']}")
        return
    typer.echo(
        f"{file['path']}: {file['verdict']}; {file['pages_seen']:,} pages of {file['page_bytes']} bytes, "
        f"{file['bad']} bad, {file['correctable']} correctable, {file['wrong_page_number']} wrong page number, "
        f"{file['uninitialized']} uninitialized, {file['unreadable']} unreadable; "
        f"{file['seconds']:.1f} s, {file['mib_per_s']:.0f} MiB/s"
    )
    for reason in file["reasons"]:
        typer.echo(f"  {reason}")
    if file.get("deep"):
        deep = file["deep"]
        typer.echo(
            f"  deep: {deep['tables']} tables, {deep['records']:,} records, {deep['pages_reached']:,} pages reached, "
            f"{deep['pages_free']:,} free, {len(deep['findings']) + deep['findings_unlisted']} findings"
        )
        for finding in deep["findings"][:FINDINGS_SHOWN_MAX]:
            typer.echo(f"  {json.dumps(finding)}")
        for left in deep["unchecked"][:FINDINGS_SHOWN_MAX]:
            typer.echo(f"  not checked: {left['what']}: {left['reason']}")
        if len(deep["unchecked"]) > FINDINGS_SHOWN_MAX:
            typer.echo(f"  and {len(deep['unchecked']) - FINDINGS_SHOWN_MAX} more not checked; --json lists them")
    if file.get("deep_error"):
        typer.echo(f"  could not be checked deeply: {file['deep_error']}")
    for finding in file["findings"][:FINDINGS_SHOWN_MAX]:
        what = finding["class"].replace("_", " ")
        whose = f", it is page {finding['found']}" if "found" in finding else ""
        typer.echo(f"  page {finding['page']} at offset {finding['offset']}: {what}{whose}")
    hidden = len(file["findings"]) - FINDINGS_SHOWN_MAX + file["findings_not_listed"]
    if hidden > 0:
        typer.echo(f"  and {hidden} more; --json lists them")
