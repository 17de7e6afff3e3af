"""Frozen dataclasses that cost next to nothing to define.

The decorator of the standard library writes and compiles six functions for each class. That is a
quarter of what `plimsoll size` takes in all. Here the functions are shared; the fields are those of
`dataclasses`, so that `fields`, `replace`, `asdict` and `match` work as with any dataclass.

Limits: only `frozen=True` and `eq=False` are known, and no class inherits from one of the standard
decorator or is inherited by one. Making an object takes longer; what is made by the million uses
the standard decorator.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True) -> Any:
        """Make a class a frozen dataclass; without `eq` each object equals itself alone."""
        assert frozen, "the standard library has the others"

        def made(cls: type) -> type:
            dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
            cls.__init__ = _init_of(cls)
            shared = {"__setattr__": _set, "__delattr__": _delete, "__repr__": _repr}
            if eq:
                shared |= {"__eq__": _equals, "__hash__": _hash}
            for name, function in shared.items():
                if name not in cls.__dict__:
                    setattr(cls, name, function)
            return cls

        return made


def _init_of(cls: Any) -> Any:
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    absent = dataclasses.MISSING
    defaults = {field.name: field.default for field in fields if field.default is not absent}
    factories = {
        field.name: field.default_factory for field in fields if field.default_factory is not absent
    }
    title = cls.__name__

    def init(self: Any, /, *positional: Any, **named: Any) -> None:
        values = self.__dict__
        if len(positional) > len(names):
            raise TypeError(f"{title} takes {len(names)} values, but {len(positional)} were given")
        values.update(zip(names, positional, strict=False))
        for name, value in named.items():
            if name not in names or name in values:
                why = "was given twice" if name in values else "is not one of its fields"
                raise TypeError(f"{title} cannot be made: {name} {why}")
            values[name] = value
        if len(values) == len(names):
            return
        for name in names:
            if name in values:
                continue
            if name in defaults:
                values[name] = defaults[name]
            elif name in factories:
                values[name] = factories[name]()
            else:
                raise TypeError(f"{title} cannot be made: {name} is missing")

    return init


def _set(self: Any, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[object, ...]:
    return tuple(getattr(self, each.name) for each in _fields(self) if each.compare)


def _equals(self: Any, other: object) -> Any:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _fields(self: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(self)
