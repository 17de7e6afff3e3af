"""The table of commands: every row leads somewhere, and printing the help imports none of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.cli import COMMANDS, load

SOURCE = str(Path(__file__).parents[2] / "python")
HEAVY = [
    "pydantic",
    "rich",
    "numpy",
    "duckdb",
    "jinja2",
    "xlsxwriter",
    "plimsoll.sizing",
    "plimsoll._native",
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "plimsoll.cli", *arguments],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        check=False,
    )


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_row_leads_to_a_command(name: str) -> None:
    """A misspelt target would show only when a user types that command."""
    assert load(name).name == name
    assert COMMANDS[name].help.endswith(".")


def test_help_names_every_command() -> None:
    """The help is written from the table, not from the commands, so it must not forget one."""
    help_text = run("--help").stdout
    assert all(name in help_text for name in COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    """The help stays under a quarter of a second only while nothing below the table is imported."""
    program = (
        "import sys, json\n"
        "from plimsoll.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE},
        check=True,
    )
    assert json.loads(result.stderr.splitlines()[-1]) == []


def test_a_sizing_imports_none_of_the_slow_libraries() -> None:
    """Typer from 0.29 on imports pydantic for every command with parameters.

    That cost shows at every start.
    """
    # The native part is asked what drives can form; loading it takes two milliseconds.
    slow = ["pydantic", "rich", "numpy", "duckdb", "jinja2", "xlsxwriter"]
    program = (
        "import sys, json\n"
        "from plimsoll.cli import app\n"
        "app('size --users 50 --quota-mb 100 --messages-per-day 50'.split(), "
        "standalone_mode=False)\n"
        f"print(json.dumps([name for name in {slow!r} if name in sys.modules]), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE},
        check=True,
    )
    assert json.loads(result.stderr.splitlines()[-1]) == []


def test_a_run_reads_no_files_of_other_tools() -> None:
    """Their readers were loaded for every run, and are of use to imported ones alone."""
    program = (
        "import sys, plimsoll.pipeline.qualify, plimsoll.report.page\n"
        "print([name for name in sys.modules if name.startswith('plimsoll.imports')])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE},
        check=True,
    )
    assert result.stdout == "[]\n"


def test_an_unknown_command_is_a_usage_error() -> None:
    """Scripts tell a typing mistake from a failed test by the exit code."""
    result = run("sizzle")
    assert result.returncode == 2
    assert "No such command" in result.stderr


def test_every_named_test_is_carried_out_with_the_same_options() -> None:
    """Who bounds, repeats or watches one test must not find the option missing at the next."""
    how = {
        "--out",
        "--yes",
        "--dry-run",
        "--destroy",
        "--quiet",
        "--json",
        "--detach",
        "--max-iops",
        "--max-mib-per-s",
        "--stop-if",
        "--repeat",
        "--metrics",
        "--create",
        "--allow-system-disk",
    }
    for name, command in [*load("test").commands.items(), ("run", load("run"))]:
        # A curve is many short runs of its own making, each of which is carried out and kept by
        # itself.
        if name == "io":
            continue
        known = {option for parameter in command.params for option in parameter.opts}
        assert known >= how, f"{name} lacks {sorted(how - known)}"
