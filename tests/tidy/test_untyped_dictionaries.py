"""What crosses a file or the door has a type: the dictionaries without one may only become fewer.

Whoever makes one of the numbers below smaller writes the smaller one here, so that it does not grow
again. `inputs`, which reads what people write, and `files` are free.
"""

import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "plimsoll"
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")
FREE = {"inputs", "files"}
#: Untyped dictionaries by room.
LEFT: dict[str, int] = {
    "advice": 33,
    "arrays": 29,
    "cli": 11,
    "compare": 14,
    "databases": 5,
    "documents": 6,
    "live": 2,
    "multihost": 7,
    "pages": 2,
    "pipeline": 7,
    "plan": 3,
    "report": 8,
    "results": 2,
    "settings": 1,
    "sizing": 26,
    "solution": 11,
}


def counted() -> dict[str, int]:
    """`dict[str, Any]` and `Mapping[str, Any]` by room."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        found[room] += len(UNTYPED.findall(path.read_text(encoding="utf-8")))
    return {room: count for room, count in sorted(found.items()) if count and room not in FREE}


def test_untyped_dictionaries_only_become_fewer():
    """A type checker sees nothing in them, and a wrong key is found by whoever runs into it."""
    grown = {
        room: (count, LEFT.get(room, 0))
        for room, count in counted().items()
        if count > LEFT.get(room, 0)
    }
    assert grown == {}, "room: (now, at most)"
