"""Where time went: the latency of I/O and of transactions, split over engine, log flush,
submission, kernel queue, device.

The parts come from our own stamps, the block layer's counters and how late the load generator
looked for completions:

- engine: what is left of a transaction without its waits; of an I/O, the time its completion lay
  ready and was not seen.
- log flush: what transactions waited for their commits.
- submission: from asking for an I/O to handing it to the kernel.
- device: what the block layer counted, from making a request to its completion; waits in its
  scheduler are part of it.
- kernel queue: what is left between handing over and that: limits of control groups, exhausted
  queues.

Limits: the block layer keeps sums for a whole disk and a whole sample, so a split is a mean over
everybody who used the disk. How late completions were seen is an estimate from the gaps between two
looks; what the block layer counted itself bounds it where nobody else used the disk. Without block
counters (memory, network file systems, simulated time) kernel queue and device are one, and
`kernel_queue` is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

from plimsoll.documents.document import ABSENT
from plimsoll.documents.latency_split import (
    DeviceUse,
    Evidence,
    LogSplitMs,
    Split,
    SplitMs,
    StallSplit,
    TimeSplit,
    TransactionSplit,
)
from plimsoll.documents.outcome import InstanceDevices, IoStamps, Stall
from plimsoll.files.parquet import Query
from plimsoll.plan.limits import MACHINE_LEVELS
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

STALLS_MAX = 10
LAYERS = ("engine", "log_flush", "submission", "kernel_queue", "device")
#: Our I/O on a disk: by direction, in the rows of databases and in that of the log.
DATABASE_METRICS = {"read": ("database_read", "maintenance"), "write": ("database_write",)}
LOG_METRICS = {"read": ("log_read", "log_replication"), "write": ("log_write", "log_format")}
#: What the samples say how long it took to hand over.
HANDED_OVER = ("database_read", "log_write")
WRITES = ("database_write", "log_write", "log_format")
#: Where others use a disk more than this, what it counted is not ours.
OTHERS_SHARE_MAX = 0.1
#: Rows of the block counters.
LOG_ROW, DATABASE_ROW = 0, 1


@dataclass(frozen=True)
class Sums:
    """One metric of one place over one window."""

    count: int = 0
    total_ns: float = 0.0
    size: int = 0
    longest_ns: int = 0
    level: float = 0.0
    value: float = 0.0


class Window:
    """All samples between two moments, summed by place and metric."""

    def __init__(self, query: Query, start_ns: int, end_ns: int) -> None:
        rows = query(
            "SELECT instance, database, metric, sum(count)::BIGINT AS count, "
            "sum(latency_ns_sum)::DOUBLE AS total_ns,"
            " sum(bytes)::BIGINT AS size, max(latency_ns_max)::BIGINT AS longest_ns, sum(value) AS "
            "value,"
            " sum(value * interval_ns) / sum(interval_ns) AS level"
            " FROM measured WHERE end_ns > $start AND end_ns <= $end GROUP BY instance, database, "
            "metric",
            {"start": start_ns, "end": end_ns},
        )
        self._sums = {
            (row.pop("instance"), int(row.pop("database")), row.pop("metric")): Sums(**row)
            for row in rows
        }
        self.start_ns, self.end_ns = start_ns, end_ns
        self._gaps = query(
            # Half of each distribution lies below its median, a hundredth above its 99th
            # percentile: enough of its shape.
            "SELECT count::DOUBLE AS count, latency_ns_p50::DOUBLE AS p50, latency_ns_p99::DOUBLE "
            "AS p99,"
            " latency_ns_max::DOUBLE AS longest FROM measured"
            " WHERE metric = 'reap_gap' AND end_ns > $start AND end_ns <= $end",
            {"start": start_ns, "end": end_ns},
        )

    def find(self, instance: str, database: int, metric: str) -> Sums | None:
        """The sums of one row, None when it was never sampled."""
        return self._sums.get((instance, database, metric))

    def get(self, instance: str, database: int, metric: str) -> Sums:
        """The same, empty when it was never sampled."""
        return self._sums.get((instance, database, metric), Sums())

    def rows(self) -> list[tuple[tuple[str, int, str], Sums]]:
        """Every row, by place and metric."""
        return sorted(self._sums.items(), key=lambda item: item[0])

    def all(self, metrics: tuple[str, ...], instance: str | None = None) -> list[Sums]:
        """The sums of some metrics, of one instance or of all."""
        return [
            sums
            for (place, _, metric), sums in self.rows()
            if metric in metrics and instance in (None, place)
        ]

    def machine(self, metric: str) -> float | None:
        """The mean of a level of the machine or the load generator.

        Of several threads the busiest.
        """
        found = [
            sums for (_, database, name), sums in self.rows() if name == metric and database == 0
        ]
        return found[0].level if found else None

    def late_ms(self, latency_ms: float) -> float:
        """How long a completion of I/O of this latency lay ready on average before it was looked
        at.

        What completes at a random moment of a gap waits for half of it. In a gap longer than that
        no more can complete than was in flight when it began, so by Little's law it adds no more
        than its share of the time to the latency.
        """
        latency_ns = latency_ms * NS_PER_MS

        def late(gap_ns: float) -> float:
            return gap_ns * min(gap_ns / 2, latency_ns)

        length_ns = max(self.end_ns - self.start_ns, 1)
        total = sum(
            0.98 * gap["count"] * late(gap["p50"])
            + 0.02 * gap["count"] * late(gap["p99"])
            + late(gap["longest"])
            for gap in self._gaps
        )
        return float(total) / length_ns / NS_PER_MS


class Splitter:
    """Splits latencies of one run, given its samples and the devices under its instances."""

    def __init__(
        self,
        query: Query,
        devices: Sequence[InstanceDevices],
        waiting_for_writes: frozenset[str],
        servers: frozenset[str] = frozenset(),
    ) -> None:
        """Args: the samples, the devices of the outcome, the instances whose transactions wait for
        page writes, the instances whose I/O a server of their own does.
        """
        self._query = query
        #: Everything sampled between two moments. In a short run the worst moments are all of it.
        self.window = lru_cache(maxsize=8)(partial(Window, query))
        self._devices = {device.instance: device for device in devices}
        self._waiting_for_writes = waiting_for_writes
        self._servers = servers

    def sample_window(self, start_ns: int, end_ns: int) -> Window:
        """The samples that lie in a stretch of time, those at its ends with all of their length."""
        edges = self._query(
            "SELECT min(end_ns - interval_ns)::BIGINT AS first, max(end_ns)::BIGINT AS last FROM "
            "measured"
            " WHERE end_ns > $start AND end_ns - interval_ns < $end",
            {"start": start_ns, "end": end_ns},
        )[0]
        return self.window(edges["first"] or start_ns, edges["last"] or end_ns)

    def device_name(self, instance: str, row: int) -> str | None:
        """The disk under the databases or the log of an instance."""
        found = self._devices.get(instance)
        if found is None:
            return None
        return found.log if row == LOG_ROW else found.databases

    def _our_rows(self, window: Window, name: str, direction: str) -> list[Sums]:
        """Everything all instances did on a disk in one direction."""
        rows: list[Sums] = []
        for instance, device in self._devices.items():
            if device.databases == name:
                rows += window.all(DATABASE_METRICS[direction], instance)
            if device.log == name:
                rows += window.all(LOG_METRICS[direction], instance)
        return rows

    def device(self, window: Window, instance: str, row: int) -> DeviceUse | None:
        """What the disk under an instance did, and how much of it for others.

        None without block counters.
        """
        name = self.device_name(instance, row)
        reads = window.find(instance, row, "device_reads")
        if name is None or reads is None:
            return None
        value = {
            metric: window.get(instance, row, f"device_{metric}").value
            for metric in (
                "read_time",
                "writes",
                "write_time",
                "flushes",
                "flush_time",
                "read_bytes",
                "write_bytes",
            )
        }
        ours = {
            direction: self._our_rows(window, name, direction) for direction in ("read", "write")
        }
        return DeviceUse(
            name=name,
            busy=window.get(instance, row, "device_busy").level,
            queue_mean=window.get(instance, row, "device_queue").level,
            read_latency_ms_mean=_ratio(value["read_time"], reads.value),
            write_latency_ms_mean=_ratio(value["write_time"], value["writes"]),
            flush_latency_ms_mean=_ratio(value["flush_time"], value["flushes"]),
            others_share=_others_share(reads.value, value, ours),
            servers=self._servers_on(name) or ABSENT,
        )

    def _servers_on(self, name: str) -> list[str]:
        return [
            instance
            for instance, device in self._devices.items()
            if instance in self._servers and name in (device.databases, device.log)
        ]

    def io(self, window: Window, instance: str, database: int, metric: str) -> Split | None:
        """The mean latency of one kind of I/O of one place, split; None when there was none."""
        own = window.get(instance, database, metric)
        if not own.count:
            return None
        row = LOG_ROW if database == 0 else DATABASE_ROW
        device = self.device(window, instance, row)
        latency_ms = own.total_ns / own.count / NS_PER_MS
        handed_over = (
            window.get(instance, database, "handing_over") if metric in HANDED_OVER else Sums()
        )
        submission_ms = handed_over.value / own.count / NS_PER_MS
        late_ms = min(window.late_ms(latency_ms), latency_ms)
        counted = self._device_share(window, device, metric, latency_ms, 0.0)
        if counted is not None and device is not None and device.others_share <= OTHERS_SHARE_MAX:
            # What the block layer counted of our I/O was no wait for the generator.
            late_ms = min(late_ms, max(latency_ms * (1 - counted) - submission_ms, 0.0))
        in_kernel_ms = latency_ms - late_ms
        share = self._device_share(window, device, metric, in_kernel_ms, late_ms)
        split_ms = SplitMs(
            engine=late_ms,
            log_flush=0.0,
            submission=submission_ms,
            kernel_queue=None if share is None else in_kernel_ms * (1 - share),
            device=in_kernel_ms if share is None else in_kernel_ms * share,
        )
        return Split(split_ms=split_ms, **self.evidence(window, device).given())

    def _device_share(
        self,
        window: Window,
        device: DeviceUse | None,
        metric: str,
        in_kernel_ms: float,
        late_ms: float,
    ) -> float | None:
        """The device's share of the time an I/O spends in the kernel."""
        if device is None:
            return None
        if metric in WRITES:
            counted_ms = device.write_latency_ms_mean
            if metric != "database_write" and counted_ms is not None:
                # A durable write is a write and the flush behind it.
                counted_ms += device.flush_latency_ms_mean or 0.0
            ours_ms = in_kernel_ms
        else:
            counted_ms = device.read_latency_ms_mean
            rows = self._our_rows(window, device.name, "read")
            total_ms = _ratio(sum(row.total_ns for row in rows), sum(row.count for row in rows))
            ours_ms = max((total_ms or 0.0) - late_ms, 0.0)
        if counted_ms is None:
            return None
        return min(1.0, counted_ms / ours_ms) if ours_ms > 0 else 1.0

    def transactions(
        self, window: Window, instance: str | None, scope: str
    ) -> TransactionSplit | None:
        """The mean time of a transaction, split, for one instance or for all.

        None when there was none.
        """
        operations = window.all(OPERATIONS, instance)
        count = sum(sums.count for sums in operations)
        if not count:
            return None
        response_ms = sum(sums.total_ns for sums in operations) / count / NS_PER_MS
        pool_ms = (
            sum(sums.total_ns for sums in window.all(("pool_wait",), instance)) / count / NS_PER_MS
        )
        total_ms = max(response_ms - pool_ms, 0.0)
        flush_ms = (
            sum(sums.total_ns for sums in window.all(("log_flush_wait",), instance))
            / count
            / NS_PER_MS
        )
        flush_ms = min(flush_ms, total_ms)
        pages: dict[str, float | None] = dict.fromkeys(LAYERS, 0.0)
        devices: list[DeviceUse] = []
        for place, database, metric, waits in self._page_waits(window, instance):
            split = self.io(window, place, database, metric)
            assert split is not None, "it was just seen"
            devices += [split.device] if split.device else []
            for layer, value in split.split_ms.given().items():
                known = pages[layer]
                pages[layer] = (
                    None if value is None or known is None else known + value * waits / count
                )
        waited_ms = sum(value or 0.0 for value in pages.values())
        # Sessions also wait for reads that others began, and prereads wait for nobody: the parts
        # are scaled to fit.
        scale = min(1.0, (total_ms - flush_ms) / waited_ms) if waited_ms else 0.0
        split_ms = {
            layer: None if value is None else value * scale for layer, value in pages.items()
        }
        split_ms["log_flush"] = flush_ms
        others = sum(value or 0.0 for layer, value in split_ms.items() if layer != "engine")
        split_ms["engine"] = max(total_ms - others, 0.0)
        # Who waits for a free session waits for what the sessions wait for.
        with_pool = response_ms / total_ms if total_ms else 1.0
        split_ms = {
            layer: None if value is None else value * with_pool for layer, value in split_ms.items()
        }
        busiest = max(devices, key=lambda device: device.busy, default=None)
        return TransactionSplit(
            scope=scope,
            split_ms=SplitMs(**split_ms),
            response_ms_mean=response_ms,
            pool_wait_ms_mean=pool_ms,
            **self.evidence(window, busiest).given(),
        )

    def _page_waits(self, window: Window, instance: str | None) -> list[tuple[str, int, str, int]]:
        """What transactions waited for in every database, with how often."""
        return [
            (place, database, metric, sums.count)
            for (place, database, metric), sums in window.rows()
            if sums.count
            and instance in (None, place)
            and (
                metric == "database_read"
                or (metric == "database_write" and place in self._waiting_for_writes)
            )
        ]

    @staticmethod
    def evidence(window: Window, device: DeviceUse | None) -> Evidence:
        """What speaks for one layer or another in the same window."""
        gaps = window.all(("reap_gap",))
        levels = {metric: window.machine(metric) for metric in ("executor_busy", *MACHINE_LEVELS)}
        stopped_ns = max((gap.longest_ns for gap in window.all(("clock_gap",))), default=0)
        return Evidence(
            seconds=(window.end_ns - window.start_ns) / NS_PER_S,
            device=device,
            reap_gap_ms_max=max((gap.longest_ns for gap in gaps), default=0) / NS_PER_MS,
            page_fault_stalls_count=sum(sums.count for sums in window.all(("page_fault_stall",))),
            clock_gap_ms_max=stopped_ns / NS_PER_MS if stopped_ns else ABSENT,
            **{
                metric: value
                for metric, value in levels.items()
                if value is not None and metric != "memory_available"
            },
        )

    def stall(
        self, window: Window, stall: Stall, instance: str, begun_utc: str | None
    ) -> StallSplit:
        """One long transaction, split by its own stamps and by what the samples it lies in say of
        kernel and device.
        """
        flush_ns = stall.finished_ns - stall.commit_begun_ns
        parts, evidence = self._stamped(
            window,
            stall,
            stall.page_io,
            DATABASE_ROW,
            instance,
            (stall.begun_ns, stall.commit_begun_ns),
        )
        log_parts, log_evidence = self._stamped(
            window,
            stall,
            stall.log_io,
            LOG_ROW,
            instance,
            (stall.commit_begun_ns, stall.finished_ns),
        )
        total_ns = stall.finished_ns - stall.begun_ns
        waited_ns = sum(value or 0.0 for value in parts.values())
        split_ns = {
            **parts,
            "log_flush": float(flush_ns),
            "engine": max(total_ns - flush_ns - waited_ns, 0.0),
        }
        return StallSplit(
            instance=instance,
            database=stall.database,
            operation=stall.operation,
            begun_utc=begun_utc,
            length_ms=total_ns / NS_PER_MS,
            split_ms=SplitMs(**{layer: _in_ms(split_ns[layer]) for layer in LAYERS}),
            log_split_ms=LogSplitMs(**{layer: _in_ms(value) for layer, value in log_parts.items()}),
            **(log_evidence if flush_ns > total_ns / 2 else evidence).given(),
        )

    def _stamped(
        self,
        window: Window,
        stall: Stall,
        io: IoStamps | None,
        row: int,
        instance: str,
        span_ns: tuple[int, int],
    ) -> tuple[dict[str, float | None], Evidence]:
        """Submission, kernel queue and device of the I/O that covers most of a stretch of time."""
        device = self.device(window, instance, row)
        parts: dict[str, float | None] = {"submission": 0.0, "kernel_queue": 0.0, "device": 0.0}
        evidence = self.evidence(window, device)
        if io is None:
            return parts, evidence
        begin, handed, done = (
            min(max(stamp, span_ns[0]), span_ns[1])
            for stamp in (io.asked_ns, io.submitted_ns, io.completed_ns)
        )
        in_kernel_ns = float(done - handed)
        # A long gap between two looks can hold all of it: then nobody knows when it completed, and
        # the gap is to blame.
        if evidence.reap_gap_ms_max * NS_PER_MS > in_kernel_ns / 2:
            in_kernel_ns = max(in_kernel_ns - evidence.reap_gap_ms_max * NS_PER_MS, 0.0)
        mean_ms = _mean_ms(window, instance, stall, io)
        share = self._device_share(window, device, io.purpose, mean_ms, window.late_ms(mean_ms))
        parts["submission"] = float(handed - begin)
        parts["kernel_queue"] = None if share is None else in_kernel_ns * (1 - share)
        parts["device"] = in_kernel_ns if share is None else in_kernel_ns * share
        return parts, evidence


@dataclass(frozen=True)
class Place:
    """A database or a log whose latency is judged: its name, and where its rows are."""

    scope: str
    instance: str
    database: int
    metric: str


def split_run(
    splitter: Splitter,
    places: list[Place],
    instances: list[str],
    whole_ns: tuple[int, int],
    worst_sample_ns: Callable[[str, str, int], tuple[int, int]],
) -> tuple[list[DeviceUse], list[TimeSplit], list[TransactionSplit]]:
    """The splits of everything that is judged, over all that was measured and over the worst
    published interval of each.
    """
    whole = splitter.window(*whole_ns)
    devices = [
        DeviceUse(instance=instance, role=role, **device.given())
        for instance in instances
        for role, row in (("databases", DATABASE_ROW), ("log", LOG_ROW))
        if (device := splitter.device(whole, instance, row))
    ]
    splits: list[TimeSplit] = []
    for place in places:
        worst = splitter.window(*worst_sample_ns(place.metric, place.instance, place.database))
        windows: list[tuple[Literal["whole", "worst_sample"], Window]] = [
            ("whole", whole),
            ("worst_sample", worst),
        ]
        for name, window in windows:
            split = splitter.io(window, place.instance, place.database, place.metric)
            if split:
                splits.append(
                    TimeSplit(scope=place.scope, metric=place.metric, window=name, **split.given())
                )
    scopes: list[tuple[str, str | None]] = [("run", None), *((name, name) for name in instances)]
    transactions = [
        split
        for scope, instance in scopes
        if (split := splitter.transactions(whole, instance, scope)) is not None
    ]
    return devices, splits, transactions


def split_stalls(
    splitter: Splitter,
    stalls: Sequence[Stall],
    instances: Sequence[str],
    utc_of: Callable[[int], str | None],
) -> list[StallSplit]:
    """The longest transactions, longest first, each split.

    `utc_of` tells what a moment of the run's clock is in UTC.
    """
    longest = sorted(stalls, key=lambda stall: stall.begun_ns - stall.finished_ns)[:STALLS_MAX]
    return [
        splitter.stall(
            splitter.sample_window(stall.begun_ns, stall.finished_ns),
            stall,
            instances[stall.instance],
            utc_of(stall.begun_ns),
        )
        for stall in longest
    ]


def _mean_ms(window: Window, instance: str, stall: Stall, io: IoStamps) -> float:
    """The mean latency of the kind of I/O a stall waited for, in the samples it lies in."""
    database = 0 if io.purpose.startswith("log_") else stall.database
    sums = window.get(instance, database, io.purpose)
    return sums.total_ns / sums.count / NS_PER_MS if sums.count else 0.0


def _in_ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS


def _ratio(total_ns: float, count: float) -> float | None:
    return total_ns / count / NS_PER_MS if count else None


def _others_share(
    device_reads: float, value: dict[str, float], ours: dict[str, list[Sums]]
) -> float:
    """How much of what a disk did was not ours: of its bytes, or of its reads, whichever is more.

    Writes are not counted one by one: the kernel splits and merges them, and file systems add their
    own.
    """
    device_bytes = value["read_bytes"] + value["write_bytes"]
    our_bytes = sum(sums.size for rows in ours.values() for sums in rows)
    our_reads = sum(sums.count for sums in ours["read"])
    shares = [
        1 - our_bytes / device_bytes if device_bytes else 0.0,
        1 - our_reads / device_reads if device_reads else 0.0,
    ]
    return max(0.0, *shares)
