"""`plimsoll pack` and `plimsoll unpack`.

A run folder as one archive that its receiver can check.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, say, stop_with


def pack(
    directory: Annotated[
        Path,
        typer.Argument(
            help="The folder of a run, a repeated run, several hosts or a study.", metavar="DIR"
        ),
    ],
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Take out names of hosts, users, disks, paths and addresses."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The archive; next to the folder if left out.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was packed as JSON.")] = False,
) -> None:
    """Pack a folder into one archive with a manifest of SHA-256 sums.

    Example: plimsoll pack runs/nightly --redact --out for-the-vendor.tar.gz
    """
    with refusing():
        found = plimsoll.pack_folder(directory, out, redact=redact, listener=showing(quiet=True))
    packed = found.packed
    if as_json:
        content = {
            "schema_version": 1,
            "archive": str(packed.path),
            "sha256": packed.sha256,
            "files": packed.files,
            "redacted": redact,
            "replaced": found.replaced,
            "left_out": found.left_out,
        }
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{packed.path}: {len(packed.files)} files and {plimsoll.MANIFEST}")
    typer.echo(f"sha256 {packed.sha256}")
    if redact:
        words = ", ".join(f"{count} of kind {kind}" for kind, count in found.replaced.items())
        typer.echo(
            f"names replaced: {words or 'none'}; what carries no label cannot be known, so look "
            f"before you send"
        )
    for name in found.left_out:
        say(f"left out: {name}")


def unpack(
    archive: Annotated[Path, typer.Argument(help="An archive of `plimsoll pack`.", metavar="FILE")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Where to; a folder of its name here if left out.", metavar="DIR"
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check it against its manifest; write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check an archive against its manifest and unpack it.

    Leaves nothing behind when it was changed.

    Exits with 0, 1 when files are not those of the manifest, 2 when it is no such archive or the
    place is taken.

    Example: plimsoll unpack nightly.plimsoll.tar.gz --check
    """
    try:
        found, into = plimsoll.unpack_folder(archive, to, only_check=check)
    except plimsoll.PackError as error:
        changed = any(
            "manifest" in problem and "expected" not in problem for problem in error.problems
        )
        stop_with(exit_codes.FAIL if changed else exit_codes.USAGE, *error.problems)
    if as_json:
        content = {
            "schema_version": 1,
            "sha256": found.sha256,
            "files": found.files,
            "folder": into and str(into),
        }
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(
        f"{len(found.files)} files are those of the manifest; sha256 of the archive {found.sha256}"
    )
    if into is not None:
        typer.echo(f"unpacked into {into}")
