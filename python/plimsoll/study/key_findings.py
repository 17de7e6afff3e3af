"""What a study found, in sentences that each name the figures they rest on.

A sentence of a summary is repeated by people who never see the table. So every number in it is a
figure of the study, named beside it, or follows from two of them by the arithmetic that is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.compare.text import factor_text, interval_text
from plimsoll.documents.comparison import Difference
from plimsoll.documents.study import StudyFigure, StudyFindings
from plimsoll.pages.tables import shown
from plimsoll.study.modelled_variant import STAGE_FIGURES
from plimsoll.study.text import busiest_stage

READ_LATENCY = "total_database_read_latency_ms_mean"


@dataclass(frozen=True)
class Trace:
    """One figure that a finding rests on."""

    figure: str
    variant: str
    value: float

    def in_words(self) -> str:
        """The figure by its name in `study.json`."""
        return f"{self.figure} of {self.variant}: {self.value:.6g}"


@dataclass(frozen=True)
class KeyFinding:
    """A sentence and the figures it rests on."""

    text: str
    traces: tuple[Trace, ...]


def key_findings(found: StudyFindings) -> list[KeyFinding]:
    """The findings of a study, the one that it asks for first."""
    if not found.ranking:
        return []
    names = [side.name for side in found.sides]
    ranked = next(row for row in found.figures if row.name == found.rank_by)
    return [
        _first(found, ranked, names),
        *_against_baseline(found, ranked, names),
        *_within_latency(found, names),
        *_busiest(found, names),
        *_results(found),
    ]


def _value(row: StudyFigure, index: int) -> str:
    unit = f" {row.unit}" if row.unit else ""
    return f"{shown(row.sides[index].value)}{unit}"


def _trace(row: StudyFigure, names: list[str], index: int) -> Trace:
    return Trace(row.name, names[index], row.sides[index].value or 0.0)


def _first(found: StudyFindings, ranked: StudyFigure, names: list[str]) -> KeyFinding:
    best = names.index(found.ranking[0].name)
    title = ranked.title[:1].lower() + ranked.title[1:]
    text = f"{names[best]} is first of {len(found.ranking)} by {title}: {_value(ranked, best)}"
    traces = [_trace(ranked, names, best)]
    if len(found.ranking) > 1:
        second = names.index(found.ranking[1].name)
        above = found.ranking[1].against_the_one_above
        text += f"; next is {names[second]} with {_value(ranked, second)}, {_sure(above)}"
        traces.append(_trace(ranked, names, second))
    return KeyFinding(f"{text}.", tuple(traces))


def _sure(against: Difference | None) -> str:
    """How sure a difference is, in words that promise no more."""
    if against is None or against.low is None or against.high is None:
        return "with nothing known of how sure the difference is"
    if against.word in ("not told apart", "without confidence"):
        return "and chance alone may make the difference"
    return f"{against.word} by more than chance"


def _against_baseline(
    found: StudyFindings, ranked: StudyFigure, names: list[str]
) -> list[KeyFinding]:
    base = names.index(found.baseline)
    findings = []
    for entry in found.ranking:
        index = names.index(entry.name)
        against = ranked.against_baseline[index]
        if index == base or against.factor is None:
            continue
        interval = interval_text(against)
        sure = f" (95 %: {interval})" if against.low is not None else ""
        findings.append(
            KeyFinding(
                f"{entry.name} against {found.baseline}: a factor of "
                f"{factor_text(against)}{sure}, {against.word}.",
                (_trace(ranked, names, index), _trace(ranked, names, base)),
            )
        )
    return findings


def _within_latency(found: StudyFindings, names: list[str]) -> list[KeyFinding]:
    axis = found.axis
    row = next((row for row in found.figures if row.name == READ_LATENCY), None)
    if axis is None or row is None or axis.largest_within_limit is None:
        return []
    index = list(axis.values).index(axis.largest_within_limit)
    return [
        KeyFinding(
            f"Reads stay within {axis.limit_ms:g} ms on average up to {axis.title} "
            f"{axis.largest_within_limit:g}, where they take {_value(row, index)}.",
            (_trace(row, names, index),),
        )
    ]


def _busiest(found: StudyFindings, names: list[str]) -> list[KeyFinding]:
    index = names.index(found.ranking[0].name)
    stage = busiest_stage(found, index)
    if stage is None:
        return []
    names_of_stages = {figure.name for figure in STAGE_FIGURES.values()}
    stages = [row for row in found.figures if row.name in names_of_stages]
    row = max(stages, key=lambda row: row.sides[index].value or 0.0)
    return [
        KeyFinding(
            f"What gives way first in {names[index]}: {stage} busy.",
            (_trace(row, names, index),),
        )
    ]


def _results(found: StudyFindings) -> list[KeyFinding]:
    """Which variants do not keep the limits."""
    words = {"fail": "fails", "inconclusive": "is inconclusive"}
    return [
        KeyFinding(f"{side.name} {words[side.result]}: see appendix A.", ())
        for side in found.sides
        if side.result in words
    ]
