"""Reading and writing whole files against fio: verify, backup, prepare."""

import shutil
from collections.abc import Callable
from pathlib import Path

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
        f"{bound:.3f} (median {row['ratio_median']:.3f}, {row['ratio_least']:.2f} to {row['ratio_most']:.2f}, "
        f"n = {row['pairs']}; median {sorted(comparison.ours)[len(comparison.ours) // 2]:.0f} MiB/s)",
        f"lower 90 % bound at least {least:g}",
        bound >= least,
        command,
        load,
        data=row,
    )


def _fio_rate(path: Path, pattern: str, block_bytes: int, depth: int, size: int, **more: object) -> Callable[[], float]:
    def measure() -> float:
        part = fio(path, pattern, block_bytes, depth, size=size, **more)
        rate: float = part["bw_bytes"] / (1 << 20)
        return rate

    return measure


def figures(directory: Path, quick: bool) -> list[Figure]:
    """All three, each interleaved with fio on the same file."""
    size, pairs = (48 << 20, 1) if quick else (1 << 30, 13)
    folder = directory / "sequential"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    database = folder / "priv0001.edb"
    prepare = TARGET / "examples" / "prepare_file"
    block, depth = PREPARE
    spare = folder / "spare.edb"

    def prepare_rate() -> float:
        spare.unlink(missing_ok=True)
        line = run([prepare, spare, "32768", f"bytes={size}", f"block={block}", f"depth={depth}"])
        words = dict(part.strip('{}," ').split('": ') for part in line.strip().split(', "'))
        spare.unlink()
        return float(words["bytes"]) / float(words["seconds"]) / (1 << 20)

    found = []
    load = load_average()
    fio_file = folder / "fio"
    write = _fio_rate(fio_file, "write", block, depth, size, end_fsync=1, unlink=1)
    command = f"prepare_file FILE 32768 bytes={size} block={block} depth={depth}; fio --rw=write --end_fsync=1"
    found.append(_figure("prepare", compare(pairs, prepare_rate, write), WRITE_RATIO_MIN, command, load))

    ours("contest", {"store": "engine", "action": "prepare", "directory": folder, "database_bytes": size})
    block, depth = VERIFY
    load = load_average()

    def verify_rate() -> float:
        line = run([TARGET / "examples" / "verify_file", str(VERIFY[0]), str(VERIFY[1]), database])
        return float(line.partition("mib_per_s=")[2].split()[0])

    length = database.stat().st_size
    read = _fio_rate(database, "read", block, depth, length)
    command = f"verify_file {block} {depth} FILE; fio --rw=read"
    found.append(_figure("verify", compare(pairs, verify_rate, read), READ_RATIO_MIN, command, load))

    block, depth = BACKUP
    load = load_average()

    def backup_rate() -> float:
        rate: float = ours("backup_file", {"directory": folder, "read_bytes": BACKUP[0]})["mib_per_s"]
        return rate

    read = _fio_rate(database, "read", block, depth, length)
    command = f"backup_file directory=FOLDER read_bytes={block}; fio --rw=read --iodepth={depth}"
    found.append(_figure("backup", compare(pairs, backup_rate, read), READ_RATIO_MIN, command, load))
    shutil.rmtree(folder)
    return found
