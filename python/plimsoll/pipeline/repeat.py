"""A repeated run: several runs of one plan, one after the other, in one folder with what they have in common.

`repeats.json` lists the runs as they happen, so that a series that was interrupted or killed keeps what it has. Only runs that
came to their end count for median and spread. The verdict of the whole is the worst of its runs: a storage that fails
once in three times fails.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from plimsoll import exit_codes
from plimsoll.arrays.text import WARNING
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.figures import FIGURES, value_of
from plimsoll.compare.sides import ComparisonError, RunRead, read_run
from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.live.listener import Listener
from plimsoll.pages.tables import Table, duration_shown, shown
from plimsoll.pipeline import forecast, qualify
from plimsoll.verdict import FAIL, INCONCLUSIVE, PASS

SCHEMA_VERSION = 1
BEGUN, COMPLETE = "begun", "complete"
WORST_FIRST = (FAIL, INCONCLUSIVE, PASS)


@dataclass(frozen=True)
class Series:
    """What became of a repeated run.

    Attributes:
        folder: the folder that holds its runs.
        content: the content of `repeats.json`: the runs, and median, extremes and spread of each figure.
        results: of the runs that took place now; none when they were only judged again.
        interrupted: whether it was stopped between two runs.
    """

    folder: Path
    content: dict[str, Any]
    results: list[qualify.Result] = field(default_factory=list)
    interrupted: bool = False

    @property
    def result(self) -> str | None:
        """The worst of its runs; None when none came to a result."""
        found: str | None = self.content["result"]
        return found

    @property
    def exit_code(self) -> int:
        """How a program that did nothing else would end: as the worst of the runs that took place now, or by the result."""
        codes = [result.exit_code for result in self.results] + ([exit_codes.INTERRUPTED] if self.interrupted else [])
        judged = exit_codes.BY_RESULT.get(self.result or "", exit_codes.INCONCLUSIVE)
        return next((code for code in exit_codes.WORST_FIRST if code in codes), judged)

    @property
    def report(self) -> Path | None:
        """The page, where one was written."""
        path = self.folder / folder.REPORT
        return path if path.exists() else None

    def lines(self) -> list[str]:
        """Every run and the figures they have in common, for people."""
        return lines_of(self.content)


def repeat(
    plan: dict[str, Any],
    times: int,
    out: Path | None = None,
    *,
    found: preflight.Preflight | None = None,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Series:
    """Carry out a plan several times, one after the other, into one folder; what was done is kept whatever happens.

    A run that was interrupted, or that could not be carried out, ends the series. Simulated runs differ in their seed: with the
    same one a simulation repeats itself to the byte.

    Args:
        plan: a completed plan.
        times: how often.
        out: the folder of the series; a new one below `runs/` if left out.
        found: as from `check`, which is asked when left out.
        listener: told how each run goes.
        stop: set it from another thread to stop the series.

    Raises:
        PreflightError: a run cannot start.
        FolderError, EngineError: as in `qualify`.
    """
    found = found or forecast.check(plan, listener=listener)
    return repeat_into(plan, times, qualify.make_run_folder(plan, out), found=found, listener=listener, stop=stop)


def repeat_into(
    plan: dict[str, Any],
    times: int,
    parent: Path,
    *,
    found: preflight.Preflight,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> Series:
    """The same as `repeat`, into a folder that was made for it."""
    hears, stopped = listener or Listener(), stop or threading.Event()
    content, results, interrupted = begin(parent, plan["name"], times), list[qualify.Result](), False
    try:
        for number in range(1, times + 1):
            if interrupted := stopped.is_set():
                break
            each = another_run(plan, number)
            serials = found.run["destroy_serials"]
            found = preflight.inspect(each["run"], each.get("source"), serials) if number > 1 else found
            hears.say(f"run {number} of {times}")
            results.append(_once(each, parent, content, found, hears, stopped))
            hears.say(f"run {number} of {times}: {content['runs'][-1]['headline']}")
            if ends_series(results[-1]):
                break
    except KeyboardInterrupt:
        # Between two runs nobody else listens; within one, the run ends cleanly and says so itself.
        interrupted = True
    finish(parent, content)
    write_page(parent, content, hears)
    return Series(parent, content, results, interrupted)


def another_run(plan: dict[str, Any], number: int) -> dict[str, Any]:
    """The plan of a run of a series: simulated ones differ in their seed, because one seed always gives the same bytes."""
    each = copy.deepcopy(plan)
    if plan["run"].get("modelled"):
        each["run"]["seed"] += number - 1
    return each


def ends_series(result: qualify.Result) -> bool:
    """Whether the runs after it would end the same way."""
    return result.exit_code in (exit_codes.INTERRUPTED, exit_codes.USAGE)


def _once(
    plan: dict[str, Any],
    parent: Path,
    content: dict[str, Any],
    found: preflight.Preflight,
    listener: Listener,
    stop: threading.Event,
) -> qualify.Result:
    """One run of the series."""
    run_folder = begin_run(parent, content)
    outcome = qualify.measure(plan, run_folder, found=found, listener=listener, stop=stop)
    note_ending(parent, content, outcome["ending"])
    verdict = qualify.judge_files(run_folder, listener)
    note(parent, content, verdict)
    return qualify.Result(run_folder, verdict, outcome)


def judge_series(parent: Path, *, listener: Listener | None = None) -> Series:
    """Judge every run of a series again, and the series, from their folders.

    Raises:
        FolderError: files are missing or damaged.
    """
    hears = listener or Listener()
    with reading(parent):
        content = read(parent)
        for run in content["runs"]:
            if (parent / run["folder"] / folder.OUTCOME).exists():
                result = qualify.judge(parent / run["folder"], listener=hears)
                run |= {"ending": result.ending, "result": result.result}
                run |= {"headline": result.headline, "reasons": result.verdict["reasons"]}
        gather(parent, content)
        write_page(parent, content, hears)
    return Series(parent, content)


def write_page(parent: Path, content: dict[str, Any], listener: Listener) -> None:
    """The page of the series, where its libraries are installed."""
    try:
        folder.write_text(parent / folder.REPORT, render(parent, content))
    except ModuleNotFoundError as error:
        listener.warning(f"no report.html was written, because {error.name} is not installed")


def begin(parent: Path, name: str, wanted_count: int) -> dict[str, Any]:
    """The content of a series that has no runs yet, written into its folder."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "wanted_count": wanted_count,
        "finished": False,
        "modelled": False,
        "runs": [],
        "result": None,
        "headline": None,
        "figures": [],
    }
    folder.write_json(parent / folder.REPEATS, content)
    return content


def begin_run(parent: Path, content: dict[str, Any]) -> Path:
    """The folder of the next run, noted before it begins."""
    name = f"run-{len(content['runs']) + 1}"
    (parent / name).mkdir()
    content["runs"].append({"folder": name, "ending": BEGUN, "result": None, "headline": None, "reasons": []})
    folder.write_json(parent / folder.REPEATS, content)
    return parent / name


def note_ending(parent: Path, content: dict[str, Any], ending: str) -> None:
    """How the last run ended, before anything is made of it."""
    content["runs"][-1]["ending"] = ending
    folder.write_json(parent / folder.REPEATS, content)


def note(parent: Path, content: dict[str, Any], verdict: dict[str, Any]) -> None:
    """What became of the last run, and what all have in common now."""
    content["runs"][-1] |= {
        "result": verdict["result"],
        "headline": verdict["headline"],
        "reasons": verdict["reasons"],
    }
    gather(parent, content)


def finish(parent: Path, content: dict[str, Any]) -> None:
    """Mark a series that has as many runs as it was to have, or will get no more."""
    content["finished"] = True
    gather(parent, content)


def gather(parent: Path, content: dict[str, Any]) -> None:
    """Compute result, median and spread from the runs that came to their end, and write the file."""
    content["result"] = worst([run["result"] for run in content["runs"] if run["result"]])
    complete = _complete(parent, content)
    content["modelled"] = any(is_modelled(run) for run in complete)
    content["headline"] = _headline(content)
    content["figures"] = figures_of(complete)
    folder.write_json(parent / folder.REPEATS, content)


def read(parent: Path) -> dict[str, Any]:
    """The content of a series.

    Raises:
        FolderError: the file is missing, damaged or none of a series.
    """
    content = folder.read_json(parent / folder.REPEATS)
    if not isinstance(content, dict) or not isinstance(content.get("runs"), list):
        raise folder.FolderError(f"{parent / folder.REPEATS} has no list `runs`; expected what --repeat writes")
    for run in content["runs"]:
        folder.inner(parent, run["folder"])
    return content


def worst(results: Sequence[str]) -> str | None:
    """The worst of some results.

    >>> worst(["pass", "inconclusive", "pass"]), worst([])
    ('inconclusive', None)
    """
    return next((result for result in WORST_FIRST if result in results), None)


def _complete(parent: Path, content: dict[str, Any]) -> list[RunRead]:
    found = []
    for run in content["runs"]:
        # A run that ended but was not judged yet: `plimsoll report` does it.
        if run["ending"] == COMPLETE and (parent / run["folder"] / folder.SUMMARY).exists():
            try:
                found.append(read_run(parent / run["folder"]))
            except ComparisonError as error:
                raise folder.FolderError(str(error)) from error
    return found


def _headline(content: dict[str, Any]) -> str:
    results = [run["result"] for run in content["runs"] if run["result"]]
    if not results:
        return "No run came to a result"
    counted = ", ".join(f"{results.count(word)} {word}" for word in WORST_FIRST if word in results)
    missing = content["wanted_count"] - len(results)
    wanting = f", {missing} of {content['wanted_count']} did not take place" if missing > 0 else ""
    modelled = "MODELLED, nothing was measured. " if content.get("modelled") else ""
    return f"{modelled}{(content['result'] or '').capitalize()}: the worst of {len(results)} runs ({counted}{wanting})"


def figures_of(runs: Sequence[RunRead]) -> list[dict[str, Any]]:
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
            {
                "name": figure.name,
                "title": figure.title,
                "unit": figure.unit,
                "values": values,
                "median": middle,
                "min": min(known),
                "max": max(known),
                "spread_percent": 100 * (max(known) - min(known)) / abs(middle) if middle and len(known) > 1 else None,
            }
        )
    return found


def figure_rows(content: dict[str, Any]) -> list[list[Any]]:
    """Every figure with its runs, median, extremes and spread."""
    return [
        [
            f"{figure['title']} ({figure['unit']})" if figure["unit"] else figure["title"],
            *figure["values"],
            figure["median"],
            figure["min"],
            figure["max"],
            None if figure["spread_percent"] is None else f"{figure['spread_percent']:.1f} %",
        ]
        for figure in content["figures"]
    ]


def lines_of(content: dict[str, Any]) -> list[str]:
    """The series for a terminal."""
    lines = [content["headline"]]
    lines += [f"  {run['folder']}: {run['headline'] or run['ending']}" for run in content["runs"]]
    rows = figure_rows(content)
    if rows:
        width = max(len(row[0]) for row in rows)
        lines += ["", f"  {'':<{width}}  {'median':>10}  {'least':>10}  {'most':>10}  {'spread':>8}"]
        lines += [
            f"  {row[0]:<{width}}  {shown(row[-4]):>10}  {shown(row[-3]):>10}  {shown(row[-2]):>10}  {shown(row[-1]):>8}"
            for row in rows
        ]
    return lines


def render(parent: Path, content: dict[str, Any]) -> str:
    """The series as a page."""
    from plimsoll.compare.charts import KEY_FIGURES, Bars, value_chart
    from plimsoll.pages.kit import Chapter
    from plimsoll.pages.sheet import Sheet, render_sheet

    complete = _complete(parent, content)
    names = [run.path.name for run in complete]
    note = "Runs that came to their end. The spread is the distance of the extremes as a share of the median."
    table = Table("Every figure", ["Figure", *names, "Median", "Least", "Most", "Spread"], figure_rows(content), note)
    rows = [[run["folder"], run["ending"], run["headline"], "; ".join(run["reasons"])] for run in content["runs"]]
    listed = Table("Runs", ["Run", "Ended", "Result", "Reasons"], rows, "Each folder has a report of its own.")
    rows_of = {row["name"]: row for row in content["figures"]}
    charts = [
        value_chart(
            Bars(
                name,
                row["title"],
                row["unit"],
                [(run, value, None) for run, value in zip(names, row["values"], strict=True)],
            )
        )
        for name, _, _ in KEY_FIGURES
        if names and (row := rows_of.get(name))
    ]
    measured = [run.summary.window.seconds or 0.0 for run in complete]
    each = f", each measured for {duration_shown(min(measured))}" if measured else ""
    return render_sheet(
        Sheet(
            product="Plimsoll repeated run" + (", MODELLED" if content.get("modelled") else ""),
            title=content["name"],
            where=f"{len(content['runs'])} of {content['wanted_count']} runs{each}",
            status=content["result"] or "inconclusive",
            headline=content["headline"],
            sentences=["The verdict of the whole is the worst of its runs; the median says what to expect of one."],
            warnings=[f"{run['folder']} ended {run['ending']}" for run in content["runs"] if run["ending"] != COMPLETE],
            chapters=[
                Chapter("figures", "Median and spread", [table], [chart for chart in charts if chart is not None]),
                Chapter("runs", "Runs", [listed]),
            ],
            made_by="plimsoll report",
            modelled=WARNING if content.get("modelled") else "",
        )
    )
