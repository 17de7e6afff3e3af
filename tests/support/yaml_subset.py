"""A strict reader of the YAML that the manifests here are written in.

Mappings and lists by indentation, scalars, lists in brackets.

Anything else is an error, so a manifest cannot say something that its test does not see.
"""

from __future__ import annotations

import json
import re
from typing import Any

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9]*):(?: (.*))?")


def read_yaml(text: str) -> Any:
    """The content of one document."""
    lines = [
        (len(line) - len(line.lstrip(" ")), line.strip())
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    value, rest = _block(lines, 0)
    if rest:
        raise ValueError(f"not understood: {rest[0]}")
    return value


def _block(lines: list[tuple[int, str]], depth: int) -> tuple[Any, list[tuple[int, str]]]:
    if lines[0][1].startswith("- "):
        return _list(lines, depth)
    found: dict[str, Any] = {}
    while lines and lines[0][0] == depth and not lines[0][1].startswith("- "):
        key = _KEY.fullmatch(lines[0][1])
        if key is None or key[1] in found:
            raise ValueError(f"not understood: {lines[0]}")
        lines = lines[1:]
        if key[2] is not None:
            found[key[1]] = _scalar(key[2])
        elif lines and lines[0][0] > depth:
            found[key[1]], lines = _block(lines, lines[0][0])
        else:
            raise ValueError(f"{key[1]} has no value")
    return found, lines


def _list(lines: list[tuple[int, str]], depth: int) -> tuple[list[Any], list[tuple[int, str]]]:
    found = []
    while lines and lines[0][0] == depth and lines[0][1].startswith("- "):
        # What follows the dash begins a block of its own, two further in.
        lines = [(depth + 2, lines[0][1][2:]), *lines[1:]]
        value, lines = _block(lines, depth + 2)
        found.append(value)
    return found, lines


def _scalar(text: str) -> Any:
    if text.startswith(("[", '"')):
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if not re.fullmatch(r"[A-Za-z0-9/][A-Za-z0-9/._:-]*", text):
        raise ValueError(f"not understood: {text}")
    return text
