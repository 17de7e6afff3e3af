"""What of a directory is ours, and what stays."""

from pathlib import Path

import pytest

from plimsoll.databases.deleting import delete_databases, delete_ours
from plimsoll.databases.ownership import MARKER
from plimsoll.files.folder import FolderError
from tests.support.places import plimsoll


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


def test_a_file_that_the_marker_does_not_name_stays(tmp_path: Path) -> None:
    """Why: somebody's file004.dat next to our one file went with it."""
    for name in ("file001.dat", "file004.dat", MARKER):
        (tmp_path / name).write_text(name)
    delete_ours(tmp_path, {"file001.dat"})
    assert [path.name for path in tmp_path.iterdir()] == ["file004.dat"]


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


def _prepared(tmp_path: Path, more: str = "") -> Path:
    """The directory of an instance that a plan has made, in a target."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'kind = "plan"\nschema_version = 1\n[[target]]\nname = "disk"\npath = "{tmp_path / "p"}"\n'
        f"{more}\n"
        '[[instance]]\nname = "mail"\ndatabase_size_mib = 64\ncache_mib_max = 8\n'
    )
    made = plimsoll("prepare", plan, "--yes", "--out", tmp_path / "made", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path / "p" / "mail"


def _files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_databases_behind_a_link_stay(tmp_path: Path) -> None:
    """They were deleted to the last, and the message was that the link is no directory."""
    mail, elsewhere = _prepared(tmp_path), tmp_path / "elsewhere"
    mail.rename(elsewhere)
    before = _files(elsewhere)
    for leads_to in (Path("../elsewhere"), elsewhere):
        mail.symlink_to(leads_to)
        for named in ("p", "p/mail", "p/mail/"):
            result = plimsoll("clean", named, "--yes", cwd=tmp_path)
            assert result.returncode == 2, result.stdout
            assert f"p/mail is a symbolic link to {elsewhere}" in result.stderr
            assert "nothing was deleted" in result.stderr
        with pytest.raises(FolderError, match="is a symbolic link to"):
            delete_databases(mail)
        assert _files(elsewhere) == before
        mail.unlink()


def test_one_link_among_directories_keeps_all_of_them(tmp_path: Path) -> None:
    """What is refused is refused before anything is deleted."""
    mail = _prepared(tmp_path)
    before = _files(mail)
    (mail.parent / "second").symlink_to(mail)
    result = plimsoll("clean", mail.parent, "--yes", cwd=tmp_path)
    assert result.returncode == 2
    assert f"{mail.parent / 'second'} is a symbolic link to {mail}" in result.stderr
    assert _files(mail) == before


def test_a_marker_behind_a_link_gives_nothing_away(tmp_path: Path) -> None:
    """It is that of another directory, whose file names fit here just as well."""
    mail, other = _prepared(tmp_path), tmp_path / "other"
    other.mkdir()
    (other / "database001.edb").write_text("mine")
    (other / MARKER).symlink_to(mail / MARKER)
    result = plimsoll("clean", other, "--yes", cwd=tmp_path)
    assert result.returncode == 2
    assert f"{other / MARKER} is a symbolic link to {mail / MARKER}" in result.stderr
    assert (other / "database001.edb").read_text() == "mine"


def test_new_databases_are_not_made_beside_links(tmp_path: Path) -> None:
    """The others were deleted, and then the link stood in the way."""
    mail, elsewhere = _prepared(tmp_path), tmp_path / "elsewhere.edb"
    (mail / "database001.edb").rename(elsewhere)
    (mail / "database001.edb").symlink_to(elsewhere)
    before = _files(mail)
    plan = tmp_path / "plan.toml"
    plan.write_text('source = "new"\n' + plan.read_text())
    result = plimsoll("prepare", plan, "--yes", cwd=tmp_path)
    assert result.returncode == 2
    assert "holds symbolic links (database001.edb)" in result.stderr
    assert _files(mail) == before


def test_the_directory_one_stands_in_is_deleted(tmp_path: Path) -> None:
    """It was emptied, and then it had no name to be removed by."""
    mail = _prepared(tmp_path)
    result = plimsoll("clean", ".", "--yes", cwd=mail)
    assert result.returncode == 0, result.stderr
    assert not mail.exists()


def test_logs_behind_a_link_stay_and_are_named(tmp_path: Path) -> None:
    """They stayed without a word."""
    mail = _prepared(tmp_path, f'log_path = "{tmp_path / "lg"}"')
    logs, elsewhere = tmp_path / "lg" / "mail", tmp_path / "ev"
    logs.rename(elsewhere)
    logs.symlink_to("../ev")
    before = _files(elsewhere)
    result = plimsoll("clean", mail.parent, "--yes", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"its logs stay: {logs} is a symbolic link to {elsewhere}" in result.stderr
    assert _files(elsewhere) == before
    assert not mail.exists()


def test_logs_of_nobody_stay_and_are_named(tmp_path: Path) -> None:
    """Without a marker they may belong to other databases."""
    mail = _prepared(tmp_path, f'log_path = "{tmp_path / "lg"}"')
    (tmp_path / "lg" / "mail" / MARKER).unlink()
    result = plimsoll("clean", mail, "--yes", cwd=tmp_path)
    assert f"its logs stay: nothing in {tmp_path / 'lg/mail'} says" in result.stderr
    assert (tmp_path / "lg" / "mail" / "E00.log").exists()


def test_what_lies_beside_logs_is_named(tmp_path: Path) -> None:
    """As what lies beside databases is."""
    mail = _prepared(tmp_path, f'log_path = "{tmp_path / "lg"}"')
    (tmp_path / "lg" / "mail" / "notes").write_text("mine")
    (mail / "link").symlink_to("nowhere")
    result = plimsoll("clean", mail, "--yes", cwd=tmp_path)
    assert f"{tmp_path / 'lg/mail'} keeps notes, which is no part" in result.stderr
    assert f"{mail} keeps link, a symbolic link, which is no part" in result.stderr
    assert "its logs stay" not in result.stderr


def test_a_path_without_databases_is_named(tmp_path: Path) -> None:
    """A mistyped path was answered by the same words as an empty one."""
    (tmp_path / "empty").mkdir()
    result = plimsoll("clean", "mistyped", "empty", "--yes", cwd=tmp_path)
    assert result.returncode == 2
    assert "mistyped does not exist" in result.stderr
    assert "empty holds no databases of Plimsoll" in result.stderr
