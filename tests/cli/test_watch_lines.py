"""`plimsoll watch` of a run with loads and events: in the order in which it happened, and no wider
than a terminal.
"""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.two_loads import two_loads

FAILS = [
    {
        "name": "drive 2 of the shelf in the other room, pulled out by hand while all loads ran",
        "after_s": 30,
        "do": "drive fails",
        "number": 2,
    }
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_loads(tmp_path_factory.mktemp("watched") / "run", event=FAILS)


def watched(run: Path, error_stream: int) -> None:
    command = [sys.executable, "-m", "plimsoll.cli", "watch", str(run)]
    environment = {**os.environ, "COLUMNS": "80"}
    subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=error_stream,
        env=environment,
        timeout=60,
        check=False,
    )


def test_events_come_in_the_order_in_which_they_happened(run: Path, tmp_path: Path) -> None:
    """Those that were staged are written down after the phase in which they were."""
    kept = tmp_path / "errors"
    with kept.open("wb") as stream:
        watched(run, stream.fileno())
    lines = [line for line in kept.read_text("utf-8").splitlines() if " s  " in line]
    seconds = [float(line.split()[0]) for line in lines]
    assert seconds == sorted(seconds)
    assert any(f"event {FAILS[0]['name']} applied" in line for line in lines)


def test_on_a_terminal_no_line_is_wider_than_it(run: Path) -> None:
    reading, writing = pty.openpty()
    watched(run, writing)
    os.close(writing)
    told = b""
    # The end of a terminal whose other side is closed is an error on Linux.
    try:
        while piece := os.read(reading, 65536):
            told += piece
    except OSError:
        pass
    finally:
        os.close(reading)
    lines = told.decode().splitlines()
    assert lines and max(map(len, lines)) <= 80
