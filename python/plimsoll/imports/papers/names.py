"""Names of instances that printing damaged.

A point that is lost, stands apart, or became a comma or a blank.

A row is found by the name it begins with, so that a damaged name would take the row out of its
table, or add its figures to the row above. A report names each instance many times: the names that
are whole somewhere in it decide what a damaged one was. Where no whole name has the same digits,
the name stays as it is printed: nothing is guessed.
"""

from __future__ import annotations

import re

WHOLE_NAME = re.compile(r"Instance ?(\d+\.\d+)(?=\s|$)")
#: A name without its point is not told from a whole one by its shape; a blank or comma in its place
#: is. Two blanks begin a cell.
_APART = re.compile(r"(\s*)Instance ?(\d+)(?: \. ?| ?, ?|\. | )(\d{1,3})(?=\s|$)")
_WITHOUT = re.compile(r"(\s*)Instance ?(\d+)(?=\s|$)")
_BY_POINT = re.compile(r"Instance ?(\d+)(?: \. ?| ?, ?)(\d{1,3})(?=\s|$)")
_BY_PATH = re.compile(r"Instance ?(\d+)(?:\. | )(\d{1,3})\s+Log path:")

Lines = list[tuple[int, str]]


def whole_names(lines: Lines) -> set[str]:
    """The names in a report that printing left whole."""
    return {
        f"Instance{match.group(1)}"
        for _, line in lines
        if (match := WHOLE_NAME.match(line.strip()))
    }


def with_whole_names(lines: Lines, known: set[str]) -> tuple[Lines, int]:
    """Lines with each damaged name as it was, and how many were damaged.

    >>> with_whole_names([(1, "Instance12341  3.500"), (2, "Instance1234 .2  1.000")], {"Instance1234.1", "Instance1234.2"})
    ([(1, 'Instance1234.1  3.500'), (2, 'Instance1234.2  1.000')], 2)
    """  # noqa: E501
    by_digits: dict[str, list[str]] = {}
    for name in sorted(known):
        by_digits.setdefault(re.sub(r"\D", "", name), []).append(name)
    found, mended = [], 0
    for number, line in lines:
        whole = _mended(line, known, by_digits)
        mended += whole != line
        found.append((number, whole))
    return found, mended


def _mended(line: str, known: set[str], by_digits: dict[str, list[str]]) -> str:
    apart = _APART.match(line)
    if apart and (name := f"Instance{apart.group(2)}.{apart.group(3)}") in known:
        return f"{apart.group(1)}{name}{line[apart.end() :]}"
    without = _WITHOUT.match(line)
    meant = by_digits.get(without.group(2), []) if without else []
    if without and len(meant) == 1:
        return f"{without.group(1)}{meant[0]}{line[without.end() :]}"
    return line


def names_without_a_whole_one(lines: Lines) -> set[str]:
    """Names of a report none of whose names is whole.

    Told by a point or comma between blanks, or by the path that follows.
    """
    return {
        f"Instance{match.group(1)}.{match.group(2)}"
        for _, line in lines
        for pattern in (_BY_POINT, _BY_PATH)
        if (match := pattern.match(line.strip()))
    }
