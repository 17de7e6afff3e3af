"""Loads whose rate changes while it is measured: stages that are written out, or a day.

    load = { transactions_per_s = 400, stages = [{ rate_percent = 50, for_s = 600 }, ...] }
    load = { users = 1000, profile = "heavy", day_curve = "office", hour_s = 60 }

Each stage is a share of what the load asks for. They follow one another in every phase of kind
`measure`, and begin anew when they have ended; in any other phase all of it arrives.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.inputs.schema import Collector, Field, Given, Number, Tables, Text

SECONDS_PER_HOUR = 3600.0
STAGES_MAX = 1000
#: Fewer samples of a stage say nothing of it.
SAMPLES_MIN = 3
STAGE_FIELDS = {
    "rate_percent": Field(
        Number(0.1, 1000), required=True, meaning="share of what the load asks for"
    ),
    "for_s": Field(Number(1, 604_800), required=True, meaning="how long it lasts"),
}
#: Keys of a load that arrives by a schedule.
STAGE_KEYS = ("stages", "day_curve", "hour_s")
LOAD_FIELDS = {
    "stages": Field(
        Tables(STAGE_FIELDS, 1, count_maximum=STAGES_MAX),
        meaning="shares of the rate while it is measured, one after the other; all if left out",
    ),
    "day_curve": Field(
        Text(tuple(settings.day_curves())),
        meaning="24 stages, one for each hour of a day, instead of stages",
    ),
    "hour_s": Field(
        Number(1, SECONDS_PER_HOUR), meaning="how long an hour of the day lasts; 3600 if left out"
    ),
}


def stages_of(
    stated: Given, sample_interval_ms: int, path: tuple[str | int, ...], collector: Collector
) -> list[spec.LoadStage]:
    """The stages of a load; none where all of its rate arrives.

    Args:
        stated: the checked keys of the load that are there.
        sample_interval_ms: how often the run takes a sample.
        path: where the load stands, for mistakes.
        collector: takes the mistakes.
    """
    if "stages" in stated and "day_curve" in stated:
        collector.add(path, "says stages and day_curve", "write one of them")
    if "hour_s" in stated and "day_curve" not in stated:
        collector.add((*path, "hour_s"), "means nothing without day_curve", "remove it")
    if "day_curve" in stated:
        hour_s = float(stated.get("hour_s", SECONDS_PER_HOUR))
        curve = settings.day_curves()[stated["day_curve"]]["percent"]
        found = [spec.LoadStage(rate_percent=float(share), for_s=hour_s) for share in curve]
    else:
        found = [
            spec.LoadStage(rate_percent=float(stage["rate_percent"]), for_s=float(stage["for_s"]))
            for stage in stated.get("stages", ())
            # What is missing has been told.
            if None not in stage.values()
        ]
    shortest = SAMPLES_MIN * sample_interval_ms / 1000
    if any(stage.for_s < shortest for stage in found):
        collector.add(
            (*path, "hour_s" if "day_curve" in stated else "stages"),
            f"has a stage shorter than {SAMPLES_MIN} samples, {shortest:g} s",
            "make it longer, or lower sample_interval_ms",
        )
    return found
