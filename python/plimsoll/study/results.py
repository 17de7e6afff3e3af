"""What a study found: every figure of every variant, ranked, with the confidence of each difference.

The figures and the words are those of `plimsoll compare`. The files of finished variants are all that is needed, so that a study
can be judged again, and goes on after a kill where it stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.arrays.papers.error_band import array_band
from plimsoll.arrays.presets import wanted_array
from plimsoll.compare.blocks import Estimate, of_runs
from plimsoll.compare.compare import difference, estimate_of, value_row
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.figures import FIGURES, LESS, Figure
from plimsoll.compare.sides import ComparisonError, Side, read_run
from plimsoll.files import folder
from plimsoll.study.description import Study, Variant
from plimsoll.study.modelled_variant import OWN_FIGURES, warnings_of

SCHEMA_VERSION = 1
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


def is_done(path: Path, light: dict[str, Any]) -> bool:
    """Whether a light variant was simulated as it now is defined; damaged and failed results are made again."""
    result = _result(path, light)
    return result is not None and result["figures"] is not None


def _result(path: Path, light: dict[str, Any]) -> dict[str, Any] | None:
    """What a light variant left behind, if it is of this definition."""
    try:
        result: dict[str, Any] = folder.read_json(path)
        return result if result["definition"] == light and {"figures", "problem"} <= result.keys() else None
    except (folder.FolderError, KeyError, TypeError, AttributeError):
        return None


def run_is_done(run_folder: Path, plan: dict[str, Any]) -> bool:
    """Whether a run of this plan came to its end and was judged."""
    try:
        same = folder.read_json(run_folder / folder.PLAN) == plan
        ended = folder.read_json(run_folder / folder.OUTCOME)["ending"] == "complete"
        judged_whole = all(bool(folder.read_json(run_folder / name)) for name in (folder.SUMMARY, folder.VERDICT))
        return same and ended and judged_whole
    except (folder.FolderError, KeyError, TypeError):
        return False


def judged(study: Study, home: Path) -> dict[str, Any]:
    """The results of a study from the files of its folder; variants that are not finished are listed as such."""
    states = [_state(study, home, variant) for variant in study.variants]
    baseline = study.content["baseline"] or study.variants[0].name
    base = next((state for state in states if state["name"] == baseline and not state["problem"]), None)
    figures = [row for figure in ALL_FIGURES if (row := _row(figure, states, base)) is not None]
    rank_by = study.content["rank_by"]
    ranked = _ranked(rank_by, states)
    return {
        "schema_version": SCHEMA_VERSION,
        "name": study.content["name"],
        "description": study.content["description"],
        "source": study.content["source"],
        "rank_by": rank_by,
        "baseline": baseline,
        "modelled": any(state["modelled"] for state in states),
        "sides": [
            {
                "name": state["name"],
                "settings": variant.settings,
                "runs_count": state["runs_count"],
                "result": state["result"],
                "problem": state["problem"],
                "warnings": state["warnings"],
            }
            for state, variant in zip(states, study.variants, strict=True)
        ],
        "figures": figures,
        "ranking": ranked,
        "model_band_percent": _model_band(rank_by, study),
        "axis": _axis(study, figures),
    }


def _model_band(figure: str, study: Study) -> float | None:
    """How far the model itself may be off in a figure; None where everything was measured, or nobody published that figure."""
    arrays: list[dict[str, Any]] = []
    for variant in study.variants:
        if variant.light is not None:
            arrays.append(wanted_array(variant.light["array"]))
        elif variant.plan is not None and variant.plan["judgement"].get("modelled"):
            arrays.append(variant.plan["judgement"]["modelled"])
    bands = [array_band(array, BANDED[figure]) for array in arrays] if figure in BANDED else []
    return max(bands, default=None)


def _state(study: Study, home: Path, variant: Variant) -> dict[str, Any]:
    """One variant: an estimate for each figure, or what is missing."""
    state: dict[str, Any] = {
        "name": variant.name, "estimates": {}, "problem": None, "warnings": [], "runs_count": 0, "result": None,
        "modelled": True,
    }  # fmt: skip
    if variant.light is not None:
        return state | _light_state(study, home, variant, variant.light)
    runs, problems = [], []
    for number in range(1, int(study.content["repeat"]) + 1):
        run_folder = home / "variants" / variant.slug / f"run-{number}"
        try:
            runs.append(read_run(run_folder))
        except ComparisonError as error:
            problems += error.problems
    if not runs:
        return state | {"problem": "; ".join(problems) or "not carried out yet", "modelled": not variant.is_real}
    side = Side(variant.name, home, runs)
    results = [run.verdict.result if run.verdict else None for run in runs]
    worst = next((result for result in ("fail", "inconclusive", "pass") if result in results), None)
    return state | {
        "estimates": {figure.name: estimate_of(figure, side) for figure in FIGURES},
        "runs_count": len(runs),
        "result": worst,
        "modelled": is_modelled(runs[0]),
        "warnings": [f"only {len(runs)} of {study.content['repeat']} runs are there"] if problems else [],
    }


def _light_state(study: Study, home: Path, variant: Variant, light: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, float]] = []
    problems: list[str] = []
    for seed in range(1, int(study.content["repeat"]) + 1):
        result = _result(light_file(home, variant, seed), light)
        if result and result["figures"]:
            found.append(result["figures"])
        elif result:
            problems.append(result["problem"])
    if not found:
        return {"problem": problems[0] if problems else "not carried out yet"}
    names = [name for name in found[0] if all(name in figures for figures in found)]
    estimates = {}
    for name in names:
        values = [float(figures[name]) for figures in found]
        alone = Estimate(values[0], why_not="one seed says nothing of chance")
        estimates[name] = of_runs(values) if len(values) > 1 else alone
    return {"estimates": estimates, "runs_count": len(found), "warnings": warnings_of(light)}


def _row(figure: Figure, states: list[dict[str, Any]], base: dict[str, Any] | None) -> dict[str, Any] | None:
    nothing = Estimate(None, why_not="not measured")
    estimates = [state["estimates"].get(figure.name, nothing) for state in states]
    if not any(estimate.value for estimate in estimates):
        return None
    first = base["estimates"].get(figure.name, nothing) if base else nothing
    return {
        "name": figure.name,
        "title": figure.title,
        "unit": figure.unit,
        "better": figure.better,
        "sides": [value_row(estimate).plain() for estimate in estimates],
        "against_baseline": [difference(figure, first, estimate).plain() for estimate in estimates],
    }


def _ranked(rank_by: str, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The variants from the best to the worst, each with how sure its difference from the one above is."""
    figure = next(figure for figure in ALL_FIGURES if figure.name == rank_by)
    known = [
        state for state in states if state["estimates"].get(rank_by) and state["estimates"][rank_by].value is not None
    ]
    known.sort(key=lambda state: state["estimates"][rank_by].value, reverse=figure.better != LESS)
    ranked = []
    for place, state in enumerate(known):
        above = known[place - 1]["estimates"][rank_by] if place else None
        against = difference(figure, above, state["estimates"][rank_by]).plain() if above else None
        ranked.append(
            {"name": state["name"], "value": state["estimates"][rank_by].value, "against_the_one_above": against}
        )
    return ranked


def _axis(study: Study, figures: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The curve of a study with one axis of numbers, and how far along it the read latency stays within the limit."""
    if study.axis is None:
        return None
    title, values = study.axis
    rows = {row["name"]: [side["value"] for side in row["sides"]] for row in figures}
    latencies = rows.get(_READ_LATENCY, [None] * len(values))
    within = [
        value
        for value, latency in zip(values, latencies, strict=True)
        if latency is not None and latency <= LATENCY_MS_MAX
    ]
    return {
        "title": title,
        "values": values,
        "largest_within_limit": max(within) if within else None,
        "limit_ms": LATENCY_MS_MAX,
    }
