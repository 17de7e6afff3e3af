"""`plimsoll pack` and `plimsoll unpack`: a run folder as one archive that its receiver can check."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from plimsoll import exit_codes
from plimsoll.archive.archive import MANIFEST, PackError
from plimsoll.archive.archive import pack as write_archive
from plimsoll.archive.archive import unpack as read_archive
from plimsoll.cli.folder_errors import may_be_the_folder, reading
from plimsoll.cli.terminal import say, stop_with
from plimsoll.files import folder

MARKS = (folder.PLAN, folder.OUTCOME, folder.SUMMARY, folder.REPEATS, "study.json")
SUFFIX = ".plimsoll.tar.gz"


def pack(
    directory: Annotated[
        Path, typer.Argument(help="The folder of a run, a repeated run, several hosts or a study.", metavar="DIR")
    ],
    redact: Annotated[
        bool, typer.Option("--redact", help="Take out names of hosts, users, disks, paths and addresses.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="The archive; beside the folder if left out.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was packed as JSON.")] = False,
) -> None:
    """Pack a folder into one archive with a manifest of SHA-256 sums.

    Example: plimsoll pack runs/nightly --redact --out for-the-vendor.tar.gz
    """
    home = directory.absolute()
    if not home.is_dir():
        what = "is a file" if home.exists() else "does not exist"
        stop_with(exit_codes.USAGE, f"{directory} {what}; name the folder of a run")
    if not any((home / mark).exists() for mark in MARKS):
        stop_with(exit_codes.USAGE, f"{directory} holds no run; expected one of {', '.join(MARKS)} in it")
    target = (out or home.with_name(("run" if redact else home.name) + SUFFIX)).absolute()
    if target.exists():
        stop_with(exit_codes.USAGE, f"{target} exists; name another file with --out, nothing is overwritten")
    if target.is_relative_to(home):
        stop_with(exit_codes.USAGE, f"{target} lies in the folder that is packed; name another place with --out")
    left_out: list[str] = []
    replaced: dict[str, int] = {}
    try:
        if redact:
            from plimsoll.archive.redaction import redacted_copy

            with reading(home), tempfile.TemporaryDirectory(prefix="plimsoll-pack-") as scratch:
                copy = Path(scratch) / "run"
                copy.mkdir()
                names, left_out = redacted_copy(home, copy)
                left_out += _pages_again(home, copy)
                replaced = names.counts()
                packed = write_archive(copy, "run", target)
        else:
            packed = write_archive(home, home.name, target)
    except PackError as error:
        stop_with(exit_codes.USAGE, *error.problems)
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{error.filename or target}: {(error.strerror or str(error)).lower()}")
    found = {
        "schema_version": 1, "archive": str(target), "sha256": packed.sha256, "files": packed.files,
        "redacted": redact, "replaced": replaced, "left_out": sorted(left_out),
    }  # fmt: skip
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"{target}: {len(packed.files)} files and {MANIFEST}")
    typer.echo(f"sha256 {packed.sha256}")
    if redact:
        words = ", ".join(f"{count} of kind {kind}" for kind, count in replaced.items())
        typer.echo(f"names replaced: {words or 'none'}; what carries no label cannot be known, so look before you send")
    for name in sorted(left_out):
        say(f"left out: {name}")


def unpack(
    archive: Annotated[Path, typer.Argument(help="An archive of `plimsoll pack`.", metavar="FILE")],
    to: Annotated[
        Path | None, typer.Option("--to", help="Where to; a folder of its name here if left out.", metavar="DIR")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check it against its manifest; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check an archive against its manifest and unpack it; leaves nothing behind when it was changed.

    Exits with 0, 1 when files are not those of the manifest, 2 when it is no such archive or the place is taken.

    Example: plimsoll unpack nightly.plimsoll.tar.gz --check
    """
    if not archive.is_file():
        what = "is a folder" if archive.is_dir() else "does not exist"
        stop_with(exit_codes.USAGE, f"{archive} {what}; name an archive of `plimsoll pack`")
    name = archive.name.removesuffix(".tgz").removesuffix(".gz").removesuffix(".tar").removesuffix(".plimsoll")
    # A name without such an ending would be that of the archive itself.
    into = None if check else to or Path(name if name != archive.name else f"{name}.unpacked")
    try:
        found = read_archive(archive, into)
    except PackError as error:
        changed = any("manifest" in problem and "expected" not in problem for problem in error.problems)
        stop_with(exit_codes.FAIL if changed else exit_codes.USAGE, *error.problems)
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{error.filename or archive}: {(error.strerror or str(error)).lower()}")
    if as_json:
        content = {"schema_version": 1, "sha256": found.sha256, "files": found.files, "folder": into and str(into)}
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{len(found.files)} files are those of the manifest; sha256 of the archive {found.sha256}")
    if into is not None:
        typer.echo(f"unpacked into {into}")


def _pages_again(home: Path, copy: Path) -> list[str]:
    """Make the reports of runs and repeated runs again from redacted files; answers the pages that cannot be."""
    left_out = []
    for page in sorted(home.rglob("*.html")):
        place = copy / page.relative_to(home)
        if page.name != folder.REPORT or not _page_again(place.parent):
            left_out.append(page.relative_to(home).as_posix())
    return left_out


def _page_again(run_folder: Path) -> bool:
    from plimsoll.multihost import CombineError, page, read
    from plimsoll.pipeline import repeat

    try:
        if (run_folder / folder.REPEATS).exists():
            folder.write_text(run_folder / folder.REPORT, repeat.render(run_folder, repeat.read(run_folder)))
            return True
        if (run_folder / folder.HOSTS).exists():
            folder.write_text(run_folder / folder.REPORT, page.render(run_folder, *read(run_folder)))
            return True
        if not (run_folder / folder.VERDICT).exists():
            return False
        from plimsoll.report import write_report

        write_report(run_folder)
    except Exception as error:
        if not (isinstance(error, (folder.FolderError, CombineError, ModuleNotFoundError)) or may_be_the_folder(error)):
            raise
        say(f"warning: {run_folder.name}/{folder.REPORT} could not be made again: {error}")
        return False
    return True
