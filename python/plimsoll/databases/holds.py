"""Durable holds on the log of an instance: whose log is deleted or left behind with its files.

A client of the engine asks that log is kept until it releases its hold, across restarts
(`docs/file-format.md`, Holds). The hold is on the log of that folder. It is not copied with it:
nobody would release the copy's. Where the folder is deleted, the user is asked first.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.files.sanitize import plain

SUFFIX = ".holds"
BLOCK_BYTES = 4096
MAGIC = b"HOLD"
COUNT_AT = 36
HOLDS_AT = 40
UNREADABLE = "(holds that cannot be read)"


def is_holds(name: str) -> bool:
    """Whether a file of an instance is that of its holds."""
    return name.endswith(SUFFIX)


def holders(logs: Path) -> list[str]:
    """Names of the clients that hold log in a folder, fit for a terminal.

    `UNREADABLE` for a file that says nothing sensible.

    Raises:
        OSError: a file cannot be read.
    """
    found: list[str] = []
    for path in sorted(logs.glob(f"*{SUFFIX}")) if logs.is_dir() else ():
        with path.open("rb") as file:
            blocks = file.read(2 * BLOCK_BYTES)
        if not any(blocks):
            continue
        names = _names(blocks[:BLOCK_BYTES])
        if names is None:
            names = _names(blocks[BLOCK_BYTES:])
        found += [UNREADABLE] if names is None else names
    return found


def _names(block: bytes) -> list[str] | None:
    """The names in a block; None where it cannot be one.

    Its checksum is the engine's to look at: here a wrong name does no harm.
    """
    if len(block) != BLOCK_BYTES or block[4:8] != MAGIC:
        return None
    names, at = [], HOLDS_AT
    for _ in range(int.from_bytes(block[COUNT_AT : COUNT_AT + 4], "little")):
        size = int.from_bytes(block[at + 4 : at + 6], "little")
        name = block[at + 6 : at + 6 + size]
        if at + 6 > BLOCK_BYTES or len(name) != size:
            return None
        names.append(plain(name.decode(errors="replace")))
        at += 6 + size
    return names
