"""Leaving a run to the background, and asking after it.

The run folder is all that the two sides share.

The run goes on in a session of its own, so that closing the terminal does not reach it; `kill PID`
stops it cleanly. A folder whose run has ended has an outcome; one whose process is gone without an
outcome was killed, and its databases are recovered by the next run. Whether a process lives is
never guessed from the age of a file: a run claims its folder before it writes there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from plimsoll.files import folder
from plimsoll.files.paths import StrPath

RUNNING, ENDED, KILLED, STARTING = "running", "ended", "killed", "starting"
#: Databases were made and nothing was measured.
PREPARED = "prepared"
#: A process that was just left to the background has this long to claim its folder.
STARTING_S = 30.0


def leave_to_background(run_folder: StrPath) -> int | None:
    """Fork: the parent has the number of the process that carries on, and should end.

    The child has None, and no terminal.

    What the child writes to its standard streams goes into `terminal.log` of the run folder. Write
    out what is buffered before.
    """
    run_folder = Path(run_folder)
    child = os.fork()
    if child:
        return child
    os.setsid()
    log = os.open(run_folder / folder.TERMINAL, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    return None


def state_of(run_folder: StrPath) -> folder.Content:
    """Whether a run goes on, and what is known of it.

    Raises:
        FolderError: the folder holds no run.
    """
    run_folder = Path(run_folder)
    if (run_folder / folder.REPEATS).exists():
        return _state_of_series(run_folder)
    folder.require_run(run_folder)
    if (run_folder / folder.VERDICT).exists():
        found = folder.read_json(run_folder / folder.VERDICT)
        return {"state": ENDED, "result": found["result"], "headline": found["headline"]}
    progress = run_folder / folder.PROGRESS
    shown: folder.Content = folder.read_json(progress) if progress.exists() else {}
    if shown and folder.lives(shown):
        return {"state": RUNNING, **shown}
    if folder.goes_on(run_folder) or _is_just_begun(run_folder):
        judges = (run_folder / folder.OUTCOME).exists()
        return {"state": STARTING, "doing": "judging" if judges else "starting"}
    prepared = folder.prepared_in_words(run_folder)
    if prepared is not None:
        return {"state": PREPARED, "headline": prepared}
    return {"state": KILLED, **shown}


def _is_just_begun(run_folder: Path) -> bool:
    """Whether a process that was left to the background has not written anything yet."""
    files = list(run_folder.iterdir())
    if [path.name for path in files] != [folder.TERMINAL]:
        return False
    return time.time() - files[0].stat().st_mtime < STARTING_S


def no_result_in_words(run_folder: StrPath) -> str:
    """Why a run has no result although its process is gone, and what the user can do."""
    run_folder = Path(run_folder)
    if (run_folder / folder.REPEATS).exists():
        runs = folder.read_json(run_folder / folder.REPEATS)["runs"]
        return (
            no_result_in_words(folder.inner(run_folder, runs[-1]["folder"]))
            if runs
            else f"{run_folder} was killed"
        )
    prepared = folder.prepared_in_words(run_folder)
    if prepared is not None:
        return prepared
    last = last_words(run_folder)
    if last is not None and last.startswith(("error:", "internal error:")):
        return f"{run_folder} ended without a result: {last}"
    return folder.killed_in_words(run_folder)


def last_words(run_folder: Path) -> str | None:
    """The last line that a run in the background would have shown.

    None where it was in no background, or said nothing.
    """
    log = run_folder / folder.TERMINAL
    lines = (
        log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if log.exists()
        else []
    )
    return lines[-1] if lines else None


def _state_of_series(parent: Path) -> folder.Content:
    """Of a repeated run: that of the whole when it has ended, otherwise that of the run that goes
    on.
    """
    content = folder.read_json(parent / folder.REPEATS)
    if content["finished"]:
        return {"state": ENDED, "result": content["result"], "headline": content["headline"]}
    runs = content["runs"]
    home = folder.inner(parent, runs[-1]["folder"]) if runs else parent / "run-1"
    last = state_of(home) if folder.why_no_run(home) is None else {"state": KILLED}
    if last["state"] in (RUNNING, STARTING):
        return last
    # Between two runs of a series that lives none of them does.
    return last | {"state": STARTING if folder.goes_on(parent) else KILLED}
