"""Running the measuring programs and fio, and reading what they print."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: The installed program, and the interpreter that has it.
PLIMSOLL, PYTHON = (ROOT / ".venv" / "bin" / name for name in ("plimsoll", "python"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


class ProgramError(Exception):
    """A program did not do what was asked; its words are the message."""


def run(command: Sequence[object], environment: Mapping[str, str] | None = None) -> str:
    """What a program printed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise ProgramError(
            f"{' '.join(words)} ended with {done.returncode}: "
            f"{done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def ours(name: str, arguments: Mapping[str, object], under: Sequence[str] = ()) -> dict[str, Any]:
    """One of our programs: arguments as name=value in, one line of JSON out."""
    words: list[object] = [
        *under,
        TARGET / name,
        *(f"{key}={value}" for key, value in arguments.items()),
    ]
    lines = run(words).strip().splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found


def interrupts_by_processor() -> list[int]:
    """Device interrupts that each processor has served, as the kernel counts them.

    None where it does not tell.
    """
    try:
        head, *lines = Path("/proc/interrupts").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    processors = [int(name.removeprefix("CPU")) for name in head.split()]
    served = [0] * (max(processors) + 1)
    for line in lines:
        number, _, rest = line.partition(":")
        if number.strip().isdigit():
            for processor, count in zip(processors, rest.split(), strict=False):
                served[processor] += int(count)
    return served


def build(*features: str) -> None:
    """Builds everything measured, in release form."""
    flags = ["--features", ",".join(features)] if features else []
    run(["cargo", "build", "--release", "--locked", "-p", "plimsoll-bench", "--bins", *flags])
    for package, names in (
        ("plimsoll-engine", ["checksum_rate", "verify_file"]),
        ("plimsoll-prepare", ["prepare_file"]),
        ("plimsoll-io", ["rawread"]),
    ):
        examples = [f"--example={name}" for name in names]
        run(["cargo", "build", "--release", "--locked", "-p", package, *examples])


def fio(
    path: Path,
    pattern: str,
    block_bytes: int,
    depth: int,
    under: Sequence[str] = (),
    **more: object,
) -> dict[str, Any]:
    """One job of fio on a file with direct I/O.

    Its part for reads or writes, with `processor_us_per_io` added.
    """
    job = {
        "name": "peer",
        "filename": path,
        "rw": pattern,
        "bs": block_bytes,
        "iodepth": depth,
        "ioengine": "io_uring",
        "direct": 1,
        "output-format": "json",
        **more,
    }
    words = [*under, "fio", *(f"--{key}={value}" for key, value in job.items())]
    found = json.loads(run(words))["jobs"][0]
    part: dict[str, Any] = found["write" if "write" in pattern else "read"]
    spent = (found["usr_cpu"] + found["sys_cpu"]) / 100 * found["job_runtime"] * 1000
    part["processor_us_per_io"] = spent / max(part["total_ios"], 1)
    return part
