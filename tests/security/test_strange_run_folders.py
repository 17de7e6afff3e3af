"""Run folders from somebody one does not trust, and in folders with names that mean something
elsewhere.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll import _native, exit_codes
from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.files.sanitize import parse_json
from plimsoll.powercut.witness_log import LINE_CHARACTERS_MAX, read_statement

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


def changed(home: Path, file_name: str, change: dict[str, Any]) -> None:
    """Other values in a JSON file of a run."""
    (home / file_name).write_text(json.dumps(json.loads((home / file_name).read_text()) | change))


@pytest.mark.parametrize(
    ("name", "neighbour"),
    [
        ("a[1]", "a1"),
        ("a*", "ab"),
        ("a?", "ab"),
        ("phase=none", "b"),
        ("it's", "b"),
        ("[a]", "a"),
        ("~", "b"),
    ],
)
def test_a_run_is_judged_by_its_own_samples(
    name: str, neighbour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To what reads samples a path is a pattern, and `phase=none` in it a column.

    `a[1]` was judged by the samples of `a1` beside it.
    """
    for place in (name, neighbour):
        shutil.copytree(GOLDEN, tmp_path / place)
    for file_name in (folder.SAMPLES, folder.HISTOGRAMS):
        (tmp_path / neighbour / file_name).unlink()
        few = f"SELECT * FROM read_parquet('{GOLDEN / file_name}') LIMIT 3"
        duckdb.execute(f"COPY ({few}) TO '{tmp_path / neighbour / file_name}' (FORMAT parquet)")
    monkeypatch.chdir(tmp_path)
    assert run_program(["report", name]) in (0, 1, 3)
    found, golden = (
        folder.read_json(home / folder.SUMMARY)["total"] for home in (tmp_path / name, GOLDEN)
    )
    assert found == golden
    assert run_program(["export", name]) == 0
    assert run_program(["compare", name, name]) == 0
    assert run_program(["pack", name, "--redact", "--out", "run.tar.gz"]) == 0


@pytest.mark.parametrize("steering", ["\x1b", "\x9b", "\r", "\b", "\ud800"])
def test_nothing_in_a_run_steers_the_terminal(
    steering: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An escape in a headline could write anything over what the reader has seen, and half of a
    character cannot be printed at all.
    """
    home, evil = tmp_path / "run", f"{steering}[2Jpass"
    shutil.copytree(GOLDEN, home)
    changed(home, folder.VERDICT, {"headline": evil, "reasons": [evil]})
    event = {
        "time_ns": 1,
        "utc_ns": 1,
        "level": "warning",
        "kind": "note",
        "phase": None,
        "text": evil,
    }
    (home / folder.EVENTS).open("a").write(json.dumps(event) + "\n")
    for command in (["status"], ["watch"], ["runs"], ["advise"], ["compare", str(home)]):
        run_program([*command, str(home)])
    said = capsys.readouterr()
    assert "\ufffd[2Jpass" in said.out
    assert "\ufffd[2Jpass" in said.err
    assert steering not in said.out + said.err


def test_names_in_a_database_steer_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables and columns are called as whoever made the database liked."""
    table = {
        "name": "a\x1b[2J",
        "columns": [[1, "b\x9b2J", "text"]],
        "indexes": [],
        "rows": None,
        "damage": "d\x1b",
    }
    table |= {
        "has_long_values": False,
        "is_system": False,
        "template": "c\r",
        "lacks_template": True,
    }
    listed = {
        "is_clean": True,
        "format": [1, 2],
        "pages": 1,
        "page_bytes": 4096,
        "tables": [table],
        "pages_corrected": 0,
        "pages_missing": 0,
        "is_more_missing": False,
    }
    monkeypatch.setattr(_native, "edb_tables", lambda *_: json.dumps(listed))
    assert run_program(["edb", "ls", "x.edb", "--columns"]) == exit_codes.FAIL
    said = capsys.readouterr().out
    assert "a\ufffd[2J" in said
    assert not set("\x1b\x9b\r") & set(said)


def test_errors_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """They tell names out of files, and names of files."""
    assert run_program(["status", "a\x1b[2J"]) == exit_codes.USAGE
    assert "\x1b" not in capsys.readouterr().err


def test_an_event_is_a_line(tmp_path: Path) -> None:
    """Names in it may hold separators that only Python takes for ends of lines.

    Such an event was lost.
    """
    events = [{"kind": "note", "text": f"a{separator}b"} for separator in "\u2028\u2029\x0b\x1c"]
    lines = [json.dumps(event, ensure_ascii=False) for event in events]
    (tmp_path / folder.EVENTS).write_text(
        "\n".join([*lines, "3", '{"kind": "cut', ""]), encoding="utf-8"
    )
    assert [event["text"][0::2] for event in folder.read_events(tmp_path)] == ["ab"] * len(events)


@pytest.mark.parametrize("file_name", [folder.PLAN, folder.EVENTS])
def test_what_does_not_fit_into_memory_is_not_read(file_name: str, tmp_path: Path) -> None:
    """A file without content can be of any size."""
    (tmp_path / file_name).touch()
    os.truncate(tmp_path / file_name, 1 << 40)
    with pytest.raises(folder.FolderError, match="is larger than 256 MiB"):
        folder.read_events(tmp_path)
        folder.read_json(tmp_path / file_name)


def test_what_is_written_is_read_again() -> None:
    """Only what steers is replaced."""
    for text in ("a\\b\n\tc", "é ☃ 𝄞", "\\u001b", "C:\\begin\\file", '"quoted"'):
        assert parse_json(json.dumps(text)) == text
        assert parse_json(json.dumps(text, ensure_ascii=False)) == text


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000])
def test_what_has_no_end_is_a_mistake_of_the_file(text: str, tmp_path: Path) -> None:
    """Nesting ended in an error of another kind, which nobody expected."""
    (tmp_path / folder.PLAN).write_text(text)
    with pytest.raises(folder.FolderError, match="cannot be read"):
        folder.read_json(tmp_path / folder.PLAN)


@pytest.mark.parametrize(
    "name", ["../victim", "{victim}", ".", "run-1/../../victim", "link", 3, None]
)
@pytest.mark.parametrize("command", ["report", "status", "compare"])
def test_a_series_names_no_run_outside_of_it(
    command: str, name: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its report judges its runs again, and writes into their folders.

    No other run may be among them.
    """
    home, victim = tmp_path / "series", tmp_path / "victim"
    shutil.copytree(GOLDEN, victim)
    before = {path.name: path.read_bytes() for path in victim.iterdir()}
    home.mkdir()
    (home / "link").symlink_to(victim)
    where = name.format(victim=victim) if isinstance(name, str) else name
    run = {
        "folder": where,
        "ending": "complete",
        "result": "pass",
        "headline": "Pass",
        "reasons": [],
    }
    content = {
        "schema_version": 1,
        "name": "x",
        "wanted_count": 1,
        "runs": [run],
        "finished": False,
    }
    content |= {"result": None, "headline": None, "figures": []}
    (home / folder.REPEATS).write_text(json.dumps(content))
    words = [command, str(home), *([str(GOLDEN)] if command == "compare" else [])]
    assert run_program(words) == exit_codes.USAGE
    phrase = (
        "must be a text"
        if command == "report" and not isinstance(name, str)
        else "which does not lie in it"
    )
    assert phrase in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in victim.iterdir()} == before


@pytest.mark.parametrize(
    ("file_name", "content"),
    [
        (folder.EVENTS, '{"kind": 3}'),
        (folder.PLAN, '{"run": []}'),
        (folder.ENVIRONMENT, "{}"),
        (folder.ENVIRONMENT, "["),
    ],
)
def test_a_damaged_run_is_not_resumed(
    file_name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever cut it off may have damaged it too."""
    home = tmp_path / "run"
    shutil.copytree(GOLDEN, home)
    for later in (folder.OUTCOME, folder.SUMMARY, folder.VERDICT):
        (home / later).unlink()
    (home / file_name).write_text(content)
    for path in home.iterdir():
        os.utime(path, (1, 1))
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    assert run_program(["resume", str(home)]) == exit_codes.USAGE
    assert "goes on" not in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


@pytest.mark.parametrize(
    "line",
    [
        f"c 1 {'9' * 5000} 1 1",
        f"t {'9' * 5000}",
        "{" + '"a":{' * 5000,
        "x" * 3 * LINE_CHARACTERS_MAX,
    ],
)
def test_a_line_without_end_in_the_log_of_a_witness(line: str, tmp_path: Path) -> None:
    """It is none of the witness's, and is left out."""
    path = tmp_path / "witness.log"
    begun = {"event": "begun", "run": {"run": "1", "path": "/x", "work": {"rows": 4, "slots": 4}}}
    head = f'{{"kind": "plimsoll_witness_log", "schema_version": 1}}\n{json.dumps(begun)}\n'
    path.write_text(f"{head}c 0 1 1 0\n{line}\nc 0 2 2 1\n")
    assert [
        row.sequence for row in read_statement(path, lambda _: True, "any run").newest.values()
    ] == [1, 2]


@pytest.mark.parametrize(
    ("command", "file_name"),
    [
        ("report", folder.REPORT),
        ("report", folder.SUMMARY),
        ("report", folder.COUNTERS),
        ("export", "counters.csv"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_a_run_folder_is_not_followed(
    command: str, file_name: str, there: bool, tmp_path: Path
) -> None:
    """The place that a stranger's link leads to is none the user has named."""
    home, victim = tmp_path / "run", tmp_path / "victim"
    shutil.copytree(GOLDEN, home)
    (home / file_name).unlink(missing_ok=True)
    (home / file_name).symlink_to(victim)
    if there:
        victim.write_text("mine")
    assert run_program([command, str(home)]) in (0, 1, 3)
    assert not (home / file_name).is_symlink()
    assert (home / file_name).stat().st_size > 0
    assert victim.read_text() == "mine" if there else not victim.exists()
    assert not list(home.glob(".*"))


@pytest.mark.parametrize(
    "words",
    [["export", "{run}", "--csv", "{out}"], ["compare", "{run}", "{run}", "--html", "{out}"]],
)
def test_what_the_user_names_may_be_a_link_or_a_pipe(words: list[str], tmp_path: Path) -> None:
    """`/dev/stdout` is a link, and must not become a file."""
    out, target = tmp_path / "out", tmp_path / "target"
    out.symlink_to(target)
    run = shutil.copytree(GOLDEN, tmp_path / "run")
    assert run_program([word.format(run=run, out=out) for word in words]) == 0
    assert out.is_symlink()
    assert target.stat().st_size > 0
