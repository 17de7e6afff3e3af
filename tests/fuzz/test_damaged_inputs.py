"""Readers of plans and of every other file meet damaged ones.

Each ends in an answer or in words, never in a traceback.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

from plimsoll import exit_codes
from plimsoll.cli import run_program
from plimsoll.databases.ownership import MARKER
from plimsoll.inputs.mistakes import InputError
from plimsoll.powercut.workspace import NAME
from plimsoll.study.description import read_study
from tests.fuzz import power_cuts
from tests.fuzz.decoders import FILES, IMPORTS, NAMES, corpus, inputs_of, survives
from tests.fuzz.run_folders import COMMANDS, read_with, sound


@pytest.mark.parametrize("name", [name for name in NAMES if name not in IMPORTS])
def test_a_damaged_input_is_read_or_refused(name: str) -> None:
    """Plans come by mail. `make fuzz` goes on with this for as long as told.

    Importers have a test of their own.
    """
    for seed in range(12):
        survives(name, seed)


def test_the_search_itself_goes_on_in_bounded_memory(tmp_path: Path) -> None:
    """As `make fuzz` does on a machine where nothing has been drawn yet."""
    command = [sys.executable, "-m", "tests.fuzz.fuzzing", "1", "1"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=200
    )
    assert ended.returncode == 0, ended.stderr
    assert f"inputs to {len(NAMES)} readers" in ended.stdout


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"solution"}))
def test_the_corpus_is_sound(name: str, tmp_path: Path) -> None:
    """Damage to what is not read anyway shows nothing.

    The description of a solution names runs, which are made by another test.
    """
    inputs = inputs_of(tmp_path)
    for number, content in enumerate(corpus(name)):
        path = inputs / f"{number}.toml"
        path.write_bytes(content)
        FILES[name](path)


@pytest.mark.parametrize(
    "base", ["light = 3", "plan = 3", "plan_file = 3", "light = []", 'light = { mix = "abc" }']
)
def test_a_study_whose_base_is_no_table_is_refused_in_words(base: str, tmp_path: Path) -> None:
    """What stands in the wrong form is told with its line, whichever way the base is given."""
    path = tmp_path / "study.toml"
    path.write_text(f'kind = "study"\nname = "base"\n{base}\n[[variants]]\nname = "one"\n')
    with pytest.raises(InputError, match=r"must be|exactly one"):
        read_study(path)


@pytest.mark.parametrize(
    "rest",
    [
        '[[variants]]\nname = "one"\nset = 1.5\n[[variants]]\nname = "two"\nset = { '
        '"light.sessions" = -1 }\n',
        'variants = 3\n[[axes]]\nkey = "light.sessions"\nvalues = [-1, 2]\n',
        '[[variants]]\nname = "one"\nset = { "light.changes.sets.\u00b2.a" = 1 }\n',
        '[[variants]]\nname = "one"\nset = { "light.changes.sets.' + 5000 * "1" + '.a" = 1 }\n',
    ],
)
def test_a_study_whose_variants_are_written_wrongly_is_refused_in_words(
    rest: str, tmp_path: Path
) -> None:
    """One wrong variant must not keep the mistakes of the others from being told."""
    path = tmp_path / "study.toml"
    base = 'light = { array = "emc-vnxe3300", changes = { sets = [6] } }'
    path.write_text(f'kind = "study"\nname = "variants"\n{base}\n{rest}', encoding="utf-8")
    with pytest.raises(InputError):
        read_study(path)


@pytest.mark.parametrize(
    ("command", "file_name", "key", "value"),
    [
        ("combine", "plan.json", "judgement", "x"),
        ("combine", "verdict.json", "checks", [1]),
        ("compare", "summary.json", "instances", None),
        ("compare", "outcome.json", "phases", [{}]),
        ("esrp", "environment.json", "machine", "x"),
    ],
)
def test_a_run_no_sense_can_be_made_of_is_told_in_words(
    command: str, file_name: str, key: str, value: object, tmp_path: Path
) -> None:
    """It came from a stranger, or from another version.

    Half a folder of several hosts must not be left behind.
    """
    run = shutil.copytree(sound(), tmp_path / "run")
    content = json.loads((run / file_name).read_text())
    (run / file_name).write_text(json.dumps(content | {key: value}))
    code, errors = read_with(command, run)
    assert code == exit_codes.USAGE
    assert "no sense can be made of" in errors or f"{file_name} is not valid: `{key}" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "solution.toml"]


@pytest.mark.parametrize(
    ("file_name", "key"),
    [("verdict.json", "result"), ("verdict.json", "headline"), ("summary.json", "window")],
)
def test_a_run_with_something_else_in_it_is_listed(
    file_name: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As broken, beside others, and sorted among them."""
    for name, value in (("one", {"a": 1, "seconds": "x", "start_utc": 3}), ("two", [1])):
        run = shutil.copytree(sound(), tmp_path / name)
        content = json.loads((run / file_name).read_text())
        (run / file_name).write_text(json.dumps(content | {key: value}))
    for sort in ("time", "result", "name"):
        assert run_program(["runs", str(tmp_path), "--sort", sort]) == 0
        assert capsys.readouterr().out.count("broken") == 2


@pytest.mark.parametrize("count", [0, 1 << 17, 1 << 61])
def test_rings_of_absurd_size_are_refused(count: int, tmp_path: Path) -> None:
    """A marker comes with the files; a whole ring is read at once."""
    home = shutil.copytree(power_cuts.sound(), tmp_path / "home")
    marker = home / "disk" / NAME / MARKER
    content = json.loads(marker.read_text())
    content[NAME]["work"]["slots"] = count
    marker.write_text(json.dumps(content))
    code, errors = power_cuts.audit(home)
    assert (code, "slots must be 2 to 65536" in errors) == (exit_codes.USAGE, True), errors


def test_a_sound_power_cut_is_audited() -> None:
    """Damage to what is refused anyway shows nothing."""
    assert power_cuts.audit(power_cuts.sound())[0] == 0


def test_a_damaged_run_is_packed_without_its_page(tmp_path: Path) -> None:
    """Who asks why a run is broken sends it."""
    run = shutil.copytree(sound(), tmp_path / "run")
    (run / "verdict.json").write_text("[]")
    code, errors = read_with("pack", run)
    assert (code, (tmp_path / "run.tar.gz").exists()) == (0, True)
    assert "report.html could not be made again" in errors


@pytest.mark.parametrize("command", COMMANDS)
def test_the_runs_that_are_damaged_are_sound(command: str, tmp_path: Path) -> None:
    """Damage to what is refused anyway shows nothing."""
    assert read_with(command, shutil.copytree(sound(), tmp_path / "run")) == (0, ANY)
