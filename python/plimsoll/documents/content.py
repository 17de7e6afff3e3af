"""How compressible and repetitive what a run wrote is: `content.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class SampledFile(Document):
    """What a sample of one file showed, or why it could not be read."""

    path: str
    asked_compressible_percent: float
    reason: str | None = None
    sampled_bytes: int | None = None
    file_bytes: int | None = None
    compressible_percent: float | None = None
    zero_percent: float | None = None


class Content(Document):
    """`content.json`: how compressible and repetitive the written pages are."""

    schema_version: Literal[1]
    algorithm: str
    duplicate_block_bytes: int
    databases: Sequence[SampledFile]
    asked_duplicate_percent: float = 0
    duplicate_percent: float | None
