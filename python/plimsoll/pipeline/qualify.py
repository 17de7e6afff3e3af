"""From a completed plan to a verdict: preflight, run, summary, verdict, report.

Nothing here prints, asks or exits. How it goes is told to a `Listener`; what cannot be done is a
`PlimsollError`; a run is stopped by setting an `Event` from another thread, or by Ctrl-C where it
is carried out in the main thread. What was measured before is kept.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from plimsoll import __version__, verdict
from plimsoll.arrays import text as words
from plimsoll.databases import handover, kept_backups, mail_accounts, preflight, store_files
from plimsoll.documents.environment import read_environment
from plimsoll.documents.event import Event
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import AnySummary, read_summary
from plimsoll.documents.verdict import Verdict, read_verdict
from plimsoll.errors import exit_codes, of_the_engine
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder, parquet
from plimsoll.files.damage import reading
from plimsoll.files.parquet import Columns
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener, RaisedError, told
from plimsoll.live.metrics_server import MetricsServer
from plimsoll.live.openmetrics import Exposition
from plimsoll.live.progress import Figures
from plimsoll.live.progress_file import ProgressFile
from plimsoll.pipeline import background, forecast
from plimsoll.pipeline.plans import require_plan
from plimsoll.plan import stop_conditions
from plimsoll.results import counters, events, files, homes, load, mail, store
from plimsoll.results import summary as measurements
from plimsoll.results.answers import answers
from plimsoll.run.left_degraded import require_nothing_degraded
from plimsoll.verdict.brief import brief_of
from plimsoll.verdict.text import lines_of

#: Puts what lies in a run folder aside, and answers the first events of the run that goes on.
Beginning = Callable[[], Sequence[Event]]


@dataclass(frozen=True)
class Result:
    """What became of a run.

    Attributes:
        folder: its run folder, with everything that was measured.
        verdict: the content of `verdict.json`: `result`, `headline`, `reasons`, `checks` and the
            rest.
        outcome: the content of `outcome.json`: how the run ended.
    """

    folder: Path
    verdict: Verdict
    outcome: Outcome

    def __repr__(self) -> str:
        return f"Result({self.headline!r}, folder={str(self.folder)!r})"

    @property
    def result(self) -> str:
        """`pass`, `fail` or `inconclusive`."""
        return self.verdict.result

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        return self.verdict.headline

    @property
    def ending(self) -> str:
        """How the run ended: `complete`, `interrupted` or what else stands in the outcome."""
        return self.outcome.ending

    @property
    def exit_code(self) -> int:
        """How a program that did nothing else would end: one of `plimsoll.exit_codes`.

        Usage is what could not be carried out at all; what was begun ends as it was judged.
        """
        if self.ending == "interrupted":
            return exit_codes.INTERRUPTED
        if self.could_not_be_run and not was_begun(self.outcome):
            return exit_codes.USAGE
        return exit_codes.BY_RESULT[self.result]

    @property
    def could_not_be_run(self) -> bool:
        """Whether it ended by what no storage is to blame for, such as a full or locked one."""
        return self.outcome.error is not None and self.outcome.error.family == "config"

    @property
    def summary(self) -> AnySummary:
        """The content of `summary.json`: every figure of the measured time."""
        return read_summary(self.folder / folder.SUMMARY)

    @property
    def report(self) -> Path | None:
        """The page, where one was written."""
        return folder.report_of(self.folder)

    def lines(self) -> list[str]:
        """What the test was to find out, the verdict with one reason for each check, and the
        figures of the load, for people.
        """
        summary = self.summary
        found = answers(summary)
        lines = [*found, *([""] if found else []), *lines_of(self.verdict)]
        modelled = self._modelled(summary)
        lines += ["", *modelled] if modelled else []
        figures = [
            *load.in_words(summary.load),
            *files.in_words(summary.files),
            *homes.in_words(summary.homes, summary.homes_audits),
            *events.in_words(summary.events),
        ]
        figures += store.in_words(summary.store, summary.store_audits)
        figures += mail.in_words(summary.mail, summary.mail_audits)
        return [*lines, "", *figures] if figures else lines

    def brief(self, told: Collection[str] = (), width: int = 100) -> list[str]:
        """The same in few rows of a terminal.

        The verdict first, what did not pass, and what keeps it from qualifying.

        Args:
            told: warnings that were shown before the run; they are not repeated.
            width: characters in a row of the terminal.
        """
        summary = self.summary
        before = answers(summary)
        after = [
            *files.in_words(summary.files),
            *homes.in_words(summary.homes, summary.homes_audits),
            *store.in_words(summary.store, summary.store_audits),
            *events.in_words(summary.events),
            *load.in_words(summary.load),
        ]
        if modelled := self._modelled(summary):
            before, after = [modelled[0], *before], [*after, *modelled[1:]]
        return brief_of(self.verdict, before=before, after=after, told=told, width=width)

    def _modelled(self, summary: AnySummary) -> list[str]:
        """What a modelled run adds; nothing where storage was measured."""
        if self.verdict.prediction is None:
            return []
        array = folder.read_json(self.folder / folder.PLAN)["judgement"]["modelled"]
        return words.lines_of(array, summary, self.verdict.prediction)


def was_begun(outcome: Outcome) -> bool:
    """Whether any phase came to its end; closing what was opened is none."""
    return any(phase.complete for phase in outcome.phases if phase.kind != "stop")


def qualify(
    plan: Plan,
    out: StrPath | None = None,
    *,
    found: preflight.Preflight | None = None,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Carry out a plan, judge what was measured and write the report.

    Databases are prepared or reused below the targets of the plan, and stay there. Nothing is
    asked: look at `forecast(plan)` first where the storage is not yours alone.

    Args:
        plan: a completed plan, as from `read_plan` or `build_plan`.
        out: the run folder; a new one below `runs/` if left out.
        found: as from `check`, which is asked when left out.
        listener: told how it goes.
        stop: set it from another thread to stop the run; what was measured is judged all the same.

    Raises:
        RefusedError: what was given is no plan.
        PreflightError: the run cannot start.
        FolderError: the run folder cannot be used.
        EngineError: the plan cannot be run by this version, or the storage failed before the run
            began.
    """
    found = found or forecast.check(plan, listener=listener)
    return qualify_into(plan, make_run_folder(plan, out), found=found, listener=listener, stop=stop)


def qualify_into(
    plan: Plan,
    run_folder: StrPath,
    *,
    found: preflight.Preflight,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    metrics: MetricsServer | None = None,
    begin: Beginning | None = None,
    require: Callable[[Outcome], None] | None = None,
) -> Result:
    """The same as `qualify`, into a folder that was made for it.

    The arguments are those of `measure`; `require` raises where an outcome is not to be judged.
    """
    run_folder = Path(run_folder)
    with folder.kept([run_folder]), parquet.database():
        outcome = _measure(plan, run_folder, found, listener, stop, metrics, begin)
        if require is not None:
            require(outcome)
        return Result(run_folder, judge_files(run_folder, listener or Listener()), outcome)


def make_run_folder(plan: Plan, wanted: StrPath | None = None) -> Path:
    """The folder for a run.

    Args:
        plan: whose run it is.
        wanted: which folder; a new one below `runs/` if left out.

    Raises:
        FolderError: it holds something else, belongs to a run that goes on, or cannot be made; or a
            run next to it left something degraded that this one would measure.
    """
    wanted = None if wanted is None else Path(wanted)
    require_nothing_degraded(plan, wanted or folder.DEFAULT_PARENT / plan.name)
    try:
        return folder.new_folder(plan.name, wanted)
    except OSError as error:
        why = system_reason(error)
        raise folder.FolderError(
            f"{error.filename}: {why}; name another folder with --out"
        ) from error


def measure(
    plan: Plan,
    run_folder: StrPath,
    *,
    found: preflight.Preflight,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    metrics: MetricsServer | None = None,
    begin: Beginning | None = None,
) -> Outcome:
    """Carry out a plan into its folder, up to `outcome.json`; nothing is judged.

    Args:
        plan: a completed plan.
        run_folder: as from `make_run_folder`.
        found: as from `check`; its run spec is carried out.
        listener: told how it goes.
        stop: set it from another thread to stop the run.
        metrics: offers the figures while the run goes on.
        begin: for a run that goes on in its folder: called when no other run can work there or on
            its databases; it answers what is to be said in the log before anything happens.

    Returns:
        The outcome.

    Raises:
        FolderError: the run folder or the saved set cannot be used.
        PreflightError: `found` is of another plan.
        EngineError: as in `qualify`.
    """
    run_folder = Path(run_folder)
    with folder.kept([run_folder]), parquet.database():
        return _measure(plan, run_folder, found, listener, stop, metrics, begin)


def _measure(
    plan: Plan,
    run_folder: Path,
    found: preflight.Preflight,
    listener: Listener | None,
    stop: threading.Event | None,
    metrics: MetricsServer | None,
    begin: Beginning | None,
) -> Outcome:
    from plimsoll import _native
    from plimsoll.run.execute import RunFolderLostError, run_plan

    require_plan(plan)
    if found.asked != plan.run:
        raise preflight.PreflightError(
            [f"what was found is of another plan than {plan.name!r}; check this one"]
        )
    if begin is None:
        # Since the folder was made, another run may have begun there, and ended.
        folder.require_no_run(run_folder)
        # Of a series an earlier run may have left it so.
        require_nothing_degraded(plan, run_folder)
    forecast.require_commands_allowed(plan, allowed=found.commands_allowed)
    hears = listener or Listener()
    ready = plan.replace(run=found.run)
    names = [name for name, _, _, _ in _native.metrics()]
    conditions = [stop_conditions.parse(text) for text in plan.stop_if]
    figures = Figures(ready, names, found.bytes_to_prepare, forecast.later_s(ready, found))
    exposition = Exposition(ready, _native.metrics(), __version__)
    progress = ProgressFile(figures, run_folder)

    def tell(event: Event) -> None:
        figures.event(event)
        exposition.event(event)
        told(hears.event, event)
        progress.write(at_once=event.kind == "phase_started")

    def sample(table: Columns) -> str | None:
        figures.sample(table)
        if metrics:
            exposition.sample(table)
        progress.write()
        told(hears.sample, table)
        reasons = [condition.look(table, names.index(condition.metric)) for condition in conditions]
        return next((reason for reason in reasons if reason is not None), None)

    with metrics.serving(exposition.text) if metrics else nullcontext():
        hears.begins(figures)
        try:
            with (
                of_the_engine(),
                preflight.kept(found),
                mail_accounts.kept(found.run),
                store_files.kept(found.run),
            ):
                with _planned(ready, run_folder) if begin is None else nullcontext():
                    preflight.begin_with(found, plan.source, lambda text: told(hears.say, text))
                first_events = begin() if begin else ()
                handover.take(found.run)
                outcome = run_plan(
                    ready,
                    run_folder,
                    tell,
                    sample,
                    first_events,
                    stop,
                    (lambda: told(hears.confirmed)) if hears.can_confirm else None,
                )
        except RunFolderLostError as error:
            handover.give_back(found.run, error.outcome)
            raise
        except RaisedError as raised:
            if raised.outcome is not None:
                handover.give_back(found.run, raised.outcome)
            raise raised.error from None
        except OSError as error:
            why = system_reason(error)
            raise folder.FolderError(
                f"{error.filename or run_folder}: {why}; check space and permissions"
            ) from error
        finally:
            progress.remove()
            hears.ends()
    for sentence in handover.give_back(found.run, outcome):
        hears.warning(sentence)
    kept = kept_backups.end(found.run, outcome)
    if kept is not None:
        hears.say(
            f'the backup in {kept} was restored and is sound; restore_from = "{kept}" uses it'
        )
    return outcome


@contextmanager
def _planned(plan: Plan, run_folder: Path) -> Iterator[None]:
    """The plan in the folder of its run while databases are restored, which may take hours.

    Should the process be killed meanwhile, the folder says what it is. Where restoring fails, the
    run has not begun, and another may begin there.
    """
    plan.write(run_folder / folder.PLAN)
    try:
        yield
    except BaseException:
        (run_folder / folder.PLAN).unlink(missing_ok=True)
        raise


def judge(run_folder: StrPath, *, listener: Listener | None = None) -> Result:
    """Compute summary, verdict and report of a run again from its folder, without the disk.

    An imported run keeps its own verdict.

    Args:
        run_folder: the folder of one run.
        listener: warned when no report can be written.

    Raises:
        FolderError: files are missing or damaged, or nothing can be written there.
    """
    run_folder = Path(run_folder)
    with reading(run_folder):
        if not (run_folder / folder.OUTCOME).exists():
            _refuse_unfinished(run_folder)
        prepared = folder.prepared_in_words(run_folder)
        if prepared is not None:
            raise folder.FolderError(f"{prepared}, so there is nothing to report")
        found = judge_files(run_folder, listener or Listener())
        return Result(run_folder, found, Outcome.read(run_folder / folder.OUTCOME))


def _refuse_unfinished(run_folder: Path) -> None:
    """Says of a run without an outcome whether it goes on or was killed.

    Raises:
        FolderError: one of both, or that the folder holds no run.
    """
    folder.require_run(run_folder)
    if not (run_folder / folder.PLAN).exists() or folder.is_imported(run_folder):
        return
    state = background.state_of(run_folder)["state"]
    if state == background.KILLED:
        raise folder.FolderError(background.no_result_in_words(run_folder))
    if state != background.ENDED:
        raise folder.FolderError(f"{run_folder} goes on; see `plimsoll watch {run_folder}`")


def judge_files(run_folder: Path, listener: Listener) -> Verdict:
    """Summary, verdict and report of a run whose files are sound.

    What is wrong with them comes out as it is.

    Raises:
        FolderError: nothing can be written there.
    """
    import duckdb

    try:
        with parquet.database():
            found = _judged(run_folder)
            write_report(run_folder, listener)
    except (OSError, duckdb.IOException) as error:
        raise folder.FolderError(
            f"{run_folder} cannot be judged: {system_reason(error)}; {_remedy_of(error)}, then "
            f"`plimsoll report {run_folder}` judges what was measured"
        ) from error
    return found


def _remedy_of(error: Exception) -> str:
    """What to do about an error of a disk; DuckDB says what it was in its text alone."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
        return "free space"
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "make the folder writable or copy it"
    return "see to that"


def read_result(run_folder: StrPath) -> Result:
    """What a run that was judged before came to.

    Raises:
        FolderError: the folder holds no run, or its files are missing or damaged.
    """
    run_folder = Path(run_folder)
    folder.require_run(run_folder)
    return Result(
        run_folder,
        read_verdict(run_folder / folder.VERDICT),
        Outcome.read(run_folder / folder.OUTCOME),
    )


def _judged(run_folder: Path) -> Verdict:
    if folder.is_imported(run_folder):
        from plimsoll.imports.to_run_folder import rebuild

        return rebuild(run_folder)
    plan = Plan.read(run_folder / folder.PLAN)
    environment = read_environment(run_folder / folder.ENVIRONMENT)
    counters.write_counters(run_folder)
    summary = measurements.summarize(run_folder)
    summary.write(run_folder / folder.SUMMARY)
    found = verdict.judge(plan, summary, environment)
    found.write(run_folder / folder.VERDICT)
    return found


def write_report(run_folder: StrPath, listener: Listener) -> None:
    """Write the page of a run that was judged, or tell what is missing to write it."""
    run_folder = Path(run_folder)
    try:
        from plimsoll.report import write_report as write
    except ModuleNotFoundError as error:
        listener.warning(
            f"no report.html was written, because {error.name} is not installed (pip install "
            f"'plimsoll[report]')"
        )
        return
    from plimsoll.pages.chart_script import ScriptError

    try:
        write(run_folder)
    except ScriptError as error:
        listener.warning(
            f"no report.html was written: {error.strerror}. `plimsoll report {run_folder}` writes "
            f"it without that"
        )
