"""Chains of commands on one small set of databases, drawn by chance, and what must hold after each.

Every command ends with an exit code that is right for what is there, and never with a fault of
ours. A run that came to its end has closed its databases, and closed databases are sound to `verify
--deep`. The test keeps a ledger of what the runs say they committed, and the records that are there
agree with it: exactly after a run that came to its end, at least those acknowledged as durable
after a kill. A sequence that fails is made as short as it can be.

Limits: lazy commits may be lost when a process dies, so the run that is killed only inserts and
waits for its log; what it had acknowledged is what its metrics said just before. `test recovery`
crashes its instances itself, after a load with lazy commits. Only root's file system is filled.
"""

import json
import os
import shutil
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import duckdb
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plimsoll.databases import ownership
from plimsoll.files import folder, parquet
from tests.support.command_chains import (
    ENDED,
    INTERRUPTED,
    PASS,
    USAGE,
    Command,
    no_fault_of_ours,
    run_chains,
)
from tests.support.places import file_system

FILE_SYSTEM_MIB = 2000
SIZE_MIB, CACHE_MIB, SESSIONS = 64, 8, 3
SMALL = ("--size-mib", SIZE_MIB, "--cache-mib", CACHE_MIB, "--yes", "--quiet")
LOADS = {
    "sessions": f"load = {{ sessions = {SESSIONS} }}",
    "sluggish": f"load = {{ sessions = {SESSIONS} }}\nsluggish = 2.0",
    "arrivals": "load = { transactions_per_s = 100 }",
    "durable": f"load = {{ sessions = {SESSIONS} }}\ninsert_percent = 100\n"
    "delete_percent = 0\nreplace_percent = 0\n"
    "read_percent = 0\nlazy_commit_percent = 0",
}
PLAN = """kind = "plan"
schema_version = 1
name = "chain"
seed = {seed}
{source}
[[target]]
name = "disk"
path = "{path}"
{instances}
[[workload]]
name = "mix"
{load}
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "stop"
[[phase]]
kind = "checksum"
"""


class Databases(RuleBasedStateMachine):
    """A directory of databases, and the ledger of what must be in them."""

    #: Where everything lies; whether it is a file system of our own, which may be filled.
    place: ClassVar[Path]
    may_be_filled: ClassVar[bool] = False
    count: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        # Markers name their place, and all sequences begin with copies of the same databases.
        self.home = self.place / "chain"
        self.home.mkdir()
        self.disk = self.home / "disk"
        self.names = [f"instance{number + 1}" for number in range(self.count)]
        self.made = 0
        #: Records of each database: at least so many, and at most so many where that is known.
        self.least: dict[str, int] = {}
        self.most: dict[str, int] | None = None
        self.saved: tuple[Path, dict[str, int]] | None = None
        self.killed: Path | None = None
        self.ended: Path | None = None
        self.checked: list[tuple[int, int]] = []

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    # What is there.

    def state(self, name: str) -> str | None:
        marker = self.disk / name / ownership.MARKER
        return json.loads(marker.read_text())["state"] if marker.exists() else None

    def exist(self) -> bool:
        return self.disk.exists() and any((self.disk / name).exists() for name in self.names)

    def closed(self) -> bool:
        return all(self.state(name) == "closed" for name in self.names)

    def records(self) -> dict[str, int]:
        """What a deep check of every database counts; nothing may be wrong with any."""
        paths = [self.disk / name / "database001.edb" for name in self.names]
        _, text = self.run("verify", "--deep", "--json", *paths, codes=[PASS])
        files = {Path(file["path"]).parent.name: file for file in json.loads(text)["files"]}
        assert all(
            file["verdict"] == "sound" and not file["deep"]["findings"] for file in files.values()
        ), text
        return {name: files[name]["deep"]["records"] for name in self.names}

    # How commands are given.

    def new_path(self, kind: str) -> Path:
        self.made += 1
        return self.home / f"{kind}-{self.made}"

    def run(self, *arguments: object, codes: object = ENDED) -> tuple[int, str]:
        command = Command(arguments, self.new_path("said"))
        code, text = command.end()
        no_fault_of_ours(arguments, code, text, codes)  # type: ignore[arg-type]
        return code, text

    def plan(self, load: str, seconds: int, *, seed: int = 1, source: str = "") -> Path:
        instances = [
            f'[[instance]]\nname = "{name}"\ndatabase_size_mib = {SIZE_MIB}\ncache_mib_max = '
            f"{CACHE_MIB}"
            for name in self.names
        ]
        path = self.new_path("plan").with_suffix(".toml")
        path.write_text(
            PLAN.format(
                seed=seed,
                source=source,
                path=self.disk,
                instances="\n".join(instances),
                load=LOADS[load],
                seconds=seconds,
            )
        )
        return path

    def options(self, out: Path) -> tuple[object, ...]:
        return ("--databases", self.count, *SMALL, "--out", out)

    # The ledger.

    def committed(self, out: Path) -> dict[str, tuple[int, int]]:
        """Inserts and deletes of each database that the run says it has committed."""
        totals = dict.fromkeys(self.names, (0, 0))
        if not (out / folder.SAMPLES).exists():
            return totals
        with duckdb.connect() as database:
            rows = database.execute(
                "SELECT instance, sum(count) FILTER (metric = 'insert'), "
                "sum(count) FILTER (metric = 'delete') "
                f"FROM {parquet.rows_of(out / folder.SAMPLES)} GROUP BY instance"
            ).fetchall()
        return totals | {
            name: (int(inserts or 0), int(deletes or 0))
            for name, inserts, deletes in rows
            if name in totals
        }

    def book(self, out: Path, *, unsure: int = 0, crashed: bool = False) -> None:
        """Enter what a run has committed.

        With `unsure`, the run was disturbed, and so many operations of each database may have been
        committed or not; with `crashed`, lazy commits may have been lost.
        """
        self.ended = out
        if not unsure:
            outcome = json.loads((out / folder.OUTCOME).read_text())
            assert outcome["ending"] == "complete", outcome["error"]
            assert self.closed(), f"{out} came to its end and left its databases open"
        if not self.least:
            return
        for name, (inserts, deletes) in self.committed(out).items():
            self.least[name] += (0 if crashed else inserts) - deletes - unsure
            if self.most is not None:
                self.most[name] += inserts - (0 if crashed else deletes) + unsure

    @invariant()
    def every_record_is_there(self) -> None:
        if not self.exist() or not self.closed():
            return
        looks = [(self.disk / name / "database001.edb").stat() for name in self.names]
        content = [(look.st_mtime_ns, look.st_ino) for look in looks]
        # What the command has not written to was checked after an earlier one.
        seen = self.least if self.least and content == self.checked else {}
        found = seen or self.records()
        self.checked = content
        if self.least:
            for name, records in found.items():
                assert records >= self.least[name], (
                    f"{name}: {records} records, at least {self.least[name]} were committed"
                )
                most = records if self.most is None else self.most[name]
                assert records <= most, f"{name}: {records} records, at most {most} were committed"
        self.least, self.most = dict(found), dict(found)

    def forget(self) -> None:
        self.least, self.most, self.checked = {}, None, []

    # The commands.

    @initialize()
    def prepare(self) -> None:
        prepared = self.place / f"prepared-{self.count}"
        if not prepared.exists():
            out = self.new_path("run")
            self.run(
                "prepare", self.plan("sessions", 1), "--yes", "--quiet", "--out", out, codes=[PASS]
            )
            shutil.copytree(self.disk, prepared)
            return
        shutil.copytree(prepared, self.disk)

    @rule(load=st.sampled_from(["sessions", "sluggish", "arrivals"]))
    def performance(self, load: str) -> None:
        out = self.new_path("run")
        self.run("run", self.plan(load, 1), "--yes", "--quiet", "--out", out)
        self.book(out)

    @rule()
    def backup(self) -> None:
        out = self.new_path("run")
        self.run("test", "backup", self.disk, *self.options(out))
        self.book(out)

    @precondition(lambda self: self.exist() and self.closed() and self.least)
    @rule()
    def keep_backup(self) -> None:
        """What was kept is a set that later runs restore."""
        target, out = self.new_path("kept"), self.new_path("run")
        self.run("test", "backup", self.disk, *self.options(out), "--to", target, codes=[PASS])
        self.book(out)
        self.saved = target, dict(self.least)

    @rule()
    def recovery(self) -> None:
        out = self.new_path("run")
        self.run("test", "recovery", self.disk, *self.options(out), "--logs", 2, "--no-checksum")
        self.book(out, crashed=True)

    @rule()
    def checksum(self) -> None:
        self.run(
            "test",
            "checksum",
            self.disk,
            "--quiet",
            "--out",
            self.new_path("run"),
            codes=(*ENDED, USAGE),
        )

    @precondition(lambda self: self.exist() and self.closed())
    @rule()
    def prepare_with_another_plan(self) -> None:
        """Databases of another seed are not made in the place of those that are there."""
        before = {
            name: (self.disk / name / "database001.edb").stat().st_mtime_ns for name in self.names
        }
        plan = self.plan("sessions", 1, seed=2)
        self.run("prepare", plan, "--yes", "--quiet", "--out", self.new_path("run"), codes=[USAGE])
        assert {
            name: (self.disk / name / "database001.edb").stat().st_mtime_ns for name in self.names
        } == before

    @precondition(lambda self: self.saved is None and self.exist() and self.closed() and self.least)
    @rule()
    def save(self) -> None:
        target = self.new_path("set")
        out = self.new_path("run")
        self.run(
            "prepare",
            self.plan("sessions", 1),
            "--save",
            target,
            "--yes",
            "--quiet",
            "--out",
            out,
            codes=[PASS],
        )
        self.saved = target, dict(self.least)

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        assert self.saved is not None
        target, records = self.saved
        out = self.new_path("run")
        plan = self.plan("sessions", 1, source=f'restore_from = "{target}"')
        self.run("run", plan, "--yes", "--quiet", "--out", out)
        self.forget()
        self.least, self.most = dict(records), dict(records)
        self.book(out)

    @rule(seconds=st.floats(0.0, 2.5))
    def kill(self, seconds: float) -> None:
        """kill -9 at a random moment: while it looks, prepares, recovers, measures or stops."""
        out = self.new_path("run")
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        fresh = not self.exist()
        plan = self.plan("durable", 2)
        command = Command(
            ("run", plan, "--yes", "--quiet", "--out", out, "--metrics", address),
            self.new_path("said"),
        )
        time.sleep(seconds)
        told = self.told(address)
        command.signal(signal.SIGKILL)
        code, text = command.end()
        no_fault_of_ours(command.arguments, code, text, (-signal.SIGKILL, *ENDED))
        if code >= 0:
            self.book(out)
            return
        self.killed = out if (out / folder.PLAN).exists() else None
        if fresh:
            self.forget()
        for name in self.least:
            self.least[name] += told.get(name, 0)
        self.most = None

    def told(self, address: str) -> dict[str, int]:
        """Inserts of each database that a run acknowledged; none while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return {}
        rows = [
            line for line in lines if line.startswith('plimsoll_time_seconds_count{of="insert",')
        ]
        return {
            name: sum(int(float(row.split()[-1])) for row in rows if f'instance="{name}"' in row)
            for name in self.names
        }

    @precondition(lambda self: self.killed is not None or self.ended is not None)
    @rule()
    def resume(self) -> None:
        """What was killed goes on, on the databases that are there; what ended does not."""
        if self.killed is None:
            self.run("resume", self.ended, "--quiet", codes=[USAGE])
            return
        run, self.killed = self.killed, None
        code, _ = self.run("resume", run, "--quiet", codes=(*ENDED, USAGE))
        if code in ENDED:
            self.book(run)

    @rule(seconds=st.floats(0.0, 1.5))
    def interrupt(self, seconds: float) -> None:
        """Ctrl-C: the databases are closed, and what the run says it did is there."""
        out = self.new_path("run")
        plan = self.plan("sessions", 1)
        command = Command(("run", plan, "--yes", "--quiet", "--out", out), self.new_path("said"))
        time.sleep(seconds)
        command.signal(signal.SIGINT)
        code, text = command.end()
        no_fault_of_ours(command.arguments, code, text, (INTERRUPTED, *ENDED))
        # Before the load began there is nothing to book.
        if code in ENDED or (out / folder.OUTCOME).exists():
            self.book(out, unsure=SESSIONS if code == INTERRUPTED else 0)

    @rule()
    def two_at_once(self) -> None:
        """Of two runs on the same databases one is refused, or comes when the other has ended."""
        runs = [self.new_path("run"), self.new_path("run")]
        plan = self.plan("sessions", 1)
        both = [
            Command(("run", plan, "--yes", "--quiet", "--out", out), self.new_path("said"))
            for out in runs
        ]
        ends = [command.end() for command in both]
        for command, (code, text) in zip(both, ends, strict=True):
            no_fault_of_ours(command.arguments, code, text, (*ENDED, USAGE))
        assert any(code in ENDED for code, _ in ends), ends
        for out, (code, _) in zip(runs, ends, strict=True):
            if code in ENDED:
                self.book(out)

    @precondition(lambda self: self.may_be_filled)
    @rule(seconds=st.floats(0.0, 1.5))
    def fill_the_disk(self, seconds: float) -> None:
        """A neighbour takes all space while a run goes on, and gives it back afterwards."""
        out = self.new_path("run")
        said = self.new_path("said")
        plan = self.plan("sessions", 1)
        command = Command(("run", plan, "--yes", "--quiet", "--out", out), said)
        time.sleep(seconds)
        ballast = self.home / "ballast"
        with ballast.open("wb") as file:
            free = os.statvfs(self.home)
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - (1 << 20)))
        code, text = command.end()
        ballast.unlink()
        no_fault_of_ours(command.arguments, code, text, (*ENDED, USAGE))
        self.book(out, unsure=SESSIONS)
        # What could not be recorded for want of space is there all the same.
        self.most = None

    @rule()
    def clean(self) -> None:
        existed = self.exist()
        self.run("clean", self.disk, "--yes", codes=[PASS] if existed else [USAGE])
        assert not self.exist()
        self.forget()


class LongChains(Databases):
    """Two databases, and the tests that take their time."""

    count = 2

    @rule()
    def stress(self) -> None:
        out = self.new_path("run")
        self.run("test", "stress", self.disk, *self.options(out), "--hours", 0.001)
        self.book(out)

    @rule()
    def maximum(self) -> None:
        out = self.new_path("run")
        self.run(
            "test",
            "max",
            self.disk,
            *self.options(out),
            "--minutes",
            0.02,
            "--search-minutes",
            0.02,
        )
        self.book(out)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, bool]]:
    """A file system of our own where root may make one, because only that may be filled."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        yield tmp_path, False
        return
    with file_system(tmp_path, FILE_SYSTEM_MIB) as disk:
        yield disk, True


def chains(machine: type[Databases], place: tuple[Path, bool], count: int, steps: int) -> None:
    machine.place, machine.may_be_filled = place
    run_chains(machine, count, steps)


def test_ten_chains_of_commands_on_databases(place: tuple[Path, bool]) -> None:
    """What broke in use was the run after the next: each command alone was tested and passed."""
    chains(Databases, place, 10, 3)


@pytest.mark.slow
def test_three_hundred_chains_of_commands_on_databases(place: tuple[Path, bool]) -> None:
    """The same for longer, with the tests that take their time."""
    chains(LongChains, place, 300, 30)
