"""Pairs of runs on a real disk.

How often equal runs are called different, and how often a tenth more latency is found.

    python -m tests.compare.on_disk same DIR [--pairs N] [--seconds S]
    python -m tests.compare.on_disk same-held DIR [--pairs N] [--seconds S]
    python -m tests.compare.on_disk slower DIR [--pairs N] [--seconds S]

`same` runs one plan 2 N times below DIR. The others make a FUSE disk below DIR that holds each read
of the database back, and want root: `same-held` by 10 ms, `slower` by 40 ms and in one run of each
pair by 44. What is planted is most of a read then, so that others on the machine matter less. The
order within pairs turns from pair to pair, so that a drift meets both sides alike. Twenty pairs of
54 s take 40 minutes, more where the machine is busy; the load of the machine is printed with each
pair. Started again with the same DIR, it goes on after the pairs that are there.

The load has little memory, so that a minute says something of its own confidence: raw files, which
have no cache that fills and no checkpoint, of one size throughout, in samples of a quarter second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.rogues.plants import STORAGES, Site, arm
from tests.support.disk_rules import Rule
from tests.support.places import PLIMSOLL

#: How long the reads of either side are held back, by kind.
READS_MS: dict[str, tuple[float, float] | None] = {
    "same": None,
    "same-held": (10.0, 10.0),
    "slower": (40.0, 44.0),
}
FOUND = "total_database_read_latency_ms_mean"
NOT_DIFFERENT = ("same", "not told apart", "without confidence")
SECONDS, PAIRS = 54.0, 20
PLAN = """kind = "plan"
schema_version = 1
name = "pair"
sample_interval_ms = 250

[[target]]
name = "disk"
path = "{path}"

[[instance]]
name = "one"
backend = "raw_files"
database_size_mib = 128

[[workload]]
name = "mix"
load = {{ sessions = 2 }}

[[phase]]
kind = "prepare"

[[phase]]
kind = "warm_up"

[[phase]]
kind = "measure"
duration_s = {seconds:g}

[[phase]]
kind = "stop"
"""


def measured(path: Path, out: Path, seconds: float) -> Path:
    """One run on databases that the first run made; one that is there whole is left alone."""
    if (out / "verdict.json").exists():
        return out
    plan = out.parent / "plan.toml"
    plan.write_text(PLAN.format(path=path, seconds=seconds))
    command = [*PLIMSOLL, "run", str(plan), "--yes", "--quiet", "--create", "--allow-system-disk"]
    done = subprocess.run(
        [*command, "--out", str(out)],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if not (out / "verdict.json").exists():
        raise SystemExit(f"{out}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return out


def words(baseline: Path, other: Path) -> dict[str, str]:
    """What is said of each figure of the second run; without an interval nothing but "none"."""
    command = [*PLIMSOLL, "compare", str(baseline), str(other), "--json"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {
        row["name"]: row["against_first"][0]
        for row in json.loads(said)["figures"]
        if row["against_first"]
    }
    return {
        name: row["word"] if row["low"] is not None else f"none, {row['word']}"
        for name, row in found.items()
    }


def is_different(word: str) -> bool:
    """Whether a word tells two runs apart, with an interval or without one."""
    return word.removeprefix("none, ") not in (*NOT_DIFFERENT, "None")


def pairs(kind: str, place: Path, count: int, seconds: float) -> list[dict[str, str]]:
    """Carry out so many pairs; what was said of each."""
    found, held_ms = [], READS_MS[kind]
    with ExitStack() as stack:
        # Of the first run nothing is kept: it makes the databases and warms what there is to warm.
        site = Site(place / "databases")
        if held_ms:
            home = place / f"disk-{len(list(place.glob('disk-*')))}"
            home.mkdir()
            site = stack.enter_context(STORAGES["fuse"](home))
        measured(site.path, place / f"run-first-{len(list(place.glob('run-first-*')))}", 5)
        for number in range(count):
            sides = {}
            for side in ((0, 1), (1, 0))[number % 2]:
                if held_ms:
                    arm(site, (Rule("read", "delay", "database", ms=held_ms[side]),))
                sides[side] = measured(site.path, place / f"pair{number:02}-{side}", seconds)
            found.append(words(sides[0], sides[1]))
            load = " ".join(f"{mean:.1f}" for mean in os.getloadavg())
            print(number, f"load {load}", json.dumps(found[-1]), flush=True)
    return found


def report(kind: str, found: list[dict[str, str]]) -> list[str]:
    """What came of all pairs, in lines."""
    different = Counter(name for said in found for name, word in said.items() if is_different(word))
    of_pairs = sum(any(is_different(word) for word in said.values()) for said in found)
    with_interval = Counter(
        name for said in found for name, word in said.items() if not word.startswith("none, ")
    )
    lines = [
        f"{of_pairs} of {len(found)} pairs called different in some figure: {dict(different)}",
        f"pairs whose figure has an interval: {dict(with_interval)}",
    ]
    if kind == "slower":
        worse = sum(said.get(FOUND) == "worse" for said in found)
        lines.append(f"{worse} of {len(found)} found in {FOUND}")
    return lines


def main() -> None:
    """Carry out the pairs and print what was called different."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=tuple(READS_MS))
    parser.add_argument("place", type=Path)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    given.place.mkdir(parents=True, exist_ok=True)
    found = pairs(given.kind, given.place.resolve(), given.pairs, given.seconds)
    print("\n".join(report(given.kind, found)))


if __name__ == "__main__":
    main()
