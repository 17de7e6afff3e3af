"""`python -m tools.published_matrix PAGE [JOBS]`: the four cells of the MD3000i paper, twice.

Each cell of `examples/studies/md3000i_together.toml` is carried out in full length two times. Both
must be the same to the byte. What the paper printed and what came out are written into the page,
between the two lines that mark the place. It ends with 1 where a cell differs from itself.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import plimsoll
from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.report.published_cells import published_table
from tools.marked_part import with_part

STUDY = Path(__file__).parents[1] / "examples/studies/md3000i_together.toml"
#: What of a run in virtual time follows from plan and seed alone.
SAME = (folder.OUTCOME, folder.SAMPLES, folder.HISTOGRAMS)
BEGIN, END = "<!-- written by `make matrix` -->", "<!-- end of what `make matrix` writes -->"


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix.

    Attributes:
        name, slug: as the study calls it.
        differs: files that were not the same twice.
        plan, summary, headline: of its first run.
    """

    name: str
    slug: str
    differs: tuple[str, ...]
    plan: Plan
    summary: Summary
    headline: str


def cells(study: Path, out: Path, jobs: int) -> list[Cell]:
    """Carry every variant of a study out twice, so many at once."""
    variants = plimsoll.read_study(study).variants
    asked = [
        (study, variant.name, out / f"{variant.slug}-{number}")
        for variant in variants
        for number in (1, 2)
    ]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_carry_out, asked))
    return [cell_of(variant.name, out, variant.slug) for variant in variants]


def _carry_out(what: tuple[Path, str, Path]) -> None:
    study, name, place = what
    (plan,) = [
        variant.plan for variant in plimsoll.read_study(study).variants if variant.name == name
    ]
    assert plan is not None, "a study of plans"
    plimsoll.qualify(plan, place)


def cell_of(name: str, out: Path, slug: str) -> Cell:
    """What became of a cell that was carried out twice."""
    first, second = (out / f"{slug}-{number}" for number in (1, 2))
    return Cell(
        name,
        slug,
        tuple(file for file in SAME if (first / file).read_bytes() != (second / file).read_bytes()),
        Plan.read(first / folder.PLAN),
        Summary.read(first / folder.SUMMARY),
        plimsoll.read_result(first).headline,
    )


def table_of(found: Sequence[Cell]) -> list[str]:
    """What the paper printed and what came out, a column for each cell."""
    tables = [published_table(cell.plan, cell.summary) for cell in found]
    lines = [
        f"| | {' | '.join(cell.name for cell in found)} |",
        f"|---|{'---:|' * len(found)}",
    ]
    rows = [table.rows for table in tables if table is not None]
    assert len(rows) == len(found), "every cell names what the paper printed"
    cells_printed = {row["id"]: row for row in settings.published_results()["result"]}
    for number, (title, *_) in enumerate(rows[0]):
        # The columns of the report are those of the paper, in its order; the last one is ours.
        paper = cells_printed[str(found[0].plan.judgement.published)]["paper"]
        ids = [name for name, row in cells_printed.items() if row["paper"] == paper]
        column = [1 + ids.index(str(cell.plan.judgement.published)) for cell in found]
        printed = [each[number][at] for each, at in zip(rows, column, strict=True)]
        ours = [each[number][-1] for each in rows]
        lines.append(f"| {title}: paper | {' | '.join(map(_shown, printed))} |")
        lines.append(f"| MODELLED | {' | '.join(map(_shown, ours))} |")
    return lines


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def written_into(page: str, lines: Sequence[str]) -> str:
    """The page with other lines between its marks.

    Raises:
        ValueError: a mark is missing.
    """
    return with_part(page, BEGIN, END, "\n".join(["\n", *lines, "\n"]))


def main() -> int:
    """Carry out, compare, write."""
    page, *more = sys.argv[1:]
    jobs = int(more[0]) if more else os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="matrix-") as place:
        found = cells(STUDY, Path(place), jobs)
    for cell in found:
        same = f"differs in {', '.join(cell.differs)}" if cell.differs else "the same twice"
        print(f"{cell.name}: {same}; {cell.headline}")
    text = Path(page).read_text(encoding="utf-8")
    Path(page).write_text(written_into(text, table_of(found)), encoding="utf-8")
    return 1 if any(cell.differs for cell in found) else 0


if __name__ == "__main__":
    sys.exit(main())
