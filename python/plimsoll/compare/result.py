"""A comparison of run folders from beginning to end: read, compared, held against conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from plimsoll.compare.compare import compare
from plimsoll.compare.figures import CLIENT_FIGURES, FIGURES
from plimsoll.compare.gates import Finding, compared_by, evaluate, parse_condition
from plimsoll.compare.parts import compared_parts
from plimsoll.compare.published import published_side
from plimsoll.compare.sides import ComparisonError, Side, read_sides
from plimsoll.compare.text import WIDTH, lines_of
from plimsoll.documents import comparison as documents
from plimsoll.errors import MissingLibraryError
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath, paths_of
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.plan.limits import LimitError


@dataclass(frozen=True)
class Comparison:
    """Runs held against the first of them.

    Attributes:
        content: sides, figures with their factors and confidence, circumstances, warnings and
            `conditions`; `plain()` of it is what JSON holds.
        sides: what was read of each run folder.
        findings: what became of each condition on each side.
    """

    content: documents.Comparison
    sides: Sequence[Side]
    findings: Sequence[Finding]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(repr(side.name) for side in self.content.sides)})"

    def lines(self, width: int = WIDTH) -> list[str]:
        """The comparison for people, in lines of at most so many characters."""
        return lines_of(self.content, width)

    def page(self) -> str:
        """The comparison as HTML, with charts.

        Raises:
            MissingLibraryError: the library that draws them is not installed.
            ComparisonError: a table of a run is damaged.
        """
        try:
            from plimsoll.compare.page import render
        except ModuleNotFoundError as error:
            raise MissingLibraryError("--html", error.name) from error
        with reading(*(side.path for side in self.sides)):
            return render(self.content, self.sides, self.findings)


def compare_runs(
    folders: StrPath | Sequence[StrPath],
    *,
    fail_if: Sequence[str] = (),
    confident: bool = False,
    across_page_sizes: bool = False,
    figures: Sequence[str] = (),
) -> Comparison:
    """Compare runs with the first of them.

    Improvement factors, how sure they are, and what else differs.

    Args:
        folders: run folders, folders of repeated runs, or published results such as
            `published:netapp-2007`; the first is the baseline.
        fail_if: conditions such as `database_iops_change_percent<-5`.
        confident: let conditions count only what 95 % intervals leave no doubt about.
        across_page_sizes: compare runs of different page sizes all the same.
        figures: compare only these, and those that conditions are about; their intervals are
            narrower, because fewer must hold together. Choose them before you see any.

    Raises:
        ComparisonError: everything that is wrong with the folders and the conditions.
    """
    sides_of = paths_of(folders)
    if len(sides_of) < 2:
        raise ComparisonError(["a comparison needs two run folders or more: plimsoll compare A B"])
    conditions, problems = [], []
    for text in fail_if:
        try:
            conditions.append(parse_condition(text))
        except LimitError as error:
            problems.append(
                f"--fail-if: {error.message}" + (f"\n    hint: {error.hint}" if error.hint else "")
            )
    known = {figure.name for figure in (*FIGURES, *CLIENT_FIGURES)}
    problems += [
        f"--figures: there is no figure {name}\n    hint: {nearest_names(name, known)}"
        for name in figures
        if name not in known
    ]
    gated = [compared_by(condition) for condition in conditions]
    only = [*figures, *(name for name in gated if name in known)] if figures else []
    try:
        with reading(*sides_of):
            sides = read_sides(sides_of, published_side)
            found = compare(
                sides, across_page_sizes=across_page_sizes, only=list(dict.fromkeys(only))
            )
            if not only:
                found = found.replace(parts=compared_parts(sides))
    except ComparisonError as error:
        problems += error.problems
    if problems:
        raise ComparisonError(problems)
    with reading(*sides_of):
        findings = [
            finding
            for condition in conditions
            for finding in evaluate(condition, sides, found, confident=confident)
        ]
    conditions_met = [documents.Condition(**asdict(finding)) for finding in findings]
    return Comparison(found.replace(conditions=conditions_met), sides, findings)
