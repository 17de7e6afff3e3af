"""What all named tests have in common: where the databases lie, how many and how large, and how the run is carried out.

A named test is a function of the layout and of options of its own that answers a plan. `named_test` gives it every common
option, completes the plan and carries it out, so that an option means the same in each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

import plimsoll
from plimsoll.cli import options
from plimsoll.cli.terminal import reading_plan, refusing

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True)
class Layout:
    """The databases of a test: one instance for each, as the published tool laid them out."""

    path: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")]
    databases: Annotated[int, typer.Option(help="Databases, each an instance with its own log and cache.")] = 2
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = 1024
    edition: Annotated[str, typer.Option(help="Whose habits: 2003, 2007, 2010 or 2013.")] = "2010"
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of each instance.")] = None
    log_path: Annotated[Path | None, typer.Option(help="A directory for the logs, if they lie elsewhere.")] = None
    source: Annotated[
        str,
        typer.Option(help="any: what is there, or new; new: always new; existing: only what is there, as it is."),
    ] = "any"
    restore_from: Annotated[Path | None, typer.Option(help="A saved set to restore before the run.", metavar="DIR")] = (
        None
    )
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."),
    ] = None
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto"
    seed: Annotated[int, typer.Option(help="Decides keys and content.")] = 1

    def plan(self, test: str, phases: list[dict[str, Any]], **further: Any) -> dict[str, Any]:
        """The options of a plan with these databases and phases."""
        instance: dict[str, Any] = {"edition": self.edition}
        if self.cache_mib is not None:
            instance["cache_mib_max"] = self.cache_mib
        if self.source == "existing":
            target = plimsoll.existing_target(self.path)
            instances = [instance | there for there in plimsoll.existing_instances(self.path)]
        else:
            target = {"name": "target", "path": str(self.path)}
            if self.log_path is not None:
                target["log_path"] = str(self.log_path)
            names = [f"instance{number}" for number in range(1, self.databases + 1)]
            instances = [{"name": name, **instance, "database_size_mib": self.size_mib} for name in names]
        source = {"source": self.source} if self.restore_from is None else {"restore_from": str(self.restore_from)}
        stated = {"stated_limits": self.stated_limits} if self.stated_limits else {}
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
            **stated,
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
    ("as_json", options.AsJson, False),
    ("detach", options.Detach, False),
    ("max_iops", options.MaxIops, None),
    ("max_mib_per_s", options.MaxMibPerS, None),
    ("stop_if", options.StopIf, None),
    ("repeat", options.Repeat, 1),
    ("metrics", options.Metrics, None),
]


def named_test(app: typer.Typer, name: str) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Make a function of a layout and further options a command of `app`; the function answers the options of a plan."""

    def register(make_plan: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        hints = get_type_hints(make_plan, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in list(inspect.signature(make_plan).parameters.values())[1:]
        ]
        layout_hints = get_type_hints(Layout, include_extras=True)
        layout_names = [item.name for item in fields(Layout)]

        def command(**given: Any) -> None:
            layout = Layout(**{key: given[key] for key in layout_names})
            with refusing(plimsoll.FolderError):
                wanted = make_plan(layout, **{parameter.name: given[parameter.name] for parameter in own})
                # With the plan, so that a mistake in a condition comes together with all others.
                wanted["stop_if"] = given.pop("stop_if") or []
                with reading_plan():
                    plan = plimsoll.build_plan(wanted)
                if plan.source and plan.source.kind == "existing":
                    plan = plimsoll.adopt_databases(plan, layout.path)
            options.perform(plan, options.Choices(**{key: given[key] for key, _, _ in _RUN_OPTIONS if key in given}))

        parameters = [
            _parameter(item.name, layout_hints[item.name], item.default)
            if item.name != "path"
            else _parameter("path", layout_hints["path"], inspect.Parameter.empty)
            for item in fields(Layout)
        ]
        parameters += own + [_parameter(key, hint, default) for key, hint, default in _RUN_OPTIONS]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__doc__ = make_plan.__doc__
        command.__name__ = make_plan.__name__
        app.command(name, context_settings=HELP_NAMES)(command)
        return make_plan

    return register


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def phase(kind: str, **values: Any) -> dict[str, Any]:
    """A phase of a plan; what is None is left to the defaults."""
    return {"kind": kind, **{key: value for key, value in values.items() if value is not None}}
