"""A backup that is kept: copies that were restored before anybody relies on them.

Afterwards they are a saved set, and everything that is not one says so.
"""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.databases import kept_backups, saved_sets
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from tests.support.places import PLIMSOLL, file_system, plimsoll

SMALL = ("--databases", "2", "--size-mib", "64", "--cache-mib", "8", "--create")


def options(**more: object) -> dict[str, object]:
    """A plan that keeps a backup of one small database."""
    phases = [
        {"kind": "prepare"},
        {"kind": "backup", "to": "/somewhere/kept"},
        {"kind": "stop"},
        {"kind": "restore"},
    ]
    return {
        "name": "kept",
        "target": [{"name": "disk", "path": "/somewhere/disk"}],
        "instance": [{"name": "one", "database_size_mib": 64}],
        "phase": phases,
        **more,
    }


def mistakes(**more: object) -> str:
    with pytest.raises(InputError) as raised:
        plan_of_options(options(**more))
    return str(raised.value)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of two databases that was taken under load."""
    home = tmp_path_factory.mktemp("kept")
    result = plimsoll(
        *("test", "backup", home / "disk", *SMALL, "--under-load", "--to", home / "set"),
        *("--yes", "--out", home / "run"),
        cwd=home,
    )
    assert result.returncode == 0, result.stderr
    assert "was restored and is sound" in result.stderr
    return home


def test_a_backup_under_load_is_restored_and_judged(kept: Path) -> None:
    summary = json.loads((kept / "run" / folder.SUMMARY).read_text())
    assert [item["instance"] for item in summary["restores"]] == ["instance1", "instance2"]
    for item in summary["restores"]:
        assert item["kept_in"] == str(kept / "set")
        assert item["findings"] == []
        assert item["logs_count"] >= 1, "there was work meanwhile"
        assert item["pages_count"] * 32768 >= item["bytes"] > 63 << 20
    # What the copies replay is no recovery of the databases.
    assert not summary.get("recoveries")
    verdict = json.loads((kept / "run" / folder.VERDICT).read_text())
    checks = [check for check in verdict["checks"] if check["name"] == "backup_restored"]
    assert [check["status"] for check in checks] == ["pass", "pass"]
    page = (kept / "run" / folder.REPORT).read_text()
    assert "Backup restored" in page
    assert f"kept in {kept / 'set'}" in page


def test_what_was_kept_is_a_saved_set(kept: Path) -> None:
    """It is restored elsewhere, and every record of it is one of the databases."""
    made = plimsoll(
        *("test", "recovery", kept / "again", *SMALL, "--restore-from", kept / "set"),
        *("--logs", "2", "--no-checksum", "--yes", "--out", kept / "second"),
        cwd=kept,
    )
    assert made.returncode in (0, 1, 3), made.stderr
    assert "will be restored from" in made.stderr
    summary = json.loads((kept / "second" / folder.SUMMARY).read_text())
    assert summary["ending"] == "complete", summary["error"]
    checked = plimsoll(
        "verify",
        "--deep",
        *kept.glob("set/*/databases/*.edb"),
        *kept.glob("again/*/*.edb"),
        cwd=kept,
    )
    assert checked.returncode == 0, checked.stdout


def test_nothing_is_kept_over_what_is_there(kept: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*") if path.is_file()}
    again = plimsoll(
        "test", "backup", kept / "disk", *SMALL, "--to", kept / "set", "--yes", cwd=kept
    )
    assert again.returncode == 2
    assert f"{kept / 'set'} is not empty" in again.stderr
    inside = kept / "disk/instance1/copy"
    within = plimsoll("test", "backup", kept / "disk", *SMALL, "--to", inside, "--yes", cwd=kept)
    assert within.returncode == 2
    assert "keep the backup elsewhere" in within.stderr
    (kept / "link").symlink_to(kept / "disk")
    linked = plimsoll(
        "test", "backup", kept / "disk", *SMALL, "--to", kept / "link", "--yes", cwd=kept
    )
    assert linked.returncode == 2
    assert "symbolic link" in linked.stderr
    (kept / "link").unlink()
    after = {path: path.stat().st_mtime_ns for path in kept.rglob("*") if path.is_file()}
    assert after == before


def test_a_killed_backup_is_no_set(tmp_path: Path) -> None:
    """Its files lie there without a manifest: nothing takes them for a backup."""
    target = tmp_path / "set"
    arguments = ["test", "backup", tmp_path / "disk", *SMALL, "--max-iops", "300", "--to", target]
    arguments += ["--read-kib", "32", "--yes", "--quiet", "--out", tmp_path / "run"]
    prepared = plimsoll(
        "test", "backup", tmp_path / "disk", *SMALL, "--yes", "--quiet", cwd=tmp_path
    )
    assert prepared.returncode == 0, prepared.stderr
    with subprocess.Popen([*PLIMSOLL, *map(str, arguments)], cwd=tmp_path) as running:
        copy = target / "instance1/databases/database001.edb"
        for _ in range(600):
            if copy.exists() or running.poll() is not None:
                break
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "it was still at it"
    plan = [*SMALL, "--restore-from", target, "--yes"]
    refused = plimsoll("test", "recovery", tmp_path / "again", *plan, cwd=tmp_path)
    assert refused.returncode == 2
    assert "holds no saved set" in refused.stderr
    again = plimsoll(*map(str, arguments), cwd=tmp_path)
    assert again.returncode == 2
    assert "unfinished" in again.stderr or "already" in again.stderr, again.stderr
    # The databases themselves are none the worse.
    out = tmp_path / "after"
    after = plimsoll(
        *("test", "backup", tmp_path / "disk", *SMALL, "--to", tmp_path / "other", "--yes"),
        *("--out", out),
        cwd=tmp_path,
    )
    assert after.returncode == 0, after.stderr
    saved_sets.read_set(tmp_path / "other")


def test_room_for_the_copies_is_asked_for_first(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    with file_system(tmp_path / "small", 96) as small:
        target = small / "set"
        result = plimsoll(
            "test", "backup", tmp_path / "disk", *SMALL, "--to", target, "--yes", cwd=tmp_path
        )
        assert result.returncode == 2
        assert "MiB free, but the run needs about" in result.stderr
        assert not target.exists()
        assert not (tmp_path / "disk").exists()


def test_a_plan_that_keeps_a_backup_restores_it() -> None:
    run = plan_of_options(options()).run
    assert kept_backups.folder_of(run) == Path("/somewhere/kept")
    assert run.phases[3].action.from_ == "/somewhere/kept"  # type: ignore[union-attr]
    alone = [{"kind": "prepare"}, {"kind": "backup"}, {"kind": "restore"}, {"kind": "stop"}]
    assert "is restore, but no backup is kept" in mistakes(phase=alone)
    kept = {"kind": "backup", "to": "/kept"}
    unproven = [{"kind": "prepare"}, kept, {"kind": "stop"}]
    assert "keeps a backup that no phase restores" in mistakes(phase=unproven)
    twice = [{"kind": "prepare"}, kept, {**kept, "name": "again"}, {"kind": "restore"}]
    assert "keeps a second backup" in mistakes(phase=twice)
    elsewhere = [{"kind": "prepare", "to": "/kept"}]
    assert "means nothing in a phase of kind prepare" in mistakes(phase=elsewhere)
    raw = [{"name": "one", "database_size_mib": 64, "backend": "raw_files"}]
    assert "needs the engine" in mistakes(instance=raw)


def test_log_that_a_sound_backup_makes_superfluous_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        f"""kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{tmp_path}/disk" }}]
workload = [{{ name = "mix", load = {{ sessions = 4 }} }}]

[[instance]]
name = "one"
database_size_mib = 64
cache_mib_max = 64
checkpoint_depth_mib = 4
circular_log = false

[[phase]]
kind = "prepare"

[[phase]]
kind = "generate_logs"
logs = 25

[[phase]]
kind = "backup"
to = "{tmp_path}/set"

[[phase]]
kind = "restore"
truncate_log = true

[[phase]]
kind = "stop"

[[phase]]
kind = "checksum"
""",
        encoding="utf-8",
    )
    result = plimsoll(
        *("run", tmp_path / "plan.toml", "--create", "--allow-system-disk", "--yes"),
        *("--out", tmp_path / "run"),
        cwd=tmp_path,
    )
    assert result.returncode in (0, 3), result.stderr
    found = json.loads((tmp_path / "run" / folder.OUTCOME).read_text())
    (restored,) = [item for phase in found["phases"] for item in phase.get("restores", ())]
    left_from = restored["log_left_from"]
    assert left_from > 1
    numbers = [
        int(path.stem[3:], 16)
        for path in (tmp_path / "disk/one").glob("E0*.log")
        if path.stem not in ("E00", "E00tmp")
    ]
    assert min(numbers) == left_from
    assert f"log before generation {left_from} deleted" in result.stderr
    # Nobody misses what is gone.
    log_check = json.loads((tmp_path / "run" / folder.LOG_CHECK).read_text())
    assert "missing" not in json.dumps(log_check)
    checked = plimsoll("verify", "--deep", tmp_path / "disk/one", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


def test_log_is_deleted_for_nothing_less_than_a_backup_of_open_databases() -> None:
    kept = {"kind": "backup", "to": "/somewhere/kept"}
    truncating = {"kind": "restore", "truncate_log": True}
    one = [{"name": "one", "database_size_mib": 64, "circular_log": False}]
    late = [{"kind": "prepare"}, kept, {"kind": "stop"}, truncating]
    assert "needs open databases" in mistakes(phase=late, instance=one)
    early = [{"kind": "prepare"}, kept, truncating, {"kind": "stop"}]
    assert "circular logging deletes log anyway" in mistakes(phase=early)
    assert plan_of_options(options(phase=early, instance=one)).run.phases[2].action.truncate_log
