"""Power cuts under a real kernel, end to end.

File system, direct I/O, engine, witness, audit, on disks that lie in one way each.
"""

from pathlib import Path

import pytest

from tests.support.power_cut_lab import (
    audit,
    machine,
    needs,
    plimsoll,
    snapshot_under_load,
    witness,
    work_until_cut,
)

pytestmark = pytest.mark.slow


def cut_and_audit(home: Path, kind: str, behaviour: str, seed: int) -> dict[str, object]:
    """One cut; the file system may be beyond mounting, which is said and not hidden."""
    needs(kind)
    log = home / "witness.log"
    with machine(home / "machine", kind, behaviour, seed) as made, witness(log) as address:
        made.start()
        said = work_until_cut(made, address, log, 1.5)
        made.power_on()
        try:
            made.start()
        except RuntimeError as error:
            return {"result": "unmountable", "text": str(error), "findings": [], "said": said}
        return {**audit(made, log), "said": said}


def names(found: dict[str, object]) -> set[str]:
    findings = found["findings"]
    assert isinstance(findings, list)
    return {finding["name"] for finding in findings}


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_an_honest_disk_passes(tmp_path: Path, kind: str) -> None:
    """Whoever keeps what was flushed must never be accused, whatever else the cut took."""
    found = cut_and_audit(tmp_path, kind, "honest", 1)
    assert (found["result"], found["exit_code"]) == ("pass", 0), found
    assert names(found) == set()
    assert found["figures"]["acknowledged_commits"] > 50  # type: ignore[index]


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_disk_that_drops_flushes_is_named(tmp_path: Path, kind: str) -> None:
    """The lie that costs the most.

    Everything of the last moments is gone, though it was said to be safe.
    """
    found = cut_and_audit(tmp_path, kind, "drops_flushes", 2)
    assert found["result"] == "fail", found
    assert "drops_flushes" in names(found), found
    assert "reorders" not in names(found), found


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_disk_that_tears_4_kib_is_named(tmp_path: Path, kind: str) -> None:
    """It says that its sectors have 4 KiB.

    Nothing acknowledged may be lost all the same, because the engine does not rely on it.
    """
    seen: set[str] = set()
    for seed in range(3, 9):
        found = cut_and_audit(tmp_path / str(seed), kind, "tears", seed)
        assert found["result"] in ("fail", "pass"), found
        seen |= names(found)
        assert seen <= {"tears_4k"}, found
        if seen:
            return
    pytest.fail("six cuts without a torn block")


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_disk_that_reorders_is_named(tmp_path: Path, kind: str) -> None:
    """Single writes are gone and later ones are there.

    The file system itself may be the first victim, so more than one cut is made.
    """
    for seed in range(4, 10):
        found = cut_and_audit(tmp_path / str(seed), kind, "reorders", seed)
        if "reorders" in names(found):
            assert found["result"] == "fail"
            return
    pytest.fail("six cuts of a disk that reorders, and none was named")


def test_a_snapshot_under_load_recovers_clean(tmp_path: Path) -> None:
    """What an array copies at one instant holds everything acknowledged until then.

    It recovers without loss or damage.
    """
    needs("ext4")
    log = tmp_path / "witness.log"
    with machine(tmp_path / "machine", "ext4", "honest", 5) as made, witness(log) as address:
        made.start()
        found = snapshot_under_load(made, address, log)
    assert (found["result"], found["exit_code"]) == ("pass", 0), found
    assert found["recovery"]["recovered"]
    assert found["pages_after_recovery"]["verdict"] == "sound"


def test_work_never_goes_where_evidence_lies(tmp_path: Path) -> None:
    """After the cut the files are what the storage is judged by.

    A second run there would destroy that.
    """
    needs("ext4")
    log = tmp_path / "witness.log"
    with machine(tmp_path / "machine", "ext4", "honest", 6) as made, witness(log) as address:
        made.start()
        work_until_cut(made, address, log, 0.3)
        made.power_on()
        made.start()
        again = plimsoll("powercut", made.point, "--witness", address, cwd=tmp_path)
        assert again.returncode == 2
        assert "may be evidence" in again.stderr
