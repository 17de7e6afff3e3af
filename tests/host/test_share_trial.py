"""What a share honours is tried and said."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from plimsoll.host import environment, share_trial


def _said(trials: list[share_trial.ShareTrial]) -> dict[str, str]:
    return {item["name"]: item["said"] for item in trials if not item["honoured"]}


@pytest.mark.parametrize("place", ["/dev/shm", "/tmp"])
def test_a_file_system_of_this_machine_honours_everything(place: str) -> None:
    """A trial that accuses an honest file system is worth nothing; and it leaves nothing behind."""
    trials = share_trial.try_out(Path(place))
    assert _said([item for item in trials if item["name"] != "direct I/O"]) == {}
    assert not list(Path(place).glob(f"{share_trial.PREFIX}*"))


def test_locks_that_do_nothing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share mounted with `nolock` lets two runs open one database."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert _said(share_trial.try_out(tmp_path)) == {"locks": "two hold it at once"}


def test_refused_direct_io_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then every figure goes through the memory of this machine."""
    opened = os.open

    def without_direct(path: Any, flags: int, *further: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "refused")
        return opened(path, flags, *further)

    monkeypatch.setattr(os, "open", without_direct)
    trials = share_trial.try_out(tmp_path)
    assert _said(trials) == {"direct I/O": "EINVAL"}
    (sentence,) = share_trial.refused(trials)
    assert "page cache of this machine" in sentence


def test_names_that_come_late_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that remembers a listing shows what was."""
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(()))
    assert _said(share_trial.try_out(tmp_path)) == {"names at once": "a new name is not listed"}


def test_a_rename_that_keeps_the_target_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saves by renaming would save nothing."""

    def renamed(path: Path, _: Path) -> None:
        path.unlink()

    monkeypatch.setattr(Path, "rename", renamed)
    said = _said(share_trial.try_out(tmp_path))
    assert said["replacing by renaming"] == "the target keeps its content"
    assert said["renaming an open file"] == "ENOENT"


def test_a_share_that_makes_no_directory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing known of a share is a reason for doubt, and not for silence."""

    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr(share_trial.tempfile, "mkdtemp", refuse)
    assert _said(share_trial.try_out_or_say(tmp_path)) == {"new directories": "ENOSYS"}


def test_a_run_on_a_share_records_what_it_honours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report of a share says what was tried, and what is not honoured is a warning."""
    described = environment.describe(tmp_path)
    facts: Any = described.facts
    facts["file_system"] = {**facts["file_system"], "kind": "nfs4", "is_network": True}
    monkeypatch.setattr(environment, "describe", lambda _: described)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    found = environment.collect([tmp_path])
    assert [item["name"] for item in found["targets"][0]["share"] if not item["honoured"]] == [
        "locks"
    ]
    assert any("does not honour locks" in warning for warning in found["warnings"])


def test_nothing_is_tried_on_a_disk_of_this_machine(tmp_path: Path) -> None:
    """A run writes nothing beside its own files where there is nothing to find out."""
    assert "share" not in environment.collect([tmp_path])["targets"][0]
