"""The 2 x 2 matrix of the MD3000i paper: users by state, in virtual time, in a short form."""

import json
import re
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.report.together import together_tables
from plimsoll.study.description import read_study
from plimsoll.verdict.together import overlap_checks
from tools import published_matrix

EXAMPLES = Path(__file__).parents[2] / "examples"
STUDY = "studies/md3000i_together.toml"
CELLS = {
    f"{state}, {users} users": f"md3000i-{state}-{users}"
    for state in ("optimized", "degraded")
    for users in (200, 500)
}
SHORTER = [
    (r"duration_s = 1800", "duration_s = 4"),
    (r"duration_s = 60", "duration_s = 2"),
    (r"database_size_mib = 4096", "database_size_mib = 64"),
    (r"cache_mib_max = 24[^\n]*", "cache_mib_max = 2\ncache_mib_min = 1"),
    (r'store_size = "100MB"', 'store_size = "10MB"'),
    (r"file_mib = 5120", "file_mib = 64"),
    (r"start_after_s = \d0", "start_after_s = 1"),
    (r"(baseline = .*)", r"\1\nrepeat = 1"),
]


def short_study(place: Path) -> Path:
    """The study and its base, with less of everything."""
    (place / "studies").mkdir()
    for name in ("md3000i_together_200.toml", STUDY):
        text = (EXAMPLES / name).read_text()
        for pattern, shorter in SHORTER:
            text = re.sub(pattern, shorter, text)
        (place / name).write_text(text)
    return place / STUDY


@pytest.mark.slow
def test_ORC_04_STU_14_four_cells_of_the_matrix_are_the_same_twice(tmp_path: Path) -> None:
    study = short_study(tmp_path)
    wanted = read_study(study)
    assert {variant.name for variant in wanted.variants} == set(CELLS)
    found = plimsoll.carry_out_study(wanted, study, tmp_path / "out-1", jobs=1)
    assert found.exit_code == 0, found.lines()
    cells = sorted((found.folder / "variants").iterdir())
    once = [(cell / "run-1" / folder.OUTCOME).read_bytes() for cell in cells]
    assert len(set(once)) == 4
    (last,) = [variant for variant in wanted.variants if variant.name == "degraded, 500 users"]
    assert last.plan is not None
    again = plimsoll.qualify(last.plan, tmp_path / "again").folder / folder.OUTCOME
    assert again.read_bytes() == once[[cell.name for cell in cells].index(last.slug)]
    for variant in wanted.variants:
        place = tmp_path / "out-1/variants" / variant.slug / "run-1"
        plan, summary = Plan.read(place / folder.PLAN), Summary.read(place / folder.SUMMARY)
        assert plan.judgement.published == CELLS[variant.name]
        users = 500 if "500" in variant.name else 200
        assert [figures.users for figures in summary.files] == [users, users]
        assert summary.store[0].sessions == users / 10
        assert set(summary.overlaps) == {"mail", "orders", "files 1", "files 2"}
        links = json.loads((place / folder.PLAN).read_text())["judgement"]["modelled"]["faults"]
        assert len(links or []) == (2 if "degraded" in variant.name else 0)
        titles = {table.title: table for table in together_tables(plan, summary)}
        published = titles["Published cells and this run"]
        (orders,) = [row for row in published.rows if row[0] == "Orders per minute"]
        assert orders[1:5] == [760, 1878, 758, 1868] and orders[5] == summary.store[0].opm
        (peak,) = [row for row in published.rows if str(row[0]).startswith("% of the peak")]
        assert peak[1:5] == [95.0, 93.9, 94.75, 93.4]
        assert all(name in published.note for name in ("M-01", "M-02", "M-04", "M-15"))
        each = titles["Work of each user"]
        assert [row[0] for row in each.rows] == ["orders", "files 1", "files 2"]
        assert (place / folder.REPORT).read_text().count("Published cells and this run") >= 1
    # A load that ended early lets nothing be concluded.
    assert {check.status for check in overlap_checks(summary)} == {"pass"}
    early = summary.replace(overlaps={**summary.overlaps, "orders": 0.949})
    (check,) = [check for check in overlap_checks(early) if check.status != "pass"]
    assert check.scope == "orders" and check.status == "not_evaluated"


@pytest.mark.slow
def test_each_cell_is_carried_out_twice_and_stands_next_to_the_paper(tmp_path: Path) -> None:
    """What `make matrix` does in full length, in the short form."""
    found = published_matrix.cells(short_study(tmp_path), tmp_path / "cells", 2)
    assert [cell.name for cell in found] == [
        f"{state}, {users} users" for state in ("optimized", "degraded") for users in (200, 500)
    ]
    assert [cell.differs for cell in found] == [()] * 4
    lines = published_matrix.table_of(found)
    assert lines[0].startswith("| | optimized, 200 users | optimized, 500 users | degraded,")
    (printed,) = [line for line in lines if line.startswith("| Orders per minute: paper")]
    assert printed == "| Orders per minute: paper | 760 | 1,878 | 758 | 1,868 |"
    ours = lines[lines.index(printed) + 1]
    assert ours.startswith("| MODELLED |") and "–" not in ours
    assert len({line.count("|") for line in lines}) == 1
    place = tmp_path / f"cells/{found[0].slug}-2" / folder.OUTCOME
    place.write_bytes(place.read_bytes() + b" ")
    again = published_matrix.cell_of(found[0].name, tmp_path / "cells", found[0].slug)
    assert again.differs == (folder.OUTCOME,)


def test_the_table_of_the_matrix_is_written_between_its_marks() -> None:
    page = (Path(__file__).parents[2] / "docs/combined.md").read_text(encoding="utf-8")
    once = published_matrix.written_into(page, ["| a table |"])
    assert once.count(published_matrix.BEGIN) == once.count(published_matrix.END) == 1
    assert published_matrix.written_into(once, ["| a table |"]) == once
    with pytest.raises(ValueError, match="mark"):
        published_matrix.written_into("no place", [])
