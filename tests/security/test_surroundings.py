"""Surroundings that do harm while a run goes on.

Each is said in plain words, and no database is lost to it.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from plimsoll.files import folder
from plimsoll.plan.complete import read_plan
from tests.support.harm import (
    ENDED,
    PLIMSOLL,
    SHORT,
    clock_that_steps_back,
    file_system,
    forbid_io_uring,
    frozen,
    mounted,
    plimsoll,
    wait_for,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


def begin(
    disk: Path, run: Path, *more: str, minutes: str = "0.5", **how: object
) -> "subprocess.Popen[str]":
    command = [
        *PLIMSOLL,
        "test",
        "performance",
        str(disk),
        *SHORT,
        "--minutes",
        minutes,
        "--yes",
        "--out",
        str(run),
        *more,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )  # type: ignore[call-overload, no-any-return]


def limited(disk: Path, run: Path, before: object) -> "subprocess.CompletedProcess[str]":
    """The shortest run, with `before` done to its process."""
    command = [
        *PLIMSOLL,
        "test",
        "performance",
        str(disk),
        *SHORT,
        "--yes",
        "--quiet",
        "--out",
        str(run),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=200, preexec_fn=before
    )  # type: ignore[call-overload, no-any-return]


def outcome_of(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / folder.OUTCOME).read_text())
    return found


def test_a_run_folder_on_a_full_disk(tmp_path: Path) -> None:
    """Results go to a small root disk more often than not.

    The run ends, says why, and its databases are closed and used again.
    """
    with mounted("none", tmp_path / "results", "-t", "tmpfs", "-o", "size=2m") as results:
        process = begin(tmp_path / "disk", results / "run")
        wait_for(results / "run" / folder.EVENTS, "measure started")
        with (
            pytest.raises(OSError, match="No space"),
            (results / "neighbour").open("wb", buffering=0) as file,
        ):
            while True:
                file.write(bytes(4096))
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2, errors
        assert "cannot be written: no space left on device" in errors
        assert "Traceback" not in errors
    marker = json.loads((tmp_path / "disk/instance1/plimsoll-instance.json").read_text())
    assert marker["state"] == "closed", "the databases were closed all the same"


def test_a_run_folder_on_a_read_only_mount(tmp_path: Path) -> None:
    """Said before anything is prepared."""
    with mounted("none", tmp_path / "results", "-t", "tmpfs", "-o", "size=1m,ro") as results:
        result = plimsoll(
            "test",
            "performance",
            tmp_path / "disk",
            *SHORT,
            "--yes",
            "--out",
            results / "run",
            cwd=tmp_path,
        )
    assert result.returncode == 2, result.stderr
    assert "read-only file system" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "disk").exists()


def test_a_clock_that_steps_back(tmp_path: Path) -> None:
    """Time servers correct clocks in the middle of runs.

    Durations and rates come from a clock that cannot go back.
    """
    stepped = tmp_path / "stepped"
    environment = clock_that_steps_back(tmp_path, stepped)
    process = begin(tmp_path / "disk", tmp_path / "run", minutes="0.1", env=environment)
    # In the middle of the measured time, however long the machine took to get there.
    wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
    stepped.touch()
    output, errors = process.communicate(timeout=200)
    assert process.returncode in ENDED, errors
    outcome = json.loads((tmp_path / "run" / folder.OUTCOME).read_text())
    anchors = outcome["anchors"]
    assert anchors[-1]["utc_ns"] < anchors[0]["utc_ns"], (
        "or the clock did not go back and this test shows nothing"
    )
    assert [anchor["monotonic_ns"] for anchor in anchors] == sorted(
        anchor["monotonic_ns"] for anchor in anchors
    )
    (measure,) = [phase for phase in outcome["phases"] if phase["kind"] == "measure"]
    assert 5 < (measure["end_ns"] - measure["start_ns"]) / 1e9 < 60
    assert "Traceback" not in errors
    assert (tmp_path / "run" / folder.VERDICT).exists(), output


def test_io_uring_forbidden(tmp_path: Path) -> None:
    """Most containers forbid it. The run falls back to another way, and the result says so."""
    result = limited(tmp_path / "disk", tmp_path / "run", forbid_io_uring)
    assert result.returncode in ENDED, result.stderr
    outcome = outcome_of(tmp_path / "run")
    assert outcome["io_method"] in ("libaio", "threads")
    assert any("io_uring" in str(remark) for remark in outcome["io_remarks"])  # type: ignore[attr-defined]


def low_limits() -> None:
    """For a child between fork and exec: no lockable memory and few descriptors."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_low_limits(tmp_path: Path) -> None:
    """64 KiB of lockable memory and few descriptors are what old distributions give a user."""
    result = limited(tmp_path / "disk", tmp_path / "run", low_limits)
    assert result.returncode in ENDED, result.stderr
    assert outcome_of(tmp_path / "run")["ending"] == "complete"


def test_too_few_descriptors(tmp_path: Path) -> None:
    """The storage must not be called faulty for want of descriptors in the middle of a run.

    It is said before anything is made.
    """
    few = (12, 12)
    result = limited(
        tmp_path / "disk", tmp_path / "run", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few)
    )
    assert result.returncode == 2, result.stderr
    assert "this process may hold 12 files open" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_low_limit_that_may_be_raised_is_raised(tmp_path: Path) -> None:
    """Many distributions give 1024 and allow far more; many databases need that."""
    raisable = (12, 200)
    result = limited(
        tmp_path / "disk",
        tmp_path / "run",
        lambda: resource.setrlimit(resource.RLIMIT_NOFILE, raisable),
    )
    assert result.returncode in ENDED, result.stderr
    assert outcome_of(tmp_path / "run")["ending"] == "complete"


def test_address_space_that_is_limited(tmp_path: Path) -> None:
    """What draws charts reserves more than any machine has, and ends its process where it may not.
    The verdict must not go with it.
    """
    run, space = tmp_path / "run", (3 << 30, 3 << 30)
    shutil.copytree(GOLDEN, run)
    (run / folder.VERDICT).unlink()
    result = subprocess.run(
        [*PLIMSOLL, "report", str(run)],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, space),
    )
    assert result.returncode in ENDED, result.stderr
    assert "no report.html was written" in result.stderr
    assert "ulimit -v" in result.stderr
    assert (run / folder.VERDICT).exists()


def test_names_with_spaces_and_quotes(tmp_path: Path) -> None:
    """Paths meet a database engine, a shell and a page on their way.

    Each would trip over another of these characters.
    """
    disk = tmp_path / 'my disk\'s "best" <volume>'
    result = plimsoll(
        "test",
        "performance",
        disk,
        *SHORT,
        "--yes",
        "--quiet",
        "--out",
        tmp_path / 'a run\'s "folder"',
        cwd=tmp_path,
    )
    assert result.returncode in ENDED, result.stderr
    run = tmp_path / 'a run\'s "folder"'
    assert (run / folder.SAMPLES).exists()
    assert "<volume>" not in (run / folder.REPORT).read_text()


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A plan is text and cannot hold such a name.

    It is refused in words before anything is made, not met as a crash later.
    """
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    for arguments in (
        [odd, "--out", str(tmp_path / "run")],
        [str(tmp_path / "disk"), "--out", odd],
    ):
        result = plimsoll(
            "test", "performance", *SHORT, "--yes", "--quiet", *arguments, cwd=tmp_path
        )
        assert result.returncode == 2, result.stderr
        assert "caf\\xe9" in result.stderr.lower()
        assert "is not valid UTF-8" in result.stderr
        assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_runs_on_the_same_databases(tmp_path: Path) -> None:
    """The second must not touch what the first one works on, and the first must not notice."""
    first = begin(tmp_path / "disk", tmp_path / "first", minutes="0.2")
    try:
        wait_for(tmp_path / "first" / folder.EVENTS, "measure started")
        second = plimsoll(
            "test",
            "performance",
            tmp_path / "disk",
            *SHORT,
            "--yes",
            "--quiet",
            "--out",
            tmp_path / "second",
            cwd=tmp_path,
        )
        assert second.returncode in (1, 2), second.stderr
        said = second.stderr + second.stdout
        assert "in use" in said or "locked" in said, said
        assert "Traceback" not in said
    finally:
        _, errors = first.communicate(timeout=120)
    assert first.returncode in ENDED, errors
    assert outcome_of(tmp_path / "first")["ending"] == "complete"


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A place where a run has been, and a file of somebody else's beside it."""
    result = plimsoll(
        "test",
        "performance",
        tmp_path / "disk",
        *SHORT,
        "--yes",
        "--quiet",
        "--out",
        tmp_path / "run",
        cwd=tmp_path,
    )
    assert result.returncode in ENDED, result.stderr
    (tmp_path / "thesis").write_bytes(b"years of work" * 10_000)
    return tmp_path / "disk/instance1"


def test_links_in_the_database_folder(used: Path, tmp_path: Path) -> None:
    """Whoever can put a link into a shared folder must not make a run of somebody else's write
    where it leads.
    """
    thesis = tmp_path / "thesis"
    before = thesis.read_bytes()
    for name in ("database001.edb", "E00.log", "plimsoll-instance.json.part"):
        kept = tmp_path / "kept"
        if (used / name).exists():
            (used / name).rename(kept)
        (used / name).symlink_to(thesis)
        result = plimsoll(
            "test",
            "performance",
            tmp_path / "disk",
            *SHORT,
            "--yes",
            "--quiet",
            "--out",
            tmp_path / "again",
            cwd=tmp_path,
        )
        assert result.returncode == 2, result.stderr
        assert "symbolic links" in result.stderr
        (used / name).unlink()
        if kept.exists():
            kept.rename(used / name)
    assert thesis.read_bytes() == before


def test_a_database_folder_that_is_a_link(tmp_path: Path) -> None:
    """The folder of an instance leads out of the storage that was named."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/instance1").symlink_to(tmp_path / "elsewhere")
    result = plimsoll(
        "test",
        "performance",
        tmp_path / "disk",
        *SHORT,
        "--yes",
        "--quiet",
        "--out",
        tmp_path / "run",
        cwd=tmp_path,
    )
    assert result.returncode == 2, result.stderr
    assert "symbolic link" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


FROZEN_PLAN = """
kind = "plan"
schema_version = 1
hung_after_ms = 1500
io_method = "{method}"
[[target]]
name = "disk"
path = "{path}"
[[instance]]
name = "one"
database_size_mib = 64
cache_mib_max = 4
[[workload]]
name = "mix"
load = {{ sessions = 3 }}
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "stop"
"""


def test_a_hung_io_is_told_after_half_a_minute(tmp_path: Path) -> None:
    """What is promised to those who say nothing of it."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        FROZEN_PLAN.format(method="auto", path=tmp_path, seconds=2).replace(
            "hung_after_ms = 1500\n", ""
        )
    )
    assert read_plan(plan).run.hung_after_ms == 30_000


@pytest.mark.slow
@pytest.mark.parametrize("method", ["io_uring", "libaio", "threads"])
def test_an_io_that_never_returns(method: str, tmp_path: Path) -> None:
    """A path that hangs is what people test storage for.

    It is said, and Ctrl-C gives them the run folder while it still hangs.

    The process itself stays until the kernel gives its I/O back; nothing a program does can change
    that."""
    with file_system(tmp_path, 420) as disk:
        plan = tmp_path / "plan.toml"
        plan.write_text(FROZEN_PLAN.format(method=method, path=disk / "here", seconds=600))
        run = tmp_path / "run"
        command = [*PLIMSOLL, "run", str(plan), "--yes", "--out", str(run)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            wait_for(run / folder.EVENTS, "measure started")
            with frozen(disk):
                wait_for(run / folder.EVENTS, "for more than 1500 ms", seconds=30)
                process.send_signal(signal.SIGINT)
                wait_for(run / folder.REPORT, "</html>", seconds=90)
                assert "result" in (run / folder.VERDICT).read_text()
                assert (run / folder.SAMPLES).exists()
                assert outcome_of(run)["ending"] == "interrupted"
        finally:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 4, errors
        assert "the next run recovers" in (run / folder.EVENTS).read_text() + str(
            outcome_of(run)["error"]
        )
        plan.write_text(FROZEN_PLAN.format(method=method, path=disk / "here", seconds=2))
        again = plimsoll("run", plan, "--yes", "--quiet", "--out", tmp_path / "again", cwd=tmp_path)
        assert again.returncode in ENDED, again.stderr
        assert "it will be recovered from its log" in again.stderr
