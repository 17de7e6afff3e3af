"""`plimsoll select` as a user meets it: answer, JSON, HTML, and refusals."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.warm_program import run_warm

NEED = ["--capacity-gb", "15768", "--iops", "900", "--copies", "2"]
PAPER = [*NEED, "--catalogue", "equallogic_2010"]


def plimsoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, as a shell would."""
    environment = os.environ | {"COLUMNS": "160", "NO_COLOR": "1"}
    return run_warm(arguments, Path.cwd(), 60, environment)


def test_CAL_08_the_worked_example_at_the_command_line() -> None:
    """The paper's answer on the output, nothing on the error stream, code 0."""
    done = plimsoll("select", *PAPER)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 x PS6500E, 500 GB SATA 7.2k, RAID 50" in done.stdout
    assert "no IOPS published" in done.stdout
    assert "MODELLED, not measured" in done.stdout and "no preset" in done.stdout


def test_todays_storage_is_offered_unless_the_catalogue_of_2010_is_named() -> None:
    """A buyer of today who names no catalogue was offered arrays that have not been sold for ten
    years. What rests on a formula says so, and names the preset that can be modelled.
    """
    result = json.loads(plimsoll("select", *NEED, "--drive-class", "NVMe TLC", "--json").stdout)
    models = {candidate["model"] for candidate in result["candidates"]}
    assert not any(model.startswith("PS6") for model in models)
    for part in ("NVMe server, 4", "NVMe server, 24", "SAS SSD", "All-flash", "Nearline", "Cloud"):
        assert any(model.startswith(part) for model in models), part
    chosen = result["chosen"]
    assert (chosen["model"], chosen["iops_basis"]) == ("NVMe server, 12 drives", "formula")
    assert "they follow from the planner's formula" in " ".join(result["caveats"])
    assert "plimsoll model nvme-server-12" in chosen["modelled"]["reason"]
    text = plimsoll("select", *NEED, "--drive-class", "NVMe TLC").stdout
    assert "IOPS by formula for 900 needed" in text and "not published" in text


def test_json_holds_the_whole_result() -> None:
    """A script must find every candidate, its reason and the named absence of a model."""
    result = json.loads(plimsoll("select", *PAPER, "--json").stdout)
    assert result["required_capacity_gb"] == 15_768
    assert result["chosen"]["model"] == "PS6500E"
    modelled = result["chosen"]["modelled"]
    assert modelled["status"] == "modelled" and "ps6500e-raid50" in modelled["reason"]
    # Beside the published 1,800 of an array, not instead of it.
    assert abs(modelled["iops_per_copy"] / result["chosen"]["iops_per_copy"] - 1) < 0.1
    absent = [candidate for candidate in result["candidates"] if candidate["model"] == "PS6500X"]
    assert absent and all(
        candidate["modelled"]["status"] == "not_evaluated" for candidate in absent
    )
    assert len(result["candidates"]) == 28
    assert all(candidate["reason"] for candidate in result["candidates"])


def test_sizes_in_gib_are_converted_before_they_meet_decimal_drives() -> None:
    """15,768 GB as `size` counts them are 16,931 GB as drives are sold."""
    result = json.loads(
        plimsoll("select", "--capacity-gib", "15768", "--iops", "900", "--json").stdout
    )
    assert result["required_capacity_gb"] == pytest.approx(16_930.76, abs=0.01)


def test_CAL_08_a_requirements_file_is_sized_and_chosen_for(tmp_path: Path) -> None:
    """From users to an array in one command; options win over the file."""
    requirements = tmp_path / "requirements.toml"
    requirements.write_text(
        'kind = "requirements"\n[users]\ncount = 5000\nmailbox_quota = "2 GB"\nmessages_per_day = '
        "150\n"
        '[copies]\ncount = 2\n[databases]\nmax_size = "1 TB"\n'
    )
    of_2010 = ["--catalogue", "equallogic_2010", "--json"]
    result = json.loads(plimsoll("select", str(requirements), *of_2010).stdout)
    assert (result["required_iops"], result["need"]["copies"], result["need"]["databases"]) == (
        900,
        2,
        14,
    )
    assert "378 log IOPS are not added" in " ".join(result["caveats"])
    result = json.loads(
        plimsoll(
            "select", str(requirements), "--iops", "5000", "--raid", "RAID 10", *of_2010
        ).stdout
    )
    assert result["required_iops"] == 5000
    assert result["chosen"]["raid"] == "RAID 10"
    requirements.write_text('kind = "requirements"\n[users]\ncount = -5\n')
    done = plimsoll("select", str(requirements), "--copies", "17")
    assert done.returncode == 2
    assert "users.count" in done.stderr
    assert "`--copies` is 17" in done.stderr


def test_the_example_catalogue_adds_to_the_shipped_one() -> None:
    """Users add their own arrays; log IOPS count where the catalogue says they were left out."""
    example = str(Path(__file__).parents[2] / "examples" / "catalogue_own_arrays.toml")
    need = [*NEED, "--log-iops", "378", "--json"]
    both = json.loads(
        plimsoll("select", *need, "--catalogue", example, "--catalogue", "equallogic_2010").stdout
    )
    assert len(both["candidates"]) == 31
    own = json.loads(plimsoll("select", *need, "--catalogue", example, "--rank", "price").stdout)
    assert (own["chosen"]["model"], own["chosen"]["price_total_usd"], own["required_iops"]) == (
        "Shelf-12",
        76_000,
        1_278,
    )
    assert own["candidates"][-1]["planner_iops_per_copy"] is not None


def test_nothing_that_fits_is_an_answer_with_its_own_code() -> None:
    """A script must tell "no array can do this" from success and from bad input."""
    done = plimsoll("select", *PAPER, "--hot-spares-min", "9")
    assert done.returncode == 1
    assert "has 2 hot spares where 9 are asked for" in done.stdout


def test_every_wrong_option_is_named_at_once() -> None:
    """Six wrong options are one round of correction; the output stays empty."""
    done = plimsoll(
        "select",
        "--capacity-gb",
        "-3",
        "--copies",
        "17",
        "--raid",
        "RAID 51",
        "--rank",
        "mood",
        "--json",
    )
    assert (done.returncode, done.stdout) == (2, "")
    for expected in (
        "5 mistakes",
        "`--capacity-gb` is -3",
        "`--copies` is 17",
        "`--iops` is missing",
        "RAID 51",
        "mood",
    ):
        assert expected in done.stderr


def test_mistakes_in_two_catalogues_are_reported_together(tmp_path: Path) -> None:
    """Each file is named with its lines."""
    (tmp_path / "one.toml").write_text('kind = "plan"\n')
    (tmp_path / "two.toml").write_text('kind = "catalogue"\nname = 3\n')
    done = plimsoll(
        "select",
        *NEED,
        "--catalogue",
        str(tmp_path / "one.toml"),
        "--catalogue",
        str(tmp_path / "two.toml"),
    )
    assert done.returncode == 2
    assert "one.toml:1: `kind`" in done.stderr
    assert "two.toml:2: `name` is 3, but must be a text" in done.stderr
    assert "two.toml: `rows` is missing" in done.stderr


def test_html_is_one_safe_file(tmp_path: Path) -> None:
    """Names from a catalogue are text, whatever they look like, and the page loads nothing."""
    catalogue = tmp_path / "own.toml"
    catalogue.write_text(
        'kind = "catalogue"\nname = "x"\nsource = "x"\nrows = [{ model = "<script>", series = "A", '
        'drive_class = "SSD", '
        'drive_capacity_gb = 9, raid = "RAID 0", usable_capacity_gb = 9, transactional_iops = 9, '
        'source = "x" }]\n'
        '[[series]]\nname = "A"\ndrive_slots = 2\nhot_spares = 1\nsource = "x"\n'
    )
    page = tmp_path / "page.html"
    done = plimsoll("select", *NEED, "--catalogue", str(catalogue), "--html", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "http" not in text


def test_the_answer_comes_in_under_0_3_seconds() -> None:
    """Start-up included; processor time, the best of five.

    On a busy machine even that says nothing.
    """
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        plimsoll("select", *PAPER)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if min(times) >= 0.3 and os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        pytest.skip(f"{min(times):.2f} s, but the machine is busy")
    assert min(times) < 0.3
