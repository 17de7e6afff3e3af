"""`plimsoll compare` as a script uses it: conditions and exit codes."""

import json
import shutil
from pathlib import Path

import pytest

from plimsoll.cli import run_program
from plimsoll.files import folder


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("database_iops_change_percent<-5", 0),
        ("db_read_latency_ms_mean_change_percent>10", 1),
        ("total_database_read_latency_ms_mean_factor<0.6", 1),
        ("total_database_read_latency_ms_mean>20", 1),
        ("total_database_read_latency_ms_mean > 30", 0),
        ("log_write_latency_ms_p99>5", 1),
        ("reads_per_write>1.7", 0),
        ("read_response_ms_p99_factor<0.9", 0),
        ("total_log_read_per_s_change_percent>1", 3),
    ],
)
def test_conditions_decide_the_exit_code(fast: Path, slow: Path, condition: str, code: int) -> None:
    """1 where it holds, 0 where it does not, 3 where nothing can be said.

    Never 0 for what was not measured.
    """
    assert run_program(["compare", str(fast), str(slow), "--fail-if", condition]) == code


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("total_database_read_latency_ms_mean_change_percent>10", 1),
        ("total_database_read_latency_ms_mean_factor<0.6", 1),
        ("database_iops_factor<1", 0),
        ("total_database_read_latency_ms_p99_factor<0.9", 3),
    ],
)
def test_confident_conditions_need_an_interval(
    fast: Path, slow: Path, condition: str, code: int
) -> None:
    """A gate that must not fail by chance counts only what the whole interval fulfils."""
    assert (
        run_program(["compare", str(fast), str(slow), "--confident", "--fail-if", condition])
        == code
    )


def test_json_and_page_say_the_same(
    fast: Path, slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a script reads and what a person sees come from one computation."""
    page = tmp_path / "page.html"
    assert run_program(["compare", str(fast), str(slow), "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [side["name"] for side in found["sides"]] == ["fast", "slow"]
    assert all(row["title"] in page.read_text() for row in found["figures"])


def test_mistakes_are_told_all_at_once(
    fast: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong expression and a wrong folder: both, with the nearest names."""
    arguments = [
        "compare",
        str(fast),
        str(tmp_path / "gone"),
        "--fail-if",
        "database_iop_factor<1",
        "--fail-if",
        "x",
    ]
    assert run_program(arguments) == 2
    errors = capsys.readouterr().err
    assert "gone does not exist" in errors
    assert "did you mean `database_iops_factor`" in errors
    assert '"x" is no limit' in errors


def test_one_folder_is_no_comparison(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The baseline alone says nothing."""
    assert run_program(["compare", str(fast)]) == 2
    assert "needs two run folders" in capsys.readouterr().err


def test_damage_that_only_a_chart_meets_is_told_too(
    fast: Path, slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Distributions are read for the page alone; their damage is no internal error."""
    shutil.copytree(slow, tmp_path / "damaged")
    (tmp_path / "damaged" / folder.HISTOGRAMS).write_text("not a table")
    page = tmp_path / "page.html"
    assert run_program(["compare", str(fast), str(tmp_path / "damaged"), "--html", str(page)]) == 2
    assert "histograms.parquet cannot be read" in capsys.readouterr().err
    assert not page.exists()


def test_named_figures_are_compared_alone_and_more_surely(
    fast: Path, slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eighteen intervals that hold together are half as wide again as one that holds by itself.

    Who has one question must not pay for the others.
    """
    name = "total_database_read_latency_ms_mean"

    def asked(*more: str) -> dict[str, float]:
        command = ["compare", str(fast), str(slow), "--json", *more]
        assert run_program(command) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["warnings"] == all_warnings + further
        return {
            row["name"]: row["against_first"][0]["high"] / row["against_first"][0]["low"]
            for row in found["figures"]
            if row["against_first"][0]["low"]
        }

    all_warnings, further = _warnings(fast, slow, capsys), list[str]()
    every, alone = asked(), asked("--figures", name)
    assert len(every) > 5 and list(alone) == [name]
    assert 1 < alone[name] < every[name]
    gate = ("--fail-if", "database_iops_change_percent<-99")
    assert list(asked("--figures", name, *gate)) == ["database_iops", name]
    further.append("backup_mib_per_s was not measured on two sides")
    assert list(asked("--figures", f"{name}, backup_mib_per_s")) == [name]


def _warnings(fast: Path, slow: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run_program(["compare", str(fast), str(slow), "--json"]) == 0
    found: list[str] = json.loads(capsys.readouterr().out)["warnings"]
    return found


def test_a_figure_that_does_not_exist_is_refused_with_the_nearest(
    fast: Path, slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that selects nothing would compare nothing, and look like no difference."""
    command = ["compare", str(fast), str(slow), "--figures", "database_iop,database_iops"]
    assert run_program(command) == 2
    said = capsys.readouterr().err
    assert "there is no figure database_iop\n" in said and "`database_iops`" in said
