"""Student's t distribution, as far as a confidence interval needs it.

The cumulative distribution is the incomplete beta function, by its continued fraction (Lentz's
evaluation, as numerical textbooks have it); quantiles are found by bisection. Degrees of freedom
need not be whole, because Welch's are not.
"""

from __future__ import annotations

import math

_TINY = 1e-300


def quantile(share: float, degrees: float) -> float:
    """The value below which a share of the distribution lies, for shares of one half and above.

    >>> round(quantile(0.975, 10), 3), round(quantile(0.975, 1), 2), round(quantile(0.975, 1e6), 3)
    (2.228, 12.71, 1.96)
    """
    low, high = 0.0, 1.0
    while _cumulative(high, degrees) < share:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _cumulative(middle, degrees) < share else (low, middle)
    return high


def _cumulative(value: float, degrees: float) -> float:
    """The share of the distribution below a value that is not negative."""
    return 1 - _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + value * value)) / 2


def _incomplete_beta(first: float, second: float, at: float) -> float:
    if at <= 0 or at >= 1:
        return 0.0 if at <= 0 else 1.0
    logarithm = (
        math.lgamma(first + second)
        - math.lgamma(first)
        - math.lgamma(second)
        + first * math.log(at)
        + second * math.log1p(-at)
    )
    if at < (first + 1) / (first + second + 2):
        return math.exp(logarithm) * _fraction(first, second, at) / first
    return 1 - math.exp(logarithm) * _fraction(second, first, 1 - at) / second


def _fraction(first: float, second: float, at: float) -> float:
    numerator, denominator = 1.0, _kept_from_zero(1 - (first + second) * at / (first + 1))
    denominator = 1 / denominator
    result = denominator
    for step in range(1, 500):
        before = result
        for term in (
            step * (second - step) * at / ((first + 2 * step - 1) * (first + 2 * step)),
            -(first + step)
            * (first + second + step)
            * at
            / ((first + 2 * step) * (first + 2 * step + 1)),
        ):
            denominator = 1 / _kept_from_zero(1 + term * denominator)
            numerator = _kept_from_zero(1 + term / numerator)
            result *= denominator * numerator
        if abs(result / before - 1) < 1e-14:
            break
    return result


def _kept_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
