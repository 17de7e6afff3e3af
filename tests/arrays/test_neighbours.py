"""Other applications on the spindles of a modelled array, and pools of unlike drives, as a planner
describes them in a file.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.arrays.description import array_description
from plimsoll.arrays.formula import formula_iops
from plimsoll.arrays.mail_streams import run_light
from plimsoll.arrays.neighbours import neighbour_sentences
from plimsoll.arrays.papers.error_band import nearest_point
from plimsoll.arrays.pools import free_gb, pool_gb
from plimsoll.arrays.presets import array_preset, described_array, wanted_array
from plimsoll.cli import app
from plimsoll.documents.outcome import ArrayReport
from plimsoll.inputs.mistakes import InputError
from plimsoll.study.modelled_variant import complete_light, simulated, warnings_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared_array.toml"
ERP: dict[str, Any] = {
    "volumes": [{"name": "erp", "capacity_gb": 300, "pool": "databases", "place": "behind"}],
    "neighbours": [
        {
            "name": "erp",
            "volume": None,
            "iops": 300,
            "read_percent": 70,
            "block_kib": 8,
            "pattern": "random",
            "outstanding_count": 32,
            "shares_links": True,
        }
    ],
}


def shared(changes: dict[str, Any] = ERP) -> dict[str, Any]:
    array, found = described_array("emc-vnxe3300", changes)
    assert not found, found
    return array


def refused(home: Path, text: str) -> list[tuple[int, str, str]]:
    path = home / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        wanted_array(str(path))
    return [
        (mistake.line, mistake.where, f"{mistake.message}; {mistake.hint}")
        for mistake in refusal.value.mistakes
    ]


def test_SIM_09_a_neighbour_makes_the_databases_slower() -> None:
    """Why a mail server is slow on a shared array.

    The answer has to be in the model, with what the neighbour got and what it took.
    """
    alone, beside = run_light(array_preset("emc-vnxe3300"), 2, 3), run_light(shared(), 2, 3)
    assert beside.read_ms > 1.2 * alone.read_ms
    assert beside.iops < alone.iops
    assert beside.neighbour_iops == pytest.approx(300, rel=0.05)
    assert alone.neighbour_iops == alone.neighbour_utilisation == 0
    assert 0.1 < beside.neighbour_utilisation < beside.utilisation


def test_SIM_18_a_file_describes_pools_volumes_and_neighbours() -> None:
    """Every word of the file reaches the model.

    One that did not would show an array that stands more than it does.
    """
    array = wanted_array(str(EXAMPLE))
    found = array_description(
        array, [("one data", 200.0), ("one log", 20.0)], log_volumes={"one log"}
    ).plain()
    assert [pool["name"] for pool in found["pools"]] == ["pool", "archive"]
    levels = [(group["level"], group["sets"], group["drive"]) for group in found["groups"]]
    assert levels[1:] == [("raid6", [8], "nearline-7k2-6tb")]
    volumes = [(volume["name"], volume["pool"], volume["tenant"]) for volume in found["volumes"]]
    assert volumes == [
        ("one data", 0, "host"),
        ("one log", 0, "host"),
        ("erp", 0, "neighbour_before"),
        ("archive", 1, "neighbour_behind"),
    ]
    first, second = found["neighbours"]
    assert (first["name"], first["volume"], first["per_second"], first["read_share"]) == (
        "erp",
        2,
        250.0,
        0.7,
    )
    assert (first["request_bytes"], first["pattern"]) == (8192, "random")
    assert (second["volume"], second["pattern"], second["request_bytes"]) == (
        3,
        "sequential",
        262144,
    )


def test_a_pool_of_unlike_drives_holds_what_the_smallest_allows() -> None:
    """Blocks go round all drives, so that the rest of the large ones is lost.

    What others have is not free for databases.
    """
    array = shared(
        {
            "groups": [
                {
                    "pool": "databases",
                    "sets": [8],
                    "drive": "nearline-7k2-6tb",
                    "level": "RAID 6",
                    "spare_count": 0,
                }
            ]
        }
    )
    assert pool_gb(array) == (6 + 6) * 600
    assert free_gb(shared()) == pytest.approx(3600 - 300, abs=0.01)
    # The formula adds unlike sets up, and takes off what neighbours take.
    assert (formula_iops(array, 0.6) or 0) > (formula_iops(shared(), 0.6) or 0) > 0
    assert formula_iops(shared(), 0.7) == pytest.approx(
        (formula_iops(array_preset("emc-vnxe3300"), 0.7) or 0) - 300
    )
    # What was validated is another array.
    assert nearest_point(array).how == "the same box without the further drives"
    assert nearest_point(shared()).how == "the same array, without neighbours"
    slow = run_light(array, 2, 3, size_mib=200_000)
    assert slow.read_ms > run_light(array_preset("emc-vnxe3300"), 2, 3, size_mib=200_000).read_ms


WRONG = """
kind = "modelled_arrays"
name = "wrong"

[[arrays]]
name = "shared"
like = "emc-vnxe3300"

[[arrays.groups]]
pool = "archive"
drive = "nearline"
level = "RAID 10"
sets = [3]

[[arrays.volumes]]
name = "erp"
capacity_gb = 300
pool = "archiv"

[[arrays.volumes]]
name = "tiny"
capacity_gb = 0.1

[[arrays.neighbours]]
name = "first"
volume = "erpp"
iops = 200
read_percent = 70
block_kib = 0

[[arrays.neighbours]]
name = "second"
iops = -1
read_percent = 170
block_kib = 8
pattern = "circular"

[[arrays.neighbours]]
name = "tiny"
iops = 20
read_percent = 50
block = 8
"""


def test_every_mistake_about_neighbours_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    """A neighbour that is not simulated because of a slip would make the array look faster than it
    is.
    """
    found = refused(tmp_path, WRONG)
    expected = [
        (11, "arrays[1].groups[1].drive", "did you mean"),
        (13, "arrays[1].groups[1].sets", "no RAID 10 can be made"),
        (18, "arrays[1].volumes[1].pool", "did you mean `archive`"),
        (26, "arrays[1].neighbours[1].volume", "did you mean `erp`"),
        (29, "arrays[1].neighbours[1].block_kib", "must lie between 1 and"),
        (31, "arrays[1].neighbours[2].volume", 'describe it: volumes = [{ name = "second"'),
        (33, "arrays[1].neighbours[2].iops", "is -1, but must lie between 0 and"),
        (34, "arrays[1].neighbours[2].read_percent", "must lie between 0 and 100"),
        (36, "arrays[1].neighbours[2].pattern", 'write one of "random", "sequential"'),
        (42, "arrays[1].neighbours[3].block", "write `block_kib`"),
    ]
    assert [(line, where) for line, where, _ in found] == [
        (line, where) for line, where, _ in expected
    ]
    for (_, _, told), (_, _, words) in zip(found, expected, strict=True):
        assert words in told, told


def test_wrong_values_among_changes_are_mistakes_and_no_fault_of_ours() -> None:
    """What is typed by hand is wrong in every place at once, and the answer has to be about all of
    it.
    """
    changes = [
        "volumes=[{name='v', capacity_gb=0}, {capacity_gb=5}]",
        "neighbours=[{name='v', iops='x', read_percent=70, block_kib=8}, {iops=3}]",
        "groups=[{sets=[0]}, {sets=3, level='x', spare_count=-1, pool=3}]",
    ]
    arguments = [word for change in changes for word in ("--change", change)]
    done = CliRunner().invoke(app, ["model", "emc-vnxe3300", *arguments])
    assert done.exit_code == 2, done.exception
    told = done.stderr
    for place in (
        "volumes[1].capacity_gb",
        "volumes[2].name",
        "neighbours[1].iops",
        "neighbours[2].block_kib",
        "groups[1].sets[1]",
    ):
        assert f"`target[1].changes.{place}`" in told, place
    for key in ("sets", "level", "spare_count", "pool"):
        assert f"`target[1].changes.groups[2].{key}`" in told, key


def test_mistakes_of_a_file_stay_in_the_order_of_its_lines_where_a_plan_tells_them(
    tmp_path: Path,
) -> None:
    """Line 11 before line 7 is how words are sorted, not how a file is mended."""
    path = tmp_path / "wrong.toml"
    path.write_text(
        WRONG.replace('like = "emc-vnxe3300"', 'like = "emc-vnxe330"'), encoding="utf-8"
    )
    told = CliRunner().invoke(app, ["model", str(path)]).stderr
    lines = [int(line) for line in re.findall(r"wrong\.toml:(\d+) ", told)]
    assert lines == sorted(lines) and lines[0] == 7 and len(lines) >= 10


def test_volumes_of_others_beyond_their_pool_are_refused(tmp_path: Path) -> None:
    """Space that others have is not there for databases, in a file as among changes, and a pool can
    be too small for them alone.
    """
    text = (
        'kind = "modelled_arrays"\nname = "x"\n[[arrays]]\nname = "x"\nlike = '
        '"emc-vnxe3300"\n[[arrays.volumes]]\nname = "v"\ncapacity_gb = 4000\n'
    )
    [(line, where, told)] = refused(tmp_path, text)
    assert (line, where) == (6, "arrays[1].volumes") and "which holds 3,600 GB" in told
    done = CliRunner().invoke(
        app,
        [
            "model",
            "emc-vnxe3300",
            "--size-mib",
            "1500000",
            "--change",
            "volumes=[{name='v', capacity_gb=500}]",
        ],
    )
    assert done.exit_code == 2 and "but the array holds 3,100 GB" in done.stderr


@pytest.mark.parametrize(
    ("lines", "wheres"),
    [
        ('link = "fc-16"', {"arrays[1].like", "arrays[1].link"}),
        (
            'sets = [3]\nlevel = "RAID 10"\ndrive = "chetah"',
            {"arrays[1].like", "arrays[1].sets", "arrays[1].drive"},
        ),
        # Of what only the unknown array would say nothing is said.
        (
            'log_drive = "sas-10k-600gb"\nfaults = [{ what = "drive fails", number = 90, box = 3 '
            "}]",
            {"arrays[1].like"},
        ),
    ],
)
def test_what_is_wrong_beside_an_unknown_likeness_is_told_with_it(
    tmp_path: Path, lines: str, wheres: set[str]
) -> None:
    """Whoever mends one mistake should not be told of the next only then, nor of any that is
    none.
    """
    text = (
        f'kind = "modelled_arrays"\nname = "x"\n[[arrays]]\nname = "x"\nlike = '
        f'"nearline-raid"\n{lines}\n'
    )
    assert {where for _, where, _ in refused(tmp_path, text)} == wheres


def test_a_mistake_taken_from_an_array_above_is_told_once(tmp_path: Path) -> None:
    """Ten variants of one array with a slip have one slip."""
    text = (
        'kind = "modelled_arrays"\nname = "x"\n[[arrays]]\nname = "x"\nlike = "emc-vnxe3300"\n'
        '[[arrays.neighbours]]\nname = "n"\niops = 1\nread_percent = 1\nblock_kib = 1\n'
        '[[arrays]]\nname = "y"\nlike = "x"\nsets = [5]\n'
    )
    assert [where for _, where, _ in refused(tmp_path, text)] == ["arrays[1].neighbours[1].volume"]


def test_the_curve_says_what_neighbours_got_and_what_the_formula_knows() -> None:
    """Whoever reads a rate off must see whose spindles it is of, and that the band was never tried
    with neighbours.
    """
    arguments = ["model", str(EXAMPLE), "--sessions", "3"]
    text = CliRunner().invoke(app, arguments).stdout
    assert "neighbours: erp: 250 IOPS, random, 8 KiB, 70 % reads; archive: 40 IOPS" in text
    assert "% for neighbours" in text and "the band says nothing of them" in text
    assert "of the drives given to neighbours" in text
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert found["points"][0]["neighbour_iops"] == pytest.approx(290, rel=0.05)
    assert (
        "neighbours"
        not in CliRunner().invoke(app, ["model", "emc-vnxe3300", "--sessions", "3"]).stdout
    )


def test_a_neighbour_the_array_cannot_carry_is_said() -> None:
    """A neighbour that gets a tenth of what it wanted is a finding of its own, not a detail of the
    counters.
    """
    row = {
        "name": "erp",
        "volume": "erp",
        "wanted_per_second": 900.0,
        "left_out_count": 8000,
        "read_count": 700,
        "write_count": 300,
        "read_bytes": 0,
        "write_bytes": 0,
        "read_latency_ms": 40.0,
        "write_latency_ms": 50.0,
    }
    volume = {
        **{key: row[key] for key in row if key not in ("volume", "wanted_per_second")},
        "name": "databases",
        "read_count": 3000,
        "write_count": 0,
    }
    volume.pop("left_out_count")
    report = {
        "interval_ns": 10**10,
        "neighbours": [row],
        "volumes": [volume],
        "members": [],
        "drives": [],
        "links": [],
        "stages": [{"stage": "drives", "utilisation": 0.99, "neighbour_utilisation": 0.4}],
    }
    first, second = neighbour_sentences(ArrayReport.from_plain(report))
    assert first.startswith(
        "neighbour erp made 100 IOPS, 25 % of the array's requests; it wanted 900"
    )
    assert "drives, 40% went to neighbours" in second


def test_a_study_varies_what_a_neighbour_does() -> None:
    """How much of a neighbour an array stands is one axis of a study."""
    base = {
        "array": "emc-vnxe3300",
        "database_gb": 400,
        "volume_gb": 500,
        "databases": 2,
        "sessions": 6,
        "measure_s": 20,
        "warm_up_s": 5,
    }
    light = {**base, "changes": {key: [dict(row) for row in rows] for key, rows in ERP.items()}}
    for row in light["changes"]["neighbours"]:
        del row["volume"]
    quiet, busy = (simulated(complete_light(given, "study"), 1) for given in (base, light))
    assert busy["neighbour_iops"] == pytest.approx(300, rel=0.1)
    assert 5 < busy["neighbour_drives_busy_percent"] < busy["drives_busy_percent"]
    assert busy["database_iops"] < quiet["database_iops"]
    assert "neighbour_iops" not in quiet
    warned = [warnings_of(complete_light(given, "study")) for given in (base, light)]
    assert not warned[0] and "no published result had neighbours" in warned[1][0]
    with pytest.raises(InputError, match="drives for the logs alone have none"):
        complete_light(
            {**base, "log_array": "emc-vnxe3300", "log_changes": light["changes"]}, "study"
        )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run folder of the engine beside neighbours, and what the terminal said."""
    out = tmp_path_factory.mktemp("neighbours") / "run"
    short = [
        "--sessions",
        "3",
        "--cache-mib",
        "16",
        "--minutes",
        "0.25",
        "--quiet",
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(app, ["test", "performance", "--modelled", str(EXAMPLE), *short])
    assert done.exit_code in (0, 1, 3), done.stderr
    return out, done.stdout


def test_MON_02_the_hosts_counters_stay_the_hosts_beside_a_neighbour(
    finished: tuple[Path, str],
) -> None:
    """A neighbour counted among the host's I/O would let a starved server pass.

    What boxes counted is everybody's.
    """
    summary = json.loads((finished[0] / "summary.json").read_text(encoding="utf-8"))
    array, total = summary["array"], summary["total"]
    reads = sum(row["read_count"] for row in array["volumes"])
    names = ("database_read", "maintenance", "log_read", "log_replication")
    assert reads == pytest.approx(sum(total[name]["count"] for name in names), rel=0.005)
    by_volume = reads + sum(row["write_count"] for row in array["volumes"])
    theirs = [row["read_count"] + row["write_count"] for row in array["neighbours"]]
    assert theirs[0] / (array["interval_ns"] / 1e9) == pytest.approx(250, rel=0.1)
    by_member = sum(row["read_count"] + row["write_count"] for row in array["members"])
    assert by_member == by_volume + sum(theirs)


def test_report_and_terminal_show_the_neighbours_and_their_part(finished: tuple[Path, str]) -> None:
    """A verdict about a shared array without a word about who else was on it would be taken for one
    about the array.
    """
    page = (finished[0] / "report.html").read_text(encoding="utf-8")
    assert "MODELLED: neighbours, as the array counted them" in page
    assert "At work for neighbours (%)" in page
    assert "erp: 250 IOPS, random, 8 KiB, 70 % reads" in page
    assert "8 x nearline-7k2-6tb, RAID 6, in the pool archive" in page
    assert "Drives of the pool archive" in page
    # Every drive shows its sheet with its sources, not only the first.
    assert "nearline-7k2-6tb: rotation rpm" in page and "drive: rotation rpm" in page
    assert "neighbours: erp: 250 IOPS" in finished[1]
    told = CliRunner().invoke(app, ["report", str(finished[0]), "--verbose"]).stdout
    assert "neighbour erp made 2" in told and "went to neighbours" in told
