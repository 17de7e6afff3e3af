"""A repeated run: one folder, a median with its spread, the worst result, and nothing lost when it
is interrupted.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plimsoll
from plimsoll.cli import load, run_program
from plimsoll.documents.repeats import Repeats
from plimsoll.documents.verdict import read_verdict
from plimsoll.files import folder
from plimsoll.pipeline import repeat
from tests.support.places import plimsoll as run_plimsoll

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
PLIMSOLL = [sys.executable, "-m", "plimsoll.cli"]


def series(
    home: Path, factors: list[float], results: list[str], endings: list[str] | None = None
) -> Repeats:
    """A series made of copies of the golden run with their rates multiplied."""
    home.mkdir()
    file = repeat.begin(home, "nightly", len(factors))
    for index, (factor, result) in enumerate(zip(factors, results, strict=True)):
        run_folder = file.begin_run()
        shutil.copytree(GOLDEN, run_folder, dirs_exist_ok=True)
        summary = folder.read_json(run_folder / folder.SUMMARY)
        summary["total"]["database_iops"] = 1000.0 * factor
        folder.write_json(run_folder / folder.SUMMARY, summary)
        file.note_ending(endings[index] if endings else "complete")
        verdict = read_verdict(GOLDEN / folder.VERDICT)
        file.note_verdict(
            verdict.replace(result=result, headline=result.capitalize(), reasons=["a reason"])
        )
    file.gather(finished=True)
    return file.content


def test_RPT_29_the_median_of_three_runs(tmp_path: Path) -> None:
    """RPT-29: of 900, 1000 and 1200 the median is 1000, not the mean; the spread is 300 of it."""
    content = series(tmp_path / "runs", [0.9, 1.2, 1.0], ["pass"] * 3)
    figure = next(figure for figure in content.figures if figure.name == "database_iops")
    assert figure.values == (900.0, 1200.0, 1000.0)
    assert (figure.median, figure.min, figure.max) == (1000.0, 900.0, 1200.0)
    assert figure.spread_percent == pytest.approx(30)


@pytest.mark.parametrize(
    ("results", "worst"),
    [
        (["pass", "fail", "pass"], "fail"),
        (["pass", "inconclusive"], "inconclusive"),
        (["pass", "pass"], "pass"),
    ],
)
def test_the_whole_is_as_bad_as_its_worst_run(
    tmp_path: Path, results: list[str], worst: str
) -> None:
    """A storage that fails once in three times fails, and the sentence says which words were
    counted.
    """
    content = series(tmp_path / "runs", [1.0] * len(results), results)
    assert content.result == worst
    assert f"the worst of {len(results)} runs" in content.headline


def test_a_run_that_did_not_end_is_kept_and_not_counted(tmp_path: Path) -> None:
    """Half a run has half its figures; it stays in the list, not in the median."""
    home = tmp_path / "runs"
    content = series(home, [1.0, 5.0], ["pass", "inconclusive"], ["complete", "interrupted"])
    assert next(figure for figure in content.figures if figure.name == "database_iops").values == (
        1000.0,
    )
    html = repeat.render(home, content)
    assert "run-2 ended interrupted" in html


def test_a_modelled_series_says_so(tmp_path: Path) -> None:
    """A prediction must never be taken for a measurement, however often it was made."""
    home = tmp_path / "runs"
    content = series(home, [1.0, 1.0], ["pass", "pass"])
    assert "MODELLED" not in content.headline
    for number in (1, 2):
        summary = folder.read_json(home / f"run-{number}" / folder.SUMMARY)
        folder.write_json(
            home / f"run-{number}" / folder.SUMMARY, {**summary, "virtual_time": True}
        )
    file = repeat.SeriesFile(home, content)
    file.gather()
    content = file.content
    assert content.headline.startswith("MODELLED")
    assert "Plimsoll repeated run, MODELLED" in repeat.render(home, content)
    assert '<p class="modelled">MODELLED' in repeat.render(home, content)


def test_a_report_of_the_series_can_be_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for a single run: from the folder, without the disk."""
    home = tmp_path / "runs"
    series(home, [1.0, 1.0], ["fail", "pass"])
    (home / folder.REPORT).unlink(missing_ok=True)
    code = run_program(["report", str(home)])
    content = repeat.read(home)
    assert {run.result for run in content.runs} == {content.result}, "both are copies of one run"
    assert (home / folder.REPORT).exists()
    assert code == {"pass": 0, "fail": 1, "inconclusive": 3}[content.result]
    assert "the worst of 2 runs" in capsys.readouterr().out


def test_every_named_test_can_be_repeated() -> None:
    """Also the tests that are made from a table of options."""
    command = load("test")
    assert len(command.commands) > 1
    for name, verb in command.commands.items():
        # A curve is many runs already.
        assert name == "io" or any("--repeat" in parameter.opts for parameter in verb.params), name


def performance(home: Path, *further: str) -> list[str]:
    return [
        *PLIMSOLL,
        "test",
        "performance",
        str(home / "databases"),
        "--databases",
        "1",
        "--size-mib",
        "64",
        "--cache-mib",
        "32",
        "--out",
        str(home / "series"),
        "--yes",
        "--quiet",
        *further,
    ]


def test_an_interrupted_series_keeps_what_it_has(tmp_path: Path) -> None:
    """Ctrl-C in the first of many runs ends the series cleanly.

    One run, exit code 4, and the list says so.
    """
    command = performance(tmp_path, "--minutes", "10", "--repeat", "3")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    events = tmp_path / "series" / "run-1" / folder.EVENTS
    deadline = time.monotonic() + 60
    while not (events.exists() and "measure" in events.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    content = repeat.read(tmp_path / "series")
    assert process.returncode == 4, output
    assert [run.ending for run in content.runs] == ["interrupted"]
    assert content.finished
    assert "2 of 3 did not take place" in content.headline
    assert (tmp_path / "series" / "run-1" / folder.VERDICT).exists()


@pytest.mark.slow
def test_three_real_runs_in_a_row(tmp_path: Path) -> None:
    """The whole way: prepared once, run three times, compared with itself as whole runs."""
    command = performance(tmp_path, "--minutes", "0.04", "--repeat", "3", "--json")
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    content = json.loads(result.stdout)
    assert [run["ending"] for run in content["runs"]] == ["complete"] * 3
    assert result.stderr.count("of databases to prepare") == 1
    assert run_program(["compare", str(tmp_path / "series"), str(tmp_path / "series")]) == 0


def test_a_series_with_a_killed_run_is_no_pass(tmp_path: Path) -> None:
    """Two passes and a run that was killed exited with 0: what the killed run saw, nobody knows."""
    home = tmp_path / "runs"
    file = repeat.SeriesFile(home, series(home, [1.0, 1.0], ["pass", "pass"]))
    file.note(wanted_count=3, finished=False)
    file.begin_run()
    judged = repeat.judge_series(home)
    assert (judged.result, judged.exit_code) == ("inconclusive", 3)
    assert "1 begun and without a result" in str(judged.content.headline)


def test_a_series_whose_second_run_cannot_be_restored_is_no_pass(tmp_path: Path) -> None:
    """The set changed between two runs.

    The first one counts; the series said a pass, and of its second run that it was begun.
    """
    told = {
        "name": "nightly",
        "target": [{"name": "disk", "path": str(tmp_path / "disk")}],
        "instance": [
            {"name": "one", "database_size_mib": 64, "cache_mib_min": 1, "cache_mib_max": 4}
        ],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 1}, {"kind": "stop"}],
    }
    allowed = {"create": True, "allow_system_disk": True}
    saved = tmp_path / "set"
    plan = plimsoll.build_plan(told)
    prepared = plimsoll.preparing(plan)
    found = plimsoll.check(prepared, **allowed)
    place = plimsoll.make_run_folder(prepared, tmp_path / "prepared")
    plimsoll.measure(prepared, place, found=found)
    plimsoll.save_set(found.run, saved, lambda text: None)
    plan = plimsoll.build_plan({**told, "restore_from": str(saved)})
    victim = next((saved / "one" / "databases").glob("*.edb"))

    class Spoils(plimsoll.Listener):
        """Changes a byte of the set when the second run begins."""

        def say(self, text: str) -> None:
            if text == "run 2 of 3":
                with victim.open("r+b") as file:
                    file.seek(70_000)
                    file.write(b"other bytes")

    with pytest.raises(plimsoll.FolderError, match="its bytes have changed since"):
        plimsoll.repeat(
            plan, 3, tmp_path / "series", found=plimsoll.check(plan, **allowed), listener=Spoils()
        )
    content = repeat.read(tmp_path / "series")
    assert [run.ending for run in content.runs] == ["complete", "not begun"]
    assert "its bytes have changed since" in content.runs[1].reasons[0]
    assert content.finished and content.result in ("inconclusive", "fail")
    assert "begun" not in str(content.headline), "it was not"
    assert "2 of 3 did not take place" in str(content.headline)
    assert (tmp_path / "series" / folder.REPORT).exists()


def test_a_series_whose_first_run_leaves_the_storage_degraded_ends_there(tmp_path: Path) -> None:
    """What was measured is kept, and the whole ends as that run did: nothing was wrong with what
    was asked for.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(f"""kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{tmp_path / "data"}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "load", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 1 }}]
[[event]]
name = "flag"
after_s = 0.2
command = ["true"]
undo = ["false"]
""")
    home = tmp_path / "series"
    options = ("--yes", "--create", "--allow-system-disk", "--allow-commands", "--repeat", "3")
    done = run_plimsoll("run", plan, *options, "--out", home, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    told = " ".join(done.stderr.split())
    assert "run 2 of 3 was not begun" in told and 'event "flag" is not undone' in told
    assert f"`plimsoll clean {home / 'run-1'} --allow-commands`" in told
    content = repeat.read(home)
    assert [run.ending for run in content.runs] == ["complete", "not begun"]
    assert content.runs[0].result == "inconclusive" and content.result == "inconclusive"
    assert content.finished and "2 of 3 did not take place" in str(content.headline)
    assert (home / folder.REPORT).exists()
