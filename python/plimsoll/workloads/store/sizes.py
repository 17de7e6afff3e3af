"""How large a store is: one rule for every size, the same as in
`crates/plimsoll-workload/src/store/scale.rs`.

Sizes are nominal, as in DVD Store: 10 MB are 20,000 customers. What they come to on disk is
estimated here and measured by every run.
"""

from __future__ import annotations

import re

MIB = 1024 * 1024
MB_MAX = 1_000_000
HINT = "write S, M, L, or a whole number of MB or GB up to 1000GB, such as 500MB"
_NAMED = {"S": 10, "M": 1_000, "L": 100_000}
_SIZED = re.compile(r"([0-9]{1,9})\s*(MB|GB)")
#: On pages of 32 KiB: what every nominal megabyte takes, and every product.
_BYTES_PER_MB = 1_700_000
_BYTES_PER_PRODUCT = 330
#: A text of 68 words on average and 20 ratings.
_BYTES_PER_REVIEW = 1_700


def megabytes_of(text: str) -> int | None:
    """The nominal megabytes of a size; None where it is no size.

    >>> megabytes_of("S"), megabytes_of("500 mb"), megabytes_of("2GB"), megabytes_of("XL"), megabytes_of("0MB")
    (10, 500, 2000, None, None)
    """  # noqa: E501
    upper = text.strip().upper()
    if upper in _NAMED:
        return _NAMED[upper]
    found = _SIZED.fullmatch(upper)
    if not found:
        return None
    megabytes = int(found[1]) * (1_000 if found[2] == "GB" else 1)
    return megabytes if 1 <= megabytes <= MB_MAX else None


def rows_of(megabytes: int) -> dict[str, int]:
    """The rows of a new store.

    >>> rows_of(10)
    {'customers': 20000, 'products': 10000, 'orders': 12000}
    """
    customers = 2_000 * megabytes
    return {
        "customers": customers,
        "products": max(10_000, customers // 20),
        "orders": customers * 6 // 10,
    }


def bytes_of(megabytes: int, reviews_per_product: int = 0) -> int:
    """About what a new store takes on disk, with its reviews and their ratings."""
    of_product = _BYTES_PER_PRODUCT + reviews_per_product * _BYTES_PER_REVIEW
    return megabytes * _BYTES_PER_MB + rows_of(megabytes)["products"] * of_product + 8 * MIB


def shown(megabytes: int) -> str:
    """A size as it is written.

    >>> shown(10), shown(2000)
    ('10 MB', '2 GB')
    """
    return f"{megabytes // 1_000} GB" if megabytes % 1_000 == 0 else f"{megabytes} MB"
