"""`make crash KILLS=n`: a process on real files is killed under load over and over, and after every
fifth kill the power of its disk is cut.

    python -m tests.powercut.kills KILLS [SEED] [--behaviour NAME] [--debug]

The work, the kills and the comparison are the engine's own test
(`crates/plimsoll-engine/tests/failures/killed.rs`). It works on ext4 on a disk with a volatile
write cache, served here (`tests/support/volatile_disk.py`): a kill alone loses nothing that the
kernel has, so only the power cut shows a sync that is missing. Where such a disk cannot be had (no
root, no /dev/fuse) the kills are done without power cuts, and that is said."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.power_cut_lab import Machine, machine, needs

ROOT = Path(__file__).resolve().parents[2]
KIND = "ext4"
TEST = "killed::many_kills_lose_nothing_acknowledged"
CUT = "power: cut"
#: The log and the database of the test grow no further than this.
MEBIBYTES = 512


def command(*, release: bool) -> list[str]:
    """The test alone, with its output."""
    build = ["cargo", "test", "--locked", "--quiet", "-p", "plimsoll-engine", "--test", "failures"]
    return [
        *build,
        *(["--release"] if release else []),
        "--",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
        "--exact",
        TEST,
    ]


class Kills:
    """The test under way, and the power of the disk that it works on."""

    def __init__(self, made: Machine | None) -> None:
        self.made, self.cuts, self.writes_lost = made, 0, 0

    def run(self, kills: int, *, release: bool) -> bool:
        """Whether nothing acknowledged was lost in so many kills."""
        environment = os.environ | {"KILLS": str(kills)}
        if self.made is not None:
            environment |= {
                "PLIMSOLL_CRASH_PLACE": str(self.made.point),
                "PLIMSOLL_CRASH_POWER": "1",
            }
        passed = False
        with subprocess.Popen(
            command(release=release),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                if line.rstrip().endswith(CUT):
                    self._cut()
                    process.stdin.write("on\n")
                    process.stdin.flush()
                else:
                    print(line, end="", flush=True)
                    passed |= "1 passed" in line
        return passed and process.returncode == 0

    def _cut(self) -> None:
        """No power, the file system thrown away, power again; the kernel replays the journal."""
        assert self.made is not None
        said = self.made.cut(0.0)
        _, lost = (int(word) for word in said.split() if word.isdigit())
        self.cuts += 1
        self.writes_lost += lost
        self.made.stop()
        self.made.power_on()
        self.made.start()


def kill(kills: int, seed: int, behaviour: str, *, release: bool) -> tuple[bool, Kills]:
    """Kill so often; whether nothing acknowledged was lost, and what was met."""
    try:
        needs(KIND)
    except pytest.skip.Exception as why:
        print(f"no power is cut: {why}", flush=True)
        without = Kills(None)
        return without.run(kills, release=release), without
    with (
        TemporaryDirectory(prefix="plimsoll-kills-") as home,
        machine(Path(home) / "machine", KIND, behaviour, seed, MEBIBYTES) as made,
    ):
        made.start()
        with_power = Kills(made)
        return with_power.run(kills, release=release), with_power


def main() -> None:
    """Kill, cut, say what was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument(
        "--behaviour",
        default="honest",
        help="how the disk lies; an honest one loses only what was not flushed",
    )
    parser.add_argument(
        "--debug", action="store_true", help="build the test without optimizing for release"
    )
    chosen = parser.parse_args()
    passed, met = kill(chosen.kills, chosen.seed, chosen.behaviour, release=not chosen.debug)
    print(f"{met.cuts} power cuts, {met.writes_lost} pieces of 4 KiB lost, seed {chosen.seed}")
    if not passed:
        sys.exit("the test did not pass, or there is none of that name")


if __name__ == "__main__":
    main()
