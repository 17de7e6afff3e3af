"""A killed run on a whole block device.

Recovered from the logs in its directory, as on a file system.
"""

import json
import signal
import subprocess
import time
from pathlib import Path

from plimsoll.files import folder
from tests.databases.test_block_device import plan_file
from tests.support.places import PLIMSOLL, loop_device, plimsoll


def test_a_killed_run_on_a_device_is_recovered(tmp_path: Path) -> None:
    """The device has no file length to go by.

    How far the database reaches must come from its own space trees.
    """
    with loop_device(tmp_path / "backing", 512) as device:
        plan = plan_file(tmp_path, device)
        plan.write_text(plan.read_text().replace("duration_s = 2", "duration_s = 300"))
        command = [
            *PLIMSOLL,
            "run",
            str(plan),
            "--destroy",
            device,
            "--out",
            str(tmp_path / "killed"),
            "--yes",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = tmp_path / "killed" / folder.EVENTS
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (
            log.exists() and "measure started" in log.read_text()
        ):
            time.sleep(0.05)
        time.sleep(2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        plan.write_text(plan.read_text().replace("duration_s = 300", "duration_s = 2"))
        result = plimsoll(
            "run", plan, "--destroy", device, "--out", tmp_path / "next", cwd=tmp_path
        )
        assert "mail was not closed by its last run; it will be recovered" in result.stderr, (
            result.stderr
        )
        outcome = json.loads((tmp_path / "next" / folder.OUTCOME).read_text())
        assert outcome["ending"] == "complete", outcome["error"]
        checksum = outcome["phases"][-1]["checksums"][0]
        assert (checksum["bad"], checksum["wrong_page_number"]) == (0, 0)
        deep = plimsoll("verify", device, "--deep", cwd=tmp_path)
        assert deep.returncode == 0, deep.stdout
