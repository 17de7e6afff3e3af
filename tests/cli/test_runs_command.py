"""`plimsoll runs`: nothing that was run disappears from the list, whatever state its folder is
in.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import run_program
from plimsoll.files import folder

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Five folders: a good run, a better one of an earlier day, a damaged one, one that was killed,
    and something else.
    """
    for name in ("good", "better", "damaged"):
        shutil.copytree(GOLDEN, tmp_path / name)
    summary = folder.read_json(tmp_path / "better" / folder.SUMMARY)
    summary["total"]["database_iops"] = 1e6
    summary["window"]["start_utc"] = "2001-01-01T00:00:00+00:00"
    folder.write_json(tmp_path / "better" / folder.SUMMARY, summary)
    (tmp_path / "damaged" / folder.SUMMARY).write_text('{"total": ')
    (tmp_path / "killed").mkdir()
    shutil.copy(GOLDEN / folder.PLAN, tmp_path / "killed")
    folder.write_json(tmp_path / "killed" / folder.PROGRESS, {"process_id": 2**22 + 1})
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "notes.txt").write_text("x")
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run_program(["runs", *arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_every_run_is_listed_with_its_state(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """UI-02: Good, damaged and killed; what is no run is not in the list."""
    found = {entry["folder"]: entry for entry in listed(capsys, str(home))}
    assert set(found) == {"good", "better", "damaged", "killed"}
    assert found["good"]["storage"] == "/srv/array"
    assert found["good"]["database_iops"] > 0
    assert found["damaged"]["state"] == "broken"
    assert "summary.json cannot be read" in found["damaged"]["problem"]
    (home / "better" / folder.OUTCOME).write_text('{"ending": ')
    [broken] = [entry for entry in listed(capsys, str(home)) if entry["folder"] == "better"]
    assert broken["state"] == "broken" and "outcome.json cannot be read" in broken["problem"]
    assert (found["killed"]["state"], found["killed"]["problem"]) == (
        "killed",
        f"{home / 'killed'} was killed before it began; start it again",
    )


def test_what_a_resumed_run_has_put_aside_is_no_run_of_its_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was listed as killed, with the advice to resume it; that then passed as a run."""
    aside = home / "good" / "before-gap-1"
    shutil.copytree(home / "killed", aside)
    assert len(listed(capsys, str(home))) == 4
    assert run_program(["resume", str(aside)]) == 2
    assert f"the run itself is {home / 'good'}" in capsys.readouterr().err


def test_where_nothing_was_written_no_latency_is_listed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load of files writes no log; 0 ms looked like the best log of all."""
    summary = folder.read_json(home / "good" / folder.SUMMARY)
    nothing = {"count": 0, "latency_ms_mean": None, "latency_ms_mean_of_samples": 0.0}
    summary["total"]["log_write"] |= nothing
    folder.write_json(home / "good" / folder.SUMMARY, summary)
    found = {entry["folder"]: entry for entry in listed(capsys, str(home))}
    assert found["good"]["log_write_latency_ms_mean"] is None


def test_the_list_is_sorted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest or the most first; what has no such figure comes last either way."""
    assert [entry["folder"] for entry in listed(capsys, str(home))][:2] == ["good", "better"]
    by_iops = [entry["folder"] for entry in listed(capsys, str(home), "--sort", "iops")]
    assert by_iops[:2] == ["better", "good"]
    reverse = [
        entry["folder"] for entry in listed(capsys, str(home), "--sort", "iops", "--reverse")
    ]
    assert reverse[:2] == ["good", "better"]


def test_the_table_names_what_is_wrong(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the run it concerns."""
    assert run_program(["runs", str(home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (index,) = [index for index, line in enumerate(lines) if line.startswith("damaged")]
    assert "broken" in lines[index]
    assert "cannot be read" in lines[index + 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone"], "does not exist"),
        (["file"], "is a file"),
        ([".", "--sort", "iop"], "did you mean `iops`"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """A clear sentence and exit code 2."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    assert run_program(["runs", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_list_tells_rehearsals_from_qualifications(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pass of a minute and one of two hours looked alike."""
    verdict = folder.read_json(home / "better" / folder.VERDICT)
    folder.write_json(home / "better" / folder.VERDICT, verdict | {"qualifying": True})
    found = {entry["folder"]: entry["qualifying"] for entry in listed(capsys, str(home))}
    assert (found["good"], found["better"], found["killed"]) == (False, True, None)
    assert run_program(["runs", str(home), "--sort", "kind"]) == 0
    heading, first, second, *_ = capsys.readouterr().out.splitlines()
    assert heading.split().index("kind") == heading.split().index("result") + 1
    assert (
        "better" in first and "qualification" in first,
        "good" in second and "rehearsal" in second,
    ) == (True, True)
