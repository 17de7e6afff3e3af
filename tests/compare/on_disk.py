"""Pairs of runs on a real disk: how often equal runs are called different, and how often a tenth more latency is found.

    python -m tests.compare.on_disk same DIR [--pairs N] [--seconds S]
    python -m tests.compare.on_disk slower DIR [--pairs N] [--seconds S]

`same` runs one plan 2 N times below DIR. `slower` makes a FUSE disk below DIR that holds each read of the database back: by 10 ms, and in
one run of each pair by 11; it wants root. The order within pairs turns from pair to pair, so that a drift meets both sides alike.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.rogues.plants import STORAGES, Site, arm
from tests.rogues.rogue import LOAD
from tests.support.disk_rules import Rule
from tests.support.places import PLIMSOLL

RAW = (*(item for item in LOAD if item not in ("--cache-mib", "24")), "--backend", "raw_files")
READS_MS = (10.0, 11.0)
FOUND = "total_database_read_latency_ms_mean"
NOT_DIFFERENT = ("same", "not told apart", None)


def measured(path: Path, out: Path, options: tuple[str, ...], seconds: float) -> Path:
    """One run on databases that the first run made."""
    command = [*PLIMSOLL, "test", "performance", str(path), *options, "--minutes", f"{seconds / 60:.4f}", "--quiet"]
    command += ["--create", "--allow-system-disk", "--out", str(out)]
    subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return out


def words(baseline: Path, other: Path) -> dict[str, str]:
    """What is said of each figure of the second run that has an interval; without one nothing is called different."""
    command = [*PLIMSOLL, "compare", str(baseline), str(other), "--json"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {row["name"]: row["against_first"][0] for row in json.loads(said)["figures"] if row["against_first"]}
    return {name: row["word"] for name, row in found.items() if row["low"] is not None}


def pairs(kind: str, place: Path, count: int, seconds: float) -> list[dict[str, str]]:
    """Carry out so many pairs; what was said of each."""
    found = []
    with ExitStack() as stack:
        if kind == "same":
            site = Site(place / "databases")
            options = LOAD
        else:
            site = stack.enter_context(STORAGES["fuse"](place))
            options = RAW
        for number in range(count):
            sides = {}
            for side in ((0, 1), (1, 0))[number % 2]:
                if kind == "slower" and (place / "run0").exists():
                    arm(site, (Rule("read", "delay", "database", ms=READS_MS[side]),))
                if number == 0 and side == 0:
                    measured(site.path, place / "run0", options, 5)
                    if kind == "slower":
                        arm(site, (Rule("read", "delay", "database", ms=READS_MS[side]),))
                sides[side] = measured(site.path, place / f"pair{number:02}-{side}", options, seconds)
            found.append(words(sides[0], sides[1]))
            print(number, json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Carry out the pairs and print what was called different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("same", "slower"))
    parser.add_argument("place", type=Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    given.place.mkdir(parents=True)
    found = pairs(given.kind, given.place.resolve(), given.pairs, given.seconds)
    different = Counter(name for said in found for name, word in said.items() if word not in NOT_DIFFERENT)
    pairs_different = sum(any(word not in NOT_DIFFERENT for word in said.values()) for said in found)
    print(f"{pairs_different} of {len(found)} pairs: {dict(different)}")
    if given.kind == "slower":
        print(f"{sum(said.get(FOUND) == 'worse' for said in found)} of {len(found)} found in {FOUND}")


if __name__ == "__main__":
    main()
