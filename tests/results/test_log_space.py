"""The space of the log in summary, verdict and report, from samples whose figures are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.files import folder
from tests.support.chart_schema import hold_charts
from tests.support.judged_runs import judged
from tests.support.synthetic import START_S, finish, levels, make_folder

MIB = 1 << 20
SECONDS, BEAT_S = 7200, 15


def run(path: Path, copies: list[dict[str, Any]], room_mib: int | None, lag_mib: float) -> Path:
    """A run of two hours that writes a MiB of log each 3 s and keeps 20 MiB besides the copies."""
    ends = START_S + np.arange(BEAT_S, SECONDS + BEAT_S, BEAT_S)
    written = np.floor((ends - START_S) / 3)
    lagged = np.minimum(written + 1, lag_mib + 1)
    further = [
        levels("measure", "instance1", "log_generation", ends, BEAT_S, written + 100),
        levels("measure", "instance1", "log_lagged", ends, BEAT_S, lagged * MIB),
        levels("measure", "instance1", "log_space", ends, BEAT_S, (lagged + 20) * MIB),
    ]
    made = make_folder(path, further=further if copies or room_mib else further[:1])
    plan = folder.read_json(made / folder.PLAN)
    if copies:
        plan["run"]["instances"][0]["lagged_copies"] = copies
    if room_mib is not None:
        plan["judgement"]["log_room_bytes"] = {"instance1": room_mib * MIB}
    folder.write_json(made / folder.PLAN, plan)
    return made


def copy(lag_s: float | None = None, lag_logs: int | None = None) -> dict[str, Any]:
    return {"name": "far", "lag_s": lag_s, "lag_logs": lag_logs}


def check_of(run_folder: Path) -> dict[str, Any] | None:
    checks = folder.read_json(run_folder / folder.VERDICT)["checks"]
    return next((check for check in checks if check["name"] == "log_space"), None)


def test_ENG_23_the_space_of_a_lag_that_was_reached_is_the_measured_one(tmp_path: Path) -> None:
    """Half an hour at a MiB each 3 s are 600 MiB; what sizing says has a fifth on top."""
    done = finish(run(tmp_path / "run", [copy(1800.0)], 700, 600.0))
    found = folder.read_json(done / folder.SUMMARY)["log_space"][0]
    assert found["lag_reached"]
    assert found["kept_bytes_max"] == found["needed_bytes"] == 621 * MIB
    assert found["lagged_bytes_max"] == 601 * MIB
    assert found["written_bytes_per_s"] == pytest.approx(MIB / 3, rel=0.001)
    assert found["sizing_bytes"] == pytest.approx(1.2 * 600 * MIB, rel=0.001)
    assert found["sizing_users_bytes"] is None
    assert (found["room_bytes"], found["room_source"]) == (700 * MIB, "the plan")
    check = check_of(done)
    assert check is not None and check["status"] == "pass"
    assert check["reason"] == "621 MiB fit into the room of 700 MiB (the plan)"
    page = (done / folder.REPORT).read_text()
    assert "log-space" in hold_charts(page)
    for part in ("Log space", "Lag of copy far", "1800 s", "Space of the log", "720"):
        assert part in page, part


def test_ENG_23_a_run_shorter_than_the_lag_is_judged_by_its_rate(tmp_path: Path) -> None:
    """A day of this log is 28,800 MiB: two hours that fit say nothing of it."""
    done = judged(run(tmp_path / "run", [copy(86400.0)], 8000, 1e9))
    found = folder.read_json(done / folder.SUMMARY)["log_space"][0]
    assert not found["lag_reached"]
    assert found["kept_bytes_max"] < 8000 * MIB < found["needed_bytes"]
    assert found["needed_bytes"] == pytest.approx((28_800 + 20) * MIB, rel=0.001)
    check = check_of(done)
    assert check is not None and check["status"] == "fail"
    assert "do not fit into the room of 8000 MiB (the plan)" in check["reason"]
    assert "the run was shorter than the lag" in check["reason"]


def test_ENG_23_a_lag_in_logs_needs_no_rate(tmp_path: Path) -> None:
    done = judged(run(tmp_path / "run", [copy(lag_logs=500)], 521, 500.0))
    found = folder.read_json(done / folder.SUMMARY)["log_space"][0]
    assert found["lag_reached"] and found["needed_bytes"] == 521 * MIB
    assert found["sizing_bytes"] == pytest.approx(600 * MIB)
    check = check_of(done)
    assert check is not None and check["status"] == "pass"


def test_ENG_23_without_copies_and_without_a_room_nothing_is_said(tmp_path: Path) -> None:
    done = judged(run(tmp_path / "run", [], None, 0.0))
    assert "log_space" not in folder.read_json(done / folder.SUMMARY)
    assert check_of(done) is None


def test_ENG_23_the_room_of_the_volume_is_what_was_free(tmp_path: Path) -> None:
    """Two logs on one volume share what is free there; the mount below another one counts."""
    made = run(tmp_path / "run", [copy(1800.0)], None, 600.0)
    environment = folder.read_json(made / folder.ENVIRONMENT)
    environment["targets"] = [
        environment["targets"][0]
        | {"file_system": {"mount_point": mount, "free_bytes": free * MIB}}
        for mount, free in (("/", 9), ("/srv", 620), ("/srv/array2", 9))
    ]
    folder.write_json(made / folder.ENVIRONMENT, environment)
    done = judged(made)
    check = check_of(done)
    assert check is not None and check["status"] == "fail"
    assert check["limit"] == 620 and "what was free when the run began" in check["reason"]
