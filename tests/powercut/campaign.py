"""Many power cuts of honest disks under real kernels and file systems: `make powercuts CUTS=n`.

    python -m tests.powercut.campaign CUTS SEED [DIRECTORY]

Half of the cuts happen on ext4 and half on xfs. Each one: the program commits durably through the
file system with direct I/O, the power goes at a random moment, the process is killed, the kernel
forgets everything, a random part of what was not flushed is lost, the file system replays its
journal, the audit recovers a copy and looks for everything acknowledged. In a quarter of them the
power goes again while recovery writes to the files themselves. Every tenth time the disk is copied
at one instant under load instead, as an array would, and the copy audited. Anything but a pass ends
the campaign, with the evidence left where it is."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from plimsoll.powercut.audit import audit_powercut
from plimsoll.powercut.witness import Listener, WitnessLog
from tests.support.power_cut_lab import (
    Machine,
    machine,
    needs,
    recover_until_cut,
    snapshot_under_load,
    work_until_cut,
)

KINDS = ("ext4", "xfs")
SNAPSHOT_EVERY = 10
#: So often the power goes again while recovery writes.
RECOVERY_CUT_SHARE = 0.25
#: A file system ages over so many cuts before it is made again.
CUTS_PER_MACHINE = 50
WORK_S_MAX = 1.2
#: What so many cuts must have met.
CUTS_TO_MEET_ALL = 40
MUST_MEET = (
    "cuts under load with something lost",
    "cuts in recovery with something lost",
    "databases recovered",
)


class Campaign:
    """Counts what happened."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home, self.random, self.counts = home, random.Random(seed), Counter[str]()
        self.log = home / "witness.log"

    @contextmanager
    def witness(self) -> Iterator[str]:
        """A witness with a log of its own for one machine under test."""
        self.log.unlink(missing_ok=True)
        opened = WitnessLog(self.log)
        listener = Listener("127.0.0.1:0", opened, silence_s=120)
        thread = threading.Thread(target=listener.hear_one)
        thread.start()
        try:
            yield listener.place
        finally:
            # Whoever was interrupted before any work called must not wait for it: then this call is
            # the one that is heard.
            with suppress(OSError):
                host, port = listener.place.rsplit(":", 1)
                socket.create_connection((host, int(port)), timeout=5).close()
            thread.join()
            listener.close()
            opened.close()

    def cut(self, made: Machine) -> None:
        """One power cut."""
        made.start()
        with self.witness() as address:
            said = work_until_cut(made, address, self.log, self.random.uniform(0.05, WORK_S_MAX))
        made.power_on()
        made.start()
        self._note(said, "cuts under load")
        if self.random.random() < RECOVERY_CUT_SHARE:
            said, under_way = recover_until_cut(made, self.log)
            self._note(said, "cuts in recovery" if under_way else "cuts after recovery had ended")
            made.power_on()
            made.start()
        found = audit_powercut(
            made.point, self.log, work_in=self.home, in_place=False, keep=False, was_cut=True
        )
        self._count(made.kind, "cuts", found)
        self.counts["databases recovered"] += bool(
            found["recovery"] and found["recovery"]["recovered"]
        )
        self.counts["pages torn or lost, mended by recovery"] += (
            found["pages_before_recovery"]["bad"] or 0
        )
        shutil.rmtree(made.point / "powercut")
        made.stop()

    def snapshot(self, made: Machine) -> None:
        """One copy under load; the work is then stopped and its files removed."""
        made.start()
        with self.witness() as address:
            found = snapshot_under_load(made, address, self.log)
        self._count(made.kind, "snapshots", found)
        made.start()
        shutil.rmtree(made.point / "powercut")
        made.stop()

    def _note(self, said: str, what: str) -> None:
        """What the disk says of a cut."""
        at_risk, lost = (int(word) for word in said.split() if word.isdigit())
        self.counts[what] += 1
        self.counts[f"{what} with something lost"] += lost > 0
        self.counts["writes at risk"] += at_risk
        self.counts["pieces of them lost"] += lost

    def _count(self, kind: str, what: str, found: dict[str, Any]) -> None:
        self.counts[f"{what} on {kind}"] += 1
        if found["result"] != "pass":
            raise SystemExit(f"NOT A PASS after {dict(self.counts)}: {found}")
        self.counts["acknowledged commits"] += found["figures"]["acknowledged_commits"]
        self.counts["acknowledged marks"] += found["figures"]["acknowledged_marks"]
        self.counts["places looked at, the newest of each"] += found["figures"]["looked_for"]
        if found["pages_after_recovery"]["verdict"] != "sound":
            raise SystemExit(f"NOT SOUND after {dict(self.counts)}: {found}")


def main() -> None:
    """Cut as often as told, then say what was met."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    cuts, seed = int(sys.argv[1]), int(sys.argv[2])
    home = Path(sys.argv[3] if len(sys.argv) > 3 else "/tmp/plimsoll-powercuts").absolute()
    if home.exists():
        raise SystemExit(
            f"{home} is there: the evidence of an earlier campaign, or one that goes on; look at "
            f"it and delete it"
        )
    home.mkdir(parents=True)
    began = time.monotonic()
    campaign = Campaign(home, seed)
    for number, kind in enumerate(KINDS):
        needs(kind)
        left = cuts // 2 + (cuts % 2 if number == 0 else 0)
        while left > 0:
            batch, place = min(left, CUTS_PER_MACHINE), home / f"{kind}-{left}"
            with machine(place, kind, "honest", seed * 1000 + left) as made:
                for index in range(batch):
                    campaign.cut(made)
                    if index % SNAPSHOT_EVERY == SNAPSHOT_EVERY - 1:
                        campaign.snapshot(made)
                    print(
                        f"{kind}: {left - index - 1} left, {dict(campaign.counts)}",
                        file=sys.stderr,
                        flush=True,
                    )
            shutil.rmtree(place)
            left -= batch
    for what, count in sorted(campaign.counts.items()):
        print(f"{count:>10,}  {what}")
    print(f"{time.monotonic() - began:>10,.0f}  seconds, seed {seed}")
    missing = [what for what in MUST_MEET if not campaign.counts[what]]
    if cuts >= CUTS_TO_MEET_ALL and missing:
        raise SystemExit(
            f"never met: {', '.join(missing)}; this disk loses nothing, and the campaign shows "
            f"nothing"
        )
    shutil.rmtree(home)


if __name__ == "__main__":
    try:
        main()
    except (subprocess.SubprocessError, pytest.skip.Exception) as error:
        raise SystemExit(str(error)) from error
