"""How fast virtual time goes, and how fast redo goes in it."""

import os
import re
import signal
import subprocess
import time

from environment import load_average
from figure import Figure
from programs import ROOT, ProgramError, ours, run

SECTION = "Virtual time"
REDO_RATIO_MIN = 3.0
POWER_CUTS = 10_000
MEMORY_BYTES_MAX = 4 << 30


def power_cuts(wall_seconds: float) -> list[Figure]:
    """Ten thousand power cuts, each with recovery and audit, or as many as there is time for."""
    load = load_average()
    build = [
        "cargo",
        "test",
        "--release",
        "--locked",
        "-q",
        "-p",
        "plimsoll-engine",
        "--test",
        "power_cut",
    ]
    run([*build, "--no-run"])
    command = [*build, "--", "--ignored", "--nocapture", "power_cuts_for_as_long_as_told"]
    shown = f"PLIMSOLL_CUTS={POWER_CUTS} {' '.join(command)}"
    began = time.monotonic()
    cuts, simulated_s, wall_s = 0, 0.0, 0.0
    is_out_of_time = False
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PLIMSOLL_CUTS": str(POWER_CUTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as test:
        assert test.stdout is not None
        for line in test.stdout:
            # Totals since it began, again and again.
            if found := re.search(r"(\d+) power cuts of .* in ([\d.]+) simulated seconds", line):
                cuts, simulated_s = int(found[1]), float(found[2])
                wall_s = time.monotonic() - began
            if time.monotonic() - began > wall_seconds:
                # Cargo and the test it runs.
                os.killpg(test.pid, signal.SIGTERM)
                is_out_of_time = True
                break
    if test.returncode != 0 and not is_out_of_time:
        raise ProgramError(f"the test of power cuts failed: {shown}")
    if cuts == 0:
        raise ProgramError(
            f"no totals of power cuts were printed in {time.monotonic() - began:.0f} s: {shown}"
        )
    data: dict[str, object] = {"cuts": cuts, "wall_s": wall_s, "simulated_s": simulated_s}
    per_hour = cuts / wall_s * 3600
    return [
        Figure(
            SECTION,
            "power cuts recovered and audited per wall hour, one thread",
            f"{per_hour:.0f} ({cuts} cuts in {wall_s:.0f} s)",
            "stated",
            None,
            shown,
            load,
            data=data,
        ),
        Figure(
            SECTION,
            "simulated hours per wall hour while power is cut",
            f"{simulated_s / wall_s:.3f} (busy sessions on disks of 20 µs to 2 ms)",
            "stated",
            None,
            shown,
            load,
            data=data,
        ),
    ]


def sparse_day(quick: bool, wall_seconds: float) -> list[Figure]:
    """A terabyte at 330 I/Os per second."""
    load = load_average()
    more = {"hours": 24, "wall_seconds": 0.5 if quick else wall_seconds}
    found = ours("sparse_day", more)
    day = found["simulated_hours"] >= 23.999
    hours = found["simulated_hours"] - found["warm_hours"]
    growth = (found["resident_bytes"] - found["warm_resident_bytes"]) / max(hours, 1e-9)
    left = 0.0 if day else 24 - found["simulated_hours"]
    memory = found["resident_bytes_max"] + left * growth
    how = (
        "measured"
        if day
        else f"extrapolated in a straight line from {found['simulated_hours']:.2f} h"
    )
    command = f"target/release/sparse_day hours={more['hours']} wall_seconds={more['wall_seconds']}"
    speed = found["simulated_hours_per_wall_hour"]
    return [
        Figure(
            SECTION,
            "1 TB sparse database at 330 I/Os per second: simulated hours per wall hour",
            f"{speed:.1f} ({found['simulated_hours_per_processor_hour']:.1f} per processor hour; "
            f"{found['simulated_hours']:.2f} h simulated, {found['database_iops']:.0f} database "
            f"I/Os per second)",
            "stated",
            None,
            command,
            load,
            data=found,
        ),
        Figure(
            SECTION,
            "the same: memory of the process after 24 h",
            f"{memory / (1 << 30):.2f} GiB ({how})",
            "below 4 GiB",
            memory < MEMORY_BYTES_MAX if day or not quick else None,
            command,
            load,
        ),
    ]


def redo(quick: bool) -> list[Figure]:
    """Redo against the rate at which the log was made, both with reads of 12 ms."""
    found = []
    for sessions, sluggish in [(3, 1), (3, 0), (16, 0)]:
        if quick and (sessions, sluggish) != (3, 1):
            continue
        load = load_average()
        more = {"generations": 2 if quick else 20, "sessions": sessions, "sluggish": sluggish}
        one = ours("redo_rate", more)
        found.append(
            Figure(
                SECTION,
                f"redo rate over logging rate at 12 ms reads, {sessions} sessions, sluggish "
                f"{sluggish}" + (" (the edition's own)" if (sessions, sluggish) == (3, 1) else ""),
                f"{one['ratio']:.2f} ({one['logged_mib']:.0f} MiB logged in {one['logged_s']:.0f} "
                f"s, "
                f"recovered in {one['recovery_s']:.1f} s)",
                f"at least {REDO_RATIO_MIN:g}",
                one["ratio"] >= REDO_RATIO_MIN,
                "target/release/redo_rate "
                + " ".join(f"{key}={value}" for key, value in more.items()),
                load,
                data=one,
            )
        )
    return found
