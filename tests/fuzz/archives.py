"""Archives with damaged members, headers and bytes, given to the command that unpacks them.

Nothing is left, whatever they are.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from functools import cache
from pathlib import Path

from plimsoll.archive.archive import PackError, pack, unpack
from tests.fuzz.injuries import damage
from tests.fuzz.run_folders import GOLDEN

BLOCK_BYTES = 512
#: Type, size and name of a member's header, where damage goes further than in content: offset and
#: length.
FIELDS = {
    "name": (0, 100),
    "size": (124, 12),
    "type": (156, 1),
    "link": (157, 100),
    "prefix": (345, 155),
}
TYPES = b"05xgLKSD123467\x00"
NUMBERS = [
    b"77777777777\x00",
    b"00000000000\x00",
    b"-0000000001\x00",
    b"\xff" * 12,
    b"\x80" + b"\x7f" * 11,
    b"not a number",
]


@cache
def sound() -> bytes:
    """The tar of the golden run, not compressed."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-fuzz-") as home:
        target = Path(home) / "run.tar.gz"
        pack(GOLDEN, "run", target)
        return gzip.decompress(target.read_bytes())


def _header_damaged(tar: bytes, chance: random.Random) -> bytes:
    """One field of one block says something else; the checksum fits, so that it is believed."""
    block = BLOCK_BYTES * chance.choice([0, 0, 2, chance.randrange(len(tar) // BLOCK_BYTES + 1)])
    header = bytearray(tar[block : block + BLOCK_BYTES])
    offset, length = FIELDS[chance.choice(list(FIELDS))]
    odd = {1: chance.choice([bytes([kind]) for kind in TYPES]), 12: chance.choice(NUMBERS)}
    other = odd.get(length) or damage(bytes(header[offset : offset + length]), [b"../x"], chance)
    header[offset : offset + length] = other[:length].ljust(length, b"\x00")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\x00 " % sum(header)
    return tar[:block] + bytes(header) + tar[block + BLOCK_BYTES :]


def survives_archive(seed: int) -> None:
    """An archive is unpacked, or refused in words.

    Where it is refused, nothing is there afterwards.

    Raises:
        AssertionError: something is left.
    """
    chance = random.Random(f"archive {seed}")
    tar = sound()
    for _ in range(chance.randint(1, 3)):
        tar = (
            _header_damaged(tar, chance)
            if chance.random() < 0.7
            else damage(tar, [tar[:4096]], chance)
        )
    packed = gzip.compress(tar, compresslevel=1)
    if chance.random() < 0.2:
        packed = damage(packed, [packed[:4096]], chance)
    with tempfile.TemporaryDirectory(prefix="plimsoll-fuzz-") as folder:
        home = Path(folder)
        (home / "run.tar.gz").write_bytes(packed)
        try:
            unpack(home / "run.tar.gz", home / "run")
        except (PackError, OSError):
            left = [path.name for path in home.iterdir()]
            assert left == ["run.tar.gz"], left
