"""Where databases come from: new, there already, or restored from a saved set.

And nothing of anybody else is ever touched.
"""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll.databases import deleting, handover, holds, ownership, preflight, saved_sets
from plimsoll.documents.plan import Source
from plimsoll.documents.run_spec import RunSpec
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from tests.support.places import file_system, plimsoll

PLAN = """
kind = "plan"
schema_version = 1
name = "small"
{more}
[[target]]
name = "disk"
path = "{path}"
[[instance]]
name = "one"
database_size_mib = 64
cache_mib_max = 8
[[phase]]
kind = "prepare"
[[phase]]
kind = "generate_logs"
logs = 2
[[phase]]
kind = "stop"
[[phase]]
kind = "checksum"
"""


def plan_file(home: Path, path: Path, more: str = "") -> Path:
    file = home / "plan.toml"
    file.write_text(PLAN.format(path=path, more=more))
    return file


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set saved from a plan, and the databases it came from."""
    home = tmp_path_factory.mktemp("sources")
    result = plimsoll(
        "prepare",
        plan_file(home, home / "disk"),
        "--save",
        home / "set",
        "--out",
        home / "made",
        cwd=home,
    )
    assert result.returncode == 0, result.stderr
    return home


def test_BKP_01_a_restored_database_equals_its_source(saved: Path) -> None:
    """Each run of a series begins from the same bytes, whatever the run before has written.

    And only after a yes.
    """
    database = saved / "disk/one/database001.edb"
    before = digest(database)
    file = plan_file(saved, saved / "disk", f'restore_from = "{saved / "set"}"')
    asked = plimsoll("run", file, cwd=saved)
    assert asked.returncode == 2
    assert "it deletes the databases in" in asked.stderr
    first = plimsoll("run", file, "--yes", "--out", saved / "first", cwd=saved)
    assert first.returncode in (0, 1, 3), first.stderr
    assert digest(database) != before, "the load has changed it"
    sizes = []
    for name in ("second", "third"):
        again = plimsoll("run", file, "--yes", "--out", saved / name, cwd=saved)
        assert "one will be restored from" in again.stderr
        summary = json.loads((saved / name / folder.SUMMARY).read_text())
        assert summary["ending"] == "complete", summary["error"]
        assert summary["total"]["pages_damaged"] == 0
        sizes.append(summary["databases"][0]["initial_bytes"])
    assert sizes[0] == sizes[1]
    assert digest(saved / "set/one/databases/database001.edb") == before


def test_BKP_03_a_set_is_restored_elsewhere(saved: Path) -> None:
    """A recovery database: another place, opened and loaded like any other."""
    file = plan_file(saved, saved / "elsewhere", f'restore_from = "{saved / "set"}"')
    result = plimsoll("run", file, "--yes", "--out", saved / "other", cwd=saved)
    assert result.returncode in (0, 1, 3), result.stderr
    assert json.loads((saved / "other" / folder.SUMMARY).read_text())["ending"] == "complete"
    assert (saved / "elsewhere/one/database001.edb").exists()


def holds_file(*names: str) -> bytes:
    """As the engine writes it, but for the checksum: generation 1 is held under each name."""
    listed = b"".join(
        (1).to_bytes(4, "little") + len(name).to_bytes(2, "little") + name.encode()
        for name in names
    )
    block = bytes(4) + b"HOLD" + bytes(28) + len(names).to_bytes(4, "little") + listed
    return block.ljust(4096, b"\0") * 2


@pytest.mark.slow
def test_a_hold_on_the_log_stays_where_it_was_asked_for(saved: Path, tmp_path: Path) -> None:
    """Copied with a set it would keep all log of every copy for ever.

    Deleted without a word it would break what it promised.
    """
    disk, sets, old = tmp_path / "disk", tmp_path / "set", tmp_path / "old"
    plan = plan_file(tmp_path, disk)
    assert plimsoll("prepare", plan, "--out", tmp_path / "made", cwd=tmp_path).returncode == 0
    held = disk / "one/E00.holds"
    held.write_bytes(holds_file("archive", "copy \x1b[2J2"))
    result = plimsoll("prepare", plan, "--save", sets, "--out", tmp_path / "again", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert held.exists()
    assert not list(sets.rglob("*.holds"))
    assert "holds" not in (sets / "plimsoll-saved-set.json").read_text()
    # A set of an earlier version, which took the file along.
    shutil.copytree(sets, old)
    content = held.read_bytes()
    (old / "one/databases/E00.holds").write_bytes(content)
    manifest = json.loads((old / saved_sets.MANIFEST).read_text())
    entry = {
        "place": "databases",
        "name": "E00.holds",
        "bytes": 8192,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    manifest["instances"]["one"]["files"].append(entry)
    (old / saved_sets.MANIFEST).write_text(json.dumps(manifest))
    again = plan_file(tmp_path, disk, f'restore_from = "{old}"')
    asked = plimsoll("run", again, cwd=tmp_path)
    assert asked.returncode == 2
    assert f"it deletes log in {disk / 'one'} that is held for archive, copy" in asked.stderr
    assert "\x1b" not in asked.stderr
    assert held.exists()
    done = plimsoll("run", again, "--yes", "--out", tmp_path / "done", cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    assert not held.exists()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", []),
        (bytes(8192), []),
        (holds_file(), []),
        (holds_file("a"), ["a"]),
        (bytes(4096) + holds_file("b")[:4096], ["b"]),
        (b"x" * 8192, [holds.UNREADABLE]),
        (
            holds_file("c").replace((1).to_bytes(4, "little"), (2**31).to_bytes(4, "little"))[
                :8192
            ],
            [holds.UNREADABLE],
        ),
    ],
)
def test_whoever_holds_log_is_named(tmp_path: Path, content: bytes, found: list[str]) -> None:
    """A file that says nothing sensible may stand for a hold.

    One that was never acknowledged stands for none.
    """
    (tmp_path / "E00.holds").write_bytes(content)
    assert holds.holders(tmp_path) == found


def test_a_damaged_set_is_refused_before_anything_is_measured(saved: Path) -> None:
    """One bit of the set, and the place it was to go to."""
    file = saved / "set/one/databases/database001.edb"
    sound = file.read_bytes()
    file.write_bytes(sound[:100_000] + bytes([sound[100_000] ^ 1]) + sound[100_001:])
    plan = plan_file(saved, saved / "nowhere", f'restore_from = "{saved / "set"}"')
    result = plimsoll("run", plan, "--yes", cwd=saved)
    file.write_bytes(sound)
    assert result.returncode == 2
    assert "is not what was saved" in result.stderr


def test_a_damaged_set_costs_no_database(saved: Path, tmp_path: Path) -> None:
    """Whoever restores a damaged set keeps the databases that he has.

    What is seen without reading, a missing file and another length, is refused by the dry run.
    """
    sets, disk = shutil.copytree(saved / "set", tmp_path / "set"), tmp_path / "disk"
    plan = plan_file(tmp_path, disk, f'restore_from = "{sets}"')
    made = plimsoll("prepare", plan, "--yes", "--out", tmp_path / "made", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    before = digest(disk / "one/database001.edb")
    file = sets / "one/databases/database001.edb"
    sound = file.read_bytes()
    for content, dry_run, words in (
        (sound[:100_000] + bytes([sound[100_000] ^ 1]) + sound[100_001:], 0, "its bytes have"),
        (sound[:-1], 2, f"it has {len(sound) - 1} bytes and had {len(sound)}"),
        (None, 2, "is missing from the saved set"),
    ):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        looked = plimsoll("run", plan, "--dry-run", cwd=tmp_path)
        assert looked.returncode == dry_run, looked.stderr
        result = plimsoll("run", plan, "--yes", cwd=tmp_path)
        assert result.returncode == 2
        assert words in result.stderr
        assert digest(disk / "one/database001.edb") == before
        file.touch()


def killed_while_restoring(saved: Path, home: Path) -> Path:
    """The plan of a run that was killed when it had restored the database, and no log yet."""
    sets = shutil.copytree(saved / "set", home / "set")
    manifest = json.loads((sets / saved_sets.MANIFEST).read_text())
    files = manifest["instances"]["one"]["files"]
    files.sort(key=lambda file: not file["name"].endswith(".edb"))
    (sets / saved_sets.MANIFEST).write_text(json.dumps(manifest))
    plan = plan_file(home, home / "disk", f'restore_from = "{sets}"')
    # It kills itself before the second file.
    script = (
        "import os, signal, sys\n"
        "from plimsoll.databases import saved_sets\n"
        "copy, copied = saved_sets._copy, []\n"
        "def once(source, target):\n"
        "    if copied:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    copied.append(target)\n"
        "    return copy(source, target)\n"
        "saved_sets._copy = once\n"
        "from plimsoll.cli import main\n"
        "sys.argv = sys.argv[1:]\n"
        "main()\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, "plimsoll", "run", plan, "--yes", "--out", home / "killed"],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert (home / "disk/one/database001.edb").exists()
    assert not (home / "disk/one/E00.log").exists()
    return plan


def test_half_a_copy_is_taken_for_no_database(saved: Path, tmp_path: Path) -> None:
    """It was "recovered" without its log, and then the storage was said to have damaged it."""
    again = killed_while_restoring(saved, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    for command in (
        ("run", plan_file(other, tmp_path / "disk"), "--yes"),
        ("test", "checksum", tmp_path / "disk"),
    ):
        refused = plimsoll(*command, cwd=other)
        assert refused.returncode == 2, refused.stdout
        assert "holds only a part of its databases" in refused.stderr
        assert f"delete the rest with `plimsoll clean {tmp_path / 'disk/one'}`" in refused.stderr
    done = plimsoll("run", again, "--yes", "--out", tmp_path / "again", cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads((tmp_path / "again" / folder.SUMMARY).read_text())["ending"] == "complete"


def test_half_a_copy_can_be_deleted(saved: Path, tmp_path: Path) -> None:
    """And the folder of the run says what became of it."""
    killed_while_restoring(saved, tmp_path)
    words = "before it began; start it again"
    status = plimsoll("status", tmp_path / "killed", cwd=tmp_path)
    assert (status.returncode, f"killed was killed {words}" in status.stdout) == (3, True)
    resumed = plimsoll("resume", tmp_path / "killed", cwd=tmp_path)
    assert resumed.returncode == 2
    assert f"killed was cut off {words}" in resumed.stderr
    cleaned = plimsoll("clean", tmp_path / "disk", "--yes", cwd=tmp_path)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not (tmp_path / "disk/one").exists()


def test_a_restore_that_fails_leaves_an_empty_folder(saved: Path, tmp_path: Path) -> None:
    """Nothing was run: the next attempt may have the same folder."""
    sets = shutil.copytree(saved / "set", tmp_path / "set")
    file = sets / "one/databases/database001.edb"
    sound = file.read_bytes()
    file.write_bytes(sound[:100_000] + bytes([sound[100_000] ^ 1]) + sound[100_001:])
    plan = plan_file(tmp_path, tmp_path / "disk", f'restore_from = "{sets}"')
    for content in (None, sound):
        if content is not None:
            file.write_bytes(content)
        result = plimsoll("run", plan, "--yes", "--out", tmp_path / "run", cwd=tmp_path)
        assert (result.returncode == 2) == (content is None), result.stderr


def test_what_is_half_deleted_is_taken_for_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops a deletion has databases without their logs."""
    handover.take(run_of(tmp_path))
    monkeypatch.setattr(deleting, "delete_ours", lambda place, named: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        deleting.delete_databases(tmp_path / "one")
    with pytest.raises(preflight.PreflightError, match="holds only a part"):
        preflight.inspect(run_of(tmp_path))


def test_nothing_is_overwritten_by_saving(saved: Path) -> None:
    """A set is not replaced, and neither is a folder of somebody else.

    Both are said before hours of preparation.
    """
    for place in ("set", "disk"):
        result = plimsoll(
            "prepare", plan_file(saved, saved / "fresh"), "--save", saved / place, cwd=saved
        )
        assert result.returncode == 2
        assert "is not empty" in result.stderr
    assert not (saved / "fresh").exists()


def test_a_set_that_does_not_fit_leaves_nothing(saved: Path, tmp_path: Path) -> None:
    """Half of a set would only stand in the way of the next."""
    with file_system(tmp_path, 32) as small:
        result = plimsoll(
            "prepare", plan_file(saved, saved / "disk"), "--save", small / "set", cwd=saved
        )
        assert result.returncode == 2, result.stderr
        assert "no space left" in result.stderr
        assert list((small / "set").iterdir()) == []


def run_of(path: Path, **instance: Any) -> RunSpec:
    options = {
        "target": [{"name": "disk", "path": str(path)}],
        "instance": [{"name": "one", "database_size_mib": 64, **instance}],
    }
    return plan_of_options(options).run


def test_JST_08_new_databases_take_only_the_place_of_ours(tmp_path: Path) -> None:
    """Whoever asks for new ones has named ours.

    A directory without our marker is somebody else's whatever is asked.
    """
    source = Source(kind="new", from_=None)
    run = run_of(tmp_path)
    handover.take(run)
    found = preflight.inspect(run_of(tmp_path, database_size_mib=128), source)
    assert found.deleted == [str(tmp_path / "one")]
    assert found.bytes_to_prepare == 128 << 20
    (tmp_path / "other" / "one").mkdir(parents=True)
    (tmp_path / "other" / "one" / "letters.txt").write_text("dear")
    with pytest.raises(preflight.PreflightError, match="was not made by Plimsoll"):
        preflight.inspect(run_of(tmp_path / "other"), source)


def test_JST_08_existing_databases_are_not_made(tmp_path: Path) -> None:
    """A misspelt path must not fill a disk with new databases."""
    with pytest.raises(preflight.PreflightError, match="should exist and does not"):
        preflight.inspect(run_of(tmp_path), Source(kind="existing", from_=None))


def test_a_plan_says_one_source(tmp_path: Path) -> None:
    """Both mistakes at once."""
    base: dict[str, Any] = {
        "target": [{"name": "disk", "path": str(tmp_path)}],
        "instance": [{"name": "one"}],
    }
    for wrong, phrase in (
        ({"source": "restored"}, "nothing says from where"),
        ({"source": "new", "restore_from": "/x"}, "means nothing together with source new"),
        ({"source": "nwe"}, "write one of"),
    ):
        with pytest.raises(InputError, match=phrase):
            plan_of_options({**base, **wrong})


def test_JST_07_checksum_alone_on_what_is_there(saved: Path) -> None:
    """Sizes and seeds come from the markers; nothing is written, and one damaged page fails it."""
    database = saved / "disk/one/database001.edb"
    marker = saved / "disk/one/plimsoll-instance.json"
    before = marker.read_text()
    result = plimsoll("test", "checksum", saved / "disk", "--out", saved / "sums", cwd=saved)
    assert result.returncode == 0, result.stderr
    summary = json.loads((saved / "sums" / folder.SUMMARY).read_text())
    assert summary["checksums"][0]["pages_seen"] == database.stat().st_size // 32768 - 2, (
        "all but the two headers"
    )
    assert "pages verified at" in result.stdout
    sound = database.read_bytes()
    database.write_bytes(sound[:5_000_000] + bytes(4000) + sound[5_004_000:])
    damaged = plimsoll("test", "checksum", saved / "disk/one", "--out", saved / "bad", cwd=saved)
    database.write_bytes(sound)
    assert damaged.returncode == 1, damaged.stdout
    assert json.loads((saved / "bad" / folder.SUMMARY).read_text())["total"]["pages_damaged"] == 1
    assert marker.read_text() == before
    # What no page shows: a copy of the header, and what is behind the end of the file.
    for name, changed, phrase in (
        ("header", bytes(512) + sound[512:], "the first copy of its header is damaged"),
        ("cut", sound[: len(sound) // 65536 * 32768], "pages are missing at its end"),
    ):
        database.write_bytes(changed)
        damaged = plimsoll("test", "checksum", saved / "disk/one", "--out", saved / name, cwd=saved)
        database.write_bytes(sound)
        assert damaged.returncode == 1, damaged.stdout
        assert phrase in damaged.stdout
    nothing = plimsoll("test", "checksum", saved / "nothing", cwd=saved)
    assert nothing.returncode == 2
    assert "holds no databases of Plimsoll" in nothing.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"instances": None},
        {"instances": {"one": None}},
        {"instances": {"one": {"identity": {"databases": [1]}, "records": [], "files": []}}},
        {
            "instances": {
                "one": {
                    "identity": {"databases": []},
                    "records": [],
                    "files": [{"place": "x", "name": "a", "bytes": 1, "sha256": "0"}],
                }
            }
        },
        {
            "instances": {
                "one": {
                    "identity": {"databases": []},
                    "records": [],
                    "files": [{"place": "logs", "name": "../../evil", "bytes": 1, "sha256": "0"}],
                }
            }
        },
    ],
)
def test_a_manifest_leads_nowhere_else(wrong: dict[str, Any], tmp_path: Path) -> None:
    """Saved sets are copied from machine to machine, and a name in them could be any path."""
    manifest = {
        "kind": saved_sets.KIND,
        "schema_version": saved_sets.SCHEMA_VERSION,
        "saved_utc": "",
    } | wrong
    (tmp_path / saved_sets.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(folder.FolderError, match="damaged, or leads out"):
        saved_sets.read_set(tmp_path)


def test_a_performance_test_restores_as_every_other(tmp_path: Path) -> None:
    """The test that most people run had no --restore-from; an array has no use for it."""
    wanted = ("--restore-from", tmp_path / "set")
    place = plimsoll("test", "performance", tmp_path / "disk", *wanted, "--dry-run", cwd=tmp_path)
    assert place.returncode == 2
    assert f"{tmp_path / 'set'} holds no saved set" in place.stderr
    array = plimsoll("test", "performance", "--modelled", "emc-vnxe3300", *wanted, cwd=tmp_path)
    assert array.returncode == 2
    assert "leave out --restore-from" in array.stderr


def test_a_set_within_what_is_made_anew_is_refused(saved: Path, tmp_path: Path) -> None:
    """Restoring would delete what it restores from."""
    shutil.copytree(saved / "set", tmp_path / "disk" / "one" / "set")
    run = run_of(tmp_path / "disk")
    source = Source(kind="restored", from_=str(tmp_path / "disk" / "one" / "set"))
    (tmp_path / "disk" / "one" / ownership.MARKER).write_bytes(
        (saved / "disk" / "one" / ownership.MARKER).read_bytes()
    )
    with pytest.raises(preflight.PreflightError, match="which is made again"):
        preflight.inspect(run, source)
