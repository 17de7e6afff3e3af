"""Tests run the same whoever started them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import signal, pytest
signal.signal(signal.SIGHUP, signal.SIG_IGN)
assert pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "tests/units"]) == 0
assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL, "children would inherit it"
"""


def test_signals_that_nohup_ignores_reach_the_programs_that_tests_start() -> None:
    """Under nohup two tests failed that end a program by SIGHUP.

    It had inherited that the signal is ignored.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
