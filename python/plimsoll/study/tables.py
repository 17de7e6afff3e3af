"""The tables of a study, which its page and its document share."""

from __future__ import annotations

from plimsoll.compare.text import factor_text, interval_text
from plimsoll.documents.study import StudyFindings
from plimsoll.pages.tables import Table
from plimsoll.study.text import MODELLED, basis_words, busiest_stage, title_of


def ranking_table(found: StudyFindings, titles: dict[str, str]) -> Table:
    """The variants from the best to the worst."""
    rows = []
    for place, entry in enumerate(found.ranking, 1):
        index = [side.name for side in found.sides].index(entry.name)
        figure = next(row for row in found.figures if row.name == found.rank_by)
        against, above = figure.against_baseline[index], entry.against_the_one_above
        compared = [
            factor_text(against),
            interval_text(against),
            against.word,
        ]
        if entry.name == found.baseline:
            compared = [None, None, "the baseline"]
        rows.append(
            [
                f"{place}. {entry.name}",
                entry.value,
                *compared,
                above.word if above else None,
                basis_words(figure.sides[index]),
                busiest_stage(found, index),
            ]
        )
    headings = [
        "Variant",
        titles.get(found.rank_by, found.rank_by),
        f"Factor against {found.baseline}",
        "95 % of the factor",
        "In a word",
        "Against the one above",
        "Confidence from",
        "Busiest stage",
    ]
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Table(
        "Variants from the best to the worst", headings, rows, MODELLED if found.modelled else ""
    )


def figures_table(found: StudyFindings) -> Table:
    """Every figure of every variant."""
    headings = ["Figure", *(side.name for side in found.sides)]
    rows = [[title_of(row), *(side.value for side in row.sides)] for row in found.figures]
    return Table("Values", headings, rows, "Means of all runs of a variant.")


def differences_tables(found: StudyFindings) -> list[Table]:
    """How each variant stands to the baseline, a table for each."""
    tables = []
    for index, side in enumerate(found.sides):
        if side.name == found.baseline or side.problem:
            continue
        rows = [
            [
                title_of(row),
                factor_text(against),
                interval_text(against),
                against.word,
                against.why or basis_words(row.sides[index]),
            ]
            for row in found.figures
            if (against := row.against_baseline[index]).factor is not None
        ]
        headings = [
            "Figure",
            "Factor",
            "95 % of the factor",
            "In a word",
            "Confidence from, or why none",
        ]
        tables.append(
            Table(
                f"{side.name} against {found.baseline}", headings, rows, folded=len(found.sides) > 4
            )
        )
    return tables


def variants_table(found: StudyFindings) -> Table:
    """What each variant changes, and what became of it."""
    rows = [
        [
            side.name,
            "; ".join(f"{key} = {value}" for key, value in side.settings.items()) or "as the base",
            side.runs_count,
            side.result,
            side.problem or "; ".join(side.warnings) or None,
        ]
        for side in found.sides
    ]
    return Table(
        "What each variant changes",
        ["Variant", "Settings", "Runs", "Worst result", "Remarks"],
        rows,
    )
