"""The run folder: which file holds what, and how such files are read and written.

    plan.json  environment.json  events.log  samples.parquet  histograms.parquet  kernel-log.json  outcome.json
    points.json where a rate was searched for: the knee chart's points; capacity.json its answer in users
    counters.parquet
    summary.json  verdict.json  report.html
    repeats.json in a folder that holds the runs of a repeated run
    hosts.json in a folder that holds the runs of several hosts

Each stage writes its own files and edits nobody else's, so a later stage can be redone without the disk under test.
JSON files carry a `schema_version`. `events.log` has one JSON object a line.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PLAN = "plan.json"
ENVIRONMENT = "environment.json"
EVENTS = "events.log"
SAMPLES = "samples.parquet"
HISTOGRAMS = "histograms.parquet"
COUNTERS = "counters.parquet"
KERNEL_LOG = "kernel-log.json"
DEVICE_ERRORS = "device-errors.json"
CONTENT = "content.json"
OUTCOME = "outcome.json"
POINTS = "points.json"
SUMMARY = "summary.json"
VERDICT = "verdict.json"
CAPACITY = "capacity.json"
#: Only where a crash has cut the run off and it went on.
GAPS = "gaps.json"
#: In the folder that holds the runs of a repeated run, beside their folders.
REPEATS = "repeats.json"
#: In the folder that holds the runs of several hosts at once, beside their folders.
HOSTS = "hosts.json"
REPORT = "report.html"
#: Only there while a run goes on.
PROGRESS = "progress.json"
#: What a run in the background would have shown.
TERMINAL = "terminal.log"

#: Only in folders of imported runs: the report as the other tool wrote it, and what does not add up in it.
REPORTED = "reported.json"
CONSISTENCY = "consistency.json"

#: Where run folders go unless the user names one.
DEFAULT_PARENT = Path("runs")


class FolderError(Exception):
    """A run folder that cannot be used; the message says why and what to do."""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    unfinished = path.with_suffix(path.suffix + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder.

    Raises:
        FolderError: it is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FolderError(f"{path} is missing; is {path.parent} the folder of a run?") from error
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from error


def new_folder(name: str, wanted: Path | None) -> Path:
    """Make the folder of a new run.

    Args:
        name: the plan's name, part of the folder's name unless one is wanted.
        wanted: the folder the user named. It may hold an earlier run, which is then replaced.

    Raises:
        FolderError: the wanted folder holds something that is not a run.
    """
    if wanted is None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        folder = DEFAULT_PARENT / f"{name.replace(' ', '-')}-{stamp}"
        suffix = 1
        while folder.exists():
            suffix += 1
            folder = DEFAULT_PARENT / f"{name.replace(' ', '-')}-{stamp}-{suffix}"
        folder.mkdir(parents=True)
        return folder.absolute()
    if wanted.exists() and not wanted.is_dir():
        raise FolderError(f"{wanted} is a file; name a folder for the run")
    present = {path.name for path in wanted.iterdir()} if wanted.exists() else set()
    ours = {
        PLAN,
        ENVIRONMENT,
        EVENTS,
        SAMPLES,
        HISTOGRAMS,
        COUNTERS,
        KERNEL_LOG,
        DEVICE_ERRORS,
        CONTENT,
        OUTCOME,
        POINTS,
        CAPACITY,
        GAPS,
        SUMMARY,
        VERDICT,
        REPORT,
        PROGRESS,
        TERMINAL,
        REPORTED,
        CONSISTENCY,
    }
    if present and PLAN not in present:
        raise FolderError(f"{wanted} is not empty and holds no run; name another folder, nothing is overwritten")
    for file_name in present & ours:
        (wanted / file_name).unlink()
    wanted.mkdir(parents=True, exist_ok=True)
    return wanted.absolute()


def require_single(folder: Path, verb: str) -> None:
    """Refuse a folder that holds several runs, for what can only be done with one.

    Args:
        folder: what the user named.
        verb: what is to be done with a run, as in "watch".

    Raises:
        FolderError: it holds several; the message names the first of them.
    """
    if (folder / REPEATS).exists():
        raise FolderError(f"{folder} holds a repeated run; {verb} one of its runs: {folder / 'run-1'}")
    if (folder / HOSTS).exists():
        raise FolderError(f"{folder} holds the runs of several hosts; {verb} one of them: {folder / 'host-1'}")


def read_events(folder: Path) -> list[dict[str, Any]]:
    """The events of a run, oldest first; an unfinished last line is left out."""
    events = []
    path = folder / EVENTS
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events
