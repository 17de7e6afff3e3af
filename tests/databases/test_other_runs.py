"""Another run on the same storage is named, and one that works elsewhere is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.databases.other_runs import OtherRuns
from plimsoll.databases.ownership import MARKER

HOLDS = """
import fcntl, sys
file = open(sys.argv[1], "rb+")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def databases(place: Path) -> Path:
    place.mkdir()
    (place / MARKER).write_text("{}")
    (place / "one.edb").write_text("")
    return place / "one.edb"


def told_of(others: OtherRuns, place: Path) -> list[str]:
    """What is said of databases there: other tests have runs of their own on the same disk."""
    return [sentence for sentence in others.sentences if str(place) in sentence]


@pytest.fixture
def holder(request):
    """A process that is no child of this one and has a database locked, as a run has."""

    def held(file: Path) -> None:
        process = subprocess.Popen(
            ["setsid", "--fork", sys.executable, "-c", HOLDS, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        request.addfinalizer(process.stdin.close)

    return held


def test_a_run_on_the_same_storage_is_named_with_its_databases(tmp_path, holder):
    file = databases(tmp_path / "theirs")
    others = OtherRuns([tmp_path / "ours"])
    others.look()
    assert told_of(others, tmp_path) == []
    holder(file)
    others = OtherRuns([tmp_path / "ours"])
    others.look()
    (told,) = told_of(others, tmp_path)
    assert "another run works on the same storage" in told
    assert str(file.parent) in told and "is of both" in told


def test_a_run_on_other_storage_is_no_neighbour(tmp_path, holder):
    holder(databases(tmp_path / "theirs"))
    others = OtherRuns([Path("/dev/shm/ours")])
    others.look()
    assert told_of(others, tmp_path) == []


def test_it_is_looked_for_now_and_then_and_found_once(tmp_path, holder):
    times = iter([0.0, 0.0, 1.0, 20.0, 40.0])
    others = OtherRuns([tmp_path], clock=lambda: next(times))
    others.look()
    holder(databases(tmp_path / "theirs"))
    others.look()
    assert told_of(others, tmp_path) == [], "not so soon"
    others.look()
    others.look()
    assert len(told_of(others, tmp_path)) == 1


def test_a_file_without_our_marker_beside_it_is_somebody_elses(tmp_path, holder):
    file = databases(tmp_path / "theirs")
    (file.parent / MARKER).unlink()
    holder(file)
    others = OtherRuns([tmp_path])
    others.look()
    assert told_of(others, tmp_path) == []
