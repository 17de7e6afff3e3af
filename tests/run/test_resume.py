"""A run that a crash cut off goes on.

On the same storage only, with its gap on record, and with what it may still claim.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.phase_actions import Measure
from plimsoll.documents.summary import Gap
from plimsoll.files import folder
from plimsoll.host.error_counters import first_of
from plimsoll.host.identity import Identity, identity_of
from plimsoll.pipeline.background import no_result_in_words
from plimsoll.plan.complete import plan_of_options
from plimsoll.run import resume
from tests.faults.test_crashes import kill_when, performance
from tests.support.places import PLIMSOLL, loop_device, mounted, plimsoll
from tests.support.plain_stages import filled


def content(home: Path, name: str) -> Any:
    return json.loads((home / "killed" / name).read_text())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run killed in the middle of its measured phase."""
    home = tmp_path_factory.mktemp("resume")
    command = [*PLIMSOLL, *performance(home, "--minutes", "0.1", "--out", str(home / "killed"))]
    kill_when(command, home, "measure started", 2.5)
    assert not (home / "killed" / folder.OUTCOME).exists()
    shutil.copytree(home / "killed", home / "other")
    shutil.copytree(home / "killed", home / "early")
    shutil.copytree(home / "disk", home / "disk-early")
    return home


@pytest.fixture(scope="module")
def resumed(killed: Path) -> subprocess.CompletedProcess[str]:
    """The run gone on with, whichever test asks first.

    They may run in any order, and in different processes.
    """
    return plimsoll("resume", killed / "killed", cwd=killed)


def test_JST_17_another_storage_is_refused(killed: Path) -> None:
    """Databases restored to another array would be measured under the first one's name."""
    environment = json.loads((killed / "other" / folder.ENVIRONMENT).read_text())
    identity = environment["targets"][0]["identity"]
    assert Identity(**identity).is_known(), "this machine says nothing of its storage"
    identity |= {
        "file_system_uuid": "11111111-2222-3333-4444-555555555555",
        "device_serial": "of another",
        "source": "b:/c",
    }
    folder.write_json(killed / "other" / folder.ENVIRONMENT, environment)
    result = plimsoll("resume", killed / "other", cwd=killed)
    assert result.returncode == 2
    assert "is not the storage the run began on" in result.stderr
    assert "11111111-2222-3333-4444-555555555555" in result.stderr
    assert not (killed / "other" / "before-gap-1").exists(), "nothing was changed"


def test_JST_17_a_killed_run_goes_on(
    killed: Path, resumed: subprocess.CompletedProcess[str]
) -> None:
    """Recovered, measured for the rest of its time, checked, judged, and with the gap in events and
    summary.
    """
    assert resumed.returncode in (0, 1, 3), resumed.stderr
    assert "will be recovered from its log" in resumed.stderr
    summary = content(killed, folder.SUMMARY)
    assert summary["ending"] == "complete", summary["error"]
    (gap,) = summary["gaps"]
    assert gap["phase"] == "measure"
    assert 1.5 < gap["phase_seconds_before"] < 6.5
    assert gap["seconds"] > 0
    assert summary["window"]["seconds"] == pytest.approx(6 - gap["phase_seconds_before"], abs=0.5)
    assert summary["total"]["pages_damaged"] == 0
    events = folder.read_events(killed / "killed")
    assert events[0]["kind"] == "gap"
    assert any(event["kind"] == "recovered" for event in events)
    before = folder.read_events(killed / "killed" / "before-gap-1")
    assert any(event["kind"] == "prepared" for event in before), "what happened before is kept"
    assert any(
        "was cut off for" in reason
        for reason in content(killed, folder.VERDICT)["not_qualifying_because"]
    )
    assert "was cut off at" in (killed / "killed" / folder.REPORT).read_text()


def test_a_run_that_ended_is_not_resumed(
    killed: Path, resumed: subprocess.CompletedProcess[str]
) -> None:
    """Neither is a folder without a run."""
    assert resumed.returncode in (0, 1, 3), resumed.stderr
    again = plimsoll("resume", killed / "killed", cwd=killed)
    assert again.returncode == 2
    assert "came to its end" in again.stderr
    (killed / "empty").mkdir()
    assert plimsoll("resume", killed / "empty", cwd=killed).returncode == 2


def test_what_could_not_be_opened_goes_on_when_that_is_put_right(
    killed: Path, tmp_path: Path
) -> None:
    """A log that was moved away ended the run for good, as a fault of the storage.

    All of it goes: of a run that was killed while a generation began, the last file holds nothing.
    """
    run, disk = tmp_path / "run", tmp_path / "disk"
    shutil.copytree(killed / "early", run)
    shutil.copytree(killed / "disk-early", disk)
    for path in (run / folder.PLAN, disk / "instance1/plimsoll-instance.json"):
        path.write_text(path.read_text().replace(str(killed / "disk"), str(disk)))
    logs, kept = sorted((disk / "instance1").glob("E00*.log")), tmp_path / "kept"
    kept.mkdir()
    for log in logs:
        log.rename(kept / log.name)
    for again in ([], ["--again"]):
        refused = plimsoll("resume", run, *again, cwd=tmp_path)
        # A storage that has lost a log looks just so.
        assert refused.returncode == 1, refused.stderr
        assert "the storage has failed, unless somebody changed its files" in refused.stderr
        assert f"{run} could not go on: " in refused.stderr
        assert f"put that right, and `plimsoll resume {run}` goes on" in refused.stderr
        state = plimsoll("status", run, cwd=tmp_path)
        assert f"`plimsoll resume {run}` goes on" in state.stdout
    for log in logs:
        (kept / log.name).rename(log)
    done = plimsoll("resume", run, cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    summary = json.loads((run / folder.SUMMARY).read_text())
    assert summary["ending"] == "complete", summary["error"]
    assert [gap["phase"] for gap in summary["gaps"]] == ["measure", "prepare", "prepare"]
    assert summary["window"]["seconds"] > 1
    kinds = [event["kind"] for event in folder.read_events(run / "before-gap-2")]
    assert "run_ended_early" in kinds, "what was found stays on record"


PLAN = plan_of_options(
    {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one"}],
        "phase": [
            {"kind": "prepare"},
            {"kind": "warm_up"},
            {"kind": "measure", "name": "morning", "duration_s": 100},
            {"kind": "measure", "name": "evening", "duration_s": 100},
            {"kind": "stop"},
            {"kind": "checksum"},
        ],
    }
)


@pytest.mark.parametrize(
    ("completed", "phase", "again", "left"),
    [
        (
            ["prepare"],
            "warm_up",
            False,
            ["prepare", "warm_up", "morning 100", "evening 100", "stop", "checksum"],
        ),
        (
            ["prepare", "warm_up"],
            "morning",
            False,
            ["prepare", "warm_up", "morning 70", "evening 100", "stop", "checksum"],
        ),
        (
            ["prepare", "warm_up"],
            "morning",
            True,
            ["prepare", "warm_up", "morning 100", "evening 100", "stop", "checksum"],
        ),
        (
            ["prepare", "warm_up", "morning"],
            "evening",
            False,
            ["prepare", "warm_up", "evening 70", "stop", "checksum"],
        ),
        (
            ["prepare", "warm_up", "morning", "evening", "stop"],
            "checksum",
            False,
            ["prepare", "stop", "checksum"],
        ),
    ],
)
def test_what_is_left_to_do(completed: list[str], phase: str, again: bool, left: list[str]) -> None:
    """Databases are opened and caches warmed again.

    What was done is not done twice unless that is wanted.
    """
    gap = Gap.from_plain(
        filled(Gap, {"completed": completed, "phase": phase, "phase_seconds_before": 30.0})
    )
    found = resume.remaining_phases(PLAN, gap, again=again)
    shown = [
        f"{item.name} {item.action.duration_s:g}" if isinstance(item.action, Measure) else item.name
        for item in found
    ]
    assert shown == left
    lost = resume.measured_lost(PLAN, gap, found)
    assert lost == ("morning" in completed), "a rate that nobody measures again cannot be judged"


def test_a_storage_is_found_where_it_is_mounted_now(tmp_path: Path) -> None:
    """After a restart a file system may be mounted elsewhere: it is known by its UUID."""
    with loop_device(tmp_path / "backing", 64) as device:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        with mounted(device, tmp_path / "before") as place:
            (place / "test").mkdir()
            recorded = identity_of(place / "test")
        plan = plan_of_options(
            {
                "target": [{"name": "disk", "path": str(tmp_path / "before/test")}],
                "instance": [{"name": "one"}],
            }
        )
        environment = {"targets": [{"identity": recorded.as_data()}]}
        with pytest.raises(resume.ResumeError, match="is not the storage"):
            resume.find_storage(plan, environment)
        with mounted(device, tmp_path / "after"):
            moved, remarks = resume.find_storage(plan, environment)
            assert plan.run.targets[0].path == str(tmp_path / "before/test"), (
                "the recorded plan stays"
            )
            assert moved.run.targets[0].path == str(tmp_path / "after/test")
            assert moved.run.instances[0].directory == str(tmp_path / "after/test/one")
            assert "is now at" in remarks[0]


def test_a_run_that_was_resumed_before_is_measured_again_for_its_whole_time(tmp_path: Path) -> None:
    """After a first resume the plan of the run holds what was left of it.

    100 s of 7,200 were measured "again".
    """
    first = Gap.from_plain(
        filled(
            Gap,
            {"completed": ["prepare", "warm_up"], "phase": "morning", "phase_seconds_before": 90.0},
        )
    )
    PLAN.write(tmp_path / folder.PLAN)
    resume.put_aside(tmp_path, first)
    left = resume.as_left(PLAN, resume.remaining_phases(PLAN, first, again=False))
    left.write(tmp_path / folder.PLAN)
    second = Gap.from_plain(
        filled(Gap, {"completed": ["prepare", "warm_up", "morning"], "phase": "evening"})
    )
    whole = resume.whole_plan(tmp_path, left)
    found = resume.remaining_phases(whole, second, again=True)
    assert [item.action.duration_s for item in found if isinstance(item.action, Measure)] == [
        100,
        100,
    ]
    assert resume.whole_plan(tmp_path / "never resumed", left) == left


def test_what_a_disk_said_before_a_gap_is_not_forgotten(tmp_path: Path) -> None:
    """Counters that grew and lines of the kernel went with the process that would have asked."""
    mark = {"boot_id": "one", "next_record": 7}
    gap = Gap.from_plain(filled(Gap, {"completed": [], "phase": "morning"}))
    for counted in (2, 5):
        PLAN.write(tmp_path / folder.PLAN)
        circumstances = {"error_counters": {"sda": counted}, "kernel_log_mark": mark}
        folder.write_json(tmp_path / folder.ENVIRONMENT, circumstances)
        resume.put_aside(tmp_path, gap)
    assert resume.began_with(tmp_path) == ([{"sda": 2}, {"sda": 5}], mark)
    assert first_of([{"sda": 2}, {"sda": 5}, {"sda": 6}]) == {"sda": 2}
    assert resume.began_with(tmp_path / "never resumed") == ([], None)


def test_what_is_locked_or_full_before_a_gap_is_no_error_of_the_storage(tmp_path: Path) -> None:
    """A resumed run failed by I/O errors because another process had held a file."""
    kinds = ("phase_started", "io_refused", "io_refused", "io_error", "bad_pages")
    lines = [
        {"time_ns": 1, "utc_ns": 1, "level": "error", "kind": kind, "phase": "morning", "text": ""}
        for kind in kinds
    ]
    (tmp_path / folder.EVENTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    PLAN.write(tmp_path / folder.PLAN)
    folder.write_json(tmp_path / folder.ENVIRONMENT, {})
    assert resume.gap_of(tmp_path).errors_before == 2


@pytest.mark.parametrize(
    ("story", "elapsed_s", "copied_after_s", "before_s"),
    [
        ("killed, and resumed where it lies", 128.0, 0.5, 28.5),
        ("a copy made much later: its files are of the copying", 128.0, 76.0, 28.0),
        ("files with the time of an archive", 128.0, -10_000.0, 28.0),
        ("a second Ctrl-C: nothing tells of its progress", None, 76.0, 0.0),
        ("a measurement cannot last longer than it was to", 500.0, 0.0, 100.0),
    ],
)
def test_what_the_files_hold_says_when_a_run_was_cut_off(
    tmp_path: Path, story: str, elapsed_s: float | None, copied_after_s: float, before_s: float
) -> None:
    """`cp -r` of a killed run gave its files a new time: the rest of the measurement was left out.

    The copy was said to have measured 104 of 60 s, and was finished for good.
    """
    begun_utc_ns, second = 1_700_000_000 * 10**9, 10**9
    line = {
        "time_ns": 100 * second,
        "utc_ns": begun_utc_ns + 100 * second,
        "level": "info",
        "kind": "phase_started",
        "phase": "morning",
        "text": "",
    }
    (tmp_path / folder.EVENTS).write_text(json.dumps(line) + "\n")
    PLAN.write(tmp_path / folder.PLAN)
    folder.write_json(tmp_path / folder.ENVIRONMENT, {})
    if elapsed_s is not None:
        folder.write_json(tmp_path / folder.PROGRESS, {"elapsed_s": elapsed_s})
    last_utc_ns = begun_utc_ns + int(1e9 * (elapsed_s or 128.0))
    for path in tmp_path.iterdir():
        os.utime(path, ns=(0, last_utc_ns + int(1e9 * copied_after_s)))
    gap = resume.gap_of(tmp_path)
    assert gap.phase_seconds_before == pytest.approx(before_s), story
    names = [item.name for item in resume.remaining_phases(PLAN, gap, again=False)]
    assert ("morning" in names) == (before_s < 100), story


def test_a_phase_that_was_stopped_is_not_complete(tmp_path: Path) -> None:
    """A second Ctrl-C while the first closed the databases: the rest was never measured."""
    PLAN.write(tmp_path / folder.PLAN)
    folder.write_json(tmp_path / folder.ENVIRONMENT, {})
    lines = [
        {"time_ns": int(at_s * 1e9), "utc_ns": int(at_s * 1e9), "level": "info", "kind": kind}
        | {"phase": phase, "text": ""}
        for at_s, kind, phase in (
            (0, "phase_started", "warm_up"),
            (5, "phase_ended", "warm_up"),
            (5, "phase_started", "morning"),
            (35, "phase_ended", "morning"),
            (35, "run_ended_early", None),
            (35, "phase_started", "stop after early end"),
            (40, "closing", "stop after early end"),
        )
    ]
    (tmp_path / folder.EVENTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    gap = resume.gap_of(tmp_path)
    assert (gap.phase, gap.completed, gap.phase_seconds_before) == ("morning", ("warm_up",), 30.0)
    left = {item.name: item.action for item in resume.remaining_phases(PLAN, gap, again=False)}
    assert left["morning"].duration_s == 70  # type: ignore[union-attr]
    assert not resume.measured_lost(PLAN, gap, resume.remaining_phases(PLAN, gap, again=False))


def told(kind: str) -> str:
    line = {"time_ns": 1, "utc_ns": 1, "level": "info", "kind": kind, "phase": "morning"}
    return json.dumps({**line, "text": ""}) + "\n"


STAGED = {"kind": "command", "name": "pull", "after_s": 1.0, "run": ["true"], "undo": ["true"]}
KILLED: dict[str, dict[str, Any]] = {
    "in the load": {},
    "before it began": {"environment": None},
    "before anything happened": {"events": ""},
    "a modelled run": {"plan": {"modelled": {"preset": "any"}}},
    "events were staged": {"staged": [STAGED]},
}


@pytest.mark.parametrize("why", KILLED)
def test_resume_is_advised_only_where_it_goes_on(tmp_path: Path, why: str) -> None:
    """`status` advised what `resume` refused: a run that staged events, or had not begun."""
    planted = KILLED[why]
    plan = PLAN.plain()
    plan["run"] |= planted.get("plan", {})
    plan["events"] = planted.get("staged", [])
    folder.write_json(tmp_path / folder.PLAN, plan)
    if "environment" not in planted:
        folder.write_json(tmp_path / folder.ENVIRONMENT, {"targets": []})
    (tmp_path / folder.EVENTS).write_text(planted.get("events", told("phase_started")))
    words = no_result_in_words(tmp_path)
    if planted:
        assert "plimsoll resume" not in words and why in words
        with pytest.raises(resume.ResumeError, match=why):
            resume.gap_of(tmp_path)
    else:
        assert words == f"{tmp_path} was killed; `plimsoll resume {tmp_path}` goes on"
        assert resume.gap_of(tmp_path).phase == "morning"
