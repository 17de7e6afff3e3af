"""What was found in the files beside the databases: `log-check.json`.

A checksum of databases alone says nothing of the log that a crash would need. After a run that
reads every page back, and in the checksum test, every log generation, checkpoint and flush map of
each instance is read whole as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class LogCheckFigures(Document):
    """The logs, the checkpoint and the flush maps of one instance.

    `unread` says why they could not be looked at.
    """

    instance: str
    logs_count: int
    log_bytes: int
    first_log: str | None
    last_log: str | None
    checkpoints_count: int
    flush_maps_count: int
    flush_map_pages: int
    findings: Sequence[str]
    unread: str | None = None


class LogCheckFile(Document):
    """`log-check.json`."""

    schema_version: Literal[1] = 1
    instances: Sequence[LogCheckFigures]
