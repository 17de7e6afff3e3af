"""Sections of a result on the output, as wide as the terminal; bold only on one that wants it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from plimsoll.pages.sections import Section, section_lines

WIDTH_MIN = 40


def terminal_width(otherwise: int) -> int:
    """How many characters a line of the terminal has; so many where there is none."""
    return max(shutil.get_terminal_size((otherwise, 24)).columns, WIDTH_MIN)


def print_sections(sections: Sequence[Section]) -> None:
    """Show the sections on the output."""
    width = terminal_width(120)
    weighted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in section_lines(sections, width, weighted=weighted):
        print(line)
