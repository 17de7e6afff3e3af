"""The chain of steps: the number, the formula and the spreadsheet formula come from one
arithmetic.
"""

import pytest

from plimsoll.sizing.traced import (
    by_name,
    ceil,
    chain,
    derive,
    floor,
    given,
    if_at_most,
    maximum,
    minimum,
    round_half_up,
)


def test_a_step_shows_its_formula_in_names_and_in_numbers() -> None:
    users = given("user_count", 5000, "Users", "test")
    size = given("mailbox_size_mb", 2356.154921875, "Mailbox", "test")
    total = derive("total_gb", users * (size + 1) / 1024, "Total", "test")
    assert total.formula == "user_count * (mailbox_size_mb + 1) / 1024"
    assert total.arithmetic == "5000 * (2356.15 + 1) / 1024"
    assert total.value == 5000 * (2356.154921875 + 1) / 1024
    assert [step.name for step in total.inputs] == ["user_count", "mailbox_size_mb"]


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (lambda a, b: a - (b - 1), "a_count - (b_count - 1)"),
        (lambda a, b: (a - b) - 1, "a_count - b_count - 1"),
        (lambda a, b: a / (b * 2), "a_count / (b_count * 2)"),
        (lambda a, b: (a + b) * 2, "(a_count + b_count) * 2"),
        (lambda a, b: 10 - a / b, "10 - a_count / b_count"),
        (lambda a, b: 1 + a, "1 + a_count"),
        (lambda a, b: 12 / a, "12 / a_count"),
    ],
)
def test_parentheses_keep_the_meaning(left: object, text: str) -> None:
    """The formula shown must compute to the value shown when read with ordinary precedence."""
    a, b = given("a_count", 7, "a", "test"), given("b_count", 3, "b", "test")
    step = derive("x_count", left(a, b), "x", "test")  # type: ignore[operator]
    assert step.formula == text
    assert eval(step.formula, {"a_count": 7, "b_count": 3}) == pytest.approx(step.value)


def test_rounding_up_ignores_what_binary_fractions_add() -> None:
    """0.1 * 3 / 0.1 is 3.0000000000000004: four databases where three are meant would be wrong."""
    dust = given("x_count", 0.1 * 3 / 0.1, "x", "test")
    assert ceil(dust).value == 3
    assert floor(given("y_count", 2.9999999999999996, "y", "test")).value == 3
    assert ceil(given("z_count", 3.001, "z", "test")).value == 4


def test_functions() -> None:
    two, five = given("a_count", 2, "a", "t"), given("b_count", 5, "b", "t")
    assert (maximum(two, five, 3).value, minimum(two, five).value) == (5, 2)
    assert [round_half_up(given("x_count", x, "x", "t")).value for x in (0.5, 1.5, 2.4)] == [
        1,
        2,
        2,
    ]
    assert [if_at_most(x, 75, 1, 2).value for x in (75, 75.1)] == [1, 2]


def test_a_chain_lists_sources_before_what_uses_them_and_each_once() -> None:
    a = given("a_count", 2, "a", "t")
    b = derive("b_count", a * a, "b", "t")
    c = derive("c_count", b + a, "c", "t")
    assert [step.name for step in chain(c, b)] == ["a_count", "b_count", "c_count"]


def test_one_name_never_stands_for_two_steps() -> None:
    """A formula in names, and a cell of the workbook, would otherwise be ambiguous."""
    with pytest.raises(ValueError, match="two different steps"):
        by_name([given("a_count", 1, "a", "t"), given("a_count", 1, "a", "t")])


def test_a_step_without_a_unit_in_its_name_is_a_bug() -> None:
    """DAT-03: a figure that does not say its unit cannot be made, so none can reach a report."""
    with pytest.raises(AssertionError, match="does not end in a unit"):
        given("mailbox", 1, "a", "t")
