"""Run folders live long: chains of commands on a few of them, drawn by chance, and what must hold
after each.

Every command ends with an exit code that is right for the folder's state and never with a fault of
ours; what was measured is never changed by anything but the damage that a rule does; a sound folder
is judged as before, and the next command works. A sequence that fails is made as short as it can
be."""

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from plimsoll.cli import run_program
from plimsoll.databases.consent import CREATE_VARIABLE, SYSTEM_DISK_VARIABLE
from plimsoll.files import folder

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
#: What a stage after the measuring must never touch.
MEASURED = (
    folder.PLAN,
    folder.ENVIRONMENT,
    folder.EVENTS,
    folder.SAMPLES,
    folder.HISTOGRAMS,
    folder.OUTCOME,
)
SOUND, KILLED, DAMAGED, RUNNING, UNJUDGED = "sound", "killed", "damaged", "running", "unjudged"
PASS, FAIL, USAGE, INCONCLUSIVE = 0, 1, 2, 3


class RunFolders(RuleBasedStateMachine):
    """A directory of run folders and what state each of them is in."""

    folders = Bundle("folders")

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="plimsoll-chains-"))
        self.states: dict[str, str] = {}
        self.contents: dict[str, dict[str, bytes]] = {}
        self.made = 0
        self.running = contextlib.ExitStack()

    def teardown(self) -> None:
        self.running.close()
        shutil.rmtree(self.home)

    def new_name(self) -> str:
        self.made += 1
        return f"run-{self.made}"

    def added(self, name: str, state: str) -> str:
        self.states[name] = state
        self.contents[name] = self.measured(name)
        return name

    def measured(self, name: str) -> dict[str, bytes]:
        paths = [self.home / name / file for file in MEASURED]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def run(self, *arguments: object) -> tuple[int, str]:
        """A command in this process: its exit code and everything it said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run_program([str(argument) for argument in arguments])
        text = said.getvalue()
        assert code in (PASS, FAIL, USAGE, INCONCLUSIVE), f"{arguments} ended with {code}: {text}"
        assert "Traceback" not in text and "internal error" not in text, text
        return code, text

    @initialize(target=folders)
    def a_run_that_ended(self) -> str:
        name = self.new_name()
        shutil.copytree(GOLDEN, self.home / name)
        return self.added(name, SOUND)

    @rule(target=folders)
    def another_run_that_ended(self) -> str:
        return self.a_run_that_ended()

    @rule(target=folders)
    def a_run_that_was_killed(self) -> str:
        name = self.new_name()
        (self.home / name).mkdir()
        for file in (folder.ENVIRONMENT, folder.EVENTS):
            shutil.copy(GOLDEN / file, self.home / name)
        # Its storage is not mounted.
        plan = (GOLDEN / folder.PLAN).read_text(encoding="utf-8")
        folder.write_text(
            self.home / name / folder.PLAN, plan.replace("/srv/array", str(self.home / "unmounted"))
        )
        folder.write_json(self.home / name / folder.PROGRESS, {"process_id": 2**22 + 1})
        return self.added(name, KILLED)

    @rule(target=folders)
    def a_run_that_goes_on(self) -> str:
        """Of whatever program: what tells is that it keeps others from its folder."""
        name = self.new_name()
        (self.home / name).mkdir()
        for file in (folder.PLAN, folder.ENVIRONMENT, folder.EVENTS):
            shutil.copy(GOLDEN / file, self.home / name)
        self.running.enter_context(folder.kept([self.home / name]))
        return self.added(name, RUNNING)

    @rule(target=folders)
    def a_run_that_was_not_judged(self) -> str:
        """It was killed, or its disk was full, when all was measured."""
        name = self.new_name()
        shutil.copytree(GOLDEN, self.home / name)
        for file in (folder.VERDICT, folder.SUMMARY, folder.COUNTERS, folder.REPORT):
            (self.home / name / file).unlink(missing_ok=True)
        return self.added(name, UNJUDGED)

    @rule(name=folders, file=st.sampled_from(MEASURED), share=st.sampled_from([0.0, 0.5]))
    def damage(self, name: str, file: str, share: float) -> None:
        path = self.home / name / file
        if self.states[name] != SOUND or not path.exists():
            return
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        self.added(name, DAMAGED)

    @rule(name=folders)
    def report(self, name: str) -> None:
        before = self.verdict(name)
        code, text = self.run("report", self.home / name)
        if self.states[name] == SOUND:
            assert (code, self.verdict(name)) == (PASS, before), text
            assert (self.home / name / folder.REPORT).exists()
        elif self.states[name] == UNJUDGED:
            assert code == PASS and self.verdict(name) is not None, text
            self.states[name] = SOUND
        elif self.states[name] in (KILLED, RUNNING):
            assert code == USAGE, text

    def verdict(self, name: str) -> object:
        try:
            found = folder.read_json(self.home / name / folder.VERDICT)
        except folder.FolderError:
            return None
        return found["result"], found["headline"]

    @rule(name=folders)
    def resume(self, name: str) -> None:
        """What ended does not go on, and the storage of what was killed is not on this machine.

        Nothing is put aside.
        """
        present = sorted(path.name for path in (self.home / name).iterdir())
        code, text = self.run("resume", self.home / name, "--quiet")
        assert code == USAGE, text
        assert sorted(path.name for path in (self.home / name).iterdir()) == present

    @rule(name=folders)
    def run_into_it_again(self, name: str) -> None:
        """A folder that was written to is never written to by another run."""
        present = sorted(path.name for path in (self.home / name).iterdir())
        wanted = (
            "test",
            "performance",
            "--modelled",
            "emc-vnxe3300",
            "--size-mib",
            "64",
            "--minutes",
            "0.02",
            "--quiet",
        )
        code, text = self.run(*wanted, "--out", self.home / name)
        assert code == USAGE, text
        assert sorted(path.name for path in (self.home / name).iterdir()) == present

    @rule(first=folders, second=folders)
    def compare(self, first: str, second: str) -> None:
        code, text = self.run("compare", self.home / first, self.home / second)
        if self.states[first] == self.states[second] == SOUND:
            assert code == PASS, text
        elif {KILLED, RUNNING} & {self.states[first], self.states[second]}:
            assert code == USAGE, text

    @rule(target=folders, name=folders, redact=st.booleans())
    def pack_and_unpack(self, name: str, redact: bool) -> str | MultipleResults[str]:
        if self.states[name] == RUNNING:
            return multiple()
        archive, other = self.home / f"{self.new_name()}.tar.gz", self.new_name()
        code, text = self.run(
            "pack", self.home / name, "--out", archive, *(["--redact"] if redact else [])
        )
        if code != PASS:
            assert self.states[name] != SOUND and not archive.exists(), text
            # Not the name again: a folder that is deleted would still be drawn by its second entry.
            return multiple()
        assert self.run("pack", self.home / name, "--out", archive)[0] == USAGE, (
            "an archive is not overwritten"
        )
        assert self.run("unpack", archive, "--check")[0] == PASS
        code, text = self.run("unpack", archive, "--to", self.home / other)
        assert code == PASS, text
        if not redact:
            assert self.measured(other) == self.contents[name]
        return self.added(other, self.states[name])

    @rule(name=folders)
    def look(self, name: str) -> None:
        code, text = self.run("status", self.home / name, "--json")
        if self.states[name] == SOUND:
            assert (code, json.loads(text)["state"]) == (PASS, "ended"), text
        elif self.states[name] == RUNNING:
            assert json.loads(text)["state"] == "starting", text
        code, text = self.run("export", self.home / name)
        if self.states[name] == KILLED:
            assert code == USAGE, text

    @rule(name=consumes(folders))
    def delete(self, name: str) -> None:
        if self.states[name] == RUNNING:
            return
        shutil.rmtree(self.home / name)
        del self.states[name], self.contents[name]
        for command in (["report"], ["resume"], ["compare", GOLDEN]):
            assert self.run(*command, self.home / name)[0] == USAGE

    @invariant()
    def nothing_that_was_measured_has_changed(self) -> None:
        for name in self.states:
            assert self.measured(name) == self.contents[name], name

    @invariant()
    def every_run_is_listed(self) -> None:
        code, text = self.run("runs", self.home, "--json")
        listed = {entry["folder"] for entry in json.loads(text)["runs"]} if code == PASS else set()
        assert set(self.states) <= listed, text


@pytest.fixture(autouse=True)
def nothing_is_agreed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is resumed must not make the directory of a storage that is gone."""
    monkeypatch.delenv(CREATE_VARIABLE)
    monkeypatch.delenv(SYSTEM_DISK_VARIABLE)


def chains(count: int, steps: int) -> None:
    quick = settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(RunFolders, settings=quick)


def test_ten_chains_of_commands_on_run_folders() -> None:
    """Single commands were tested, and what broke in use were chains.

    `--out` on a run that had been resumed wiped both halves.
    """
    chains(10, 8)


@pytest.mark.slow
def test_three_hundred_chains_of_commands_on_run_folders() -> None:
    """The same for longer."""
    chains(300, 30)
