"""`plimsoll size` as a user runs it: what goes where, exit codes, and how long it takes."""

import json
import resource
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.plan.complete import read_plan

ROOT = Path(__file__).parents[2]
OPTIONS = (
    "--users",
    "5000",
    "--quota-mb",
    "2048",
    "--messages-per-day",
    "150",
    "--message-kb",
    "75",
    "--copies",
    "2",
)
PLIMSOLL = (sys.executable, "-m", "plimsoll.cli")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return _run((*PLIMSOLL, *map(str, arguments)))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin", "COLUMNS": "120"},
        check=False,
    )


def test_figures_are_keys_of_the_json_with_value_and_steps() -> None:
    """Scripts read `.mailbox_size_mb.value`.

    People follow `.mailbox_size_mb.steps` back to the paper.
    """
    result = run("size", *OPTIONS, "--dag", "--max-database-gb", "1024", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert (data["kind"], data["schema_version"]) == ("sizing", 1)
    for key in (
        "mailbox_size_mb",
        "total_database_size_gb",
        "database_count",
        "database_volume_size_gb",
        "log_volume_size_gb",
        "database_iops",
        "log_iops",
    ):
        assert {"value", "unit", "formula", "source", "steps"} <= set(data[key]), key
        assert data[key]["steps"][-1]["value"] == data[key]["value"]
    assert data["total_database_size_gb"]["value"] == pytest.approx(13805.595245, abs=1e-6)


def test_as_published_without_answers_is_the_papers_own_example() -> None:
    data = json.loads(run("size", "--as-published", "dell_2010", "--json").stdout)
    figures = (
        "total_database_size_gb",
        "database_count",
        "database_size_gb",
        "database_volume_size_gb",
    )
    assert [data[name]["value"] for name in figures] == [11505, 12, 959, 1266]
    assert (data["log_volume_size_gb"]["value"], data["total_capacity_gb"]["value"]) == (48, 15768)
    assert data["database_iops"]["value"] == 900


def test_as_published_explains_the_difference_in_its_text() -> None:
    text = run("size", *OPTIONS, "--max-database-gb", "1024").stdout
    assert "11,505" in text
    assert "leaves out the 1.2 overhead of Table 14" in text


def test_all_outputs_are_written_and_told_on_standard_error(tmp_path: Path) -> None:
    book, page, plan = tmp_path / "a.xlsx", tmp_path / "a.html", tmp_path / "plan.toml"
    result = run("size", *OPTIONS, "--json", "--xlsx", book, "--html", page, "--plan", plan)
    assert result.returncode == 0
    json.loads(result.stdout)
    assert [line.split()[0] for line in result.stderr.splitlines()] == ["wrote"] * 3
    assert zipfile.is_zipfile(book)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert read_plan(plan).run.instances


def test_options_are_laid_over_a_file(tmp_path: Path) -> None:
    """One file, and the question "what if there were 8,000 users" without editing it."""
    path = tmp_path / "need.toml"
    path.write_text(
        'kind = "requirements"\n[users]\ncount = 5000\nmailbox_quota = "2 GB"\nmessages_per_day = '
        "150\n"
    )
    data = json.loads(run("size", path, "--users", "8000", "--quota-mb", "1024", "--json").stdout)
    assert data["user_count"]["value"] == 8000
    assert data["requirements"]["users"]["mailbox_quota_mb"] == 1024


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give a requirements file"),
        (("--users", "-5", "--quota-mb", "2048"), "`--users` is -5"),
        (("--users", "5", "--quota-mb", "2048"), "`--messages-per-day` is missing"),
        (("--users", "5", "--messages-per-day", "50"), "hint: add --quota-mb 2048"),
        ((*OPTIONS, "--servers", "17"), "at most 16 servers"),
        ((*OPTIONS, "--servers", "1"), "2 on 1 server,"),
        ((*OPTIONS, "--max-database-gb", "3000"), "at most 2048 GB"),
        ((*OPTIONS, "--standalone"), "holds one copy"),
        ((*OPTIONS, "--as-published", "dell_2011"), "did you mean `dell_2010`"),
        ((*OPTIONS, "--edition", "exchange_2014"), "not a known edition"),
        ((*OPTIONS, "--log-rule", "table_18"), "table_17"),
        ((*OPTIONS, "--xlsx", "/no/such/folder/a.xlsx"), "is not a folder"),
        ((*OPTIONS, "--html", "/"), "is a folder"),
        (
            ("--users", "9000000", "--quota-mb", "9000000", "--messages-per-day", "50"),
            "databases, at most 5,000",
        ),
        (("absent.toml",), "cannot be read"),
        (("--users", "many"), "--users"),
    ],
)
def test_bad_input_is_exit_code_2_with_nothing_on_standard_output(
    arguments: tuple[str, ...], words: str
) -> None:
    result = run("size", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_mistakes_in_outputs_and_answers_are_told_together() -> None:
    """Nobody should mend the folder only to learn then that the number of users was wrong as
    well.
    """
    result = run("size", *OPTIONS, "--servers", "17", "--xlsx", "/no/such/folder/a.xlsx")
    assert "is not a folder" in result.stderr
    assert "at most 16 servers" in result.stderr
    assert result.stderr.endswith("2 mistakes, nothing sized\n")


def test_the_requirements_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "need.toml"
    path.write_text(
        'kind = "requirements"\n[users]\ncount = 5\nmailbox_quota = "2 GB"\nmessages_per_day = '
        "150\n"
    )
    before = path.read_text()
    result = run("size", path, "--plan", path)
    assert result.returncode == 2
    assert path.read_text() == before


def test_the_papers_example_does_not_apply_to_transactions(tmp_path: Path) -> None:
    path = tmp_path / "need.toml"
    path.write_text(
        'kind = "requirements"\n[transactions]\nper_second = 10\ndatabase_ios_each = 4\n'
        'data_size = "1 GB"\nlog_size_each = "4 KB"\n'
    )
    assert run("size", path).returncode == 0
    result = run("size", path, "--as-published", "dell_2010")
    assert result.returncode == 2
    assert "not transactions" in result.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("requirements*.toml")), ids=lambda path: path.stem
)
def test_every_example_is_sized(path: Path) -> None:
    """Examples are read first and believed longest, so each one is run."""
    result = run("size", path)
    assert result.returncode == 0, result.stderr


# Modules of the standard library that take an idle machine 0.14 s of processor time.
YARDSTICK = (
    "import asyncio, email.message, http.client, logging.config, multiprocessing.pool, "
    "unittest.mock, xml.dom.minidom"
)


def test_a_sizing_answers_in_under_a_third_of_a_second() -> None:
    """Processor time, start-up included, the best of several runs, beside that of a yardstick.

    On a machine that is busy with other tests the wall clock says nothing of the program, and two
    threads on one core double the processor time of each; the yardstick is slowed alike."""
    rounds = [
        (
            _processor_seconds(sys.executable, "-c", YARDSTICK),
            _processor_seconds(*PLIMSOLL, "size", *OPTIONS),
            _processor_seconds(*PLIMSOLL, "--help"),
        )
        for _ in range(5)
    ]
    yardstick, size, start = (min(seconds) for seconds in zip(*rounds, strict=True))
    assert size < 0.3 / 0.14 * yardstick
    assert start < 0.25 / 0.14 * yardstick


def _processor_seconds(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert _run(command).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
