"""A cost file written by a user, and `plimsoll cost` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.sizing.cost_study import SHIPPED_STUDY, read_cost_study
from tests.support.warm_program import run_warm

EXAMPLE = Path(__file__).parents[2] / "examples" / "cost_two_designs.toml"
SHIPPED = SHIPPED_STUDY.read_text()


def plimsoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, as a shell would."""
    environment = os.environ | {"COLUMNS": "160", "NO_COLOR": "1"}
    return run_warm(arguments, Path.cwd(), 60, environment)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """What the reader says about a cost file, one line per mistake."""
    path = tmp_path / "cost.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_cost_study(path)
    return [f"{mistake.where}: {mistake.message}" for mistake in caught.value.mistakes]


def test_all_mistakes_of_a_cost_file_come_at_once(tmp_path: Path) -> None:
    """Prices below zero, a forgotten unit, an unknown reference, an option no formula can name and
    a broken formula.
    """
    text = SHIPPED.replace("drive_price_usd = 307.99", "drive_price = 307.99").replace(
        '"ssd"\n\n[goal]', '"tape"\n\n[goal]'
    )
    text = text.replace("enclosure_price_usd = 4000", "enclosure_price_usd = -4000").replace(
        'name = "hdd"', 'name = "hard-drive"'
    )
    text = text.replace('computed = "hdd.drive_count"', 'computed = "__import__(hdd)"')
    found = mistakes(tmp_path, text)
    assert "options[2].drive_price: is not a key of this table" in found
    assert "options[2].drive_price_usd: is missing" not in found, "it is there, without its unit"
    assert 'reference: is "tape", which is no option' in found
    assert (
        "options[2].enclosure_price_usd: is -4000, but must lie between 0 and 1,000,000,000"
        in found
    )
    assert 'options[2].name: is "hard-drive", which cannot stand in a formula' in found
    assert any(line.startswith("claims[12].computed: calls an unknown function") for line in found)
    assert "measurements[1].values.hdd: is no option" in found


def test_power_is_given_as_a_range_or_not_at_all(tmp_path: Path) -> None:
    """Half a range, or one the wrong way round, is a slip."""
    found = mistakes(
        tmp_path,
        SHIPPED.replace("drive_power_low_w = 5\n", "").replace(
            "drive_power_low_w = 15", "drive_power_low_w = 16"
        ),
    )
    assert found == [
        "options[1].drive_power_low_w: is missing",
        "options[2].drive_power_low_w: is 16, above the highest power of 15",
    ]


def test_a_claim_about_an_absent_figure_is_not_evaluated(tmp_path: Path) -> None:
    """The hard drives' MTBF is not in the paper, so nothing can be said about their failures."""
    path = tmp_path / "cost.toml"
    path.write_text(
        SHIPPED.replace('computed = "hdd.drive_count"', 'computed = "hdd.failures_per_year"')
    )
    claim = next(claim for claim in read_cost_study(path).claims if claim.id == "equivalent-drives")
    assert (claim.holds, claim.computed) == (None, None)
    assert claim.reason == "not evaluated: `hdd.failures_per_year` is not known"


def test_the_shipped_analysis_at_the_command_line() -> None:
    """The corrected figures stand beside the statements."""
    done = plimsoll("cost", "sandisk_2014")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in (
        "34,175.28",
        "6.10 x",
        "does not hold",
        "7 of 20 statements",
        "the MTBF of a drive is not stated",
    ):
        assert expected in done.stdout


def test_json_carries_formula_and_source_of_every_figure() -> None:
    """A figure without its formula cannot be checked."""
    result = json.loads(plimsoll("cost", "sandisk_2014", "--json").stdout)
    purchase = result["options"]["hdd"]["figures"]["purchase_usd"]
    assert purchase["value"] == pytest.approx(34_175.28)
    assert purchase["unit"] == "USD"
    assert (
        purchase["formula"]
        == "drive_count * drive_price_usd + enclosure_count * enclosure_price_usd"
    )
    assert all(
        figure["source"]
        for option in result["options"].values()
        for figure in option["figures"].values()
    )
    assert result["options"]["hdd"]["ratio_to_reference"]["purchase_usd"] == pytest.approx(
        6.1027, abs=5e-5
    )
    assert {claim["id"]: claim["holds"] for claim in result["claims"]}["S-03a"] is False


def test_the_example_runs_and_writes_a_page(tmp_path: Path) -> None:
    """Examples that do not run teach the wrong thing."""
    page = tmp_path / "cost.html"
    done = plimsoll("cost", str(EXAMPLE), "--steps", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "Consolidation" in done.stdout
    assert "drive_count * drive_price_usd" in page.read_text()


def test_refusals(tmp_path: Path) -> None:
    """A catalogue is no cost file, and a page cannot be written into nowhere."""
    catalogue = tmp_path / "c.toml"
    catalogue.write_text('kind = "catalogue"\n')
    done = plimsoll("cost", str(catalogue))
    assert (done.returncode, done.stdout) == (2, "")
    assert "`plimsoll select --catalogue` reads files of this kind" in done.stderr
    done = plimsoll("cost", "sandisk_2014", "--html", str(tmp_path / "none" / "x.html"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
