"""A run on what an earlier run left degraded is refused, as long as that is not undone.

Why it matters: a figure of a throttled disk, or of one with a path less, would pass for the disk's.
"""

import fcntl
import json
from pathlib import Path

import pytest

import plimsoll
from plimsoll.files import folder
from plimsoll.run.left_degraded import require_nothing_degraded
from plimsoll.run.pending_undo import PendingUndos, pending_of
from tests.support.places import plimsoll as program

PLAN = """kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "load", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 1 }}]
"""
LINK = """[[event]]
name = "link"
after_s = 0.2
action = "link down"
link = "eth7"
"""


def left(place: Path, text: str, name: str = "link") -> Path:
    """The folder of a run that was killed while something was degraded."""
    place.mkdir(parents=True)
    plimsoll.parse_plan(text).write(place / folder.PLAN)
    undos = PendingUndos(place)
    undos.add(pending_of(name, ["true"], 9, (), None, ends_with_boot=True))
    return place


def test_a_run_on_a_device_that_is_still_degraded_is_refused_until_it_is_undone(tmp_path):
    text = PLAN.format(path=tmp_path / "data")
    before = left(tmp_path / "runs/one", text)
    (tmp_path / "plan.toml").write_text(text)
    run = ("run", tmp_path / "plan.toml", "--out", tmp_path / "runs/two", "--yes", "--create")
    refused = program(*run, "--allow-system-disk", cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    assert f"`plimsoll clean {before} --allow-commands`" in refused.stderr
    assert 'event "link" is not undone' in refused.stderr
    assert not (tmp_path / "runs/two").exists()
    assert program("clean", before, "--allow-commands", cwd=tmp_path).returncode == 0
    done = program(*run, "--allow-system-disk", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr


def test_it_is_told_before_the_databases_that_a_killed_run_still_holds(tmp_path):
    """The kernel lets go of them when their throttled requests have come back: no run is there that
    could be stopped.
    """
    text = PLAN.format(path=tmp_path / "data")
    (tmp_path / "plan.toml").write_text(text)
    run = ("run", tmp_path / "plan.toml", "--yes", "--create", "--allow-system-disk", "--out")
    assert program(*run, tmp_path / "runs/zero", cwd=tmp_path).returncode in (0, 3)
    before = left(tmp_path / "runs/one", text)
    (database,) = (tmp_path / "data").rglob("*.dat")
    with database.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = program(*run, tmp_path / "runs/two", cwd=tmp_path)
    assert refused.returncode == 2
    assert f"`plimsoll clean {before} --allow-commands`" in refused.stderr
    assert "is in use" not in refused.stderr


@pytest.fixture
def elsewhere() -> str:
    if not Path("/dev/shm").is_dir():
        pytest.skip("wants /dev/shm")
    return PLAN.format(path="/dev/shm/plimsoll-other")


def test_only_what_both_runs_touch_is_refused(tmp_path, elsewhere):
    """A device, or what the events of both change; also in the folder of a series."""
    text = PLAN.format(path=tmp_path / "data")
    left(tmp_path / "runs/series/run-2", text + LINK)
    (new := tmp_path / "runs/new").mkdir()
    require_nothing_degraded(plimsoll.parse_plan(elsewhere), new)
    for both in (text, elsewhere + LINK):
        with pytest.raises(folder.FolderError, match=r"series/run-2 left something degraded"):
            require_nothing_degraded(plimsoll.parse_plan(both), new)


def test_what_goes_on_or_was_ended_by_a_restart_refuses_nothing(tmp_path):
    plan = plimsoll.parse_plan(text := PLAN.format(path=tmp_path / "data"))
    before = left(tmp_path / "one", text)
    with folder.kept([before]):
        require_nothing_degraded(plan, tmp_path / "two")
    path = before / folder.UNDO_PENDING
    content = json.loads(path.read_text())
    content["pending"][0]["boot_id"] = "another"
    path.write_text(json.dumps(content))
    require_nothing_degraded(plan, tmp_path / "two")


def test_a_folder_that_cannot_be_read_is_named(tmp_path):
    text = PLAN.format(path=tmp_path / "data")
    before = left(tmp_path / "one", text)
    (before / folder.PLAN).write_text("{")
    with pytest.raises(folder.FolderError, match="one left something degraded"):
        require_nothing_degraded(plimsoll.parse_plan(text), tmp_path / "two")


def test_targets_of_one_name_on_two_disks_are_two(tmp_path, elsewhere):
    """Plans call their targets as they like: what counts is the disk."""
    throttle = (
        '[[event]]\nname = "slow"\nafter_s = 0.2\naction = "throttle"\ntarget = "disk"\niops = 9\n'
    )
    left(tmp_path / "one", PLAN.format(path=tmp_path / "data") + throttle)
    require_nothing_degraded(plimsoll.parse_plan(elsewhere + throttle), tmp_path / "two")


def test_a_modelled_run_measures_nothing_that_is_degraded(tmp_path):
    """Nor does it need files that say what is."""
    before = left(tmp_path / "one", PLAN.format(path=tmp_path / "data"))
    modelled = PLAN.replace('path = "{path}"', 'modelled = "dell-md3000i"').format()
    for damaged in (folder.PLAN, folder.UNDO_PENDING):
        (before / damaged).write_text("{")
        require_nothing_degraded(plimsoll.parse_plan(modelled), tmp_path / "two")


def test_a_damaged_file_refuses_what_it_may_concern_and_says_what_to_do(tmp_path, elsewhere):
    text = PLAN.format(path=tmp_path / "data")
    path = left(tmp_path / "one", text) / folder.UNDO_PENDING
    path.write_text('{"schema_version": 1, "pend')
    with pytest.raises(folder.FolderError, match=f"put back by hand, then delete {path}"):
        require_nothing_degraded(plimsoll.parse_plan(text), tmp_path / "two")
    require_nothing_degraded(plimsoll.parse_plan(elsewhere), tmp_path / "two")
    with folder.kept([path.parent]):
        require_nothing_degraded(plimsoll.parse_plan(text), tmp_path / "two")


def test_what_another_machine_has_to_undo_is_told_with_its_name(tmp_path):
    """What only its kernel knows degrades nothing here."""
    plan = plimsoll.parse_plan(text := PLAN.format(path=tmp_path / "data"))
    path = left(tmp_path / "one", text) / folder.UNDO_PENDING
    content = json.loads(path.read_text())
    elsewhere = {"boot_id": "another", "machine_id": "d4e5f6", "host_name": "array-test-2"}
    content["pending"][0] |= elsewhere
    path.write_text(json.dumps(content))
    require_nothing_degraded(plan, tmp_path / "two")
    content["pending"][0]["ends_with_boot"] = False
    path.write_text(json.dumps(content))
    with pytest.raises(folder.FolderError, match=r"array-test-2.*plimsoll clean") as refused:
        require_nothing_degraded(plan, tmp_path / "two")
    assert "restarted" not in str(refused.value)


def test_what_only_a_person_undoes_is_cleaned_with_yes(tmp_path):
    plan = plimsoll.parse_plan(text := PLAN.format(path=tmp_path / "data"))
    undos = PendingUndos(before := left(tmp_path / "one", text))
    undos.add(pending_of("drive 3", (), 9, (), "put drive 3 back"))
    with pytest.raises(folder.FolderError, match=f"`plimsoll clean {before} --yes`"):
        require_nothing_degraded(plan, tmp_path / "two")
