"""A plan from somebody one does not trust.

Nothing of it is executed, nothing is written but where it says, and reading it is bounded.
"""

import fcntl
import json
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from plimsoll.cli import run_program
from plimsoll.databases import handover, ownership
from plimsoll.documents.run_spec import RunSpec
from plimsoll.files import folder
from tests.support.harm import ENDED, PLIMSOLL, plimsoll
from tests.support.plain_stages import filled

HEAD = 'kind = "plan"\nschema_version = 1\n'
BODY = (
    '[[target]]\nname = "disk"\npath = "{path}"\n[[instance]]\nname = "one"\nbackend = '
    '"raw_files"\ndatabase_size_mib = 64\n'
)
MEMORY_BYTES_MAX = 2 << 30


def bounded(plan: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """`plimsoll run --dry-run` with bounded memory and time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))

    command = [*PLIMSOLL, "run", str(plan), "--dry-run", *more]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        preexec_fn=limit,
        cwd=plan.parent,
    )


def refused(result: "subprocess.CompletedProcess[str]", phrase: str) -> None:
    assert result.returncode == 2, result.stderr
    assert phrase in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert "MemoryError" not in result.stderr


@pytest.mark.parametrize(
    "name",
    ["../../../evil", "/tmp/evil", "..", "a/../../../../evil", "x" * 5000, "\x00evil", "-rf"],
)
def test_the_name_of_a_plan_leads_nowhere_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a run is called after its plan.

    That must not be a way out of the folder of runs.
    """
    monkeypatch.chdir(tmp_path)
    made = folder.new_folder(name, None)
    assert made.parent == tmp_path / "runs"
    assert not made.name.startswith((".", "-"))


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", ".", "..", "a\\u0000b", "-x"])
def test_the_name_of_an_instance_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    """Databases lie in a folder called after their instance, on the storage that the plan names and
    nowhere else.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(
        HEAD + BODY.format(path=tmp_path / "disk").replace('name = "one"', f'name = "{name}"')
    )
    refused(bounded(plan), "instance[1].name")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


@pytest.mark.parametrize("key", ["path", "log_path"])
def test_a_path_with_a_zero_is_a_mistake(key: str, tmp_path: Path) -> None:
    """System calls end a name at its first zero.

    What is behind it would be checked and not used.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(
        HEAD
        + BODY.format(path="disk").replace(
            'path = "disk"',
            f'path = "disk"\n{key} = "a\\u0000b"' if key != "path" else 'path = "a\\u0000b"',
        )
    )
    refused(bounded(plan), f"target[1].{key}")


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/urandom", "/proc/self/mem", "/etc/shadow"])
def test_what_a_plan_refers_to_is_read_within_bounds(source: str, tmp_path: Path) -> None:
    """A device has no length and no end.

    Its content, or that of a file that is none of theirs, is not shown either.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'{HEAD}[[target]]\nname = "disk"\nmodelled = "{source}#x"\n[[instance]]\nname = '
        f'"one"\ndatabase_size_mib = 64\n'
    )
    result = bounded(plan)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert "root:" not in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a" + ".a" * 50_000 + " = 1",
        "# " + "x" * (5 << 20),
        HEAD + "[[phase]]\nkind = 'measure'\n" * 100_000,
        HEAD + 'name = "' + "\\U0010FFFF" * 300_000 + '"\n',
        HEAD + "seed = " + "9" * 5000,
        HEAD + "required_iops = 1e400\n",
        HEAD + "required_iops = nan\n",
        'kind = "plan"\n"__class__" = 1\n"__init__.__globals__" = 2\n',
    ],
    ids=["deep", "dotted", "large", "many", "wide", "digits", "infinite", "nan", "dunder"],
)
def test_a_plan_made_to_exhaust_is_refused(text: str, tmp_path: Path) -> None:
    """Within seconds and a bounded memory, in words."""
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    result = bounded(plan)
    assert result.returncode == 2, result.stderr[-2000:]
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr


def test_words_of_a_plan_stay_words(tmp_path: Path) -> None:
    """Names and descriptions reach a shell's history, SQL, a page and formulas.

    They are never anything but text there.
    """
    marks = (
        "<script>alert(1)</script> {{ 7*7 }} $(touch pwned) `touch pwned` '; DROP TABLE rows; -- "
        "=cmd"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        HEAD
        + f"name = {json.dumps(marks)}\ndescription = {json.dumps(marks)}\n"
        + BODY.format(path=tmp_path / "disk")
        + '[[workload]]\nname = "mix"\nload = { sessions = 2 }\n'
        + '[[phase]]\nkind = "prepare"\n[[phase]]\nname = '
        + json.dumps(marks[:60])
        + '\nkind = "measure"\nduration_s = 2\n'
        + '[[phase]]\nkind = "stop"\n'
    )
    result = plimsoll("run", plan, "--yes", "--quiet", cwd=tmp_path)
    assert result.returncode in ENDED, result.stderr
    (run,) = (tmp_path / "runs").iterdir()
    page = (run / folder.REPORT).read_text()
    assert "<script>alert(1)" not in page
    assert "{{ 7*7 }}" in page, "or this test shows nothing"
    assert not list(tmp_path.rglob("pwned"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "plan.toml", "runs"]


INSTANCE = {
    "name": "one",
    "backend": "engine",
    "page_bytes": 4096,
    "log_framing": "segment_4096",
    "databases": [
        {
            "file_name": "database001.edb",
            "size_bytes": 1 << 26,
            "record_bytes": 200,
            "compressible_percent": 0,
            "seed": 1,
        }
    ],
}


def marked(directory: Path, **instance: object) -> Path:
    """A directory with a marker that somebody wrote by hand."""
    directory.mkdir(parents=True)
    (directory / "database001.edb").write_text("a database")
    said = INSTANCE | {"log_directory": str(directory)} | instance
    marker = {
        "kind": ownership.MARKER_KIND,
        "schema_version": 1,
        "state": "closed",
        "records": None,
        "instance": said,
    }
    (directory / ownership.MARKER).write_text(json.dumps(marker))
    return directory


def test_a_marker_from_anybody_deletes_nothing_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`plimsoll clean` follows what a file in the folder says about its logs only where the logs
    say so too.
    """
    victim = tmp_path / "home" / "one"
    victim.mkdir(parents=True)
    (victim / "thesis.txt").write_text("years of work")
    (victim / "E00.log").write_text("a log")
    mine = marked(tmp_path / "disk" / "one", log_directory=str(victim))
    assert run_program(["clean", str(mine), "--yes"]) == 0
    said = capsys.readouterr().err
    assert f"and its logs in {victim}" not in said
    assert f"nothing in {victim} says that they belong" in said
    assert not mine.exists()
    assert sorted(path.name for path in victim.iterdir()) == ["E00.log", "thesis.txt"]


def test_logs_go_with_the_databases_they_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of another directory only logs go, and only where the run that made the databases has left
    its mark.
    """
    logs, mine = tmp_path / "log" / "one", tmp_path / "disk" / "one"
    instance = {**INSTANCE, "directory": str(mine), "log_directory": str(logs)}
    phases = [{"action": {"kind": "prepare"}}]
    handover.take(RunSpec.from_plain(filled(RunSpec, {"instances": [instance], "phases": phases})))
    (logs / "E00.log").write_text("a log")
    (logs / "notes.txt").write_text("somebody's")
    assert run_program(["clean", str(mine), "--yes"]) == 0
    assert f"{mine} and its logs in {logs}" in capsys.readouterr().err
    assert [path.name for path in logs.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("said", "phrase"),
    [
        ({"log_directory": "/var/log"}, "where nothing says so"),
        (
            {"databases": [INSTANCE["databases"][0] | {"file_name": "../../victim"}]},
            "outside of its directory",
        ),  # type: ignore[index]
        (
            {"databases": [INSTANCE["databases"][0] | {"file_name": "/etc/passwd"}]},
            "outside of its directory",
        ),  # type: ignore[index]
        (
            {"databases": [INSTANCE["databases"][0] | {"size_bytes": "many"}]},
            '`databases[0].size_bytes` is "many"',
        ),  # type: ignore[index]
        ({"page_bytes": None}, "`page_bytes` is null"),
        ({"databases": []}, "names no databases"),
        ({"databases": 3}, "holds no databases of Plimsoll"),
    ],
)
def test_a_marker_leads_no_test_elsewhere(
    said: dict[str, object], phrase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests of databases that are there take names and places from the marker, which may have come
    with the disk.
    """
    marked(tmp_path / "disk" / "one", **said)
    out = tmp_path / "run"
    assert (
        run_program(
            ["test", "checksum", str(tmp_path / "disk"), "--yes", "--quiet", "--out", str(out)]
        )
        == 2
    )
    assert phrase in capsys.readouterr().err
    assert not out.exists()
    assert sorted(path.name for path in (tmp_path / "disk" / "one").iterdir()) == [
        "database001.edb",
        ownership.MARKER,
    ]


def test_what_somebody_put_beside_the_databases_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports and notes lie where the work was.

    The copy of a folder still names the logs of the first.
    """
    mine = marked(tmp_path / "one")
    for name in (
        "E00.log",
        "E0000000013.log",
        "E00.chk",
        "database001.jfm",
        ".0123456789abcdef.part",
    ):
        (mine / name).write_text("ours")
    (mine / "notes.log").write_text("mine")
    (mine / "results").mkdir()
    (mine / "results" / "thesis.doc").write_text("mine")
    shutil.copytree(mine, tmp_path / "copy")
    assert run_program(["clean", str(tmp_path / "copy"), "--yes"]) == 0
    assert (mine / "E00.log").exists(), "the logs of the original"
    assert run_program(["clean", str(mine), "--yes"]) == 0
    assert sorted(path.name for path in mine.rglob("*")) == ["notes.log", "results", "thesis.doc"]
    assert "keeps notes.log, results" in capsys.readouterr().err


def test_databases_in_use_are_not_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that measures for a day must not lose its databases to a mistyped path."""
    mine = marked(tmp_path / "one")
    with (mine / "database001.edb").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run_program(["clean", str(mine), "--yes"]) == 2
    assert "is in use" in capsys.readouterr().err
    assert (mine / ownership.MARKER).exists()
    assert (mine / "database001.edb").exists()


def test_what_cannot_be_deleted_can_be_deleted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker goes last, or nobody would know whose the rest is."""
    mine = marked(tmp_path / "one")
    with monkeypatch.context() as patched:

        def refuse(path: Path, missing_ok: bool = False) -> None:
            raise PermissionError(1, "Operation not permitted", str(path))

        patched.setattr(Path, "unlink", refuse)
        assert run_program(["clean", str(mine), "--yes"]) == 2
    assert (mine / ownership.MARKER).exists()
    assert run_program(["clean", str(mine), "--yes"]) == 0
    assert not mine.exists()


@pytest.mark.parametrize(
    "wrong", [{"state": "odd"}, {"records": []}, {"instance": 3}, {"state": None}]
)
def test_a_damaged_marker_is_nobodys(wrong: dict[str, object], tmp_path: Path) -> None:
    """It says nothing that can be relied on, so nothing is done to what lies beside it."""
    mine = marked(tmp_path / "one")
    content = json.loads((mine / ownership.MARKER).read_text())
    (mine / ownership.MARKER).write_text(json.dumps(content | wrong))
    assert run_program(["clean", str(mine), "--yes"]) == 2
    assert (
        run_program(["test", "checksum", str(tmp_path), "--yes", "--out", str(tmp_path / "run")])
        == 2
    )
    assert len(list(mine.iterdir())) == 2
