"""Processor time and memory of the servers of a run, and of the run itself.

`server-usage.json` holds what was sampled while the run went on; the summary what became of it in
the measured time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class WatchedServer(Document):
    """A server whose processes are watched: by its port on this machine, or by the file that names
    its first process. The run itself has neither.
    """

    name: str
    port: int | None = None
    pid_file: str | None = None


class ServerSeries(Document):
    """The samples of one server; all lists have one value for each sample.

    Attributes:
        name: of the server.
        end_s: when the sample ended, in seconds on the clock of the run.
        seconds: how long it lasted.
        busy_s: processor time that all its processes used, in seconds.
        resident_bytes: memory that they occupied at its end; shared memory counts once for each.
        processes: how many there were.
        problem: why it could not be watched; null if it could.
    """

    name: str
    end_s: Sequence[float]
    seconds: Sequence[float]
    busy_s: Sequence[float]
    resident_bytes: Sequence[int]
    processes: Sequence[int]
    problem: str | None


class ServerUsageFile(Document):
    """`server-usage.json`."""

    schema_version: Literal[1] = 1
    processors: int
    memory_bytes: int
    servers: Sequence[ServerSeries]


class ServerUsage(Document):
    """What one server used while it was measured.

    Attributes:
        name: of the server, or `plimsoll` for the run itself.
        busy_mean: processors that it kept busy, mean.
        busy_max: the same in its busiest sample.
        share_percent: of all processors of the machine, mean.
        resident_bytes_mean: memory, mean.
        resident_bytes_max: memory, most.
        processes_max: processes at once.
        gone_s: how long it had no process.
        problem: why it could not be watched.
        machine_memory_bytes: memory of the machine.
    """

    name: str
    busy_mean: float | None
    busy_max: float | None
    share_percent: float | None
    resident_bytes_mean: float | None
    resident_bytes_max: int | None
    processes_max: int
    gone_s: float
    problem: str | None
    machine_memory_bytes: int = 0
