"""A small language of conditions and arithmetic for data files, evaluated without running any code.

Rules and claims are data, so what they compute is text: `host.storage_nics >= 2 and host.mtu_bytes
in [9000, 9014]`. The text is parsed by the standard library into a tree, every node of which must
be on the short list below, and the tree is walked here; nothing is compiled or called but the
functions named in `FUNCTIONS`. Names with dots are looked up in a table of facts. A name the table
does not have raises `UnknownFactError`, which callers turn into "could not be evaluated". Limits:
500 characters; no powers, no indexing, no repetition of texts, so a hostile file cannot use much
memory or time.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.errors import InvalidValueError

Fact = float | int | str | bool | list[Any]

EXPRESSION_CHARACTERS_MAX = 500

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "count": len,
    "max": max,
    "min": min,
    "sum": sum,
    "overlap": lambda first, second: sorted(
        {str(item) for item in first} & {str(item) for item in second}
    ),
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}


class ExpressionError(InvalidValueError):
    """The text is not an expression of this language, or cannot be worked out with the given
    facts.
    """


class UnknownFactError(ExpressionError):
    """A name has no value in the facts.

    Attributes:
        name: the dotted name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"`{name}` is not known")


def parse_expression(text: str) -> ast.expr:
    """Parse an expression and check that it stays inside the language.

    Raises:
        ExpressionError: it does not.
    """
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise ExpressionError(f"is longer than {EXPRESSION_CHARACTERS_MAX} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"is not an expression: {getattr(error, 'msg', error)}") from error
    _check(tree)
    return tree


def names_in(tree: ast.expr) -> list[str]:
    """The dotted names an expression refers to, in order of appearance, each once.

    >>> names_in(parse_expression("host.nics >= 2 and copies > host.nics"))
    ['host.nics', 'copies']
    """
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)):
            found[_dotted(node)] = None
        else:
            children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
            for child in children:
                visit(child)

    visit(tree)
    return list(found)


def evaluate(tree: ast.expr, facts: Mapping[str, Fact]) -> Any:
    """Work out a parsed expression.

    Args:
        tree: what `parse_expression` returned.
        facts: values by dotted name.

    Raises:
        UnknownFactError: the outcome depends on a name that has no value. `a and b` with `a` false
            does not depend on `b`.
        ExpressionError: the values do not fit the operation, or a division by zero.

    >>> evaluate(parse_expression("size_gb <= 2048 and parity in ['odd', 'even']"), {"size_gb": 959, "parity": "odd"})
    True
    """  # noqa: E501
    try:
        return _value(tree, facts)
    except (TypeError, ZeroDivisionError, OverflowError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"cannot be worked out: {error}") from error


def _check(node: ast.AST) -> None:
    """Refuse every construct outside the language."""
    match node:
        case ast.Constant(value=value) if isinstance(value, (bool, int, float, str)):
            return
        case ast.Name() | ast.Attribute():
            _dotted(node)
            return
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            children: list[ast.AST] = list(arguments)
        case ast.Call():
            raise ExpressionError("calls an unknown function; known: " + ", ".join(FUNCTIONS))
        case ast.BoolOp(values=values):
            children = list(values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            children = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            children = [left, right]
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
            type(op) in _COMPARISON for op in ops
        ):
            children = [left, *comparators]
        case ast.List(elts=items):
            children = list(items)
        case _:
            raise ExpressionError(
                f"uses {type(node).__name__.lower()}, which conditions may not use"
            )
    for child in children:
        _check(child)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ExpressionError("a dotted name must consist of names")


def _value(node: ast.expr, facts: Mapping[str, Fact]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute():
            name = _dotted(node)
            if name in ("true", "false"):
                return name == "true"
            if name not in facts:
                raise UnknownFactError(name)
            return facts[name]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_value(argument, facts) for argument in arguments))
        case ast.BoolOp(op=op, values=values):
            return _logic(op, values, facts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, facts)
        case ast.UnaryOp(operand=operand):
            return -_number(_value(operand, facts))
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](
                _number(_value(left, facts)), _number(_value(right, facts))
            )
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison(_value(left, facts), ops, comparators, facts)
        case ast.List(elts=items):
            return [_value(item, facts) for item in items]
    raise AssertionError("parse_expression lets no other node through")


def _logic(op: ast.boolop, values: list[ast.expr], facts: Mapping[str, Fact]) -> bool:
    """`and`/`or` where an unknown name does not matter if another part decides."""
    is_and = isinstance(op, ast.And)
    unknown: UnknownFactError | None = None
    for part in values:
        try:
            if bool(_value(part, facts)) is not is_and:
                return not is_and
        except UnknownFactError as error:
            unknown = unknown or error
    if unknown:
        raise unknown
    return is_and


def _comparison(
    left: Any, ops: list[ast.cmpop], comparators: list[ast.expr], facts: Mapping[str, Fact]
) -> bool:
    for op, comparator in zip(ops, comparators, strict=True):
        right = _value(comparator, facts)
        if not _COMPARISON[type(op)](left, right):
            return False
        left = right
    return True


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"calculates with {value!r}, which is not a number")
    return value
