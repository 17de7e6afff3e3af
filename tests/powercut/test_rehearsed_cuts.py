"""Power cuts of simulated disks, judged as real ones are.

Runs everywhere, without root, in seconds.
"""

import json
from pathlib import Path

import pytest

from plimsoll import _native
from plimsoll.powercut import workspace
from plimsoll.powercut.simulated import rehearse_powercut
from tests.support.power_cut_lab import plimsoll


def names(behaviour: str, seed: int) -> set[str]:
    found = rehearse_powercut(behaviour, seed)
    assert (found["result"] == "fail") == bool(found["findings"]), found
    return {finding["name"] for finding in found["findings"]}


def test_an_honest_disk_passes() -> None:
    """Whatever was under way when the power went, nobody honest is accused."""
    assert [names("honest", seed) for seed in range(1, 5)] == [set()] * 4


def test_a_disk_that_drops_flushes_is_named() -> None:
    """Everything since the lies began is gone."""
    found = names("drops_flushes", 1)
    assert "drops_flushes" in found
    assert "reorders" not in found


def test_a_disk_that_tears_is_named_and_loses_nothing() -> None:
    """Torn blocks show; with page images no commit is lost by them."""
    seen = [names("tears", seed) for seed in range(1, 5)]
    assert set().union(*seen) == {"tears_4k"}, seen


def test_a_disk_that_reorders_is_named() -> None:
    """Single writes are gone while later ones are there."""
    assert any("reorders" in names("reorders", seed) for seed in range(1, 9))


@pytest.mark.parametrize(
    ("behaviour", "code"), [("honest", 0), ("drops_flushes", 1), ("perfect", 2)]
)
def test_the_command_says_how_it_ended(tmp_path: Path, behaviour: str, code: int) -> None:
    """Scripts read the exit code; people must see that it was a rehearsal."""
    found = plimsoll("audit", "--rehearse", behaviour, cwd=tmp_path)
    assert found.returncode == code, found.stderr
    assert ("REHEARSAL" in found.stdout) == (code != 2)
    assert list(tmp_path.iterdir()) == []


def test_the_json_holds_everything(tmp_path: Path) -> None:
    """What a script needs: result, findings with their meaning, figures."""
    found = json.loads(plimsoll("audit", "--rehearse", "tears", "--json", cwd=tmp_path).stdout)
    assert {"result", "reasons", "findings", "figures", "rehearsed"} <= found.keys()


def test_each_way_of_making_marks_durable_has_its_time() -> None:
    """A sync of one lane empties the cache of a device and hides that a durable write of another
    was left in it.
    """
    work = workspace.work_of(workspace.PowercutWanted(Path("/"), 1 << 20, 4096, 2)) | {
        "lanes": 4,
        "slots": 64,
    }
    spec = {"behaviour": "honest", "seed": 1, "milliseconds": 800, "work": work}
    lines = json.loads(_native.rehearse(json.dumps(spec)))["acknowledged"]
    ways = "".join(str(line["lane"] % 2) for line in lines if line["kind"] == "mark")
    longest = {way: max(len(run) for run in ways.split(str(1 - way))) for way in (0, 1)}
    assert len(ways) > 400
    assert min(longest.values()) > len(ways) / 10, longest


def test_a_directory_is_named_by_text_as_by_a_path(tmp_path: Path) -> None:
    """A program that has text would be told of a fault of ours."""
    wanted = workspace.PowercutWanted(str(tmp_path), 1 << 20, 4096, 2, allow_system_disk=True)
    workspace.inspect(wanted)
    work = workspace.work_of(wanted)
    description = workspace.describe_run(wanted, work)
    (tmp_path / workspace.NAME).mkdir()
    assert workspace.take(wanted, description) == tmp_path / workspace.NAME
