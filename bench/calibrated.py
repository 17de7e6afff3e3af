"""How well a calibrated model predicts.

A sweep of the storage at hand, the performance test predicted from it, then the test itself.

All three in one section, one right after the other, because a storage is not the same an hour
later. Test and prediction use the same size, sessions and cache; the prediction knows nothing of
the run. On a busy or shared storage the comparison is worth nothing: then the fit is one to noise,
which the error on the points held out shows. With one database the engine leaves a processor of two
free; with two it competes with the kernel for both.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from programs import PLIMSOLL, ROOT, ProgramError, run

SECTION = "Calibration: predicted, then measured"
#: The benchmark says on which machine it was made; its own disk will do.
ON_ANY_DISK = "--allow-system-disk"
ERROR_PERCENT_MAX = 15.0
#: What is compared, and how it is called in the summary of a run.
READ, WRITE, LOG = "database_read", "database_write", "log_write"
KEY_FIGURES = {
    "database IOPS": "1/s",
    "database read latency": "ms",
    "page write latency": "ms",
    "log write latency": "ms",
}
#: Each database has a thread of its own: with as many as processors, storage and host are loaded
#: together.
DATABASE_COUNTS = (1, 2)


def calibrated(directory: Path, quick: bool) -> list[Figure]:
    """Calibrate, predict, run; the fit, and for each number of databases the rate and the
    latencies.
    """
    folder = directory / "calibrated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load = load_average()
    # Long enough for a steady rate, short enough for a machine that is quiet for ten minutes; the
    # cache holds a thirtieth of a database.
    sweep_mib, minutes, size_mib, cache_mib = (64, 0.1, 64, 2) if quick else (2048, 2, 2048, 64)
    preset = folder / "measured.toml"
    words = [
        "calibrate",
        "--measure",
        folder,
        "--size-mib",
        sweep_mib,
        "--out",
        preset,
        "--yes",
        "--json",
        ON_ANY_DISK,
    ]
    fitted = json.loads(
        run([PLIMSOLL, *words, *(["--quick", "--seconds", "0.2"] if quick else [])])
    )
    command = f"plimsoll {' '.join(map(str, words[:-2]))}"
    error = fitted["error_percent_held_out"]
    found = [
        Figure(
            SECTION,
            "fit of the sweep, mean error on the points held out",
            f"{error:.1f} % ({len(fitted['points'])} points)",
            "stated",
            None,
            command,
            load,
            data=fitted,
        ),
    ]
    for database_count in DATABASE_COUNTS:
        options = [
            "--databases",
            database_count,
            "--size-mib",
            size_mib,
            "--minutes",
            minutes,
            "--sessions",
            3,
        ]
        options += ["--cache-mib", cache_mib, "--yes", "--quiet"]
        predicted = _test(["--modelled", preset, *options], folder / f"predicted{database_count}")
        measured = _test([folder / "databases", *options], folder / f"measured{database_count}")
        shutil.rmtree(folder / "databases", ignore_errors=True)
        tested = f"plimsoll test performance {folder / 'databases'} {' '.join(map(str, options))}"
        for name, unit in KEY_FIGURES.items():
            of = f"{name}, {database_count} database{'s' if database_count > 1 else ''}"
            found.append(_beside(of, predicted[name], measured[name], unit, tested, load, quick))
    shutil.rmtree(folder)
    return found


def _test(words: list[object], out: Path) -> dict[str, float]:
    """Rate and read latency of a performance test; its verdict does not matter here."""
    command = [
        str(word)
        for word in (PLIMSOLL, "test", "performance", *words, "--out", out, "--create", ON_ANY_DISK)
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    summary = out / "summary.json"
    if not summary.exists():
        raise ProgramError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}"
        )
    total: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))["total"]
    iops = total[READ]["per_s"] + total[WRITE]["per_s"]
    return dict(
        zip(
            KEY_FIGURES,
            (iops, *(total[kind]["latency_ms_mean"] for kind in (READ, WRITE, LOG))),
            strict=True,
        )
    )


def _beside(
    name: str, predicted: float, measured: float, unit: str, command: str, load: float, quick: bool
) -> Figure:
    error = 100 * (predicted / measured - 1)
    return Figure(
        SECTION,
        f"{name} of the performance test on the storage at hand, predicted (MODELLED) against "
        f"measured",
        f"{predicted:,.3g} against {measured:,.3g} {unit}: {error:+.1f} %",
        f"within {ERROR_PERCENT_MAX:g} %",
        None if quick else abs(error) <= ERROR_PERCENT_MAX,
        command,
        load,
        data={"predicted": predicted, "measured": measured, "error_percent": error},
    )
