"""What a study found: every figure of every variant, ranked, with the confidence of each
difference.

The figures and the words are those of `plimsoll compare`. The files of finished variants are all
that is needed, so that a study can be judged again, and goes on after a kill where it stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from plimsoll.arrays.papers.error_band import array_band
from plimsoll.arrays.presets import wanted_array
from plimsoll.compare.blocks import Estimate, of_runs
from plimsoll.compare.compare import difference, estimate_of, has_interval, value_row
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.figures import FIGURES, LESS, Figure
from plimsoll.compare.published import PREFIX, PublishedResult
from plimsoll.compare.sides import ComparisonError, Side, read_run
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.study import (
    Light,
    LightResult,
    RankedVariant,
    StudyAxis,
    StudyFigure,
    StudyFindings,
    StudySide,
)
from plimsoll.files import folder
from plimsoll.study.description import Study, Variant
from plimsoll.study.modelled_variant import OWN_FIGURES, warnings_of

SCHEMA_VERSION: Literal[1] = 1
#: Mean read latency at which the published tests end: how far an axis may go is read off there.
LATENCY_MS_MAX = 20.0
ALL_FIGURES = (*FIGURES, *OWN_FIGURES)
#: Figures of which the model's error is known, and what they are called there.
BANDED = {
    "database_iops": "database_iops",
    "headroom": "database_iops",
    "total_database_read_latency_ms_mean": "database_read",
    "total_database_write_latency_ms_mean": "database_write",
    "total_log_write_latency_ms_mean": "log_write",
}
_READ_LATENCY = "total_database_read_latency_ms_mean"


def light_file(home: Path, variant: Variant, seed: int) -> Path:
    """Where the result of a light variant with a seed lies."""
    return home / "variants" / variant.slug / f"seed-{seed}.json"


def is_done(path: Path, light: Light) -> bool:
    """Whether a light variant was simulated as it now is defined.

    Damaged and failed results are made again.
    """
    result = _result(path, light)
    return result is not None and result.figures is not None


def _result(path: Path, light: Light) -> LightResult | None:
    """What a light variant left behind, if it is of this definition."""
    try:
        result = LightResult.read(path)
    except folder.FolderError:
        return None
    return result if result.definition == light else None


def run_is_done(run_folder: Path, plan: Plan) -> bool:
    """Whether a run of this plan came to its end and was judged."""
    try:
        same = Plan.read(run_folder / folder.PLAN) == plan
        ended = Outcome.read(run_folder / folder.OUTCOME).ending == "complete"
        judged_whole = all(
            bool(folder.read_json(run_folder / name)) for name in (folder.SUMMARY, folder.VERDICT)
        )
        return same and ended and judged_whole
    except folder.FolderError:
        return False


@dataclass(frozen=True)
class _State:
    """One variant: an estimate for each figure, or what is missing."""

    name: str
    problem: str | None = None
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    runs_count: int = 0
    result: str | None = None
    modelled: bool = True
    warnings: Sequence[str] = ()

    def of(self, figure: str) -> Estimate:
        """What is known of a figure."""
        return self.estimates.get(figure, Estimate(None, why_not="not measured"))


def judged(study: Study, home: Path) -> StudyFindings:
    """The results of a study from the files of its folder.

    Variants that are not finished are listed as such.
    """
    states = [_state(study, home, variant) for variant in study.variants]
    states += [_published_state(result) for result in study.published]
    settings = [*(variant.settings for variant in study.variants), *({} for _ in study.published)]
    baseline = study.baseline or study.variants[0].name
    base = next(
        (state for state in states if state.name == baseline and not state.problem),
        _State(baseline),
    )
    counts = _counts(study.rank_by, states, base)
    figures = [
        row
        for figure in ALL_FIGURES
        if (row := _row(figure, states, base, counts[figure.name])) is not None
    ]
    return StudyFindings(
        schema_version=SCHEMA_VERSION,
        name=study.name,
        description=study.description,
        source=study.source,
        rank_by=study.rank_by,
        baseline=baseline,
        modelled=any(state.modelled for state in states),
        sides=[
            StudySide(
                name=state.name,
                settings=changed,
                runs_count=state.runs_count,
                result=state.result,
                problem=state.problem,
                warnings=state.warnings,
            )
            for state, changed in zip(states, settings, strict=True)
        ],
        figures=figures,
        ranking=_ranked(study.rank_by, states, counts[study.rank_by]),
        model_band_percent=_model_band(study.rank_by, study),
        axis=_axis(study, figures),
    )


def _model_band(figure: str, study: Study) -> float | None:
    """How far the model itself may be off in a figure.

    None where everything was measured, or nobody published that figure.
    """
    arrays: list[ArraySheet] = []
    for variant in study.variants:
        if variant.light is not None:
            arrays.append(wanted_array(variant.light.array))
        elif variant.plan is not None and variant.plan.judgement.modelled:
            arrays.append(variant.plan.judgement.modelled)
    bands = [array_band(array, BANDED[figure]) for array in arrays] if figure in BANDED else []
    return max(bands, default=None)


def _state(study: Study, home: Path, variant: Variant) -> _State:
    """One variant from its files."""
    if variant.light is not None:
        return _light_state(study, home, variant, variant.light)
    runs, problems = [], []
    for number in range(1, study.repeat + 1):
        run_folder = home / "variants" / variant.slug / f"run-{number}"
        try:
            run = read_run(run_folder)
        except ComparisonError as error:
            problems += error.problems
            continue
        if run.summary.ending == "complete":
            runs.append(run)
        else:
            why = f": {run.summary.error.text}" if run.summary.error else ""
            problems.append(f"{run_folder.name} ended {run.summary.ending}{why}")
    if not runs:
        return _State(
            variant.name, "; ".join(problems) or "not carried out yet", modelled=not variant.is_real
        )
    side = Side(variant.name, home, runs)
    results = [run.verdict.result if run.verdict else None for run in runs]
    return _State(
        variant.name,
        estimates={figure.name: estimate_of(figure, side) for figure in FIGURES},
        runs_count=len(runs),
        result=next(
            (result for result in ("fail", "inconclusive", "pass") if result in results), None
        ),
        modelled=is_modelled(runs[0]),
        warnings=[f"only {len(runs)} of {study.repeat} runs are there"] if problems else [],
    )


def _light_state(study: Study, home: Path, variant: Variant, light: Light) -> _State:
    read = [_result(light_file(home, variant, seed), light) for seed in range(1, study.repeat + 1)]
    results = [result for result in read if result is not None]
    found = [result.figures for result in results if result.figures]
    if not found:
        problems = [result.problem for result in results]
        return _State(variant.name, problems[0] if problems else "not carried out yet")
    estimates = {}
    for name in [name for name in found[0] if all(name in figures for figures in found)]:
        values = [float(figures[name]) for figures in found]
        alone = Estimate(values[0], why_not="one seed says nothing of chance", is_open=True)
        estimates[name] = of_runs(values) if len(values) > 1 else alone
    return _State(
        variant.name, estimates=estimates, runs_count=len(found), warnings=warnings_of(light)
    )


def _published_state(result: PublishedResult) -> _State:
    """A result of a paper. Its latencies are plain means of samples, the nearest that a paper
    prints to a mean over operations.
    """
    stated = result.compared()
    estimates = {}
    for figure in FIGURES:
        value = stated.get(figure.name, stated.get(f"{figure.name}_of_samples"))
        if value is not None:
            estimates[figure.name] = Estimate(
                value * figure.scale, why_not="a paper prints one number"
            )
    return _State(
        f"{PREFIX}{result.id}",
        estimates=estimates,
        runs_count=1,
        modelled=False,
        warnings=[result.origin],
    )


def _counts(rank_by: str, states: Sequence[_State], base: _State) -> dict[str, int]:
    """How many intervals must hold together with each figure's.

    Those of the figure by which variants are ranked, against the baseline and against the one
    above, answer what the study asks; all others hold together with everything that stands in the
    tables.
    """
    known = {
        figure.name: sum(
            state is not base and has_interval(base.of(figure.name), state.of(figure.name))
            for state in states
        )
        for figure in ALL_FIGURES
    }
    asked = max(1, 2 * known[rank_by])
    every = max(1, sum(known.values()) + known[rank_by])
    return {name: asked if name == rank_by else every for name in known}


def _row(figure: Figure, states: Sequence[_State], base: _State, count: int) -> StudyFigure | None:
    estimates = [state.of(figure.name) for state in states]
    if not any(estimate.value for estimate in estimates):
        return None
    return StudyFigure(
        name=figure.name,
        title=figure.title,
        unit=figure.unit,
        better=figure.better,
        sides=[value_row(estimate) for estimate in estimates],
        against_baseline=[
            difference(figure, base.of(figure.name), estimate, count) for estimate in estimates
        ],
    )


def _ranked(rank_by: str, states: Sequence[_State], count: int) -> list[RankedVariant]:
    """The variants from the best to the worst, each with how sure its difference from the one above
    is.
    """
    figure = next(figure for figure in ALL_FIGURES if figure.name == rank_by)
    known = [(value, state) for state in states if (value := state.of(rank_by).value) is not None]
    known.sort(key=lambda ranked: ranked[0], reverse=figure.better != LESS)
    ranked = []
    above: Estimate | None = None
    for value, state in known:
        against = difference(figure, above, state.of(rank_by), count) if above else None
        ranked.append(RankedVariant(name=state.name, value=value, against_the_one_above=against))
        above = state.of(rank_by)
    return ranked


def _axis(study: Study, figures: Sequence[StudyFigure]) -> StudyAxis | None:
    """The curve of a study with one axis of numbers, and how far along it the read latency stays
    within the limit.
    """
    if study.axis is None:
        return None
    title, values = study.axis
    rows = {row.name: [side.value for side in row.sides] for row in figures}
    latencies = rows.get(_READ_LATENCY, [None] * len(values))
    within = [
        value
        # Results of papers follow the variants and are no points of the axis.
        for value, latency in zip(values, latencies[: len(values)], strict=True)
        if latency is not None and latency <= LATENCY_MS_MAX
    ]
    return StudyAxis(
        title=title,
        values=values,
        largest_within_limit=max(within, default=None),
        limit_ms=LATENCY_MS_MAX,
    )
