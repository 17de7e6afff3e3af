"""The chain of steps behind every figure: one arithmetic, read three ways.

A sizing figure is a `Step`: a value with a name that ends in its unit, a title, a source and the
expression it was derived by. Expressions are built by ordinary Python arithmetic on steps, so the
number, the formula shown to the
reader and the live formula of the workbook come from the same place and cannot drift apart:

    white_space = derive("white_space_mb", messages * message_kb / 1024, ...)

Values are carried unrounded; rounding happens only where an expression says `ceil` or
`round_half_up`.
"""

import math
from collections.abc import Callable, Iterable
from functools import cached_property

from plimsoll.inputs.records import dataclass
from plimsoll.units import unit_of_name


@dataclass(frozen=True, eq=False)
class Expression:
    """A node of the arithmetic: a number, a named step, an operator or a function.

    Attributes:
        value: What it comes to.
        operator: One of `OPERATORS`, a key of `FUNCTIONS`, "number" or "step".
        operands: What the operator is applied to, in order.
    """

    value: float
    operator: str = "number"
    operands: tuple["Expression", ...] = ()

    def __add__(self, other: "Operand") -> "Expression":
        return _combine("+", self, other)

    def __radd__(self, other: "Operand") -> "Expression":
        return _combine("+", other, self)

    def __sub__(self, other: "Operand") -> "Expression":
        return _combine("-", self, other)

    def __rsub__(self, other: "Operand") -> "Expression":
        return _combine("-", other, self)

    def __mul__(self, other: "Operand") -> "Expression":
        return _combine("*", self, other)

    def __rmul__(self, other: "Operand") -> "Expression":
        return _combine("*", other, self)

    def __truediv__(self, other: "Operand") -> "Expression":
        return _combine("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "Expression":
        return _combine("/", other, self)


@dataclass(frozen=True, eq=False)
class Step(Expression):
    """A named figure with its provenance.

    Attributes:
        name: A whole-word name that ends in its unit.
        unit: The unit, as the name says it.
        title: What it is, for a reader.
        source: Where the formula or the value comes from.
        definition: The expression it was derived by; None for a figure that was given.
        note: What a reader must know beyond the formula.
    """

    name: str = ""
    unit: str = ""
    title: str = ""
    source: str = ""
    definition: Expression | None = None
    note: str = ""

    @cached_property
    def inputs(self) -> tuple["Step", ...]:
        """The steps its definition mentions, in order of first mention."""
        return () if self.definition is None else tuple(_steps_in(self.definition))

    @property
    def formula(self) -> str:
        """The definition in names, such as `users_count * mailbox_size_mb`."""
        return "" if self.definition is None else render(self.definition, lambda step: step.name)

    @property
    def arithmetic(self) -> str:
        """The definition in numbers, such as `5000 * 2356.15`."""
        return (
            ""
            if self.definition is None
            else render(self.definition, lambda step: plain_number(step.value))
        )


Operand = Expression | float
Amount = Step | float

OPERATORS: dict[str, tuple[int, Callable[[float, float], float]]] = {
    "+": (1, lambda left, right: left + right),
    "-": (1, lambda left, right: left - right),
    "*": (2, lambda left, right: left * right),
    "/": (2, lambda left, right: left / right),
}
# 3.0000000000000004 databases are 3: what binary fractions add is cut off before rounding up or
# down.
WHOLE_DIGITS = 9
FUNCTIONS: dict[str, Callable[..., float]] = {
    "ceil": lambda x: float(math.ceil(round(x, WHOLE_DIGITS))),
    "floor": lambda x: float(math.floor(round(x, WHOLE_DIGITS))),
    "round_half_up": lambda x: float(math.floor(x + 0.5)),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "if_at_most": lambda x, limit, then, otherwise: then if x <= limit else otherwise,
}


def _expression(operand: Operand) -> Expression:
    return operand if isinstance(operand, Expression) else Expression(float(operand))


def _combine(operator: str, left: Operand, right: Operand) -> Expression:
    first, second = _expression(left), _expression(right)
    return Expression(OPERATORS[operator][1](first.value, second.value), operator, (first, second))


def _apply(function: str, *arguments: Operand) -> Expression:
    operands = tuple(_expression(argument) for argument in arguments)
    return Expression(
        FUNCTIONS[function](*(operand.value for operand in operands)), function, operands
    )


def ceil(value: Operand) -> Expression:
    """Round up to a whole number."""
    return _apply("ceil", value)


def floor(value: Operand) -> Expression:
    """Round down to a whole number."""
    return _apply("floor", value)


def round_half_up(value: Operand) -> Expression:
    """Round to the nearest whole number, halves upward, as the papers do."""
    return _apply("round_half_up", value)


def maximum(*values: Operand) -> Expression:
    """The largest of the values."""
    return _apply("max", *values)


def minimum(*values: Operand) -> Expression:
    """The smallest of the values."""
    return _apply("min", *values)


def if_at_most(value: Operand, limit: Operand, then: Operand, otherwise: Operand) -> Expression:
    """`then` where the value does not exceed the limit, else `otherwise`."""
    return _apply("if_at_most", value, limit, then, otherwise)


def given(name: str, value: float, title: str, source: str, note: str = "") -> Step:
    """Name a figure that was given: an answer of the user, or a constant with its source."""
    return Step(float(value), "step", (), name, _unit(name), title, source, None, note)


def derive(name: str, definition: Expression, title: str, source: str, note: str = "") -> Step:
    """Name a figure that follows from others."""
    return Step(definition.value, "step", (), name, _unit(name), title, source, definition, note)


def amount(value: Amount, name: str, title: str, source: str = "given") -> Step:
    """Let a caller pass a plain number where a step is expected."""
    return value if isinstance(value, Step) else given(name, value, title, source)


def _unit(name: str) -> str:
    unit = unit_of_name(name)
    assert unit is not None, f"the name {name!r} does not end in a unit"
    return unit


def _steps_in(expression: Expression) -> list[Step]:
    found: dict[int, Step] = {}
    for operand in (expression,) if isinstance(expression, Step) else expression.operands:
        if isinstance(operand, Step):
            found.setdefault(id(operand), operand)
        else:
            found.update((id(step), step) for step in _steps_in(operand))
    return list(found.values())


def chain(*results: Step) -> list[Step]:
    """List the steps that lead to the results, each after the steps it is derived from."""
    ordered: dict[int, Step] = {}

    def visit(step: Step) -> None:
        if id(step) not in ordered:
            for source in step.inputs:
                visit(source)
            ordered[id(step)] = step

    for result in results:
        visit(result)
    return list(ordered.values())


def plain_number(value: float) -> str:
    """Write a number for a formula: whole where it is whole, else six significant digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def render(
    expression: Expression,
    leaf: Callable[[Step], str],
    call: Callable[[str, list[str]], str] | None = None,
    precedence: int = 0,
) -> str:
    """Write an expression as text.

    Args:
        expression: What to write.
        leaf: Writes a step: its name, its number or its cell.
        call: Writes a function with its written arguments; by default in Python's form.
        precedence: How tightly the surroundings bind; parentheses appear where needed.
    """
    if isinstance(expression, Step):
        return leaf(expression)
    if expression.operator == "number":
        return f"{expression.value:.15g}"
    if expression.operator in FUNCTIONS:
        arguments = [render(operand, leaf, call) for operand in expression.operands]
        return (
            f"{expression.operator}({', '.join(arguments)})"
            if call is None
            else call(expression.operator, arguments)
        )
    own = OPERATORS[expression.operator][0]
    left, right = expression.operands
    text = (
        f"{render(left, leaf, call, own)} {expression.operator} "
        f"{render(right, leaf, call, own + 1)}"
    )
    return f"({text})" if own < precedence else text


def as_json(step: Step, *, with_chain: bool = True) -> dict[str, object]:
    """Turn a step into plain data, with the steps that lead to it."""
    data: dict[str, object] = {
        "value": int(step.value) if step.value == int(step.value) else step.value,
        "unit": step.unit,
        "title": step.title,
        "formula": step.formula,
        "arithmetic": step.arithmetic,
        "inputs": [source.name for source in step.inputs],
        "source": step.source,
    }
    if step.note:
        data["note"] = step.note
    if with_chain:
        data["steps"] = [
            {"name": each.name, **as_json(each, with_chain=False)} for each in chain(step)
        ]
    return data


def by_name(steps: Iterable[Step]) -> dict[str, Step]:
    """Index steps by name; two different steps of one name would make a formula ambiguous.

    Raises:
        ValueError: A name stands for two steps.
    """
    index: dict[str, Step] = {}
    for step in steps:
        if index.setdefault(step.name, step) is not step:
            raise ValueError(f"{step.name} names two different steps")
    return index
