"""Runs of several loads: each load and each event next to its like, and cells of papers."""

from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll.compare.compare import NO_CONFIDENCE
from plimsoll.compare.text import factor_text, lines_of
from plimsoll.documents.comparison import ComparedPart
from tests.support.two_loads import two_loads

FAILS = [{"name": "drive 2", "after_s": 30, "do": "drive fails", "number": 2}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("sides")
    return two_loads(place / "whole"), two_loads(place / "broken", event=FAILS)


def parts(*sides: Any) -> dict[str, ComparedPart]:
    return {part.title: part for part in plimsoll.compare_runs(list(sides)).content.parts}


def test_each_load_stands_next_to_its_like(runs: tuple[Path, Path]) -> None:
    found = parts(*runs)
    for name in ("orders", "files"):
        figures = {row.title: row for row in found[f"Load {name}"].figures}
        assert {"Operations", "Response, mean", "Response, p99"} <= set(figures)
        assert all(value.value is not None for value in figures["Response, mean"].sides)
    assert "Orders" in {row.title for row in found["Load orders"].figures}


def test_what_only_one_side_has_is_named(runs: tuple[Path, Path]) -> None:
    event = parts(*runs)["Event drive 2"]
    assert list(event.missing) == ["whole"]
    lines = "\n".join(plimsoll.compare_runs(list(runs)).lines())
    assert "Event drive 2: not in whole" in lines and "Load orders" in lines


def test_a_factor_without_a_confidence_says_so(runs: tuple[Path, Path]) -> None:
    row = next(row for row in parts(*runs)["Load orders"].figures if row.title == "Response, p99")
    against = row.against_first[0]
    assert against.low is None and against.word in (NO_CONFIDENCE, "same")
    assert against.word != "not told apart"


def test_a_run_is_held_against_the_cells_that_a_paper_prints(runs: tuple[Path, Path]) -> None:
    found = plimsoll.compare_runs([runs[0], Path("published:md3000i-optimized-200")]).content
    rows = {row.name: row for row in found.figures}
    assert {"orders_per_user_per_min", "file_iops_per_user"} <= set(rows)
    assert rows["file_iops_per_user"].sides[0].value == pytest.approx(0.7, abs=0.01)
    # Forty users make fewer orders than two hundred, which is no result.
    assert "orders_per_min" not in rows
    assert any("40 users of orders instead of 200" in text for text in found.warnings)


def test_factors_stand_to_the_right_and_loads_go_by_their_names(runs: tuple[Path, Path]) -> None:
    page = plimsoll.compare_runs(list(runs)).page()
    assert '<th scope="col" class="number">Factor, broken</th>' in page
    overview = page.partition("Loads side by side</h3>")[2].partition("</table>")[0]
    assert '<th scope="row">orders</th>' in overview, overview


def test_the_page_has_the_loads_side_by_side(runs: tuple[Path, Path]) -> None:
    page = plimsoll.compare_runs(list(runs)).page()
    assert "Loads side by side" in page and "Load orders" in page
    # An event of one side alone has nothing next to it, and no empty table.
    assert "Not on every side" in page and "nothing of the kind in this run" not in page


LONG = "the second path from the left host to the switch in the other room, taken away by hand"
MAIL = "the mail of everyone in the western branch offices and of the call centre"


@pytest.fixture(scope="module")
def named_at_length(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs with an event and a load of long names."""
    place = tmp_path_factory.mktemp("a folder whose name has no end that anyone would wait for")
    loads = [
        {"name": MAIL, "instances": ["shop"], "think_s": 0.5, "load": {"users": 40}},
        {
            "name": "files",
            "instances": ["share"],
            "pattern": "file-server",
            "load": {"users": 50, "iops_per_user": 0.7},
        },
    ]
    event = [{**FAILS[0], "name": LONG}]
    sides = [
        two_loads(place / name, workload=loads, event=event, seed=seed)
        for seed, name in enumerate(("the first of the two runs", "the other run"), 1)
    ]
    return sides[0], sides[1]


def test_the_terminal_has_lines_of_its_width_and_all_figures(
    named_at_length: tuple[Path, Path],
) -> None:
    """Of several loads and events, with names longer than a line has room for."""
    found = plimsoll.compare_runs(list(named_at_length))
    for width in (100, 80):
        lines = found.lines(width)
        assert max(map(len, lines)) <= width
        told = " ".join(" ".join(lines).split())
        assert f"Event {LONG}" in told and MAIL in told
        for figure in [row for part in found.content.parts for row in part.figures]:
            title = figure.title.removeprefix(f"{MAIL}, ").removeprefix("files, ")
            assert f"{title} ({figure.unit})" in told or not figure.unit
            (against,) = figure.against_first
            assert factor_text(against).replace("\u00a0", " ") in told
            assert not against.why or against.why in told
    assert lines_of(found.content) == found.lines(100)


def test_factors_of_loads_and_events_stand_in_one_column(
    named_at_length: tuple[Path, Path],
) -> None:
    lines = plimsoll.compare_runs(list(named_at_length)).lines()
    ends = {line.index("\u00a0x") for line in lines if "\u00a0x" in line}
    assert len(ends) == 1, lines
