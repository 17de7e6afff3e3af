"""How compressible and how repetitive the written pages are, measured on a sample of the files
themselves.

A storage that compresses or deduplicates is as fast as its data lets it be, so what a plan asks for
(`compressible_percent`) must be measured where it counts: on the pages as they lie in the files,
headers and empty space included. From each database a stated number of pieces is read, spread
evenly over the file; each piece is cut into blocks.

- *Compressible*: what zlib at level 1 (DEFLATE, RFC 1950 and 1951) takes off each block of 32 KiB
  by itself. A storage with another algorithm or another block takes off something near, seldom more
  by much.
- *Duplicate*: blocks of 4 KiB, at multiples of 4 KiB, that occur more than once in the sample of
  all files together, but for one of each; blocks of zeros counted by themselves, because every
  storage with reduction keeps none of them. A sample sees fewer duplicates than the whole: the
  figure is a lower bound.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Literal

from plimsoll.documents.content import Content, SampledFile
from plimsoll.documents.run_spec import DatabaseSpec, FilesInstance, RunSpec

SCHEMA_VERSION: Literal[1] = 1
PIECE_BYTES = 256 * 1024
PIECES_MAX = 128
#: Of all databases together: looking takes seconds, however many there are.
PIECES_OF_ALL_MAX = 512
COMPRESSED_BLOCK_BYTES = 32 * 1024
DUPLICATE_BLOCK_BYTES = 4 * 1024
LEVEL = 1
ALGORITHM = f"zlib level {LEVEL}, blocks of {COMPRESSED_BLOCK_BYTES // 1024} KiB"
_ZEROS = bytes(DUPLICATE_BLOCK_BYTES)


def measure_content(run: RunSpec, asked_duplicate_percent: float = 0) -> Content:
    """Look at a sample of every database of a run.

    A file that cannot be read is said, not guessed.
    """
    seen: dict[bytes, int] = {}
    databases = []
    count = sum(len(instance.databases) for instance in run.our_instances)
    pieces_max = max(2, min(PIECES_MAX, PIECES_OF_ALL_MAX // max(count, 1)))
    for instance in run.our_instances:
        for database in instance.databases:
            path = Path(instance.directory) / database.file_name
            # Repeated bytes are all that a compressor wants; other content of files is random.
            repeats = isinstance(instance, FilesInstance) and instance.data_pattern == 0
            asked = (
                database.compressible_percent
                if isinstance(database, DatabaseSpec)
                else 100 * repeats
            )
            file = SampledFile(path=str(path), asked_compressible_percent=asked)
            try:
                databases.append(_sampled(file, path, seen, pieces_max))
            except OSError as error:
                databases.append(file.replace(reason=str(error.strerror)))
    total = sum(seen.values())
    return Content(
        schema_version=SCHEMA_VERSION,
        algorithm=ALGORITHM,
        duplicate_block_bytes=DUPLICATE_BLOCK_BYTES,
        databases=databases,
        asked_duplicate_percent=asked_duplicate_percent,
        duplicate_percent=100 * (total - len(seen)) / total if total else None,
    )


def _sampled(
    sampled: SampledFile, path: Path, seen: dict[bytes, int], pieces_max: int
) -> SampledFile:
    """One file: pieces spread evenly, each compressed block by block, each block of the smaller
    kind remembered.
    """
    raw = compressed = zeros = blocks = 0
    with path.open("rb") as file:
        size = file.seek(0, 2)
        for start in piece_starts(size, pieces_max):
            file.seek(start)
            piece = file.read(PIECE_BYTES)
            for place in range(0, len(piece), COMPRESSED_BLOCK_BYTES):
                block = piece[place : place + COMPRESSED_BLOCK_BYTES]
                raw += len(block)
                # A block that grows is kept as it is by whoever compresses.
                compressed += min(len(zlib.compress(block, LEVEL)), len(block))
            for place in range(0, len(piece) - DUPLICATE_BLOCK_BYTES + 1, DUPLICATE_BLOCK_BYTES):
                block = piece[place : place + DUPLICATE_BLOCK_BYTES]
                blocks += 1
                if block == _ZEROS:
                    zeros += 1
                    continue
                name = hashlib.blake2b(block, digest_size=16).digest()
                seen[name] = seen.get(name, 0) + 1
    return sampled.replace(
        sampled_bytes=raw,
        file_bytes=size,
        compressible_percent=100 * (1 - compressed / raw) if raw else None,
        zero_percent=100 * zeros / blocks if blocks else None,
    )


def piece_starts(size: int, pieces_max: int = PIECES_MAX) -> list[int]:
    """Where the pieces of a file of this size begin.

    The whole file when it is small, else spread evenly.

    >>> piece_starts(3 * PIECE_BYTES) == [0, PIECE_BYTES, 2 * PIECE_BYTES], len(piece_starts(1 << 40))
    (True, 128)
    """  # noqa: E501
    count = -(-size // PIECE_BYTES)
    if count <= pieces_max:
        return [number * PIECE_BYTES for number in range(count)]
    return [number * (count - 1) // (pieces_max - 1) * PIECE_BYTES for number in range(pieces_max)]
