"""What a power cut left, with a damaged marker or witness's log, given to the audit.

It ends in a result or in a sentence.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll import _native, exit_codes
from plimsoll.databases.ownership import MARKER
from plimsoll.powercut import workspace
from plimsoll.powercut.client import LETTERS
from plimsoll.powercut.witness import WitnessLog
from tests.fuzz.injuries import damage, exchanged
from tests.fuzz.run_folders import outcome

COMMITS_MIN = 50


@cache
def sound() -> Path:
    """A directory that work was done in, and the log of its witness."""
    home = Path(tempfile.mkdtemp(prefix="plimsoll-sound-"))
    wanted = workspace.PowercutWanted(
        home / "disk", size_bytes=1 << 20, page_bytes=4096, sessions=2, io_method="threads"
    )
    wanted.directory.mkdir()
    described = workspace.describe_run(wanted, workspace.work_of(wanted))
    with workspace.made(Path(described["path"])):
        workspace.take(wanted, described)
    log = WitnessLog(home / "witness.log")
    log.note({"event": "begun", "at": "now", "peer": "here", "run": described})
    work, heard = _native.Powercut(json.dumps(described["work"])), 0
    while (lines := work.next_acknowledged(0.5)) is not None:
        log.append(
            "".join(
                f"{LETTERS[kind]} {' '.join(map(str, rest))}\n" for kind, *rest in lines
            ).encode()
        )
        heard += len(lines)
        work.confirm(heard)
        if heard >= COMMITS_MIN:
            work.stop()
    work.outcome()
    log.note({"event": "ended", "at": "now", "peer": "here", "lines": heard, "why": "silent"})
    log.close()
    return home


def audit(home: Path) -> tuple[int, str]:
    """The exit code of the audit, and what it said about its failure."""
    paths = [str(home / "disk"), "--witness-log", str(home / "witness.log"), "--work", str(home)]
    return outcome(["audit", *paths, "--cut-under-load"])


def _described(value: dict[str, Any]) -> list[Any]:
    """The description of the run in a marker or in a note of the witness, and that of its work."""
    described = value[workspace.NAME if workspace.NAME in value else "run"]
    return [described, described["work"]] if described.get("work") else [described]


def survives_power_cut(seed: int) -> None:
    """Marker or log are damaged, and audited.

    Raises:
        AssertionError: the audit takes it for a fault of its own.
    """
    chance = random.Random(f"power cut {seed}")
    with tempfile.TemporaryDirectory(prefix="plimsoll-fuzz-") as folder:
        home = Path(folder) / "copy"
        shutil.copytree(sound(), home)
        marker, log = home / "disk" / workspace.NAME / MARKER, home / "witness.log"
        content = marker.read_bytes().replace(str(sound()).encode(), str(home).encode())
        lines = log.read_bytes().replace(str(sound()).encode(), str(home).encode())
        match chance.randrange(4):
            case 0:
                content = exchanged(content, chance, _described)
            case 1:
                # Without a marker the witness is asked what was done there.
                content = b""
                kind, begun, rest = lines.split(b"\n", 2)
                lines = b"\n".join([kind, exchanged(begun, chance, _described), rest])
            case _:
                lines = damage(lines, [lines], chance)
        if content:
            marker.write_bytes(content)
        else:
            marker.unlink()
        log.write_bytes(lines)
        code, errors = audit(home)
        assert code != exit_codes.INTERNAL, errors
        assert sorted(path.name for path in home.iterdir()) == ["disk", "witness.log"], (
            "the copy is left"
        )
