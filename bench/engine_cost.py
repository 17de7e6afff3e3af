"""What the engine and the checksum cost in processor time."""

import os
from pathlib import Path

from environment import load_average
from figure import Figure
from pairs import spread
from programs import ROOT, TARGET, fio, ours, run

SECTION = "Processor time"
PROCESSOR_US_MAX = 10.0
CHECKSUM_RATIO_MIN = {"x86-64": 3.5, "x86-64-v3": 2.0}


def engine(directory: Path, quick: bool) -> list[Figure]:
    """Executor and engine on a RAM disk, and fio on the real disk in between."""
    load = load_average()
    scratch = directory / "fio-random"
    size = "16m" if quick else "1g"
    fio(scratch, "write", 1 << 20, 4, size=size)
    rounds, ram, raw = (1 if quick else 5), [], []
    more = (
        {"cache_mib": 4, "seconds": 0.3, "touched_mib": 64}
        if quick
        else {"cache_mib": 64, "seconds": 5}
    )
    for _ in range(rounds):
        ram.append(ours("ram_engine", more))
        seconds = 1 if quick else 4
        raw.append(
            fio(
                scratch,
                "randread",
                32 << 10,
                32,
                size=size,
                time_based=1,
                runtime=seconds,
                norandommap=1,
            )
        )
    scratch.unlink()
    costs = spread([one["processor_us_per_database_io"] for one in ram])
    peers = spread([one["processor_us_per_io"] for one in raw])
    arguments = " ".join(f"{key}={value}" for key, value in more.items())
    return [
        Figure(
            SECTION,
            "engine on a RAM disk, µs of processor per database I/O",
            costs.text(),
            f"at most {PROCESSOR_US_MAX:g}",
            costs.median <= PROCESSOR_US_MAX,
            f"target/release/ram_engine {arguments}",
            load,
            data={"runs": ram},
        ),
        Figure(
            SECTION,
            "fio, 32 KiB random reads on the real disk, depth 32, µs of processor per I/O",
            peers.text(),
            "beside it",
            None,
            "fio --rw=randread --bs=32768 --iodepth=32 --ioengine=io_uring --direct=1",
            load,
            data={
                "runs": [{key: one[key] for key in ("iops", "processor_us_per_io")} for one in raw]
            },
        ),
    ]


def checksum(quick: bool) -> list[Figure]:
    """The checksum kernel against the obvious loop, as built for each processor level."""
    found = []
    for level, least in CHECKSUM_RATIO_MIN.items():
        if quick and level != "x86-64":
            continue
        load = load_average()
        program = TARGET / "examples" / "checksum_rate"
        command = "cargo run --release -p plimsoll-engine --example checksum_rate"
        if level != "x86-64":
            flags = f"-C target-cpu={level}"
            target = ROOT / "target" / level
            command = f'RUSTFLAGS="{flags}" {command}'
            build = [
                "cargo",
                "build",
                "--release",
                "--locked",
                "-p",
                "plimsoll-engine",
                "--example=checksum_rate",
            ]
            run(build, {**os.environ, "RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(target)})
            program = target / "release" / "examples" / "checksum_rate"
        lines = run([program, *(["1"] if quick else [])]).strip().splitlines()[2:]
        rows = [[float(word) for word in line.split()] for line in lines]
        ratios = [row[3] for row in rows]
        rates = ", ".join(
            f"{row[0] / 1024:g} KiB: {row[2]:.1f} against {row[1]:.1f} GB/s" for row in rows
        )
        found.append(
            Figure(
                SECTION,
                f"checksum kernel over counting loop, built for {level}, least of four page sizes",
                f"{min(ratios):.2f} ({rates})",
                f"at least {least:g}",
                min(ratios) >= least,
                command,
                load,
                data={
                    "columns": "page bytes, counting, kernel, ratio, copy and sum (GB/s)",
                    "rows": rows,
                },
            )
        )
    return found


def durable_writes(directory: Path, quick: bool) -> list[Figure]:
    """The two ways to make a log write durable, one write at a time."""
    found = []
    for size in (512 * 8, 64 << 10):
        load = load_average()
        more = {"bytes": size, "batches": 2 if quick else 40}
        one = ours("durable_write", {"directory": directory, **more})
        flag, sync = one["flag_us_median"], one["sync_us_median"]
        found.append(
            Figure(
                "Durable log writes",
                f"{size >> 10} KiB: RWF_DSYNC against write and fdatasync, µs",
                f"{flag:.0f} against {sync:.0f} (p99 {one['flag_us_p99']:.0f} against "
                f"{one['sync_us_p99']:.0f})",
                "reported",
                None,
                "target/release/durable_write directory=DIRECTORY "
                + " ".join(f"{k}={v}" for k, v in more.items()),
                load,
                data=one,
            )
        )
    return found
