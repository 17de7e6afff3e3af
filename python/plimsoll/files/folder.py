"""The run folder: which file holds what, and how such files are read and written.

    plan.json  environment.json  events.log  samples.parquet  histograms.parquet  kernel-log.json
    outcome.json points.json where a rate was searched for: the knee chart's points; capacity.json
    its answer in users counters.parquet
    summary.json  verdict.json  report.html
    repeats.json in a folder that holds the runs of a repeated run
    hosts.json in a folder that holds the runs of several hosts

Each stage writes its own files and edits nobody else's, so a later stage can be redone without the
disk under test. JSON files carry a `schema_version`. `events.log` has one JSON object a line.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.errors import PlimsollError
from plimsoll.files import claims
from plimsoll.files.paths import StrPath, sync_directory
from plimsoll.files.sanitize import NO_TEXT, parse_json, unusable_name

#: A JSON object: what a file holds, or what is to be written into one.
Content = dict[str, Any]
PLAN = "plan.json"
ENVIRONMENT = "environment.json"
EVENTS = "events.log"
SAMPLES = "samples.parquet"
HISTOGRAMS = "histograms.parquet"
COUNTERS = "counters.parquet"
KERNEL_LOG = "kernel-log.json"
DEVICE_ERRORS = "device-errors.json"
#: Only where drives tell of themselves: what the run did to them.
DRIVE_HEALTH = "drive-health.json"
LOG_CHECK = "log-check.json"
#: Only where the plan stages events: what became of each.
STAGED_EVENTS = "staged-events.json"
#: Only where servers were watched: what their processes used.
SERVER_USAGE = "server-usage.json"
#: Only while something is degraded: how it is undone, also after the process was killed.
UNDO_PENDING = "undo-pending.json"
CONTENT = "content.json"
OUTCOME = "outcome.json"
POINTS = "points.json"
SUMMARY = "summary.json"
VERDICT = "verdict.json"
CAPACITY = "capacity.json"
#: The newest `schema_version` of each file that is read; 1 where nothing is said.
NEWEST_VERSIONS = {VERDICT: 2}
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

#: One of these lies in the folder of every run, or of several.
MARKS = (PLAN, OUTCOME, SUMMARY, REPEATS, HOSTS, TERMINAL)
#: Only in folders of imported runs: the report as the other tool wrote it, and what does not add up
#: in it.
REPORTED = "reported.json"
CONSISTENCY = "consistency.json"

#: What a run writes into its folder.
FILES_OF_A_RUN = frozenset(
    {
        PLAN,
        ENVIRONMENT,
        EVENTS,
        SAMPLES,
        HISTOGRAMS,
        COUNTERS,
        KERNEL_LOG,
        DEVICE_ERRORS,
        DRIVE_HEALTH,
        LOG_CHECK,
        STAGED_EVENTS,
        SERVER_USAGE,
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
)
#: Phases of a run that makes databases and measures nothing.
PREPARING = frozenset({"prepare", "stop"})
#: Where run folders go unless the user names one.
DEFAULT_PARENT = Path("runs")
#: What of a plan's name goes into that of its folder.
NAME_CHARACTERS_MAX = 100
#: Larger than that of any run; all of it is kept in memory.
JSON_BYTES_MAX = 256 << 20
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


class FolderError(PlimsollError):
    """A run folder that cannot be used; the message says why and what to do."""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_text(path, _json_text(value))


def write_json_durably(path: Path, value: Any) -> None:
    """The same, on stable storage with its name when this returns."""
    with replacing(path) as unfinished, unfinished.open("x", encoding="utf-8") as file:
        file.write(_json_text(value))
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


def _json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as unfinished, unfinished.open("x", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file, which takes the place of `path` once it is whole.

    A link that somebody has put there is replaced and not followed. The file has a name until then
    that nobody else has, so that nothing that lies beside it is written over.
    """
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_imported(run_folder: Path) -> bool:
    """Whether a folder holds an imported run."""
    return (run_folder / REPORTED).is_file()


def report_of(run_folder: Path) -> Path | None:
    """The page of a run, or of what was made of several, where one was written."""
    path = run_folder / REPORT
    return path if path.exists() else None


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder.

    Raises:
        FolderError: it is missing or damaged, or of a newer version of the program.
    """
    try:
        content = parse_json(read_text(path))
    except FileNotFoundError as error:
        raise FolderError(f"{path} is missing; is {path.parent} the folder of a run?") from error
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from error
    newer = why_not_understood(path, content)
    if newer is not None:
        raise FolderError(f"{path} {newer}")
    return content


def why_not_understood(path: Path, content: Any) -> str | None:
    """Why a file of a newer version of the program is not read; None where it is none."""
    version = content.get("schema_version") if isinstance(content, dict) else None
    known = NEWEST_VERSIONS.get(path.name, 1)
    if not isinstance(version, int) or version <= known:
        return None
    return (
        f"was written by a newer version of Plimsoll: its schema_version is {version}, and this "
        f"one reads up to {known}; use that version"
    )


def read_text(path: Path, errors: str = "strict") -> str:
    """All of a text file; what does not fit into memory is not read.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, or is not UTF-8.
    """
    if path.stat().st_size > JSON_BYTES_MAX:
        raise ValueError(f"it is larger than {JSON_BYTES_MAX >> 20} MiB")
    return path.read_text(encoding="utf-8", errors=errors)


def inner(parent: Path, name: Any) -> Path:
    """The folder of a run that a file of the folder around it names.

    Raises:
        FolderError: the name leads elsewhere; what is done to a folder is done to nothing beside
            it.
    """
    path = parent / str(name)
    if not isinstance(name, str) or path.name != name or path.is_symlink():
        raise FolderError(
            f"{parent} names {str(name)[:80]!r} as the folder of a run, which does not lie in it"
        )
    return path


HOLDS_RUN = "holds an earlier run; name another folder, nothing is overwritten"


def new_folder(name: str, wanted: Path | None) -> Path:
    """Make the folder of a new run.

    Args:
        name: the plan's name, part of the folder's name unless one is wanted.
        wanted: the folder the user named; it must be empty, or not there yet.

    Raises:
        FolderError: the wanted folder is not empty.
    """
    if wanted is None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        # The name comes out of a plan, and plans come from anybody: it must not lead anywhere else.
        plain = _UNUSUAL.sub("-", name).strip(".-")[:NAME_CHARACTERS_MAX] or "run"
        folder = DEFAULT_PARENT / f"{plain}-{stamp}"
        suffix = 1
        while folder.exists():
            suffix += 1
            folder = DEFAULT_PARENT / f"{plain}-{stamp}-{suffix}"
        folder.mkdir(parents=True)
        return folder.absolute()
    if (shown := unusable_name(str(wanted.absolute()))) is not None:
        raise FolderError(f"{shown} {NO_TEXT}; name another folder for the run")
    if wanted.exists() and not wanted.is_dir():
        raise FolderError(f"{wanted} is a file; name a folder for the run")
    if wanted.exists() and any(wanted.iterdir()):
        raise FolderError(f"{wanted} {_what_lies_in(wanted)}")
    wanted.mkdir(parents=True, exist_ok=True)
    return wanted.absolute()


def require_no_run(home: Path) -> None:
    """Refuse the folder of another run, for a run that is about to begin there.

    Raises:
        FolderError: there is one.
    """
    if _holds_run(home):
        raise FolderError(f"{home} {HOLDS_RUN}")


def _what_lies_in(home: Path) -> str:
    """Why a folder that is not empty cannot become that of a new run."""
    if goes_on(home):
        return "belongs to a run that goes on; name another folder, or stop that run first"
    if kind_of_folder(home) != "run" or _holds_run(home):
        return HOLDS_RUN
    return "is not empty and holds no run; name another folder, nothing is overwritten"


def clear_unfinished(home: Path) -> None:
    """Delete what an unfinished run left in its folder, and nothing else there.

    For those who made that folder themselves.

    Args:
        home: the folder; nothing is done where there is none.

    Raises:
        FolderError: it holds no run, or one that goes on.
    """
    present = {path.name for path in home.iterdir()} if home.exists() else set()
    if not present:
        return
    if goes_on(home) or not _holds_run(home):
        raise FolderError(f"{home} {_what_lies_in(home)}")
    for file_name in present & FILES_OF_A_RUN:
        (home / file_name).unlink()
    for path in [*home.glob("before-gap-*"), home / "samples.parts"]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def _holds_run(home: Path) -> bool:
    """Whether the plan in a folder is one of ours; other programs have files of that name too."""
    try:
        plan = read_json(home / PLAN)
    except FolderError:
        return False
    return isinstance(plan, dict) and "schema_version" in plan and "run" in plan


def goes_on(home: Path) -> bool:
    """Whether a process still works in the folder of its run."""
    if claims.is_claimed(home):
        return True
    try:
        progress = read_json(home / PROGRESS)
        return progress["process_id"] != os.getpid() and lives(progress)
    except (FolderError, LookupError, TypeError):
        return False


@contextmanager
def kept(directories: Iterable[Path]) -> Iterator[None]:
    """Keep other runs on this machine from directories, also from those that are not there yet.

    Raises:
        FolderError: another run has one of them.
    """
    with ExitStack() as stack:
        for directory in sorted({path.resolve() for path in directories}):
            claim = claims.claim(directory)
            if claim is None:
                raise FolderError(
                    f"{directory} belongs to another run that goes on; start this one when that "
                    f"has ended, nothing was changed"
                )
            stack.enter_context(claim)
        yield


def killed_in_words(home: Path) -> str:
    """What is said of a run whose process is gone without a verdict, and what the user can do.

    >>> killed_in_words(Path("runs/night"))
    'runs/night was killed before it began; start it again'
    """
    prepared = prepared_in_words(home)
    if prepared is not None:
        return prepared
    if (home / OUTCOME).exists():
        return f"{home} was measured and not judged; `plimsoll report {home}` judges it"
    refusal = why_not_resumed(home)
    return f"{home} was killed{refusal or f'; `plimsoll resume {home}` goes on'}"


def prepared_in_words(home: Path) -> str | None:
    """What became of a run that only made databases and was not judged; None where it is none.

    Raises:
        FolderError: its files are damaged.
    """
    if (home / VERDICT).exists() or not all((home / name).exists() for name in (PLAN, OUTCOME)):
        return None
    phases = read_json(home / PLAN)["run"]["phases"]
    if not phases or not {phase["action"]["kind"] for phase in phases} <= PREPARING:
        return None
    outcome = read_json(home / OUTCOME)
    if outcome["ending"] == "complete":
        return f"{home} prepared databases, complete; nothing was measured"
    why = (outcome.get("error") or {}).get("text", "nobody knows why")
    return (
        f"{home} was to prepare databases and ended {outcome['ending']}: {why}; see to that, and "
        f"begin `plimsoll prepare` again"
    )


def is_before_gap(home: Path) -> bool:
    """Whether a folder is what a resumed run has put aside, and no run of its own."""
    return home.name.startswith("before-gap-") and _holds_run(home.parent)


def why_not_resumed(home: Path) -> str | None:
    """Why a run that was cut off cannot go on, and what to do instead; None where it can.

    Whether its storage is there is found when it goes on.
    """
    if is_before_gap(home):
        return f" and is what was measured before a gap; the run itself is {home.parent}"
    if not (home / ENVIRONMENT).exists():
        return " before it began; start it again"
    if not read_events(home):
        return " before anything happened; start it again"
    plan = read_json(home / PLAN)
    if plan["run"].get("modelled"):
        return "; a modelled run takes no time of a storage: start it again"
    if any(event.get("kind") != "modelled" for event in plan.get("events", ())):
        left = "nothing of them is left to undo: begin a new run"
        if (home / UNDO_PENDING).exists():
            left = f"undo what is left of them with `plimsoll clean {home}`, then begin a new run"
        return f" while events were staged, whose moments lie in the time that was cut off; {left}"
    return None


def progress_mark() -> dict[str, int | None]:
    """What `progress.json` says of this process."""
    number = os.getpid()
    return {"process_id": number, "process_began_ticks": claims.began_ticks(number)}


def lives(progress: Mapping[str, Any]) -> bool:
    """Whether the process of a `progress.json` is there; its number may have gone to another."""
    began = claims.began_ticks(progress["process_id"])
    # Earlier versions wrote no time.
    return began is not None and began == progress.get("process_began_ticks", began)


def why_no_run(home: Path) -> str | None:
    """Why what the user named is not the folder of a run, or of several, and what to do instead;
    None where it is one.
    """
    if not home.exists():
        return "does not exist; name the folder of a run"
    if not home.is_dir():
        return "is a file; name the folder of a run"
    if not any((home / mark).exists() for mark in MARKS):
        return f"holds no run; name the folder of one, which has {PLAN} in it"
    return None


def require_run(home: Path) -> None:
    """Refuse what is not the folder of a run, or of several.

    Raises:
        FolderError: it is none.
    """
    problem = why_no_run(home)
    if problem is not None:
        raise FolderError(f"{home} {problem}")


def kind_of_folder(home: StrPath) -> str:
    """What lies in a folder: `run`, `series` of a repeated run, or `hosts`, the runs of several."""
    home = Path(home)
    return "series" if (home / REPEATS).exists() else "hosts" if (home / HOSTS).exists() else "run"


def require_single(folder: StrPath, verb: str) -> None:
    """Refuse what is no run, or several, for what can only be done with one.

    Args:
        folder: what the user named.
        verb: what is to be done with a run, as in "watch".

    Raises:
        FolderError: it holds none, or several; the message names the first of them.
    """
    folder = Path(folder)
    require_run(folder)
    if (folder / REPEATS).exists():
        raise FolderError(
            f"{folder} holds a repeated run; {verb} one of its runs: {folder / 'run-1'}"
        )
    if (folder / HOSTS).exists():
        raise FolderError(
            f"{folder} holds the runs of several hosts; {verb} one of them: {folder / 'host-1'}"
        )


def read_events(folder: Path) -> list[dict[str, Any]]:
    """The events of a run, oldest first.

    An unfinished last line, and what is no event, are left out.

    Raises:
        FolderError: there are too many to be kept in memory.
    """
    events = []
    path = folder / EVENTS
    if not path.exists():
        return []
    try:
        text = read_text(path, "replace")
    except ValueError as error:
        raise FolderError(f"{path} cannot be read: {error}") from error
    # A name in an event may hold what Python takes for another end of a line.
    for line in text.split("\n"):
        try:
            event = parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("kind"), str):
            events.append(event)
    return events
