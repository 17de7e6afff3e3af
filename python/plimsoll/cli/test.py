"""`plimsoll test`: the named tests, made from a few options instead of a plan file.

Each command is made of what the API says of its test: its text, its options, their defaults. Every
one gets every option that says how a run is carried out, so that an option means the same in each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll.cli import options
from plimsoll.cli.panels import in_panels
from plimsoll.cli.terminal import reading_plan, refusing
from plimsoll.cli.test_io import measure_curve

test = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Run a named test: performance, mailbox, throughput, stress, max, backup, recovery, "
    "checksum, files, io, mail, store.",
)


@test.callback()
def callback() -> None:
    """Run a named test."""


#: Headings in the help of a test, below the options that are its own.
DATABASES, CARRIED_OUT = "What is tested", "How the run is carried out"

#: How a run is carried out, as `options.Choices` has it.
RUN_OPTIONS: dict[str, tuple[Any, Any]] = {
    "out": (options.Out, None),
    "yes": (options.Yes, False),
    "dry_run": (options.DryRun, False),
    "destroy": (options.Destroy, None),
    "create": (options.Create, False),
    "allow_system_disk": (options.AllowSystemDisk, False),
    "quiet": (options.Quiet, False),
    "verbose": (options.Verbose, False),
    "as_json": (options.AsJson, False),
    "json_lines": (options.JsonLines, False),
    "percentiles": (options.Percentiles, None),
    "detach": (options.Detach, False),
    "max_iops": (options.MaxIops, None),
    "max_mib_per_s": (options.MaxMibPerS, None),
    "threads": (options.Threads, None),
    "stop_if": (options.StopIf, None),
    "repeat": (options.Repeat, 1),
    "metrics": (options.Metrics, None),
}
#: What is said once of all the short runs of a curve.
CURVE_OPTIONS = (
    "out",
    "yes",
    "dry_run",
    "destroy",
    "create",
    "allow_system_disk",
    "quiet",
    "as_json",
    "json_lines",
)


def run_test(named: plimsoll.NamedTest, own: Any, how: Any) -> None:
    """Make the plan of a named test and carry it out."""
    with refusing(plimsoll.FolderError), reading_plan():
        plan = plimsoll.build_test_plan(named.name, stop_if=how["stop_if"] or (), **own)
    # Conditions are part of the plan by now.
    options.perform(plan, options.Choices(**{**how, "stop_if": None}))


def run_curve(_named: plimsoll.NamedTest, own: Any, how: Any) -> None:
    """Plan the points of a curve and measure them."""
    measure_curve(own, **how)


def add_command(
    named: plimsoll.NamedTest,
    carry_out: Callable[[plimsoll.NamedTest, Any, Any], None],
    how: Mapping[str, tuple[Any, Any]],
) -> None:
    """A command with the options of a test, and with these that say how it is carried out.

    Args:
        named: the test.
        carry_out: is given the test and, by names, what was given for its options and for these.
        how: for each of these its annotation and its default.
    """
    names = {each.name for each in named.options}
    parameters = [
        _parameter(each.name, _annotation(each), _default(each)) for each in named.options
    ]
    parameters += [_parameter(name, hint, default) for name, (hint, default) in how.items()]

    def command(**given: Any) -> None:
        own = {name: value for name, value in given.items() if name in names}
        carry_out(named, own, {name: given[name] for name in how})

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = named.text
    headings = dict.fromkeys((each.name for each in named.options if each.shared), DATABASES)
    headings |= dict.fromkeys((*RUN_OPTIONS, "help"), CARRIED_OUT)
    test.command(
        named.name,
        cls=in_panels(headings),
        context_settings={"help_option_names": ["-h", "--help"]},
    )(command)


def _annotation(option: plimsoll.NamedTestOption) -> Any:
    kind = option.type if option.required or option.default is not None else option.type | None
    if option.name in ("path", "target"):
        return Annotated[kind, typer.Argument(help=option.meaning, metavar=option.placeholder)]
    flag = [f"--{option.name.replace('_', '-')}"] if option.default is False else []
    said = typer.Option(
        *flag,
        help=option.meaning,
        min=option.minimum,
        max=option.maximum,
        metavar=option.placeholder,
    )
    return Annotated[kind, said]


def _default(option: plimsoll.NamedTestOption) -> Any:
    return inspect.Parameter.empty if option.required else option.default


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


for _name, _named in plimsoll.named_tests().items():
    if _name == "io":
        add_command(_named, run_curve, {name: RUN_OPTIONS[name] for name in CURVE_OPTIONS})
    else:
        add_command(_named, run_test, RUN_OPTIONS)
