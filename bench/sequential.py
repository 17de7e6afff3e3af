"""Reading and writing whole files against fio: verify, backup, prepare."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from pairs import Comparison, compare, lower_bound
from programs import TARGET, fio, ours, run

SECTION = "Whole files"
READ_RATIO_MIN = 0.95
WRITE_RATIO_MIN = 0.90
VERIFY = (256 << 10, 8)
BACKUP = (1 << 20, 1)
PREPARE = (1 << 20, 4)


def _figure(name: str, comparison: Comparison, least: float, command: str, load: float) -> Figure:
    row = comparison.row()
    bound = lower_bound(comparison.ratios)
    return Figure(
        SECTION,
        f"{name}, rate over fio's",
        f"{bound:.3f} (median {row['ratio_median']:.3f}, {row['ratio_least']:.2f} to "
        f"{row['ratio_most']:.2f}, "
        f"n = {row['pairs']}; median {sorted(comparison.ours)[len(comparison.ours) // 2]:.0f} "
        f"MiB/s)",
        f"lower 90 % bound at least {least:g}",
        bound >= least,
        command,
        load,
        data=row,
    )


def _fio_rate(
    path: Path, pattern: str, block_bytes: int, depth: int, size: int, **more: Any
) -> Callable[[], float]:
    def measure() -> float:
        part = fio(path, pattern, block_bytes, depth, size=size, **more)
        rate: float = part["bw_bytes"] / (1 << 20)
        return rate

    return measure


@contextmanager
def _folder(directory: Path) -> Iterator[Path]:
    folder = directory / "sequential"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


def _size_and_pairs(quick: bool) -> tuple[int, int]:
    return (48 << 20, 1) if quick else (1 << 30, 13)


def prepare(directory: Path, quick: bool) -> list[Figure]:
    """Making a prepared database, interleaved with fio writing as much."""
    size, pairs = _size_and_pairs(quick)
    block, depth = PREPARE
    load = load_average()
    with _folder(directory) as folder:
        spare = folder / "spare.edb"

        def rate() -> float:
            line = run(
                [
                    TARGET / "examples" / "prepare_file",
                    spare,
                    "32768",
                    f"bytes={size}",
                    f"block={block}",
                    f"depth={depth}",
                ]
            )
            spare.unlink()
            told = json.loads(line)
            return float(told["bytes"]) / float(told["seconds"]) / (1 << 20)

        write = _fio_rate(folder / "fio", "write", block, depth, size, end_fsync=1, unlink=1)
        command = (
            f"prepare_file FILE 32768 bytes={size} block={block} depth={depth}; fio --rw=write "
            f"--end_fsync=1"
        )
        return [_figure("prepare", compare(pairs, rate, write), WRITE_RATIO_MIN, command, load)]


def _prepared(folder: Path, size: int) -> Path:
    ours(
        "contest",
        {"store": "engine", "action": "prepare", "directory": folder, "database_bytes": size},
    )
    return folder / "priv0001.edb"


def verify(directory: Path, quick: bool) -> list[Figure]:
    """Verifying every page of a cold file, interleaved with fio reading it."""
    size, pairs = _size_and_pairs(quick)
    block, depth = VERIFY
    load = load_average()
    with _folder(directory) as folder:
        database = _prepared(folder, size)

        def rate() -> float:
            line = run([TARGET / "examples" / "verify_file", block, depth, database])
            return float(line.partition("mib_per_s=")[2].split()[0])

        read = _fio_rate(database, "read", block, depth, database.stat().st_size)
        command = f"verify_file {block} {depth} FILE; fio --rw=read"
        return [_figure("verify", compare(pairs, rate, read), READ_RATIO_MIN, command, load)]


def backup(directory: Path, quick: bool) -> list[Figure]:
    """Streaming a database out as a backup does, interleaved with fio reading it."""
    size, pairs = _size_and_pairs(quick)
    block, depth = BACKUP
    load = load_average()
    with _folder(directory) as folder:
        database = _prepared(folder, size)

        def rate() -> float:
            found: float = ours("backup_file", {"directory": folder, "read_bytes": block})[
                "mib_per_s"
            ]
            return found

        read = _fio_rate(database, "read", block, depth, database.stat().st_size)
        command = (
            f"backup_file directory=FOLDER read_bytes={block}; fio --rw=read --iodepth={depth}"
        )
        return [_figure("backup", compare(pairs, rate, read), READ_RATIO_MIN, command, load)]
