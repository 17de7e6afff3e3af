"""Directories that are not ours are never touched, and databases are only used again when they are the ones wanted."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll import premises
from plimsoll.folder import FolderError, new_folder
from plimsoll.plan import plan_of_options
from plimsoll.premises import PremisesError


def run_of(path: Path, **instance: Any) -> dict[str, Any]:
    plan = plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": str(path)}],
            "instance": [{"name": "one", "backend": "raw_files", "database_size_mib": 64, **instance}],
        }
    )
    run: dict[str, Any] = plan["run"]
    return run


def closed(run: dict[str, Any], records: int) -> None:
    """What a run leaves behind."""
    premises.take(run)
    stop = {"kind": "stop", "complete": True, "databases": [[{"records_ever": records}]]}
    premises.give_back(run, {"phases": [stop]})


def problems(run: dict[str, Any]) -> str:
    with pytest.raises(PremisesError) as caught:
        premises.inspect(run)
    return "\n".join(caught.value.problems)


def test_a_new_place_is_forecast_and_nothing_is_written(tmp_path: Path) -> None:
    """Looking must not leave traces: --dry-run promises that."""
    expected = premises.inspect(run_of(tmp_path / "new"))
    assert expected.bytes_to_prepare == 64 << 20
    assert list(tmp_path.iterdir()) == []


def test_databases_that_fit_are_used_again(tmp_path: Path) -> None:
    """Preparing a terabyte takes hours; doing it twice for nothing is not acceptable."""
    closed(run_of(tmp_path), 4711)
    run = run_of(tmp_path)
    assert premises.inspect(run).reused == ["one"]
    assert run["instances"][0]["databases"][0]["existing_records"] == 4711


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"page_kib": 8}, "page_bytes"),
        ({"database_size_mib": 65}, "databases"),
        ({"log_framing": "segment_4096"}, "log_framing"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, change: dict[str, int], phrase: str) -> None:
    """Running on a database of another page size would measure something nobody asked for."""
    closed(run_of(tmp_path), 1)
    assert phrase in problems(run_of(tmp_path, **change))


def test_databases_left_open_are_refused(tmp_path: Path) -> None:
    """After a crash nobody knows what raw files hold."""
    premises.take(run_of(tmp_path))
    assert "were not closed" in problems(run_of(tmp_path))


def test_what_is_not_ours_is_refused_and_never_deleted(tmp_path: Path) -> None:
    """Somebody's files lie where the plan points: the one mistake that must be impossible."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "thesis.txt").write_text("years of work")
    assert "was not made by Plimsoll" in problems(run_of(tmp_path))
    with pytest.raises(FolderError, match="not deleted"):
        premises.remove(tmp_path / "one")
    assert premises.instances_below(tmp_path) == []
    (tmp_path / "one" / premises.MARKER).write_text(json.dumps({"kind": "something else"}))
    assert premises.instances_below(tmp_path) == []


def test_too_little_space_is_seen_before_writing(tmp_path: Path) -> None:
    """Filling somebody's file system to the brim helps nobody."""
    assert "MiB free" in problems(run_of(tmp_path, database_size_mib=64 * 1024 * 1024))
    assert list(tmp_path.iterdir()) == []


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    """A file where a directory should be, and no space: one round of correction."""
    (tmp_path / "file").write_text("")
    text = problems(run_of(tmp_path / "file", database_size_mib=64 * 1024 * 1024))
    assert "is a file" in text
    assert "MiB free" in text


def test_clean_removes_what_is_ours(tmp_path: Path) -> None:
    """And the log directory with it, when it lies elsewhere."""
    run = run_of(tmp_path)
    closed(run, 1)
    (directory,) = premises.instances_below(tmp_path)
    assert premises.remove(directory) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_is_never_overwritten_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of last week must survive this week's run."""
    monkeypatch.chdir(tmp_path)
    assert new_folder("demo", None) != new_folder("demo", None)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="nothing is overwritten"):
        new_folder("demo", foreign)
    named = new_folder("demo", tmp_path / "named")
    (named / "plan.json").write_text("{}")
    (named / "verdict.json").write_text("{}")
    (named / "my notes.txt").write_text("mine")
    again = new_folder("demo", tmp_path / "named")
    assert sorted(path.name for path in again.iterdir()) == ["my notes.txt"]
