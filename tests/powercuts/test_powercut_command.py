"""The commands on this machine's own storage, without any cut: what they refuse, what they leave, what they say."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lab import PLIMSOLL, plimsoll, witness

SMALL = ["--size-mib", "2", "--page-kib", "4", "--sessions", "4"]


def test_killed_work_is_audited_on_a_copy(tmp_path: Path) -> None:
    """A kill loses nothing, so everything must be there; and what was audited must be as it was, byte for byte. If the marker itself
    is lost, the witness still knows what must be there."""
    log, disk = tmp_path / "witness.log", tmp_path / "disk"
    disk.mkdir()
    with witness(log) as address:
        work = subprocess.Popen(
            [*PLIMSOLL, "powercut", str(disk), "--witness", address, *SMALL], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while log.read_text().count("\nc ") < 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        work.kill()
        work.wait()
    before = {path.name: path.read_bytes() for path in (disk / "powercut").iterdir()}
    found = plimsoll("audit", disk, "--witness-log", log, "--work", tmp_path, "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr + found.stdout
    judged = json.loads(found.stdout)
    assert judged["figures"]["acknowledged_commits"] >= 50
    assert judged["recovery"]["recovered"]
    assert judged["pages_after_recovery"]["verdict"] == "sound"
    assert judged["same_start_of_machine"], "a kill is no power cut, and the audit says so"
    assert {path.name: path.read_bytes() for path in (disk / "powercut").iterdir()} == before
    assert not list(tmp_path.glob("plimsoll-audit-*")), "the copy is gone"
    (disk / "powercut/plimsoll-instance.json").rename(tmp_path / "marker")
    (disk / "powercut/marks.dat").rename(tmp_path / "marks")
    robbed = plimsoll("audit", disk, "--witness-log", log, "--work", tmp_path, "--json", cwd=tmp_path)
    assert robbed.returncode == 1, robbed.stderr
    assert [item["name"] for item in json.loads(robbed.stdout)["findings"]] == ["lost_files", "unreadable_marks"]
    (tmp_path / "marker").rename(disk / "powercut/plimsoll-instance.json")
    again = plimsoll("powercut", disk, "--witness", "127.0.0.1:1", cwd=tmp_path)
    assert (again.returncode, "may be evidence" in again.stderr) == (2, True)
    assert plimsoll("clean", disk, "--yes", cwd=tmp_path).returncode == 0
    assert list(disk.iterdir()) == []


def test_work_that_ends_by_itself_proves_nothing(tmp_path: Path) -> None:
    """Closed files were never at risk, and the audit must not call that a pass."""
    log = tmp_path / "witness.log"
    with witness(log) as address:
        done = plimsoll("powercut", tmp_path, "--witness", address, "--seconds", "0.5", "--json", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["commits"] > 0
    assert "the witness is on this machine" in done.stderr
    found = plimsoll("audit", tmp_path, "--witness-log", log, "--in-place", cwd=tmp_path)
    assert found.returncode == 3, found.stdout
    assert "not by a power cut" in found.stdout


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
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
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
        [*PLIMSOLL, "witness", "--log", str(tmp_path / "log"), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert b"listening at 127.0.0.1" in process.stderr.readline()
    # A shell that starts it in the background has it ignore Ctrl-C.
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 4
    process.stderr.close()
