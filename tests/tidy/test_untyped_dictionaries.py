"""What crosses a file or the door has a type.

`inputs`, which reads what people write, and `files` are free. Elsewhere a table that was checked
against its fields is `inputs.schema.Given`, and the content of a file that may be of any version,
or of another tool, is `files.folder.Content`. `make structure` counts both.
"""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "plimsoll"
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")
FREE = {"inputs", "files"}


def counted() -> dict[str, int]:
    """`dict[str, Any]` and `Mapping[str, Any]` by room, development programs among them."""
    found: Counter[str] = Counter()
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]:
        room = path.relative_to(PACKAGE).parts[0].partition(".")[0]
        found[room] += len(UNTYPED.findall(path.read_text(encoding="utf-8")))
    for path in (ROOT / "tools").rglob("*.py"):
        if path.name != "structure.py":  # names them to count them
            found["tools"] += len(UNTYPED.findall(path.read_text(encoding="utf-8")))
    return {room: count for room, count in sorted(found.items()) if count and room not in FREE}


def test_no_dictionary_is_untyped():
    """A type checker sees nothing in them, and a wrong key is found by whoever runs into it."""
    assert counted() == {}
