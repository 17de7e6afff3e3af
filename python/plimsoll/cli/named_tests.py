"""What all named tests have in common.

Where the databases lie, how many and how large, and how the run is carried out.

A named test is a function that answers the options of a plan: of the layout and of options of its
own (`named_test`), or of options which are all its own (`planned_test`). Either gives it every
option that says how a run is carried out, completes the plan and carries it out, so that an option
means the same in each.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.panels import in_panels
from plimsoll.cli.terminal import reading_plan, refusing, stop_with

#: Options of a plan, as its file has them.
Options = dict[str, object]
#: What a function with options of its own answers: the options of a plan.
MakePlan = Callable[..., Options]
#: What a user gave for each parameter of a command.
Given = Mapping[str, object]

#: Headings in the help of a test, below the options that are its own.
DATABASES, CARRIED_OUT = "What is tested", "How the run is carried out"
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


RestoreFrom = Annotated[
    Path | None, typer.Option(help="A saved set to restore before the run.", metavar="DIR")
]


@dataclass(frozen=True)
class Layout:
    """The databases of a test: one instance for each, as the published tool laid them out."""

    path: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")]
    databases: Annotated[
        int, typer.Option(help="Databases, each an instance with its own log and cache.")
    ] = 2
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = 1024
    edition: Annotated[
        str,
        typer.Option(
            help="Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, or as "
            "derived from it 2016 and 2019."
        ),
    ] = "2010"
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of each instance.")] = None
    log_path: Annotated[
        Path | None, typer.Option(help="A directory for the logs, if they lie elsewhere.")
    ] = None
    source: Annotated[
        str,
        typer.Option(
            help="any: what is there, or new; new: always new; existing: only what is there, as it "
            "is."
        ),
    ] = "any"
    restore_from: RestoreFrom = None
    stated_limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."
        ),
    ] = None
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto"
    seed: Annotated[int, typer.Option(help="Decides keys and content.")] = 1

    def plan(self, test: str, phases: list[Options], **further: object) -> Options:
        """The options of a plan with these databases and phases."""
        return self._plan(test, phases, {"database_size_mib": self.size_mib}, further)

    def plan_without_sizes(self, test: str, phases: list[Options], **further: object) -> Options:
        """The same, where the sizes of the databases follow from something else."""
        return self._plan(test, phases, {}, further)

    def _plan(self, test: str, phases: list[Options], size: Options, further: Options) -> Options:
        instance = {"edition": self.edition, **stated(cache_mib_max=self.cache_mib)}
        target: Options
        instances: list[Options]
        if self.source == "existing":
            target = {**plimsoll.existing_target(self.path)}
            instances = [instance | there for there in plimsoll.existing_instances(self.path)]
        else:
            target = {
                "name": "target",
                "path": str(self.path),
                **stated(log_path=_text(self.log_path)),
            }
            names = [f"instance{number}" for number in range(1, self.databases + 1)]
            instances = [{"name": name, **instance, **size} for name in names]
        source = (
            {"source": self.source}
            if self.restore_from is None
            else {"restore_from": str(self.restore_from)}
        )
        return {
            "name": test,
            "test": test,
            "target": [target],
            "instance": instances,
            "workload": [{"name": "mix"}],
            "phase": phases,
            "io_method": self.io_method,
            "seed": self.seed,
            **source,
            **stated(stated_limits=self.stated_limits or None),
            **further,
        }


#: How a run is carried out, as `options.Choices` has it.
_RUN_OPTIONS: list[tuple[str, Any, Any]] = [
    ("out", options.Out, None),
    ("yes", options.Yes, False),
    ("dry_run", options.DryRun, False),
    ("destroy", options.Destroy, None),
    ("create", options.Create, False),
    ("allow_system_disk", options.AllowSystemDisk, False),
    ("quiet", options.Quiet, False),
    ("verbose", options.Verbose, False),
    ("as_json", options.AsJson, False),
    ("json_lines", options.JsonLines, False),
    ("percentiles", options.Percentiles, None),
    ("detach", options.Detach, False),
    ("max_iops", options.MaxIops, None),
    ("max_mib_per_s", options.MaxMibPerS, None),
    ("threads", options.Threads, None),
    ("stop_if", options.StopIf, None),
    ("repeat", options.Repeat, 1),
    ("metrics", options.Metrics, None),
]

#: Their heading in the help.
RUN_HEADINGS = dict.fromkeys((*(key for key, _, _ in _RUN_OPTIONS), "help"), CARRIED_OUT)


def named_test(app: typer.Typer, name: str) -> Callable[[MakePlan], MakePlan]:
    """Make a function of a layout and further options a command of `app`.

    The function answers the options of a plan.
    """

    def register(make_plan: MakePlan) -> MakePlan:
        own = _own_parameters(make_plan)[1:]
        hints = get_type_hints(Layout, include_extras=True)
        where = [
            _parameter(item.name, hints[item.name], item.default)
            if item.name != "path"
            else _parameter("path", hints["path"], inspect.Parameter.empty)
            for item in fields(Layout)
        ]

        def planned(given: Given) -> plimsoll.Plan:
            layout = Layout(**_of(where, given))
            plan = _completed(make_plan(layout, **_of(own, given)), given)
            if plan.source and plan.source.kind == "existing":
                return plimsoll.adopt_databases(plan, layout.path)
            return plan

        _add_command(app, name, make_plan, [*where, *own], planned)
        return make_plan

    return register


def planned_test(app: typer.Typer, name: str) -> Callable[[MakePlan], MakePlan]:
    """Make a function a command of `app` that answers the options of a plan from options which are
    all its own.
    """

    def register(make_plan: MakePlan) -> MakePlan:
        own = _own_parameters(make_plan)

        def planned(given: Given) -> plimsoll.Plan:
            with reading_plan():
                wanted = make_plan(**_of(own, given))
            return _completed(wanted, given)

        _add_command(app, name, make_plan, own, planned)
        return make_plan

    return register


def _completed(wanted: Options, given: Given) -> plimsoll.Plan:
    # With the plan, so that a mistake in a condition comes together with all others.
    with reading_plan():
        return plimsoll.build_plan({**wanted, "stop_if": given["stop_if"] or []})


def _add_command(
    app: typer.Typer,
    name: str,
    make_plan: MakePlan,
    own: list[inspect.Parameter],
    planned: Callable[[Given], plimsoll.Plan],
) -> None:
    """A command with these parameters, and with every one that says how a run is carried out."""
    how = [_parameter(key, hint, default) for key, hint, default in _RUN_OPTIONS]

    def command(**given: Any) -> None:
        with refusing(plimsoll.FolderError):
            plan = planned(given)
        # Conditions are part of the plan by now.
        options.perform(plan, options.Choices(**{**_of(how, given), "stop_if": None}))

    parameters = [*own, *how]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = make_plan.__doc__
    command.__name__ = make_plan.__name__
    headings = dict.fromkeys((item.name for item in fields(Layout)), DATABASES)
    app.command(name, cls=in_panels(headings | RUN_HEADINGS), context_settings=HELP_NAMES)(command)


def _own_parameters(make_plan: MakePlan) -> list[inspect.Parameter]:
    hints = get_type_hints(make_plan, include_extras=True)
    return [
        _parameter(parameter.name, hints[parameter.name], parameter.default)
        for parameter in inspect.signature(make_plan).parameters.values()
    ]


def _of(parameters: list[inspect.Parameter], given: Given) -> Any:
    """What was given for some of the parameters of a command."""
    return {parameter.name: given[parameter.name] for parameter in parameters}


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def phase(kind: str, **values: object) -> Options:
    """A phase of a plan; what is None is left to the defaults."""
    return {"kind": kind, **stated(**values)}


def stated(**values: object) -> Options:
    """What was stated of some options; None was not, and is left to the defaults.

    >>> stated(users=200, spacing=None)
    {'users': 200}
    """
    return {key: value for key, value in values.items() if value is not None}


def storage_options(
    path: Path | None,
    modelled: str | None,
    change: list[str] | None,
    log_path: Path | None,
    what: str,
) -> Options:
    """The target of a plan: a path, or a modelled array with what is changed of it.

    Leaves when it is neither.

    Args:
        path: where the test works.
        modelled: the array that is simulated instead.
        change: figures of that array.
        log_path: a directory for the logs, if they lie elsewhere.
        what: what a path may be, for the message.
    """
    if (path is None) == (modelled is None):
        stop_with(exit_codes.USAGE, f"name either {what}, or an array with --modelled")
    if modelled is None and change:
        stop_with(exit_codes.USAGE, "--change is for arrays named with --modelled")
    return {
        "name": "target",
        **stated(
            path=_text(path),
            modelled=modelled,
            changes=changes_of(change),
            log_path=_text(log_path),
        ),
    }


def changes_of(change: list[str] | None) -> Options | None:
    """Figures of a modelled array as they are given with `--change`.

    Leaves when they cannot be read.

    >>> changes_of(["level='RAID 10'", "sets=[8]"])
    {'level': 'RAID 10', 'sets': [8]}
    """
    try:
        return tomllib.loads("\n".join(change or [])) or None
    except tomllib.TOMLDecodeError as error:
        hint = (
            "write it as in a file of arrays, such as --change \"level='RAID 10'\" --change "
            "'sets=[8]'"
        )
        stop_with(exit_codes.USAGE, f"--change cannot be read: {error}\n    hint: {hint}")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
