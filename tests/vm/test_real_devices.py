"""Ready actions on real devices of a kernel that has them: `make vmlab`."""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions import ActionError, Prepared, Surroundings, prepared
from plimsoll.run.steps import carry_out_steps
from tests.support.harm import wait_until
from tests.vm.devices import (
    DEVICES,
    IN_VM,
    IQN,
    SCRIPT,
    Degradable,
    clean,
    four_paths,
    mounted,
    path_names,
    run,
    sessions,
)

pytestmark = pytest.mark.skipif(not IN_VM, reason="wants devices of another kernel: make vmlab")


def steps_of(made: Degradable, place: Path) -> Prepared:
    keys = tomllib.loads(made.event)
    return prepared(ReadyAction(what=keys.pop("action"), **keys), here(place, made.mount))


def here(place: Path, mount: Path) -> Surroundings:
    return Surroundings(event="broken", run_folder=place, targets={"disk": str(mount)})


def done(steps: Sequence[Step], place: Path, *, to_the_end: bool = False) -> str | None:
    ended = carry_out_steps(steps, 30, {}, place, to_the_end=to_the_end)
    return ended.error and f"{ended.error}\n{ended.output}"


@pytest.mark.parametrize("what", DEVICES)
def test_steps_take_and_are_undone_before_after_and_twice(tmp_path: Path, what: str) -> None:
    with DEVICES[what](tmp_path) as made:
        steps = steps_of(made, tmp_path)
        # A run that was killed before it began: there is nothing to undo, which is no mistake.
        assert done(steps.undo, tmp_path, to_the_end=True) is None
        assert made.is_well()
        assert done([*steps.apply, *steps.prove], tmp_path) is None
        assert made.is_degraded()
        for _ in range(2):
            assert done(steps.undo, tmp_path, to_the_end=True) is None
            wait_until(made.is_well)


def test_the_script_makes_a_session_for_each_portal(tmp_path: Path) -> None:
    assert "everything is there" in run(SCRIPT, "check")
    with four_paths(tmp_path) as device, mounted(device, tmp_path) as mount:
        assert sessions() == 4
        shown = run(SCRIPT, "show")
        assert shown.count(IQN) == 4 and device.name in shown
        probed = run(sys.executable, "-m", "plimsoll.cli", "probe", mount, "--json")
        print(shown, probed)
        assert "queue-length" in probed
    assert sessions() == 0


def test_the_last_path_stays(tmp_path: Path) -> None:
    with four_paths(tmp_path) as device, mounted(device, tmp_path) as mount:
        *others, last = path_names()
        applied = []
        place = here(tmp_path, mount)
        for path in others:
            applied.append(prepared(ReadyAction(what="path fails", device=path), place))
            assert done([*applied[-1].apply, *applied[-1].prove], tmp_path) is None
        with pytest.raises(ActionError, match="last path"):
            prepared(ReadyAction(what="path fails", device=f"/dev/{last}"), place)
        for steps in applied:
            assert done(steps.undo, tmp_path, to_the_end=True) is None
        with pytest.raises(ActionError, match="no SCSI disk"):
            prepared(ReadyAction(what="path fails", device="/dev/vda"), place)


def test_an_array_without_redundancy_keeps_its_drives(tmp_path: Path) -> None:
    place = here(tmp_path, tmp_path)
    action = ReadyAction(what="md drive fails", device="/dev/md1", member="/dev/vde")
    with pytest.raises(ActionError, match="no md array"):
        prepared(action, place)
    run("mdadm", "--create", "/dev/md1", "--run", "--level=0", "--raid-devices=2",
        "/dev/vde", "/dev/vdf")  # fmt: skip
    try:
        with pytest.raises(ActionError, match="raid0"):
            prepared(action, place)
        with pytest.raises(ActionError, match="no drive of"):
            prepared(action.replace(member="/dev/vda"), place)
    finally:
        run("mdadm", "--stop", "/dev/md1")
    assert not clean(Path("/sys/block/md1/md"))
