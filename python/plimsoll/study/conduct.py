"""Carrying out a study: its variants, those that are finished left alone, and what all of them come
to.

Modelled variants run several at once in processes of their own; real ones strictly one after
another, because two loads on one storage measure each other. A study that was interrupted or killed
goes on where it stopped when it is started again.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.compare.published import is_published
from plimsoll.databases import preflight
from plimsoll.documents.plan import Plan
from plimsoll.documents.study import StudyFindings
from plimsoll.errors import exit_codes
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener
from plimsoll.pipeline import forecast
from plimsoll.study.description import Study, Variant
from plimsoll.study.modelled_variant import carry_out
from plimsoll.study.results import is_done, judged, light_file
from plimsoll.study.text import lines_of
from plimsoll.study.worker import ALLOW_SYSTEM_DISK, CREATE, VARIANT, VariantTask

RESULT = "study.json"
COPY = "study.toml"
LOCK = "study.lock"


@dataclass(frozen=True)
class StudyResult:
    """What a study came to.

    Attributes:
        folder: the folder of the study.
        content: the content of `study.json`: variants, figures, differences and ranking.
        repeat: how often each variant was to be carried out.
        interrupted: whether it was stopped; started again, it goes on where it stopped.
    """

    folder: Path
    content: StudyFindings
    repeat: int
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """How a program that did nothing else would end."""
        if self.interrupted:
            return exit_codes.INTERRUPTED
        # What a paper prints is one run, however often the variants are carried out.
        variants = [side for side in self.content.sides if not is_published(side.name)]
        unfinished = any(side.problem or side.runs_count < self.repeat for side in variants)
        return exit_codes.INCONCLUSIVE if unfinished else exit_codes.PASS

    @property
    def report(self) -> Path | None:
        """The page, where one was written."""
        return folder.report_of(self.folder)

    def lines(self) -> list[str]:
        """The ranking and the figures, for people."""
        return lines_of(self.content)


def check_study(
    wanted: Study,
    *,
    create: bool = False,
    allow_system_disk: bool = False,
    listener: Listener | None = None,
) -> list[tuple[Variant, preflight.Preflight, forecast.Forecast]]:
    """What preflight finds for every real variant, and what one run of it takes.

    Args:
        wanted: as from `read_study`.
        create: as in `check`.
        allow_system_disk: as in `check`.
        listener: told what will be prepared, reused, recovered and deleted.

    Raises:
        PreflightError: one of them cannot start.
    """
    found = []
    for variant in wanted.variants:
        if variant.is_real and variant.plan is not None:
            places = forecast.check(
                variant.plan, create=create, allow_system_disk=allow_system_disk, listener=listener
            )
            found.append((variant, places, forecast.forecast(variant.plan, places)))
    return found


def carry_out_study(
    wanted: Study,
    study_file: StrPath,
    out: StrPath | None = None,
    *,
    jobs: int | None = None,
    create: bool = False,
    allow_system_disk: bool = False,
    listener: Listener | None = None,
) -> StudyResult:
    """Carry out a study, or the rest of one that was interrupted, and rank its variants.

    Args:
        wanted: as from `read_study`.
        study_file: its file, of which a copy is kept.
        out: the folder of the study; `runs/study-NAME` if left out.
        jobs: modelled variants at once; the processors if left out.
        create: as in `check`.
        allow_system_disk: as in `check`.
        listener: told what is finished.

    Raises:
        FolderError: the folder holds something else, or another program works in it.
    """
    study_file = Path(study_file)
    out = None if out is None else Path(out)
    hears = listener or Listener()
    name = re.sub(r"[^a-z0-9]+", "-", wanted.name.lower()).strip("-")
    home = (out or folder.DEFAULT_PARENT / f"study-{name}").absolute()
    _take(home, wanted, study_file)
    at_once = jobs or os.cpu_count() or 1
    agreed = [
        word for word, given in ((CREATE, create), (ALLOW_SYSTEM_DISK, allow_system_disk)) if given
    ]
    interrupted = False
    with _locked(home):
        try:
            _light(wanted, home, at_once, hears)
            _plans(wanted, home, at_once, agreed, hears)
        except KeyboardInterrupt:
            interrupted = True
        found = _judge(wanted, home, hears)
    return StudyResult(home, found, wanted.repeat, interrupted)


def _take(home: Path, wanted: Study, study_file: Path) -> None:
    """Make the folder of the study, or go on in it when it is this study's.

    Raises:
        FolderError: it holds something else.
    """
    if home.exists() and not home.is_dir():
        raise folder.FolderError(f"{home} is a file; name a folder with --out")
    present = {path.name for path in home.iterdir()} if home.exists() else set()
    if present and COPY not in present:
        raise folder.FolderError(
            f"{home} is not empty and holds no study; name another folder with --out, nothing is "
            f"overwritten",
        )
    if (home / RESULT).exists():
        try:
            other = folder.read_json(home / RESULT)["name"]
        except (folder.FolderError, KeyError, TypeError):
            other = wanted.name
        if other != wanted.name:
            raise folder.FolderError(
                f'{home} holds the study "{other}"; name another folder with --out'
            )
    try:
        home.mkdir(parents=True, exist_ok=True)
        if study_file.resolve() != (home / COPY).resolve():
            shutil.copyfile(study_file, home / COPY)
    except OSError as error:
        raise folder.FolderError(
            f"{error.filename}: {system_reason(error)}; name another folder"
        ) from error


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Two programs in one folder would do every variant twice."""
    with (home / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise folder.FolderError(f"another program works on the study in {home}") from error
        yield


def _light(wanted: Study, home: Path, jobs: int, listener: Listener) -> None:
    """The light variants that are not finished, several at once."""
    tasks = []
    for variant in wanted.variants:
        for seed in range(1, wanted.repeat + 1):
            path = light_file(home, variant, seed)
            if variant.light is not None and not is_done(path, variant.light):
                path.parent.mkdir(parents=True, exist_ok=True)
                tasks.append((variant.name, variant.light, seed, path))
    if not tasks:
        return
    listener.say(f"{len(tasks)} simulations to do, {jobs} at once")
    with ProcessPoolExecutor(
        min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        futures = {
            pool.submit(carry_out, light, seed, path): f"{name}, seed {seed}"
            for name, light, seed, path in tasks
        }
        try:
            _follow(futures, listener)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _follow(futures: dict[Future[Any], str], listener: Listener) -> None:
    """Say what is finished as it ends."""
    waiting = set(futures)
    while waiting:
        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in ended:
            problem = future.result()
            done = len(futures) - len(waiting)
            listener.say(
                f"{done} of {len(futures)}: {futures[future]}" + (f": {problem}" if problem else "")
            )


def _plans(wanted: Study, home: Path, jobs: int, agreed: list[str], listener: Listener) -> None:
    """The variants that are plans.

    Modelled ones several at once, real ones strictly one after another.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(variant: Variant, plan: Plan) -> str | None:
        place = home / "variants" / variant.slug
        place.mkdir(parents=True, exist_ok=True)
        repeat, databases = wanted.repeat, wanted.databases
        task = VariantTask(
            schema_version=1, name=variant.name, plan=plan, repeat=repeat, databases=databases
        )
        task.write(place / VARIANT)
        (place / folder.TERMINAL).write_bytes(b"")
        # The process adds to it, too.
        with (place / folder.TERMINAL).open("ab") as log:
            command = [sys.executable, "-m", "plimsoll.study.worker", str(place), *agreed]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            started.append(process)
            code = process.wait()
        if code == exit_codes.PASS:
            return None
        words = (
            (place / folder.TERMINAL)
            .read_text(encoding="utf-8", errors="replace")
            .strip()
            .splitlines()
        )
        return f"ended with exit code {code}: {words[-1] if words else 'nothing was said'}"

    plans = [(variant, variant.plan) for variant in wanted.variants if variant.plan is not None]
    try:
        modelled = [(variant, plan) for variant, plan in plans if not variant.is_real]
        with ThreadPoolExecutor(jobs) as pool:
            _follow(
                {pool.submit(start, variant, plan): variant.name for variant, plan in modelled},
                listener,
            )
        for variant, plan in plans:
            if variant.is_real:
                listener.say(f"{variant.name}: {wanted.repeat} runs on real storage")
                problem = start(variant, plan)
                listener.say(f"{variant.name}: {problem or 'done'}")
    except KeyboardInterrupt:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in started:
            process.wait()
        raise


def _judge(wanted: Study, home: Path, listener: Listener) -> StudyFindings:
    """Rank the variants that are finished, and write result and page."""
    found = judged(wanted, home)
    found.write(home / RESULT)
    try:
        from plimsoll.study.page import render
    except ModuleNotFoundError as error:
        listener.warning(f"no report.html was written, because {error.name} is not installed")
        return found
    folder.write_text(home / folder.REPORT, render(found))
    return found
