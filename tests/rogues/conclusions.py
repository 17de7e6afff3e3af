"""Carry out one row of the gallery.

Make the storage, start the program as a user does, plant, and read what it concluded.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.rogues.plants import MISHAP_AFTER_S, MISHAPS, STORAGES, Site, arm, possible
from tests.rogues.rogue import Concluded, Rogue
from tests.support.places import PLIMSOLL

#: A run that has not ended so long after its time has no verdict.
PATIENCE_S = 600
#: Logs are made under load: where they lie is looked up so often.
LOOK_S = 0.1


def conclude(rogue: Rogue, home: Path) -> Concluded:
    """What the program concludes of a rogue, in a folder of its own."""
    possible(rogue.storage)
    began = time.monotonic()
    applied: list[int] = []
    with STORAGES[rogue.storage](home) as site:
        process = _start(rogue, site, home)
        try:
            _plant(rogue, site, process, home / "run")
            exit_code = _wait(rogue, site, process)
            if rogue.is_verified and site.disk is not None:
                applied = json.loads(site.disk.tell("count"))
                site.disk.tell("rules []")
                exit_code = _verify(site, home)
        finally:
            if site.disk is not None:
                applied = applied or json.loads(site.disk.tell("count"))
                site.disk.tell("rules []")
            process.kill()
            process.wait()
    read = _verified if (home / "verified").exists() else _read
    return replace(read(home, exit_code, time.monotonic() - began), applied=tuple(applied))


def _start(rogue: Rogue, site: Site, home: Path) -> subprocess.Popen[str]:
    if not rogue.armed_at:
        arm(site, rogue.rules)
    command = [*PLIMSOLL, "test", rogue.test]
    if rogue.storage != "modelled":
        length = ("--minutes", f"{rogue.seconds / 60:.4f}")
        if rogue.test == "stress":
            length = ("--hours", f"{rogue.seconds / 3600:.6f}")
        command += [str(site.path), *length, "--quiet"]
        command += ["--create", "--allow-system-disk"]
    command += [*rogue.options, "--json", "--out", str(home / "run")]
    with (home / "said").open("w") as said, (home / "complained").open("w") as complained:
        return subprocess.Popen(
            command,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
            text=True,
            preexec_fn=site.before,
        )


def _plant(rogue: Rogue, site: Site, process: subprocess.Popen[str], run_folder: Path) -> None:
    if rogue.armed_at and (rogue.rules or rogue.mishap):
        _wait_for(run_folder / "events.log", rogue.armed_at, process)
        arm(site, rogue.rules)
    if rogue.mishap:
        time.sleep(MISHAP_AFTER_S)
        if process.poll() is None:
            MISHAPS[rogue.mishap](site, process)


def _wait_for(path: Path, words: str, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        if path.exists() and words in path.read_text(errors="replace"):
            return
        time.sleep(0.02)


def _wait(rogue: Rogue, site: Site, process: subprocess.Popen[str]) -> int | None:
    """The exit code, none if it does not end; meanwhile the rules follow the logs."""
    follows = any(rule.where in ("log", "elsewhere") for rule in rogue.rules)
    deadline = time.monotonic() + rogue.seconds + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        if follows:
            arm(site, rogue.rules)
        time.sleep(LOOK_S)
    return process.poll()


def _verify(site: Site, home: Path) -> int:
    """Check the files that the run has left; the exit code."""
    command = [*PLIMSOLL, "verify", str(site.path)]
    found = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    (home / "verified").write_text(found.stdout + found.stderr)
    return found.returncode


def _verified(home: Path, exit_code: int | None, seconds: float) -> Concluded:
    """What is concluded of the files: the lines of those that are not sound."""
    text = (home / "verified").read_text()
    result = {0: "pass", 1: "fail"}.get(-1 if exit_code is None else exit_code, "inconclusive")
    wrong = [line.strip() for line in text.splitlines() if "(-1119)" in line or ": damaged" in line]
    return Concluded(
        result=result,
        headline="Verified as sound" if result == "pass" else "Verified as damaged",
        reasons=tuple(wrong),
        failed=(),
        bottlenecks=(),
        hindrances=(),
        warnings=(),
        text=text,
        exit_code=exit_code,
        seconds=seconds,
    )


def _read(home: Path, exit_code: int | None, seconds: float) -> Concluded:
    said, complained = (home / "said").read_text(), (home / "complained").read_text()
    verdict: dict[str, Any] = {}
    if (home / "run/verdict.json").exists():
        verdict = json.loads((home / "run/verdict.json").read_text())
    result = verdict.get("result") or ("refused" if exit_code == os.EX_OK + 2 else "none")
    return Concluded(
        result=result,
        headline=verdict.get("headline") or complained.strip().splitlines()[-1:][0]
        if complained
        else "",
        reasons=tuple(verdict.get("reasons", ())),
        failed=tuple(
            check["name"] for check in verdict.get("checks", ()) if check["status"] == "fail"
        ),
        bottlenecks=tuple(
            f"{row['title']}: {row['text']}"
            for row in verdict.get("bottlenecks", ())
            if row["what"] == "check"
        ),
        hindrances=tuple(verdict.get("not_qualifying_because", ())),
        warnings=tuple(verdict.get("warnings", ())),
        text=json.dumps(verdict, ensure_ascii=False) + said + complained,
        exit_code=exit_code,
        seconds=seconds,
        cpu_busy=_cpu_busy(home / "run/summary.json"),
    )


def _cpu_busy(summary: Path) -> float | None:
    """The mean share of the processors in use while a run measured."""
    if not summary.exists():
        return None
    level = json.loads(summary.read_text()).get("machine", {}).get("cpu_busy")
    return None if level is None else float(level["mean"])
