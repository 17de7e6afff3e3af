"""Options of named tests: declared once, where the function stands that takes them, and checked.

The type of a parameter says of which kind an option is, its default what is taken if it is left
out, and `NamedTestOption` beside it the rest. The command line makes its options and its help of
the same declarations.

What the reader of plans checks is not checked here: its mistakes stand beside those of options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from plimsoll.errors import PlimsollError
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.schema import (
    Collector,
    Field,
    Flag,
    Given,
    Kind,
    ListOf,
    Number,
    Text,
)
from plimsoll.inputs.toml_lines import LocatedFile

#: What mistakes in options are told of, as those of plans that are made of options.
OPTIONS = "options"
FAR = 1e15
T = TypeVar("T")


@dataclass(frozen=True)
class NamedTestOption:
    """An option of a named test.

    Attributes:
        meaning: what it is for, in a sentence.
        minimum: the least that it may be, where the plan does not say it.
        maximum: the most.
        placeholder: what stands for its value in a help.
        name: the argument of `build_test_plan`, and the option of the command line without dashes.
        type: `int`, `float`, `str`, `Path`, `bool`, `list[str]`, or a `Literal` of the choices.
        default: what is taken if it is left out; None is left to the plan.
        required: whether it must be given.
        shared: whether all tests of databases have it.
    """

    meaning: str
    minimum: float | None = None
    maximum: float | None = None
    placeholder: str | None = None
    name: str = ""
    type: Any = str
    default: Any = None
    required: bool = False
    shared: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have, where there are few."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


def options_of(function: Callable[..., object]) -> list[NamedTestOption]:
    """The options that a function, or a class, takes, in its order."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if not hasattr(hints[name], "__metadata__"):
            continue  # it takes the options of another
        kind, said = get_args(hints[name])
        if get_origin(kind) in (Union, UnionType):
            (kind,) = (each for each in get_args(kind) if each is not NoneType)
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        found.append(replace(said, name=name, type=kind, default=default, required=required))
    return found


def made_of(
    options: Sequence[NamedTestOption], given: Mapping[str, object], make: Callable[[Given], T]
) -> T:
    """What is made of options that were given, once they are checked.

    None leaves an option out. What is wrong counts as left out, so that whatever else is wrong is
    told with it.

    Args:
        options: that are known.
        given: what was given, by names.
        make: makes it of a value for each option.

    Raises:
        InputError: with every mistake found.
        RefusedError: a list holds itself.
    """
    from plimsoll.pipeline.plans import as_in_file

    fields = {each.name: _field(each) for each in options}
    stated = as_in_file({key: value for key, value in given.items() if value is not None})
    collector = Collector(LocatedFile(OPTIONS, {}, {}))
    for name in stated.keys() - fields.keys():
        collector.add_unknown((name,), fields, "is no option of this test")
    found = collector.table({key: stated[key] for key in fields if key in stated}, fields, ())
    for each in options:
        if each.type in (Path, float) and found[each.name] is not None:
            found[each.name] = each.type(found[each.name])
    if not collector.mistakes:
        return make(found)
    further: Sequence[Mistake] = ()
    wrong = {mistake.where.partition("[")[0] for mistake in collector.mistakes}
    if not any(each.name in wrong and each.default is None for each in options):
        try:
            make(found)
        except InputError as error:
            further = error.mistakes if error.file_name == OPTIONS else ()
        except PlimsollError:
            pass  # what is there is looked at again once the options are right
    raise InputError(OPTIONS, [*collector.mistakes, *further])


def _field(option: NamedTestOption) -> Field:
    return Field(_kind(option), option.required, option.default, option.meaning)


def _kind(option: NamedTestOption) -> Kind:
    if option.type is bool:
        return Flag()
    if option.type in (int, float):
        least = -FAR if option.minimum is None else option.minimum
        most = FAR if option.maximum is None else option.maximum
        return Number(least, most, whole=option.type is int)
    return ListOf(Text()) if get_origin(option.type) is list else Text(option.choices)


def refuse(problems: Iterable[str]) -> None:
    """Refuse options that do not go together, all problems at once; none is fine.

    Raises:
        InputError: there is one.
    """
    if mistakes := [Mistake(0, "", problem) for problem in problems]:
        raise InputError(OPTIONS, mistakes)
