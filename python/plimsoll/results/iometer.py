"""The results of workloads on files as rows of Iometer.

All, this manager, each workload as a worker, each file as a disk.

What the original is known to do wrong is not repeated: rows of disks are of that disk alone, depth
and raw sums are there. Latencies are those at the disk; transactions are those of the workload.
What is not known stays empty. Of files that several workloads share the disk knows all of them
only: the rows of each have its transfers as it asked for them, and no reads and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import FilesWorkload
from plimsoll.files.parquet import Query, Row
from plimsoll.results.distributions import Buckets, quantile_ms
from plimsoll.results.files import SIZES, shares_files
from plimsoll.units import NS_PER_MS

MIB, MB = 2**20, 10**6
SECTOR_BYTES = 512
#: Upper ends of the bins of version 1.1.0. Its code parts the last but two at 4 s, whatever its
#: heading says.
BIN_ENDS_MS = (
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    20,
    30,
    50,
    100,
    200,
    500,
    1000,
    2000,
    4000,
    5000,
    10000,
)


#: Rows of all that was done.
WHOLE = ("ALL", "MANAGER")


@dataclass(frozen=True)
class Direction:
    """Reads or writes of one row, or both; bytes and errors are None where no one knows them."""

    count: int
    bytes: int | None
    total_ns: float
    max_ns: int
    errors: int | None

    @property
    def mean_ms(self) -> float:
        """The mean latency; 0 where there was none, as the original has it."""
        return self.total_ns / self.count / NS_PER_MS if self.count else 0.0


@dataclass(frozen=True)
class IometerRow:
    """One row of results; reads and writes are None where the disk cannot tell whose they are."""

    kind: str
    name: str
    specification: str
    workers: int
    disks: int
    depth: int
    size_bytes: int
    both: Direction
    read: Direction | None
    write: Direction | None
    transactions: Direction
    buckets: Buckets

    def bins(self) -> list[int]:
        """How many transfers took how long, by the bins of version 1.1.0."""
        found = [0] * (len(BIN_ENDS_MS) + 1)
        for upper_ns, count in self.buckets:
            ends = (
                index for index, end_ms in enumerate(BIN_ENDS_MS) if upper_ns <= end_ms * NS_PER_MS
            )
            found[next(ends, len(BIN_ENDS_MS))] += count
        return found

    def quantile_ms(self, share: float) -> float:
        """A percentile of all transfers; 0 where there was none, as the original has it."""
        return quantile_ms(self.buckets, share) or 0.0


def iometer_rows(plan: Plan, ask: Query, phases: Sequence[str]) -> list[IometerRow]:
    """The rows of a run; none where it loaded no files.

    Args:
        plan: the completed plan.
        ask: asks the tables `measured` (samples of the measured phases) and `bucket`
            (distributions).
        phases: the measured phases.
    """
    loads = [item for item in plan.run.workloads if isinstance(item, FilesWorkload)]
    reader = _Reader(plan, ask, phases)
    workers = [row for load in loads for row in reader.worker(load)]
    if not workers:
        return []
    names = list(dict.fromkeys(reader.specification(load) for load in loads))
    one = names[0] if len(names) == 1 else ""
    places = list(dict.fromkeys(place for load in loads for place in reader.places(load)))
    count = sum(load.workers for load in loads)
    depth = sum(plan.judgement.files[load.name].outstanding for load in loads)
    whole = [
        reader.row(kind, name, one, count, depth, places, loads)
        for kind, name in zip(WHOLE, ("All", plan.run.hosts[0].name), strict=True)
    ]
    return [*whole, *workers]


class _Reader:
    """Asks for the figures of places: pairs of an instance and a file of it."""

    def __init__(self, plan: Plan, ask: Query, phases: Sequence[str]) -> None:
        self.plan, self.ask, self.phases = plan, ask, phases
        self.instances = {item.name: item for item in plan.run.instances}

    def specification(self, load: FilesWorkload) -> str:
        return self.plan.judgement.files[load.name].pattern or load.name

    def places(self, load: FilesWorkload) -> list[tuple[str, int]]:
        each = ((name, self.instances[name]) for name in load.instances)
        return [
            (name, number) for name, item in each for number in range(1, len(item.databases) + 1)
        ]

    def worker(self, load: FilesWorkload) -> list[IometerRow]:
        """A workload and each of its files."""
        places, depth = self.places(load), self.plan.judgement.files[load.name].outstanding
        specification = self.specification(load)
        rows = [self.row("WORKER", load.name, specification, load.workers, depth, places, [load])]
        for instance, number in places:
            item = self.instances[instance]
            path = str(Path(item.directory) / item.databases[number - 1].file_name)
            own = depth // len(places)
            rows.append(
                self.row(
                    "DISK",
                    path,
                    specification,
                    load.workers,
                    own,
                    [(instance, number)],
                    [load],
                )
            )
        return rows

    def row(
        self,
        kind: str,
        name: str,
        specification: str,
        workers: int,
        depth: int,
        places: Sequence[tuple[str, int]],
        loads: Sequence[FilesWorkload],
    ) -> IometerRow:
        where = " OR ".join(
            f"(instance = $instance{n} AND database = $database{n})" for n in range(len(places))
        )
        where = f"({where})"
        values: Row = {f"instance{n}": place[0] for n, place in enumerate(places)}
        values |= {f"database{n}": place[1] for n, place in enumerate(places)}
        own = values | {"loads": [load.name for load in loads]}
        of_loads = f"list_contains($loads, workload) AND {where}"
        is_told_apart = kind in WHOLE or not shares_files(loads[0], self.plan.run)
        read = write = None
        if is_told_apart:
            transfers, given = f"metric IN ('database_read', 'database_write') AND {where}", values
            read = self._direction(f"metric = 'database_read' AND {where}", values)
            write = self._direction(f"metric = 'database_write' AND {where}", values)
        else:
            transfers = f"list_contains($sizes, metric) AND {of_loads}"
            given = own | {"sizes": list(SIZES)}
        both = self._direction(transfers, given)
        return IometerRow(
            kind=kind,
            name=name,
            specification=specification,
            workers=workers,
            disks=len(places),
            depth=depth,
            size_bytes=sum(
                self.instances[item].databases[number - 1].size_bytes for item, number in places
            ),
            both=both if is_told_apart else replace(both, bytes=None, errors=None),
            read=read,
            write=write,
            transactions=self._direction(
                f"metric IN ('file_read', 'file_write') AND {of_loads}", own
            ),
            buckets=self._buckets(transfers, given),
        )

    def _direction(self, where: str, values: Row) -> Direction:
        found = self.ask(
            "SELECT coalesce(sum(count), 0)::BIGINT AS count, coalesce(sum(bytes), 0)::BIGINT AS "
            "bytes,"
            " coalesce(sum(latency_ns_sum), 0)::DOUBLE AS total_ns, coalesce(max(latency_ns_max), "
            "0)::BIGINT AS max_ns,"
            f" coalesce(sum(errors), 0)::BIGINT AS errors FROM measured WHERE {where}",
            values,
        )[0]
        return Direction(**found)

    def _buckets(self, where: str, values: Row) -> list[tuple[int, int]]:
        rows = self.ask(
            "SELECT upper_ns::BIGINT AS upper_ns, sum(count)::BIGINT AS count FROM bucket"
            f" WHERE {where} AND list_contains($phases, phase) AND count > 0"
            " GROUP BY upper_ns ORDER BY upper_ns",
            values | {"phases": list(self.phases)},
        )
        return [(row["upper_ns"], row["count"]) for row in rows]
