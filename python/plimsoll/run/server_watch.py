"""Watches the servers of a run and the run itself: processor time and memory of their processes.

Read from `/proc` once for each sample interval, at least a second, in a thread of its own. A server
is looked for again when its first process is gone, as after a restart. What a process used between
its last sample and its end is lost: a server with a process for each request shows too little.
"""

from __future__ import annotations

import ipaddress
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import MailInstance, StoreClientInstance
from plimsoll.documents.server_usage import ServerSeries, ServerUsageFile, WatchedServer
from plimsoll.files import folder
from plimsoll.host import processes

INTERVAL_S_MIN = 1.0
#: What the run itself is called.
OURSELVES = "plimsoll"
_KIB = 1024


@dataclass
class _Watched:
    """One server with what is known of it."""

    server: WatchedServer
    leader: int | None = None
    #: Processor seconds at the last sample, by process.
    before: dict[tuple[int, int], float] = field(default_factory=dict)
    #: When that was, in ticks as processes begin at.
    looked_ticks: float = math.inf
    end_s: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    busy_s: list[float] = field(default_factory=list)
    resident_bytes: list[int] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    problem: str | None = None


class ServerWatch:
    """Samples until it is left, and writes `server-usage.json` then."""

    def __init__(
        self,
        servers: Sequence[WatchedServer],
        run_folder: Path,
        interval_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._watched = [_Watched(server) for server in servers]
        self._folder = run_folder
        self._interval_s = max(interval_s, INTERVAL_S_MIN)
        self._now_s = now_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="servers")

    def __enter__(self) -> ServerWatch:
        if self._watched:
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if not self._watched:
            return
        self._over.set()
        self._thread.join()
        ServerUsageFile(
            schema_version=1,
            processors=os.cpu_count() or 1,
            memory_bytes=_memory_bytes(),
            servers=[_series(watched) for watched in self._watched],
        ).write(self._folder / folder.SERVER_USAGE)

    def _follow(self) -> None:
        before_s = time.monotonic()
        for watched in self._watched:
            _look(watched)
        while not self._over.wait(self._interval_s):
            after_s = time.monotonic()
            for watched in self._watched:
                busy_s, resident_bytes, count = _look(watched)
                watched.end_s.append(round(self._now_s(), 3))
                watched.seconds.append(round(after_s - before_s, 3))
                watched.busy_s.append(round(busy_s, 3))
                watched.resident_bytes.append(resident_bytes)
                watched.processes.append(count)
            before_s = after_s


def _look(watched: _Watched) -> tuple[float, int, int]:
    """Processor seconds since the last look, memory in bytes, and processes of a server."""
    looked_ticks = processes.now_ticks()
    members = _members(watched)
    now = {(member.number, member.began_ticks): member.busy_s for member in members}
    # Of a process that is new here all was used since the last look, unless it was there before.
    busy_s = math.fsum(
        busy - watched.before.get(process, busy if process[1] < watched.looked_ticks else 0.0)
        for process, busy in now.items()
    )
    watched.looked_ticks = looked_ticks
    watched.before = now
    return max(busy_s, 0.0), sum(member.resident_bytes for member in members), len(members)


def _members(watched: _Watched) -> list[processes.Process]:
    server = watched.server
    if server.port is None and server.pid_file is None:
        found = processes.process_of(os.getpid())
        return [found] if found else []
    members = processes.family(watched.leader) if watched.leader is not None else []
    if not members:
        try:
            watched.leader = (
                processes.listener_on(server.port)
                if server.port is not None
                else processes.from_pid_file(Path(server.pid_file or ""))
            )
        except processes.ProcessError as error:
            watched.leader, watched.problem = None, watched.problem or str(error)
            return []
        members, watched.problem = processes.family(watched.leader), None
    return members


def _series(watched: _Watched) -> ServerSeries:
    return ServerSeries(
        name=watched.server.name,
        end_s=watched.end_s,
        seconds=watched.seconds,
        busy_s=watched.busy_s,
        resident_bytes=watched.resident_bytes,
        processes=watched.processes,
        problem=watched.problem if not any(watched.processes) else None,
    )


def watched_servers(plan: Plan) -> list[WatchedServer]:
    """The servers of a plan that run on this machine, and the run itself; none in virtual time."""
    if plan.run.modelled is not None:
        return []
    found = [WatchedServer(name=OURSELVES), *plan.watch]
    known = {server.port for server in plan.watch}
    for instance in plan.run.instances:
        port = _own_port(instance)
        if port is not None and port not in known:
            known.add(port)
            found.append(WatchedServer(name=instance.name, port=port))
    return found if len(found) > 1 else []


def _own_port(instance: object) -> int | None:
    """The port of a server that an instance speaks to on this machine."""
    if isinstance(instance, StoreClientInstance) and instance.server is not None:
        host, port = instance.server.host, instance.server.port
    elif isinstance(instance, MailInstance):
        host, _, text = instance.databases[0].imap.rpartition(":")
        host, port = host.strip("[]"), int(text)
    else:
        return None
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return None
    return port if is_here else None


def _memory_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * _KIB
    return 0
