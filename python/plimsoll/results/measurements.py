"""Questions to the samples and distributions of one run.

Rates, means, percentiles, series, and the splits of latencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from plimsoll import settings
from plimsoll.documents.backup_figures import BackupFigures, RecoveryFigures
from plimsoll.documents.document import ABSENT
from plimsoll.documents.evenness import RisingLatency, UnfinishedIo
from plimsoll.documents.event_figures import EventFigures, Undisturbed
from plimsoll.documents.figures import (
    DatabasePurposes,
    Level,
    LogPurposes,
    OperationResponses,
    Responses,
    StallLevel,
    Totals,
    Transfers,
    Window,
)
from plimsoll.documents.homes import HomesFigures
from plimsoll.documents.mail import MailFigures
from plimsoll.documents.outcome import ArrayReport, Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import MailInstance, StoreClientInstance, WorkloadSpec
from plimsoll.documents.summary import (
    ChecksumReads,
    ClockGaps,
    DeviceRates,
    DeviceView,
    FilesFigures,
    Generator,
    GeneratorThread,
    StageFigures,
    StoreFigures,
)
from plimsoll.files import folder, parquet
from plimsoll.files.parquet import Row
from plimsoll.results import integrity
from plimsoll.results.backup_recovery import backups, recoveries
from plimsoll.results.device_crosscheck import device_view
from plimsoll.results.distributions import QUANTILES, quantile_ms, quantiles_ms
from plimsoll.results.dvdstore import DvdStoreTable, dvdstore_tables
from plimsoll.results.events import event_figures
from plimsoll.results.files import files_figures
from plimsoll.results.homes import homes_figures
from plimsoll.results.host_usage import device_rates, levels, machine_levels
from plimsoll.results.iometer import IometerRow, iometer_rows
from plimsoll.results.latency_breakdown import Splitter
from plimsoll.results.load_rates import LoadRates, rates_of
from plimsoll.results.load_stages import stage_figures
from plimsoll.results.mail import mail_figures
from plimsoll.results.overlap import overlaps, rests
from plimsoll.results.places import names_of_databases
from plimsoll.results.rising import rising
from plimsoll.results.store import store_figures
from plimsoll.results.sustained import Beat, beats
from plimsoll.results.transfers import AllTransfers
from plimsoll.results.undisturbed import beats_outside, undisturbed
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS


class Measurements:
    """Questions to the samples and distributions of one run."""

    def __init__(
        self, run_folder: Path, outcome: Outcome, span_ns: tuple[int, int] | None = None
    ) -> None:
        self._outcome = outcome
        self._phases = [phase for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
        self._database = parquet.database()
        for table, name in (("sample", folder.SAMPLES), ("bucket", folder.HISTOGRAMS)):
            self._database.execute(
                f"CREATE TEMP TABLE {table} AS SELECT * FROM {parquet.rows_of(run_folder / name)}"
            )
        names = [phase.name for phase in self._phases]
        self._database.execute(
            "CREATE TEMP TABLE measured AS SELECT * FROM sample WHERE list_contains(?, phase)",
            [names],
        )
        self._names = names
        # Several figures of one metric are drawn.
        self._series: dict[tuple[str, int], list[Row]] = {}
        if span_ns is not None:
            self._cut_to(*span_ns)

    def _cut_to(self, first_ns: int, last_ns: int) -> None:
        """Keep what was measured wholly within a span.

        The measured time then begins and ends where these samples do.
        """
        span = [first_ns, last_ns]
        outside = "end_ns::BIGINT - interval_ns::BIGINT < ? OR end_ns::BIGINT > ?"
        self._database.execute(f"DELETE FROM measured WHERE {outside}", span)
        kept = self.ask(
            "SELECT min(end_ns - interval_ns)::BIGINT AS first, max(end_ns)::BIGINT AS last FROM "
            "measured"
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

    def ask(self, query: str, values: list[Any] | parquet.Values | None = None) -> list[Row]:
        """The rows of a query over the tables `sample`, `measured` and `bucket`."""
        cursor = self._database.execute(query, values or [])
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def machine(self, *kinds: str) -> dict[str, Level]:
        """What the machine did in the phases of some kinds."""
        return machine_levels(self.ask, [name for kind in kinds for name in self._phases_of(kind)])

    def counts_of(self, instance: str, phase: str, metrics: Sequence[str]) -> dict[str, int]:
        """How often each of some operations was done on an instance in a phase."""
        rows = self.ask(
            "SELECT metric, sum(count)::BIGINT AS count FROM sample WHERE instance = $instance"
            " AND phase = $phase AND list_contains($metrics, metric) GROUP BY metric",
            {"instance": instance, "phase": phase, "metrics": list(metrics)},
        )
        found = {row["metric"]: row["count"] for row in rows}
        return {metric: found.get(metric, 0) for metric in metrics}

    def ends_and_counts(self, phase: str, metric: str) -> list[tuple[int, int]]:
        """When each sample of a phase ended, and how often something happened."""
        rows = self.ask(
            "SELECT end_ns::BIGINT AS end_ns, sum(count)::BIGINT AS count FROM sample"
            " WHERE phase = $phase AND metric = $metric GROUP BY end_ns ORDER BY end_ns",
            {"phase": phase, "metric": metric},
        )
        return [(row["end_ns"], row["count"]) for row in rows]

    def backups(self, plan: Plan) -> list[BackupFigures]:
        """What was read for backups, in any phase."""
        return backups(self.ask, plan, self._outcome)

    def recoveries(self, plan: Plan) -> list[RecoveryFigures]:
        """What was replayed for recovery, in any phase."""
        return recoveries(self.ask, plan, self._outcome)

    def devices(self, kind: str) -> list[DeviceRates]:
        """What the disks under the instances did in the phases of a kind."""
        return device_rates(self.ask, self._outcome.devices, self._phases_of(kind))

    def overlaps(self, plan: Plan, events: Sequence[EventFigures]) -> dict[str, float]:
        """The share of the measured time that each load worked beside others.

        Empty where one load ran alone.
        """
        if len(plan.run.workloads) < 2:
            return {}
        running = {phase.name: phase.workloads for phase in plan.run.phases}
        uneven = [load.name for load in plan.run.workloads if rests(load)]
        return overlaps(self.load_rates(plan), self._phases, running, events, uneven)

    def array(self) -> ArrayReport | None:
        """What a modelled array counted by itself while it was measured last.

        Nothing on real storage.
        """
        counted = [phase.array for phase in self._phases if phase.array]
        return counted[-1] if counted else None

    def device_view(self, plan: Plan) -> list[DeviceView]:
        """What the engine and the disks below it counted of the same I/O while it was measured."""
        return device_view(self.ask, self._outcome.devices, self._names, _servers(plan))

    def hot_operations(self) -> dict[str, dict[str, int]]:
        """For each workload, its operations on records and how many of them met the hot set."""
        rows = self.ask(
            "SELECT workload, coalesce(sum(count) FILTER (metric = 'hot_operation'), 0)::BIGINT AS "
            "hot,"
            " coalesce(sum(count) FILTER (metric <> 'hot_operation'), 0)::BIGINT AS operations "
            "FROM measured"
            " WHERE metric IN ('delete', 'replace', 'read', 'hot_operation') GROUP BY workload"
        )
        return {row.pop("workload"): row for row in rows}

    def pages_corrected(self, instance: str, database: int) -> int | None:
        """Pages of a database that were read with one flipped bit under load."""
        return integrity.pages_corrected(self.ask, instance, database)

    def clock_gaps(self) -> ClockGaps:
        """How often and how long the run itself stood still while it was measured."""
        return integrity.clock_gaps(self.ask)

    def beats(self) -> list[list[Beat]]:
        """The samples of each measured phase, all places together."""
        return beats(self.ask, self._phases)

    def rising(self) -> list[RisingLatency]:
        """Places that became slower in every fifth of a measured phase."""
        return rising(self.ask, self._phases)

    def unfinished(self) -> list[UnfinishedIo]:
        """What was under way when the time of a measured phase was over, the longest of each place
        and purpose.
        """
        phases = self._outcome.phases
        ends = [
            (phase.end_ns, min((one.end_ns for one in phases[number:]), default=phase.end_ns))
            for number, phase in enumerate(phases, 1)
            if phase.kind in settings.MEASURED_KINDS
        ]
        found: dict[tuple[str, int, str], float] = {}
        for start_ns, end_ns in ends:
            for row in self.ask(
                "SELECT instance, database::INTEGER AS database, metric,"
                " max(latency_ns_max)::BIGINT AS longest_ns FROM sample"
                " WHERE phase = $phase AND metric IN ('database_read', 'log_write')"
                " AND count > 0 AND end_ns > $start AND end_ns <= $end GROUP BY ALL",
                {"phase": settings.BETWEEN_PHASES, "start": start_ns, "end": end_ns},
            ):
                place = (row["instance"], row["database"], row["metric"])
                found[place] = max(found.get(place, 0.0), row["longest_ns"] / NS_PER_MS)
        return [
            UnfinishedIo(instance=place[0], database=place[1], metric=place[2], latency_ms_max=ms)
            for place, ms in sorted(found.items())
        ]

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
        count = self.ask("SELECT count(DISTINCT end_ns) AS count FROM measured")[0]["count"]
        return Window(
            start_utc=utc_of(start_ns, self._outcome),
            end_utc=utc_of(end_ns, self._outcome),
            seconds=self.seconds,
            samples_count=count,
            published_interval_s=settings.limits()["sample_interval_s"],
            complete=bool(self._phases) and all(phase.complete for phase in self._phases),
        )

    @cached_property
    def transfers(self) -> AllTransfers:
        """The transfers of every database, of every log, and of all."""
        return AllTransfers(self.ask, self._phases, self.seconds)

    def _buckets(self, where: str, values: parquet.Values) -> list[tuple[int, int]]:
        """The distribution of some events over all measured phases.

        Upper bounds in ns and counts.
        """
        found: list[tuple[int, int]] = self._database.execute(
            f"SELECT upper_ns::BIGINT, sum(count)::BIGINT FROM bucket WHERE {where} AND "
            f"list_contains($phases, phase)"
            " AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
            {**values, "phases": self._names},
        ).fetchall()
        return found

    def _p99_ms(self, metric: str) -> float | None:
        return quantile_ms(self._buckets("metric = $metric", {"metric": metric}), QUANTILES["p99"])

    def buckets(self, metric: str, instance: str, database: int) -> list[tuple[float, int]]:
        """Upper bound in ms and count of each bucket of one distribution."""
        where = "metric = $metric AND instance = $instance AND database = $database"
        found = self._buckets(where, {"metric": metric, "instance": instance, "database": database})
        return [(upper_ns / NS_PER_MS, count) for upper_ns, count in found]

    def distribution(self, metrics: tuple[str, ...]) -> list[tuple[int, int]]:
        """Upper bound in ns and count of each bucket of some metrics together, all places and all
        measured phases.
        """
        return self._buckets("list_contains($metrics, metric)", {"metrics": list(metrics)})

    def series(self, metric: str, points_max: int) -> list[Row]:
        """Rate, latency and level of one metric over time, for each place, in at most so many equal
        spans.

        A span's mean is weighted by operations, and its `latency_ms_p99` is the highest p99 of its
        samples, so that no bad moment is averaged away however long the run was.
        """
        key = (metric, points_max)
        if key not in self._series:
            self._series[key] = self._spans(metric, points_max) if self._phases else []
        return self._series[key]

    def _spans(self, metric: str, points_max: int) -> list[Row]:
        width_ns = self._span_ns(points_max)
        return self.ask(
            # A sample belongs to the span that its middle lies in: the first of a phase is short,
            # because beats go on.
            "SELECT ((end_ns - interval_ns // 2 - $start - 1) // $width) * $width / 1e9 AS second, "
            "instance, database,"
            " sum(count) / (sum(interval_ns) / 1e9) AS per_s,"
            " CASE WHEN sum(count) > 0 THEN sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 END AS "
            "latency_ms_mean,"
            " CASE WHEN sum(count) > 0 THEN max(latency_ns_p99) / 1e6 END AS latency_ms_p99,"
            " sum(value * interval_ns) / sum(interval_ns) AS level FROM measured"
            " WHERE metric = $metric AND interval_ns > 0"
            " GROUP BY second, instance, database HAVING sum(interval_ns) * 4 >= $least"
            " ORDER BY instance, database, second",
            {
                "start": self._phases[0].start_ns,
                "width": width_ns,
                "metric": metric,
                "least": min(width_ns, self._usual_interval_ns),
            },
        )

    def span_s(self, points_max: int) -> float:
        """How long a span of `series` is."""
        return self._span_ns(points_max) / NS_PER_S if self._phases else 0.0

    def _span_ns(self, points_max: int) -> int:
        """The shortest whole number of usual samples that cuts the time into no more than so many
        spans.
        """
        whole_ns = self._phases[-1].end_ns - self._phases[0].start_ns
        usual_ns = self._usual_interval_ns
        return max(1, -(-whole_ns // (points_max * usual_ns))) * usual_ns

    @cached_property
    def _usual_interval_ns(self) -> int:
        row = self.ask("SELECT max(interval_ns)::BIGINT AS longest FROM measured")[0]
        return int(row["longest"] or NS_PER_S)

    def level(self, metric: str, instance: str) -> Level | None:
        """Mean, smallest and largest value of a level."""
        row = self.ask(
            "SELECT avg(value) AS mean, min(value) AS min, max(value) AS max FROM measured"
            " WHERE metric = ? AND instance = ?",
            [metric, instance],
        )[0]
        return None if row["mean"] is None else Level(**row)

    def stalls(self) -> StallLevel | None:
        """Page fault stalls per second of all instances.

        Mean, smallest and largest of a sample, and how many were higher than 0.

        A rest shorter than half a sample belongs to the sample before it.
        """
        row = self.ask(
            "SELECT sum(count) / sum(seconds) AS mean, min(count / seconds) AS min, max(count / "
            "seconds) AS max,"
            " count(*) AS samples_count, count(*) FILTER (WHERE count > 0) AS "
            "samples_above_zero_count FROM"
            " (SELECT sum(count) AS count, sum(seconds) AS seconds FROM"
            " (SELECT *, greatest(1, sum(whole::INTEGER) OVER (ORDER BY end_ns)) AS number FROM"
            " (SELECT end_ns, count, seconds, seconds * 2 >= max(seconds) OVER () AS whole FROM"
            " (SELECT end_ns, sum(count) AS count, max(interval_ns) / 1e9 AS seconds FROM measured"
            " WHERE metric = 'page_fault_stall' GROUP BY end_ns))) GROUP BY number)"
        )[0]
        return None if row["mean"] is None else StallLevel(**row)

    def grown_bytes(self, instance: str, database: int) -> int | None:
        """How much a database grew from the first to the last sample that counts."""
        row = self.ask(
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
        rows = self.ask(
            "SELECT sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 AS read_latency_ms_mean,"
            " sum(count) / $seconds AS reads_per_s, sum(bytes)::DOUBLE / sum(count) AS "
            "read_bytes_mean FROM sample"
            " WHERE metric = 'checksum' AND list_contains($phases, phase) HAVING sum(count) > 0",
            {"seconds": seconds, "phases": [phase.name for phase in passes]},
        )
        return ChecksumReads(**rows[0]) if rows else None

    def events(self, run_folder: Path, plan: Plan) -> list[EventFigures]:
        """How the loads answered the events of the run."""
        return event_figures(run_folder, plan, self._outcome, self.ask)

    def beats_outside(
        self, events: Sequence[EventFigures], measured: Sequence[Sequence[Beat]]
    ) -> list[list[Beat]]:
        """Those samples of the measured phases in which no event lasted."""
        return beats_outside(events, self._phases, measured)

    def undisturbed(self, plan: Plan, events: Sequence[EventFigures]) -> Undisturbed | None:
        """What was measured while no event lasted."""
        return undisturbed(events, self._phases, self.ask, names_of_databases(plan))

    def stages(self, workload: WorkloadSpec) -> list[StageFigures]:
        """What came of the stages of a load."""
        return stage_figures(workload, self._outcome, self.ask)

    def load_rates(self, plan: Plan) -> list[LoadRates]:
        """What every load completed in every sample of the run."""
        return [rates_of(load.name, self.ask) for load in plan.run.workloads]

    def seconds_of(self, plan: Plan) -> dict[str, float]:
        """How long each load was measured: the phases in which it runs, by its name."""
        running = {phase.name: phase.workloads for phase in plan.run.phases}
        return {
            load.name: sum(
                (phase.end_ns - phase.start_ns) / NS_PER_S
                for phase in self._phases
                if load.name in running[phase.name]
            )
            for load in plan.run.workloads
        }

    def files(self, plan: Plan) -> list[FilesFigures]:
        """Figures of the workloads on files."""
        return files_figures(plan, self.ask, self.seconds_of(plan), self._names)

    def homes(self, plan: Plan) -> list[HomesFigures]:
        """Figures of the workloads on home folders."""
        return homes_figures(plan, self.ask, self.seconds_of(plan), self._names, self._outcome)

    def iometer(self, plan: Plan) -> list[IometerRow]:
        """The results of workloads on files, as Iometer has them."""
        return iometer_rows(plan, self.ask, self._names)

    def dvdstore(self, plan: Plan) -> list[DvdStoreTable]:
        """The results of stores, as the driver of DVD Store has them."""
        return dvdstore_tables(plan, self.ask)

    def mail(self, plan: Plan, events: Sequence[EventFigures]) -> list[MailFigures]:
        """Figures of mail users."""
        seconds = self.seconds_of(plan)
        return mail_figures(plan, self.ask, seconds, self._names, self._outcome.devices, events)

    def store(self, plan: Plan, events: Sequence[EventFigures]) -> list[StoreFigures]:
        """Figures of the workloads on stores."""
        return store_figures(plan, self.ask, self.seconds_of(plan), self._names, events)

    def whole_ns(self) -> tuple[int, int]:
        """From the first to the last moment that was measured."""
        return (self._phases[0].start_ns, self._phases[-1].end_ns) if self._phases else (0, 0)

    def worst_sample_ns(self, metric: str, instance: str, database: int) -> tuple[int, int]:
        """The published interval with the highest mean latency."""
        return self.transfers.worst_interval_ns(metric, instance, database) or self.whole_ns()

    def splitter(self, plan: Plan) -> Splitter:
        """What splits the latencies of this run."""
        instances = plan.run.instances
        raw = frozenset(instance.name for instance in instances if instance.backend == "raw_files")
        return Splitter(self.ask, self._outcome.devices, raw, _servers(plan))

    def counted(self, metric: str, instance: str | None = None, *, whole_run: bool = False) -> int:
        """Events of a metric."""
        table = "sample" if whole_run else "measured"
        rows = self.ask(
            f"SELECT coalesce(sum(count), 0)::BIGINT AS count FROM {table}"
            " WHERE metric = $metric AND ($instance IS NULL OR instance = $instance)",
            {"metric": metric, "instance": instance},
        )
        return int(rows[0]["count"])

    def database_purposes(
        self, instance: str | None = None, database: int | None = None
    ) -> DatabasePurposes:
        """Transfers of a database, or of all, by purpose."""

        def of(name: str) -> Transfers:
            return self.transfers.of(name, instance, database)

        return DatabasePurposes(
            database_read=of("database_read"),
            database_write=of("database_write"),
            maintenance=of("maintenance"),
            database_read_with_maintenance=of("database_read_with_maintenance"),
        )

    def log_purposes(self, instance: str | None = None) -> LogPurposes:
        """Transfers of the log of an instance, or of all, by purpose."""
        database = None if instance is None else 0

        def of(name: str) -> Transfers:
            return self.transfers.of(name, instance, database)

        return LogPurposes(
            log_write=of("log_write"),
            log_read=of("log_read"),
            log_replication=of("log_replication"),
            log_read_with_replication=of("log_read_with_replication"),
        )

    def totals(self, errors_before: int = 0, hung_told: int = 0) -> Totals:
        """Figures of the whole run.

        Errors that were seen before it was cut off count, and I/O that was told to hang.
        """
        databases = self.database_purposes()
        errors = self.ask("SELECT coalesce(sum(errors), 0)::BIGINT AS errors FROM sample")[0][
            "errors"
        ]
        transactions = self._responses(
            "list_contains($metrics, metric)", {"metrics": list(OPERATIONS)}
        )
        return Totals(
            database_iops=databases["database_read"].per_s + databases["database_write"].per_s,
            transactions_per_s=transactions.per_s,
            **databases,
            **self.log_purposes(),
            transactions=transactions,
            errors_in_run=max(
                errors + errors_before, int(integrity.ended_by_an_operation(self._outcome))
            ),
            hung_in_run=max(self.counted("hung", whole_run=True), hung_told),
            missing_records=self.counted("missing_record"),
            write_conflicts=self.counted("write_conflict"),
        )

    def operations(self) -> list[OperationResponses]:
        """Response times of each kind of operation of each workload."""
        found = []
        for row in self.ask(
            "SELECT DISTINCT workload, metric FROM measured WHERE list_contains(?, metric) ORDER "
            "BY workload, metric",
            [list(OPERATIONS)],
        ):
            responses = self._responses("metric = $metric AND workload = $workload", row)
            found.append(
                OperationResponses(
                    workload=row["workload"], operation=row["metric"], **responses.given()
                )
            )
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
            **quantiles_ms(self._buckets(where, values), "response_ms"),
            response_ms_max=max_ns / NS_PER_MS if count else None,
        )

    def generator(self) -> Generator:
        """How the load generator itself did."""
        busy = levels(self.ask, "measured", ("executor_busy",), self._names)
        each = {number: level for (_, number), level in busy.items()}
        threads = [
            GeneratorThread(
                thread=item.thread,
                instances=item.instances,
                processor=item.processor,
                busy_mean=each[item.thread].mean if item.thread in each else None,
                busy_max=each[item.thread].max if item.thread in each else None,
            )
            for item in self._outcome.threads
        ]
        means = [item.busy_mean for item in threads if item.busy_mean is not None] or [
            each[0].mean if 0 in each else 0.0
        ]
        return Generator(
            executor_busy_mean=each[0].mean if 0 in each else None,
            executor_busy_max=each[0].max if 0 in each else None,
            reap_gap_ms_p99=self._p99_ms("reap_gap"),
            arrival_lag_ms_p99=self._p99_ms("arrival_lag"),
            threads=threads or ABSENT,
            threads_enough=threads_enough(means) or ABSENT,
        )


def _servers(plan: Plan) -> frozenset[str]:
    """The instances whose I/O their own server does, which nobody here counts."""
    return frozenset(
        instance.name
        for instance in plan.run.instances
        if isinstance(instance, MailInstance | StoreClientInstance)
    )


def threads_enough(busy: Sequence[float]) -> int | None:
    """How many threads would carry what these did, none of them busier than a generator should be.

    None where none was.

    Args:
        busy: of each thread the share of the time that it was at work.

    >>> threads_enough([0.97]), threads_enough([0.95, 0.4]), threads_enough([0.5, 0.5])
    (2, 3, None)
    """
    if max(busy) <= settings.THREAD_BUSY_MAX:
        return None
    return max(len(busy) + 1, math.ceil(sum(busy) / settings.THREAD_BUSY_WANTED))


def utc_of(monotonic_ns: int | None, outcome: Outcome) -> str | None:
    """A monotonic time as UTC, by the last anchor before it."""
    if monotonic_ns is None:
        return None
    anchors = outcome.anchors
    before = [anchor for anchor in anchors if anchor.monotonic_ns <= monotonic_ns] or anchors[:1]
    utc_ns = before[-1].utc_ns + monotonic_ns - before[-1].monotonic_ns
    return datetime.fromtimestamp(utc_ns / NS_PER_S, UTC).isoformat(timespec="milliseconds")
