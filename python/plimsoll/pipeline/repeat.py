"""A repeated run: several runs of one plan, one after the other, in one folder with what they have in common.

`repeats.json` lists the runs as they happen, so that a series that was interrupted or killed keeps what it has. Only runs that
came to their end count for median and spread. The verdict of the whole is the worst of its runs: a storage that fails
once in three times fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from plimsoll.arrays.text import WARNING
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.figures import FIGURES, value_of
from plimsoll.compare.sides import ComparisonError, RunRead, read_run
from plimsoll.files import folder
from plimsoll.pages.tables import Table, duration_shown, shown
from plimsoll.verdict import FAIL, INCONCLUSIVE, PASS

SCHEMA_VERSION = 1
BEGUN, COMPLETE = "begun", "complete"
WORST_FIRST = (FAIL, INCONCLUSIVE, PASS)


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
    from plimsoll.compare.charts import KEY_FIGURES, value_chart
    from plimsoll.pages.kit import Chapter
    from plimsoll.pages.sheet import Sheet, render_sheet

    complete = _complete(parent, content)
    names = [run.path.name for run in complete]
    note = "Runs that came to their end. The spread is the distance of the extremes as a share of the median."
    table = Table("Every figure", ["Figure", *names, "Median", "Least", "Most", "Spread"], figure_rows(content), note)
    rows = [[run["folder"], run["ending"], run["headline"], "; ".join(run["reasons"])] for run in content["runs"]]
    listed = Table("Runs", ["Run", "Ended", "Result", "Reasons"], rows, "Each folder has a report of its own.")
    estimates = {
        "sides": [{"name": name} for name in names],
        "figures": [
            {**figure, "sides": [{"value": value, "relative_error": None} for value in figure["values"]]}
            for figure in content["figures"]
        ],
    }
    charts = [value_chart(estimates, name) for name, _, _ in KEY_FIGURES] if names else []
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
