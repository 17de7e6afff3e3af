"""Why a rate that was measured may not be what the storage makes.

Each a sentence that stands beside the verdict, wherever it is shown.

None of them changes a result. A figure within its limits is true; only what it is quoted for may be
wrong.
"""

from __future__ import annotations

from plimsoll.documents.drive_health import DriveHealth
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import SearchFound, Summary
from plimsoll.results.answers import looked_for_by
from plimsoll.results.servers import summary_in_words
from plimsoll.verdict.confounders import generator_limited
from plimsoll.verdict.nodes import fit_in_words

#: What ends a search without being the storage.
OURS = {
    "generator": "the load generator itself",
    "sessions_max": "the pool of sessions",
    "page_fault_stalls": "the engine's cache",
}


def cautions(plan: Plan, summary: Summary) -> list[str]:
    """Every reason why the rate of a run may not be the storage's limit."""
    return [
        *(
            f"the rate may be the load generator's limit: {text}"
            for text in generator_limited(summary)
        ),
        *(
            f"the run was held below {ceiling}: the storage may carry more"
            for ceiling in ceilings(plan)
        ),
        *summary_in_words(summary),
        *fit_in_words(summary),
        *(
            f"{drive.disk} slowed down or was warm enough to: {_warmth(drive)}; a cool drive may "
            f"make more"
            for drive in summary.drive_health
            if drive.was_throttled
        ),
        *(text for search in summary.load.searches for text in _of_search(search)),
    ]


def ceilings(plan: Plan) -> list[str]:
    """What the run was not allowed to exceed."""
    run = plan.run
    return [
        *([f"{run.max_iops:g} reads and writes per second"] if run.max_iops else []),
        *([f"{run.max_mib_per_s:g} MiB per second"] if run.max_mib_per_s else []),
    ]


def _warmth(drive: DriveHealth) -> str:
    """How warm a drive was.

    >>> _warmth(DriveHealth(disk="nvme0n1", life_used_percent_before=3, life_used_percent_after=3,
    ...     spare_percent_after=100, written_bytes=0, temperature_c_max=84.0, warm_minutes=7,
    ...     critical_minutes=0, throttled_count=2))
    '84 degrees at most, 7 minutes above its warning temperature, throttled 2 times'
    """
    parts = []
    if drive.temperature_c_max is not None:
        parts.append(f"{drive.temperature_c_max:.0f} degrees at most")
    if drive.warm_minutes:
        parts.append(f"{drive.warm_minutes} minutes above its warning temperature")
    if drive.critical_minutes:
        parts.append(f"{drive.critical_minutes} minutes above its critical temperature")
    if drive.throttled_count:
        parts.append(f"throttled {drive.throttled_count} times")
    return ", ".join(parts)


def _of_search(search: SearchFound) -> list[str]:
    looked_for, level = looked_for_by(search)
    name = f"the search for the {looked_for}"
    if search.end == "time_over":
        found = [f"{name} was cut short by its time: the storage may carry more than it found"]
    elif search.end == "most_tried":
        found = [f"{name} ended at the most that may be tried: the storage may carry more"]
    elif search.end == "narrow" and not search.confirmed:
        found = [f"{name} was cut short: the {level} it found was not tried for longer"]
    else:
        found = []
    if search.limited_by in OURS:
        found.append(
            f"{name} ended at {OURS[search.limited_by]}, not at the storage, which carries at "
            f"least this rate"
        )
    return found
