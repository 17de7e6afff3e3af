"""The test log: what happened when, in the order that published test logs have.

Preparation and caches, the thresholds that the verdict will use, the mix, the prerequisite with its
bound in bytes, the beginning and the end of what is measured, what each instance did, the
shutdown, how many samples there are, a line for each result, the progress of the checksum on each
volume, and that the report was saved. What the run itself told stands word for word; the lines
between are taken from plan, outcome, summary and verdict, each at the time of the phase it belongs
to. Source of the order: the test logs in the appendices of the EMC VNXe3300 report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll import settings
from plimsoll.documents.event import read_events
from plimsoll.documents.outcome import Outcome, PhaseOutcome
from plimsoll.documents.phase_actions import WarmUp
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import RecordsInstance
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Verdict, read_verdict
from plimsoll.files import folder
from plimsoll.pages.tables import Table
from plimsoll.results.measurements import Measurements
from plimsoll.units import NS_PER_S
from plimsoll.verdict.text import WORDS

#: Operations that a session makes of the records; their counts are an instance's transactions.
OPERATIONS = ("insert", "delete", "replace", "read")
#: A checksum pass is told of at most so many times for each volume.
PROGRESS_STEPS = 10


@dataclass(frozen=True)
class LogLine:
    """One line: when in the run, in which phase, and what happened."""

    time_ns: int
    phase: str
    text: str


def log_table(lines: Sequence[LogLine]) -> Table:
    """The log as the report shows it."""
    rows = [[f"{line.time_ns / NS_PER_S:.1f}", line.phase, line.text] for line in lines]
    return Table("Test log", ["Second", "Phase", "What happened"], rows)


def log_lines(
    plan: Plan,
    summary: Summary,
    verdict: Verdict,
    outcome: Outcome,
    measured: Measurements,
    told: Sequence[LogLine],
) -> list[LogLine]:
    """Every line, in order of time.

    Args:
        plan: the completed plan.
        summary: its figures.
        verdict: its result.
        outcome: its phases with their times.
        measured: its samples.
        told: what the run itself told, as from `told_by`.
    """
    lines = [*told, *_before(plan, outcome), *_measured(plan, outcome, measured)]
    lines += _checksum_progress(summary, outcome, measured)
    lines.sort(key=lambda line: line.time_ns)
    end_ns = max([line.time_ns for line in lines], default=0)
    return [*lines, *_results(plan, summary, verdict, end_ns)]


def lines_of_folder(run_folder: Path) -> list[LogLine]:
    """The log of a run folder.

    Raises:
        FolderError: an earlier stage's file is missing.
    """
    outcome = Outcome.read(run_folder / folder.OUTCOME)
    with Measurements(run_folder, outcome) as measured:
        return log_lines(
            Plan.read(run_folder / folder.PLAN),
            Summary.read(run_folder / folder.SUMMARY),
            read_verdict(run_folder / folder.VERDICT),
            outcome,
            measured,
            told_by(run_folder),
        )


def told_by(run_folder: Path) -> list[LogLine]:
    """What a run told while it went on, word for word; what is no news is marked.

    Raises:
        FolderError: there are too many events to be kept in memory.
    """
    lines = []
    for event in read_events(run_folder):
        mark = "" if event.level == "info" else f"{event.level.upper()}: "
        lines.append(LogLine(event.time_ns, event.phase or "", f"{mark}{event.text}"))
    return lines


def _before(plan: Plan, outcome: Outcome) -> Iterator[LogLine]:
    """The thresholds when the load begins, and what must hold before anything is collected."""
    loads = [phase for phase in outcome.phases if phase.kind in ("warm_up", "measure")]
    if loads:
        yield LogLine(loads[0].start_ns, loads[0].name, _thresholds(plan.judgement.limits))
    shares = {
        phase.name: phase.action.cache_percent
        for phase in plan.run.phases
        if isinstance(phase.action, WarmUp) and phase.action.cache_percent
    }
    for phase in outcome.phases:
        if phase.name in shares:
            for instance in _with_cache(plan.run.record_instances):
                bound = instance.cache_bytes_max * shares[phase.name] // 100
                text = (
                    f"attaining prerequisites: the cache of {instance.name} holds at least "
                    f"{bound:,} bytes ({shares[phase.name]} % of {instance.cache_bytes_max:,}), no "
                    f"upper bound"
                )
                yield LogLine(phase.start_ns, phase.name, text)


def _with_cache(instances: Sequence[RecordsInstance]) -> list[RecordsInstance]:
    return [instance for instance in instances if instance.cache_bytes_max]


def _thresholds(limit_set: str) -> str:
    """The limits on latencies of a set, in the order of the data."""
    rules = [rule for rule in settings.limits()["check"] if rule["unit"] == "ms"]
    found = [
        f"{rule['title'][0].lower()}{rule['title'][1:]} {rule['limit'][limit_set]:g} ms"
        for rule in rules
        if limit_set in rule["limit"]
    ]
    return f"thresholds ({limit_set}): {', '.join(found) or 'none on latencies'}"


def _measured(plan: Plan, outcome: Outcome, measured: Measurements) -> Iterator[LogLine]:
    """When collecting began and ended, and what each instance did meanwhile."""
    interval_s = plan.run.sample_interval_ms / 1000
    phases = [phase for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
    for phase in phases:
        yield LogLine(
            phase.start_ns, phase.name, f"collecting begins: a sample every {interval_s:g} s"
        )
        yield LogLine(phase.end_ns, phase.name, "collecting ends")
        for instance in plan.run.instances:
            counted = measured.counts_of(instance.name, phase.name, OPERATIONS)
            if sum(counted.values()):
                each = ", ".join(f"{name} {count:,}" for name, count in counted.items())
                text = f"{instance.name}: {sum(counted.values()):,} transactions ({each})"
                yield LogLine(phase.end_ns, phase.name, text)


def _checksum_progress(
    summary: Summary, outcome: Outcome, measured: Measurements
) -> Iterator[LogLine]:
    """How far the checksum came, tenth by tenth; the run itself tells of each database that is
    done, with its volume.
    """
    pages = sum(item.pages_seen for item in summary.checksums)
    for phase in outcome.phases:
        if phase.kind == "checksum":
            yield from _steps(phase, measured.ends_and_counts(phase.name, "checksum"), pages)


def _steps(phase: PhaseOutcome, series: Sequence[tuple[int, int]], pages: int) -> Iterator[LogLine]:
    """A line whenever a further tenth of all reads is done."""
    whole, done, step = sum(count for _, count in series), 0, 0
    for end_ns, count in series:
        done += count
        now = PROGRESS_STEPS * done // whole if whole else 0
        if now > step:
            step = now
            text = f"checksum: {100 * step // PROGRESS_STEPS} % of {pages:,} pages read"
            yield LogLine(end_ns, phase.name, text)


def _results(plan: Plan, summary: Summary, verdict: Verdict, end_ns: int) -> Iterator[LogLine]:
    """Samples, a line for each check in the order of the places, and the end."""
    count, seconds = summary.window.samples_count, summary.window.seconds
    if count:
        interval = plan.run.sample_interval_ms / 1000
        yield LogLine(
            end_ns, "", f"{count:,} samples of {interval:g} s cover {seconds:,.0f} s that count"
        )
    order: dict[str, list[Check]] = {}
    for check in verdict.checks:
        order.setdefault(check.scope, []).append(check)
    for scope, checks in order.items():
        for check in checks:
            word = check.predicted or WORDS[check.status]
            yield LogLine(end_ns, "", f"{scope}: {check.title}: {check.reason}: {word}")
    yield LogLine(end_ns, "", f"result: {verdict.headline}")
    yield LogLine(end_ns, "", "report saved: report.html")
