"""The streams of the light workload, with the constants that hold for every array.

The thread law: a Jetstress thread is away from its reads for a processor time and a multiple of the
read latency. The multiple is the mean of what the four published EMC runs say by themselves
(threads / reads per second = cycle; (cycle - processor) / latency - 1 = 1.25, 1.27, 1.34, 1.41); no
simulation is in it. The processor time is the published processor share over the read rate.
Maintenance reads 256 KiB, then waits one tick of the operating system (15.6 ms) in the 2010
edition, and a quarter of a second (1 MB/s) in the 2013 edition.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.arrays.description import GB, KIB
from plimsoll.units import NS_PER_MS

#: A stream of requests as the door takes it.
Stream = dict[str, object]

PROCESSOR_MS = 0.6
LATENCY_FACTOR = 1.32
#: One percent of the cache of a database, in pages, that are dirty: what leaves in one burst of the
#: 2013 edition.
BURST_PAGES = 49
#: The 2010 edition writes at intervals, so that a faster test writes larger bursts. As long as 49
#: pages take at the rate of the published 3-thread run: the same constant, differently used. Page
#: writes get slower with the rate in two published pairs of runs (without maintenance, and with 6
#: threads), which bursts of one size do not explain.
BURST_MS = 784.0
PAGE_BYTES = 32 * KIB
LOG_BYTES = 1024**3
MAINTENANCE_BYTES = 256 * KIB
TICK_MS = 15.6


@dataclass(frozen=True)
class Mix:
    """What a database does for each page read; from the published rates and sizes of a run.

    Attributes:
        read_bytes: mean size of a read.
        writes_per_read: page writes for each read.
        write_bytes: mean size of a page write.
        logs_per_read: log writes for each read.
        log_bytes: mean size of a log write.
        write_depth: page writes on their way at once: 64 in the 2010 edition, 16 in that of 2013.
        burst_ms: interval of the bursts in which pages are written; 0 for bursts of `BURST_PAGES`,
            as in the 2013 edition.
    """

    read_bytes: float
    writes_per_read: float
    write_bytes: float
    logs_per_read: float
    log_bytes: float
    write_depth: int = 64
    burst_ms: float = BURST_MS


@dataclass(frozen=True)
class Place:
    """Where a database lies: volume number and start, for its pages and for its log."""

    volume: int
    log_volume: int
    size_gb: float
    start_gb: float = 0.0
    log_start_gb: float = 0.0


def sessions(place: Place, session_count: int, mix: Mix) -> Stream:
    """The sessions of one database."""
    return {
        "sessions": {
            "volume": place.volume,
            "start_bytes": _pages(place.start_gb),
            "database_bytes": _pages(place.size_gb),
            "log_volume": place.log_volume,
            "log_start_bytes": _pages(place.log_start_gb),
            "log_bytes": LOG_BYTES,
            "session_count": session_count,
            "page_bytes": PAGE_BYTES,
            "read_bytes_mean": float(mix.read_bytes),
            "processor_ns": int(PROCESSOR_MS * NS_PER_MS),
            "latency_factor": LATENCY_FACTOR,
            "log_latency_factor": 0.0,
            "writes_per_read": mix.writes_per_read,
            "write_bytes_mean": float(mix.write_bytes),
            "flush": {"every_ns": int(mix.burst_ms * NS_PER_MS)}
            if mix.burst_ms
            else {"pages": BURST_PAGES},
            "write_depth": mix.write_depth,
            "log_writes_per_read": mix.logs_per_read,
            "log_write_bytes_mean": float(mix.log_bytes),
        }
    }


def scan(
    name: str,
    place: Place,
    request_bytes: int,
    depth: int,
    think_ms: float,
    is_serial: bool = False,
) -> Stream:
    """A sequential reader of a database: maintenance, checksum or backup."""
    stream = _closed(name, place, depth, think_ms)
    stream.update(
        pattern="sequential", request_bytes_mean=float(request_bytes), page_bytes=request_bytes
    )
    stream["is_serial"] = is_serial
    return {"closed": stream}


def maintenance(place: Place, think_ms: float = TICK_MS) -> Stream:
    """Background maintenance of one database."""
    return scan("maintenance", place, MAINTENANCE_BYTES, 1, think_ms)


def redo(place: Place, batch: int, think_ms: float, request_bytes: float) -> Stream:
    """Recovery of one database: a batch of page reads, the next when all are there."""
    stream = _closed("redo", place, batch, think_ms)
    stream.update(
        pattern="random", request_bytes_mean=request_bytes, page_bytes=PAGE_BYTES, is_batch=True
    )
    return {"closed": stream}


def replication(place: Place, per_second: float, request_bytes: int) -> Stream:
    """The log read back for a copy, right behind its writer."""
    return {
        "open": {
            "class": "log_read",
            "volume": place.log_volume,
            "start_bytes": _pages(place.log_start_gb),
            "span_bytes": LOG_BYTES,
            "pattern": "behind",
            "request_bytes": request_bytes // 512 * 512,
            "page_bytes": 512,
            "per_second": per_second,
            "write_share": 0.0,
        }
    }


def _closed(name: str, place: Place, depth: int, think_ms: float) -> Stream:
    return {
        "class": name,
        "volume": place.volume,
        "start_bytes": _pages(place.start_gb),
        "span_bytes": _pages(place.size_gb),
        "depth": depth,
        "think_ns": int(think_ms * NS_PER_MS),
        "is_serial": False,
        "is_batch": False,
        "write_share": 0.0,
    }


def _pages(size_gb: float) -> int:
    """A size in whole MiB, so that every request size divides it."""
    return int(size_gb * GB) // 1024**2 * 1024**2
