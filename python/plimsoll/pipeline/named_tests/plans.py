"""The named tests by their names, and the plans that are made of their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.schema import Given
from plimsoll.pipeline.named_tests import databases
from plimsoll.pipeline.named_tests.databases import Layout
from plimsoll.pipeline.named_tests.files import files
from plimsoll.pipeline.named_tests.io import io
from plimsoll.pipeline.named_tests.mail import mail
from plimsoll.pipeline.named_tests.options import OPTIONS, NamedTestOption, made_of, options_of
from plimsoll.pipeline.named_tests.store import store

if TYPE_CHECKING:
    from plimsoll.documents.plan import Plan
    from plimsoll.pipeline.io_curve import PlannedCurve

#: What makes the tables of a plan of the options of a test; that of I/O makes many plans.
MAKERS: dict[str, Callable[..., Any]] = {
    "performance": databases.performance,
    "backup": databases.backup,
    "recovery": databases.recovery,
    "checksum": databases.checksum,
    "stress": databases.stress,
    "max": databases.maximum,
    "mailbox": databases.mailbox,
    "throughput": databases.throughput,
    "files": files,
    "store": store,
    "mail": mail,
    "io": io,
}


@dataclass(frozen=True)
class NamedTest:
    """A test that is made of a few options.

    Attributes:
        name: as the command line has it.
        text: what it is for and how it is used, in paragraphs.
        options: what may be said of it, in the order of its help.
    """

    name: str
    text: str
    options: Sequence[NamedTestOption]

    @property
    def meaning(self) -> str:
        """What it is for, in a line."""
        return " ".join(self.text.partition("\n\n")[0].split())


@cache
def named_tests() -> Mapping[str, NamedTest]:
    """The tests that `build_test_plan` and `plan_curve` make plans of, by their names.

    >>> named_tests()["stress"].meaning
    'Load the storage for hours or days.'
    """
    return MappingProxyType({name: _named_test(name) for name in MAKERS})


def _named_test(name: str) -> NamedTest:
    shared = {item.name for item in fields(Layout)}
    found = options_of(MAKERS[name])
    if _takes_layout(name):
        found = [*options_of(Layout), *found]
    options = tuple(replace(each, shared=name != "io" and each.name in shared) for each in found)
    return NamedTest(name, inspect.getdoc(MAKERS[name]) or "", options)


def _takes_layout(name: str) -> bool:
    return "layout" in inspect.signature(MAKERS[name]).parameters


def build_test_plan(test: str, /, *, stop_if: str | Sequence[str] = (), **options: object) -> Plan:
    """The plan of a named test, as `plimsoll test` carries it out.

    >>> plan = build_test_plan("performance", path="/mnt/array", databases=4, minutes=10)
    >>> len(plan.run.instances), plan.run.phases[2].action.duration_s
    (4, 600.0)

    Args:
        test: one of `named_tests`, but not `io`, for which see `plan_curve`.
        stop_if: conditions that stop the run.
        **options: those of the command line, with underscores for dashes; None leaves one out.

    Raises:
        InputError: with every mistake found.
        FolderError: databases that should be there are not.
        RefusedError: a list holds itself.
    """
    from plimsoll.databases.existing import adopt_databases
    from plimsoll.pipeline.plans import build_plan

    known = [name for name in MAKERS if name != "io"]
    if test not in known:
        hint = "plan_curve makes its plans" if test == "io" else nearest_names(str(test), known)
        message = f"is {test!r}, which is no test with a plan of its own"
        raise InputError(OPTIONS, [Mistake(0, "test", message, hint)])
    conditions = [stop_if] if isinstance(stop_if, str) else stop_if

    def plan_of(tables: Mapping[str, object]) -> Plan:
        # With the plan, so that a mistake in a condition comes together with all others.
        return build_plan({**tables, "stop_if": conditions})

    def make(values: Given) -> Plan:
        if not _takes_layout(test):
            return plan_of(MAKERS[test](**values))
        layout = Layout(**{item.name: values.pop(item.name) for item in fields(Layout)})
        plan = plan_of(MAKERS[test](layout, **values))
        if plan.source and plan.source.kind == "existing":
            return adopt_databases(plan, layout.path)
        return plan

    return made_of(named_tests()[test].options, options, make)


def plan_curve(**options: object) -> PlannedCurve:
    """The plans of a curve of I/O per second against latency, one for each of its points.

    >>> planned = plan_curve(path="/mnt/array", block="4k,32k", depth="1..8", read=100)
    >>> planned.title, len(planned.plans)
    ('random, 100 % reads on /mnt/array', 8)

    Args:
        **options: those of the named test `io`, as for `build_test_plan`.

    Raises:
        InputError: with every mistake found.
    """
    planned: PlannedCurve = made_of(
        named_tests()["io"].options, options, lambda values: io(**values)
    )
    return planned
