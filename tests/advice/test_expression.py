"""The language of conditions.

What it computes, what it refuses, and that nothing in it can run code.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.inputs.expression import (
    EXPRESSION_CHARACTERS_MAX,
    ExpressionError,
    Fact,
    UnknownFactError,
    evaluate,
    names_in,
    parse_expression,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4 / 8", 6.5),
        ("-size_gb % 7", -959 % 7),
        ("size_gb <= 2048 and copies in [2, 3]", True),
        ("100 < size_gb < 200 or not dag", False),
        ("'storage' in networks and 'client' not in networks", True),
        ("count(networks) == 1", True),
        ("max(copies, 1) + min(1, 2) + abs(-1) + ceil(1.2) + floor(1.8)", 7),
        ("sum([1, 2, copies])", 5),
        ("overlap(['a', 'b'], ['b', 'c'])", ["b"]),
        ("host.nics >= 2 and true and not false", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    """Arithmetic, comparison, logic, membership and the named functions."""
    facts: dict[str, Fact] = {
        "size_gb": 959,
        "copies": 2,
        "dag": True,
        "networks": ["storage"],
        "host.nics": 4,
    }
    assert evaluate(parse_expression(text), facts) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "(1).__class__",
        "[x for x in networks]",
        "lambda: 1",
        "2 ** 99999",
        "networks[0]",
        "f'{size_gb}'",
        "size_gb if dag else 1",
        "count(*networks)",
        "max(key=1)",
        "(x := 1)",
        "{1: 2}",
        "1; 2",
        "a is b",
        "1 < a is b",
        "",
        "a b",
        "b'x'",
        "None",
        "1j",
        "(" * 300,
        "1" * (EXPRESSION_CHARACTERS_MAX + 1),
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    """A rules file from a stranger must not be able to do anything but compare facts."""
    with pytest.raises(ExpressionError):
        parse_expression(text)


@pytest.mark.parametrize(
    "text", ["'a' * 3", "1 / 0", "'a' < 1", "1 in 2", "max([])", "ceil('a')", "-dag", "true + 1"]
)
def test_values_that_do_not_fit_are_errors_of_the_language(text: str) -> None:
    """A wrong type in a user's file must come back as a reason, not as a traceback."""
    with pytest.raises(ExpressionError):
        evaluate(parse_expression(text), {"dag": True})


def test_an_unknown_name_matters_only_where_it_decides() -> None:
    """What is not stated must not hide what is.

    One false part settles an `and`, one true part an `or`.
    """
    assert evaluate(parse_expression("known and unknown"), {"known": False}) is False
    assert evaluate(parse_expression("unknown or known"), {"known": True}) is True
    with pytest.raises(UnknownFactError, match=r"`unknown\.part`"):
        evaluate(parse_expression("known and unknown.part"), {"known": True})


def test_the_longest_expression_is_accepted() -> None:
    """The limit itself is inside it."""
    assert evaluate(parse_expression("1" + " " * (EXPRESSION_CHARACTERS_MAX - 2) + " "), {}) == 1


def test_names_are_found_without_the_functions() -> None:
    """The reason for a rule not evaluated lists facts, and `count` is none."""
    assert names_in(parse_expression("count(a.b) > c and c < 3 or x in [a.b]")) == ["a.b", "c", "x"]


@given(st.text(max_size=80))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    """No input may end in any other exception."""
    try:
        evaluate(parse_expression(text), {"a": 1, "b": "x", "c": [1]})
    except ExpressionError:
        return


_numbers = st.integers(-99, 99).map(str)
_arithmetic = st.recursive(
    _numbers,
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
        lambda parts: f"({' '.join(parts)})"
    ),
    max_leaves=8,
)


@given(_arithmetic, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _arithmetic)
def test_arithmetic_agrees_with_python(left: str, comparison: str, right: str) -> None:
    """The walker must give what the same text means elsewhere."""
    text = f"{left} {comparison} {right}"
    if len(text) <= EXPRESSION_CHARACTERS_MAX:
        assert evaluate(parse_expression(text), {}) == eval(
            text
        )  # the test's own text: numbers and operators only
