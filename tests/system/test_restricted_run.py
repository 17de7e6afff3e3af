"""The program under a container's restrictions, as far as this machine can make them, and how it
stops.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.files import folder

ROOT = Path(__file__).parents[2]
MATURIN = ROOT / ".tools" / "bin" / "maturin"
USER = 65532
STOP_S_MAX = 30

#: A namespace of its own in which everything is read-only but two volumes and /tmp, and nobody is
#: root. Root's home is replaced by an empty one that shows the interpreter, where that lives there.
RESTRICTED = r"""
set -e
work=$1 home=$2 interpreter=$3; shift 3
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/site /mnt/data /mnt/runs /mnt/tmp /mnt/interpreter
mount --bind "$work/site" /mnt/site; mount --bind "$work/data" /mnt/data; mount --bind "$work/runs" /mnt/runs
mount -t tmpfs -o mode=1777 tmpfs /mnt/tmp
case $interpreter in "$home"/*)
  mount --bind "$interpreter" /mnt/interpreter
  mount -t tmpfs -o mode=755 tmpfs "$home"
  mkdir -p "$interpreter"
  mount --bind /mnt/interpreter "$interpreter"
esac
mount -o remount,bind,ro /
mount -o remount,bind,ro /mnt/site
cd /mnt/runs
exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  env -i PATH=/usr/bin:/bin HOME=/mnt/tmp TMPDIR=/mnt/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/mnt/site "$@"
"""  # noqa: E501
PROGRAM = [sys.executable, "-c", "from plimsoll.cli import main; main()"]


def plan_text(target: str, seconds: int) -> str:
    return (
        f'kind = "plan"\nschema_version = 1\nname = "contained"\n[[target]]\nname = "volume"\npath '
        f'= "{target}"\n'
        '[[instance]]\nname = "one"\ndatabase_size_mib = 64\ncache_mib_max = 8\ndatabases = 2\n'
        f'[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "measure"\nduration_s = {seconds}\n'
        '[[phase]]\nkind = "stop"\n[[phase]]\nkind = "checksum"\n'
    )


def wait_for(path: Path, words: str, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and words in path.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{words} was never said; the process ended with {process.poll()}")


def test_SIGTERM_ends_a_run_within_thirty_seconds(tmp_path: Path) -> None:
    """A cluster kills what has not ended by then.

    Databases are closed, the folder is judged, and the exit code says why.
    """
    (tmp_path / "plan.toml").write_text(plan_text(str(tmp_path / "db"), 600))
    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "run",
        "plan.toml",
        "--yes",
        "--quiet",
        "--out",
        "out",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_for(tmp_path / "out" / folder.EVENTS, "measure started", run)
        time.sleep(2)
        began = time.monotonic()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=STOP_S_MAX)
        assert time.monotonic() - began < STOP_S_MAX
        assert run.returncode == 4
    outcome = json.loads((tmp_path / "out" / folder.OUTCOME).read_text())
    assert outcome["ending"] == "interrupted"
    assert (tmp_path / "out" / folder.VERDICT).is_file()
    marker = json.loads((tmp_path / "db" / "one" / "plimsoll-instance.json").read_text())
    assert marker["state"] == "closed"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content and the packages it needs, in one folder that anybody may read."""
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("unshare", "setpriv", "mount")):
        pytest.skip("a namespace with a read-only root needs root, unshare and setpriv")
    if not MATURIN.exists():
        pytest.skip("maturin is not installed; `make setup` installs it")
    home = tmp_path_factory.mktemp("container")
    command = [
        str(MATURIN),
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--out",
        str(home / "dist"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    (wheel,) = (home / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home / "site")
    for name in ("data", "runs"):
        (home / name).mkdir()
        os.chown(home / name, USER, USER)
    return home


def restricted(home: Path, *words: str) -> Sequence[str]:
    namespace = ["unshare", "--mount", "--propagation", "private"]
    places = [str(home), str(Path.home()), sys.base_prefix]
    return [*namespace, "bash", "-c", RESTRICTED, "contained", *places, *words]


@pytest.mark.slow
@pytest.mark.wheel
def test_the_wheel_runs_with_a_read_only_root_and_without_any_right(site: Path) -> None:
    """No root, no capability, no new privileges, nothing writable but the two volumes and /tmp.

    A whole run, judged.
    """
    probe = (
        "import os; print(os.geteuid(), os.access('/etc', os.W_OK), os.access('/mnt/site', "
        "os.W_OK), os.access('/mnt/data', os.W_OK))"
    )
    seen = subprocess.run(
        restricted(site, sys.executable, "-c", probe), capture_output=True, text=True, check=False
    )
    if seen.returncode != 0:
        pytest.skip(f"no such namespace is possible here: {seen.stderr.strip()}")
    assert seen.stdout.split() == [str(USER), "False", "False", "True"]
    (site / "runs" / "plan.toml").write_text(plan_text("/mnt/data", 3))
    command = restricted(
        site,
        *PROGRAM,
        "run",
        "/mnt/runs/plan.toml",
        "--yes",
        "--quiet",
        "--out",
        "/mnt/runs/result",
    )
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert result.returncode in (0, 1, 3), result.stderr
    outcome = json.loads((site / "runs" / "result" / folder.OUTCOME).read_text())
    assert outcome["ending"] == "complete"
    assert (site / "runs" / "result" / folder.REPORT).stat().st_uid == USER
    assert (site / "data" / "one" / "database001.edb").is_file()
    shutil.rmtree(site / "data" / "one")


@pytest.mark.slow
@pytest.mark.wheel
def test_it_stops_in_peace_there_too(site: Path) -> None:
    """The signal reaches the program, not a shell before it, and thirty seconds are enough without
    any right.
    """
    (site / "runs" / "plan.toml").write_text(plan_text("/mnt/data", 600))
    command = restricted(
        site,
        *PROGRAM,
        "run",
        "/mnt/runs/plan.toml",
        "--yes",
        "--quiet",
        "--out",
        "/mnt/runs/stopped",
    )
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_for(site / "runs" / "stopped" / folder.EVENTS, "measure started", run)
        began = time.monotonic()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=STOP_S_MAX)
        assert time.monotonic() - began < STOP_S_MAX
        assert run.returncode == 4
    assert (
        json.loads((site / "runs" / "stopped" / folder.OUTCOME).read_text())["ending"]
        == "interrupted"
    )
    shutil.rmtree(site / "data" / "one")
