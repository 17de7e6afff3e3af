"""The tree of exceptions: users catch a branch of it, so it is drawn, whole, and exported."""

import importlib
import inspect
import pkgutil
import re

import pytest

import plimsoll
from plimsoll import _native, errors

_LINE = re.compile(r"^( +)(\w+Error)\b", re.MULTILINE)


def drawn() -> dict[str, str]:
    """Each exception of the drawing with the one it stands under."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for indent, name in _LINE.findall(errors.__doc__ or ""):
        while above and above[-1][0] >= len(indent):
            above.pop()
        parents[name] = above[-1][1] if above else ""
        above.append((len(indent), name))
    return parents


def defined() -> dict[str, type[BaseException]]:
    """Each exception that a module of the package defines, by its name."""
    found: dict[str, type[BaseException]] = {}
    names = [module.name for module in pkgutil.walk_packages(plimsoll.__path__, "plimsoll.")]
    for module in (
        importlib.import_module(name)
        for name in names
        if not name.endswith(("__main__", "_native"))
    ):
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, BaseException) and kind.__module__ == module.__name__:
                assert name not in found, (
                    f"{name} is defined twice: {found[name].__module__}, {module.__name__}"
                )
                found[name] = kind
    return found


def test_every_exception_stands_in_the_drawn_tree() -> None:
    """Whoever catches PlimsollError must not be surprised by a class beside it."""
    tree = {name: parent for name, parent in drawn().items() if name != "PlimsollError"}
    actual = {
        name: next(
            base.__name__ for base in kind.__bases__ if issubclass(base, errors.PlimsollError)
        )
        for name, kind in defined().items()
        if issubclass(kind, errors.PlimsollError) and kind is not errors.PlimsollError
    }
    assert tree == actual
    # It carries what a listener raised past those who catch errors, and never comes out.
    assert [
        name for name, kind in defined().items() if not issubclass(kind, errors.PlimsollError)
    ] == ["RaisedError"]


@pytest.mark.parametrize(
    ("native", "ours"),
    [
        (_native.ConfigError, errors.ConfigError),
        (_native.DiskError, errors.DiskError),
        (_native.CorruptionError, errors.CorruptionError),
        (_native.PlimsollError, errors.EngineError),
    ],
)
def test_errors_of_the_native_part_are_translated(
    native: type[Exception], ours: type[Exception]
) -> None:
    """The native part has a tree of its own, which nobody outside should have to know."""
    with (
        pytest.raises(errors.PlimsollError, match=r"^what it said$") as caught,
        errors.of_the_engine(),
    ):
        raise native("what it said")
    assert type(caught.value) is ours
    assert isinstance(caught.value.__cause__, native)
