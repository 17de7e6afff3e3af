"""Databases to read: those made by an independent prototype, in this repository, and those made by
Windows, where they are present.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import run_program

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "ese"
SHARED = Path(os.environ.get("PLIMSOLL_SHARED", ROOT.parent / "shared"))
REAL = SHARED / "data" / "edb_real"


def edb(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`plimsoll edb` as a user starts it, but in this process, which saves a second each time."""
    output, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), io.StringIO()
    words = ["edb", *map(str, arguments)]
    with redirect_stdout(output), redirect_stderr(errors):
        code = run_program(words)
    output.flush()
    text = output.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, text, errors.getvalue())


def refused(result: subprocess.CompletedProcess[str], phrase: str, code: int = 2) -> None:
    """A clear error: the code, the words, no traceback and nothing on the output."""
    assert result.returncode == code, result.stderr
    assert phrase in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert "panicked" not in result.stderr


def golden(name: str, directory: Path) -> Path:
    """A golden database, unpacked."""
    path = directory / name
    path.write_bytes(gzip.decompress((GOLDEN / f"{name}.gz").read_bytes()))
    return path


def real(directory: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Every database made by Windows with its entry in the manifest.

    Skips the test where there is none.
    """
    if not (REAL / "manifest.json").is_file():
        pytest.skip(
            f"no databases made by Windows in {REAL}; set PLIMSOLL_SHARED to test with them"
        )
    found = []
    for entry in json.loads((REAL / "manifest.json").read_text())["files"]:
        path = directory / entry["file"].removesuffix(".gz")
        path.write_bytes(gzip.decompress((REAL / entry["file"]).read_bytes()))
        found.append((path, entry))
    return found


def manifest_of(name: str) -> dict[str, Any]:
    """What is known of a golden database."""
    files = json.loads((GOLDEN / "edb_manifest.json").read_text())["files"]
    entry: dict[str, Any] = next(entry for entry in files if entry["file"] == f"{name}.gz")
    return entry


def flip(path: Path, offset: int, bit: int = 2) -> None:
    """Flip one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
