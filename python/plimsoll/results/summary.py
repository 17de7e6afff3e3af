"""From samples and distributions to `summary.json`: every figure per database and in total.

Means are weighted by operations. Beside them stands what the published test tool computed: the plain mean of the means
of fixed intervals, empty intervals counted as zero. A rest shorter than half such an interval belongs to the interval
before it: one slow transfer in the last millisecond of a run is no sample of its own. Percentiles come from the merged
distributions, not from samples. Only phases of the kinds `measure` and `generate_logs` count; the whole run is looked at for errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import duckdb

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.figures import (
    DatabaseFigures,
    InstanceFigures,
    Level,
    OperationResponses,
    Responses,
    Totals,
    Transfers,
    Window,
)
from plimsoll.documents.latency_split import DeviceUse, StallSplit, TimeSplit, TransactionSplit
from plimsoll.documents.outcome import ArrayReport, DatabaseState, Outcome, PhaseOutcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.documents.summary import (
    BackupFigures,
    ChecksumFigures,
    ChecksumReads,
    Content,
    DeviceErrors,
    DeviceErrorsFile,
    DeviceRates,
    DeviceView,
    Gaps,
    Generator,
    IoFigures,
    KernelLog,
    KernelLogFile,
    PhaseFigures,
    RateSteps,
    RecoveryFigures,
    Summary,
)
from plimsoll.files import folder, parquet
from plimsoll.files.parquet import Row
from plimsoll.plan.limits import OPERATIONS
from plimsoll.results import counters
from plimsoll.results.backup_recovery import backup_total, backups, recoveries
from plimsoll.results.device_crosscheck import device_view
from plimsoll.results.host_usage import device_rates, machine_levels
from plimsoll.results.latency_breakdown import Place, Splitter, split_run, split_stalls
from plimsoll.results.load import load_figures
from plimsoll.results.rate_steps import plateaus
from plimsoll.results.steady_state import conditioning

SCHEMA_VERSION: Literal[1] = 1
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: Figures of a database and of a log, with the metrics that are put together for each. The published tool counted all
#: reads of a file and subtracted those of maintenance or replication; here each purpose is counted by itself.
DATABASE_FIGURES = {
    "database_read": ("database_read",),
    "database_write": ("database_write",),
    "maintenance": ("maintenance",),
    "database_read_with_maintenance": ("database_read", "maintenance"),
}
LOG_FIGURES = {
    "log_write": ("log_write",),
    "log_read": ("log_read",),
    "log_replication": ("log_replication",),
    "log_read_with_replication": ("log_read", "log_replication"),
}


#: Transfers by the name of their purpose, which is an attribute of the documents that hold them.
Purposes = Mapping[str, Any]


def summarize(run_folder: Path) -> Summary:
    """Compute the summary of a run from the files of its folder.

    Raises:
        FolderError: a file is missing or damaged.
    """
    plan, outcome = Plan.read(run_folder / folder.PLAN), Outcome.read(run_folder / folder.OUTCOME)
    if not (run_folder / folder.SAMPLES).is_file():
        raise folder.FolderError(f"{run_folder / folder.SAMPLES} is missing; the run was cut off before it measured")
    checksums = _checksums(plan, outcome)
    gaps = Gaps.read(run_folder / folder.GAPS).gaps if (run_folder / folder.GAPS).exists() else ()
    with Measurements(run_folder, outcome) as measured:
        databases = _databases(plan, outcome, measured)
        backed_up, devices, splits, transactions, stalls = (
            measured.backups(plan),
            *_time_splits(plan, outcome, measured),
        )
        return Summary(
            schema_version=SCHEMA_VERSION,
            name=plan.name,
            ending=outcome.ending,
            error=outcome.error,
            window=measured.window(),
            # An error does not go away with the process that saw it.
            total=_with_sizes(measured.totals(sum(gap.errors_before for gap in gaps)), databases, checksums),
            databases=databases,
            instances=_instances(plan, measured),
            operations=measured.operations(),
            generator=measured.generator(),
            page_fault_stalls=measured.stalls(),
            load=load_figures(run_folder, plan, outcome),
            machine=measured.machine(*settings.MEASURED_KINDS),
            backup_machine=measured.machine("backup"),
            recovery_machine=measured.machine("recover"),
            counters=counters.averages(run_folder),
            device_view=measured.device_view(),
            plateaus=measured.plateaus(),
            conditioning=conditioning(plan, outcome, measured.hot_operations()),
            content=_content(run_folder),
            devices=devices,
            time_splits=splits,
            transaction_splits=transactions,
            stalls=stalls,
            checksums=checksums,
            checksum_reads=measured.checksum_reads(),
            checksum_machine=measured.machine("checksum"),
            checksum_devices=measured.devices("checksum"),
            backups=backed_up,
            backup_total=backup_total(backed_up),
            recoveries=measured.recoveries(plan),
            kernel_log=_kernel_log(run_folder),
            device_errors=_device_errors(run_folder),
            gaps=gaps,
            phases=[_phase(phase, outcome) for phase in outcome.phases],
            # Runs before there was a choice say nothing.
            io=IoFigures(method=outcome.io_method, remarks=outcome.io_remarks, choices=outcome.io_choices or ABSENT),
            debug_build=outcome.debug_build,
            virtual_time=outcome.virtual_time,
            array=measured.array() or ABSENT,
        )


@dataclass(frozen=True)
class WindowFigures:
    """The figures of a run in a span of its own clock, with the distributions behind them."""

    window: Window
    total: Totals
    databases: list[DatabaseFigures]
    instances: list[InstanceFigures]
    operations: list[OperationResponses]
    generator: Generator
    distributions: dict[str, list[tuple[int, int]]]


def figures_within(run_folder: Path, span_ns: tuple[int, int]) -> WindowFigures:
    """The figures of a run in a span of its own clock, under the names of the summary, with the distributions behind them.

    Rates, means and highest values are those of the samples wholly within the span; a distribution, and with it every
    percentile, is of all that was measured, because distributions are kept for each phase.
    """
    plan, outcome = Plan.read(run_folder / folder.PLAN), Outcome.read(run_folder / folder.OUTCOME)
    with Measurements(run_folder, outcome, span_ns) as measured:
        figures = {**DATABASE_FIGURES, **LOG_FIGURES, "transactions": OPERATIONS}
        return WindowFigures(
            window=measured.window(),
            total=measured.totals(),
            databases=_databases(plan, outcome, measured),
            instances=_instances(plan, measured),
            operations=measured.operations(),
            generator=measured.generator(),
            distributions={name: measured.distribution(tuple(metrics)) for name, metrics in figures.items()},
        )


class Measurements:
    """Questions to the samples and distributions of one run."""

    def __init__(self, run_folder: Path, outcome: Outcome, span_ns: tuple[int, int] | None = None) -> None:
        self._outcome = outcome
        self._phases = [phase for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
        self._database = duckdb.connect()
        for table, name in (("sample", folder.SAMPLES), ("bucket", folder.HISTOGRAMS)):
            self._database.execute(f"CREATE TABLE {table} AS SELECT * FROM {parquet.rows_of(run_folder / name)}")
        names = [phase.name for phase in self._phases]
        self._database.execute("CREATE TABLE measured AS SELECT * FROM sample WHERE list_contains(?, phase)", [names])
        self._names = names
        if span_ns is not None:
            self._cut_to(*span_ns)

    def _cut_to(self, first_ns: int, last_ns: int) -> None:
        """Keep what was measured wholly within a span; the measured time then begins and ends where these samples do."""
        span = [first_ns, last_ns]
        outside = "end_ns::BIGINT - interval_ns::BIGINT < ? OR end_ns::BIGINT > ?"
        self._database.execute(f"DELETE FROM measured WHERE {outside}", span)
        kept = self._rows(
            "SELECT min(end_ns - interval_ns)::BIGINT AS first, max(end_ns)::BIGINT AS last FROM measured"
        )
        first, last = (kept[0]["first"] or 0, kept[0]["last"] or 0)
        self._phases = [
            phase.replace(start_ns=max(phase.start_ns, first), end_ns=min(phase.end_ns, last))
            for phase in self._phases
            if phase.start_ns < last and phase.end_ns > first
        ]

    def __enter__(self) -> Measurements:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def _rows(self, query: str, values: list[Any] | parquet.Values | None = None) -> list[Row]:
        cursor = self._database.execute(query, values or [])
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def machine(self, *kinds: str) -> dict[str, Level]:
        """What the machine did in the phases of some kinds."""
        return machine_levels(self._rows, [name for kind in kinds for name in self._phases_of(kind)])

    def backups(self, plan: Plan) -> list[BackupFigures]:
        """What was read for backups, in any phase."""
        return backups(self._rows, plan, self._outcome)

    def recoveries(self, plan: Plan) -> list[RecoveryFigures]:
        """What was replayed for recovery, in any phase."""
        return recoveries(self._rows, plan, self._outcome)

    def devices(self, kind: str) -> list[DeviceRates]:
        """What the disks under the instances did in the phases of a kind."""
        return device_rates(self._rows, self._outcome.devices, self._phases_of(kind))

    def array(self) -> ArrayReport | None:
        """What a modelled array counted by itself while it was measured last; nothing on real storage."""
        counted = [phase.array for phase in self._phases if phase.array]
        return counted[-1] if counted else None

    def device_view(self) -> list[DeviceView]:
        """What the engine and the disks below it counted of the same I/O while it was measured."""
        return device_view(self._rows, self._outcome.devices, self._names)

    def hot_operations(self) -> dict[str, dict[str, int]]:
        """For each workload, its operations on records and how many of them met the hot set."""
        rows = self._rows(
            "SELECT workload, coalesce(sum(count) FILTER (metric = 'hot_operation'), 0)::BIGINT AS hot,"
            " coalesce(sum(count) FILTER (metric <> 'hot_operation'), 0)::BIGINT AS operations FROM measured"
            " WHERE metric IN ('delete', 'replace', 'read', 'hot_operation') GROUP BY workload"
        )
        return {row.pop("workload"): row for row in rows}

    def plateaus(self) -> RateSteps:
        """Whether the rate stood on two levels while it was measured."""
        return plateaus(self._rows, self._phases)

    def _phases_of(self, kind: str) -> list[str]:
        return [phase.name for phase in self._outcome.phases if phase.kind == kind]

    @property
    def seconds(self) -> float:
        """How long was measured."""
        total_ns: int = sum(phase.end_ns - phase.start_ns for phase in self._phases)
        return total_ns / NS_PER_S

    def window(self) -> Window:
        """When was measured, for how long, in how many samples."""
        start_ns = self._phases[0].start_ns if self._phases else None
        end_ns = self._phases[-1].end_ns if self._phases else None
        count = self._rows("SELECT count(DISTINCT end_ns) AS count FROM measured")[0]["count"]
        return Window(
            start_utc=_utc(start_ns, self._outcome),
            end_utc=_utc(end_ns, self._outcome),
            seconds=self.seconds,
            samples_count=count,
            published_interval_s=settings.limits()["sample_interval_s"],
            complete=bool(self._phases) and all(phase.complete for phase in self._phases),
        )

    def transfers(self, metrics: tuple[str, ...], instance: str | None, database: int | None) -> Transfers:
        """Figures of some metrics together, for one database, one instance or all."""
        where = "list_contains($metrics, metric)"
        values: parquet.Values = {"metrics": list(metrics)}
        if instance is not None:
            where += " AND instance = $instance"
            values["instance"] = instance
        if database is not None:
            where += " AND database = $database"
            values["database"] = database
        summed = self._database.execute(
            "SELECT coalesce(sum(count), 0)::BIGINT, coalesce(sum(errors), 0)::BIGINT, coalesce(sum(bytes), 0)::BIGINT,"
            f" coalesce(sum(latency_ns_sum), 0)::DOUBLE, coalesce(max(latency_ns_max), 0)::BIGINT FROM measured WHERE {where}",
            values,
        ).fetchall()[0]
        count, errors, size, total_ns, max_ns = summed
        latencies, sizes = self._published_means(where, values)
        seconds = self.seconds
        return Transfers(
            count=count,
            errors=errors,
            per_s=count / seconds if seconds else 0.0,
            bytes_per_s=size / seconds if seconds else 0.0,
            bytes_mean=size / count if count else None,
            bytes_mean_of_samples=sum(sizes) / len(sizes) if sizes else None,
            latency_ms_mean=total_ns / count / NS_PER_MS if count else None,
            latency_ms_mean_of_samples=sum(latencies) / len(latencies) if latencies else None,
            latency_ms_sample_mean_max=max(latencies) if latencies and count else None,
            **{f"latency_ms_{name}": value for name, value in self._quantiles(where, values).items()},
            latency_ms_max=max_ns / NS_PER_MS if count else None,
        )

    def _published_means(self, where: str, values: parquet.Values) -> tuple[list[float], list[float]]:
        """Mean latency in ms and mean size of each published interval, zero where nothing completed."""
        if not self._phases:
            return [], []
        interval_ns = settings.limits()["sample_interval_s"] * NS_PER_S
        start_ns, end_ns = self._phases[0].start_ns, self._phases[-1].end_ns
        whole, rest_ns = divmod(end_ns - start_ns, interval_ns)
        last = whole if whole == 0 or 2 * rest_ns >= interval_ns else whole - 1
        rows = self._database.execute(
            "SELECT sum(latency_ns_sum)::DOUBLE / greatest(sum(count), 1), sum(bytes)::DOUBLE / greatest(sum(count), 1)"
            f" FROM measured WHERE {where}"
            " GROUP BY least((end_ns - $start - 1) // $interval, $last)"
            " ORDER BY least((end_ns - $start - 1) // $interval, $last)",
            {**values, "start": start_ns, "interval": interval_ns, "last": last},
        ).fetchall()
        return [row[0] / NS_PER_MS for row in rows], [row[1] for row in rows]

    def _quantiles(self, where: str, values: parquet.Values) -> dict[str, float | None]:
        buckets = self._database.execute(
            f"SELECT upper_ns, sum(count)::BIGINT FROM bucket WHERE {where} AND list_contains($phases, phase)"
            " AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
            {**values, "phases": self._names},
        ).fetchall()
        return {name: quantile_ms(buckets, share) for name, share in QUANTILES.items()}

    def buckets(self, metric: str, instance: str, database: int) -> list[tuple[float, int]]:
        """Upper bound in ms and count of each bucket of one distribution."""
        rows = self._database.execute(
            "SELECT upper_ns, sum(count)::BIGINT FROM bucket WHERE metric = ? AND instance = ? AND database = ?"
            " AND list_contains(?, phase) AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
            [metric, instance, database, self._names],
        ).fetchall()
        return [(upper / NS_PER_MS, count) for upper, count in rows]

    def distribution(self, metrics: tuple[str, ...]) -> list[tuple[int, int]]:
        """Upper bound in ns and count of each bucket of some metrics together, all places and all measured phases."""
        found: list[tuple[int, int]] = self._database.execute(
            "SELECT upper_ns::BIGINT, sum(count)::BIGINT FROM bucket WHERE list_contains(?, metric)"
            " AND list_contains(?, phase) AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
            [list(metrics), self._names],
        ).fetchall()
        return found

    def series(self, metric: str, points_max: int) -> list[Row]:
        """Rate, latency and level of one metric over time, for each place, in at most so many equal spans.

        A span's mean is weighted by operations, and its `latency_ms_p99` is the highest p99 of its samples, so that no
        bad moment is averaged away however long the run was.
        """
        if not self._phases:
            return []
        start_ns, end_ns = self._phases[0].start_ns, self._phases[-1].end_ns
        width_ns = self._span_ns(end_ns - start_ns, points_max)
        return self._rows(
            # A sample belongs to the span that its middle lies in: the first of a phase is short, because beats go on.
            "SELECT ((end_ns - interval_ns // 2 - $start - 1) // $width) * $width / 1e9 AS second, instance, database,"
            " sum(count) / (sum(interval_ns) / 1e9) AS per_s,"
            " CASE WHEN sum(count) > 0 THEN sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 END AS latency_ms_mean,"
            " CASE WHEN sum(count) > 0 THEN max(latency_ns_p99) / 1e6 END AS latency_ms_p99,"
            " avg(value) AS level FROM measured WHERE metric = $metric"
            " GROUP BY second, instance, database HAVING sum(interval_ns) * 4 >= $least"
            " ORDER BY instance, database, second",
            {"start": start_ns, "width": width_ns, "metric": metric, "least": min(width_ns, self._usual_interval_ns())},
        )

    def _span_ns(self, whole_ns: int, points_max: int) -> int:
        """The shortest whole number of usual samples that cuts the time into no more than so many spans."""
        usual_ns = self._usual_interval_ns()
        return max(1, -(-whole_ns // (points_max * usual_ns))) * usual_ns

    def _usual_interval_ns(self) -> int:
        row = self._rows("SELECT max(interval_ns)::BIGINT AS longest FROM measured")[0]
        return int(row["longest"] or NS_PER_S)

    def level(self, metric: str, instance: str) -> Level | None:
        """Mean, smallest and largest value of a level."""
        row = self._rows(
            "SELECT avg(value) AS mean, min(value) AS min, max(value) AS max FROM measured"
            " WHERE metric = ? AND instance = ?",
            [metric, instance],
        )[0]
        return None if row["mean"] is None else Level(**row)

    def stalls(self) -> Level | None:
        """Page fault stalls per second of all instances: mean over the run, smallest and largest of a sample."""
        row = self._rows(
            "SELECT sum(count) / sum(seconds) AS mean, min(count / seconds) FILTER (WHERE whole) AS min,"
            " max(count / seconds) FILTER (WHERE whole) AS max FROM"
            " (SELECT count, seconds, seconds * 2 >= max(seconds) OVER () AS whole FROM"
            " (SELECT sum(count) AS count, max(interval_ns) / 1e9 AS seconds FROM measured"
            " WHERE metric = 'page_fault_stall' GROUP BY end_ns))"
        )[0]
        return None if row["mean"] is None else Level(**row)

    def grown_bytes(self, instance: str, database: int) -> int | None:
        """How much a database grew from the first to the last sample that counts."""
        row = self._rows(
            "SELECT arg_max(value, end_ns) - arg_min(value, end_ns) AS grown FROM measured"
            " WHERE metric = 'database_size' AND instance = $instance AND database = $database",
            {"instance": instance, "database": database},
        )[0]
        return None if row["grown"] is None else int(row["grown"])

    def checksum_reads(self) -> ChecksumReads | None:
        """Rate, size and latency of the reads of the checksum passes, all databases together."""
        passes = [phase for phase in self._outcome.phases if phase.kind == "checksum"]
        seconds = sum(phase.end_ns - phase.start_ns for phase in passes) / NS_PER_S
        if not seconds:
            return None
        rows = self._rows(
            "SELECT sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 AS read_latency_ms_mean,"
            " sum(count) / $seconds AS reads_per_s, sum(bytes)::DOUBLE / sum(count) AS read_bytes_mean FROM sample"
            " WHERE metric = 'checksum' AND list_contains($phases, phase) HAVING sum(count) > 0",
            {"seconds": seconds, "phases": [phase.name for phase in passes]},
        )
        return ChecksumReads(**rows[0]) if rows else None

    def whole_ns(self) -> tuple[int, int]:
        """From the first to the last moment that was measured."""
        return (self._phases[0].start_ns, self._phases[-1].end_ns) if self._phases else (0, 0)

    def worst_sample_ns(self, metric: str, instance: str, database: int) -> tuple[int, int]:
        """The published interval with the highest mean latency."""
        where = "metric = $metric AND instance = $instance AND database = $database"
        means, _ = self._published_means(where, {"metric": metric, "instance": instance, "database": database})
        interval_ns = settings.limits()["sample_interval_s"] * NS_PER_S
        first_ns, last_ns = self.whole_ns()
        worst = means.index(max(means)) if means else 0
        start_ns = first_ns + worst * interval_ns
        # The last interval takes a short rest with it.
        return start_ns, last_ns if worst + 1 >= len(means) else start_ns + interval_ns

    def splitter(self, plan: Plan) -> Splitter:
        """What splits the latencies of this run."""
        instances = plan.run.instances
        raw = frozenset(instance.name for instance in instances if instance.backend == "raw_files")
        return Splitter(self._rows, self._outcome.devices, raw)

    def counted(self, metric: str, instance: str | None = None, *, whole_run: bool = False) -> int:
        """Events of a metric."""
        table = "sample" if whole_run else "measured"
        rows = self._rows(
            f"SELECT coalesce(sum(count), 0)::BIGINT AS count FROM {table}"
            " WHERE metric = $metric AND ($instance IS NULL OR instance = $instance)",
            {"metric": metric, "instance": instance},
        )
        return int(rows[0]["count"])

    def totals(self, errors_before: int = 0) -> Totals:
        """Figures of the whole run; errors that were seen before it was cut off count."""
        figures: Purposes = {
            name: self.transfers(metrics, None, None) for name, metrics in (DATABASE_FIGURES | LOG_FIGURES).items()
        }
        errors = self._rows("SELECT coalesce(sum(errors), 0)::BIGINT AS errors FROM sample")[0]["errors"]
        transactions = self._responses("list_contains($metrics, metric)", {"metrics": list(OPERATIONS)})
        return Totals(
            database_iops=figures["database_read"].per_s + figures["database_write"].per_s,
            transactions_per_s=transactions.per_s,
            **figures,
            transactions=transactions,
            errors_in_run=errors + errors_before,
            hung_in_run=self.counted("hung", whole_run=True),
            missing_records=self.counted("missing_record"),
            write_conflicts=self.counted("write_conflict"),
        )

    def operations(self) -> list[OperationResponses]:
        """Response times of each kind of operation of each workload."""
        found = []
        for row in self._rows(
            "SELECT DISTINCT workload, metric FROM measured WHERE list_contains(?, metric) ORDER BY workload, metric",
            [list(OPERATIONS)],
        ):
            responses = self._responses("metric = $metric AND workload = $workload", row)
            found.append(OperationResponses(workload=row["workload"], operation=row["metric"], **responses.given()))
        return found

    def _responses(self, where: str, values: parquet.Values) -> Responses:
        count, total_ns, max_ns = self._database.execute(
            "SELECT coalesce(sum(count), 0)::BIGINT, coalesce(sum(latency_ns_sum), 0)::DOUBLE,"
            f" coalesce(max(latency_ns_max), 0)::BIGINT FROM measured WHERE {where}",
            values,
        ).fetchall()[0]
        return Responses(
            count=count,
            per_s=count / self.seconds if self.seconds else 0.0,
            response_ms_mean=total_ns / count / NS_PER_MS if count else None,
            **{f"response_ms_{name}": value for name, value in self._quantiles(where, values).items()},
            response_ms_max=max_ns / NS_PER_MS if count else None,
        )

    def generator(self) -> Generator:
        """How the load generator itself did."""
        busy = self._rows(
            "SELECT avg(value) AS mean, max(value) AS max FROM measured WHERE metric = 'executor_busy' AND database = 0"
        )[0]
        return Generator(
            executor_busy_mean=busy["mean"],
            executor_busy_max=busy["max"],
            reap_gap_ms_p99=self._quantiles("metric = 'reap_gap'", {})["p99"],
            arrival_lag_ms_p99=self._quantiles("metric = 'arrival_lag'", {})["p99"],
        )


def quantile_ms(buckets: list[tuple[int, int]], share: float) -> float | None:
    """The upper bound, in ms, of the bucket in which the quantile lies."""
    total = sum(count for _, count in buckets)
    reached = 0
    for upper_ns, count in buckets:
        reached += count
        if reached >= share * total:
            return upper_ns / NS_PER_MS
    return None


def _utc(monotonic_ns: int | None, outcome: Outcome) -> str | None:
    """A monotonic time as UTC, by the last anchor before it."""
    if monotonic_ns is None:
        return None
    anchors = outcome.anchors
    before = [anchor for anchor in anchors if anchor.monotonic_ns <= monotonic_ns] or anchors[:1]
    utc_ns = before[-1].utc_ns + monotonic_ns - before[-1].monotonic_ns
    return datetime.fromtimestamp(utc_ns / NS_PER_S, UTC).isoformat(timespec="milliseconds")


def _device_errors(run_folder: Path) -> DeviceErrors | None:
    """What devices and file systems counted; None for a run of a version that did not look."""
    path = run_folder / folder.DEVICE_ERRORS
    if not path.is_file():
        return None
    return DeviceErrorsFile.read(path).figures()


def _content(run_folder: Path) -> Content | None:
    """What a sample of the written pages showed; None for a run that did not look."""
    path = run_folder / folder.CONTENT
    return Content.read(path) if path.is_file() else None


def _kernel_log(run_folder: Path) -> KernelLog | None:
    """What the kernel said of the disks; None for a run of a version that did not look."""
    path = run_folder / folder.KERNEL_LOG
    if not path.is_file():
        return None
    return KernelLogFile.read(path).figures()


def _phase(phase: PhaseOutcome, outcome: Outcome) -> PhaseFigures:
    return PhaseFigures(
        name=phase.name,
        kind=phase.kind,
        start_utc=_utc(phase.start_ns, outcome),
        seconds=(phase.end_ns - phase.start_ns) / NS_PER_S,
        complete=phase.complete,
    )


def _database_name(instance: InstanceSpec, number: int) -> str:
    return f"{instance.name}/{Path(instance.databases[number - 1].file_name).stem}"


def _sizes(outcome: Outcome, kind: str, index: int, number: int) -> DatabaseState | None:
    """The state of a database at the end of the last phase of a kind."""
    for phase in reversed(outcome.phases):
        if phase.kind == kind and index < len(phase.databases):
            return phase.databases[index][number - 1]
    return None


def _databases(plan: Plan, outcome: Outcome, measured: Measurements) -> list[DatabaseFigures]:
    found = []
    for index, instance in enumerate(plan.run.instances):
        for number in range(1, len(instance.databases) + 1):
            before = _sizes(outcome, "prepare", index, number)
            kinds = ("stop", *settings.MEASURED_KINDS, "backup")
            known = (_sizes(outcome, kind, index, number) for kind in kinds)
            after = next((size for size in known if size), None)
            figures: Purposes = {
                name: measured.transfers(metrics, instance.name, number) for name, metrics in DATABASE_FIGURES.items()
            }
            found.append(
                DatabaseFigures(
                    name=_database_name(instance, number),
                    instance=instance.name,
                    database=number,
                    path=str(Path(instance.directory) / instance.databases[number - 1].file_name),
                    initial_bytes=before.size_bytes if before else None,
                    final_bytes=after.size_bytes if after else None,
                    grown_bytes_measured=measured.grown_bytes(instance.name, number),
                    iops=figures["database_read"].per_s + figures["database_write"].per_s,
                    **figures,
                )
            )
    return found


def _instances(plan: Plan, measured: Measurements) -> list[InstanceFigures]:
    found = []
    for instance in plan.run.instances:
        name = instance.name
        figures: Purposes = {figure: measured.transfers(metrics, name, 0) for figure, metrics in LOG_FIGURES.items()}
        stalls = measured.counted("page_fault_stall", name)
        found.append(
            InstanceFigures(
                name=name,
                log_directory=instance.log_directory,
                **figures,
                page_fault_stalls_count=stalls,
                page_fault_stalls_per_s=stalls / measured.seconds if measured.seconds else None,
                cache_used_bytes=measured.level("cache_used", name),
                cache_limit_bytes=instance.cache_bytes_max,
                in_flight=measured.level("in_flight", name),
            )
        )
    return found


def _checksums(plan: Plan, outcome: Outcome) -> list[ChecksumFigures]:
    found = []
    for phase in outcome.phases:
        for checksum in phase.checksums:
            instance = plan.run.instances[checksum.instance]
            name = _database_name(instance, checksum.database)
            found.append(ChecksumFigures(**{**checksum.given(), "name": name, "instance": instance.name}))
    return found


def _time_splits(
    plan: Plan, outcome: Outcome, measured: Measurements
) -> tuple[list[DeviceUse], list[TimeSplit], list[TransactionSplit], list[StallSplit]]:
    """Where the time of I/O, of transactions and of the longest of them went, and what the devices did."""
    places = []
    for instance in plan.run.instances:
        places.append(Place(instance.name, instance.name, 0, "log_write"))
        for number in range(1, len(instance.databases) + 1):
            places.append(Place(_database_name(instance, number), instance.name, number, "database_read"))
    splitter = measured.splitter(plan)
    names = [instance.name for instance in plan.run.instances]
    measured_phases = {number for number, phase in enumerate(outcome.phases) if phase.kind in settings.MEASURED_KINDS}
    stalls = [stall for stall in outcome.stalls if stall.phase in measured_phases]
    devices, splits, transactions = split_run(splitter, places, names, measured.whole_ns(), measured.worst_sample_ns)
    return devices, splits, transactions, split_stalls(splitter, stalls, names, lambda time_ns: _utc(time_ns, outcome))


def _with_sizes(totals: Totals, databases: Sequence[DatabaseFigures], checksums: Sequence[ChecksumFigures]) -> Totals:
    """The totals with the sizes of all databases, and what the checksum passes found in all of them."""
    initial = sum_of_known([database.initial_bytes for database in databases])
    final = sum_of_known([database.final_bytes for database in databases])
    return totals.replace(
        initial_bytes=initial,
        final_bytes=final,
        grown_bytes=final - initial if final is not None and initial is not None else None,
        pages_verified=sum(item.pages_seen for item in checksums) if checksums else None,
        pages_damaged=sum(item.bad + item.correctable + item.wrong_page_number for item in checksums)
        if checksums
        else None,
    )


def sum_of_known(values: Sequence[int | None]) -> int | None:
    """A sum that is not known as long as a part of it is not."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
