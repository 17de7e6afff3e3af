"""The drives and arrays of the model.

Each figure has a source, each mistake a line, each preset can be built.
"""

import json
from pathlib import Path

import pytest

from plimsoll import _native
from plimsoll.arrays import streams as workloads
from plimsoll.arrays.description import array_description, drive_description
from plimsoll.arrays.inheritance import by_figure
from plimsoll.arrays.papers.runner import simulate
from plimsoll.arrays.plan_storage import filling_mib, lacking_gb
from plimsoll.arrays.pools import pool_gb
from plimsoll.arrays.presets import (
    SHIPPED_ARRAYS,
    SHIPPED_DRIVES,
    array_preset,
    changed_array,
    read_arrays,
    read_drives,
    shipped_arrays,
    shipped_drives,
)
from plimsoll.inputs.mistakes import InputError

#: What the papers were measured on (SIM-05), and what a user of today would start from.
PAPERS = {
    "emc-vnxe3300",
    "equallogic-ps6000xv",
    "equallogic-ps6000x",
    "equallogic-ps6500e",
    "netapp-fas3050",
    "dell-md3000i",
    "sandisk-server-hdd",
    "sandisk-server-ssd",
}
TODAY = {
    "nvme-server",
    "sata-ssd-raid",
    "nearline-raid6",
    "cloud-volume",
    "nvme-server-4",
    "nvme-server-12",
    "nvme-server-24",
    "nvme-server-24-parity",
    "nvme-qlc-server-12",
    "sas-ssd-shelf-24",
    "all-flash-two-controllers",
    "nearline-12-10tb",
    "nearline-12-16tb",
    "nearline-12-24tb",
    "nearline-60-16tb",
    "cloud-general-purpose",
    "cloud-general-purpose-cap",
    "cloud-provisioned-iops",
    "cloud-disk-burst",
}


def test_the_catalogue_holds_the_papers_arrays_and_todays() -> None:
    """SIM-05: every array of the papers loads without an error."""
    assert set(shipped_arrays()) == PAPERS | TODAY


@pytest.mark.parametrize("name", sorted(PAPERS | TODAY))
def test_every_preset_can_be_built_and_serves_requests(name: str) -> None:
    """A preset that cannot be built would show only when a user asks for it."""
    place = workloads.Place(0, 1, 90.0)
    streams = [workloads.sessions(place, 4, workloads.Mix(33_600, 0.6, 37_500, 0.5, 5_300))]
    metrics = simulate(
        array_description(array_preset(name), [("data", 100.0), ("log", 10.0)]), streams, 2, 5
    )
    assert metrics["iops"] > 50
    assert 0 < metrics["database_read_latency"] < 60


@pytest.mark.parametrize(
    ("path", "read"), [(SHIPPED_DRIVES, read_drives), (SHIPPED_ARRAYS, read_arrays)]
)
def test_a_figure_without_a_source_is_refused(path: Path, read, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """A figure nobody can trace is worth nothing in a prediction.

    All of them are named, with their lines.
    """
    # Without the rows that are like others: what these lose, those do not get.
    written_out, _, _ = path.read_text(encoding="utf-8").partition("of the 2020s")
    lines = written_out.splitlines()
    kept = [
        line
        for line in lines
        if not line.startswith(('"capacity_gb', 'capacity_gb = "', '"drive, level, sets'))
    ]
    assert len(kept) < len(lines)
    copy = tmp_path / path.name
    copy.write_text("\n".join(kept), encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        read(copy)
    mistakes = refusal.value.mistakes
    assert len(mistakes) > 5
    assert all(
        mistake.message == "has no source" and mistake.line > 0 and mistake.hint
        for mistake in mistakes
    )


def test_every_mistake_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    """Five slips are corrected in one go, and a key without its unit is told the unit."""
    text = SHIPPED_DRIVES.read_text(encoding="utf-8")
    text = text.replace("rotation_rpm = 15000", "rotation_rpm = -15000", 1)
    text = text.replace("write_seek_ms = 3.9", "write_seek = 3.9", 1)
    text = text.replace('name = "optimus-400gb"', "name = 400", 1)
    copy = tmp_path / "drives.toml"
    copy.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        read_drives(copy)
    report = str(refusal.value)
    assert "write `write_seek_ms`" in report
    assert "rotation_rpm" in report and "optimus" not in report and "is 400" in report


#: Figures that decide what an array carries; a preset that called them unimportant would mislead
#: whoever starts from it.
DECISIVE = (
    "drive",
    "level",
    "sets",
    "element_kib",
    "write_back",
    "old_data_share",
    "shift_kib",
    "link_mb_per_s",
)


@pytest.mark.parametrize("name", sorted(PAPERS | TODAY))
def test_no_decisive_figure_is_said_to_be_unimportant(name: str) -> None:
    """What a figure's source says of its weight must be true.

    Drives, level and cache decide, a pause of 20 ms does not.
    """
    sources = by_figure(array_preset(name)["sources"])
    assert all(
        "hardly depend" not in sources[key]
        for key in DECISIVE
        if name in TODAY or key != "shift_kib"
    )


def test_an_unknown_preset_gets_the_nearest_names() -> None:
    """A misspelt name is the commonest mistake."""
    with pytest.raises(InputError, match="did you mean `emc-vnxe3300`"):
        array_preset("emc-vnx3300")


def test_an_impossible_array_is_refused_with_every_mistake() -> None:
    """RAID 5 of two drives, more drives than slots, links of zero speed.

    The door names all three.
    """
    array = array_preset("emc-vnxe3300") | {"sets": [2], "slot_count": 1, "link_mb_per_s": 0.0}
    spec = {
        "array": array_description(array, [("data", 10.0)]).plain(),
        "streams": [],
        "seed": 1,
        "warm_up_ns": 0,
        "measure_ns": 1,
    }
    with pytest.raises(_native.ConfigError) as refusal:
        _native.simulate(json.dumps(spec))
    for place in ("groups[0].sets", "members[0].slot_count", "path.link_bytes_per_second"):
        assert place in str(refusal.value)


def test_units_are_those_of_the_door() -> None:
    """A factor of a thousand lost between Python and Rust would make every figure wrong."""
    hdd = drive_description("cheetah-15k7-600gb", 0.5)
    assert hdd.capacity_bytes == 600_000_000_000
    assert hdd.kind.hdd.read_seek_ns == 1_700_000
    assert hdd.kind.hdd.outer_bytes_per_second == 204_000_000
    ssd = drive_description("optimus-400gb").kind.ssd
    assert (ssd.read_ns, ssd.unit_bytes) == (75_000, 16_384)
    assert len(shipped_drives()) == 18


def test_SIM_11_a_reserve_for_snapshots_leaves_less_for_volumes() -> None:
    """Snapshots, clones and replicas of a design take space that databases cannot have.

    The same wish no longer fits.
    """
    array = array_preset("emc-vnxe3300")
    assert pool_gb(array) == 3600
    assert pool_gb(array | {"reserve_share": 0.25}) == 2700
    stored = {"one": 2_500_000_000_000}
    assert lacking_gb(array, stored) is None
    assert lacking_gb(array | {"reserve_share": 0.25}, stored) is not None
    assert filling_mib(array | {"reserve_share": 0.25}, 1) < filling_mib(array, 1)


def test_equallogic_volumes_are_spread_and_others_lie_in_turn() -> None:
    """STU-05: the layout of volumes must not matter on arrays that share their space out in pages;
    on others it does.
    """
    for name, order in (("equallogic-ps6500e", "spread"), ("emc-vnxe3300", "volume_by_volume")):
        description = array_description(array_preset(name), [("one", 10.0), ("two", 10.0)])
        assert description.pools[0].page_order == order


@pytest.mark.parametrize(
    ("name", "reads_mb_per_s", "writes_per_s"),
    [
        ("nvme-tlc-7680gb", 6_600, 190_000),
        ("nvme-qlc-61440gb", 7_000, 38_000),
        ("sas-ssd-3840gb", 2_100, 50_000),
    ],
)
def test_a_flash_drive_of_the_2020s_does_what_its_sheet_says(
    name: str, reads_mb_per_s: float, writes_per_s: float
) -> None:
    """The times of its dies are assumed: together they must give what is printed, page reads at
    the rate of the bus and random writes once the buffer is full.
    """
    changes = {"drive": name, "level": "RAID 0", "sets": [1], "write_back": False}
    array = changed_array(array_preset("nvme-server-4"), {**changes, "link_mb_per_s": 50_000})
    description = array_description(array, [("data", 500.0)])
    closed = {
        "volume": 0,
        "start_bytes": 0,
        "span_bytes": 2**38,
        "pattern": "random",
        "think_ns": 0,
        "is_serial": False,
        "is_batch": False,
        "is_durable": False,
    }
    page = {"class": "page_read", "request_bytes_mean": 32_768.0, "page_bytes": 32_768}
    small = {"class": "small_write", "request_bytes_mean": 4_096.0, "page_bytes": 4_096}
    reads = simulate(
        description, [{"closed": {**closed, **page, "depth": 512, "write_share": 0.0}}], 0, 1
    )
    assert reads["page_reads"] * 32_768 / 1e6 == pytest.approx(reads_mb_per_s, rel=0.05)
    writes = simulate(
        description, [{"closed": {**closed, **small, "depth": 256, "write_share": 1.0}}], 1, 1
    )
    assert writes["small_writes"] == pytest.approx(writes_per_s, rel=0.1)
