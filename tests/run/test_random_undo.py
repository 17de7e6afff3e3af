"""Random events on disks of device mapper and on files, cut off anywhere: all is put back.

A tool that keeps tables in files stands for `dmsetup`. Whatever plan was taken, wherever its run
was killed, restarted machine or not: after `clean`, and after a second one, each disk has the table
that it had, or that it got when the machine was started again. Another machine that sees the folder
changes nothing, and a damaged file is kept and told.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plimsoll
from plimsoll.documents.staged_events import EventPlan
from plimsoll.files import folder
from plimsoll.host import boot, machine
from plimsoll.inputs.mistakes import InputError
from plimsoll.run.actions import ActionError, Prepared, Surroundings, prepared
from plimsoll.run.event_command import carry_out
from plimsoll.run.pending_undo import PendingUndos, pending_of, pending_undos, undo_pending
from plimsoll.run.steps import carry_out_steps

DISKS = ("one", "two")
PLAN = """kind = "plan"
schema_version = 1
target = [{ name = "disk", path = "/data" }]
instance = [{ name = "one", backend = "files", files = 1, file_mib = 8 }]
workload = [{ name = "load", pattern = "file-server", outstanding = 1 }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 20 }]
"""
DMSETUP = """#!/bin/sh
case "$1" in
table) cat "$PLACE/$2";;
load) printf '%s\\n' "$4" > "$PLACE/$2.new";;
resume) [ ! -e "$PLACE/$2.new" ] || mv "$PLACE/$2.new" "$PLACE/$2";;
esac
"""


@dataclass(frozen=True)
class Drawn:
    """One event: what it strikes, and from when to when in whole seconds."""

    what: str
    begin: int
    lasts: int

    def text(self, number: int, place: Path) -> str:
        head = f'[[event]]\nname = "event {number}"\nafter_s = {self.begin}\n'
        head += f"undo_after_s = {min(self.begin + self.lasts, 19)}\n"
        if self.what == "command":
            flag = place / f"flag-{number}"
            return f'{head}command = ["touch", "{flag}"]\nundo = ["rm", "-f", "{flag}"]\n'
        disk, _, kind = self.what.partition(" ")
        more = "delay_ms = 9\n" if kind == "slow" else ""
        return f'{head}action = "disk {kind}"\ndevice = "{disk}"\n{more}'


EVENTS = st.lists(
    st.builds(
        Drawn,
        st.sampled_from(["command", *(f"{d} {k}" for d in DISKS for k in ("slow", "fails"))]),
        st.integers(0, 15),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=4,
)


class Machine:
    """A run of such events up to where it is killed, step by step."""

    def __init__(self, place: Path) -> None:
        self.place = place
        tool = place / "bin/dmsetup"
        tool.parent.mkdir()
        tool.write_text(DMSETUP.replace("$PLACE", str(place)))
        tool.chmod(0o755)
        self.boot("8:16")

    def boot(self, device: str) -> None:
        """Every disk gets its table, which may speak of another device than before."""
        (self.place / "boot").write_text(device)
        (self.place / "machine").write_text("ours")
        self.tables = dict.fromkeys(DISKS, f"0 2048 linear {device} 384\n")
        for disk, table in self.tables.items():
            (self.place / disk).write_text(table)
            (self.place / f"{disk}.new").unlink(missing_ok=True)

    def is_whole(self) -> bool:
        same = all((self.place / disk).read_text() == self.tables[disk] for disk in DISKS)
        return same and not list(self.place.glob("flag-*"))

    def play(self, events: Sequence[EventPlan], killed_at_s: float, steps_left: int) -> None:
        """Carry out what comes before a moment, and a few steps of what comes then."""
        undos, begun = PendingUndos(self.place), dict[str, Prepared | None]()
        moments = [(event.after_s, 1, event) for event in events]
        moments += [(event.undo_after_s or 0.0, 0, event) for event in events]
        for at_s, begins, event in sorted(moments, key=lambda item: item[:2]):
            if at_s > killed_at_s:
                return
            left = steps_left if at_s == killed_at_s else None
            if begins:
                here = Surroundings(event.name, self.place, {}, user=0)
                try:
                    found = None if event.action is None else prepared(event.action, here)
                except ActionError as error:
                    raise AssertionError("a plan that was taken overlaps on a disk") from error
                steps = () if found is None else found.undo
                ends = found is not None and found.ends_with_boot
                undos.add(pending_of(event.name, event.undo, 9, steps, None, ends_with_boot=ends))
                begun[event.name] = found
                self._carry_out(found and found.apply[:left], event.command)
            elif event.name in begun:
                found = begun[event.name]
                self._carry_out(found and found.undo[:left], event.undo)
                if left is None:
                    undos.remove(event.name)

    def _carry_out(self, steps: Sequence | None, command: Sequence[str]) -> None:
        if steps is None:
            carry_out(command, 9, {}, self.place)
        else:
            carry_out_steps(steps, 9, {}, self.place)


def left_alone(machine_of_run: Machine, why: str) -> None:
    """A clean is refused, and changes neither the disks nor what is known of them."""
    place = machine_of_run.place

    def state() -> dict[str, str]:
        return {path.name: path.read_text() for path in place.iterdir() if path.is_file()}

    before = state()
    with pytest.raises(folder.FolderError, match=why):
        undo_pending(place)
    assert state() == before


def visited_from_elsewhere(here: Machine) -> None:
    """Another machine sees the folder, whose kernel is another one too."""
    kept = [(path, path.read_text()) for path in (here.place / "boot", here.place / "machine")]
    for path, _ in kept:
        path.write_text("theirs")
    left_alone(here, "on another machine.*`plimsoll clean")
    for path, text in kept:
        path.write_text(text)


def damaged(here: Machine, share: float) -> None:
    """The file is cut off somewhere, and somebody brings it back."""
    path = here.place / folder.UNDO_PENDING
    whole = path.read_text()
    path.write_text(whole[: int(share * len(whole.rstrip()))])
    left_alone(here, f"by hand, then delete {path}")
    path.write_text(whole)


@settings(max_examples=40, deadline=None)
@given(
    EVENTS,
    st.integers(0, 20),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.floats(0, 1, exclude_max=True),
)
def test_whatever_was_degraded_is_put_back(
    drawn, killed_at_s, steps_left, restarts, cut_off, seen_elsewhere, damaged_at
):
    place = Path(tempfile.mkdtemp())
    path = f"{place}/bin:{os.environ['PATH']}"
    text = PLAN + "".join(event.text(number, place) for number, event in enumerate(drawn, 1))
    try:
        events = plimsoll.parse_plan(text).events
    except InputError as refused:
        assert "each would put back" in str(refused)
        shutil.rmtree(place)
        return
    with (
        patch.dict(os.environ, PATH=path),
        patch.object(boot, "BOOT_ID", place / "boot"),
        patch.object(machine, "MACHINE_ID", place / "machine"),
    ):
        here = Machine(place)
        here.play(events, killed_at_s, steps_left)
        if restarts:
            here.boot("8:32")
        if seen_elsewhere and pending_undos(place):
            visited_from_elsewhere(here)
        if damaged_at is not None and pending_undos(place):
            damaged(here, damaged_at)
        if cut_off and pending_undos(place):
            # A clean that is killed when all is undone and nothing forgotten.
            before = (place / "undo-pending.json").read_text()
            assert undo_pending(place) == []
            (place / "undo-pending.json").write_text(before)
        for _ in range(2):
            assert undo_pending(place) == [], json.dumps(text)
            assert here.is_whole()
            assert pending_undos(place) == ()
    shutil.rmtree(place)
