"""`plimsoll test io`: the curve that a user of fio draws with a loop around it, in one command."""

import json
import re
import threading
from pathlib import Path

import pytest

import plimsoll as plimsoll_api
from plimsoll import InputError, plan_curve, write_curve_page
from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.report.io_curve import render_curve
from tests.support.chart_schema import hold_charts
from tests.support.places import plimsoll


def test_a_curve_in_one_command(tmp_path: Path) -> None:
    """Every block size at every depth is measured.

    Each point is a run of its own whose figures are those of the curve.
    """
    done = plimsoll(
        "test",
        "io",
        tmp_path / "disk",
        "--block",
        "4k,32k",
        "--read",
        "70",
        "--depth",
        "1..2",
        "--pattern",
        "random",
        "--size-mib",
        "64",
        "--seconds",
        "1",
        "--ramp-s",
        "0",
        "--percentiles",
        "50,99.999",
        "--yes",
        "--out",
        tmp_path / "out",
        cwd=tmp_path,
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    curve = json.loads((tmp_path / "out" / "curve.json").read_text())
    points = curve["points"]
    assert [(point["block_bytes"], point["depth"]) for point in points] == [
        (size, depth) for size in (4096, 32768) for depth in (1, 2)
    ]
    for point in points:
        summary = folder.read_json(tmp_path / "out" / point["run_folder"] / folder.SUMMARY)
        figures = summary["files"][0]
        assert point["iops"] == figures["iops"] > 0
        assert figures["outstanding_asked"] == point["depth"]
        assert figures["bytes_mean"] == pytest.approx(point["block_bytes"])
        assert figures["read_percent"] == pytest.approx(70, abs=15)
        median, tail = point["latency_ms_percentiles"]
        assert 0 < median <= tail
    assert "p99.999 ms" in done.stdout
    table = [
        line for line in done.stdout.splitlines() if line.strip().endswith(("kept", "in doubt"))
    ]
    assert len(table) == len(points)
    page = (tmp_path / "out" / "curve.html").read_text(encoding="utf-8")
    assert hold_charts(page) == {"io-curve"} and "Every point" in page
    assert len(list((tmp_path / "disk").rglob("*.dat"))) == 1, "all points work on one file"


def test_a_point_that_was_stopped_before_it_measured_ends_the_curve(tmp_path: Path) -> None:
    """Ctrl-C while a point still ramps up is no fault of the program: the curve ends there."""
    planned = plan_curve(path=tmp_path / "disk", size_mib=64, depth="1..2", ramp_s=3, seconds=1)

    class Stopping(plimsoll_api.Listener):
        def event(self, event: plimsoll_api.Event) -> None:
            if event.kind == "phase_started" and event.phase == "ramp up":
                stop.set()

    def carry_out(plan: plimsoll_api.Plan, home: Path) -> plimsoll_api.Result:
        found = plimsoll_api.check(plan, create=True, allow_system_disk=True)
        return plimsoll_api.qualify(plan, home, found=found, listener=Stopping(), stop=stop)

    stop = threading.Event()
    (tmp_path / "out").mkdir()
    curve = plimsoll_api.measure_curve(planned, tmp_path / "out", carry_out)
    assert [point.depth for point in curve.points] == [1]
    assert curve.points[0].iops == 0 and curve.points[0].latency_ms_mean is None
    assert "nothing was measured" in write_curve_page(curve, tmp_path / "out").read_text("utf-8")


def test_a_stated_limit_decides(tmp_path: Path) -> None:
    """Without a limit there is no verdict; with one that nothing keeps, the exit code says so."""
    done = plimsoll(
        "test",
        "io",
        tmp_path / "disk",
        "--depth",
        "2",
        "--size-mib",
        "64",
        "--seconds",
        "1",
        "--ramp-s",
        "0",
        "--limit",
        "file_read_response_ms_p95<0.000001",
        "--yes",
        "--out",
        tmp_path / "out",
        cwd=tmp_path,
    )
    # A machine that is busy with something else may be why; then it is said.
    assert done.returncode in (1, 3), done.stdout + done.stderr
    assert ("FAIL" if done.returncode == 1 else "in doubt") in done.stdout


def test_every_mistake_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three wrong words, three lines, and nothing is written."""
    with pytest.raises(InputError) as raised:
        plan_curve(path=tmp_path, block="4q", depth="8..2", percentiles="100")
    assert len(raised.value.mistakes) == 3
    assert run_program(["test", "io", str(tmp_path / "disk"), "--block", "4q", "--depth", "0"]) == 2
    told = capsys.readouterr().err
    assert "--block '4q' is not a size" in told and "--depth '0' is not a depth" in told
    assert not (tmp_path / "disk").exists()


def test_the_axis_of_a_curve_begins_at_zero() -> None:
    """It began at -1,000 I/O per second, and the last two numbers stood in one another."""
    page = render_curve(
        "disk", [("4k", 1, 4516.0, 0.2), ("4k", 4, 11846.0, 0.3)], [["block"]], failed=False
    )
    found = re.search(r"^const specs = (.*);$", page, flags=re.MULTILINE)
    assert found
    x = json.loads(found[1])["io-curve"]["layer"][0]["encoding"]["x"]
    assert x["scale"] == {"zero": True} and x["axis"]["tickCount"] == 5
    assert "Table: I/O per second against latency" in page
    assert "writes it again" not in page
