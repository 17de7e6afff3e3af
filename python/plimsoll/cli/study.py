"""`plimsoll study`: variants of one base under the same load, ranked, with the confidence of each difference.

Modelled variants run several at once in processes of their own; real ones strictly one after another, because two loads on one
storage measure each other. A study that was interrupted or killed goes on where it stopped when it is started again.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.cli.input_errors import refuse
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.live.progress import in_words
from plimsoll.pipeline import forecast, qualify

RESULT = "study.json"
COPY = "study.toml"
LOCK = "study.lock"


def study(
    study_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "study".', metavar="STUDY.toml")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the study; runs/study-NAME if left out.", metavar="DIR")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=256, help="Modelled variants at once; the processors if left out.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to long and large runs beforehand.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the variants; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result (or the variants) as JSON.")] = False,
) -> None:
    """Carry out a study, or the rest of one that was interrupted, and rank its variants.

    Exits with 0 when every variant came to its end, 2 when the file or the folder is wrong, 3 when a variant could not be carried
    out, 4 when it was interrupted; the rest is done when it is started again.

    Example: plimsoll study examples/studies/raid_type.toml
    """
    from plimsoll.study.description import read_study

    try:
        wanted = read_study(study_file)
    except InputError as error:
        refuse([error])
    if dry_run:
        _show_variants(wanted, as_json=as_json)
        return
    _agree(wanted, agreed=yes)
    name = re.sub(r"[^a-z0-9]+", "-", wanted.content["name"].lower()).strip("-")
    home = (out or folder.DEFAULT_PARENT / f"study-{name}").absolute()
    _take(home, wanted, study_file)
    at_once = jobs or os.cpu_count() or 1
    interrupted = False
    with _locked(home):
        try:
            _light(wanted, home, at_once)
            _plans(wanted, home, at_once)
        except KeyboardInterrupt:
            interrupted = True
        found = _judge(wanted, home)
    _show(found, home, as_json=as_json)
    if interrupted:
        qualify.say("interrupted; start it again to go on where it stopped")
        raise typer.Exit(qualify.EXIT_INTERRUPTED)
    if any(side["problem"] or side["runs_count"] < wanted.content["repeat"] for side in found["sides"]):
        raise typer.Exit(qualify.EXIT_INCONCLUSIVE)


def _show_variants(wanted: Any, *, as_json: bool) -> None:
    """What would be carried out."""
    rows = [
        {
            "name": variant.name,
            "kind": "real" if variant.is_real else "modelled",
            "settings": variant.settings,
            "runs": wanted.content["repeat"],
        }
        for variant in wanted.variants
    ]
    if as_json:
        typer.echo(json.dumps({"schema_version": 1, "name": wanted.content["name"], "variants": rows}, indent=2))
        return
    typer.echo(f"{wanted.content['name']}: {len(rows)} variants, ranked by {wanted.content['rank_by']}")
    for row in rows:
        settings = "; ".join(f"{key} = {value}" for key, value in row["settings"].items())
        typer.echo(f"  {row['name']}: {row['kind']}, {row['runs']} runs; {settings or 'as the base'}")


def _agree(wanted: Any, *, agreed: bool) -> None:
    """Look at the premises of every real variant, and ask where all of them together take long."""
    seconds = 0.0
    for variant in wanted.variants:
        if variant.is_real:
            expected = qualify.forecast(json.loads(json.dumps(variant.plan)))
            qualify.ask_before_much(variant.plan, expected, agreed=agreed, times=int(wanted.content["repeat"]))
            seconds += forecast.total_s(variant.plan, expected) * wanted.content["repeat"]
    if seconds > forecast.LARGE_S and not agreed:
        qualify.stop_with(
            qualify.EXIT_USAGE, f"all real variants together take about {in_words(seconds)}; give --yes to agree"
        )


def _take(home: Path, wanted: Any, study_file: Path) -> None:
    """Make the folder of the study, or go on in it when it is this study's."""
    if home.exists() and not home.is_dir():
        qualify.stop_with(qualify.EXIT_USAGE, f"{home} is a file; name a folder with --out")
    present = {path.name for path in home.iterdir()} if home.exists() else set()
    if present and COPY not in present:
        qualify.stop_with(
            qualify.EXIT_USAGE,
            f"{home} is not empty and holds no study; name another folder with --out, nothing is overwritten",
        )
    if (home / RESULT).exists():
        try:
            other = folder.read_json(home / RESULT)["name"]
        except (folder.FolderError, KeyError, TypeError):
            other = wanted.content["name"]
        if other != wanted.content["name"]:
            qualify.stop_with(qualify.EXIT_USAGE, f'{home} holds the study "{other}"; name another folder with --out')
    try:
        home.mkdir(parents=True, exist_ok=True)
        if study_file.resolve() != (home / COPY).resolve():
            shutil.copyfile(study_file, home / COPY)
    except OSError as error:
        qualify.stop_with(
            qualify.EXIT_USAGE, f"{error.filename}: {(error.strerror or str(error)).lower()}; name another folder"
        )


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Two programs in one folder would do every variant twice."""
    with (home / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            qualify.stop_with(qualify.EXIT_USAGE, f"another program works on the study in {home}")
        yield


def _light(wanted: Any, home: Path, jobs: int) -> None:
    """The light variants that are not finished, several at once."""
    from plimsoll.study.modelled_variant import carry_out
    from plimsoll.study.results import is_done, light_file

    tasks = []
    for variant in wanted.variants:
        for seed in range(1, int(wanted.content["repeat"]) + 1):
            path = light_file(home, variant, seed)
            if variant.light is not None and not is_done(path, variant.light):
                path.parent.mkdir(parents=True, exist_ok=True)
                tasks.append((variant, seed, path))
    if not tasks:
        return
    qualify.say(f"{len(tasks)} simulations to do, {jobs} at once")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {
            pool.submit(carry_out, variant.light, seed, path): f"{variant.name}, seed {seed}"
            for variant, seed, path in tasks
        }
        try:
            _follow(futures)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _follow(futures: dict[Future[Any], str]) -> None:
    """Say what is finished as it ends."""
    waiting = set(futures)
    while waiting:
        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in ended:
            problem = future.result()
            done = len(futures) - len(waiting)
            qualify.say(f"{done} of {len(futures)}: {futures[future]}" + (f": {problem}" if problem else ""))


def _plans(wanted: Any, home: Path, jobs: int) -> None:
    """The variants that are plans: modelled ones several at once, real ones strictly one after another."""
    from plimsoll.study.worker import VARIANT

    started: list[subprocess.Popen[bytes]] = []

    def carry_out(variant: Any) -> str | None:
        place = home / "variants" / variant.slug
        place.mkdir(parents=True, exist_ok=True)
        what = {"plan": variant.plan, "repeat": int(wanted.content["repeat"]), "databases": wanted.content["databases"]}
        folder.write_json(place / VARIANT, {"schema_version": 1, "name": variant.name, **what})
        with (place / folder.TERMINAL).open("wb") as log:
            command = [sys.executable, "-m", "plimsoll.study.worker", str(place)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            started.append(process)
            code = process.wait()
        if code == qualify.EXIT_PASS:
            return None
        words = (place / folder.TERMINAL).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"ended with exit code {code}: {words[-1] if words else 'nothing was said'}"

    plans = [variant for variant in wanted.variants if variant.plan is not None]
    try:
        modelled = [variant for variant in plans if not variant.is_real]
        with ThreadPoolExecutor(jobs) as pool:
            _follow({pool.submit(carry_out, variant): variant.name for variant in modelled})
        for variant in plans:
            if variant.is_real:
                qualify.say(f"{variant.name}: {wanted.content['repeat']} runs on real storage")
                problem = carry_out(variant)
                qualify.say(f"{variant.name}: {problem or 'done'}")
    except KeyboardInterrupt:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in started:
            process.wait()
        raise


def _judge(wanted: Any, home: Path) -> dict[str, Any]:
    from plimsoll.study.results import judged

    found = judged(wanted, home)
    folder.write_json(home / RESULT, found)
    try:
        from plimsoll.study.page import render
    except ModuleNotFoundError as error:
        qualify.say(f"warning: no report.html was written, because {error.name} is not installed")
        return found
    folder.write_text(home / folder.REPORT, render(found))
    return found


def _show(found: dict[str, Any], home: Path, *, as_json: bool) -> None:
    from plimsoll.study.text import lines_of

    if as_json:
        typer.echo(json.dumps({**found, "study_folder": str(home)}, indent=2, ensure_ascii=False))
        return
    typer.echo("\n".join(lines_of(found)))
    typer.echo(f"\nstudy folder: {home}")
    if (home / folder.REPORT).exists():
        typer.echo(f"report:       {home / folder.REPORT}")
