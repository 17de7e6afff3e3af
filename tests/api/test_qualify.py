"""The way from a plan to a verdict, for a program that is no command line.

It is told, it can stop, and nothing is printed.
"""

import copy
import threading
from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll.cli import run_program


def plan_of(place: Path, **changes: Any) -> plimsoll.Plan:
    """One database of 64 MiB, prepared and measured for two seconds."""
    tables = {
        "name": "small",
        "target": [{"name": "disk", "path": str(place)}],
        "instance": [
            {"name": "one", "database_size_mib": 64, "cache_mib_max": 4, "cache_mib_min": 1}
        ],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 2}, {"kind": "stop"}],
    }
    return plimsoll.build_plan(tables | changes)


class Told(plimsoll.Listener):
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.figures: plimsoll.Figures | None = None
        self.rows = 0

    def say(self, text: str) -> None:
        self.heard.append(("say", text))

    def note(self, text: str) -> None:
        self.heard.append(("note", text))

    def warning(self, text: str) -> None:
        self.heard.append(("warning", text))

    def begins(self, figures: plimsoll.Figures) -> None:
        self.heard.append(("begins", figures.name))
        self.figures = figures

    def event(self, event: plimsoll.Event) -> None:
        self.heard.append(("event", event.kind))

    def sample(self, table: plimsoll.Columns) -> None:
        self.rows += len(table["end_ns"])

    def ends(self) -> None:
        self.heard.append(("ends", ""))


def test_a_plan_becomes_a_verdict_and_only_the_listener_hears_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A notebook shows progress in its own way; lines on its error stream would be noise."""
    told, plan = Told(), plan_of(tmp_path / "disk")
    given = copy.deepcopy(plan)
    result = plimsoll.qualify(plan, tmp_path / "run", listener=told)
    assert capfd.readouterr() == ("", "")
    assert (result.ending, result.folder) == ("complete", tmp_path / "run")
    assert result.result in ("pass", "fail", "inconclusive")
    assert result.headline in "\n".join(result.lines())
    assert result.report == tmp_path / "run" / "report.html"
    assert result.summary.total.database_iops > 0
    kinds = [kind for kind, _ in told.heard]
    assert kinds[0] == "say" and "64 MiB of databases to prepare" in told.heard[0][1]
    assert kinds.index("begins") < kinds.index("event") < kinds.index("ends")
    assert told.rows > 0 and told.figures is not None and told.figures.now_ns > 2e9
    assert plan == given, "a plan is never edited once complete"
    assert not (tmp_path / "run" / "progress.json").exists()
    again = plimsoll.judge(tmp_path / "run")
    assert again.verdict == result.verdict == plimsoll.read_result(tmp_path / "run").verdict


def test_a_run_is_stopped_from_another_thread(tmp_path: Path) -> None:
    """A page with a button has no Ctrl-C; what was measured up to then is judged and kept."""
    stop, results = threading.Event(), list[plimsoll.Result]()
    phases = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 600}, {"kind": "stop"}]
    plan = plan_of(tmp_path / "disk", phase=phases)

    class Stopping(Told):
        def event(self, event: plimsoll.Event) -> None:
            super().event(event)
            if event.kind == "phase_started" and event.phase == "measure":
                threading.Timer(1.0, stop.set).start()

    told = Stopping()
    carrying_out = threading.Thread(
        target=lambda: results.append(
            plimsoll.qualify(plan, tmp_path / "run", listener=told, stop=stop)
        )
    )
    carrying_out.start()
    carrying_out.join(60)
    assert not carrying_out.is_alive(), "it did not stop"
    assert results[0].ending == "interrupted"
    assert results[0].exit_code == plimsoll.exit_codes.INTERRUPTED
    assert plimsoll.check(plan).reused == ["one"], "the databases were closed"


def test_each_step_gives_a_new_value_and_leaves_the_plan_alone(tmp_path: Path) -> None:
    """A plan that is written to on its way means something else the second time."""
    plan = plan_of(tmp_path / "disk")
    given = copy.deepcopy(plan)
    found = plimsoll.check(plan, destroy=["SERIAL"])
    assert found.run.destroy_serials == ("SERIAL",)
    assert plimsoll.forecast(plan, found).seconds > 0
    bounded = plimsoll.bounded(plan, max_iops=100, stop_if=["database_read_errors>0"])
    assert (bounded.run.max_iops, bounded.stop_if) == (100, ("database_read_errors>0",))
    prepared = plimsoll.preparing(plan)
    assert [phase.name for phase in prepared.run.phases] == ["prepare", "stop"]
    assert plan == given


def test_a_run_that_cannot_start_says_every_reason(tmp_path: Path) -> None:
    """One error with all reasons is corrected in one go."""
    (tmp_path / "disk" / "one").mkdir(parents=True)
    (tmp_path / "disk" / "one" / "letters.txt").write_text("dear")
    with pytest.raises(plimsoll.PreflightError, match="was not made by Plimsoll") as caught:
        plimsoll.qualify(plan_of(tmp_path / "disk"), tmp_path / "run")
    assert caught.value.problems == str(caught.value).split("\n")
    assert not (tmp_path / "run").exists()
    with pytest.raises(plimsoll.RefusedError, match="is not measured"):
        plimsoll.bounded(plan_of(tmp_path / "disk"), stop_if=["nonsense>1"])


def test_a_repeated_run_ends_with_the_worst_of_its_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Modelled runs of one series differ in their seed; the plan does not."""
    plan = plan_of(
        tmp_path,
        target=[{"name": "array", "modelled": "emc-vnxe3300"}],
        phase=[{"kind": "prepare"}, {"kind": "measure", "duration_s": 5}, {"kind": "stop"}],
    )
    given = copy.deepcopy(plan)
    series = plimsoll.repeat(plan, 2, tmp_path / "series")
    assert capfd.readouterr() == ("", "")
    assert [result.folder.name for result in series.results] == ["run-1", "run-2"]
    assert series.result == series.content.result and series.exit_code in (0, 1, 3)
    assert plan == given
    assert plimsoll.judge_series(tmp_path / "series").content.figures == series.content.figures
    assert run_program(["report", str(tmp_path / "series")]) == series.exit_code


def test_a_cache_that_cannot_be_filled_is_told_before_the_run(tmp_path: Path) -> None:
    """A run of "about 10 s" warmed up for half an hour."""
    told, cache = Told(), {"cache_mib_max": 32, "cache_mib_min": 1}
    phases = [{"kind": kind} for kind in ("prepare", "warm_up", "stop")]
    for size in (256, 128):
        instance = {"name": "one", "database_size_mib": 64, "cache_mib_max": size}
        plimsoll.check(plan_of(tmp_path, instance=[instance], phase=phases), listener=told)
    warned = [text for kind, text in told.heard if kind == "warning" and "warm_up" in text]
    assert len(warned) == 2
    assert "smaller than their cache: one (64 of 256 MiB)" in warned[0]
    assert "up to 30 min 0 s" in warned[0]
    quiet = Told()
    small = {"name": "one", "database_size_mib": 64} | cache
    plimsoll.check(plan_of(tmp_path, instance=[small], phase=phases), listener=quiet)
    assert not any("warm_up" in text for _, text in quiet.heard)
