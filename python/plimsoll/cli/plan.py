"""`plimsoll plan`: begin a plan file, and print the schema that editors check it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import say, stop_with
from plimsoll.errors.system_errors import system_reason

plan = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Begin a plan file, or print the schema of one.",
)

TEMPLATE = """\
# A plan for `plimsoll run`. What is left out comes from the edition; `plimsoll run FILE --dry-run --json` shows every value.
kind = "plan"
schema_version = 1
name = "{name}"
description = "{description}"

# How many database reads and writes a second the users need. Without it the result is "within limits at N IOPS".
{required}

# The storage under test: a directory, or a whole block device (/dev/disk/by-id/...), which also needs a log_path.
[[target]]
name = "storage"
path = {path}
{log_path}
# rated_endurance_tb = 600      # of its drives, for the share a run takes

# One instance is one log and one cache. Make databases as large as the real ones: a cache on the way must not hold them.
{instances}
[[workload]]
name = "mix"
load = {{ {load} }}

[[phase]]
kind = "prepare"

[[phase]]
kind = "warm_up"

[[phase]]
kind = "measure"
duration_s = {duration_s}         # 7200 for a qualification

[[phase]]
kind = "stop"

[[phase]]
kind = "checksum"
"""  # noqa: E501
INSTANCE = """\
[[instance]]
name = "instance{number}"
edition = "{edition}"
database_size_mib = {size_mib}

"""


@plan.callback()
def callback() -> None:
    """Begin a plan file, or print the schema of one."""


@plan.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
def schema() -> None:
    """Print the JSON Schema of a plan, for editors and for programs that write plans."""
    typer.echo(json.dumps(plimsoll.plan_schema(), indent=2))


@plan.command("init", context_settings={"help_option_names": ["-h", "--help"]})
def init(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")] = Path(
        "plan.toml"
    ),
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for what matters instead of taking the usual.")
    ] = False,
) -> None:
    """Write a plan file with comments, to be changed and then given to `plimsoll run`."""
    if file.exists():
        stop_with(
            exit_codes.USAGE, f"{file} exists already; name another file, nothing is overwritten"
        )
    text = _asked() if ask else _text("/mnt/storage", 2, 65536, "2010", None, 3, 120)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{file}: {system_reason(error)}; name another file")
    typer.echo(f"{file} written; look at what it takes with `plimsoll run {file} --dry-run`")


def _asked() -> str:
    """The plan as the answers say; each question has a usual answer."""
    path = typer.prompt("Directory or block device to be tested", default="/mnt/storage", err=True)
    device = plimsoll.is_device(Path(path))
    log_path = (
        typer.prompt("Directory for its logs", default="/mnt/logs", err=True) if device else None
    )
    edition = typer.prompt(
        "Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, 2016 or 2019",
        default="2010",
        err=True,
    )
    count = (
        1
        if device
        else typer.prompt("How many databases", default=2, type=typer_range(1, 250), err=True)
    )
    size_gib = typer.prompt(
        "GiB of each, as large as the real ones", default=64.0, type=float, err=True
    )
    iops = typer.prompt(
        "Database IOPS the users need (0: not known)", default=0.0, type=float, err=True
    )
    minutes = typer.prompt(
        "Minutes to measure; a qualification takes 120", default=120.0, type=float, err=True
    )
    return _text(
        path, count, max(64, round(size_gib * 1024)), edition, iops or None, 3, minutes, log_path
    )


def typer_range(low: int, high: int) -> type[int]:
    """An answer that must be a whole number in a range."""

    class Answer(int):
        def __new__(cls, text: str | int) -> Answer:
            number = super().__new__(cls, text)
            if not low <= number <= high:
                raise typer.BadParameter(f"write a number from {low} to {high}")
            return number

    return Answer


def _text(
    path: str,
    count: int,
    size_mib: int,
    edition: str,
    iops: float | None,
    sessions: int,
    minutes: float,
    log_path: str | None = None,
) -> str:
    """The plan as TOML; what was asked for is checked as a plan file is, before it is written."""
    instances = "".join(
        INSTANCE.format(number=number, edition=edition, size_mib=size_mib)
        for number in range(1, count + 1)
    )
    text = TEMPLATE.format(
        name="qualification" if minutes >= 120 else "rehearsal",
        description="Is this storage fit for what is planned on it?",
        required="# required_iops = 240" if iops is None else f"required_iops = {iops:g}",
        path=json.dumps(path),
        log_path='# log_path = "/mnt/logs"'
        if log_path is None
        else f"log_path = {json.dumps(log_path)}",
        instances=instances,
        load=f"sessions = {sessions}",
        duration_s=f"{minutes * 60:g}",
    )
    try:
        plimsoll.parse_plan(text, "the answers")
    except plimsoll.InputError as error:
        stop_with(exit_codes.USAGE, f"these answers make no plan\n{error}")
    return text


@plan.command("export", context_settings={"help_option_names": ["-h", "--help"]})
def export(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The plan.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("JetstressConfig.xml"),
) -> None:
    """Write a plan as a JetstressConfig.xml, with every field that an import kept."""
    try:
        text, remarks = plimsoll.export_config(plan_file)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except plimsoll.InputError as error:
        stop_with(exit_codes.USAGE, str(error))
    except FileExistsError:
        stop_with(
            exit_codes.USAGE, f"{out} exists; name another file with --out, nothing is overwritten"
        )
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{out}: {system_reason(error)}")
    for remark in remarks:
        say(f"note: {remark}")
    print(out)
