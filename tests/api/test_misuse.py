"""The API as a stranger calls it: twice at once, with another plan's findings, with text for paths,
with a listener that fails. What was measured is kept, and what is refused changes nothing.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pytest

import plimsoll
from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.run.execute import _write_down
from tests.api.test_qualify import plan_of
from tests.support.harm import wait_until

#: Carries out a plan of 64 MiB under a name that says nothing of Plimsoll, until it is stopped.
PROGRAM = """
import sys
from pathlib import Path
from unittest.mock import Mock
import plimsoll
from tests.api.test_qualify import plan_of
phases = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 600}, {"kind": "stop"}]
plan = plan_of(Path(sys.argv[1]), phase=phases)
print(plimsoll.qualify(plan, sys.argv[2]).ending)
"""
ROOT = Path(__file__).parents[2]


def modelled_tables(array: str) -> dict[str, object]:
    return {
        "name": array,
        "target": [{"name": "array", "modelled": array}],
        "instance": [{"name": "one", "database_size_mib": 64}],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 4}, {"kind": "stop"}],
    }


def modelled(array: str = "emc-vnxe3300") -> plimsoll.Plan:
    return plimsoll.build_plan(modelled_tables(array))


def test_a_run_of_any_program_goes_on_for_everybody(tmp_path: Path) -> None:
    """Whoever is told that it was killed, and resumes it, destroys what it measures."""
    disk, run = tmp_path / "disk", tmp_path / "run"
    (tmp_path / "mine.py").write_text(PROGRAM)
    command = [sys.executable, tmp_path / "mine.py", disk, run]
    mine = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    try:
        wait_until(lambda: (run / folder.PROGRESS).exists() and len(folder.read_events(run)) > 3)
        assert plimsoll.state_of(run)["state"] == "running"
        for refused in (plimsoll.resume, plimsoll.judge):
            with pytest.raises(plimsoll.FolderError, match="goes on"):
                refused(run)
        with pytest.raises(plimsoll.FolderError, match="goes on"):
            plimsoll.make_run_folder(modelled(), run)
        assert not list(run.glob("before-gap-*"))
    finally:
        mine.terminate()
        assert mine.wait(60) == 0
    assert plimsoll.read_result(run).ending == "interrupted"


def test_a_process_that_took_the_number_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    """Numbers of processes are given out again, also to other programs of ours."""
    folder.write_json(tmp_path / folder.PLAN, {})
    mark = folder.progress_mark()
    folder.write_json(tmp_path / folder.PROGRESS, mark)
    assert plimsoll.state_of(tmp_path)["state"] == "running"
    ticks = mark["process_began_ticks"] or 0
    folder.write_json(tmp_path / folder.PROGRESS, mark | {"process_began_ticks": ticks - 1})
    assert plimsoll.state_of(tmp_path)["state"] == "killed"


def _begin(name: str, out: str, both: object, answers: object) -> None:
    plan = modelled().replace(name=name)
    home = plimsoll.make_run_folder(plan, Path(out))
    both.wait()  # type: ignore[attr-defined]
    try:
        found = plimsoll.check(plan)
        answers.put(plimsoll.qualify_into(plan, home, found=found).folder.name)  # type: ignore[attr-defined]
    except plimsoll.FolderError as error:
        answers.put(str(error))  # type: ignore[attr-defined]


def test_of_two_runs_into_one_folder_one_is_refused(tmp_path: Path) -> None:
    """Two that write into one folder leave a result of the one under the plan of the other."""
    context = multiprocessing.get_context("spawn")
    both, answers = context.Barrier(2), context.Queue()
    runs = [
        context.Process(target=_begin, args=(name, str(tmp_path / "run"), both, answers))
        for name in "AB"
    ]
    for run in runs:
        run.start()
    said = sorted(answers.get(timeout=120) for _ in runs)
    for run in runs:
        run.join()
    assert said[1] == "run", said
    assert "goes on" in said[0] or "holds an earlier run" in said[0]
    assert plimsoll.read_result(tmp_path / "run").ending == "complete"


def test_what_was_found_for_another_plan_is_refused(tmp_path: Path) -> None:
    """A slip in a loop would measure one storage under the name of another."""
    one, other = modelled(), modelled("nearline-raid6")
    with pytest.raises(plimsoll.PreflightError, match="another plan"):
        plimsoll.qualify(one, tmp_path / "run", found=plimsoll.check(other))
    assert not (tmp_path / "run" / folder.PLAN).exists()


@pytest.mark.parametrize(
    "error", [RuntimeError("mine"), BrokenPipeError("mine"), KeyboardInterrupt()], ids=repr
)
def test_what_a_listener_raises_ends_the_run_and_comes_out_as_it_is(
    tmp_path: Path, error: BaseException
) -> None:
    """The load must not go on behind the back of a notebook, and no disk is to blame."""
    phases = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 600}, {"kind": "stop"}]
    plan = plan_of(tmp_path / "disk", phase=phases)

    class Failing(plimsoll.Listener):
        phase: str | None = None

        def event(self, event: plimsoll.Event) -> None:
            self.phase = event.phase

        def sample(self, table: plimsoll.Columns) -> None:
            if self.phase == "measure":
                raise error

    with pytest.raises(type(error)) as raised:
        plimsoll.qualify(plan, tmp_path / "run", listener=Failing())
    assert raised.value is error
    # The error is kept, as a notebook keeps it; the databases are free all the same.
    assert plimsoll.check(plan).reused == ["one"]
    result = plimsoll.judge(tmp_path / "run")
    assert result.ending == "interrupted"
    assert (tmp_path / "run" / folder.SAMPLES).exists()


def test_what_is_raised_while_databases_are_restored_comes_out_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that nobody reads is no fault of the run folder, whose space is not to be checked."""
    error = BrokenPipeError("mine")

    class Failing(plimsoll.Listener):
        def say(self, text: str) -> None:
            if text == "one is restored":
                raise error

    monkeypatch.setattr(
        preflight, "begin_with", lambda _found, _source, say: say("one is restored")
    )
    with pytest.raises(BrokenPipeError) as raised:
        plimsoll.qualify(modelled(), tmp_path / "run", listener=Failing())
    assert raised.value is error


def test_a_run_that_was_measured_and_not_judged_says_so(tmp_path: Path) -> None:
    """Nothing of it is left to do but the verdict."""
    plan, run = modelled(), tmp_path / "run"
    run.mkdir()
    plimsoll.measure(plan, run, found=plimsoll.check(plan))
    assert plimsoll.state_of(run)["state"] == "killed"
    assert "plimsoll report" in plimsoll.no_result_in_words(run)
    [entry] = [entry for entry in plimsoll.list_runs(tmp_path) if entry.folder == "run"]
    assert "plimsoll report" in str(entry.problem)
    assert plimsoll.judge(run).ending == "complete"


def test_text_is_as_good_as_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook has text; a sound folder must not be called damaged for it."""
    monkeypatch.chdir(tmp_path)
    result = plimsoll.qualify(modelled(), "run")
    assert plimsoll.judge("run").headline == plimsoll.read_result("run").headline == result.headline
    assert [entry.folder for entry in plimsoll.list_runs(".")] == ["run"]
    assert plimsoll.read_events("run")
    assert plimsoll.verify_files("run").report is None
    assert plimsoll.kind_of_folder("run") == "run"
    assert plimsoll.pending_undos("run") == ()
    with pytest.raises(plimsoll.ResumeError):
        plimsoll.begin_resume("run")
    with pytest.raises(plimsoll.ComparisonError, match="two run folders"):
        plimsoll.compare_runs("run")
    for wrong in (None, 3):
        with pytest.raises(TypeError):
            plimsoll.judge(wrong)  # type: ignore[arg-type]


def test_a_ceiling_is_a_number_above_zero() -> None:
    """Zero would be no ceiling, where somebody means to protect a shared array."""
    for wrong in (0, -5, float("nan"), float("inf"), "500"):
        with pytest.raises(plimsoll.PlimsollError, match="no ceiling"):
            plimsoll.bounded(modelled(), max_iops=wrong)  # type: ignore[arg-type]
    text = "database_read_errors>0"
    assert plimsoll.bounded(modelled(), stop_if=text).stop_if == (text,)


def test_numbers_of_sessions_and_runs_are_checked() -> None:
    for sessions in (0, -1, 2.5):
        with pytest.raises(plimsoll.PlimsollError, match="whole number from 1"):
            plimsoll.model("emc-vnxe3300", sessions=sessions)  # type: ignore[arg-type]
    for times in (0, -1, "2"):
        with pytest.raises(plimsoll.PlimsollError, match="whole number from 1"):
            plimsoll.repeat(modelled(), times)  # type: ignore[arg-type]


def test_what_is_no_plan_is_refused_as_such() -> None:
    """`docs/api.md` promises that nothing but a `PlimsollError` comes out."""
    for wrong in (None, [], "x", {1: 2}):
        with pytest.raises(plimsoll.PlimsollError, match="is no plan"):
            plimsoll.build_plan(wrong)  # type: ignore[arg-type]
    calls: tuple[Callable[..., object], ...] = (
        plimsoll.qualify,
        plimsoll.forecast,
        plimsoll.bounded,
        plimsoll.preparing,
        plimsoll.repeat,
    )
    for call in calls:
        with pytest.raises(plimsoll.PlimsollError, match="is no plan"):
            call({"name": "mine"})


def test_tables_that_no_file_can_hold_are_refused_with_every_mistake() -> None:
    """A dictionary has keys and values that TOML has no words for; none of them is our fault."""
    tables = {
        "name": "half \ud800",
        "target": [{"name": "array", "modelled": "emc-vnxe3300", 5: "five"}],
        "instance": [{"name": "one", "database_size_mib": 10**300}, {"name": "one"}],
    }
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.build_plan(tables)
    told = str(raised.value)
    for said in (
        "half \\ud800 is not valid",
        "`target[1].5` is not a key",
        "first used on `instance[1]`",
    ):
        assert said in told, told
    assert max(map(len, told.split("\n"))) < 300
    tables["target"] = tables
    with pytest.raises(plimsoll.RefusedError, match="holds itself"):
        plimsoll.build_plan(tables)


def test_a_file_that_cannot_even_be_named_is_an_input_error(tmp_path: Path) -> None:
    """`docs/api.md` promises that nothing but a `PlimsollError` comes out."""
    for wrong in ("a\0b", "a\ud800b"):
        for read in (plimsoll.read_plan, plimsoll.read_study, plimsoll.stated_requirements):
            with pytest.raises(plimsoll.InputError, match="not valid UTF-8"):
                read(wrong)
    with pytest.raises(plimsoll.SeveralInputsError, match=r"nowhere\.toml"):
        plimsoll.read_catalogues("nowhere.toml")


def test_what_says_that_it_is_something_else_is_no_plan() -> None:
    """A study has instances and phases, too; a plan of them would test something else."""
    with pytest.raises(plimsoll.InputError, match='is "study", but "plan" was expected'):
        plimsoll.build_plan(modelled_tables("emc-vnxe3300") | {"kind": "study"})
    with pytest.raises(plimsoll.InputError, match="`kind` is missing"):
        plimsoll.parse_plan('schema_version = 1\nname = "night"\n')
    assert plimsoll.build_plan(modelled_tables("emc-vnxe3300") | {"kind": "plan"}).name


def test_a_plan_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Editors on Windows write one, and lines that end in CR and LF."""
    text = """kind = "plan"
schema_version = 1
name = "night"
[[target]]
name = "array"
modelled = "emc-vnxe3300"
[[instance]]
name = "one"
database_size_mib = 64
"""
    (tmp_path / "plan.toml").write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    assert plimsoll.read_plan(tmp_path / "plan.toml").name == "night"
    with pytest.raises(plimsoll.InputError, match=":8: `instance"):
        plimsoll.parse_plan("\ufeff" + text.replace('"one"', "1"))


def test_a_star_import_brings_the_api_and_nothing_else() -> None:
    names: dict[str, object] = {"Path": "mine"}
    exec("from plimsoll import *", names)
    assert names["qualify"] is plimsoll.qualify
    assert names["Path"] == "mine"


def test_two_threads_and_one_folder(tmp_path: Path) -> None:
    """Threads of one process are no better than two."""
    said: list[str] = []
    both = threading.Barrier(2)

    def run() -> None:
        home = plimsoll.make_run_folder(modelled(), tmp_path / "run")
        both.wait()
        try:
            plan = modelled()
            plimsoll.qualify_into(plan, home, found=plimsoll.check(plan))
            said.append("done")
        except plimsoll.FolderError as error:
            said.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 2
    assert sum(text == "done" for text in said) == 1, said


def test_values_as_programs_have_them_are_as_good_as_those_of_a_file(tmp_path: Path) -> None:
    """Tuples, paths and numbers of other libraries."""
    given = {
        "name": "night",
        "target": ({"name": "disk", "path": tmp_path},),
        "instance": ({"name": "one", "database_size_mib": Fraction(64)},),
        "phase": ({"kind": "prepare"}, {"kind": "measure", "duration_s": Fraction(5, 2)}),
    }
    plan = plimsoll.build_plan(given)
    assert plan.run.targets[0].path == str(tmp_path)
    assert plan.run.phases[1].action.plain()["duration_s"] == 2.5
    with pytest.raises(plimsoll.InputError, match="`name` is 5, but must be a text"):
        plimsoll.build_plan(given | {"name": 5})


def test_what_is_put_into_a_plan_is_checked() -> None:
    """Otherwise it is found when the report is written, after the night."""
    plan = modelled()
    for wrong in ({"name": 5}, {"run": "fast"}, {"stop_if": "never"}, {"name": None}):
        with pytest.raises(plimsoll.FolderError, match=f"`{next(iter(wrong))}` is"):
            plan.replace(**wrong)
    assert plan.replace(description=None, name="day").name == "day"


def test_a_need_that_no_array_can_be_asked_for_is_refused() -> None:
    """Every mistake of it at once."""
    need = plimsoll.Need(
        volumes_gb=-5.0,
        database_iops=float("nan"),
        copies=0,
        ranking="cheapest",  # type: ignore[arg-type]
        raid_levels=("RAID 7",),  # type: ignore[arg-type]
    )
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.select(need)
    names = {mistake.where for mistake in raised.value.mistakes}
    assert names == {"volumes_gb", "database_iops", "copies", "ranking", "raid_levels"}


def test_a_need_has_the_bounds_that_the_command_line_has() -> None:
    """A program that is told less than a person buys 2.5 copies of storage of no kind."""
    need = plimsoll.Need(
        volumes_gb=1e12,
        database_iops=900.0,
        copies=2.5,  # type: ignore[arg-type]
        databases=0,
        drive_classes=("paper tape",),
    )
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.select(need)
    names = {mistake.where for mistake in raised.value.mistakes}
    assert names == {"volumes_gb", "copies", "databases", "drive_classes"}


@pytest.mark.parametrize("target", [{"modelled": "emc-vnxe3300"}, {"path": "disk"}], ids=str)
def test_a_run_that_was_stopped_before_it_began_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: dict[str, str]
) -> None:
    """A button is pressed while the page still loads; nothing of the storage is touched for it."""
    monkeypatch.chdir(tmp_path)
    stop = threading.Event()
    stop.set()
    plan = plan_of(tmp_path, target=[{"name": "here"} | target])
    found = plimsoll.check(plan, create=True, allow_system_disk=True)
    result = plimsoll.qualify(plan, "run", found=found, stop=stop)
    assert (result.ending, result.result) == ("interrupted", "inconclusive")
    assert not any(phase.complete for phase in result.outcome.phases if phase.kind == "measure")
    assert plimsoll.judge("run").headline == result.headline


def test_a_line_of_the_log_that_is_no_event_spoils_no_verdict(tmp_path: Path) -> None:
    """Another program, or a disk that tears, may have written there."""
    result = plimsoll.qualify(modelled(), tmp_path / "run")
    with (tmp_path / "run" / folder.EVENTS).open("a") as log:
        log.write('{"schema_version": 99}\n{"kind": 5}\n')
    assert plimsoll.judge(tmp_path / "run").headline == result.headline


def test_a_run_that_is_to_stop_is_not_waited_for(tmp_path: Path) -> None:
    """Half a second of load on the storage of others is half a second too much."""

    class Asked:
        stopped = False

        def stop(self) -> None:
            self.stopped = True

        def next_samples(self, _timeout_s: float) -> None:
            assert self.stopped, "it was waited for before it was stopped"

        def next_events(self) -> list[str]:
            return []

    stop, stage = threading.Event(), Mock(waits_for_person=False)
    stage.news.return_value = []
    stop.set()
    with (tmp_path / "events.log").open("w") as log:
        _write_down(Asked(), log, Mock(), Mock(), Mock(), stop, stage, Mock())  # type: ignore[arg-type]


def test_storage_that_went_after_the_check_is_not_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The databases would be made on the system disk, in the name of the array."""
    monkeypatch.delenv("PLIMSOLL_CREATE", raising=False)
    place = tmp_path / "array"
    place.mkdir()
    plan = plan_of(place)
    found = plimsoll.check(plan)
    place.rmdir()
    with pytest.raises(plimsoll.PreflightError, match="array does not exist"):
        plimsoll.qualify(plan, tmp_path / "run", found=found)
    assert not place.exists()


def test_a_need_follows_from_requirements_that_a_program_states() -> None:
    """Those of a CSV have no file."""
    users = {"count": 5000, "mailbox_quota_mb": 2048, "messages_per_day": 150}
    stated = plimsoll.stated_requirements(options={"users": users})
    need = plimsoll.need_of_requirements(stated)
    assert need.database_iops == plimsoll.size(stated).results["database_iops"].value
    for call in (plimsoll.size, plimsoll.need_of_requirements):
        with pytest.raises(plimsoll.RefusedError, match="a dict is no requirements; make them"):
            call({"users": users})  # type: ignore[arg-type]
    with pytest.raises(plimsoll.InvalidValueError, match='"dell" is not a known paper; known'):
        plimsoll.size(stated, "dell")
    with pytest.raises(plimsoll.RefusedError, match="a Sizing is no need; make one with"):
        plimsoll.select(plimsoll.size(stated))  # type: ignore[arg-type]


def test_a_drive_class_that_no_catalogue_has_is_refused() -> None:
    """An answer that nothing fits hides a mistyped word."""
    need = plimsoll.Need(volumes_gb=16_000.0, database_iops=900.0, drive_classes=("SAS15k",))
    with pytest.raises(plimsoll.InputError, match='drive_classes` is "SAS15k", which is unknown'):
        plimsoll.select(need)
    words = plimsoll.Need(1.0, 1.0, raid_levels="RAID 10")  # type: ignore[arg-type]
    with pytest.raises(plimsoll.InputError, match="raid_levels` is 'RAID 10', but must be a tuple"):
        plimsoll.select(words)


def test_changes_of_an_array_are_a_mapping() -> None:
    """The command line takes them as text."""
    with pytest.raises(plimsoll.RefusedError, match="is no mapping; write it like"):
        plimsoll.model("nearline-raid6", changes="level='RAID 10'")  # type: ignore[arg-type]


def test_a_number_of_users_is_no_kind_of_user() -> None:
    """Every other command takes the number there."""
    with pytest.raises(plimsoll.InvalidValueError, match="--users 200 is a number"):
        plimsoll.check_user("200", "2010", None)


def test_results_are_short_at_the_end_of_a_cell(tmp_path: Path) -> None:
    """A notebook shows the value of the last line: a comparison had 430,000 characters."""
    series = plimsoll.repeat(modelled(), 2, tmp_path / "series")
    result = series.results[0]
    assert repr(result) == f"Result({result.headline!r}, folder={str(result.folder)!r})"
    comparison = plimsoll.compare_runs([run.folder for run in series.results])
    assert repr(comparison) == "Comparison('run-1', 'run-2')"


def test_an_array_that_is_not_shipped_is_told_in_plain_words() -> None:
    """`target[1].modelled` `array` was two places for one, and a beginning found nothing near."""
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.model("emc")
    assert str(raised.value).splitlines() == [
        'options: `target[1].modelled` is "emc", no preset',
        "    hint: did you mean `emc-vnxe3300`?",
    ]
