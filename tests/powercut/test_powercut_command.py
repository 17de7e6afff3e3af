"""The commands on this machine's own storage, without any cut.

What they refuse, what they leave, what they say.
"""

import errno
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.powercut import workspace
from plimsoll.powercut.audit import audit_powercut
from tests.support.power_cut_lab import PLIMSOLL, plimsoll, witness

SMALL = ["--size-mib", "2", "--page-kib", "4", "--sessions", "4"]


def few_files() -> None:
    """For a child between fork and exec: it may hold hardly any file open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))


def test_killed_work_is_audited_on_a_copy(tmp_path: Path) -> None:
    """A kill loses nothing, so everything must be there.

    And what was audited must be as it was, byte for byte. If the marker itself is lost, the witness
    still knows what must be there."""
    log, disk = tmp_path / "witness.log", tmp_path / "disk"
    disk.mkdir()
    with witness(log) as address:
        work = subprocess.Popen(
            [*PLIMSOLL, "powercut", str(disk), "--witness", address, *SMALL],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while log.read_text().count("\nc ") < 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        work.kill()
        work.wait()
        while '"ended"' not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
    before = {path.name: path.read_bytes() for path in (disk / "powercut").iterdir()}
    how = ["--witness-log", log, "--work", tmp_path]
    plain = plimsoll("audit", disk, *how, cwd=tmp_path)
    assert plain.returncode == 3, plain.stdout
    assert "closed and did not fall silent" in plain.stdout, (
        "a kill is no power cut, and the audit says so"
    )
    assert "has not been restarted" in plain.stdout
    how += ["--cut-under-load", "--json"]
    found = plimsoll("audit", disk, *how, cwd=tmp_path)
    assert found.returncode == 0, found.stderr + found.stdout
    judged = json.loads(found.stdout)
    assert judged["figures"]["acknowledged_commits"] >= 50
    assert judged["recovery"]["recovered"]
    assert judged["pages_after_recovery"]["verdict"] == "sound"
    assert {path.name: path.read_bytes() for path in (disk / "powercut").iterdir()} == before
    assert not list(tmp_path.glob("plimsoll-audit-*")), "the copy is gone"
    marker = disk / "powercut/plimsoll-instance.json"
    marker.rename(tmp_path / "marker")
    for content in (b"", b'{"kind": "plimsoll_instance"}'):
        marker.write_bytes(content)
        spoilt = plimsoll("audit", disk, *how, cwd=tmp_path)
        assert [item["name"] for item in json.loads(spoilt.stdout)["findings"]] == ["lost_files"], (
            spoilt.stderr
        )
        assert spoilt.returncode == 1
    marker.unlink()
    (disk / "powercut/marks.dat").rename(tmp_path / "marks")
    robbed = plimsoll("audit", disk, *how, cwd=tmp_path)
    assert robbed.returncode == 1, robbed.stderr
    assert [item["name"] for item in json.loads(robbed.stdout)["findings"]] == [
        "lost_files",
        "unreadable_marks",
    ]
    few = subprocess.run(
        [*PLIMSOLL, "audit", str(disk), *map(str, how)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=few_files,
    )
    assert (few.returncode, "this machine" in few.stderr) == (2, True), few.stderr + few.stdout
    (disk / "powercut").rename(tmp_path / "away")
    # As if the storage had not been mounted after the cut.
    text = log.read_text()
    head, begun, rest = text.split("\n", 2)
    described = json.loads(begun)
    described["run"]["storage"] = {"mount_point": "/mnt/another"}
    log.write_text("\n".join([head, json.dumps(described), rest]))
    missed = plimsoll("audit", disk, *how, cwd=tmp_path)
    assert (missed.returncode, "mount the storage there" in missed.stderr) == (2, True), (
        missed.stderr + missed.stdout
    )
    log.write_text(text)
    (tmp_path / "away").rename(disk / "powercut")
    (tmp_path / "marker").rename(disk / "powercut/plimsoll-instance.json")
    again = plimsoll("powercut", disk, "--witness", "127.0.0.1:1", cwd=tmp_path)
    assert (again.returncode, "may be evidence" in again.stderr) == (2, True)
    assert plimsoll("clean", disk, "--yes", cwd=tmp_path).returncode == 0
    assert list(disk.iterdir()) == []


def test_work_that_ends_by_itself_proves_nothing(tmp_path: Path) -> None:
    """Closed files were never at risk, and the audit must not call that a pass."""
    log = tmp_path / "witness.log"
    with witness(log) as address:
        done = plimsoll(
            "powercut",
            tmp_path,
            "--witness",
            address,
            "--seconds",
            "0.5",
            "--json",
            *SMALL,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["commits"] > 0
    assert "the witness is on this machine" in done.stderr
    found = plimsoll("audit", tmp_path, "--witness-log", log, "--in-place", cwd=tmp_path)
    assert found.returncode == 3, found.stdout
    assert "not by a power cut" in found.stdout
    (tmp_path / "powercut").rename(tmp_path / "gone")
    gone = plimsoll("audit", tmp_path, "--witness-log", log, cwd=tmp_path)
    assert (gone.returncode, "nothing was at risk" in gone.stderr) == (2, True), (
        gone.stderr + gone.stdout
    )


def test_work_that_goes_on_is_neither_audited_nor_disturbed(tmp_path: Path) -> None:
    """What changes while it is copied looks damaged.

    And whoever is second must not take the evidence of the first.
    """
    log, disk = tmp_path / "witness.log", tmp_path / "disk"
    disk.mkdir()
    with witness(log) as address:
        command = [*PLIMSOLL, "powercut", str(disk), "--witness", address, *SMALL]
        work = subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while "\nc " not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        for more in ([], ["--in-place"]):
            found = plimsoll("audit", disk, "--witness-log", log, *more, cwd=tmp_path)
            assert (found.returncode, "works in" in found.stderr) == (2, True), (
                found.stderr + found.stdout
            )
        inner = plimsoll("powercut", disk / "powercut", "--witness", address, *SMALL, cwd=tmp_path)
        assert (inner.returncode, "may be evidence" in inner.stderr) == (2, True), inner.stderr
        # An ssh session that breaks off ends it like Ctrl-C.
        work.send_signal(signal.SIGHUP)
        assert work.wait(timeout=60) == 4
    assert plimsoll("audit", disk, "--witness-log", log, cwd=tmp_path).returncode == 3


def test_two_that_begin_at_once_do_not_share(tmp_path: Path) -> None:
    """The second may have waited for the witness for long."""
    place = tmp_path / "powercut"
    with workspace.made(place):
        with pytest.raises(workspace.PlaceError, match="works in"), workspace.made(place):
            raise AssertionError("both work there")
        (place / "one").write_text("the first's")
    with pytest.raises(workspace.PlaceError, match="just been taken"), workspace.made(place):
        raise AssertionError("it is not empty")
    assert (place / "one").exists()
    with workspace.made(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()


def test_a_block_that_cannot_be_read_fails_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was flushed, and is gone: the rest is looked at all the same."""
    log = tmp_path / "witness.log"
    with witness(log) as address:
        plimsoll(
            "powercut", tmp_path, "--witness", address, "--seconds", "0.5", *SMALL, cwd=tmp_path
        )
    size = (tmp_path / "powercut" / "marks.dat").stat().st_size
    read = os.pread

    def failing(descriptor: int, length: int, at: int) -> bytes:
        if os.fstat(descriptor).st_size == size and at <= 8192 < at + length:
            raise OSError(errno.EIO, "input/output error")
        return read(descriptor, length, at)

    monkeypatch.setattr(os, "pread", failing)
    found = audit_powercut(tmp_path, log, work_in=tmp_path, in_place=False, keep=False)
    assert found["result"] == "fail"
    (unreadable,) = [item for item in found["findings"] if item["name"] == "unreadable_blocks"]
    assert unreadable["text"] == "blocks of 4 KiB cannot be read: 1 of marks.dat"
    assert found["figures"]["lost_marks"] <= 1


@pytest.mark.parametrize(
    ("option", "phrase"),
    [
        (["--io-method", "foo"], "--io-method must be one of"),
        (["--seconds", "nan"], "--seconds must be a number"),
        (["--witness", "a..b:17613"], "start `plimsoll witness`"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(
    option: list[str], phrase: str, tmp_path: Path
) -> None:
    """What is left behind counts as evidence and has to be cleaned away."""
    found = plimsoll(
        "powercut", tmp_path, "--witness", "127.0.0.1:1", *SMALL, *option, cwd=tmp_path
    )
    assert (found.returncode, phrase in found.stderr) == (2, True), found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["file", "folder"])
def test_somebody_elses_data_is_never_touched(tmp_path: Path, what: str) -> None:
    """The worst mistake there is."""
    place = tmp_path / "powercut"
    if what == "file":
        place.write_text("precious")
    else:
        place.mkdir()
        (place / "thesis.txt").write_text("precious")
    found = plimsoll("powercut", tmp_path, "--witness", "127.0.0.1:1", cwd=tmp_path)
    assert found.returncode == 2
    assert "name another directory" in found.stderr
    kept = place if what == "file" else place / "thesis.txt"
    assert kept.read_text() == "precious"


def test_without_a_witness_nothing_begins(tmp_path: Path) -> None:
    """Work that nobody remembers is no evidence."""
    found = plimsoll("powercut", tmp_path, "--witness", "127.0.0.1:1", *SMALL, cwd=tmp_path)
    assert found.returncode == 2
    assert "start `plimsoll witness`" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_work_ends_with_its_witness(tmp_path: Path) -> None:
    """What is committed after the witness has gone would be missed by nobody."""
    log = tmp_path / "witness.log"
    with witness(log) as address:
        work = subprocess.Popen(
            [*PLIMSOLL, "powercut", str(tmp_path), "--witness", address, *SMALL],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while "\nc " not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
    _, errors = work.communicate(timeout=60)
    assert work.returncode == 3, errors
    assert "is gone" in errors


def test_an_audit_of_nothing_is_a_usage_error(tmp_path: Path) -> None:
    """A mistyped path must look neither like a pass nor like lost data."""
    (tmp_path / "witness.log").write_text("not a log\n")
    for arguments in ([tmp_path, "--witness-log", tmp_path / "witness.log"], [tmp_path], []):
        found = plimsoll("audit", *arguments, cwd=tmp_path)
        assert found.returncode == 2, found.stderr


def test_a_witness_stops_when_asked(tmp_path: Path) -> None:
    """Also without any visitor."""
    process = subprocess.Popen(
        [*PLIMSOLL, "witness", "--log", str(tmp_path / "log"), "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert b"listening at 127.0.0.1" in process.stderr.readline()
    # A shell that starts it in the background has it ignore Ctrl-C.
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 4
    process.stderr.close()
