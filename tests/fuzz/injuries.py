"""Damage to text that people and strangers do.

What is cut, doubled, exchanged, made absurd or made enormous.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

ABSURD = [
    b"1e400",
    b"-1",
    b"nan",
    b"-inf",
    b"9" * 400,
    b"0",
    b"",
    b"\x00",
    b"\\u0000",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"'",
    b'"""',
    b"[",
    b"]" * 9,
    b"[[a]]",
    b"a.b.c.d = 1",
    b"true",
    b"1979-05-27",
    b"{ a = 1 }",
    b"[1, 'a', [2]]",
    b"../../x",
    b"/dev/zero",
    b"__class__",
    b"{0.__class__}",
    b"%s%n",
    b"${x}",
    "٣".encode(),
    b"#",
    b"\n",
    b"x" * 5000,
    b"[" * 2000,
]

OTHERS: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    10**18,
    "",
    "x",
    "../x",
    "\x1b[2J",
    "\ud800",
    "é" * 300,
    [],
    [1],
    {},
    {"a": 1},
]


def damage(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """One to five injuries; pieces come from `others` too."""
    for _ in range(chance.randint(1, 5)):
        size = len(content)
        start = chance.randrange(size + 1)
        end = min(size, start + chance.choice([1, 1, 3, 20, 200]))
        match chance.randrange(9):
            case 0:
                content = content[:start]
            case 1:
                content = content[:start] + content[end:]
            case 2:
                content = content[:end] + content[start:]
            case 3:
                content = content[:start] + chance.choice(ABSURD) + content[end:]
            case 4:
                content = _value_exchanged(content, chance)
            case 5:
                lines = content.split(b"\n")
                lines.insert(
                    chance.randrange(len(lines) + 1),
                    chance.choice(chance.choice(others).split(b"\n")),
                )
                content = b"\n".join(lines)
            case 6:
                content = content[:start] + chance.randbytes(end - start) + content[end:]
            case _:
                content = _value_exchanged(content, chance)
    return content


def _value_exchanged(content: bytes, chance: random.Random) -> bytes:
    """Something absurd, or the value of another key, behind an equals sign.

    So the file still parses more often than not.
    """
    lines = content.split(b"\n")
    keyed = [number for number, line in enumerate(lines) if b"=" in line]
    if not keyed:
        return content
    number = chance.choice(keyed)
    key = lines[number].partition(b"=")[0]
    other = lines[chance.choice(keyed)].partition(b"=")[2]
    lines[number] = key + b"=" + chance.choice([other, b" " + chance.choice(ABSURD)])
    return b"\n".join(lines)


def exchanged(
    text: bytes, chance: random.Random, places: Callable[[Any], list[Any]] = lambda value: [value]
) -> bytes:
    """JSON in which one to three values are something else or gone, anywhere in one of these
    places.
    """
    value = json.loads(text)
    for _ in range(chance.randint(1, 3)):
        _exchange(chance.choice(places(value)), chance)
    return json.dumps(value).encode()


def _exchange(content: Any, chance: random.Random) -> None:
    """Takes something out of a value of JSON, or puts something else there, anywhere in it."""
    while isinstance(content, (dict, list)) and content:
        key = (
            chance.choice(list(content))
            if isinstance(content, dict)
            else chance.randrange(len(content))
        )
        if chance.random() < 0.35:
            if chance.random() < 0.5:
                del content[key]
            else:
                content[key] = chance.choice(OTHERS)
            return
        content = content[key]
