"""Every command that takes the folder of a run says the same of what is none, and none of them
takes what a newer version wrote for what it knows.
"""

import json
import shutil
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from plimsoll.cli import run_program
from plimsoll.documents.environment import Environment
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict
from plimsoll.files import folder

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
COMMANDS = (
    ["status"],
    ["report"],
    ["resume"],
    ["compare", str(GOLDEN)],
    ["pack"],
    ["combine", str(GOLDEN)],
    ["export"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_is_no_run_is_told_in_one_way(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever mistypes a path learns which it is, and nothing is made there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "does not exist; name the folder of a run"),
        ("file", "is a file; name the folder of a run"),
        ("empty", "holds no run; name the folder of one, which has plan.json in it"),
    ):
        assert run_program([*command, name]) == 2
        assert f"{name} {words}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


DOCUMENTS: tuple[tuple[str, type[Any]], ...] = (
    (folder.PLAN, Plan),
    (folder.SUMMARY, Summary),
    (folder.VERDICT, Verdict),
    (folder.ENVIRONMENT, Environment),
    (folder.OUTCOME, Outcome),
)


@pytest.mark.parametrize(("file_name", "document"), DOCUMENTS, ids=[name for name, _ in DOCUMENTS])
def test_what_a_newer_version_wrote_is_named(
    file_name: str,
    document: type[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its figures may mean something else."""
    run = shutil.copytree(GOLDEN, tmp_path / "run")
    newest = max(get_args(get_type_hints(document)["schema_version"]))
    content = json.loads((run / file_name).read_text())
    (run / file_name).write_text(json.dumps(content | {"schema_version": newest + 1}))
    said = f"was written by a newer version of Plimsoll: its schema_version is {newest + 1}"
    commands = [["compare", str(GOLDEN)], ["runs"]]
    if file_name != folder.OUTCOME:
        commands.append(["advise"])
    if file_name == folder.VERDICT:
        commands.append(["status"])
    if file_name not in (folder.SUMMARY, folder.VERDICT):
        # Those two are computed again.
        commands.append(["report"])
    for command in commands:
        assert run_program([*command, str(run)]) == (0 if command == ["runs"] else 2), command
        told = capsys.readouterr()
        assert said in " ".join((told.out + told.err).split()), command
