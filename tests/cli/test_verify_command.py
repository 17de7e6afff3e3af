"""`plimsoll verify` on the databases a run left behind.

Sound, damaged and not a database at all.
"""

import functools
import json
import operator
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.edb_databases import golden
from tests.support.edb_edits import CODE_PAGE, edit_column_rows
from tests.support.warm_program import run_warm

PLIMSOLL = [sys.executable, "-m", "plimsoll.cli"]
PAGE = 32768


def verify(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_warm(["verify", *map(str, arguments)], Path.cwd())


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared database of 64 MiB."""
    return prepared(tmp_path_factory.mktemp("verify"))


def prepared(home: Path, seed: int = 1) -> Path:
    """A database of 64 MiB in a folder of its own."""
    plan = home / "plan.toml"
    plan.write_text(
        f'kind = "plan"\nschema_version = 1\nseed = {seed}\n'
        f'[[target]]\nname = "disk"\npath = "{home}"\n'
        '[[instance]]\nname = "one"\ndatabase_size_mib = 64\n'
    )
    command = ["prepare", str(plan), "--yes", "--quiet", "--out", str(home / "run")]
    run_warm(command, home).check_returncode()
    return home / "one" / "database001.edb"


def test_a_sound_database_is_sound(database: Path) -> None:
    """And stays byte for byte what it was."""
    before = database.read_bytes()
    result = verify(database, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = json.loads(result.stdout)["files"]
    assert (file["verdict"], file["bad"], file["page_bytes"]) == ("sound", 0, PAGE)
    assert file["pages_seen"] > 1000
    assert database.read_bytes() == before


def test_a_prepared_database_is_sound_as_a_whole(database: Path) -> None:
    """Every page may be sound and the database still not hold together."""
    result = verify(database, "--deep")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 findings" in result.stdout


def test_a_flush_map_of_another_database_is_called_so(database: Path, tmp_path: Path) -> None:
    """It lay beside the database and was named, too; the advice was to name it."""
    other = tmp_path / "other"
    other.mkdir()
    map_of_other = prepared(other, seed=2).with_suffix(".jfm")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(database, mixed)
    assert "name its .jfm, too" in verify(mixed).stdout
    shutil.copy(map_of_other, mixed)
    words = "database001.jfm beside it belongs to another database; name its own"
    assert words in verify(mixed).stdout
    words = "database001.jfm beside it is damaged or belongs to another database; name its own"
    assert words in verify(mixed / database.name).stdout


def test_damage_is_classified_and_named(database: Path, tmp_path: Path) -> None:
    """JST-07: One flipped bit, one destroyed page, one page in another's place.

    Each has its own word.
    """
    damaged = tmp_path / "damaged.edb"
    shutil.copy(database, damaged)
    with damaged.open("r+b") as file:
        offset = 500 * PAGE + 9000
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 4]))
        file.seek(600 * PAGE + 100)
        file.write(b"destroyed" * 50)
        file.seek(700 * PAGE)
        page = file.read(PAGE)
        file.seek(800 * PAGE)
        file.write(page)
    result = verify(damaged)
    assert result.returncode == 1
    assert "1 bad, 1 correctable, 1 wrong page number" in result.stdout
    assert "page 799 at offset 26214400: wrong page number, it is page 699" in result.stdout


def test_damage_is_told_whatever_cannot_be_used_beside_it(database: Path, tmp_path: Path) -> None:
    """A script that looks at the code took the damage for a mistake in its own command."""
    damaged, other = tmp_path / "damaged.edb", tmp_path / "other.edb"
    shutil.copy(database, damaged)
    with damaged.open("r+b") as file:
        file.seek(600 * PAGE + 100)
        file.write(b"destroyed" * 50)
    other.write_bytes(b"no database")
    assert verify(other).returncode == 2
    for paths in ([damaged, other], [tmp_path], [damaged, tmp_path / "missing.edb"]):
        result = verify(*paths)
        assert result.returncode == 1, result.stdout
        assert "1 bad" in result.stdout
    assert verify(database, other).returncode == 2


def test_what_is_wrong_beside_pages_is_said(database: Path, tmp_path: Path) -> None:
    """Who reads "damaged; 0 bad" wants to know why.

    `edb repair` must not call such a file whole either.
    """
    damaged = tmp_path / "cut.edb"
    shutil.copy(database, damaged)
    with damaged.open("r+b") as file:
        file.truncate(1000 * PAGE + 77)
        file.write(b"destroyed" * 50)
    result = verify(damaged)
    assert result.returncode == 1
    for words in (
        "first copy of its header is damaged",
        "77 bytes",
        "pages are missing at its end",
    ):
        assert words in result.stdout
    repaired = subprocess.run(
        [*PLIMSOLL, "edb", "repair", str(damaged), "--in-place"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert repaired.returncode == 1, repaired.stdout + repaired.stderr
    assert (
        "pages are missing at its end" in repaired.stdout and "77 bytes follow" in repaired.stdout
    )


def test_an_emptied_log_is_damage(database: Path, tmp_path: Path) -> None:
    """Acknowledged changes were in it."""
    log = tmp_path / "E00.log"
    log.touch()
    result = verify(log)
    assert result.returncode == 1, result.stdout
    assert "the log that was in it is lost" in result.stdout


def test_a_database_that_needs_its_log_is_not_called_damaged(
    database: Path, tmp_path: Path
) -> None:
    """It cannot be checked deeply, which is neither damage nor a pass."""
    dirty = tmp_path / "dirty.edb"
    shutil.copy(database, dirty)
    with dirty.open("r+b") as file:
        for copy in range(2):
            file.seek(copy * PAGE)
            header = bytearray(file.read(PAGE))
            header[52] = 2
            words = memoryview(header).cast("I")
            words[0] = functools.reduce(operator.xor, words[1:], 0x89ABCDEF)
            file.seek(copy * PAGE)
            file.write(header)
    assert verify(dirty).returncode == 0
    result = verify(dirty, "--deep")
    assert result.returncode == 2, result.stdout
    assert ": sound;" in result.stdout and "could not be checked deeply" in result.stdout


def test_what_cannot_be_entered_is_not_passed_over(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in such a directory nobody knows; root enters all, so the refusal is made here."""
    from plimsoll.databases.verify import _files_in

    shutil.copy(database, tmp_path / "database001.edb")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refuse(place: str) -> object:
        if Path(place).name == "closed":
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    unseen: list[str] = []
    assert [path.name for path in _files_in(tmp_path, unseen)] == ["database001.edb"]
    assert unseen == [f"{tmp_path}/closed: permission denied"]


def test_what_is_no_database_is_a_usage_error(tmp_path: Path) -> None:
    """A text file is not a damaged database."""
    text = tmp_path / "notes.txt"
    text.write_text("notes")
    assert verify(text).returncode == 2
    missing = verify(tmp_path / "missing.edb")
    assert missing.returncode == 2
    assert "no such file" in missing.stdout


def test_a_directory_means_every_file_of_the_format_in_it(database: Path) -> None:
    """Nobody wants to list a hundred logs.

    The marker and the run folder beside them are no files of the format.
    """
    result = verify(database.parent, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    kinds = {Path(file["path"]).name: file["kind"] for file in json.loads(result.stdout)["files"]}
    assert kinds["database001.edb"] == "database"
    assert kinds["database001.jfm"] == "flush_map"
    assert kinds["E00.chk"] == "checkpoint"
    assert "log" in kinds.values()
    assert "plimsoll-instance.json" not in kinds
    empty = verify(database.parent.parent / "run")
    assert empty.returncode == 2


def test_a_run_folder_holds_no_file_of_the_format(tmp_path: Path) -> None:
    """Its `events.log` is no log of a database, and must not look like a damaged one."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.log").write_text('{"kind": "phase_started"}\n')
    found = verify(tmp_path / "run")
    assert found.returncode == 2
    assert "there are no files of the format there" in found.stderr


def test_a_name_that_is_not_utf8_is_checked_and_shown(database: Path, tmp_path: Path) -> None:
    """Such names come from other systems.

    The file must be found, and its report must say which one it is.
    """
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.edb")
    try:
        shutil.copy(database, odd)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    for argument in (odd, str(tmp_path)):
        result = verify(argument, "--json")
        assert result.returncode == 0, result.stderr
        (file,) = json.loads(result.stdout)["files"]
        assert file["path"] == f"{tmp_path}/caf\\xE9.edb"
    assert "caf\\xE9.edb: sound" in verify(odd).stdout


@pytest.mark.parametrize(("name", "page_bytes"), [("syn4k.edb", 4096), ("syn32k.edb", 32768)])
def test_an_index_that_cannot_be_checked_is_named_and_no_damage(
    name: str, page_bytes: int, tmp_path: Path
) -> None:
    """Ten of 27 sound databases of Windows have one.

    `verify --deep` ended in a traceback on every one of them.
    """
    path = golden(name, tmp_path)
    assert edit_column_rows(path, page_bytes, 8, 128, CODE_PAGE, 1200) == 2
    result = verify("--deep", path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert "  index owner_ix of table PlimsollMail was not checked: " in result.stdout


def test_an_empty_reserve_log_is_called_that_and_not_sound_pages(tmp_path: Path) -> None:
    """There are no pages in it; "32 pages, 32 uninitialized" made readers look for a database."""
    reserve = tmp_path / "E00res00001.jrs"
    reserve.write_bytes(bytes(1 << 20))
    result = verify(reserve)
    assert result.returncode == 0, result.stderr
    assert (
        "empty, as a log that is made ready or held in reserve is; 1,048,576 bytes" in result.stdout
    )
    assert "pages" not in result.stdout


def test_what_another_program_wrote_is_not_judged(tmp_path: Path) -> None:
    """Neither sound nor damaged.

    Nobody restores a backup for it, and no script takes it for checked.
    """
    reserve = tmp_path / "edbres00001.jrs"
    reserve.write_bytes(b"\xda" * (1 << 20))
    result = verify(reserve)
    assert result.returncode == 2, result.stdout
    assert "not judged: it is by its name a log" in result.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A database that was written for seconds and closed, and what its file held before."""
    home = tmp_path_factory.mktemp("written")
    plan = home / "plan.toml"
    plan.write_text(
        'kind = "plan"\nschema_version = 1\n'
        f'[[target]]\nname = "disk"\npath = "{home}"\n'
        '[[instance]]\nname = "one"\ndatabase_size_mib = 64\n'
        '[[workload]]\nname = "mix"\nload = { sessions = 2 }\n'
        '[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "measure"\nduration_s = 4\n'
        '[[phase]]\nkind = "stop"\n'
    )
    path = home / "one" / "database001.edb"
    before = b""
    for number, verb in enumerate(("prepare", "run")):
        command = [*PLIMSOLL, verb, str(plan), "--yes", "--quiet", "--allow-system-disk"]
        done = subprocess.run(
            [*command, "--out", str(home / f"run{number}")],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (home / f"run{number}").exists(), done.stderr
        before = before or path.read_bytes()
    return path, before


def test_a_lost_write_is_told_by_the_flush_map(written: tuple[Path, bytes], tmp_path: Path) -> None:
    """What a page held before has a checksum that fits; only the flush map knows that it is old.

    Where there is no map, nothing was compared, and that is said.
    """
    path, before = written
    after = path.read_bytes()
    place = tmp_path / "database001.edb"
    map_file = shutil.copy(path.with_suffix(".jfm"), tmp_path)
    changed = [
        at
        for at in range(2 * PAGE, min(len(before), len(after)), PAGE)
        if before[at : at + PAGE] != after[at : at + PAGE] and any(before[at : at + PAGE])
    ]
    lost = changed[len(changed) // 2 :][:6]
    assert len(lost) == 6
    place.write_bytes(after)
    sound = verify(place)
    assert (sound.returncode, "flush map" in sound.stdout) == (0, False), sound.stdout
    old = bytearray(after)
    for at in lost:
        old[at : at + PAGE] = before[at : at + PAGE]
    place.write_bytes(old)
    result = verify(place, "--json")
    assert result.returncode == 1, result.stdout
    (file,) = json.loads(result.stdout)["files"]
    # After three writes, or six, the type of the flush comes round.
    assert 1 <= file["lost"] <= 6 and file["lost_first"] * PAGE + PAGE in lost
    assert file["flush_map"] == map_file
    assert file["bad"] == 0 and any("lost (-1119)" in reason for reason in file["reasons"])
    Path(map_file).unlink()
    alone = verify(place)
    assert alone.returncode == 0 and "not compared with a flush map" in alone.stdout
    assert verify(place, path.with_suffix(".jfm")).returncode == 1, "a map that is named"
