"""The online store: processor per order on PostgreSQL and orders per minute beside a driver on
libpq, SQLite and the engine in turns on the same disk, and the formula of think time.

Every side drives the tables that this project makes: the peer, `peers/libpq_orders.c`, has a thread
for each connection and the same statements. PostgreSQL comes from Debian's packages and runs as in
the tests, in a folder of its own on the measured disk, stopped by its process; commits are durable.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from pairs import Comparison
from programs import ROOT, ProgramError, ours
from programs import run as run_program

COST = "Orders on PostgreSQL"
EMBEDDED = "Orders in SQLite and on the engine"
FORMULA = "Orders and the formula of think time"
PROCESSOR_MS_MAX = 0.13
OVER_PEER_MIN = 1.3
SQLITE_OPM_MIN = 100_000
OVER_SQLITE_MIN = 1.5
OFF_MAX = 0.011
SESSIONS = 8
ROUNDS = 5
SESSION_SQL = ROOT / "crates/plimsoll-clients/src/postgresql/session.sql"


@contextmanager
def _server(directory: Path) -> Iterator[dict[str, Any]]:
    """What one needs to know of a server of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers", "postgresql-durable"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(_reachable(directory))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None, "both are piped"
    try:
        facts: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        if "port" not in facts:
            raise ProgramError(str(facts.get("missing", "the server did not start")))
        yield facts
    finally:
        process.stdin.close()
        process.wait()


def _reachable(directory: Path) -> Path:
    """The measured disk's directory, if others may enter it; otherwise `/var/tmp`."""
    resolved = directory.resolve()
    is_open = all(path.stat().st_mode & 0o001 for path in (resolved, *resolved.parents))
    return resolved if is_open else Path("/var/tmp")


def _password(folder: Path, password: str) -> Path:
    path = folder / "password"
    path.write_text(f"{password}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def _peer(folder: Path) -> Path:
    """The peer, compiled."""
    program = folder / "libpq_orders"
    include = run_program(["pg_config", "--includedir"]).strip()
    source = Path(__file__).parent / "peers" / "libpq_orders.c"
    run_program(["cc", "-O2", "-Wall", f"-I{include}", source, "-o", program, "-lpq", "-lpthread"])
    return program


def _spread(values: list[float], digits: int) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f}, n = {len(values)})"


def _folder(directory: Path, name: str) -> Path:
    folder = directory / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def postgresql(directory: Path, quick: bool) -> list[Figure]:
    """Eight connections without think time, in turns with the peer."""
    folder, load = _folder(directory, "store"), load_average()
    rounds, seconds, megabytes = (1, 1, 1) if quick else (ROUNDS, 20, 10)
    engine: list[dict[str, Any]] = []
    peers: list[dict[str, Any]] = []
    with _server(directory) as server:
        arguments = {
            "backend": "postgresql",
            "directory": folder,
            "port": server["port"],
            "password_file": _password(folder, server["password"]),
            "store_mb": megabytes,
            "sessions": SESSIONS,
            "seconds": seconds,
        }
        ours("run_store", {**arguments, "seconds": 0.5})
        program = _peer(folder)
        reached = f"host=127.0.0.1 port={server['port']} user=shop dbname=shop sslmode=disable "
        reached += f"password={server['password']}"
        peer = [program, reached, SESSIONS, seconds, SESSION_SQL]
        for number in range(rounds):
            for is_ours in (True, False) if number % 2 == 0 else (False, True):
                if is_ours:
                    engine.append(ours("run_store", {**arguments, "seed": number + 2}))
                else:
                    peers.append(_told(peer))
        ours("run_store", {**arguments, "seconds": 0.5, "audit": 1})
    shutil.rmtree(folder)
    cost = [one["processor_ms_per_order"] for one in engine]
    rates = Comparison([one["opm"] for one in engine], [one["opm"] for one in peers])
    ratio = statistics.median(rates.ratios)
    command = f"run_store backend=postgresql sessions={SESSIONS} seconds={seconds}"
    return [
        Figure(
            COST,
            f"{SESSIONS} connections: ms of processor per order",
            f"{_spread(cost, 3)}; the peer "
            f"{_spread([one['processor_ms_per_order'] for one in peers], 3)}",
            f"at most {PROCESSOR_MS_MAX}",
            statistics.median(cost) <= PROCESSOR_MS_MAX,
            command,
            load,
            data={"ours": engine, "peer": peers},
        ),
        Figure(
            COST,
            f"{SESSIONS} connections: orders per minute over a driver with threads on libpq",
            f"{_spread(rates.ratios, 2)}; {statistics.median(rates.ours):.0f} against "
            f"{statistics.median(rates.theirs):.0f}",
            f"at least {OVER_PEER_MIN}",
            ratio >= OVER_PEER_MIN,
            f"{command}; libpq_orders .. {SESSIONS} {seconds} session.sql",
            load,
            data=rates.row(),
        ),
    ]


def _told(command: list[object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_program(command).strip().splitlines()[-1])
    return found


def embedded(directory: Path, quick: bool) -> list[Figure]:
    """SQLite, synchronous in full, and the engine with durable commits, in turns."""
    folder, load = _folder(directory, "store"), load_average()
    rounds, seconds, megabytes = (1, 1, 1) if quick else (ROUNDS, 20, 10)
    arguments = {
        "directory": folder,
        "store_mb": megabytes,
        "sessions": SESSIONS,
        "seconds": seconds,
    }
    found: dict[str, list[dict[str, Any]]] = {"store": [], "sqlite": []}
    for backend in found:
        ours("run_store", {**arguments, "backend": backend, "seconds": 0.5})
    for number in range(rounds):
        for backend in found if number % 2 == 0 else reversed(list(found)):
            one = {**arguments, "backend": backend, "existing": 1, "seed": number + 2}
            found[backend].append(ours("run_store", one))
    for backend in found:
        ours("run_store", {**arguments, "backend": backend, "existing": 1, "audit": 1})
    shutil.rmtree(folder)
    rates = Comparison(*([one["opm"] for one in found[name]] for name in ("store", "sqlite")))
    command = f"run_store backend=.. sessions={SESSIONS} seconds={seconds}"
    return [
        Figure(
            EMBEDDED,
            f"SQLite, synchronous FULL, {SESSIONS} sessions: orders per minute",
            _spread(rates.theirs, 0),
            f"at least {SQLITE_OPM_MIN}",
            statistics.median(rates.theirs) >= SQLITE_OPM_MIN,
            command,
            load,
            data={"runs": found["sqlite"]},
        ),
        Figure(
            EMBEDDED,
            f"engine, durable, {SESSIONS} sessions: orders per minute over SQLite's",
            f"{_spread(rates.ratios, 2)}; {statistics.median(rates.ours):.0f} against "
            f"{statistics.median(rates.theirs):.0f}",
            f"at least {OVER_SQLITE_MIN}",
            statistics.median(rates.ratios) >= OVER_SQLITE_MIN,
            command,
            load,
            data={**rates.row(), "runs": found["store"]},
        ),
    ]


def formula(directory: Path, quick: bool) -> list[Figure]:
    """Half an hour of 20 and of 50 sessions that think 1.5 s, in real time on the engine."""
    folder = _folder(directory, "store")
    arguments: dict[str, object] = {
        "directory": folder,
        "store_mb": 1 if quick else 10,
        "think_s": 0.05 if quick else 1.5,
        "ramp_s": 0.5 if quick else 30,
        "seconds": 2 if quick else 1800,
    }
    found = []
    for sessions in (20, 50):
        load = load_average()
        one = ours("run_store", {**arguments, "sessions": sessions})
        arguments["existing"] = 1
        off = one["opm"] / one["formula_opm"] - 1
        found.append(
            Figure(
                FORMULA,
                f"{sessions} sessions that think {arguments['think_s']} s: orders per minute",
                f"{one['opm']:.1f}, {100 * off:+.2f} % off {one['formula_opm']:.1f}; an order took "
                f"{one['order_ms_mean']:.2f} ms",
                f"within {OFF_MAX:.1%}",
                abs(off) <= OFF_MAX,
                f"run_store backend=store sessions={sessions} think_s={arguments['think_s']} "
                f"seconds={arguments['seconds']}",
                load,
                data=one,
            )
        )
    shutil.rmtree(folder)
    return found
