"""Who was out of what: processors and memory of servers, from samples and a real process."""

import os
import signal
import subprocess
import sys
import time

from plimsoll.documents.server_usage import ServerSeries, ServerUsageFile, WatchedServer
from plimsoll.files import folder
from plimsoll.host import processes
from plimsoll.results.servers import usage_of, who_was_out
from plimsoll.run.server_watch import ServerWatch

BURN = """
import os, socket, sys, time
place = socket.create_server(("127.0.0.1", 0))
print(place.getsockname()[1], flush=True)
kept = bytearray(64 << 20)
os.fork()
while True:
    pass
"""


def series(name: str, busy: list[float], resident: int = 1 << 20, **changes: object):
    count = len(busy)
    known: dict[str, object] = {
        "name": name,
        "end_s": [float(number + 1) for number in range(count)],
        "seconds": [1.0] * count,
        "busy_s": busy,
        "resident_bytes": [resident] * count,
        "processes": [1] * count,
        "problem": None,
    }
    return ServerSeries(**{**known, **changes})


def test_only_what_was_measured_counts() -> None:
    found = usage_of(series("one", [2.0, 0.5, 1.5, 2.0]), [(1.0, 3.0)], 4)
    assert (found.busy_mean, found.busy_max, found.share_percent) == (1.0, 1.5, 25.0)
    gone = usage_of(series("one", [0.5, 0.0, 0.5], processes=[1, 0, 2]), [(0.0, 3.0)], 1)
    assert gone.gone_s == 1.0 and gone.processes_max == 2
    never = usage_of(series("one", []), [(0.0, 3.0)], 1)
    assert never.busy_mean is None and never.problem is not None


def test_who_had_the_processors_is_said_and_nothing_else() -> None:
    usage = [
        usage_of(series("plimsoll", [0.2] * 5), [(0, 5)], 2).replace(machine_memory_bytes=1 << 30),
        usage_of(series("postgres", [1.6] * 5, 900 << 20), [(0, 5)], 2).replace(
            machine_memory_bytes=1 << 30
        ),
    ]
    (sentence,) = who_was_out(usage, 0.95, None)
    assert sentence.endswith("95% busy: postgres 80 %, plimsoll 10 %, others 5 %")
    (sentence,) = who_was_out(usage, 0.5, float(10 << 20))
    assert "postgres had most, 900 MiB" in sentence
    assert who_was_out(usage, 0.5, float(500 << 20)) == []
    assert who_was_out(usage, None, None) == []


BURNT = """
import time
while time.process_time() < 1.5:
    pass
print("done", flush=True)
time.sleep(60)
"""


def test_what_a_server_used_before_it_was_found_belongs_to_no_sample(tmp_path) -> None:
    """Its file of the process appears late; a server that begins meanwhile counts from then."""
    began, named = time.monotonic(), tmp_path / "pid"
    command = [sys.executable, "-c", BURNT]
    old = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert old.stdout is not None
    old.stdout.readline()
    server = WatchedServer(name="late", pid_file=str(named))
    new = None
    try:
        with ServerWatch([server], tmp_path, 1.0, lambda: time.monotonic() - began):
            time.sleep(1.2)
            named.write_text(f"{old.pid}\n")
            time.sleep(1.2)
            old.kill()
            old.wait()
            new = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            named.write_text(f"{new.pid}\n")
            time.sleep(3)
    finally:
        for process in (old, new):
            if process is not None:
                process.kill()
                process.wait()
    (late,) = ServerUsageFile.read(tmp_path / folder.SERVER_USAGE).servers
    assert tuple(late.busy_s[:2]) == (0.0, 0.0)
    assert 0.5 < sum(late.busy_s) < 1.8


def test_a_server_is_found_by_its_port_and_its_children_count(tmp_path) -> None:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", BURN], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        servers = [
            WatchedServer(name="plimsoll"),
            WatchedServer(name="burns", port=port),
            WatchedServer(name="absent", port=1),
        ]
        with ServerWatch(servers, tmp_path, 0.1, lambda: time.monotonic() - began):
            time.sleep(3.5)
        file = ServerUsageFile.read(tmp_path / folder.SERVER_USAGE)
        ours, burns, absent = file.servers
        assert len(burns.end_s) >= 2 and burns.processes[-1] == 2
        assert sum(burns.busy_s) > 5 * sum(ours.busy_s)
        # Two processes that never rest want two processors; others may want them too.
        assert 0.2 < sum(burns.busy_s) / sum(burns.seconds) <= 2.2
        assert burns.resident_bytes[-1] > 64 << 20
        assert absent.problem == "no process listens on port 1 of this machine"
        assert set(absent.processes) == {0}
    finally:
        for member in processes.family(process.pid):
            os.kill(member.number, signal.SIGKILL)
        process.wait()
