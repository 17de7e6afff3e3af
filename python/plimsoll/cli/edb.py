"""`plimsoll edb`: what is in a database of the format, whoever made it, and mending pages with
flipped bits.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import refusing, say, stop_with
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.sanitize import printable, unusable_name

edb = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="List or export the tables of a database, or repair its pages.",
)
_HELP = {"help_option_names": ["-h", "--help"]}
_PAGES_SHOWN_MAX = 20

Database = Annotated[
    Path, typer.Argument(metavar="FILE", help="The database; any program may have made it.")
]
Dirty = Annotated[
    bool,
    typer.Option(
        "--dirty",
        help="Also read a database that was not shut down cleanly; its pages may not fit together.",
    ),
]


class Format(StrEnum):
    """How an exported table is written."""

    CSV = "csv"
    JSON = "json"


@edb.callback()
def callback() -> None:
    """List or export the tables of a database, or repair its pages."""


def _stop(error: Exception) -> NoReturn:
    """Leave with the code that fits: damage is a failed check, everything else a usage error."""
    code = exit_codes.FAIL if isinstance(error, plimsoll.CorruptionError) else exit_codes.USAGE
    stop_with(code, str(error))


@edb.command("ls", context_settings=_HELP)
def ls(
    file: Database,
    count: Annotated[
        bool, typer.Option("--count", help="Also count the rows, which reads all of them.")
    ] = False,
    columns: Annotated[bool, typer.Option("--columns", help="Also list the columns.")] = False,
    dirty: Dirty = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything that is known as JSON.")
    ] = False,
) -> None:
    """List the tables of a database. Never writes.

    Exits with 1 when something damaged is met; of a table that cannot be counted for it the rest is
    listed.
    """
    try:
        found = plimsoll.list_tables(file, dirty=dirty, count=count)
    except plimsoll.EngineError as error:
        _stop(error)
    damaged = found["pages_missing"] or any(table["damage"] for table in found["tables"])
    code = exit_codes.FAIL if damaged else exit_codes.PASS
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        raise typer.Exit(code)
    state = "clean" if found["is_clean"] else "not shut down cleanly"
    version, update = found["format"]
    typer.echo(
        f"{printable(file)}: format {version:#x},{update:#x}; {found['pages']:,} pages of "
        f"{found['page_bytes']} bytes; {state}"
    )
    for table in found["tables"]:
        typer.echo("  " + _line(table))
        if columns:
            for number, name, kind in table["columns"]:
                typer.echo(f"    {number:>5}  {kind:<18}  {name}")
    if found["pages_missing"]:
        typer.echo(f"  {_missing(found)}, and what was in them is not counted")
    if found["pages_corrected"]:
        typer.echo(
            f"  {found['pages_corrected']} pages have a flipped bit; `plimsoll edb repair` repairs "
            f"them on a copy"
        )
    raise typer.Exit(code)


def _line(table: plimsoll.EdbTable) -> str:
    """A table in one line."""
    parts = [f"{len(table['columns'])} columns", f"{len(table['indexes'])} indexes"]
    if table["rows"] is not None:
        parts.insert(0, f"{table['rows']:,} rows")
    if table["damage"] is not None:
        parts.insert(0, f"not counted, {table['damage']}")
    if table["has_long_values"]:
        parts.append("long values")
    if table["is_system"]:
        parts.append("system")
    if table["template"]:
        lost = ", which is not there" if table["lacks_template"] else ""
        parts.append(f"inherits from {table['template']}{lost}")
    return f"{table['name']}: {', '.join(parts)}"


@edb.command("export", context_settings=_HELP)
def export(
    file: Database,
    table: Annotated[
        str | None, typer.Option("--table", "-t", help="Which table; `plimsoll edb ls` names them.")
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Every table, each into a file of the directory that --out names."
        ),
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="CSV with a heading, or a JSON object a line.")
    ] = Format.CSV,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, with --all the directory; it must not exist. Otherwise the "
            "output."
        ),
    ] = None,
    dirty: Dirty = False,
) -> None:
    """Write a table as CSV or JSON lines, in the order of its primary key, or with --all every
    table. Never writes to the database.

    Binary values are hexadecimal, dates are days since 1899-12-30, currency is in ten-thousandths.
    Damage ends the export of a table with what was read before it and exit code 1.
    """
    if every == (table is not None):
        stop_with(exit_codes.USAGE, "name one table with --table, or all of them with --all")
    if every:
        if out is None:
            stop_with(
                exit_codes.USAGE,
                "--all writes a file for each table; name a directory for them with --out",
            )
        _export_all(file, form, out, dirty)
        return
    if unusable := unusable_name(table):
        stop_with(
            exit_codes.USAGE, f"the database has no table {unusable}; names of tables are text"
        )
    try:
        _export_one(file, str(table), form, out, dirty)
    except plimsoll.EngineError as error:
        _stop(error)


def _export_one(file: Path, table: str, form: Format, out: Path | None, dirty: bool) -> None:
    """Write one table, and say how many rows it had."""
    text = plimsoll.TableExport(file, table, form.value, dirty=dirty)
    pieces = text.pieces()
    try:
        # Nothing is made before the first piece is there: a mistyped table leaves no empty file.
        first = next(pieces, b"")
        if out is None:
            _pour(first, pieces, sys.stdout.buffer)
        else:
            with out.open("xb") as target:
                _pour(first, pieces, target)
    except FileExistsError:
        stop_with(
            exit_codes.USAGE, f"{out} exists; name another file with --out, nothing is overwritten"
        )
    except BrokenPipeError:
        raise
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{out or 'the output'}: {system_reason(error)}")
    rows, encrypted = text.counts()
    say(f"{rows:,} rows of {table}")
    if encrypted:
        say(
            f"note: {encrypted:,} values are encrypted and written as `encrypted:` with their bytes"
        )


def _export_all(file: Path, form: Format, out: Path, dirty: bool) -> None:
    """Write every table into a new directory.

    One that cannot be read is named, and does not keep the others from being written.
    """
    try:
        tables = [table["name"] for table in plimsoll.list_tables(file, dirty=dirty)["tables"]]
    except plimsoll.EngineError as error:
        _stop(error)
    try:
        out.mkdir()
    except FileExistsError:
        stop_with(
            exit_codes.USAGE,
            f"{out} exists; name another directory with --out, nothing is overwritten",
        )
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{out}: {system_reason(error)}")
    lost: list[Exception] = []
    for table, name in zip(tables, file_names(tables, form.value), strict=True):
        try:
            _export_one(file, table, form, out / name, dirty)
        except plimsoll.EngineError as error:
            say(f"error: {error}")
            lost.append(error)
    if lost:
        damaged = any(isinstance(error, plimsoll.CorruptionError) for error in lost)
        stop_with(
            exit_codes.FAIL if damaged else exit_codes.USAGE,
            f"{len(lost)} of {len(tables)} tables could not be written whole",
        )


def file_names(tables: Sequence[str], ending: str) -> list[str]:
    """A file name for each table.

    Its own, without what a file name cannot have and without being another's.

    >>> file_names(["Mail", "mail", "../x", "{5C8C}LT"], "csv")
    ['Mail.csv', 'mail-2.csv', '.._x.csv', '{5C8C}LT.csv']
    """
    taken: set[str] = set()
    names = []
    for table in tables:
        stem = name = re.sub(r"[^\w{}. -]", "_", table, flags=re.ASCII)[:100] or "_"
        number = 2
        # File systems of other systems do not tell large letters from small ones.
        while name.lower() in taken:
            name = f"{stem}-{number}"
            number += 1
        taken.add(name.lower())
        names.append(f"{name}.{ending}")
    return names


def _pour(first: bytes, others: Iterator[bytes], target: BinaryIO) -> None:
    """Write every piece as it comes."""
    target.write(first)
    for piece in others:
        target.write(piece)
    target.flush()


@edb.command("repair", context_settings=_HELP)
def repair(
    file: Database,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The copy to repair; it must not exist. FILE with .repaired otherwise, which is "
            "deleted where nothing could be repaired."
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Repair the database itself and make no copy.")
    ] = False,
) -> None:
    """Repair the pages of a database in which a bit has flipped, and a damaged header whose other
    copy is sound; on a copy unless told otherwise.

    Only of a database that was shut down cleanly and that no other process has open. Exits with 0
    when nothing damaged is left, 1 when there are pages beyond repair, which are as they were, or
    when part of the file is missing.
    """
    if in_place and out is not None:
        stop_with(exit_codes.USAGE, "--in-place makes no copy; leave out --out or --in-place")
    target = file if in_place else out or file.with_name(f"{file.name}.repaired")
    try:
        if in_place:
            report = plimsoll.repair_database(target)
        else:
            with refusing(plimsoll.FolderError):
                report = plimsoll.repair_copy(file, target, always=out is not None)
    except plimsoll.EngineError as error:
        _stop(error)
    except KeyboardInterrupt:
        if not in_place:
            raise
        stop_with(
            exit_codes.INTERRUPTED, "stopped before the end; pages are repaired or as they were"
        )
    typer.echo(
        f"{printable(target)}: {report['pages_seen']:,} pages, {report['pages_mended']} repaired, "
        f"{report['pages_beyond_repair']} beyond repair"
    )
    for words, pages in (
        ("repaired", report["mended"]),
        ("beyond repair", report["beyond_repair"]),
    ):
        for page in pages[:_PAGES_SHOWN_MAX]:
            typer.echo(f"  page {page}: {words}")
    if report["header_copy_mended"] is not None:
        typer.echo(f"  copy {report['header_copy_mended']} of the header: repaired from the other")
    lost = _lost(report)
    for line in lost:
        typer.echo(f"  {line}")
    if not in_place and not target.exists():
        # It would be as large as the database, and no better.
        typer.echo("  nothing was repaired, so the copy was deleted")
    raise typer.Exit(exit_codes.FAIL if report["pages_beyond_repair"] or lost else exit_codes.PASS)


def _missing(report: plimsoll.EdbRepair | plimsoll.EdbListing) -> str:
    """How many pages a file lacks."""
    pages = report["pages_missing"]
    floor = "at least " if report["is_more_missing"] else ""
    noun = "page is" if pages == 1 else "pages are"
    return f"{floor}{pages:,} {noun} missing at its end"


def _lost(report: plimsoll.EdbRepair) -> list[str]:
    """What no page can be mended for, in sentences."""
    found = []
    if report["pages_missing"]:
        found.append(f"{_missing(report)}; restore the database")
    if report["trailing_bytes"]:
        found.append(f"{report['trailing_bytes']} bytes follow its last whole page")
    if not report["pages_seen"]:
        found.append("it has no pages")
    return found
