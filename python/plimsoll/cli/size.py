"""`plimsoll size`: from a requirements file or a few options to capacity, I/O, databases, volumes
and servers.

Figures go to standard output, as text or JSON; what was written and what is wrong go to standard
error. The workbook, the report and the run plan are made only when asked for, and only then are
their libraries imported.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import plimsoll
from plimsoll import InputError
from plimsoll.errors.system_errors import system_reason
from plimsoll.inputs.mistakes import Mistake

if TYPE_CHECKING:
    from plimsoll import Requirements, Sizing

OPTIONS = {
    "users.count": "--users",
    "users.mailbox_quota_mb": "--quota-mb",
    "users.messages_per_day": "--messages-per-day",
    "users.message_size_kb": "--message-kb",
    "users.profile": "--profile",
    "copies.count": "--copies",
    "copies.servers": "--servers",
    "copies.mode": "--dag",
    "databases.max_size_gb": "--max-database-gb",
    "edition": "--edition",
    "logs.iops_rule": "--log-rule",
}
# How an answer that is missing is given as an option.
GIVEN_AS = {
    "users.count": "--users 5000",
    "users.mailbox_quota_mb": "--quota-mb 2048",
    "users.messages_per_day": "--messages-per-day 150, or a profile: --profile average",
}


def size(
    requirements: Annotated[
        Path | None,
        typer.Argument(metavar="REQUIREMENTS.toml", help="What is asked of the storage."),
    ] = None,
    users: Annotated[int | None, typer.Option(help="Mailbox users, growth included.")] = None,
    quota_mb: Annotated[
        float | None, typer.Option(help="Mailbox quota, MB of 1024^2 bytes.")
    ] = None,
    messages_per_day: Annotated[
        float | None, typer.Option(help="Messages of a user in a day.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="A named profile in place of the messages.")
    ] = None,
    message_kb: Annotated[
        float | None, typer.Option(help="Mean message size, KB (75 when left out).")
    ] = None,
    copies: Annotated[
        int | None, typer.Option(help="Copies of each database, the active one included.")
    ] = None,
    servers: Annotated[
        int | None, typer.Option(help="Mailbox servers (as many as copies when left out).")
    ] = None,
    dag: Annotated[
        bool | None, typer.Option("--dag/--standalone", help="A group of servers, or one alone.")
    ] = None,
    max_database_gb: Annotated[
        float | None, typer.Option(help="Largest database, GB of 1024^3 bytes.")
    ] = None,
    edition: Annotated[
        str | None, typer.Option(help="Whose guidance: exchange_2010 to exchange_2019.")
    ] = None,
    log_rule: Annotated[
        str | None, typer.Option(help="Log rule: table_17 or section_3_3_2.")
    ] = None,
    as_published: Annotated[
        str | None,
        typer.Option(metavar="PAPER", help="A paper's own rounding and omissions: dell_2010."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write every figure and its steps as JSON.")
    ] = False,
    xlsx: Annotated[Path | None, typer.Option(help="Write a workbook with live formulas.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report for handing over.")] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Write the run plan that would qualify the result.")
    ] = None,
) -> None:
    """Size storage for mailbox users or transactions, with every step shown.

    Answers come from a file, from options, or from a file with options laid over it:

    plimsoll size --users 5000 --quota-mb 2048 --messages-per-day 150 --copies 2
    """
    options = _tables(
        {
            "users.count": users,
            "users.mailbox_quota_mb": quota_mb,
            "users.messages_per_day": messages_per_day,
            "users.profile": profile,
            "users.message_size_kb": message_kb,
            "copies.count": copies,
            "copies.servers": servers,
            "copies.mode": None if dag is None else ("dag" if dag else "standalone"),
            "databases.max_size_gb": max_database_gb,
            "edition": edition,
            "logs.iops_rule": log_rule,
        }
    )
    wrong = _wrong_outputs({"--xlsx": xlsx, "--html": html, "--plan": plan}, requirements)
    errors = [InputError("options", wrong)] if wrong else []
    try:
        checked = plimsoll.stated_requirements(requirements, options, as_published)
        if not errors:
            _write(checked, as_published, as_json, xlsx, html, plan)
    except InputError as error:
        errors.append(error)
    if errors:
        _refuse(errors)


def _refuse(errors: list[InputError]) -> NoReturn:
    """Tell every mistake and stop.

    Raises:
        typer.Exit: With the code of bad input.
    """
    for error in errors:
        for mistake in error.mistakes:
            typer.echo(_in_words_of_options(mistake).render(error.file_name), err=True)
    count = sum(len(error.mistakes) for error in errors)
    typer.echo(f"{count} mistake{'s' if count > 1 else ''}, nothing sized", err=True)
    raise typer.Exit(2)


def _tables(options: dict[str, object]) -> dict[str, object]:
    """Arrange options by the tables of a requirements file; options not given are left out."""
    top: dict[str, object] = {}
    tables: dict[str, dict[str, object]] = {}
    for path, value in options.items():
        if value is not None:
            table, _, key = path.rpartition(".")
            (tables.setdefault(table, {}) if table else top)[key] = value
    return {**top, **tables}


def _in_words_of_options(mistake: Mistake) -> Mistake:
    """A mistake that stands on no line of a file named as the option that would be right."""
    if mistake.line:
        return mistake
    as_option = GIVEN_AS.get(mistake.where) if mistake.message == "is missing" else None
    hint = f"add {as_option}" if as_option else mistake.hint
    return Mistake(0, OPTIONS.get(mistake.where, mistake.where), mistake.message, hint)


def _wrong_outputs(outputs: dict[str, Path | None], requirements: Path | None) -> list[Mistake]:
    """Outputs that cannot be written or would destroy the input, found before any work."""
    mistakes = []
    for option, path in outputs.items():
        if path is None:
            continue
        if not path.parent.is_dir():
            mistakes.append(Mistake(0, option, f"{path.parent} is not a folder", "make it first"))
        elif path.is_dir():
            mistakes.append(Mistake(0, option, f"{path} is a folder", "name a file"))
        elif (
            requirements is not None
            and path.exists()
            and requirements.exists()
            and path.samefile(requirements)
        ):
            mistakes.append(
                Mistake(0, option, f"{path} is the requirements file itself", "name another file")
            )
    return mistakes


def _write(
    requirements: "Requirements",
    as_published: str | None,
    as_json: bool,
    xlsx: Path | None,
    html: Path | None,
    plan: Path | None,
) -> None:
    """Size and write everything that was asked for."""
    try:
        sizing = plimsoll.size(requirements, as_published or "formulas")
    except plimsoll.OversizedDesignError as error:
        hint = "check the number of users, the quota and the largest database, and their units"
        raise InputError(requirements.name, [Mistake(0, "", str(error), hint)]) from error
    except ValueError as error:
        hint = "leave --as-published out"
        raise InputError(
            requirements.name, [Mistake(0, "--as-published", str(error), hint)]
        ) from error
    for option, path, write in (
        ("--xlsx", xlsx, _workbook),
        ("--html", html, _report),
        ("--plan", plan, _plan),
    ):
        if path is not None:
            try:
                write(sizing, path)
            except OSError as error:
                reason = system_reason(error)
                raise InputError(
                    "options", [Mistake(0, option, f"{path} cannot be written: {reason}", "")]
                ) from error
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(_as_json(sizing))
    else:
        weighted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size((120, 40)).columns
        typer.echo(
            plimsoll.sizing_text(
                sizing, plimsoll.SizingTerminal(min(width, 140), weighted=weighted)
            )
        )
        typer.echo("\n" + "\n".join(_offers(sizing)))


def _offers(sizing: "Sizing") -> list[str]:
    """Classes of storage that would hold the result, and where the whole choice is made."""
    lines = ["Storage of today that would hold it (`plimsoll select` weighs all, with reasons)"]
    for offer in plimsoll.storage_offers(sizing):
        iops = f"{offer.iops_per_copy or 0:,.0f} IOPS"
        if offer.row.iops_basis == "formula":
            iops += " by formula"
        lines.append(f"  {offer.arrays_total} x {offer.row.title}: {iops} a copy")
    return lines if len(lines) > 1 else [*lines, "  none of the built-in catalogue"]


def _as_json(sizing: "Sizing") -> str:
    """A line for each figure: readable in a pager, and ten times as quick to write as an indented
    tree.
    """
    offers = [
        {
            "title": offer.row.title,
            "arrays_count": offer.arrays_total,
            "copy_iops": offer.iops_per_copy,
            "iops_basis": offer.row.iops_basis,
        }
        for offer in plimsoll.storage_offers(sizing)
    ]
    data = {**plimsoll.sizing_data(sizing), "storage_offers": offers}
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _workbook(sizing: "Sizing", path: Path) -> None:
    try:
        workbook = plimsoll.sizing_workbook(sizing)
    except ImportError as error:
        hint = "install the report extra: pip install 'plimsoll[report]'"
        raise InputError(
            "options", [Mistake(0, "--xlsx", "needs xlsxwriter, which is not installed", hint)]
        ) from error
    path.write_bytes(workbook)


def _report(sizing: "Sizing", path: Path) -> None:
    path.write_text(plimsoll.sizing_page(sizing), encoding="utf-8")


def _plan(sizing: "Sizing", path: Path) -> None:
    path.write_text(plimsoll.sizing_plan(sizing), encoding="utf-8")
