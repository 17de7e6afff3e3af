"""A study in words: for the terminal, and the sentences of its page."""

from __future__ import annotations

from plimsoll.compare.text import factor_text, interval_text
from plimsoll.documents.comparison import ComparedValue
from plimsoll.documents.study import StudyFigure, StudyFindings
from plimsoll.pages.tables import shown
from plimsoll.study.modelled_variant import STAGE_FIGURES

MODELLED = (
    "MODELLED: predictions, nothing was measured. Intervals come from other seeds: they say how "
    "far chance reaches inside the "
    "model, not how near the model is to hardware; that is in docs/papers.md."
)
#: Figures of the table in the terminal; the page has all.
SHOWN = (
    "total_database_read_latency_ms_mean",
    "total_log_write_latency_ms_mean",
    "reads_per_write",
    "headroom",
    "sessions",
)


def title_of(row: StudyFigure) -> str:
    """A figure with its unit."""
    return f"{row.title} ({row.unit})" if row.unit else row.title


def basis_words(estimate: ComparedValue) -> str:
    """Where the confidence of a value comes from, or why there is none."""
    if estimate.basis == "runs":
        return f"{estimate.count} whole runs"
    if estimate.basis == "blocks":
        return f"{estimate.count} blocks of {estimate.block_s:.3g} s within one run"
    return f"none: {estimate.why_no_confidence}"


def warnings_of(found: StudyFindings) -> list[str]:
    """What a reader must know first."""
    lines = [MODELLED] if found.modelled else []
    for side in found.sides:
        lines += [f"{side.name}: {text}" for text in [side.problem, *side.warnings] if text]
    return lines


def sentences(found: StudyFindings) -> list[str]:
    """What came out: the best, how it stands to the next and the baseline, and how far an axis
    goes.
    """
    ranking = found.ranking
    if not ranking:
        return []
    figure = next(row for row in found.figures if row.name == found.rank_by)
    unit = f" {figure.unit}" if figure.unit else ""
    lines = [
        f"{ranking[0].name} is first of {len(ranking)}: {figure.title} "
        f"{shown(ranking[0].value)}{unit}"
    ]
    if len(ranking) > 1:
        second, above = ranking[1], ranking[1].against_the_one_above
        word = above.word if above else None
        told = (
            "the two are not told apart"
            if word in ("not told apart", "without confidence")
            else f"against the first: {word}"
        )
        if above is None or above.low is None:
            told += ", without a known confidence"
        lines.append(f"Next is {second.name} with {shown(second.value)}{unit}; {told}.")
    lines += _band_sentence(found)
    values = [entry.value for entry in ranking if entry.value]
    if len(values) > 1:
        lines.append(f"From the least to the most: {100 * (max(values) / min(values) - 1):.1f} %.")
    axis = found.axis
    if axis and axis.largest_within_limit is not None:
        lines.append(
            f"The mean read latency stays within {shown(axis.limit_ms)} ms up to {axis.title} "
            f"{axis.largest_within_limit:g}."
        )
    return lines


def _band_sentence(found: StudyFindings) -> list[str]:
    """Which differences the model's own error could make, however sure its seeds are of them."""
    band = found.model_band_percent
    if band is None:
        return []
    figure = next(row for row in found.figures if row.name == found.rank_by)
    names = [side.name for side in found.sides]
    within = [
        entry.name
        for entry in found.ranking
        if entry.name != found.baseline
        and (factor := figure.against_baseline[names.index(entry.name)].factor) is not None
        and abs(factor - 1) <= band / 100
    ]
    text = f"The model itself is within {band:.0f} % of results it was not fitted to"
    if not within:
        return [f"{text}; every difference from the baseline is larger."]
    return [
        f"{text}; no larger than that is the difference from the baseline of {', '.join(within)}."
    ]


def busiest_stage(found: StudyFindings, index: int) -> str | None:
    """The stage that would give way first in a variant, and how busy it is.

    None where no stage was modelled.
    """
    names = {figure.name: stage for stage, figure in STAGE_FIGURES.items()}
    shares = {
        names[row.name]: value
        for row in found.figures
        if row.name in names and (value := row.sides[index].value) is not None
    }
    if not shares:
        return None
    stage = max(shares, key=lambda name: shares[name])
    return f"{stage}, {shares[stage]:.0f} %"


def lines_of(found: StudyFindings) -> list[str]:
    """The study for a terminal."""
    lines = [f"warning: {text}" for text in warnings_of(found)]
    lines += ["", found.name, *sentences(found), ""]
    rows = {row.name: row for row in found.figures}
    if not found.ranking:
        return [*lines, "no variant is finished"]
    extra = [rows[name] for name in SHOWN if name in rows and name != found.rank_by]
    ranked = rows[found.rank_by]
    names = [side.name for side in found.sides]
    has_stages = any(busiest_stage(found, index) for index in range(len(names)))
    last = ["Busiest stage"] if has_stages else []
    table = [["", title_of(ranked), "factor", "95 %", "", *(title_of(row) for row in extra), *last]]
    for place, entry in enumerate(found.ranking, 1):
        index = names.index(entry.name)
        against = ranked.against_baseline[index]
        compared = [
            factor_text(against),
            interval_text(against),
            against.word or "",
        ]
        cells = [
            shown(entry.value),
            *(["", "", "baseline"] if entry.name == found.baseline else compared),
        ]
        table.append(
            [f"{place}. {entry.name}", *cells, *(shown(row.sides[index].value) for row in extra)]
        )
        table[-1] += [busiest_stage(found, index) or ""] if has_stages else []
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells))
    return lines
