"""`plimsoll verify`: check database files page by page, without changing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import folder
from plimsoll.cli import course
from plimsoll.untrusted import parse_json

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

    Exits with 0 when everything is sound, 1 when something is damaged or needs correction, 2 when a file cannot be used.
    """
    from plimsoll import _native

    files = [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]
    if not files:
        course.stop_with(course.EXIT_USAGE, "there are no files of the format there; name a file to check it anyway")
    try:
        report = parse_json(_native.verify([str(path) for path in files], "deep" if deep else "pages"))
    except KeyboardInterrupt:
        course.stop_with(course.EXIT_INTERRUPTED, "stopped before the end")
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for file in report["files"]:
            _show(file)
    verdicts = {file["verdict"] for file in report["files"]}
    if "unusable" in verdicts:
        raise typer.Exit(course.EXIT_USAGE)
    raise typer.Exit(course.EXIT_PASS if verdicts == {"sound"} else course.EXIT_FAIL)


def _files_in(directory: Path) -> list[Path]:
    """The files of the format in a directory and below it, in the order of their names; logs of a run folder are other logs."""
    found = (path for path in directory.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return sorted(path for path in found if path.name not in (folder.EVENTS, folder.TERMINAL))


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
    if file.get("deep"):
        deep = file["deep"]
        typer.echo(
            f"  deep: {deep['tables']} tables, {deep['records']:,} records, {deep['pages_reached']:,} pages reached, "
            f"{deep['pages_free']:,} free, {len(deep['findings']) + deep['findings_unlisted']} findings"
        )
        for finding in deep["findings"][:FINDINGS_SHOWN_MAX]:
            typer.echo(f"  {json.dumps(finding)}")
    if file.get("deep_error"):
        typer.echo(f"  deep: could not be checked: {file['deep_error']}")
    for finding in file["findings"][:FINDINGS_SHOWN_MAX]:
        what = finding["class"].replace("_", " ")
        whose = f", it is page {finding['found']}" if "found" in finding else ""
        typer.echo(f"  page {finding['page']} at offset {finding['offset']}: {what}{whose}")
    hidden = len(file["findings"]) - FINDINGS_SHOWN_MAX + file["findings_not_listed"]
    if hidden > 0:
        typer.echo(f"  and {hidden} more; --json lists them")
