"""`plimsoll import`: files of Jetstress to plans and run folders. What a file is, its content says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import course
from plimsoll.cli.refusal import refuse
from plimsoll.compat.jetstress_config import Imported, import_config
from plimsoll.compat.safexml import read_bytes
from plimsoll.sizing.mistakes import InputError


def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JetstressConfig.xml files.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write: a plan file for a configuration. Nothing is overwritten.")
    ] = None,
    root: Annotated[str, typer.Option(help="The directory below which drive letters are mounted here.")] = "/mnt",
) -> None:
    """Make a plan of a JetstressConfig.xml; list what was translated and what was kept word for word.

    Example: plimsoll import JetstressConfig.xml --out plan.toml
    """
    errors = []
    for path in files:
        try:
            _import_config(path, out, root)
        except InputError as error:
            errors.append(error)
    if errors:
        refuse(errors)


def _import_config(path: Path, out: Path | None, root: str) -> None:
    found = import_config(str(path), read_bytes(path), root)
    target = out or path.with_suffix(".plan.toml")
    _write_new(target, found.text)
    _tell(found)
    print(f"plan: {target}")


def _write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        course.stop_with(course.EXIT_USAGE, f"{path} exists; name another with --out, nothing is overwritten")
    except OSError as error:
        course.stop_with(course.EXIT_USAGE, f"{path}: {(error.strerror or str(error)).lower()}")


def _tell(found: Imported) -> None:
    print(f"{len(found.mapped)} fields translated:")
    for path, key in found.mapped.items():
        print(f"  {path} -> {key}")
    print(f"{len(found.kept)} fields kept for an export, without effect here:")
    for path, reason in found.kept.items():
        print(f"  {path}: {reason}")
    for remark in found.remarks:
        print(f"note: {remark}")
