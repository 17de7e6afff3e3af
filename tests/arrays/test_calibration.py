"""A model fitted to a sweep.

It finds what was put in, keeps points back, and its preset is one that every command reads.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.arrays.fit.calibration import (
    HELD_OUT,
    Fit,
    SweepPoint,
    fit,
    modelled_rates,
    preset_text,
    sweep_plan,
)
from plimsoll.arrays.fit.devices import flash_array, virtual_disk_array
from plimsoll.arrays.papers.error_band import array_band, band_percent
from plimsoll.arrays.plan_storage import modelled_storage
from plimsoll.arrays.presets import array_preset, wanted_array
from plimsoll.cli import app
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.pipeline.calibrate import FILE_NAME
from tests.support.plain_stages import filled

SIZE = 1 << 30
TRUTH = {
    "read_ms": 0.4,
    "parallel": 6.0,
    "mb_per_s": 900.0,
    "write_ms": 0.7,
    "program_mb_per_s": 300.0,
    "fixed_share": 0.4,
    "us_per_kib": 1.0,
}


QUEUE_TRUTH = {
    "notice_us": 25.0,
    "request_us": 10.0,
    "read_us_per_kib": 0.3,
    "write_us_per_kib": 0.1,
    "flush_us": 30.0,
    "us_per_kib": 0.02,
    "mb_per_s": 9000.0,
}
HOST = {"host_processor_count": 2, "host_io_us": 20.0, "queue_durable_us": 60.0}


def swept(device: dict[str, Any]) -> list[SweepPoint]:
    """What a sweep over a device would measure."""
    blank = [
        SweepPoint(**wanted, per_second=1000.0, latency_ms=1.0) for wanted in sweep_plan(quick=True)
    ]
    rates = modelled_rates(device, blank, SIZE)
    return [
        SweepPoint(**wanted, per_second=rate, latency_ms=1000 * wanted["depth"] / rate)
        for wanted, rate in zip(sweep_plan(quick=True), rates, strict=True)
    ]


@pytest.fixture(scope="module")
def fitted() -> Fit:
    """A fit to a device whose constants are known."""
    return fit(swept(flash_array(TRUTH, SIZE, "truth")), SIZE, "fitted", HOST)


@pytest.mark.slow
def test_a_virtual_disk_is_found_by_its_queue() -> None:
    """Its latency grows with each request under way, which no number of dies explains.

    The other kind of device fits worse.
    """
    found = fit(swept(virtual_disk_array(QUEUE_TRUTH, SIZE, "truth")), SIZE, "fitted", HOST)
    assert found.mean_error(False) <= 5 and found.mean_error(True) <= 10
    for key in ("notice_us", "request_us", "read_us_per_kib", "flush_us"):
        assert found.array[f"queue_{key}"] == pytest.approx(QUEUE_TRUTH[key], rel=0.25), key
    assert {key: found.array[key] for key in HOST} == HOST


def test_what_is_known_of_a_queue_is_left_out_where_there_is_none(fitted: Fit) -> None:
    """The machine's own figures hold for every kind of device, a wait in a queue for one that has a
    queue.
    """
    assert "queue_request_us" not in fitted.array and "queue_durable_us" not in fitted.array
    assert fitted.array["host_io_us"] == 20.0 and fitted.array["host_processor_count"] == 2


def test_the_host_of_a_calibration_works_as_measured(fitted: Fit) -> None:
    """An instance has one processor, and the time of its writes comes to the engine's own.

    Nothing said, all stays as it was.
    """
    given = [
        {
            "name": name,
            "directory": f"/{name}",
            "log_directory": f"/{name}",
            "databases": [{"size_bytes": 1 << 30}],
        }
        for name in ("one", "two", "three")
    ]
    instances = [InstanceSpec.from_plain(filled(InstanceSpec, one)) for one in given]
    of_one, of_three = (
        modelled_storage(fitted.array, instances[:1]),
        modelled_storage(fitted.array, instances),
    )
    assert (of_one.processor_count, of_three.processor_count) == (1, 2)
    assert of_one.transaction_processor_ns == 32_000
    plain = modelled_storage(array_preset("emc-vnxe3300"), instances)
    assert (plain.processor_count, plain.transaction_processor_ns) == (4, 20_000)


def test_SIM_15_a_fit_reproduces_its_sweep_within_a_tenth(fitted: Fit) -> None:
    """A calibration that cannot find a device of its own kind could find no other.

    The points held out tell.
    """
    assert fitted.mean_error(False) <= 10
    assert fitted.mean_error(True) <= 15


def test_three_points_in_ten_are_held_out(fitted: Fit) -> None:
    """An error on the points that were fitted flatters."""
    held = [held_out for *_, held_out in fitted.errors]
    assert len(HELD_OUT) == 3
    assert 0.2 <= sum(held) / len(held) <= 0.4


def test_the_preset_is_read_by_every_command(fitted: Fit, tmp_path: Path) -> None:
    """A preset that only its maker can read is none."""
    path = tmp_path / "measured.toml"
    path.write_text(preset_text(fitted, "/mnt/array", "2026-01-01"), encoding="utf-8")
    read: dict[str, Any] = wanted_array(str(path))
    assert read["drive_sheet"]["name"] == "fitted-drive"
    assert read["own_error_percent"] == pytest.approx(fitted.mean_error(True), abs=0.06)
    done = CliRunner().invoke(app, ["model", str(path), "--sessions", "4", "--size-mib", "256"])
    assert done.exit_code == 0, done.stderr
    assert "MODELLED" in done.stdout


def test_consent_comes_first_and_nothing_is_left(tmp_path: Path) -> None:
    """Without a yes nothing is written.

    Afterwards the file is gone, and the result names its error.
    """
    refused = CliRunner().invoke(app, ["calibrate", "--measure", str(tmp_path)])
    assert refused.exit_code == 2 and "MiB are written" in refused.stderr
    assert not any(tmp_path.iterdir())
    out = tmp_path / "out.toml"
    options = ["--size-mib", "64", "--seconds", "0.1", "--quick", "--yes", "--out", str(out)]
    done = CliRunner().invoke(app, ["calibrate", "--measure", str(tmp_path), *options])
    assert done.exit_code == 0, done.stderr
    assert "held out" in done.stdout and out.exists()
    assert not (tmp_path / FILE_NAME).exists()


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    """Somebody else's file of that name, or another calibration at work."""
    (tmp_path / FILE_NAME).write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(app, ["calibrate", "--measure", str(tmp_path), "--yes"])
    assert done.exit_code == 2 and "is there already" in done.stderr
    assert (tmp_path / FILE_NAME).read_text(encoding="utf-8") == "mine"


def test_a_bad_fit_widens_the_band_of_its_predictions() -> None:
    """A model that is off by half on the storage at hand must not borrow the band of arrays it is
    not.
    """
    array = array_preset("emc-vnxe3300")
    assert array_band(array | {"own_error_percent": 55.0}, "database_iops") == 55
    assert array_band(array | {"own_error_percent": 1.0}, "database_iops") == band_percent(
        "database_iops"
    )
    done = CliRunner().invoke(
        app,
        ["model", "emc-vnxe3300", "--sessions", "3", "--change", "own_error_percent=55", "--json"],
    )
    assert json.loads(done.stdout)["band_percent"] == 55


def test_the_preset_has_a_place_before_anything_is_measured(tmp_path: Path) -> None:
    """Minutes of measuring must not end in a folder that is not there, nor in somebody's notes."""
    notes = tmp_path / "notes.toml"
    notes.write_text("mine", encoding="utf-8")
    for out, words in (
        (tmp_path / "no" / "x.toml", "is no directory"),
        (notes, "no preset of this command"),
    ):
        done = CliRunner().invoke(
            app, ["calibrate", "--measure", str(tmp_path), "--yes", "--out", str(out)]
        )
        assert done.exit_code == 2 and words in done.stderr, done.output
    assert notes.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.toml"]
