"""Why a rate that was measured may not be what the storage makes.

Each a sentence that stands beside the verdict, wherever it is shown.

None of them changes a result. A figure within its limits is true; only what it is quoted for may be
wrong.
"""

from __future__ import annotations

from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import SearchFound, Summary
from plimsoll.results.servers import summary_in_words
from plimsoll.verdict.confounders import generator_limited

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
        *(text for search in summary.load.searches for text in _of_search(search)),
    ]


def ceilings(plan: Plan) -> list[str]:
    """What the run was not allowed to exceed."""
    run = plan.run
    return [
        *([f"{run.max_iops:g} reads and writes per second"] if run.max_iops else []),
        *([f"{run.max_mib_per_s:g} MiB per second"] if run.max_mib_per_s else []),
    ]


def _of_search(search: SearchFound) -> list[str]:
    name = f"the search for the highest rate of {search.workload}"
    if search.end == "time_over":
        found = [f"{name} was cut short by its time: the storage may carry more than it found"]
    elif search.end == "narrow" and not search.confirmed:
        found = [f"{name} was cut short: the rate it found was not tried for longer"]
    else:
        found = []
    if search.limited_by in OURS:
        found.append(
            f"{name} ended at {OURS[search.limited_by]}, not at the storage, which carries at "
            f"least this rate"
        )
    return found
