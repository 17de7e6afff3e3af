"""What a run read for backups and replayed for recovery, wherever either happened in it.

Times, sizes and counts of logs are those the engine states in the outcome; reads and writes come
from the samples. A run whose outcome says nothing of them has the times of its samples, as coarse
as those are. Seconds for each log stand beside MiB per second, because a published count of logs
has been seen to disagree with its bytes by a factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.backup_figures import (
    BackupFigures,
    BackupTotal,
    RecoveryFigures,
    RestoreFigures,
)
from plimsoll.documents.document import ABSENT
from plimsoll.documents.outcome import Outcome, RecoveryResult
from plimsoll.documents.phase_actions import Restore
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import EngineInstance
from plimsoll.documents.summary import AnySummary
from plimsoll.files.parquet import Query, Row

MIB = 1048576

_SPAN = "(max(end_ns) - min(end_ns - interval_ns)) / 1e9"


def backups(query: Query, plan: Plan, outcome: Outcome) -> list[BackupFigures]:
    """Size, time and rate of the backup of each database."""
    rows = query(
        f"SELECT phase, instance, database, sum(bytes)::BIGINT AS bytes, {_SPAN} AS seconds, "
        f"sum(count)::BIGINT AS reads_count,"
        " sum(latency_ns_sum)::DOUBLE / 1e9 AS read_s FROM sample"
        " WHERE metric = 'backup' AND count > 0 GROUP BY phase, instance, database ORDER BY phase, "
        "instance, database",
        {},
    )
    names = [instance.name for instance in plan.run.instances]
    stated = {
        (phase.name, names[item.instance], item.database): item
        for phase in outcome.phases
        for item in phase.backups
    }
    found = []
    for row in rows:
        exact = stated.get((row["phase"], row["instance"], row["database"]))
        seconds, size = (exact.seconds, exact.bytes) if exact else (row["seconds"], row["bytes"])
        found.append(
            BackupFigures(
                phase=row["phase"],
                instance=row["instance"],
                database=row["database"],
                bytes=size,
                seconds=seconds,
                reads_count=row["reads_count"],
                pages_count=exact.pages_count if exact else None,
                correctable=exact.correctable if exact else None,
                headers_bad=exact.headers_bad if exact else None,
                mib_per_s=size / MIB / seconds,
                read_latency_ms_mean=1000 * row["read_s"] / row["reads_count"],
                outstanding_mean=row["read_s"] / seconds,
            )
        )
    return found


def backup_total(found: Sequence[BackupFigures]) -> BackupTotal | None:
    """All databases of the server together.

    They are read at the same time, so their rates add up.
    """
    if not found:
        return None
    seconds: dict[str, float] = {}
    for row in found:
        seconds[row.phase] = max(seconds.get(row.phase, 0.0), row.seconds)
    size = sum(row.bytes for row in found)
    return BackupTotal(
        databases_count=len({(row.instance, row.database) for row in found}),
        bytes=size,
        seconds=sum(seconds.values()),
        mib_per_s_sum=sum(row.mib_per_s for row in found) / len(seconds),
        mib_per_s_mean=sum(row.mib_per_s for row in found) / len(found),
        mib_per_s_wall=size / MIB / sum(seconds.values()),
    )


def restores(plan: Plan, outcome: Outcome) -> list[RestoreFigures]:
    """What became of the backups that were kept, by instance."""
    actions = {phase.name: phase.action for phase in plan.run.phases}
    found = []
    for phase in outcome.phases:
        action = actions.get(phase.name)
        if not isinstance(action, Restore):
            continue
        for item in phase.restores:
            kept = [
                backup
                for earlier in outcome.phases
                for backup in earlier.backups
                if backup.instance == item.instance and backup.kept_at is not None
            ]
            instance = plan.run.instances[item.instance]
            pages_count = sum(database.pages_seen for database in item.databases)
            found.append(
                RestoreFigures(
                    instance=instance.name,
                    kept_in=_place_of(action, instance.directory),
                    bytes=sum(backup.bytes for backup in kept)
                    or pages_count
                    * (instance.page_bytes if isinstance(instance, EngineInstance) else 0),
                    databases_count=len(item.databases),
                    logs_count=item.logs_count,
                    rolled_back=item.rolled_back,
                    recovery_seconds=item.recovery_seconds,
                    seconds=item.seconds,
                    pages_count=pages_count,
                    findings=item.findings(),
                    is_clone=action.clones is not None or ABSENT,
                )
            )
    return found


def _place_of(action: Restore, directory: str) -> str:
    """Where the copies are: the folder of the backup, or the clone of a directory."""
    if action.clones is None:
        return action.from_ or ""
    nearest = max(
        (clone for clone in action.clones if Path(directory).is_relative_to(clone.of)),
        key=lambda clone: len(Path(clone.of).parts),
        default=None,
    )
    if nearest is None:
        return ""
    return str(Path(nearest.at) / Path(directory).relative_to(nearest.of))


def recoveries(query: Query, plan: Plan, outcome: Outcome) -> list[RecoveryFigures]:
    """Logs, time, rate, reads and writes of each instance that was recovered."""
    rows = query(
        f"SELECT instance, phase, coalesce(sum(bytes) FILTER (metric = 'log_read'), 0)::BIGINT AS "
        f"log_read_bytes, {_SPAN} AS seconds,"
        " coalesce(sum(count) FILTER (metric = 'log_read'), 0)::BIGINT AS log_reads_count,"
        " coalesce(sum(count) FILTER (metric = 'redo'), 0)::BIGINT AS reads_count,"
        " coalesce(sum(bytes) FILTER (metric = 'redo'), 0)::BIGINT AS read_bytes,"
        " coalesce(sum(latency_ns_sum) FILTER (metric = 'redo'), 0)::DOUBLE / 1e9 AS read_s,"
        " coalesce(sum(count) FILTER (metric = 'redo_write'), 0)::BIGINT AS writes_count FROM "
        "sample"
        " WHERE metric IN ('log_read', 'redo', 'redo_write') AND count > 0 GROUP BY instance, "
        "phase ORDER BY instance, phase",
        {},
    )
    names = [instance.name for instance in plan.run.instances]
    stated: dict[tuple[str, str], RecoveryResult] = {}
    for phase in outcome.phases:
        taken_over = [item.recovery for item in phase.failovers if item.recovery is not None]
        for item in (*phase.recoveries, *taken_over):
            place = (phase.name, names[item.instance])
            stated[place] = _with(item, stated.get(place))
    generated = _seconds_per_log_generated(plan, outcome)
    restoring = [phase.name for phase in plan.run.phases if isinstance(phase.action, Restore)]
    found = []
    for row in rows:
        exact = stated.get((row["phase"], row["instance"]))
        # Log is also read for other reasons, and the copies of a backup are recovered too; only
        # what was replayed for the databases themselves is a recovery.
        if exact or (row["reads_count"] and row["phase"] not in restoring):
            found.append(_recovery(plan, row, exact, generated))
    return found


def _with(later: RecoveryResult, earlier: RecoveryResult | None) -> RecoveryResult:
    """Two recoveries of one instance as one: its node died, and then the survivor."""
    if earlier is None:
        return later
    return later.replace(
        seconds=earlier.seconds + later.seconds,
        logs_count=earlier.logs_count + later.logs_count,
        log_bytes=earlier.log_bytes + later.log_bytes,
        generation_first=earlier.generation_first,
        changes_made=earlier.changes_made + later.changes_made,
        changes_found=earlier.changes_found + later.changes_found,
        rolled_back=earlier.rolled_back + later.rolled_back,
    )


def _recovery(
    plan: Plan, row: Row, exact: RecoveryResult | None, generated_s: float | None
) -> RecoveryFigures:
    seconds = exact.seconds if exact else row["seconds"]
    log_bytes = exact.log_bytes if exact else row["log_read_bytes"]
    logs = exact.logs_count if exact else log_bytes / MIB
    page_bytes = next(
        item.page_bytes for item in plan.run.engine_instances if item.name == row["instance"]
    )
    per_log = seconds / logs if logs else None

    def each(count: float) -> float | None:
        return count / logs if logs else None

    return RecoveryFigures(
        instance=row["instance"],
        phase=row["phase"],
        logs_count=logs,
        log_bytes=log_bytes,
        seconds=seconds,
        seconds_per_log=per_log,
        mib_per_s=log_bytes / MIB / seconds if seconds else None,
        reads_per_log=each(row["reads_count"]),
        pages_read_per_log=each(row["read_bytes"] / page_bytes),
        writes_per_log=each(row["writes_count"]),
        log_reads_per_log=each(row["log_reads_count"]),
        reads_count=row["reads_count"],
        writes_count=row["writes_count"],
        read_bytes_mean=row["read_bytes"] / row["reads_count"] if row["reads_count"] else None,
        read_latency_ms_mean=1000 * row["read_s"] / row["reads_count"]
        if row["reads_count"]
        else None,
        outstanding_mean=row["read_s"] / seconds if seconds else None,
        changes_made=exact.changes_made if exact else None,
        changes_found=exact.changes_found if exact else None,
        rolled_back=exact.rolled_back if exact else None,
        generated_seconds_per_log=generated_s,
        faster_than_generated=generated_s / per_log if generated_s and per_log else None,
    )


def _seconds_per_log_generated(plan: Plan, outcome: Outcome) -> float | None:
    """How long a log took while it was written under load, in a run that generated a number of
    them.
    """
    wanted = {phase.name: getattr(phase.action, "logs_count", 0) for phase in plan.run.phases}
    spans = [
        (phase.end_ns - phase.start_ns, wanted[phase.name])
        for phase in outcome.phases
        if phase.kind == "generate_logs" and phase.complete and wanted.get(phase.name)
    ]
    logs = sum(count for _, count in spans)
    return sum(span for span, _ in spans) / 1e9 / logs if logs else None


def _restored_in_words(restored: Sequence[RestoreFigures]) -> list[str]:
    """One sentence for all copies that were restored."""
    if not restored:
        return []
    findings = sum(len(item.findings) for item in restored)
    judged = f"{findings} findings" if findings else "every page is sound"
    databases = sum(item.databases_count for item in restored)
    copies = "1 database" if databases == 1 else f"{databases} databases"
    longest_s = max(item.recovery_seconds for item in restored)
    return [
        f"copy of {copies} restored from {restored[0].kept_in}: "
        f"{sum(item.logs_count for item in restored)} logs replayed in {longest_s:.1f} s, {judged}"
    ]


def in_words(summary: AnySummary) -> list[str]:
    """One sentence for the backup of all databases and one for each recovery."""
    lines = []
    total = summary.backup_total
    if total:
        several = total.databases_count > 1
        each = (
            f" ({total.mib_per_s_mean:.1f} MiB/s for each of {total.databases_count} databases)"
            if several
            else ""
        )
        lines.append(
            f"backup: {total.bytes / MIB:,.0f} MiB read at {total.mib_per_s_sum:.1f} MiB/s{each}"
        )
    lines += _restored_in_words(summary.restores)
    for found in summary.recoveries:
        if found.seconds_per_log is None or found.pages_read_per_log is None:
            continue
        line = (
            f"recovery of {found.instance}: {found.logs_count:.0f} logs in {found.seconds:.1f} s, "
            f"{found.seconds_per_log:.3g} s for each ({found.mib_per_s:.3g} MiB/s); for each log "
            f"{found.pages_read_per_log:.0f} pages read, {found.writes_per_log:.3g} writes"
        )
        if found.faster_than_generated:
            line += f"; {found.faster_than_generated:.3g} times as fast as it was generated"
        lines.append(line)
    return lines
