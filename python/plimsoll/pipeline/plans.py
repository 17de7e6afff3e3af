"""Plans built from tables, and plans that differ from another in what a command says.

No plan is ever changed: each answer is a new one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from plimsoll.documents.document import ABSENT
from plimsoll.documents.plan import Plan
from plimsoll.errors import RefusedError
from plimsoll.files import folder
from plimsoll.inputs.schema import READERS, require_kind
from plimsoll.inputs.toml_lines import LocatedFile, parse_located
from plimsoll.plan import stop_conditions
from plimsoll.plan.complete import complete_plan, plan_of_options
from plimsoll.plan.threads import thread_count, threads_stated, unshared


def build_plan(tables: Mapping[str, object]) -> Plan:
    """A plan of the tables and keys that a plan file has, with every default filled in.

    >>> target = {"name": "array", "path": "/mnt/array"}
    >>> plan = build_plan({"target": [target], "instance": [{"name": "one", "database_size_mib": 1024}]})
    >>> [phase.name for phase in plan.run.phases]
    ['prepare', 'warm_up', 'measure', 'stop', 'checksum']

    Raises:
        InputError: with every mistake found.
        RefusedError: what was given is no mapping of names.
    """  # noqa: E501
    if not isinstance(tables, Mapping) or not all(isinstance(key, str) for key in tables):
        raise RefusedError(
            [f"a {type(tables).__name__} is no plan; give the tables of one by their names"]
        )
    data = as_in_file(tables)
    if "kind" in data:
        require_kind(LocatedFile("options", data, {}), ("plan",), READERS)
    return plan_of_options(data)


def require_plan(plan: object) -> None:
    """Refuse what is no plan.

    Raises:
        RefusedError: it is none.
    """
    if not isinstance(plan, Plan):
        raise RefusedError(
            [f"a {type(plan).__name__} is no plan; make one with build_plan or read_plan"]
        )


def as_in_file(tables: Mapping[str, object]) -> dict[str, object]:
    """Tables and keys that a program has, as a plan file would give them.

    Raises:
        RefusedError: they have no end.
    """
    try:
        return {key: _as_in_file(value) for key, value in tables.items()}
    except RecursionError as error:
        raise RefusedError(["the plan is nested without end; a table holds itself"]) from error


def _as_in_file(value: object) -> object:
    """What a program has for a value of a plan, as a plan file would give it: tuples, paths and
    numbers of other libraries are as good as lists, text and numbers.
    """
    if isinstance(value, Mapping):
        # A key that is no text is no key of a plan, and told so by its name.
        return {str(key): _as_in_file(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_in_file(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def parse_plan(text: str, name: str = "plan") -> Plan:
    """A plan of the text of a plan file.

    Args:
        text: TOML.
        name: what the text is called in messages.

    Raises:
        InputError: with every mistake found.
    """
    document = parse_located(name, text)
    require_kind(document, ("plan",), READERS)
    return complete_plan(document)


def preparing(plan: Plan) -> Plan:
    """A plan with the phases of another that make its databases and close them, and nothing
    else.

    Raises:
        RefusedError: what was given is no plan.
    """
    require_plan(plan)
    phases = [phase for phase in plan.run.phases if phase.action.kind in folder.PREPARING]
    run = plan.run.replace(phases=phases, cluster=ABSENT)
    return plan.replace(name=f"{plan.name} prepare", run=run, events=ABSENT)


def _is_ceiling(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def _plain(number: float) -> float:
    """A number of another library as one of Python."""
    return number if isinstance(number, int) else float(number)


def bounded(
    plan: Plan,
    *,
    max_iops: float | None = None,
    max_mib_per_s: float | None = None,
    stop_if: str | Sequence[str] = (),
    threads: int | str | None = None,
) -> Plan:
    """A plan with ceilings and threads in place of its own, and with further conditions that stop
    the run.

    Args:
        plan: a completed plan; it stays as it is.
        max_iops: reads and writes per second at most.
        max_mib_per_s: MiB per second at most.
        stop_if: conditions such as `db_read_latency_ms_p99>50 for 30s`.
        threads: how many carry the instances, or "auto" for one of each, at most the processors
            less one.

    Raises:
        RefusedError: what was given is no plan, a ceiling that is no number above 0, conditions
            that say nothing, or threads that cannot share the load.
    """
    require_plan(plan)
    added = [stop_if] if isinstance(stop_if, str) else stop_if
    conditions, problems = [*plan.stop_if, *added], []
    for text in conditions:
        try:
            stop_conditions.parse(text)
        except stop_conditions.ConditionError as error:
            problems.append(f"--stop-if: {error}\n    hint: {error.hint}")
    ceilings = {"max_iops": max_iops, "max_mib_per_s": max_mib_per_s}
    stated = {name: ceiling for name, ceiling in ceilings.items() if ceiling is not None}
    wrong = {name: ceiling for name, ceiling in stated.items() if not _is_ceiling(ceiling)}
    problems += [
        f"--{name.replace('_', '-')} {ceiling!r} is no ceiling; write a number above 0"
        for name, ceiling in wrong.items()
    ]
    run = plan.run.replace(**{name: _plain(stated[name]) for name in stated if name not in wrong})
    if threads is not None:
        try:
            run = run.replace(
                threads=thread_count(threads_stated(threads), len(run.instances)) or ABSENT
            )
        except ValueError as error:
            problems.append(f"--threads: {error}")
        problems += [f"--threads: {mistake}" for mistake in unshared(run).values()]
    if problems:
        raise RefusedError(problems)
    return plan.replace(run=run, stop_if=conditions)
