"""A cost study as plain data; every figure with value, unit, formula and source."""

from __future__ import annotations

from dataclasses import asdict

from plimsoll.sizing.cost_study import CostStudy
from plimsoll.sizing.traced import as_json

#: The figures of the summary, in reading order: name and number of decimals.
COST_SUMMARY = {
    "drive_count": 0,
    "enclosure_count": 0,
    "rack_units": 0,
    "purchase_usd": 2,
    "delivered_iops": 2,
    "usd_per_iops": 4,
    "users_count": 0,
    "usd_per_user": 4,
    "raw_capacity_gb": 0,
    "usable_capacity_gb": 0,
    "used_capacity_gb": 0,
    "usd_per_raw_gb": 4,
    "usd_per_usable_gb": 4,
    "usd_per_used_gb": 4,
    "power_low_w": 0,
    "power_high_w": 0,
    "power_low_usd_per_year": 2,
    "power_high_usd_per_year": 2,
    "cooling_low_usd_per_year": 2,
    "cooling_high_usd_per_year": 2,
    "failures_per_year": 5,
    "total_low_usd": 2,
    "total_high_usd": 2,
}


def cost_json(study: CostStudy) -> dict[str, object]:
    """The result as plain data; every figure with value, unit, formula and source."""
    return {
        "kind": "cost_result",
        "schema_version": 1,
        "name": study.name,
        "source": study.source,
        "price_date": study.price_date,
        "reference": study.reference,
        "goal": asdict(study.goal),
        "options": {
            cost.option.name: {
                "title": cost.option.title,
                "figures": {
                    name: as_json(step, with_chain=False) for name, step in cost.figures.items()
                },
                "ratio_to_reference": {
                    name: study.ratio(cost.option.name, name) for name in COST_SUMMARY
                },
                "absences": cost.absences,
            }
            for cost in study.options
        },
        "measurements": [
            asdict(measurement) | {"improvement_over_reference": _improvements(study, index)}
            for index, measurement in enumerate(study.measurements)
        ],
        "claims": [asdict(claim) for claim in study.claims],
        "consolidation": asdict(study.consolidation) if study.consolidation else None,
    }


def _improvements(study: CostStudy, index: int) -> dict[str, float | None]:
    """How many times better the reference is than each other option."""
    measurement = study.measurements[index]
    names = [cost.option.name for cost in study.options if cost.option.name != study.reference]
    return {name: measurement.improvement(name, study.reference) for name in names}
