"""Carries out a plan: opens the native door, and writes what comes out of it into the run folder.

The Rust side measures on a thread of its own; here samples become
Parquet and events become lines, while a signal asks for a clean stop. Nothing is timed here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import duckdb
import numpy as np

from plimsoll import _native
from plimsoll.databases.other_runs import OtherRuns
from plimsoll.documents.document import ABSENT
from plimsoll.documents.environment import DiskHealth
from plimsoll.documents.event import Event
from plimsoll.documents.outcome import Outcome, Points
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import RunSpec
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder, parquet
from plimsoll.files.parquet import Columns
from plimsoll.host import error_counters, smart
from plimsoll.host.environment import collect
from plimsoll.host.kernel_log import KernelLog, disks_of
from plimsoll.host.nvme import DriveWatch
from plimsoll.live.listener import Answer, Asked, RaisedError
from plimsoll.live.sample_names import names_of_codes
from plimsoll.run.log_check import check_logs
from plimsoll.run.reduction_sample import measure_content
from plimsoll.run.resume import began_with
from plimsoll.run.server_watch import ServerWatch, watched_servers
from plimsoll.run.staging import Stage, targets_of
from plimsoll.units import NS_PER_S
from plimsoll.workloads.mail.fields import is_storage

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
POLL_S = 0.5
#: Samples are put aside in files this often, so that a crash loses little and memory stays small.
ROWS_PER_PART = 20_000


class RunFolderLostError(folder.FolderError):
    """The run folder could not be written any more.

    The run was stopped and its databases closed. `outcome` says how that went.
    """

    def __init__(self, run_folder: Path, error: Exception, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(
            f"{run_folder} cannot be written: {system_reason(error)}; the run was stopped. What it "
            "measured up to then is lost where it could not be written; free space or name another "
            "folder with --out, and run again"
        )


Listener = Callable[[Event], None]
#: An event, and its line in the log.
Told = tuple[Event, str]
#: Told of each batch of samples; answers why the run should stop, or None.
Watcher = Callable[[Columns], str | None]


def run_plan(
    plan: Plan,
    run_folder: Path,
    on_event: Listener,
    on_sample: Watcher,
    first_events: Sequence[Event] = (),
    stop: threading.Event | None = None,
    is_confirmed: Callable[[], bool] | None = None,
) -> Outcome:
    """Carry out a completed plan and fill its run folder up to `outcome.json`.

    Args:
        plan: as from `plimsoll.plan`.
        run_folder: an empty folder for this run.
        on_event: told of each event.
        first_events: what is to be said before anything happens.
        on_sample: told of each batch of samples, as a table of numpy columns with codes for names;
            its answer stops the run.
        stop: stops the run when another thread sets it.
        is_confirmed: asked while an event waits for a person; whether somebody has said that it is
            done. None where no one can say it but by touching a file.

    Returns:
        The outcome without its distributions, as in `outcome.json`.

    Raises:
        plimsoll._native.ConfigError: the plan cannot be run by this version.
        RunFolderLostError: the run folder could not be written.
        RaisedError: who was told raised it; the run was stopped, and its folder is whole.
    """
    plan.write(run_folder / folder.PLAN)
    modelled = plan.run.modelled is not None
    targets = (
        []
        if modelled
        else [Path(target.path) for target in plan.run.targets if is_storage(target.path)]
    )
    environment = collect(targets)
    others = OtherRuns(targets)
    others.look()
    told_before = environment["warnings"]
    environment["release_build"] = _native.is_release_build
    disks = disks_of(environment)
    health = smart.read_smart(disks)
    environment["smart"] = health
    told_before += smart.warnings_of(health)
    environment["warnings"] = [*told_before, *others.sentences]
    counted = error_counters.read_counters(disks) | smart.counters_of(health)
    counted_before, mark = began_with(run_folder)
    environment["error_counters"] = counted
    with KernelLog(since=mark) as kernel_log:
        environment["kernel_log_mark"] = kernel_log.mark
        folder.write_json(run_folder / folder.ENVIRONMENT, environment)
        run = _native.Run(json.dumps(plan.run.plain()))
        hearing = _Hearing(run, on_event, on_sample, is_confirmed or (lambda: False))
        samples = SampleStore(run_folder, plan.run)
        drives = DriveWatch(disks)
        outcome: Outcome | None = None
        # Also while the folder is written: what was measured is kept whole.
        stage = Stage(
            plan.events, run_folder, targets_of(plan), run, hears_enter=is_confirmed is not None
        )
        errors = error_counters.ErrorCounts(
            error_counters.first_of([*counted_before, counted]), disks
        )
        has_harm = any(event.harms_storage for event in plan.events)

        def look_for_errors(drive_health: list[DiskHealth]) -> None:
            harmed = stage.harmed(disks)
            kernel_log.gather(disks, harmed)
            now = error_counters.read_counters(disks) | smart.counters_of(drive_health)
            errors.look(now, harmed)

        with _stopping_on_signals(run.stop, stage):
            try:

                def sampled(table: Columns) -> str | None:
                    # Without harm counters are read at both ends only: each is a file.
                    look_for_errors(health) if has_harm else kernel_log.gather(disks)
                    drives.look()
                    others.look()
                    return hearing.sample(table)

                _follow(
                    plan,
                    run,
                    run_folder,
                    samples,
                    hearing.event,
                    sampled,
                    first_events,
                    stop or threading.Event(),
                    stage,
                    hearing.confirmed,
                )
                outcome = _outcome_of(run)
                if (
                    outcome.ending == "complete"
                    and not modelled
                    and any(phase.checksums for phase in outcome.phases)
                ):
                    check_logs(plan.run).write(run_folder / folder.LOG_CHECK)
                health_after = smart.read_smart(disks)
                look_for_errors(health_after)
                kernel_log.errors_about(disks).write(run_folder / folder.KERNEL_LOG)
                drive_health = drives.found(health, health_after)
                if drive_health.drives:
                    drive_health.write(run_folder / folder.DRIVE_HEALTH)
                errors.found().write(run_folder / folder.DEVICE_ERRORS)
                told = [*told_before, *others.sentences]
                if told != environment["warnings"]:
                    environment["warnings"] = told
                    folder.write_json(run_folder / folder.ENVIRONMENT, environment)
                samples.finish()
                _write_histograms(run_folder, plan.run, outcome)
                write_points(run_folder, outcome)
                if not modelled and outcome.ending == "complete":
                    content = measure_content(plan.run, plan.judgement.duplicate_percent)
                    content.write(run_folder / folder.CONTENT)
                kept = outcome.replace(figures=ABSENT)
                kept.write(run_folder / folder.OUTCOME)
            except (OSError, duckdb.Error) as error:
                raise RunFolderLostError(run_folder, error, outcome or _stopped(run)) from error
            except BaseException:
                # It works on as long as anybody keeps the error.
                run.stop()
                raise
    if hearing.raised is not None:
        hearing.raised.outcome = kept
        raise hearing.raised
    return kept


class _Hearing:
    """Those who hear of a run.

    When one of them has raised something, the run ends, and none is told any more.
    """

    def __init__(
        self,
        run: _native.Run,
        on_event: Listener,
        on_sample: Watcher,
        is_confirmed: Callable[[], bool],
    ) -> None:
        self._run = run
        self._on_event, self._on_sample, self._is_confirmed = on_event, on_sample, is_confirmed
        self.raised: RaisedError | None = None

    def event(self, event: Event) -> None:
        self._ask(self._on_event, event)

    def sample(self, table: Columns) -> str | None:
        return self._ask(self._on_sample, table)

    def confirmed(self) -> bool:
        return bool(self._ask(self._is_confirmed))

    def _ask(
        self, hear: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer | None:
        if self.raised is None:
            try:
                return hear(*args, **kwargs)
            except RaisedError as raised:
                self.raised = raised
                self._run.stop()
        return None


def _outcome_of(run: _native.Run) -> Outcome:
    return Outcome.from_plain(json.loads(run.outcome()), "the outcome of the run")


def _stopped(run: _native.Run) -> Outcome:
    """Stop a run that nobody can write down any more, and wait until its databases are closed."""
    run.stop()
    while run.next_samples(POLL_S) is not None:
        run.next_events()
    return _outcome_of(run)


def _follow(
    plan: Plan,
    run: _native.Run,
    run_folder: Path,
    samples: SampleStore,
    on_event: Listener,
    on_sample: Watcher,
    first_events: Sequence[Event],
    stop: threading.Event,
    stage: Stage,
    is_confirmed: Callable[[], bool],
) -> None:
    """Write down what the run tells until it is over, and stage the events of its plan."""
    interval_s = plan.run.sample_interval_ms / 1000
    watch = ServerWatch(watched_servers(plan), run_folder, interval_s, stage.now_s)
    with watch, (run_folder / folder.EVENTS).open("w", encoding="utf-8") as log:
        for event in first_events:
            log.write(json.dumps(event.plain()) + "\n")
        last: list[Told] = []
        try:
            with stage:
                try:
                    last = _write_down(
                        run, log, samples, on_event, on_sample, stop, stage, is_confirmed
                    )
                finally:
                    stage.end()
                    while stage.is_undoing():
                        _tell([*last, *_news(stage)], log, on_event)
                        last = []
        finally:
            _tell([*last, *_news(stage)], log, on_event)


def _news(stage: Stage) -> list[Told]:
    return [(event, json.dumps(event.plain())) for event in stage.news()]


def _tell(events: Sequence[Told], log: TextIO, on_event: Listener) -> None:
    """Write down and tell what was heard at one time, in the order in which it happened."""
    for event, line in sorted(events, key=lambda told: told[0].time_ns):
        log.write(line + "\n")
        on_event(event)


def _write_down(
    run: _native.Run,
    log: TextIO,
    samples: SampleStore,
    on_event: Listener,
    on_sample: Watcher,
    stop: threading.Event,
    stage: Stage,
    is_confirmed: Callable[[], bool],
) -> list[Told]:
    """Until the run is over; answers its last events, which belong among those of the stage."""
    stopped = False
    while True:
        if stop.is_set():
            run.stop()
        if stage.is_hurried:
            stage.end()
        buffers = run.next_samples(POLL_S)
        heard = [(Event.from_plain(json.loads(line)), line) for line in run.next_events()]
        for event, _ in heard:
            stage.hear(event)
        if buffers is None:
            return heard
        table = samples.add(buffers) if buffers else None
        if table is not None:
            stage.reach(int(table["end_ns"][-1]) / NS_PER_S)
        _tell([*heard, *_news(stage)], log, on_event)
        if stage.waits_for_person and is_confirmed():
            stage.confirm()
        log.flush()
        # A sign of life: should the process die, its time tells how far the run had come.
        os.utime(log.fileno())
        if table is not None:
            reason = on_sample(table)
            if reason is not None and not stopped:
                stopped = True
                run.stop()
                event = _stopped_by_condition(int(table["end_ns"][-1]), reason)
                log.write(json.dumps(event.plain()) + "\n")
                on_event(event)


def _stopped_by_condition(time_ns: int, reason: str) -> Event:
    """The one event that is born here: everything else happens on the Rust side."""
    return Event(
        time_ns=time_ns,
        utc_ns=time.time_ns(),
        level="warning",
        kind="stopped_by_condition",
        phase=None,
        text=f"stopped, because {reason}",
    )


def _heeded(number: signal.Signals) -> bool:
    """Whether a signal stops a run: not one that whoever started us wants ignored, as `nohup` does.

    SIGINT always does: shells have it ignored by what they start in the background, and who sends
    one there all the same means it.
    """
    return number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN


@contextmanager
def _stopping_on_signals(stop: Callable[[], None], stage: Stage) -> Iterator[None]:
    """The first signal asks for a clean stop; a second of the same kind does what it always does.

    While something is degraded the second is only answered, and the third ends what undoes it.

    Only the main thread can take signals; in any other they are left as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    counts: Counter[int] = Counter()

    def ask(number: int, frame: FrameType | None) -> None:
        counts[number] += 1
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if counts[number] == 1:
            stop()
        elif counts[number] > 2 or not stage.hurry(name):
            stage.give_up()
            if number == signal.SIGINT:
                signal.default_int_handler(number, frame)
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    before = {number: signal.signal(number, ask) for number in STOP_SIGNALS if _heeded(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class SampleStore:
    """Writes samples as Parquet while they come, and as one file at the end.

    Samples are only ever appended.
    """

    def __init__(self, run_folder: Path, run: RunSpec) -> None:
        self._columns = [(name, np.dtype(kind)) for name, kind, _, _ in _native.columns()]
        self._names = _names(run)
        self._folder = run_folder
        self._parts = run_folder / "samples.parts"
        shutil.rmtree(self._parts, ignore_errors=True)
        self._parts.mkdir()
        self._waiting: list[Columns] = []
        self._waiting_rows = 0
        self._parts_count = 0

    def add(self, buffers: list[bytes]) -> Columns:
        """Take one batch of column buffers; returns it as numpy columns."""
        table = {
            name: np.frombuffer(buffer, dtype=kind)
            for (name, kind), buffer in zip(self._columns, buffers, strict=True)
        }
        self._waiting.append(table)
        self._waiting_rows += len(table["end_ns"])
        if self._waiting_rows >= ROWS_PER_PART:
            self._write_part()
        return table

    def _write_part(self) -> None:
        rows = {
            name: np.concatenate([table[name] for table in self._waiting])
            for name, _ in self._columns
            if self._waiting
        }
        if not rows:
            return
        for name, labels in self._names.items():
            rows[name] = np.array(labels, dtype=object)[rows[name]]
        self._parts_count += 1
        _write_parquet(rows, self._parts / f"{self._parts_count:06}.parquet")
        self._waiting, self._waiting_rows = [], 0

    def finish(self) -> None:
        """Join the parts into one file."""
        self._write_part()
        if self._parts_count:
            with parquet.database() as database:
                database.execute(
                    f"COPY (SELECT * FROM {parquet.rows_of_all(self._parts)} ORDER BY end_ns) "
                    f"{parquet.into(self._folder / folder.SAMPLES)}"
                )
        shutil.rmtree(self._parts)


def _names(run: RunSpec) -> dict[str, list[str]]:
    """What the codes of a sample stand for."""
    return names_of_codes(run, [name for name, _, _, _ in _native.metrics()])


def write_points(run_folder: Path, outcome: Outcome) -> None:
    """The rates that searches tried, each with its figures and bounds, for the knee chart."""
    searches = [phase.search for phase in outcome.phases if phase.search]
    if searches:
        Points(schema_version=1, searches=searches).write(run_folder / folder.POINTS)


#: The columns of `histograms.parquet`, and those that the outcome has as they are.
_HISTOGRAM = (
    "phase",
    "instance",
    "database",
    "workload",
    "metric",
    "errors",
    "bytes",
    "latency_ns_min",
    "latency_ns_max",
    "latency_ns_sum",
    "upper_ns",
    "count",
)
_AS_THEY_ARE = [
    name
    for name in _HISTOGRAM
    if name not in ("phase", "instance", "workload", "upper_ns", "count")
]


def _write_histograms(run_folder: Path, run: RunSpec, outcome: Outcome) -> None:
    """One row for each bucket of each distribution, with the exact sums beside it."""
    names = _names(run)
    rows: dict[str, list[Any]] = {name: [] for name in _HISTOGRAM}
    for figures in outcome.figures:
        for upper_ns, count in figures.buckets or [(0, 0)]:
            rows["phase"].append(names["phase"][figures.phase])
            rows["instance"].append(names["instance"][figures.instance])
            rows["workload"].append(names["workload"][figures.workload])
            for name in _AS_THEY_ARE:
                rows[name].append(getattr(figures, name))
            rows["upper_ns"].append(upper_ns)
            rows["count"].append(count)
    text = ("phase", "instance", "workload", "metric")
    table = {
        name: np.array(values, dtype=object if name in text else np.uint64)
        for name, values in rows.items()
    }
    _write_parquet(table, run_folder / folder.HISTOGRAMS)


def _write_parquet(rows: Columns, path: Path) -> None:
    with parquet.database() as database:
        database.register("rows", rows)
        database.execute(f"COPY rows {parquet.into(path)}")
