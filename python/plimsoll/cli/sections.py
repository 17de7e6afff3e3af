"""Sections of a result on the output, as wide as the terminal; bold only on one that wants it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from plimsoll.pages.sections import Section, section_lines

WIDTH_MIN = 40


def print_sections(sections: Sequence[Section]) -> None:
    """Show the sections on the output."""
    width = max(shutil.get_terminal_size((120, 24)).columns, WIDTH_MIN)
    weighted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in section_lines(sections, width, weighted=weighted):
        print(line)
