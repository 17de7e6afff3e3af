"""A repeated run: several runs of one plan, one after the other, in one folder with what they have
in common.

`repeats.json` lists the runs as they happen, so that a series that was interrupted or killed keeps
what it has. Only runs that came to their end count for median and spread. The verdict of the whole
is the worst of its runs: a storage that fails once in three times fails.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from plimsoll.arrays.text import WARNING
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.figures import FIGURES, value_of
from plimsoll.compare.sides import ComparisonError, RunRead, read_run
from plimsoll.databases import kept_backups, preflight
from plimsoll.documents.plan import Plan
from plimsoll.documents.repeats import CommandBefore, RepeatedFigure, RepeatedRun, Repeats
from plimsoll.documents.verdict import Verdict
from plimsoll.errors import PlimsollError, RefusedError, exit_codes
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener
from plimsoll.pages.tables import Table, duration_shown, shown
from plimsoll.pipeline import forecast, qualify
from plimsoll.pipeline.plans import require_plan
from plimsoll.plan.repeats import RUNS_MAX
from plimsoll.run.before_run import Prepared, prepare_run
from plimsoll.run.left_degraded import require_nothing_degraded
from plimsoll.verdict import FAIL, INCONCLUSIVE, PASS
from plimsoll.verdict.text import named

SCHEMA_VERSION: Literal[1] = 1
BEGUN, COMPLETE, NOT_BEGUN = "begun", "complete", "not begun"
WORST_FIRST = (FAIL, INCONCLUSIVE, PASS)


@dataclass(frozen=True)
class Series:
    """What became of a repeated run.

    Attributes:
        folder: the folder that holds its runs.
        content: the content of `repeats.json`: the runs, and median, extremes and spread of each
            figure.
        results: of the runs that took place now; none when they were only judged again.
        interrupted: whether it was stopped between two runs.
    """

    folder: Path
    content: Repeats
    results: list[qualify.Result] = field(default_factory=list)
    interrupted: bool = False

    @property
    def result(self) -> str | None:
        """The worst of its runs; None when none came to a result."""
        return self.content.result

    @property
    def exit_code(self) -> int:
        """How a program that did nothing else would end.

        As the worst of the runs that took place now, or by the result.
        """
        codes = [result.exit_code for result in self.results] + (
            [exit_codes.INTERRUPTED] if self.interrupted else []
        )
        if any(run.ending == NOT_BEGUN for run in self.content.runs):
            codes.append(exit_codes.INCONCLUSIVE)
        judged = exit_codes.BY_RESULT.get(self.result or "", exit_codes.INCONCLUSIVE)
        return next((code for code in exit_codes.WORST_FIRST if code in codes), judged)

    @property
    def report(self) -> Path | None:
        """The page, where one was written."""
        return folder.report_of(self.folder)

    def lines(self) -> list[str]:
        """Every run and the figures they have in common, for people."""
        return lines_of(self.content)


def repeat(
    plan: Plan,
    times: int | None = None,
    out: StrPath | None = None,
    *,
    found: preflight.Preflight | None = None,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Series:
    """Carry out a plan several times, one after the other, into one folder.

    What was done is kept whatever happens.

    A run that was interrupted, or that could not be carried out, ends the series. Simulated runs
    differ in their seed: with the same one a simulation repeats itself to the byte.

    Args:
        plan: a completed plan.
        times: how often; as the plan's `repeat` says if left out.
        out: the folder of the series; a new one below `runs/` if left out.
        found: as from `check`, which is asked when left out.
        listener: told how each run goes.
        stop: set it from another thread to stop the series.

    Raises:
        RefusedError: what was given is no plan, `times` is no number of runs, or the plan keeps a
            backup.
        PreflightError: a run cannot start.
        FolderError, EngineError: as in `qualify`.
    """
    require_plan(plan)
    if times is None:
        times = 1 if plan.repeat is None else plan.repeat.runs
    if not isinstance(times, int) or not 1 <= times <= RUNS_MAX:
        raise RefusedError([f"times={times!r}; write a whole number from 1 to {RUNS_MAX}"])
    found = found or forecast.check(plan, listener=listener)
    return repeat_into(
        plan, times, qualify.make_run_folder(plan, out), found=found, listener=listener, stop=stop
    )


def repeat_into(
    plan: Plan,
    times: int,
    parent: StrPath,
    *,
    found: preflight.Preflight,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Series:
    """The same as `repeat`, into a folder that was made for it."""
    parent = Path(parent)
    if times > 1 and kept_backups.folder_of(plan.run) is not None:
        raise RefusedError(
            ["a plan that keeps a backup runs once, its folder is full then; leave `to` out"]
        )
    with folder.kept([parent]):
        return _repeated(plan, times, parent, found, listener or Listener(), stop)


def _repeated(
    plan: Plan,
    times: int,
    parent: Path,
    found: preflight.Preflight,
    hears: Listener,
    stop: threading.Event | None,
) -> Series:
    """All runs of a series, and its page."""
    stopped = stop or threading.Event()
    series, results, interrupted = begin(parent, plan.name, times), list[qualify.Result](), False
    try:
        for number in range(1, times + 1):
            if interrupted := stopped.is_set():
                break
            each = another_run(plan, number)
            hears.say(f"run {number} of {times}")
            run_folder = series.begin_run()
            before = _prepared(each, number, series, hears, stopped)
            if not before.may_begin:
                interrupted = before.problem is None
                break
            if number > 1 and not _is_whole(each, f"run {number} of {times}", series, hears):
                break
            if number > 1 or each.repeat is not None:
                # The run before it, and what was done since, changed what is there.
                found = _found_again(each, found)
            results.append(_once(each, run_folder, series, found, hears, stopped))
            hears.say(f"run {number} of {times}: {series.content.runs[-1].headline}")
            if ends_series(results[-1]):
                break
    except KeyboardInterrupt:
        # Between two runs nobody else listens; within one, the run ends cleanly and says so itself.
        interrupted = True
    except PlimsollError as error:
        series.end_with(error, hears)
        raise
    series.gather(finished=True)
    write_page(parent, series.content, hears)
    return Series(parent, series.content, results, interrupted)


def another_run(plan: Plan, number: int) -> Plan:
    """The plan of a run of a series.

    Simulated ones differ in their seed, because one seed always gives the same bytes.
    """
    return (
        plan.replace(run=plan.run.replace(seed=plan.run.seed + number - 1))
        if plan.run.modelled
        else plan
    )


def ends_series(result: qualify.Result) -> bool:
    """Whether the runs after it would end the same way."""
    return result.ending == "interrupted" or result.could_not_be_run


def _found_again(plan: Plan, found: preflight.Preflight) -> preflight.Preflight:
    again = preflight.inspect(plan.run, plan.source, found.consent)
    return replace(again, commands_allowed=found.commands_allowed)


def _prepared(
    plan: Plan, number: int, series: SeriesFile, listener: Listener, stop: threading.Event
) -> Prepared:
    """Do what the plan wants done before a run, and note why the run cannot begin."""
    if plan.repeat is None:
        return Prepared(may_begin=True)
    stopped = "the series was stopped before the run began"
    try:
        found = prepare_run(
            plan.repeat, series.last_folder, number, listener.say, stop, series.note_before
        )
    except KeyboardInterrupt as interrupt:
        found = Prepared(may_begin=False)
        stopped += f"; {interrupt}" if interrupt.args else ""
    if not found.may_begin:
        series.note_ending(NOT_BEGUN, found.problem or stopped)
        listener.warning(f"{found.problem or stopped}; the series ends here")
    return found


def _is_whole(plan: Plan, run: str, series: SeriesFile, listener: Listener) -> bool:
    """Whether no earlier run left degraded what the last one would measure; else it is noted."""
    try:
        require_nothing_degraded(plan, series.last_folder)
    except folder.FolderError as error:
        reason = f"{run} was not begun: {error}"
        series.note_ending(NOT_BEGUN, reason)
        listener.warning(f"{reason}; the series ends here")
        return False
    return True


def _once(
    plan: Plan,
    run_folder: Path,
    series: SeriesFile,
    found: preflight.Preflight,
    listener: Listener,
    stop: threading.Event,
) -> qualify.Result:
    """One run of the series."""
    outcome = qualify.measure(plan, run_folder, found=found, listener=listener, stop=stop)
    series.note_ending(outcome.ending)
    verdict = qualify.judge_files(run_folder, listener)
    series.note_verdict(verdict)
    return qualify.Result(run_folder, verdict, outcome)


def judge_series(parent: StrPath, *, listener: Listener | None = None) -> Series:
    """Judge every run of a series again, and the series, from their folders.

    Raises:
        FolderError: files are missing or damaged.
    """
    parent = Path(parent)
    hears = listener or Listener()
    with reading(parent):
        series, runs = SeriesFile(parent, read(parent)), []
        for run in series.content.runs:
            if (parent / run.folder / folder.OUTCOME).exists():
                result = qualify.judge(parent / run.folder, listener=hears)
                run = with_verdict(run.replace(ending=result.ending), result.verdict)
            runs.append(run)
        series.gather(runs=runs)
        write_page(parent, series.content, hears)
    return Series(parent, series.content)


def write_page(parent: Path, content: Repeats, listener: Listener) -> None:
    """The page of the series, where its libraries are installed."""
    try:
        folder.write_text(parent / folder.REPORT, render(parent, content))
    except ModuleNotFoundError as error:
        listener.warning(f"no report.html was written, because {error.name} is not installed")


class SeriesFile:
    """`repeats.json` of a series whose runs take place.

    Written whenever something becomes known.
    """

    def __init__(self, parent: Path, content: Repeats) -> None:
        self.parent, self.content = parent, content

    def note(self, **changes: object) -> None:
        """Change the file."""
        self.content = self.content.replace(**changes)
        self.content.write(self.parent / folder.REPEATS)

    def begin_run(self) -> Path:
        """The folder of the next run, noted before it begins."""
        name = f"run-{len(self.content.runs) + 1}"
        (self.parent / name).mkdir()
        run = RepeatedRun(folder=name, ending=BEGUN, result=None, headline=None, reasons=())
        self.note(runs=[*self.content.runs, run])
        return self.parent / name

    def note_ending(self, ending: str, reason: str | None = None) -> None:
        """How the last run ended, before anything is made of it."""
        *before, last = self.content.runs
        if reason is not None:
            last = last.replace(reasons=[*last.reasons, reason])
        self.note(runs=[*before, last.replace(ending=ending)])

    def end_with(self, error: PlimsollError, listener: Listener) -> None:
        """Note what the series ends with: the last run could not be carried out, or not be judged.

        The runs before it count, and the whole is no pass.
        """
        try:
            begun = bool(self.content.runs) and self.content.runs[-1].ending == BEGUN
            if begun and not (self.last_folder / folder.OUTCOME).exists():
                self.note_ending(NOT_BEGUN, str(error))
            self.gather(finished=True)
            write_page(self.parent, self.content, listener)
        except (PlimsollError, OSError) as further:
            listener.warning(f"{self.parent}: {further}")

    @property
    def last_folder(self) -> Path:
        """The folder of the last run."""
        return self.parent / self.content.runs[-1].folder

    def note_before(self, commands: Sequence[CommandBefore]) -> None:
        """What was carried out before the last run begins."""
        *before, last = self.content.runs
        self.note(runs=[*before, last.replace(before=list(commands))])

    def note_verdict(self, verdict: Verdict) -> None:
        """What became of the last run, and what all have in common now."""
        *before, last = self.content.runs
        self.gather(runs=[*before, with_verdict(last, verdict)])

    def gather(self, **changes: object) -> None:
        """Change the file, and compute result, median and spread from the runs that came to their
        end.
        """
        content = self.content.replace(**changes)
        complete = _complete(self.parent, content)
        modelled = any(is_modelled(run) for run in complete)
        content = content.replace(
            # A run that was begun and has no result was killed: what it saw, nobody knows.
            result=worst([run.result or INCONCLUSIVE for run in content.runs]),
            modelled=modelled,
            # The first version did not note what qualifies.
            rehearsal=not modelled and any(run.qualifying is False for run in content.runs),
            figures=figures_of(complete),
        )
        self.content = content
        self.note(headline=_headline(content))


def with_verdict(run: RepeatedRun, verdict: Verdict) -> RepeatedRun:
    """A run of a series with what it came to."""
    return run.replace(
        result=verdict.result,
        headline=verdict.headline,
        reasons=verdict.reasons,
        qualifying=verdict.qualifying,
        cautions=verdict.cautions,
    )


def begin(parent: Path, name: str, wanted_count: int) -> SeriesFile:
    """The file of a series that has no runs yet."""
    content = Repeats(
        schema_version=SCHEMA_VERSION,
        name=name,
        wanted_count=wanted_count,
        finished=False,
        modelled=False,
        runs=(),
        result=None,
        headline=None,
        figures=(),
    )
    content.write(parent / folder.REPEATS)
    return SeriesFile(parent, content)


def read(parent: Path) -> Repeats:
    """The content of a series.

    Raises:
        FolderError: the file is missing, damaged or none of a series.
    """
    content = Repeats.read(parent / folder.REPEATS)
    for run in content.runs:
        folder.inner(parent, run.folder)
    return content


def worst(results: Sequence[str]) -> str | None:
    """The worst of some results.

    >>> worst(["pass", "inconclusive", "pass"]), worst([])
    ('inconclusive', None)
    """
    return next((result for result in WORST_FIRST if result in results), None)


def _complete(parent: Path, content: Repeats) -> list[RunRead]:
    found = []
    for run in content.runs:
        # A run that ended but was not judged yet: `plimsoll report` does it.
        if run.ending == COMPLETE and (parent / run.folder / folder.SUMMARY).exists():
            try:
                found.append(read_run(parent / run.folder))
            except ComparisonError as error:
                raise folder.FolderError(str(error)) from error
    return found


def _headline(content: Repeats) -> str:
    results = [run.result for run in content.runs if run.result]
    if not results:
        return "No run came to a result"
    counted = ", ".join(f"{results.count(word)} {word}" for word in WORST_FIRST if word in results)
    unbegun = sum(run.ending == NOT_BEGUN for run in content.runs)
    lost = sum(run.result is None for run in content.runs) - unbegun
    missing = content.wanted_count - len(content.runs) + unbegun
    wanting = f", {lost} begun and without a result" if lost else ""
    wanting += f", {missing} of {content.wanted_count} did not take place" if missing > 0 else ""
    modelled = "MODELLED, nothing was measured. " if content.modelled else ""
    word = named(content.result or "", rehearsal=content.rehearsal)
    return f"{modelled}{word}: the worst of {len(results)} runs ({counted}{wanting})"


def figures_of(runs: Sequence[RunRead]) -> list[RepeatedFigure]:
    """Median, extremes and spread of every figure that some run has.

    The spread is the distance of the extremes as a share of the median.
    """
    found = []
    for figure in FIGURES:
        values = [value_of(figure, run) for run in runs]
        known = [value for value in values if value is not None]
        if not known:
            continue
        middle = median(known)
        found.append(
            RepeatedFigure(
                name=figure.name,
                title=figure.title,
                unit=figure.unit,
                values=values,
                median=middle,
                min=min(known),
                max=max(known),
                spread_percent=100 * (max(known) - min(known)) / abs(middle)
                if middle and len(known) > 1
                else None,
            )
        )
    return found


def figure_rows(content: Repeats) -> list[list[Any]]:
    """Every figure with its runs, median, extremes and spread."""
    return [
        [
            f"{figure.title} ({figure.unit})" if figure.unit else figure.title,
            *figure.values,
            figure.median,
            figure.min,
            figure.max,
            None if figure.spread_percent is None else f"{figure.spread_percent:.1f} %",
        ]
        for figure in content.figures
    ]


def lines_of(content: Repeats) -> list[str]:
    """The series for a terminal."""
    lines = [content.headline or ""]
    lines += [f"  {run.folder}: {run.headline or run.ending}" for run in content.runs]
    rows = figure_rows(content)
    if rows:
        width = max(len(row[0]) for row in rows)
        lines += [
            "",
            f"  {'':<{width}}  {'median':>10}  {'least':>10}  {'most':>10}  {'spread':>8}",
        ]
        lines += [
            f"  {row[0]:<{width}}  {shown(row[-4]):>10}  {shown(row[-3]):>10}  "
            f"{shown(row[-2]):>10}  {shown(row[-1]):>8}"
            for row in rows
        ]
    return lines


def render(parent: Path, content: Repeats) -> str:
    """The series as a page."""
    from plimsoll.compare.charts import KEY_FIGURES, Bars, value_chart
    from plimsoll.pages.kit import Chapter
    from plimsoll.pages.sheet import Sheet, render_sheet

    complete = _complete(parent, content)
    names = [run.path.name for run in complete]
    note = (
        "Runs that came to their end. The spread is the distance of the extremes as a share of the "
        "median."
    )
    table = Table(
        "Every figure",
        ["Figure", *names, "Median", "Least", "Most", "Spread"],
        figure_rows(content),
        note,
    )
    rows = [[run.folder, run.ending, run.headline, "; ".join(run.reasons)] for run in content.runs]
    listed = Table(
        "Runs", ["Run", "Ended", "Result", "Reasons"], rows, "Each folder has a report of its own."
    )
    rows_of = {row.name: row for row in content.figures}
    charts = [
        value_chart(
            Bars(
                name,
                row.title,
                row.unit,
                [(run, value, None) for run, value in zip(names, row.values, strict=True)],
            )
        )
        for name, _, _ in KEY_FIGURES
        if names and (row := rows_of.get(name))
    ]
    measured = [run.summary.window.seconds or 0.0 for run in complete]
    each = f", each measured for {duration_shown(min(measured))}" if measured else ""
    return render_sheet(
        Sheet(
            product="Plimsoll repeated run" + (", MODELLED" if content.modelled else ""),
            title=content.name,
            where=f"{len(content.runs)} of {content.wanted_count} runs{each}",
            status="rehearsal"
            if content.result == PASS and content.rehearsal
            else content.result or "inconclusive",
            headline=content.headline or "",
            sentences=[
                "The verdict of the whole is the worst of its runs; the median says what to expect "
                "of one."
            ],
            warnings=[
                *(
                    f"{run.folder} ended {run.ending}"
                    for run in content.runs
                    if run.ending != COMPLETE
                ),
                *dict.fromkeys(text for run in content.runs for text in run.cautions),
            ],
            chapters=[
                Chapter(
                    "figures",
                    "Median and spread",
                    [table],
                    [chart for chart in charts if chart is not None],
                ),
                Chapter("runs", "Runs", [listed]),
            ],
            made_by="plimsoll report",
            modelled=WARNING if content.modelled else "",
        )
    )
