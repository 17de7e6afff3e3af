"""The bar of planted throttles: a real disk is held to half its rate, and the judgement says so.

The depth, the mean while it lasted, is to be found within 5 points and both edges within 1 s, and
nothing is to be found where nothing was planted. Slow, since it wants a machine of its own: a host
that others load has pauses of its own, which are found as well. `make throttles COUNT=20` carries
out 20 of each, about 25 minutes, and prints them; `tests/results` holds the judgement itself.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from tests.support.loop_disk import loop_disk, skip_without_throttle

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("COUNT", "1"))
DEPTH_PERCENT, DEPTH_POINTS, EDGE_S = 50, 5, 1.0
PLAN = """kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 64 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 36 }}, {{ kind = "stop" }}]
[[workload]]
name = "load"
pattern = "4k-aligned-100read-100random"
load = {{ transactions_per_s = 400, spacing = "regular" }}
[[event]]
name = "planted"
after_s = 14
undo_after_s = 22
{event}
"""
THROTTLE = 'action = "throttle"\niops = 200'
NOTHING = 'command = ["true"]\nundo = ["true"]'


def answer(place: Path, event: str) -> tuple[EventFigures, LoadResponse]:
    """One run on a disk of its own: the event and how the load answered it."""
    skip_without_throttle()
    place.mkdir()
    with loop_disk(place, 160) as disk:
        plan = place / "plan.toml"
        plan.write_text(PLAN.format(path=disk / "target", event=event))
        command = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--allow-commands"]
        command += ["--yes", "--create", "--allow-system-disk", "--out", str(place / "run")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode in (0, 1, 3), done.stderr
    (found,) = Summary.read(place / "run" / folder.SUMMARY).events
    assert found.problem is None, found.problem
    return found, found.loads[0]


@pytest.mark.parametrize("number", range(COUNT))
def test_a_planted_throttle_is_found(tmp_path: Path, number: int) -> None:
    event, load = answer(tmp_path / "one", THROTTLE)
    assert event.begun_s is not None and event.undone_s is not None
    lasted_s = event.undone_s - event.begun_s
    print(json.dumps({"number": number, "lasted_s": lasted_s, **load.plain()}))
    assert event.is_proved
    assert load.degraded_change_percent == pytest.approx(-DEPTH_PERCENT, abs=DEPTH_POINTS)
    assert load.detected_s is not None and load.detected_s <= EDGE_S
    assert load.recovered_s is not None and abs(load.recovered_s - lasted_s) <= EDGE_S


@pytest.mark.parametrize("number", range(COUNT))
def test_nothing_is_found_where_nothing_was_planted(tmp_path: Path, number: int) -> None:
    _, load = answer(tmp_path / "one", NOTHING)
    print(json.dumps({"number": number, **load.plain()}))
    assert load.baseline_per_s == pytest.approx(400, rel=0.1)
    assert load.detected_s is None and load.dip_percent == 0
