"""A whole block device as target.

Refused until its serial is typed, used like a file, given back by `clean`.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import read_plan
from tests.support.places import loop_device, plimsoll

PLAN = """\
kind = "plan"
schema_version = 1
name = "device"
[[target]]
name = "lun"
path = "{device}"
{log_path}
[[instance]]
name = "mail"
database_size_mib = 128
cache_mib_min = 2
cache_mib_max = 8
{more}
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = 2
[[phase]]
kind = "stop"
[[phase]]
kind = "checksum"
"""


def plan_file(home: Path, device: str, more: str = "", log_path: str | None = None) -> Path:
    text = PLAN.format(device=device, more=more, log_path=log_path or f'log_path = "{home}/logs"')
    path = home / "plan.toml"
    path.write_text(text)
    return path


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    with loop_device(tmp_path / "backing", 256) as name:
        yield name


def test_nothing_is_written_before_the_serial_is_typed(tmp_path: Path, device: str) -> None:
    """The worst mistake there is: somebody's disk, overwritten because its name was mistyped."""
    before = (tmp_path / "backing").read_bytes()
    for serials in ([], ["--destroy", "ANOTHER-SERIAL"]):
        result = plimsoll("run", plan_file(tmp_path, device), *serials, cwd=tmp_path)
        assert result.returncode == 2
        assert f"give --destroy {device} if this is the device you mean" in result.stderr
    assert (tmp_path / "backing").read_bytes() == before
    assert not (tmp_path / "logs").exists()


def test_a_run_on_a_device_from_first_to_last(tmp_path: Path, device: str) -> None:
    """Prepared, measured, checked, used again, verified, given back: as with a directory."""
    plan = plan_file(tmp_path, device)
    for name, phrase in (("first", "128 MiB of databases to prepare"), ("second", "mail reused")):
        result = plimsoll("run", plan, "--destroy", device, "--out", tmp_path / name, cwd=tmp_path)
        assert phrase in result.stderr, result.stderr
        outcome = json.loads((tmp_path / name / "outcome.json").read_text())
        assert outcome["ending"] == "complete", outcome["error"]
        checksum = outcome["phases"][-1]["checksums"][0]
        assert (checksum["path"], checksum["bad"], checksum["wrong_page_number"]) == (device, 0, 0)
        assert 4000 < checksum["pages_seen"] < 6000, "the database, not the whole device"
    verified = plimsoll("verify", device, "--deep", "--json", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout
    assert json.loads(verified.stdout)["files"][0]["deep"]["findings"] == []
    assert (tmp_path / "logs/mail/device001.jfm").exists(), "the flush map lies with the logs"
    refused = plimsoll("clean", tmp_path / "logs", "--yes", cwd=tmp_path)
    assert refused.returncode == 2
    assert f"is deleted only with --destroy {device}" in refused.stderr
    assert (
        plimsoll("clean", tmp_path / "logs", "--yes", "--destroy", device, cwd=tmp_path).returncode
        == 0
    )
    assert (tmp_path / "backing").open("rb").read(1 << 20) == bytes(1 << 20)
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_device_with_somebodys_data_is_refused_even_with_its_serial(
    tmp_path: Path, device: str
) -> None:
    """Consent to a serial is not consent to lose a file system nobody remembered."""
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    result = plimsoll("run", plan_file(tmp_path, device), "--destroy", device, cwd=tmp_path)
    assert result.returncode == 2
    assert "signature of ext2, ext3 or ext4" in result.stderr
    assert not (tmp_path / "logs").exists()


def test_a_database_whose_logs_are_elsewhere_is_not_overwritten(
    tmp_path: Path, device: str
) -> None:
    """A mistyped log_path must not cost the hours that preparing took."""
    plan = plan_file(tmp_path, device)
    assert plimsoll("prepare", plan, "--destroy", device, cwd=tmp_path).returncode == 0
    moved = plan_file(tmp_path, device, log_path=f'log_path = "{tmp_path}/other"')
    result = plimsoll("run", moved, "--destroy", device, cwd=tmp_path)
    assert result.returncode == 2
    assert "whose logs are not in" in result.stderr


def test_files_take_a_device_to_its_end_for_they_do_not_grow(tmp_path: Path, device: str) -> None:
    """A quarter of a device had to stay free, for the growth of a database that was not there."""

    def told(size_mib: int) -> subprocess.CompletedProcess[str]:
        where = [device, "--log-path", tmp_path, "--allow-system-disk", "--destroy", device]
        size = ["--size-mib", str(size_mib), "--minutes", "0.1", "--dry-run"]
        return plimsoll("test", "files", *where, *size, cwd=tmp_path)

    capacity = int(Path(f"/sys/block/{Path(device).name}/size").read_text()) // 2048
    fits = told(capacity)
    assert fits.returncode == 0, fits.stderr
    large = told(capacity + 1)
    assert large.returncode == 2
    assert f"holds {capacity} MiB, but {capacity + 1} MiB are asked for; lower file_mib" in (
        large.stderr
    )


def test_a_device_too_small_or_missing_is_named(tmp_path: Path, device: str) -> None:
    """Checked before filling, as for a file system."""
    text = plan_file(tmp_path, device).read_text().replace("= 128", "= 250")
    (tmp_path / "plan.toml").write_text(text)
    small = plimsoll("run", tmp_path / "plan.toml", "--destroy", device, cwd=tmp_path)
    assert small.returncode == 2
    assert "lower database_size_mib" in small.stderr
    for name, phrase in (
        ("/dev/disk/by-id/nvme-nobody-has-this", "does not exist"),
        ("/dev/nobody-has-this", "names no device"),
    ):
        gone = plimsoll("run", plan_file(tmp_path, name), cwd=tmp_path)
        assert gone.returncode == 2
        assert phrase in gone.stderr, gone.stderr


def test_what_a_device_cannot_be_is_a_mistake_in_the_plan(tmp_path: Path) -> None:
    """All of it at once, each with its line."""
    path = plan_file(
        tmp_path,
        "/dev/disk/by-id/some",
        'databases = 2\n[[instance]]\nname = "two"\nbackend = "raw_files"',
    )
    path.write_text(path.read_text().replace(f'log_path = "{tmp_path}/logs"', ""))
    with pytest.raises(InputError) as caught:
        read_plan(path)
    found = {mistake.where: mistake.line for mistake in caught.value.mistakes}
    assert found == {
        "target[1].log_path": 4,
        "instance[1].databases": 13,
        "instance[2].target": 14,
        "instance[2].backend": 16,
    }


def test_a_store_on_a_device_is_refused_whatever_serial_is_typed(tmp_path: Path) -> None:
    """Consent is no reason to write where no store can lie; the answer says where it can."""
    logs = ["--log-path", tmp_path / "logs", "--destroy", "SERIAL"]
    result = plimsoll("test", "store", "/dev/disk/by-id/some", *logs, cwd=tmp_path)
    assert result.returncode == 2
    assert (
        "`instance[1].backend` needs a directory, but the target is a block device" in result.stderr
    )
    assert "hint: name a directory of a file system on it" in result.stderr
    assert list(tmp_path.iterdir()) == []
