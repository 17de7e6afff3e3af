"""From samples and distributions to `summary.json`: every figure per database and in total.

Means are weighted by operations. Beside them stands what the published test tool computed: the
plain mean of the means of fixed intervals, empty intervals counted as zero. A rest shorter than
half such an interval belongs to the interval before it: one slow transfer in the last millisecond
of a run is no sample of its own. Percentiles come from the merged distributions, not from samples.
Only phases of the kinds `measure` and `generate_logs` count; the whole run is looked at for errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plimsoll import settings
from plimsoll.documents.content import Content
from plimsoll.documents.document import ABSENT
from plimsoll.documents.drive_health import DriveHealth, DriveHealthFile
from plimsoll.documents.figures import (
    DatabaseFigures,
    InstanceFigures,
    OperationResponses,
    Totals,
    Window,
)
from plimsoll.documents.latency_split import DeviceUse, StallSplit, TimeSplit, TransactionSplit
from plimsoll.documents.log_check import LogCheckFigures, LogCheckFile
from plimsoll.documents.outcome import DatabaseState, Outcome, PhaseOutcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import EngineInstance, RecordsInstance
from plimsoll.documents.summary import (
    ChecksumFigures,
    DeviceErrors,
    DeviceErrorsFile,
    Gaps,
    Generator,
    IoFigures,
    KernelLog,
    KernelLogFile,
    PhaseFigures,
    StoreAudit,
    Summary,
)
from plimsoll.files import folder
from plimsoll.plan.load import has_stages
from plimsoll.results import counters
from plimsoll.results.audits import audits_of
from plimsoll.results.backup_recovery import backup_total, restores
from plimsoll.results.endpoints import endpoint_figures
from plimsoll.results.homes import homes_audits
from plimsoll.results.integrity import data_loss, hung_told
from plimsoll.results.latency_breakdown import Place, split_run, split_stalls
from plimsoll.results.load import load_figures
from plimsoll.results.log_space import log_space
from plimsoll.results.mail import mail_audits
from plimsoll.results.measurements import Measurements, utc_of
from plimsoll.results.places import database_name
from plimsoll.results.rate_steps import plateaus
from plimsoll.results.servers import server_usage
from plimsoll.results.steady_state import conditioning
from plimsoll.results.store import store_audits, stores_at_risk
from plimsoll.results.sustained import Beat, stand_still, sustained_rate
from plimsoll.results.transfers import DATABASE_FIGURES, LOG_FIGURES
from plimsoll.results.windows import load_windows
from plimsoll.units import NS_PER_S
from plimsoll.workloads.families import OPERATIONS

SCHEMA_VERSION: Literal[1] = 1


def summarize(run_folder: Path) -> Summary:
    """Compute the summary of a run from the files of its folder.

    Raises:
        FolderError: a file is missing or damaged.
    """
    plan, outcome = Plan.read(run_folder / folder.PLAN), Outcome.read(run_folder / folder.OUTCOME)
    if not (run_folder / folder.SAMPLES).is_file():
        raise folder.FolderError(
            f"{run_folder / folder.SAMPLES} is missing; the run was cut off before it measured"
        )
    if not (run_folder / folder.HISTOGRAMS).is_file():
        raise folder.FolderError(
            f"{run_folder / folder.HISTOGRAMS} is missing; it was deleted or not copied: bring it "
            "back from where the run was carried out"
        )
    checksums = _checksums(plan, outcome)
    gaps = Gaps.read(run_folder / folder.GAPS).gaps if (run_folder / folder.GAPS).exists() else ()
    with Measurements(run_folder, outcome) as measured:
        databases = _databases(plan, outcome, measured)
        backed_up, devices, splits, transactions, stalls = (
            measured.backups(plan),
            *_time_splits(plan, outcome, measured),
        )
        total = measured.totals(sum(gap.errors_before for gap in gaps), hung_told(run_folder))
        # A rate that stages change is not held against itself.
        is_staged = any(has_stages(workload) for workload in plan.run.workloads)
        phases = measured.beats()
        of_one_rate = [] if is_staged else phases
        events = measured.events(run_folder, plan)
        return Summary(
            schema_version=SCHEMA_VERSION,
            name=plan.name,
            ending=outcome.ending,
            error=outcome.error,
            window=measured.window(),
            # An error does not go away with the process that saw it.
            total=_with_sizes(total, databases, checksums),
            databases=databases,
            instances=_instances(plan, measured),
            operations=measured.operations(),
            generator=measured.generator(),
            page_fault_stalls=measured.stalls(),
            load=load_figures(
                plan, outcome, measured.ask, measured.stages, measured.seconds_of(plan)
            ),
            files=measured.files(plan) or ABSENT,
            homes=measured.homes(plan) or ABSENT,
            homes_audits=homes_audits(plan, outcome) or ABSENT,
            events=events or ABSENT,
            undisturbed=measured.undisturbed(plan, events) or ABSENT,
            records_audits=audits_of(plan, outcome, (RecordsInstance,), StoreAudit) or ABSENT,
            overlaps=measured.overlaps(plan, events) or ABSENT,
            load_windows=load_windows(plan, measured.ask, events) or ABSENT,
            servers=server_usage(run_folder, outcome) or ABSENT,
            endpoints=endpoint_figures(plan, measured.ask) or ABSENT,
            store=measured.store(plan, events) or ABSENT,
            store_audits=store_audits(plan, outcome) or ABSENT,
            stores_at_risk=stores_at_risk(plan, outcome) or ABSENT,
            mail=measured.mail(plan, events) or ABSENT,
            mail_audits=mail_audits(plan, outcome) or ABSENT,
            log_space=log_space(run_folder, plan, measured.ask) or ABSENT,
            machine=measured.machine(*settings.MEASURED_KINDS),
            backup_machine=measured.machine("backup"),
            recovery_machine=measured.machine("recover"),
            counters=counters.averages(run_folder, measured.ask),
            device_view=measured.device_view(plan),
            # What an event slows is its answer, and no burst of the storage before it.
            plateaus=plateaus(measured.beats_outside(events, of_one_rate)),
            sustained=sustained_rate(of_one_rate, total.database_iops) or ABSENT,
            stand_still=stand_still(phases) or ABSENT,
            unfinished=measured.unfinished() or ABSENT,
            rising=() if is_staged else measured.rising() or ABSENT,
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
            restores=restores(plan, outcome) or ABSENT,
            recoveries=measured.recoveries(plan),
            kernel_log=_kernel_log(run_folder),
            device_errors=_device_errors(run_folder),
            log_check=_log_check(run_folder),
            drive_health=_drive_health(run_folder),
            gaps=gaps,
            phases=[_phase(phase, outcome) for phase in outcome.phases],
            # Runs before there was a choice say nothing.
            io=IoFigures(
                method=outcome.io_method,
                remarks=outcome.io_remarks,
                choices=outcome.io_choices or ABSENT,
            ),
            debug_build=outcome.debug_build,
            virtual_time=outcome.virtual_time,
            array=measured.array() or ABSENT,
            clock_gaps=measured.clock_gaps(),
            data_loss=data_loss(outcome),
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
    beats: list[list[Beat]]
    distributions: dict[str, list[tuple[int, int]]]


def figures_within(run_folder: Path, span_ns: tuple[int, int]) -> WindowFigures:
    """The figures of a run in a span of its own clock, under the names of the summary, with the
    distributions behind them.

    Rates, means and highest values are those of the samples wholly within the span; a distribution,
    and with it every percentile, is of all that was measured, because distributions are kept for
    each phase.
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
            beats=measured.beats(),
            distributions={
                name: measured.distribution(tuple(metrics)) for name, metrics in figures.items()
            },
        )


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


def _drive_health(run_folder: Path) -> Sequence[DriveHealth]:
    """What the run did to its drives; left out where none of them told anything."""
    path = run_folder / folder.DRIVE_HEALTH
    return DriveHealthFile.read(path).drives if path.exists() else ABSENT


def _log_check(run_folder: Path) -> Sequence[LogCheckFigures]:
    """What was found beside the databases.

    Left out where nobody looked, as in runs of earlier versions.
    """
    path = run_folder / folder.LOG_CHECK
    return LogCheckFile.read(path).instances if path.exists() else ABSENT


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
        start_utc=utc_of(phase.start_ns, outcome),
        seconds=(phase.end_ns - phase.start_ns) / NS_PER_S,
        complete=phase.complete,
    )


def _sizes(outcome: Outcome, kind: str, index: int, number: int) -> DatabaseState | None:
    """The state of a database at the end of the last phase of a kind."""
    for phase in reversed(outcome.phases):
        # Where the cluster stopped, instances of a dead node are open no more.
        if phase.kind == kind and index < len(phase.databases) and phase.databases[index]:
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
            figures = measured.database_purposes(instance.name, number)
            found.append(
                DatabaseFigures(
                    name=database_name(instance, number),
                    instance=instance.name,
                    database=number,
                    path=str(Path(instance.directory) / instance.databases[number - 1].file_name),
                    initial_bytes=before.size_bytes if before else None,
                    final_bytes=after.size_bytes if after else None,
                    grown_bytes_measured=measured.grown_bytes(instance.name, number),
                    pages_corrected=known_or_absent(
                        measured.pages_corrected(instance.name, number)
                    ),
                    iops=figures["database_read"].per_s + figures["database_write"].per_s,
                    **figures,
                )
            )
    return found


def _instances(plan: Plan, measured: Measurements) -> list[InstanceFigures]:
    found = []
    for instance in plan.run.instances:
        name = instance.name
        stalls = measured.counted("page_fault_stall", name)
        found.append(
            InstanceFigures(
                name=name,
                log_directory=instance.log_directory,
                **measured.log_purposes(name),
                page_fault_stalls_count=stalls,
                page_fault_stalls_per_s=stalls / measured.seconds if measured.seconds else None,
                cache_used_bytes=measured.level("cache_used", name),
                cache_limit_bytes=instance.cache_bytes_max
                if isinstance(instance, EngineInstance)
                else 0,
                in_flight=measured.level("in_flight", name),
            )
        )
    return found


def _checksums(plan: Plan, outcome: Outcome) -> list[ChecksumFigures]:
    found = []
    for phase in outcome.phases:
        for checksum in phase.checksums:
            instance = plan.run.instances[checksum.instance]
            name = database_name(instance, checksum.database)
            found.append(
                ChecksumFigures(**{**checksum.given(), "name": name, "instance": instance.name})
            )
    return found


def _time_splits(
    plan: Plan, outcome: Outcome, measured: Measurements
) -> tuple[list[DeviceUse], list[TimeSplit], list[TransactionSplit], list[StallSplit]]:
    """Where the time of I/O, of transactions and of the longest of them went, and what the devices
    did.
    """
    places = []
    for instance in plan.run.instances:
        places.append(Place(instance.name, instance.name, 0, "log_write"))
        for number in range(1, len(instance.databases) + 1):
            places.append(
                Place(database_name(instance, number), instance.name, number, "database_read")
            )
    splitter = measured.splitter(plan)
    names = [instance.name for instance in plan.run.instances]
    measured_phases = {
        number
        for number, phase in enumerate(outcome.phases)
        if phase.kind in settings.MEASURED_KINDS
    }
    stalls = [stall for stall in outcome.stalls if stall.phase in measured_phases]
    devices, splits, transactions = split_run(
        splitter, places, names, measured.whole_ns(), measured.worst_sample_ns
    )
    return (
        devices,
        splits,
        transactions,
        split_stalls(splitter, stalls, names, lambda time_ns: utc_of(time_ns, outcome)),
    )


def _with_sizes(
    totals: Totals, databases: Sequence[DatabaseFigures], checksums: Sequence[ChecksumFigures]
) -> Totals:
    """The totals with the sizes of all databases, and what the checksum passes found in all of
    them.
    """
    initial = sum_of_known([database.initial_bytes for database in databases])
    final = sum_of_known([database.final_bytes for database in databases])
    return totals.replace(
        initial_bytes=initial,
        final_bytes=final,
        grown_bytes=final - initial if final is not None and initial is not None else None,
        pages_verified=sum(item.pages_seen for item in checksums) if checksums else None,
        pages_damaged=sum(
            item.bad + item.correctable + item.wrong_page_number for item in checksums
        )
        if checksums
        else None,
        pages_corrected=known_or_absent(
            sum_of_known([database.pages_corrected for database in databases])
        ),
    )


def known_or_absent(value: int | None) -> int | None:
    """A value that runs of earlier versions do not have; their summaries keep their keys."""
    return ABSENT if value is None else value


def sum_of_known(values: Sequence[int | None]) -> int | None:
    """A sum that is not known as long as a part of it is not."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
