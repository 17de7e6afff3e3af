"""Files under the published access specification of a file server: in turns with fio's bssplit at
the same depth on the same file, and how well a rate for each of 200 users is held on two servers.
"""

import json
import shutil
import statistics
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from pairs import Comparison
from programs import ours
from programs import run as run_program

BESIDE, RATE = "Files beside fio", "Files at a rate"
DEPTHS = (1, 2, 8, 32)
PAIRS = 5
IOPS_RATIO_MIN = 0.97
LATENCY_EXCESS_MAX = 0.03
USERS, IOPS_PER_USER, SERVERS = 200, 0.70, 2
BAND = (0.60, 0.75)
HELD_WITHIN = 0.005
#: The published specification: bytes and shares, 80 % reads, all random.
BSSPLIT = "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10"


def beside_fio(directory: Path, quick: bool) -> list[Figure]:
    """Depth by depth, both sides with direct I/O on one file."""
    folder = directory / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seconds = 1 if quick else 20
    arguments: dict[str, object] = {
        "directory": folder,
        "file_mib": 64 if quick else 5120,
        "seconds": seconds,
    }
    ours("run_files", {**arguments, "seconds": 0.2})
    arguments["existing"] = 1
    path = folder / "files1" / "file001.dat"
    found = []
    for depth in DEPTHS[:1] if quick else DEPTHS:
        load = load_average()
        own: list[dict[str, Any]] = []
        peer: list[dict[str, Any]] = []
        for number in range(1 if quick else PAIRS):
            one = {**arguments, "depth": depth, "seed": number + 2}
            for is_ours in (True, False) if number % 2 == 0 else (False, True):
                if is_ours:
                    own.append(ours("run_files", one))
                else:
                    peer.append(_fio(path, depth, seconds))
        found += _beside(depth, seconds, own, peer, load)
    shutil.rmtree(folder)
    return found


def _fio(path: Path, depth: int, seconds: int) -> dict[str, Any]:
    words = [
        "fio",
        "--name=peer",
        f"--filename={path}",
        "--rw=randrw",
        "--rwmixread=80",
        f"--bssplit={BSSPLIT}",
        "--blockalign=512",
        "--norandommap=1",
        "--randrepeat=0",
        "--ioengine=io_uring",
        "--direct=1",
        f"--iodepth={depth}",
        "--time_based=1",
        "--ramp_time=1",
        f"--runtime={seconds}",
        "--refill_buffers=1",
        "--output-format=json",
    ]
    job = json.loads(run_program(words))["jobs"][0]
    parts = [job["read"], job["write"]]
    count = sum(part["total_ios"] for part in parts)
    total_ns = sum(part["lat_ns"]["mean"] * part["total_ios"] for part in parts)
    return {
        "iops": sum(part["iops"] for part in parts),
        "us_mean": total_ns / max(count, 1) / 1000,
    }


def _beside(
    depth: int, seconds: int, own: list[dict[str, Any]], peer: list[dict[str, Any]], load: float
) -> list[Figure]:
    rates = Comparison([one["iops"] for one in own], [one["iops"] for one in peer])
    latency = Comparison([one["us_mean"] for one in own], [one["us_mean"] for one in peer])
    command = (
        f"run_files depth={depth} seconds={seconds}; fio --rw=randrw --rwmixread=80 "
        f"--bssplit={BSSPLIT} --iodepth={depth}"
    )
    rate, excess = statistics.median(rates.ratios), statistics.median(latency.ratios)
    return [
        Figure(
            BESIDE,
            f"depth {depth}: I/O per second over fio's",
            f"{rate:.3f} ({min(rates.ratios):.2f} to {max(rates.ratios):.2f}, n = {len(own)}; "
            f"{statistics.median(rates.ours):.0f} against {statistics.median(rates.theirs):.0f})",
            f"at least {IOPS_RATIO_MIN}",
            rate >= IOPS_RATIO_MIN,
            command,
            load,
            data={**rates.row(), "runs": own},
        ),
        Figure(
            BESIDE,
            f"depth {depth}: mean latency over fio's",
            f"{excess:.3f} ({min(latency.ratios):.2f} to {max(latency.ratios):.2f}, "
            f"n = {len(own)}; {statistics.median(latency.ours):.0f} against "
            f"{statistics.median(latency.theirs):.0f} µs)",
            f"within {LATENCY_EXCESS_MAX:.0%}, or lower",
            excess <= 1 + LATENCY_EXCESS_MAX,
            command,
            load,
            data=latency.row(),
        ),
    ]


def at_a_rate(directory: Path, quick: bool) -> list[Figure]:
    """Two hundred users on each of two servers, in windows of ten seconds."""
    folder, load = directory / "files", load_average()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = USERS * IOPS_PER_USER
    arguments: dict[str, object] = {
        "directory": folder,
        "servers": SERVERS,
        "per_s": wanted,
        "file_mib": 64 if quick else 2048,
        "seconds": 10 if quick else 120,
    }
    one = ours("run_files", arguments)
    shutil.rmtree(folder)
    least, most = (one[f"window_{which}_per_s"] / USERS for which in ("least", "most"))
    off = one["transactions_per_s"] / (SERVERS * wanted) - 1
    command = f"run_files servers={SERVERS} per_s={wanted:g} seconds={arguments['seconds']}"
    return [
        Figure(
            RATE,
            f"{USERS} users x {SERVERS} servers at {IOPS_PER_USER:.2f} I/O per second each",
            f"{one['transactions_per_s']:.2f} per second, {100 * off:+.3f} % off",
            f"within {HELD_WITHIN:.1%}",
            abs(off) <= HELD_WITHIN,
            command,
            load,
            data=one,
        ),
        Figure(
            RATE,
            f"least and most of a user in {one['windows']} windows of 10 s",
            f"{least:.3f} to {most:.3f}",
            f"within {BAND[0]:.2f} to {BAND[1]:.2f}",
            BAND[0] <= least <= most <= BAND[1],
            command,
            load,
        ),
    ]
