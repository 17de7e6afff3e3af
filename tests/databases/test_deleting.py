"""What of a directory is ours, and what stays."""

from pathlib import Path

import pytest

from plimsoll.databases.deleting import delete_ours
from plimsoll.files.folder import FolderError


def _homes(place: Path) -> Path:
    folder = place / "homes" / "u000001" / "d000002"
    folder.mkdir(parents=True)
    (folder / "f00000003.dat").write_bytes(b"x" * 4096)
    (place / "homes" / "u000001" / "d000004").mkdir()
    return folder


def test_home_folders_go_whole(tmp_path: Path) -> None:
    """Homes are made anew by every run, so those of the last one have to go."""
    place = tmp_path / "one"
    _homes(place)
    assert delete_ours(place, {"homes"}) == 4096
    assert not place.exists()


def test_what_no_run_has_made_stays(tmp_path: Path) -> None:
    """Somebody who has put a file there has it still, and is told where."""
    for number, name in enumerate(("mine.txt", "f00000003.dat.old", "F00000003.DAT")):
        place = tmp_path / f"place{number}"
        folder = _homes(place)
        (folder / name).write_text("mine")
        with pytest.raises(FolderError, match="no run of Plimsoll has made there"):
            delete_ours(place, {"homes"})
        assert (folder / name).read_text() == "mine"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link to somebody's folder among the homes would delete what is in it."""
    other = tmp_path / "other"
    folder = _homes(tmp_path / "one")
    _homes(other)
    (tmp_path / "one" / "homes" / "u000002").symlink_to(other / "homes" / "u000001")
    (folder / "f00000009.dat").symlink_to(other / "homes" / "u000001" / "d000002" / "f00000003.dat")
    with pytest.raises(FolderError):
        delete_ours(tmp_path / "one", {"homes"})
    assert (other / "homes" / "u000001" / "d000002" / "f00000003.dat").exists()


def test_a_damaged_marker_names_nothing_outside(tmp_path: Path) -> None:
    """Names come from a file that anybody may have written."""
    (tmp_path / "one").mkdir()
    _homes(tmp_path / "two")
    delete_ours(tmp_path / "one", {"../two", str(tmp_path / "two"), "..", "."})
    assert (tmp_path / "two" / "homes" / "u000001" / "d000002" / "f00000003.dat").exists()
