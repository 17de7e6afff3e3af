"""JSON that a stranger may have written: run folders, markers and logs come by mail.

What is read is printed sooner or later. So characters that steer a terminal, and halves of
characters that cannot be printed at all, are replaced when it is read, and nesting without end is a
mistake of the file like any other.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

#: Said of names of files that may hold any bytes but not these.
NO_TEXT = "is not valid UTF-8, or contains a NUL byte"
REPLACEMENT = "\\ufffd"
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ESCAPES = re.compile(
    r"(?P<kept>\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[bfr]|\\u00(?:0[0-8b-fB-F]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|[\x7f-\x9f]"
)


def plain(text: str) -> str:
    r"""Text that does not steer a terminal.

    >>> plain("a\x1b[2J\tb\n") == "a\ufffd[2J\tb\n"
    True
    """
    return _STEERING.sub("\ufffd", text)


def printable(path: Path) -> str:
    """A path as it can be printed; bytes and halves of characters that are no text are escaped."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def unusable_name(text: str | None) -> str | None:
    """A path that neither stands in a text file nor goes to the system, as it can be printed.

    None for one that does.
    """
    if text is None:
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return printable(Path(text))
    return text.replace("\0", "\\0") if "\0" in text else None


def parse_json(text: str) -> Any:
    r"""A value of JSON whose texts can be printed; only tabs and ends of lines steer.

    Raises:
        ValueError: it is none.

    >>> parse_json('"a\\\\b \\u001b[2J\\n"') == "a\\b \ufffd[2J\n"
    True
    """
    try:
        return json.loads(_ESCAPES.sub(lambda found: found["kept"] or REPLACEMENT, text))
    except RecursionError as error:
        raise ValueError("is nested too deeply to be read") from error
