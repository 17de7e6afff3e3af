"""Transactions per second against SQLite and redb, every process in a memory cgroup of cache + 64
MiB.
"""

import os
import shutil
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from environment import load_average
from figure import Figure
from pairs import lower_bound
from programs import ProgramError, ours

SECTION = "Transactions per second"
CACHE_MIB = 64
INSIDE_BYTES = 16 << 20
OUTSIDE_BYTES = 16 * CACHE_MIB << 20
CONTROLLER = Path("/sys/fs/cgroup/memory")
STORES = ("engine", "sqlite", "redb")
ROUNDS = 5


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[list[str]]:
    """A command prefix that puts a program into a memory cgroup.

    The group goes when the block ends.
    """
    group = CONTROLLER / f"plimsoll-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    except OSError as error:
        raise ProgramError(
            f"no memory cgroup can be made below {CONTROLLER} ({error}); the contest needs root"
        ) from error
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        (group / "memory.force_empty").write_text("0")
        group.rmdir()


def _rate(
    under: list[str],
    store: str,
    folder: Path,
    inside: bool,
    durable: bool,
    sessions: int,
    seconds: float,
) -> float:
    home = folder / store
    arguments = {
        "store": store,
        "directory": home,
        "database_bytes": INSIDE_BYTES if inside else OUTSIDE_BYTES,
        "cache_mib": CACHE_MIB,
    }
    if inside or not home.is_dir():
        # Inside the cache the inserts of one run would carry the next one out of it.
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        ours("contest", {"action": "prepare", **arguments})
    race = {
        "action": "run",
        "durable": int(durable),
        "sessions": sessions,
        "seconds": seconds,
        "transactions_max": 50_000 if inside else 10_000_000,
    }
    ran = ours("contest", {**arguments, **race}, under)
    rate: float = ran["transactions_per_second"]
    return rate


def quick(directory: Path) -> list[Figure]:
    """Only that the engine's side works, without a cgroup and without the others."""
    rate = _rate([], "engine", directory / "contest", True, True, 8, 0.5)
    shutil.rmtree(directory / "contest")
    return [
        Figure(
            SECTION,
            "engine, durable, inside the cache",
            f"{rate:.0f} per second",
            "stated",
            None,
            "target/release/contest",
            load_average(),
            data={"rate": rate},
        )
    ]


def figures(directory: Path, seconds: float, inside: bool, durable: bool) -> list[Figure]:
    """One place and one durability with eight sessions and one; the stores take turns."""
    found = []
    folder = directory / "contest"
    shutil.rmtree(folder, ignore_errors=True)
    with memory_group((CACHE_MIB + 64) << 20) as under:
        for sessions in (8, 1):
            found += _cell(under, folder, inside, durable, sessions, seconds)
    shutil.rmtree(folder)
    return found


def _cell(
    under: list[str], folder: Path, inside: bool, durable: bool, sessions: int, seconds: float
) -> list[Figure]:
    load = load_average()
    rates: dict[str, list[float]] = {store: [] for store in STORES}
    for number in range(ROUNDS):
        for store in STORES if number % 2 == 0 else reversed(STORES):
            rates[store].append(_rate(under, store, folder, inside, durable, sessions, seconds))
    place = "inside the cache" if inside else "16 x the cache"
    how = "durable" if durable else "lazy"
    figures = []
    for peer in STORES[1:]:
        ratios = [ours / theirs for ours, theirs in zip(rates["engine"], rates[peer], strict=True)]
        medians = {store: statistics.median(rates[store]) for store in ("engine", peer)}
        bar = durable and not inside
        figures.append(
            Figure(
                SECTION,
                f"over {peer}, {how}, {place}, {sessions} session{'s' if sessions > 1 else ''}",
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, lower "
                f"90 % bound "
                f"{lower_bound(ratios):.2f}, n = {len(ratios)}; {medians['engine']:.0f} against "
                f"{medians[peer]:.0f} per second)",
                "above 1" if bar else "reported",
                statistics.median(ratios) > 1 if bar else None,
                f"target/release/contest store={peer} action=run database_bytes="
                f"{INSIDE_BYTES if inside else OUTSIDE_BYTES} durable={int(durable)} "
                f"sessions={sessions} seconds={seconds:g}",
                load,
                data={"rates": {"engine": rates["engine"], peer: rates[peer]}, "ratios": ratios},
            )
        )
    return figures
