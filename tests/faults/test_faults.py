"""What goes wrong at a user's site, as the user meets it.

The program started on the real thing, its exit code and its words.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.databases import ownership
from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from tests.support.places import PLIMSOLL, file_system, mounted, plimsoll

SHORT = ["--databases", "1", "--size-mib", "64", "--minutes", "0.03", "--cache-mib", "4"]


def performance(path: Path, *more: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return plimsoll(
        "test", "performance", path, *SHORT, *more, "--out", cwd / "run", "--yes", cwd=cwd
    )


def refused(result: subprocess.CompletedProcess[str], phrase: str) -> None:
    """A usage error: said on the error stream, nothing on the output, no traceback."""
    assert result.returncode == 2, result.stderr
    assert phrase in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    """The most common slip after a mistyped name."""
    (tmp_path / "file").write_text("mine")
    refused(performance(tmp_path / "file", cwd=tmp_path), "is a file; name a directory")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    """Nothing that is not ours is overwritten, whatever was agreed to."""
    (tmp_path / "disk/instance1").mkdir(parents=True)
    (tmp_path / "disk/instance1/thesis.txt").write_text("years of work")
    refused(performance(tmp_path / "disk", cwd=tmp_path), "was not made by Plimsoll")
    assert [path.name for path in (tmp_path / "disk").rglob("*") if path.is_file()] == [
        "thesis.txt"
    ]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where a run has been."""
    home = tmp_path_factory.mktemp("prepared")
    assert performance(home / "disk", cwd=home).returncode in (0, 1, 3)
    return home


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (["--edition", "2007"], "page_bytes (32768 there, 8192 in the plan)"),
        (["--seed", "7"], "seed of database001.edb"),
        (["--size-mib", "65"], "size_bytes of database001.edb"),
    ],
)
def test_an_existing_database_of_another_kind(
    prepared: Path, tmp_path: Path, change: list[str], phrase: str
) -> None:
    """Another page size, seed or size is another database.

    The message says what differs and how to go on.
    """
    before = (prepared / "disk/instance1/database001.edb").stat()
    result = performance(prepared / "disk", *change, cwd=tmp_path)
    refused(result, phrase)
    assert "plimsoll clean" in result.stderr
    assert (prepared / "disk/instance1/database001.edb").stat().st_mtime_ns == before.st_mtime_ns


def test_a_database_put_there_by_somebody_else(prepared: Path, tmp_path: Path) -> None:
    """The marker fits but the file was exchanged.

    Its own header tells, before a byte of it changes.
    """
    shutil.copytree(prepared / "disk", tmp_path / "disk")
    directory = tmp_path / "disk/instance1"
    marker = json.loads((directory / ownership.MARKER).read_text())
    target = {"name": "target", "path": str(tmp_path / "disk")}
    rows = [{"name": "instance1", "database_size_mib": 64}]
    wanted = plan_of_options({"target": [target], "instance": rows, "seed": 2}).plain()
    instance = wanted["run"]["instances"][0]
    marker["instance"] |= {"log_directory": instance["log_directory"]}
    marker["instance"]["databases"][0]["seed"] = instance["databases"][0]["seed"]
    (directory / ownership.MARKER).write_text(json.dumps(marker))
    content = (directory / "database001.edb").read_bytes()
    result = performance(tmp_path / "disk", "--seed", "2", cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert "another seed or by another program" in result.stderr
    assert (directory / "database001.edb").read_bytes() == content


@pytest.mark.parametrize("test", ["performance", "checksum"])
def test_databases_that_somebody_else_has_open(prepared: Path, tmp_path: Path, test: str) -> None:
    """Another program of the same machine; no storage is accused of it."""
    with (prepared / "disk/instance1/database001.edb").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        options = SHORT if test == "performance" else []
        result = plimsoll(
            "test",
            test,
            prepared / "disk",
            *options,
            "--out",
            tmp_path / "run",
            "--yes",
            cwd=tmp_path,
        )
    refused(result, "database001.edb is in use; stop the run that works with it first")
    assert (
        json.loads((prepared / "disk/instance1" / ownership.MARKER).read_text())["state"]
        == "closed"
    )


def test_a_read_only_file_system(tmp_path: Path) -> None:
    """Seen before anything is tried."""
    with file_system(tmp_path, 32, "ext4", "-o", "ro") as disk:
        refused(performance(disk / "here", cwd=tmp_path), "mounted read-only")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_directory_this_user_may_not_write(tmp_path: Path) -> None:
    """Most people test as themselves, on a directory that belongs to root."""
    program = (
        "import importlib.readers, os, sys\nimport plimsoll\nfrom plimsoll.cli import load, "
        "run_program\nload('test')\n"
        # Another user may be unable to read the interpreter's own files later.
        "for name in dir(plimsoll):\n    getattr(plimsoll, name)\n"
        "os.setuid(65534)\nsys.exit(run_program(sys.argv[1:]))\n"
    )
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    (tmp_path / "disk").mkdir(mode=0o755)
    command = [
        PLIMSOLL[0],
        "-c",
        program,
        "test",
        "performance",
        str(tmp_path / "disk"),
        *SHORT,
        "--dry-run",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    refused(result, "may not be written by this user")


def test_a_file_system_too_small_is_seen_before_filling_it(tmp_path: Path) -> None:
    """Filling somebody's file system to the brim helps nobody."""
    with file_system(tmp_path, 100) as disk:
        refused(performance(disk, cwd=tmp_path), "MiB free, but the run needs about")
        assert [path.name for path in disk.iterdir()] == ["lost+found"]


def test_a_dry_run_tells_what_it_would_take_also_where_it_does_not_fit(tmp_path: Path) -> None:
    """Who looks at a plan for a large array on a small machine wants to see it.

    The exit code still says that it cannot be run.
    """
    result = plimsoll(
        "test",
        "performance",
        tmp_path / "disk",
        "--size-mib",
        "60000000",
        "--dry-run",
        cwd=tmp_path,
    )
    assert result.returncode == 2
    assert (
        "60000000 MiB, to be prepared" in result.stdout
        and "share of the rated endurance" in result.stdout
    )
    assert "free space" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_fills_up_in_the_middle(tmp_path: Path) -> None:
    """A neighbour takes the space while we measure.

    The run ends with the reason and accuses nobody, databases closed, nothing torn.
    """
    with file_system(tmp_path, 420) as disk:
        command = [
            *PLIMSOLL,
            "test",
            "performance",
            str(disk / "here"),
            *SHORT,
            "--minutes",
            "2",
            "--cache-mib",
            "32",
            "--yes",
        ]
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "first")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(tmp_path / "first", "measure started")
        with (disk / "neighbour").open("wb") as file:
            free = os.statvfs(disk)
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - (1 << 20))
        output, errors = process.communicate(timeout=150)
        assert process.returncode == 3, errors
        assert "no space" in errors.lower()
        assert output.strip().startswith("Inconclusive"), output
        assert "faulty" not in output
        (disk / "neighbour").unlink()
        again = performance(disk / "here", cwd=tmp_path)
        assert again.returncode in (0, 1, 3), again.stderr
        assert "made again" not in again.stderr, "its databases are whole"


def test_direct_io_refused(tmp_path: Path) -> None:
    """A file system in memory: the run goes on with buffered I/O, and the result says that it
    measured memory.
    """
    with mounted("none", tmp_path / "disk", "-t", "tmpfs", "-o", "size=500m") as disk:
        result = performance(disk / "here", "--verbose", cwd=tmp_path)
        assert result.returncode in (0, 1, 3), result.stderr
        assert "memory" in result.stdout.split("not a qualification, because")[1]


def wait_for(run_folder: Path, seen: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    log = run_folder / folder.EVENTS
    while time.monotonic() < deadline:
        if log.exists() and seen in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"the run never said {seen}")


def test_a_device_that_disappears(tmp_path: Path) -> None:
    """A pulled drive: every transfer fails or reads nothing from now on.

    A failed run with its reason, no hang, no traceback.
    """
    with file_system(tmp_path, 420) as disk:
        command = [
            *PLIMSOLL,
            "test",
            "performance",
            str(disk / "here"),
            *SHORT,
            "--minutes",
            "2",
            "--yes",
        ]
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(tmp_path / "run", "measure started")
        time.sleep(0.5)
        os.truncate(tmp_path / "backing", 0)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 1, errors
        assert output.strip().startswith("Fail"), output
        assert "Traceback" not in errors
        kinds = [event["kind"] for event in folder.read_events(tmp_path / "run")]
        # Beyond its end the kernel reads the shortened file behind the device as zeros or refuses
        # to, as it happens.
        assert "io_error" in kinds or "damaged data" in output, (output, kinds)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_signals_while_preparing(tmp_path: Path, number: signal.Signals) -> None:
    """Preparing takes hours, so that is when people change their minds.

    What was begun goes, the next run starts afresh.
    """
    large = [
        "test",
        "performance",
        str(tmp_path / "disk"),
        "--databases",
        "1",
        "--size-mib",
        "1024",
        "--yes",
    ]
    command = [*PLIMSOLL, *large, "--max-mib-per-s", "64", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "run", "prepare started")
    time.sleep(0.5)
    begun = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 4, errors
    assert time.monotonic() - begun < 20
    assert json.loads((tmp_path / "run" / folder.OUTCOME).read_text())["ending"] == "interrupted"
    look = plimsoll(*large, "--dry-run", cwd=tmp_path)
    assert look.returncode == 0, look.stderr


def test_a_wrong_condition_comes_with_all_other_mistakes(tmp_path: Path) -> None:
    """Two rounds of correction for one command line are one too many."""
    for test in ("performance", "backup"):
        result = plimsoll(
            "test",
            test,
            tmp_path / "disk",
            "--databases",
            "1",
            "--edition",
            "2011",
            "--stop-if",
            "foo>3",
            cwd=tmp_path,
        )
        refused(result, "2 mistakes")
        assert "foo" in result.stderr and "2011" in result.stderr


def test_many_mistakes_in_one_plan(tmp_path: Path) -> None:
    """All at once, each with its line and what to write instead.

    What is missing is named with the line of its table.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'kind = "plan"\nschema_version = 1\ncolour = "red"\nmax_iops = -5\nstop_if = '
        '["db_reed>3"]\n'
        '[[target]]\nname = "disk"\n[[instance]]\nname = "one"\nedition = '
        '"2011"\ndatabase_size_mib = 1\n'
        '[[workload]]\nload = { sessions = 3, target_iops = 10 }\n[[phase]]\nkind = "measure"\n'
    )
    result = plimsoll("run", plan, cwd=tmp_path)
    assert result.returncode == 2
    found = [line for line in result.stderr.splitlines() if line.startswith(str(plan))]
    lines = {int(line.removeprefix(f"{plan}:").split(":")[0]): line for line in found}
    for line, phrase in [
        (3, "`colour` is not a key"),
        (4, "`max_iops`"),
        (5, "`stop_if[1]`"),
        (6, "`target[1].path` is missing"),
        (10, "2011"),
        (11, "`instance[1].database_size_mib`"),
        (12, "`workload[1].name` is missing"),
        (13, "`workload[1].load`"),
        (14, "`phase[1].duration_s` is missing"),
    ]:
        assert phrase in lines.get(line, ""), (line, phrase, result.stderr)
    assert result.stderr.count("hint:") >= len(found) - 1
