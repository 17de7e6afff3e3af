"""A signal that arrives when the load is over finds the run folder being written.

Why it matters: what two hours have measured must not be lost, or called a fault of Plimsoll, for a
signal that asked for a stop a moment too late.
"""

import signal
import subprocess
import sys
from pathlib import Path

from plimsoll import exit_codes
from plimsoll.files import folder

MODELLED = """kind = "plan"
schema_version = 1
target = [{ name = "array", modelled = "dell-md3000i" }]
instance = [{ name = "one", database_size_mib = 64 }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 4 }, { kind = "stop" }]
"""

#: A run whose process is asked to end when its samples are about to be joined.
LATE = """
import os, signal, sys
from pathlib import Path
import plimsoll
from plimsoll.run.execute import SampleStore

finish = SampleStore.finish

def finish_late(self):
    os.kill(os.getpid(), signal.SIGTERM)
    finish(self)

SampleStore.finish = finish_late
result = plimsoll.qualify(plimsoll.parse_plan(sys.argv[1]), Path(sys.argv[2]))
print(result.ending)
"""

#: A command that works on a query without end, and is asked to end. DuckDB looks for signals
#: between two tasks of the thread that asked; with more threads another may take the only task,
#: and the signal is seen when the query has ended.
ENDLESS = """
import os, signal, sys, threading
import duckdb
from plimsoll import cli

def command():
    cli._end_as_by_ctrl_c()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    duckdb.connect(config={"threads": 1}).execute(
        "SELECT sum(a.range * b.range) FROM range(1000000) a, range(100000) b"
    )

cli.COMMANDS["planted"] = cli.Row("planted:command", "Planted.")
cli.import_module = lambda _: type("Planted", (), {"command": staticmethod(command)})
sys.exit(cli.run_program(["planted"]))
"""


def _python(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_signal_while_the_folder_is_written_loses_nothing(tmp_path: Path) -> None:
    done = _python(LATE, MODELLED, str(tmp_path / "run"))
    assert done.returncode != -signal.SIGTERM, "the process was ended in the middle"
    assert (done.returncode, done.stdout.strip()) == (0, "complete"), done.stderr
    for name in (folder.SAMPLES, folder.OUTCOME):
        assert (tmp_path / "run" / name).exists()


def test_a_signal_in_the_middle_of_a_query_is_no_fault_of_ours() -> None:
    done = _python(ENDLESS)
    assert done.returncode == exit_codes.INTERRUPTED, done.stderr
    assert "internal error" not in done.stderr
