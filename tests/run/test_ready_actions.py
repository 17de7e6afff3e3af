"""Ready actions: what they do on this machine where it can, and what they would do elsewhere.

What this kernel cannot do is played by a tree of files in the place of `/sys`; what only tools can
do is in `test_actions_by_tools.py`.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.documents.staged_events import StagedEventsFile
from plimsoll.files import folder
from plimsoll.host import processes
from plimsoll.inputs.mistakes import InputError
from plimsoll.run.actions import ActionError, disks_harmed, prepared
from plimsoll.run.steps import step_in_words
from tests.support import loop_disk as loop_disks
from tests.support.harm import wait_until
from tests.support.loop_disk import BLKIO, skip_without_throttle
from tests.support.ready_actions import done, here

ROOT = os.geteuid() == 0


# Control groups.


def test_version_2_of_control_groups_is_told_the_limit_and_left_as_it_was(tmp_path):
    """The files are those of the kernel's documentation; a tree of ours stands for them."""
    mount, proc = tmp_path / "sys/fs/cgroup", tmp_path / "proc"
    own = mount / "user.slice"
    own.mkdir(parents=True)
    for path in (mount, own):
        (path / "cgroup.procs").write_text("")
    (mount / "cgroup.subtree_control").write_text("cpu memory\n")
    (mount / "cgroup.controllers").write_text("cpu io memory\n")
    number = os.getpid()
    (proc / "self").mkdir(parents=True)
    (proc / str(number)).mkdir()
    (proc / "self/mountinfo").write_text(
        "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    (proc / str(number) / "cgroup").write_text("0::/user.slice\n")
    device = tmp_path / "device"
    status = tmp_path.stat().st_dev
    shown = f"{os.major(status)}:{os.minor(status)}"
    (tmp_path / "sys/dev/block" / shown).mkdir(parents=True)
    (tmp_path / "sys/dev/block" / shown / "dev").write_text(f"{shown}\n")
    device.mkdir()
    place = here(
        tmp_path, targets={"array": str(device)}, sys=tmp_path / "sys", proc=proc, event="slow"
    )
    steps = prepared(ReadyAction(what="throttle", iops=200.0, mib_per_s=2.0), place)
    group = mount / f"plimsoll-{number}-slow"
    for step in steps.apply:
        assert done([step], tmp_path) is None, step_in_words(step)
        if step.kind == "make":
            (group / "io.max").write_text("")
            (group / "cgroup.procs").write_text("")
    limit = f"{shown} rbps=2097152 wbps=2097152 riops=200 wiops=200"
    assert (group / "io.max").read_text() == limit
    assert (mount / "cgroup.subtree_control").read_text().startswith("+io")
    assert (group / "cgroup.procs").read_text() == str(number)
    assert done(steps.prove[:-1], tmp_path) is None
    undo = [step_in_words(step) for step in steps.undo]
    assert undo[0] == f"writes '{shown} rbps=max wbps=max riops=max wiops=max' to {group}/io.max"
    assert undo[1:3] == [f"moves every process of {group} to {own}", f"removes {group}"]
    assert undo[3].startswith("writes '-io'")
    # Whoever is undone first would take the controller from the other, and its limit with it.
    with pytest.raises(ActionError, match=f"{group.name} is there"):
        prepared(ReadyAction(what="throttle", iops=200.0), place)
    shutil.rmtree(group)
    # The group that it would be moved back to is the one of another event.
    (proc / str(number) / "cgroup").write_text("0::/plimsoll-7-slow\n")
    with pytest.raises(ActionError, match=f"process {number} is throttled already"):
        prepared(ReadyAction(what="throttle", iops=200.0), place)
    (mount / "cgroup.controllers").write_text("cpu memory\n")
    with pytest.raises(ActionError, match="no `io` in cgroup"):
        prepared(ReadyAction(what="throttle", iops=200.0), place)


@pytest.fixture
def loop_disk(tmp_path: Path) -> Iterator[Path]:
    """A loop disk with ext4, mounted."""
    skip_without_throttle()
    if not BLKIO.is_dir():
        pytest.skip("these tests look into the blkio controller of cgroup version 1")
    with loop_disks.loop_disk(tmp_path, 96) as mount:
        yield mount


PLAN = """kind = "plan"
schema_version = 1
sample_interval_ms = 500
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 32 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = {seconds} }}]
[[workload]]
name = "load"
pattern = "4k-aligned-100read-100random"
load = {{ transactions_per_s = 400, spacing = "regular" }}
[[event]]
name = "slow disk"
after_s = {after}
undo_after_s = {undo}
{event}
"""


def started(tmp_path: Path, path: Path, event: str, **times: float) -> subprocess.Popen[str]:
    known = {"seconds": 16, "after": 5, "undo": 8, **times}
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(path=path, event=event, **known))
    command = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--yes", "--allow-commands"]
    command += ["--create", "--allow-system-disk", "--out", str(tmp_path / "run")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def event_of(tmp_path: Path):
    (found,) = StagedEventsFile.read(tmp_path / "run" / folder.STAGED_EVENTS).events
    return found


def groups(process: subprocess.Popen[str]) -> set[Path]:
    """Those of a run; other tests have theirs at the same time."""
    return set(BLKIO.glob(f"**/plimsoll-{process.pid}-*"))


def test_a_throttle_of_the_target_s_disk_is_found_at_its_depth(tmp_path, loop_disk):
    process = started(tmp_path, loop_disk / "t", 'action = "throttle"\niops = 200')
    text, _ = process.communicate(timeout=120)
    found = event_of(tmp_path)
    assert found.error is None and found.proved and found.kind == "action", text
    assert groups(process) == set()
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    (load,) = summary["events"][0]["loads"]
    assert load["baseline_per_s"] == pytest.approx(400, rel=0.1), text
    assert load["degraded_change_percent"] == pytest.approx(-50, abs=12), text
    assert load["detected_s"] <= 1.5


def test_a_throttle_of_a_killed_run_leaves_an_empty_group_that_clean_removes(tmp_path, loop_disk):
    process = started(
        tmp_path, loop_disk / "t", 'action = "throttle"\niops = 200', seconds=60, after=1, undo=50
    )
    wait_until(lambda: groups(process))
    wait_until(lambda: all((path / "cgroup.procs").read_text() for path in groups(process)))
    process.kill()
    process.communicate(timeout=60)
    assert groups(process)
    clean = [sys.executable, "-m", "plimsoll.cli", "clean", str(tmp_path / "run")]
    shown = subprocess.run(clean, capture_output=True, text=True, check=False)
    assert shown.returncode == 2 and "moves every process" in shown.stderr
    done_ = subprocess.run(
        [*clean, "--allow-commands"], capture_output=True, text=True, check=False
    )
    assert done_.returncode == 0, done_.stderr
    assert groups(process) == set()
    assert plimsoll.pending_undos(tmp_path / "run") == ()


def test_ctrl_c_ends_a_throttle(tmp_path, loop_disk):
    process = started(
        tmp_path, loop_disk / "t", 'action = "throttle"\niops = 200', seconds=60, after=1, undo=50
    )
    wait_until(lambda: groups(process))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert groups(process) == set()
    assert event_of(tmp_path).undone_s is not None


def test_a_target_on_no_disk_is_refused_before_anything_is_written(tmp_path):
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("wants /dev/shm")
    plan = plimsoll.parse_plan(
        PLAN.format(
            path=memory / "x", event='action = "throttle"\niops = 9', seconds=9, after=1, undo=2
        )
    )
    with pytest.raises(plimsoll.PreflightError, match="lies on no block device"):
        plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)


# Processes.

SERVER = """
import os, socket, sys, time
place = socket.create_server(("127.0.0.1", int(sys.argv[1])))
child = os.fork()
while True:
    time.sleep(1)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, list[str]]]:
    """A server with a child, in a session of its own; port and command."""
    program, port = tmp_path / "server.py", free_port()
    program.write_text(SERVER)
    command = [sys.executable, str(program), str(port)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        wait_until(lambda: _answers(port))
        yield port, command
    finally:
        for found in processes.with_arguments(lambda words: str(program) in words):
            os.kill(found.number, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as place:
        return place.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_is_killed_with_its_children_and_started_again(tmp_path, server):
    port, command = server
    leader = processes.listener_on(port)
    members = processes.family(leader)
    assert len(members) == 2 and members[0].number == leader
    action = ReadyAction(what="server killed", port=port, start=tuple(command))
    steps = prepared(action, here(tmp_path))
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    assert not any(processes.lives(one.number, one.began_ticks) for one in members)
    with pytest.raises(ActionError, match=f"no process listens on port {port}"):
        prepared(action, here(tmp_path))
    assert done(steps.undo, tmp_path) is None
    assert processes.listener_on(port) != leader
    # It is there already: a second undo starts no second one.
    assert done(steps.undo, tmp_path) is None
    assert len(processes.family(processes.listener_on(port))) == 2


def test_a_server_that_never_returns_is_told(tmp_path, server):
    port, _ = server
    action = ReadyAction(what="server killed", port=port, start=("sh", "-c", "echo in use"))
    place = here(tmp_path)
    steps = prepared(action, place)
    assert done(steps.apply, tmp_path) is None
    error = str(done(steps.undo, tmp_path, 0.5))
    assert f"no process answers on port {port} after 0.5 s" in error
    # Why it did not start stood in a file that nothing named.
    file = tmp_path / f"event-{place.slug}.log"
    assert error.endswith(f"; what it wrote lies in {file}") and "in use" in file.read_text()


@pytest.fixture
def by_file(tmp_path: Path, server: tuple[int, list[str]]) -> tuple[Path, tuple[str, ...]]:
    """The server by its pid file, and a command that starts it and writes that file."""
    port, command = server
    file = tmp_path / "server.pid"
    file.write_text(f"{processes.listener_on(port)}\n")
    return file, ("sh", "-c", f"echo $$ > {file}; exec {' '.join(command)}")


def test_a_server_by_its_pid_file_is_undone_only_when_it_is_up(tmp_path, by_file):
    file, start = by_file
    killed = int(file.read_text())
    fails = ReadyAction(what="server killed", pid_file=str(file), start=("false",))
    steps = prepared(fails, here(tmp_path))
    # One that was never killed is up, and gets no second copy.
    assert done(steps.undo, tmp_path, 0.5) is None
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    assert f"{file} names no process that lives" in str(done(steps.undo, tmp_path, 0.5))
    # Its number has gone to another since.
    file.write_text(f"{os.getpid()}\n")
    stale = [step.replace(process=os.getpid(), began_ticks=1) for step in steps.undo]
    assert "names no process that lives" in str(done(stale[-1:], tmp_path, 0.2))
    file.write_text(f"{killed}\n")
    undo = [step.replace(argv=start) if step.kind == "start" else step for step in steps.undo]
    assert done(undo, tmp_path) is None
    again = int(file.read_text())
    wanted = start[-1].split()[-2:]

    def copies() -> int:
        return len(processes.with_arguments(lambda words: list(words)[-2:] == wanted))

    # The server and its child.
    wait_until(lambda: copies() == 2)
    assert done(undo, tmp_path) is None
    time.sleep(0.5)
    assert copies() == 2 and int(file.read_text()) == again != killed


def test_a_server_comes_back_where_the_run_folder_was_moved(tmp_path, server):
    """Its log lies in the folder of now, and nowhere where that cannot be written."""
    port, command = server
    old, moved = tmp_path / "old", tmp_path / "moved"
    action = ReadyAction(what="server killed", port=port, start=tuple(command))
    moved.mkdir()
    log = moved / "event-one.log"
    for comes_back in ("with a log", "without one"):
        steps = prepared(action, here(tmp_path, run_folder=old))
        assert done([*steps.apply, *steps.undo], moved) is None, comes_back
        assert log.exists()
        if log.is_file():
            # Nobody can open a folder to write into it.
            log.unlink()
            log.mkdir()


def test_nobody_kills_this_run_or_what_started_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as place:
        action = ReadyAction(what="server killed", port=place.getsockname()[1], start=("true",))
        with pytest.raises(ActionError, match="is this run"):
            prepared(action, here(tmp_path))
    (tmp_path / "pid").write_text(f"{os.getppid()}\n")
    action = ReadyAction(what="server killed", pid_file=str(tmp_path / "pid"), start=("true",))
    with pytest.raises(ActionError, match="what started it"):
        prepared(action, here(tmp_path))


def test_a_number_that_was_given_out_again_is_not_killed(tmp_path):
    other = subprocess.Popen(["sleep", "60"])
    try:
        found = processes.process_of(other.pid)
        assert found is not None
        step = Step(kind="kill", process=other.pid, began_ticks=found.began_ticks - 1)
        assert done([step], tmp_path) is None
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_who_stops_a_neighbour_stops_nobody_who_looks_at_it(tmp_path):
    """Readers of its log, and commands of Plimsoll that name its folder."""
    place, program = str(tmp_path / "neighbour-one"), tmp_path / "plimsoll"
    program.write_text("import time; time.sleep(60)")
    own, *others = (
        subprocess.Popen([sys.executable, str(program), *words])
        for words in (
            ("run", "plan.toml", "--out", place, "--yes"),
            ("status", place),
            ("run", place, "--out", f"{place}-2"),
            ("report", "run", place),
        )
    )
    others.append(subprocess.Popen(["tail", "-f", "/dev/null", "--", place]))
    others.append(subprocess.Popen([sys.executable, "-c", program.read_text(), place]))
    try:
        wait_until(lambda: place in Path(f"/proc/{others[-1].pid}/cmdline").read_text())
        assert done([Step(kind="stop", text=place)], tmp_path, 3) is None
        assert own.wait(10) == -signal.SIGTERM
        assert [other.poll() for other in others] == [None] * len(others)
    finally:
        for process in (own, *others):
            process.kill()
            process.wait()


# Links.


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with a pair of links, an address of each kind and a route of our own."""
    name = f"plimsoll-{os.getpid()}"
    if not ROOT or shutil.which("ip") is None:
        pytest.skip("wants root and iproute2")
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made: {made.stderr.strip()}")
    try:
        ip = ["ip", "-netns", name]
        pair = [*ip, "link", "add", "one", "type", "veth", "peer", "name", "two"]
        link = subprocess.run(pair, capture_output=True, text=True, check=False)
        if link.returncode:
            pair = [*ip, "link", "add", "one", "type", "dummy"]
            link = subprocess.run(pair, capture_output=True, text=True, check=False)
        if link.returncode:
            pytest.skip(f"no link can be made: {link.stderr.strip()}")
        for arguments in (
            ["link", "set", "dev", "one", "up"],
            ["address", "add", "10.9.0.1/24", "dev", "one"],
            ["-6", "address", "add", "fd00::1/64", "dev", "one", "nodad"],
            ["route", "add", "10.8.0.0/16", "via", "10.9.0.2", "dev", "one"],
        ):
            subprocess.run([*ip, *arguments], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def shown_by_ip(namespace: str, *arguments: str) -> str:
    command = ["ip", "-netns", namespace, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_link_goes_down_and_comes_back_with_addresses_and_routes(tmp_path, namespace):
    action = ReadyAction(what="link down", link="one", namespace=namespace)
    steps = prepared(action, here(tmp_path))
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    assert "10.8.0.0" not in shown_by_ip(namespace, "route")
    with pytest.raises(ActionError, match="is down already"):
        prepared(action, here(tmp_path))
    assert done(steps.undo, tmp_path) is None
    assert "10.8.0.0/16 via 10.9.0.2" in shown_by_ip(namespace, "route")
    assert "fd00::1/64" in shown_by_ip(namespace, "-6", "address", "show", "dev", "one")
    assert "UP" in shown_by_ip(namespace, "link", "show", "dev", "one")
    with pytest.raises(ActionError, match="there is no link three"):
        prepared(action.replace(link="three"), here(tmp_path))


# Plans.


def test_the_plan_of_a_neighbour_is_looked_for_next_to_the_plan(tmp_path, monkeypatch):
    """Wherever the program was started."""
    (tmp_path / "plans").mkdir()
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plans/plan.toml"
    for written, whole in (
        ("other.toml", tmp_path / "plans/other.toml"),
        ("../other.toml", tmp_path / "plans/../other.toml"),
        ("/x/other.toml", Path("/x/other.toml")),
        ("~/other.toml", Path("~/other.toml").expanduser()),
    ):
        plan.write_text(plan_with(f'action = "neighbour"\nplan = "{written}"'))
        for path in (plan, Path("plans/plan.toml")):
            (event,) = plimsoll.read_plan(path).events
            assert event.action is not None and event.action.plan == str(whole)
    with pytest.raises(ActionError, match=r"/x/other\.toml: cannot be read: no such file"):
        prepared(ReadyAction(what="neighbour", plan="/x/other.toml"), here(tmp_path))


def plan_with(event: str) -> str:
    return PLAN.format(path="/data", event=event, seconds=9, after=1, undo=2)


def test_every_mistake_of_actions_is_reported_at_once():
    wrong = """action = "throttle"
start = ["a"]
target = "other"
command = ["true"]
[[event]]
name = "two"
after_s = 1
action = "server killed"
port = 5
pid_file = "x"
[[event]]
name = "three"
after_s = 1
iops = 3
[[event]]
name = "four"
after_s = 1
action = "neighbour"
plan = "x.toml"
options = ["--out=x"]
"""
    with pytest.raises(InputError) as found:
        plimsoll.parse_plan(plan_with(wrong))
    text = str(found.value)
    for part in (
        "means nothing for throttle",
        "`event[1].iops` is missing for throttle",
        '"other"',
        "cannot be combined with `action`",
        "`event[2].start` is missing for server killed",
        "cannot be combined with `port`",
        "means nothing without `action`",
        "has --out=x",
    ):
        assert part in text, (part, text)


def test_consent_shows_what_an_action_would_do(tmp_path):
    event = 'action = "server killed"\nport = 1\nstart = ["true"]'
    plan = plimsoll.parse_plan(PLAN.format(path=tmp_path, event=event, seconds=9, after=1, undo=2))
    with pytest.raises(plimsoll.PreflightError) as refused:
        plimsoll.check(plan, allow_system_disk=True)
    assert "server killed: port = 1, start = true" in str(refused.value.problems)
    assert "--allow-commands" in str(refused.value.problems)
    with pytest.raises(plimsoll.PreflightError, match="no process listens on port 1"):
        plimsoll.check(plan, allow_system_disk=True, allow_commands=True)


def test_what_cannot_be_read_of_the_machine_is_said(tmp_path):
    """A server that ends while it is looked at; trees that are not there stand for it."""
    nowhere = here(
        tmp_path, sys=tmp_path / "sys", proc=tmp_path / "proc", targets={"disk": str(tmp_path)}
    )
    with pytest.raises(ActionError, match="proc/self/mountinfo: no such file or directory"):
        prepared(ReadyAction(what="throttle", iops=9.0), nowhere)


def test_a_setting_that_is_not_there_is_not_made(tmp_path):
    """A step that writes makes no file: a setting that is not there is said to be missing."""
    step = Step(kind="write", path=str(tmp_path / "absent"), text="1")
    assert "no such file" in str(done([step], tmp_path)).lower()
    assert not (tmp_path / "absent").exists()


def test_a_folder_that_is_gone_is_removed_at_once(tmp_path):
    """A throttle may be undone twice, also where its group was never made."""
    began = time.monotonic()
    assert done([Step(kind="remove", path=str(tmp_path / "absent"))], tmp_path, 5) is None
    assert time.monotonic() - began < 4


@pytest.mark.skipif(not ROOT, reason="only root writes to the kernel log")
def test_what_an_event_makes_the_kernel_say_of_the_disk_fails_no_run(tmp_path, loop_disk):
    """A drive that a plan fails is no fault of the storage, and what the kernel said is told."""
    disk = Path(os.path.realpath(f"/sys/dev/block/{_numbers(loop_disk)}")).name
    said = f"echo '<3>I/O error, dev {disk}, sector 8' > /dev/kmsg"
    event = f'command = ["sh", "-c", "{said}"]\nundo = ["true"]'
    process = started(tmp_path, loop_disk / "t", event, seconds=6, after=2, undo=4)
    text, _ = process.communicate(timeout=120)
    log = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())["kernel_log"]
    assert [line[-8:] for line in log["of_events"]] == ["sector 8"], text
    assert log["lines"] == [] and "kernel log" not in text.partition("not a qualification")[0]


def test_an_action_harms_its_device_and_what_is_built_on_it(tmp_path):
    """Errors of other disks at that time are not its work; of commands nobody knows."""
    for disk, holder in (("vdc", "md0"), ("md0", "dm-1"), ("vdd", "md0")):
        (tmp_path / "sys/class/block" / disk / "holders" / holder).mkdir(parents=True)
    place = here(tmp_path, sys=tmp_path / "sys")
    path = ReadyAction(what="path fails", device="vdc")
    assert disks_harmed(path, place) == {"vdc", "md0", "dm-1"}
    drive = ReadyAction(what="md drive fails", device="md0", member="vdd")
    assert disks_harmed(drive, place) == {"md0", "vdd", "dm-1"}
    assert disks_harmed(None, place) is None
    assert disks_harmed(ReadyAction(what="iscsi logout", iqn="iqn.x"), place) is None


def _numbers(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"
