"""`plimsoll edb repair`: flipped bits are put right, only when asked, on a copy unless told
otherwise, and nothing else changes.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.test_edb_command import set_state
from tests.support.edb_databases import edb, flip, golden, refused
from tests.support.warm_program import run_warm

PAGE = 4096


def page_at(page: int) -> int:
    return (page + 1) * PAGE


def verdict(path: Path) -> int:
    return run_warm(["verify", str(path)], path.parent).returncode


def without_headers(path: Path) -> bytes:
    return path.read_bytes()[2 * PAGE :]


def test_flipped_bits_are_put_right_on_a_copy(tmp_path: Path) -> None:
    """Byte for byte what was once written; the damaged original is the evidence and stays."""
    path = golden("syn4k.edb", tmp_path)
    sound = without_headers(path)
    flip(path, page_at(31) + 1000)
    flip(path, page_at(40) + 77, bit=7)
    damaged = path.read_bytes()
    result = edb("repair", path)
    assert result.returncode == 0, result.stderr
    assert "2 repaired, 0 beyond repair" in result.stdout
    assert "page 31: repaired" in result.stdout
    copy = tmp_path / "syn4k.edb.repaired"
    assert without_headers(copy) == sound
    assert verdict(copy) == 0
    assert path.read_bytes() == damaged
    # The header counts what was mended, in both copies, as the published engine does.
    headers = copy.read_bytes()[: 2 * PAGE]
    assert headers[:PAGE] == headers[PAGE:]
    assert int.from_bytes(headers[368:372], "little") == 2
    refused(edb("repair", path), "nothing is overwritten")


def test_in_place_only_when_said(tmp_path: Path) -> None:
    """Some databases are too large to copy."""
    path = golden("syn32k.edb", tmp_path)
    sound = path.read_bytes()
    flip(path, 33 * 32768 + 9000)
    flip(path, 33 * 32768 + 20000)
    result = edb("repair", path, "--in-place")
    assert result.returncode == 0, result.stderr
    assert "1 repaired" in result.stdout, "one page, a bit in each of two blocks"
    assert path.read_bytes()[2 * 32768 :] == sound[2 * 32768 :]
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_sound_database_is_left_alone(tmp_path: Path) -> None:
    """Not even its header changes."""
    path = golden("syn4k.edb", tmp_path)
    before = path.read_bytes()
    assert edb("repair", path, "--in-place").returncode == 0
    assert path.read_bytes() == before


def test_what_cannot_be_mended_stays_and_is_named(tmp_path: Path) -> None:
    """Two flips in one block look like anything; guessing would make the damage undetectable."""
    path = golden("syn4k.edb", tmp_path)
    flip(path, page_at(31) + 1000)
    flip(path, page_at(31) + 1001)
    flip(path, page_at(35) + 5)
    damaged = path.read_bytes()
    result = edb("repair", path, "--out", tmp_path / "copy.edb")
    assert result.returncode == 1
    assert "page 31: beyond repair" in result.stdout
    assert "page 35: beyond repair" in result.stdout, "a flip in the checksum itself names no place"
    assert (tmp_path / "copy.edb").read_bytes() == damaged


def test_no_copy_is_left_that_is_no_better(tmp_path: Path) -> None:
    """A copy of a terabyte stayed, although nothing in it was repaired."""
    for bits, code in ((range(2), 1), ((), 0)):
        path = golden("syn4k.edb", tmp_path)
        for bit in bits:
            flip(path, page_at(31) + 1000 + bit)
        result = edb("repair", path)
        assert result.returncode == code, result.stdout + result.stderr
        assert "nothing was repaired, so the copy was deleted" in result.stdout
        assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_either_header_is_mended_from_the_other(tmp_path: Path) -> None:
    """A database with one sound header is one more flip from being lost."""
    for copy in (0, 1):
        path = golden("syn4k.edb", tmp_path)
        sound = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(copy * PAGE)
            file.write(bytes(PAGE))
        result = edb("repair", path, "--in-place")
        assert f"copy {copy} of the header: repaired from the other" in result.stdout, result.stderr
        assert path.read_bytes() == sound


def test_what_may_not_be_mended_is_refused(tmp_path: Path) -> None:
    """A dirty database is mended by its log; a file that is no database is none of our business.

    The copy that was begun is gone again.
    """
    path = golden("syn4k.edb", tmp_path)
    for offset in (0, PAGE):
        set_state(path, offset, 2)
    before = path.read_bytes()
    refused(edb("repair", path), "was not shut down cleanly")
    refused(edb("repair", path, "--in-place"), "was not shut down cleanly")
    refused(edb("repair", path, "--in-place", "--out", tmp_path / "copy"), "leave out")
    refused(edb("repair", tmp_path / "missing"), "no such file")
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_errors_name_the_database_and_not_its_copy(tmp_path: Path) -> None:
    """The copy is gone when its name is read, and nobody has ever typed it."""
    sound = golden("syn4k.edb", tmp_path).read_bytes()
    dirty = tmp_path / "dirty.edb"
    dirty.write_bytes(sound)
    for offset in (0, PAGE):
        set_state(dirty, offset, 2)
    damaged = tmp_path / "damaged.edb"
    damaged.write_bytes(
        sound[:100] + b"damaged" + sound[107:PAGE] + bytes(PAGE) + sound[2 * PAGE :]
    )
    (tmp_path / "blank.edb").write_bytes(bytes(2 * PAGE) + sound[2 * PAGE :])
    (tmp_path / "short.edb").write_bytes(sound[:1000])
    for name in ("dirty.edb", "damaged.edb", "blank.edb", "short.edb"):
        path = tmp_path / name
        for out in ((), ("--out", tmp_path / "copy"), ("--out", "x")):
            result = edb("repair", path, *out)
            assert result.returncode != 0
            assert str(path) in result.stderr
            assert "Traceback" not in result.stderr
            for gone in (".repaired", str(tmp_path / "copy"), " x", ": x:"):
                assert gone not in result.stderr


def test_a_copy_that_cannot_be_written_is_advised_another_place(tmp_path: Path) -> None:
    """The directory of a database is often one that may only be read."""
    path = golden("syn4k.edb", tmp_path)
    (tmp_path / "file").touch()
    result = edb("repair", path, "--out", tmp_path / "file" / "copy")
    refused(result, "copy: not a directory; name another place for the copy with --out")
    assert (
        f"{tmp_path / 'missing'}: there is no such file"
        in edb("repair", tmp_path / "missing").stderr
    )


def test_a_database_behind_a_link_is_not_mended_in_place(tmp_path: Path) -> None:
    """A link may lead to a file that whoever typed the name has never seen."""
    path = golden("syn4k.edb", tmp_path)
    flip(path, page_at(31) + 1000)
    before = path.read_bytes()
    (tmp_path / "link.edb").symlink_to(path)
    refused(edb("repair", tmp_path / "link.edb", "--in-place"), "symbolic links are not followed")
    assert path.read_bytes() == before


def test_who_ends_a_repair_finds_no_part_of_a_copy(tmp_path: Path) -> None:
    """It would look like a database that has lost its pages."""
    path, copy = tmp_path / "large.edb", tmp_path / "large.edb.repaired.part"
    path.touch()
    os.truncate(path, 4 << 30)
    command = [sys.executable, "-m", "plimsoll.cli", "edb", "repair", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not copy.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (4, "interrupted")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_killed_repair_leaves_nothing_under_the_finished_name(tmp_path: Path) -> None:
    """The copy is as long as the database from early on, and has the pages it had."""
    path = golden("syn4k.edb", tmp_path)
    part = tmp_path / "syn4k.edb.repaired.part"
    flip(path, page_at(31) + 1000)
    kill = (
        "import os, signal, sys\n"
        "from plimsoll.cli import main\n"
        "from plimsoll.databases import tables\n"
        "tables.repair_database = lambda file: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = ['plimsoll', 'edb', 'repair', sys.argv[1]]\n"
        "main()\n"
    )
    subprocess.run([sys.executable, "-c", kill, str(path)], check=False, timeout=60)
    assert part.stat().st_size == path.stat().st_size
    assert {found.name for found in tmp_path.iterdir()} == {path.name, part.name}
    result = edb("repair", path)
    assert result.returncode == 0, result.stderr
    assert verdict(tmp_path / "syn4k.edb.repaired") == 0
    assert not part.exists()
