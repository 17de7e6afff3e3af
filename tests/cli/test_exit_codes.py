"""How a command ended, for scripts.

0 pass, 1 fail, 2 usage or bad plan, 3 inconclusive, 4 interrupted, 5 internal error.
"""

import errno
import io
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer

from plimsoll import Result, cli, exit_codes, verdict
from plimsoll.cli import run_program
from plimsoll.databases.ownership import CLOSED, MARKER, MARKER_KIND
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.documents.verdict import Verdict
from plimsoll.files import folder
from tests.support.plain_stages import filled, outcome_of

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


def planted(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    """The exit code of a command that ends so."""

    def command() -> None:
        if error is not None:
            raise error

    monkeypatch.setitem(cli.COMMANDS, "planted", cli.Row("planted:command", "Planted."))
    monkeypatch.setattr(
        cli, "import_module", lambda _: type("Planted", (), {"command": staticmethod(command)})
    )
    return run_program(["planted"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (typer.Exit(3), 3),
        (typer.BadParameter("no such thing"), 2),
        (typer.Abort(), 4),
        (KeyboardInterrupt(), 4),
        (RuntimeError("boom"), 5),
        (KeyError("boom"), 5),
        (OSError(errno.EMFILE, "Too many open files"), 5),
        (PermissionError(errno.EACCES, "Permission denied", "/secret/run"), 2),
    ],
)
def test_whatever_happens_has_its_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None, code: int
) -> None:
    """A broken program must never look like a failed disk (1) or, worse, a passed one (0)."""
    assert planted(monkeypatch, error) == code


def test_an_internal_error_says_whose_fault_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody should send an array back because of our bug."""
    planted(monkeypatch, RuntimeError("boom"))
    errors = capsys.readouterr().err
    assert "a fault of Plimsoll" in errors
    assert "RuntimeError: boom" in errors
    assert "Traceback" in errors


DISK = {"family": "disk", "text": "gone"}
CONFIG = {"family": "config", "text": "other database"}
OTHER = {"family": "other", "text": "cache not warm"}
STOPPED = {"family": "stopped", "text": "stopped"}


@pytest.mark.parametrize(
    ("ending", "error", "phases", "result", "code"),
    [
        ("complete", None, {"prepare": True}, verdict.PASS, 0),
        ("complete", None, {"prepare": True}, verdict.FAIL, 1),
        ("failed", DISK, {"prepare": False}, verdict.FAIL, 1),
        ("failed", CONFIG, {}, verdict.INCONCLUSIVE, 2),
        ("failed", CONFIG, {"prepare": False, "stop": True}, verdict.INCONCLUSIVE, 2),
        # The disk under test became full while it was measured.
        ("failed", CONFIG, {"prepare": True, "measure": False}, verdict.INCONCLUSIVE, 3),
        ("failed", CONFIG, {"prepare": True, "measure": False}, verdict.FAIL, 1),
        ("failed", OTHER, {"prepare": True}, verdict.INCONCLUSIVE, 3),
        ("interrupted", STOPPED, {"prepare": True}, verdict.INCONCLUSIVE, 4),
        ("interrupted", STOPPED, {"prepare": True}, verdict.FAIL, 4),
    ],
)
def test_the_ending_of_a_run_has_its_code(
    tmp_path: Path,
    ending: str,
    error: dict[str, Any] | None,
    phases: dict[str, bool],
    result: str,
    code: int,
) -> None:
    """The mapping as documented, each line of it.

    A run that was measured and judged ended as if its plan had been wrong.
    """
    judged = Verdict.from_plain(filled(Verdict, {"result": result}))
    carried_out = [
        filled(PhaseOutcome, {"name": kind, "kind": kind, "complete": complete})
        for kind, complete in phases.items()
    ]
    outcome = outcome_of({"ending": ending, "error": error, "phases": carried_out})
    assert Result(tmp_path, judged, outcome).exit_code == code


def test_mistakes_in_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """The library's own exit code for usage errors is kept, and its message shown."""
    assert run_program(["probe"]) == 2
    assert "Missing argument" in capsys.readouterr().err
    assert run_program(["test", "performance", "/x", "--minutes", "many"]) == 2
    assert "many" in capsys.readouterr().err
    assert run_program(["--version"]) == 0


def test_a_question_nobody_answers_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a script there is nobody to ask: nothing is deleted, and the way to agree is named."""
    marker = {
        "kind": MARKER_KIND,
        "state": CLOSED,
        "instance": {"databases": [], "log_directory": str(tmp_path / "one")},
    }
    (tmp_path / "one").mkdir()
    folder.write_json(tmp_path / "one" / MARKER, marker)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run_program(["clean", str(tmp_path)]) == exit_codes.USAGE
    assert "give --yes to agree" in capsys.readouterr().err
    assert (tmp_path / "one" / MARKER).exists()
    assert run_program(["clean", str(tmp_path), "--yes"]) == 0
    assert not (tmp_path / "one").exists()


def test_a_file_of_any_name_may_be_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever names the wrong file must not be told that a folder is in the way."""
    (tmp_path / "notes.txt").write_text("hello")
    assert run_program(["unpack", str(tmp_path / "notes.txt")]) == exit_codes.USAGE
    assert "is no whole archive of `plimsoll pack`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "advise",
        "audit --witness-log x",
        "clean",
        "combine",
        "compare x",
        "cost",
        "edb ls",
        "esrp",
        "export",
        "import",
        "pack",
        "prepare",
        "report",
        "run",
        "runs",
        "select",
        "size",
        "status",
        "study",
        "unpack",
        "verify",
        "watch",
    ],
)
def test_a_name_longer_than_names_may_be_is_refused_in_words(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by fuzzing a description of runs.

    The system refuses such a name before anybody can ask whether there is such a file.
    """
    named = str(tmp_path / (300 * "9"))
    assert run_program([*command.split(), named]) == exit_codes.USAGE
    errors = capsys.readouterr().err
    assert "too long" in errors or "longer" in errors, errors
    assert "Traceback" not in errors


def test_a_full_output_is_no_fault_of_ours() -> None:
    """`plimsoll verify ... > file` on a full disk."""
    command = [sys.executable, "-m", "plimsoll.cli", "explain"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, "no space left" in ended.stderr) == (2, True), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_of_results_is_not_taken_from_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other programs have a plan.json too, and a run that goes on still writes into its folder."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "plan.json").write_text('{"terraform": 1}')
    (theirs / "report.html").write_text("theirs")
    with pytest.raises(folder.FolderError, match="holds no run"):
        folder.new_folder("mine", theirs)
    assert (theirs / "report.html").read_text() == "theirs"
    running = shutil.copytree(GOLDEN, tmp_path / "running")
    sleeper = subprocess.Popen(["sh", "-c", "sleep 60; : plimsoll"])
    try:
        folder.write_json(running / folder.PROGRESS, {"process_id": sleeper.pid})
        command = Path(f"/proc/{sleeper.pid}/cmdline")
        while (
            b"plimsoll" not in command.read_bytes()
        ):  # the kernel has not yet put its new words there
            time.sleep(0.01)
        with pytest.raises(folder.FolderError, match="goes on"):
            folder.new_folder("mine", running)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert (running / folder.SAMPLES).exists()
    before = sorted(path.name for path in running.iterdir())
    with pytest.raises(
        folder.FolderError,
        match="holds an earlier run; name another folder, nothing is overwritten",
    ):
        folder.new_folder("mine", running)
    assert sorted(path.name for path in running.iterdir()) == before
    (running / "before-gap-1").mkdir()
    (running / "notes.txt").write_text("mine")
    folder.clear_unfinished(running)
    assert sorted(path.name for path in running.iterdir()) == [
        "notes.txt",
        "report-without-scripts.html",
    ]
