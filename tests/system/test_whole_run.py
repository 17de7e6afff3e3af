"""The main job end to end, in short: real files, the real door, the program as a user starts it."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll import _native
from plimsoll.files import folder

PLIMSOLL = [sys.executable, "-m", "plimsoll.cli"]
SHORT = ["--seconds", "3", "--size-mib", "256"]


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*PLIMSOLL, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo, once, with its databases kept."""
    home = tmp_path_factory.mktemp("demo")
    return home, run(
        "demo", home / "disk", *SHORT, "--keep", "--verbose", "--out", home / "run", cwd=home
    )


def content(home: Path, name: str) -> Any:
    return json.loads((home / "run" / name).read_text())


def test_the_demo_ends_well_and_says_where_everything_is(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """The first thing a new user sees."""
    home, result = demo
    assert result.returncode == 0, result.stderr
    verdict = content(home, folder.VERDICT)
    assert verdict["headline"] in result.stdout
    assert "rehearsal" in verdict["headline"].lower()
    assert all(check["reason"] in result.stdout for check in verdict["checks"])
    assert f"run folder: {home / 'run'}" in result.stdout


def test_the_run_folder_is_complete(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Every later stage is redone from these files alone."""
    home, _ = demo
    names = {path.name for path in (home / "run").iterdir()}
    assert names == {
        "plan.json",
        "environment.json",
        "events.log",
        "samples.parquet",
        "histograms.parquet",
        "kernel-log.json",
        "device-errors.json",
        "log-check.json",
        "outcome.json",
        "content.json",
        "counters.parquet",
        "summary.json",
        "verdict.json",
        "report.html",
    }
    for name in names:
        if name.endswith(".json"):
            assert content(home, name)["schema_version"] == (2 if name == "verdict.json" else 1), (
                name
            )
    events = folder.read_events(home / "run")
    kinds = [event["kind"] for event in events]
    assert kinds.count("phase_started") == kinds.count("phase_ended") == 5
    times = [event["time_ns"] for event in events]
    assert times == sorted(times)


def test_JST_16_a_run_says_what_made_it_on_what_and_when(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """Two results can be compared only by those who know the versions, the machine and the window
    of both.
    """
    home, _ = demo
    environment, summary = content(home, "environment.json"), content(home, "summary.json")
    assert environment["plimsoll"] == importlib.metadata.version("plimsoll")
    assert environment["machine"]["host_name"] == os.uname().nodename
    assert environment["operating_system"]["kernel"] == os.uname().release
    assert content(home, "outcome.json")["io_method"] in {"io_uring", "libaio", "threads"}
    window = summary["window"]
    start, end = (datetime.fromisoformat(window[name]) for name in ("start_utc", "end_utc"))
    assert (end - start).total_seconds() == pytest.approx(window["seconds"], abs=0.01)
    assert datetime.fromisoformat(environment["collected_utc"]) < start < end < datetime.now(UTC)


def test_samples_have_the_columns_of_the_dictionary(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """Names in files, not codes; one row for each metric in every interval."""
    home, _ = demo
    samples = str(home / "run" / folder.SAMPLES)
    described = duckdb.sql(f"DESCRIBE SELECT * FROM '{samples}'").fetchall()
    assert [row[0] for row in described] == [name for name, _, _, _ in _native.columns()]
    query = (
        f"SELECT instance, database, count(*), count(DISTINCT end_ns), sum(count) FROM '{samples}'"
    )
    rows = duckdb.sql(
        f"{query} WHERE phase = 'measure' AND metric = 'database_read' GROUP BY ALL HAVING "
        f"sum(count) > 0"
    ).fetchall()
    assert [(row[0], row[1]) for row in sorted(rows)] == [("instance1", 1), ("instance2", 1)]
    assert all(row[2] == row[3] >= 3 and row[4] > 0 for row in rows)


def test_the_summary_is_the_samples(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Two ways to the same number: a sum over samples here, the summary there."""
    home, _ = demo
    total = content(home, folder.SUMMARY)["total"]
    samples = home / "run" / folder.SAMPLES
    count, latency_ns = duckdb.sql(
        f"SELECT sum(count), sum(latency_ns_sum) FROM '{samples}' WHERE phase = 'measure' AND "
        f"metric = 'log_write'"
    ).fetchall()[0]
    assert total["log_write"]["count"] == count
    assert total["log_write"]["latency_ms_mean"] == pytest.approx(
        float(latency_ns) / float(count) / 1e6
    )


def test_a_report_can_be_written_again_without_the_disk(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """Each stage is redone from files and gives the same again."""
    home, _ = demo
    before = {name: content(home, name) for name in (folder.SUMMARY, folder.VERDICT)}
    (home / "run" / folder.REPORT).unlink()
    result = run("report", home / "run", cwd=home)
    assert result.returncode in (0, 1, 3), result.stderr
    assert {name: content(home, name) for name in before} == before
    assert (home / "run" / folder.REPORT).stat().st_size > 100_000


def test_kept_databases_are_used_again_and_cleaned_on_demand(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """JST-08: Keep, reuse, clean: the life of a database."""
    home, _ = demo
    again = run("demo", home / "disk", *SHORT, "--keep", "--out", home / "again", cwd=home)
    assert again.returncode == 0, again.stderr
    assert "instance1, instance2 reused" in again.stderr
    assert run("clean", home / "disk", "--yes", cwd=home).returncode == 0
    assert list((home / "disk").iterdir()) == []
    assert run("clean", home / "disk", "--yes", cwd=home).returncode == 2


def test_the_demo_removes_its_databases(tmp_path: Path) -> None:
    """Two gigabytes left behind would be rude."""
    result = run("demo", tmp_path / "disk", *SHORT, "--out", tmp_path / "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "disk").exists()


def test_nohup_keeps_a_run_alive_when_the_terminal_goes_away(tmp_path: Path) -> None:
    """Long tests are begun over a connection that is closed for the night."""
    arguments = [
        "test",
        "performance",
        str(tmp_path / "disk"),
        "--size-mib",
        "64",
        "--backend",
        "raw_files",
        "--yes",
    ]
    command = ["nohup", *PLIMSOLL, *arguments, "--minutes", "10", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    log = tmp_path / "run" / folder.EVENTS
    while time.monotonic() < deadline and not (
        log.exists() and "measure started" in log.read_text()
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 4
    assert content(tmp_path, folder.OUTCOME)["ending"] == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_and_keeps_the_partial_run(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Closing the terminal must not leave torn databases or lose what was measured."""
    arguments = [
        "test",
        "performance",
        str(tmp_path / "disk"),
        "--size-mib",
        "64",
        "--backend",
        "raw_files",
        "--yes",
    ]
    command = [*PLIMSOLL, *arguments, "--minutes", "10", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    log = tmp_path / "run" / folder.EVENTS
    while time.monotonic() < deadline and not (
        log.exists() and "measure started" in log.read_text()
    ):
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 4, errors
    outcome = content(tmp_path, folder.OUTCOME)
    assert outcome["ending"] == "interrupted"
    assert outcome["phases"][-1]["kind"] == "stop"
    assert outcome["phases"][-1]["complete"]
    assert content(tmp_path, folder.VERDICT)["result"] == "inconclusive"
    assert "Inconclusive" in output
    assert (tmp_path / "run" / folder.REPORT).exists()
    assert (
        json.loads((tmp_path / "disk/instance1/plimsoll-instance.json").read_text())["state"]
        == "closed"
    )


def test_a_bad_plan_is_a_usage_error_with_lines(tmp_path: Path) -> None:
    """Exit code 2 tells a script that nothing was tested."""
    plan = tmp_path / "plan.toml"
    plan.write_text('kind = "plan"\nschema_version = 1\nsurprise = 1\n')
    result = run("run", plan, cwd=tmp_path)
    assert result.returncode == 2
    assert f"{plan}:3" in result.stderr
    assert "target" in result.stderr


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """It shows files, space, bytes, endurance and time; with --json the whole completed plan."""
    command = [
        "test",
        "performance",
        tmp_path / "disk",
        "--dry-run",
        "--minutes",
        "3",
        "--size-mib",
        "4096",
    ]
    shown = run(*command, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for phrase in (
        f"{tmp_path}/disk/instance2/database001.edb  4096 MiB, to be prepared",
        "MiB needed with room for growth",
        "8,192 MiB for certain",
        "target: unknown",
        "measure     exactly 3 min 0 s",
        "total       about 4 min",
    ):
        assert phrase in shown.stdout, shown.stdout
    result = run(*command, "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["run"]["phases"][2]["action"]["duration_s"] == 180
    assert list(tmp_path.iterdir()) == []


def test_a_long_run_needs_a_yes(tmp_path: Path) -> None:
    """Nobody should fill a shared array for two hours by a typing mistake."""
    result = run("test", "performance", tmp_path / "disk", cwd=tmp_path)
    assert result.returncode == 2
    assert "--yes" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_memory_is_tested_only_with_a_warning(tmp_path: Path) -> None:
    """A pass measured in memory must say so wherever it is read."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1200m", "none", str(disk)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        result = run("demo", disk, *SHORT, "--verbose", "--out", tmp_path / "run", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "memory" in result.stderr
        assert "memory" in result.stdout.split("not a qualification, because")[1]
        too_large = run("demo", disk, "--size-mib", "1024", cwd=tmp_path)
        assert too_large.returncode == 2
        assert "MiB free" in too_large.stderr
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_probe_never_writes(tmp_path: Path) -> None:
    """It may be pointed at anything."""
    result = run("probe", tmp_path / "not" / "there", "--json", cwd=tmp_path)
    assert result.returncode == 0
    facts = json.loads(result.stdout)
    assert facts["file_system"]["free_bytes"] > 0
    assert facts["file_system"]["mount_point"].startswith("/")
    assert list(tmp_path.iterdir()) == []
