"""The catalogue of what was run.

When, on which storage, which test, with what result and key figures.

A folder is a run when it holds a plan, an outcome or a summary. Folders that are damaged or were
never finished are listed as such, with what is wrong: nothing that was run disappears from the
list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.documents.document import hints_of
from plimsoll.documents.run_list import RunEntry
from plimsoll.files import folder
from plimsoll.files.paths import StrPath
from plimsoll.pipeline import background
from plimsoll.plan.places import tested_in_words

#: How deep below the directory runs are looked for: a study's variants hold repeated runs, which
#: hold runs.
DEPTH_MAX = 4
BROKEN = "broken"
FIGURES = ("database_iops", "database_read_latency_ms_mean", "log_write_latency_ms_mean")
#: What is sorted and shown.
KINDS = {
    **dict.fromkeys(("state", "result", "headline", "start_utc", "storage", "test"), str),
    "qualifying": bool,
    **dict.fromkeys(("measured_s", "runs_count", *FIGURES), int | float),
}
#: The keys of an entry, in the order in which they are printed.
ORDER = tuple(hints_of(RunEntry))
#: What a file of a folder holds: anything, because whatever is wrong with it is caught and told.
Content = Any
#: Values of an entry by their keys.
Found = dict[str, object]


def list_runs(directory: StrPath) -> list[RunEntry]:
    """Every run below a directory, the directory itself included."""
    directory = Path(directory)
    found = []
    for path in _candidates(directory, DEPTH_MAX):
        name = str(path.relative_to(directory))
        found.append(entry_of(path, directory.name if name == "." else name))
    return found


def _candidates(directory: Path, depth: int) -> list[Path]:
    found = [directory] if folder.why_no_run(directory) is None else []
    if depth:
        for child in sorted(
            path
            for path in directory.iterdir()
            if path.is_dir() and not path.is_symlink() and not folder.is_before_gap(path)
        ):
            try:
                found += _candidates(child, depth - 1)
            except OSError:
                continue
    return found


def entry_of(path: Path, name: str) -> RunEntry:
    """One line of the catalogue; whatever is wrong with the folder becomes part of it."""
    entry: Found = {"folder": name, "problem": None, **dict.fromkeys(KINDS)}
    problems: list[str] = []
    try:
        state = background.state_of(path)
        entry |= {
            "state": state["state"],
            "result": state.get("result"),
            "headline": state.get("headline"),
        }
    except (folder.FolderError, OSError, KeyError, TypeError) as error:
        problems.append(_words(error, path))
    for read, file_name in (
        (_of_plan, folder.PLAN),
        (_of_summary, folder.SUMMARY),
        (_of_verdict, folder.VERDICT),
        (_of_series, folder.REPEATS),
        (_of_sound_file, folder.OUTCOME),
        (_of_sound_file, folder.ENVIRONMENT),
    ):
        if (path / file_name).exists():
            try:
                entry |= read(folder.read_json(path / file_name))
            except (folder.FolderError, KeyError, TypeError, AttributeError, IndexError) as error:
                problems.append(_words(error, path / file_name))
    if entry["runs_count"]:
        # A series began when its first run did, on the same storage.
        first = entry_of(path / "run-1", "")
        entry |= {
            "start_utc": first.start_utc,
            "storage": first.storage,
            "measured_s": first.measured_s,
        }
    wrong = [key for key, kind in KINDS.items() if not isinstance(entry[key], kind | None)]
    if wrong:
        problems.append(f"{path} holds something else where {', '.join(wrong)} should be")
        entry |= dict.fromkeys(wrong)
    if problems:
        entry |= {"state": BROKEN, "problem": "; ".join(dict.fromkeys(problems))}
    elif entry["state"] == background.KILLED:
        entry["problem"] = background.no_result_in_words(path)
    # Each value is of its kind by now; what was not is named above.
    values: Content = {key: entry[key] for key in ORDER}
    return RunEntry(**values)


def _words(error: Exception, path: Path) -> str:
    if isinstance(error, folder.FolderError):
        return str(error)
    return f"{path} is not what it should be: {type(error).__name__} {error}"


def _of_sound_file(content: Content) -> Found:
    """Nothing: a folder in which it is damaged is shown as such, and that is all."""
    content.keys()
    return {}


def _of_plan(plan: Content) -> Found:
    run = plan["run"]
    array = plan["judgement"].get("modelled") or {}
    title = array.get("title") or array.get("name") if isinstance(array, dict) else str(array)
    storage = f"MODELLED {title}" if run.get("modelled") else ", ".join(tested_in_words(run))
    imported = "imported " if plan.get("imported") else ""
    return {"storage": storage, "test": f"{imported}{plan['judgement']['test']}"}


def _of_verdict(verdict: Content) -> Found:
    return {"qualifying": verdict["qualifying"]}


def _of_summary(summary: Content) -> Found:
    total, window = summary["total"], summary["window"]

    def latency(metric: str) -> float | None:
        figures = total[metric]
        if figures.get("count") == 0:
            return None
        value: float | None = figures.get("latency_ms_mean")
        return figures.get("latency_ms_mean_of_samples") if value is None else value

    return {
        "start_utc": window["start_utc"] or window.get("start_local"),
        "measured_s": window["seconds"],
        "database_iops": total["database_iops"],
        "database_read_latency_ms_mean": latency("database_read"),
        "log_write_latency_ms_mean": latency("log_write"),
    }


def _of_series(content: Content) -> Found:
    medians = {figure["name"]: figure["median"] for figure in content["figures"]}
    return {
        "runs_count": len(content["runs"]),
        "qualifying": all(known)
        if (known := [run["qualifying"] for run in content["runs"] if "qualifying" in run])
        else None,
        "test": f"repeated {len(content['runs'])} of {content['wanted_count']}",
        "database_iops": medians.get("database_iops"),
        "database_read_latency_ms_mean": medians.get("total_database_read_latency_ms_mean"),
        "log_write_latency_ms_mean": medians.get("total_log_write_latency_ms_mean"),
    }
