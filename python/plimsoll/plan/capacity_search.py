"""How many users a storage carries, from one search.

The plan that asks and the sentence that answers.

The plan is an ordinary one, made from a path, a kind of user and a number of minutes: databases
scaled to the free space and to the time there is to prepare them, a search for the highest rate
that keeps the limits, and a measured phase at that rate which is judged like any other. Users
follow from the judged database IOPS with the published headroom.

Limits: minutes are no qualification. What was not tested is part of the answer.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from plimsoll import settings
from plimsoll.documents.capacity import Capacity
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import AnySummary
from plimsoll.documents.verdict import Verdict
from plimsoll.host.probe import describe
from plimsoll.plan.load import GUIDANCE, profile_iops
from plimsoll.sizing.guidance import editions

SCHEMA_VERSION: Literal[1] = 1
MIB = 1024 * 1024
#: Shares of the minutes: the rest is for opening, warming, settling and verifying.
PREPARE_SHARE, SEARCH_SHARE, MEASURE_SHARE = 0.15, 0.55, 0.2
#: A rate that holds for less than this may be a burst: however few the minutes, the answer is
#: measured for so long.
CONFIRM_S_MIN = 60.0
#: A search doubles or halves a few times, bisects, and tries what it found once more for longer:
#: about so many steps.
STEPS = 16
#: Only to choose a size that can be prepared in its share of the time; a storage that is slower
#: takes longer.
PREPARE_MIB_PER_S = 150
#: With room for growth less than the tenth of the free space that is taken without asking.
FREE_SPACE_SHARE = 0.07
SIZE_MIB_MIN, SIZE_MIB_MAX = 256, 64 * 1024
#: The published runs had a cache of a four-thousandth of the database; a twentieth still lets most
#: reads miss.
CACHE_SHARE_MAX = 1 / 20


def database_size_mib(path: Path, minutes: float) -> int:
    """The largest database that leaves most of the free space alone and can be prepared in its
    share of the time.
    """
    free_mib = describe(path).free_bytes / MIB
    by_time = minutes * 60 * PREPARE_SHARE * PREPARE_MIB_PER_S
    return int(min(max(min(free_mib * FREE_SPACE_SHARE, by_time), SIZE_MIB_MIN), SIZE_MIB_MAX))


def capacity_options(
    path: Path,
    minutes: float,
    edition: str,
    size_mib: int,
    backend: str = "engine",
    io_method: str = "auto",
) -> dict[str, object]:
    """The plan of a capacity search, as options for `plimsoll.plan`."""
    seconds = minutes * 60
    step_s = seconds * SEARCH_SHARE / STEPS
    cache_mib = settings.editions()[edition]["cache_mib_max"]
    load = {"search": "max", "step_s": max(1.0, step_s * 0.75), "settle_s": step_s * 0.25}
    return {
        "name": "capacity",
        "io_method": io_method,
        "target": [{"name": "target", "path": str(path)}],
        "instance": [
            {
                "name": "capacity",
                "edition": edition,
                "backend": backend,
                "database_size_mib": size_mib,
                "cache_mib_max": max(8, min(cache_mib, int(size_mib * CACHE_SHARE_MAX))),
            }
        ],
        "workload": [{"name": "mix", "load": load}],
        "phase": [
            {"kind": "prepare"},
            {"kind": "warm_up"},
            {"kind": "search", "duration_s": seconds * SEARCH_SHARE},
            {"kind": "measure", "duration_s": max(CONFIRM_S_MIN, seconds * MEASURE_SHARE)},
            {"kind": "stop"},
            {"kind": "checksum"},
        ],
    }


def answer(
    plan: Plan, summary: AnySummary, verdict: Verdict, users: str, iops_per_user: float
) -> Capacity:
    """What the search found, in users.

    Args:
        plan: the completed plan.
        summary: with one search.
        verdict: of the measured phase.
        users: what kind of user.
        iops_per_user: database I/O of one of them, without headroom.
    """
    headroom = headroom_factor(plan.judgement.editions[0])
    found = summary.load.searches[0] if summary.load and summary.load.searches else None
    passed = found.passed_iops if found else None
    limited_by = found.limited_by if found else None
    # What a burst carries for seconds carries no users.
    judged = summary.sustained_iops if verdict.result == "pass" else None
    iops = min(passed, judged) if passed is not None and judged is not None else judged
    ours = ("generator", "sessions_max", "page_fault_stalls")
    ceilings = stated_ceilings(plan)
    if ceilings and limited_by in ("throughput", *ours):
        # Held back on purpose, transactions arrive faster than they may be carried out, and
        # whatever waits for them looks slow.
        limited_by = "ceiling"
    at_least = found is not None and (
        found.failed_per_s is None or limited_by in ours or bool(ceilings)
    )
    each = iops_per_user * headroom
    # A rate that failed by the load generator says nothing of the storage above it.
    by_generator = limited_by == "generator"
    width = None
    if found and iops and found.failed_per_s and found.passed_per_s and not by_generator:
        width = found.failed_per_s / found.passed_per_s - 1
    return Capacity(
        schema_version=SCHEMA_VERSION,
        users=rounded_down(iops / each) if iops is not None else None,
        kind_of_user=users,
        at_least=at_least,
        database_iops=iops,
        iops_per_user=iops_per_user,
        headroom_factor=headroom,
        first_limit=limited_by,
        failed_iops_above_share=width,
        confidence_percent=None,
        confirmed=bool(found and found.confirmed),
        result="inconclusive" if by_generator and verdict.result == "pass" else verdict.result,
        reasons=verdict.reasons,
        not_tested=not_tested(plan, summary, verdict),
    )


def stated_ceilings(plan: Plan) -> list[str]:
    """What a run is not allowed to exceed, in words: `200 reads and writes per second`."""
    stated = (
        (plan.run.max_iops, "reads and writes per second"),
        (plan.run.max_mib_per_s, "MiB per second"),
    )
    return [f"{limit:g} {unit}" for limit, unit in stated if limit]


def headroom_factor(edition: str) -> float:
    """The room that published sizings leave above what users make.

    1.2 where the edition says nothing.
    """
    return float(editions()[GUIDANCE.get(edition, "exchange_2010")].number("iops_headroom_factor"))


def rounded_down(count: float) -> int:
    """Two figures are what a search of minutes can tell, and never more than was found.

    >>> [rounded_down(count) for count in (1927.0, 42.9, 7.5)]
    [1900, 42, 7]
    """
    if count < 10:
        return int(count)
    unit = 10 ** (math.floor(math.log10(count)) - 1)
    return int(count // unit * unit)


def user_iops(users: str, edition: str, stated: float | None) -> float:
    """Database I/O of one user: as stated, or of the profile of that name."""
    return stated if stated is not None else profile_iops(users, edition)


def not_tested(plan: Plan, summary: AnySummary, verdict: Verdict) -> list[str]:
    """What the number does not say, beside what keeps the run from being a qualification."""
    size, seconds = plan.run.stored_bytes(), summary.window.seconds or 0.0
    return [
        f"more than {seconds / 60:.3g} minutes at this rate: bursts of caches and of cloud volumes "
        f"may last longer",
        f"a store of the real size: {size / 1024**3:.3g} GiB were used, so seeks were short and "
        f"tiers may have held all of it",
        "backup, recovery, rebuilds and failures under load",
        "several databases or hosts at once",
        *(
            f"more than the ceiling of {ceiling} that was asked for"
            for ceiling in stated_ceilings(plan)
        ),
        *verdict.not_qualifying_because,
    ]


def limit_in_words(name: str | None) -> str:
    """What was exceeded first, for people.

    >>> limit_in_words("sessions_max")
    'the pool of sessions'
    """
    titles = {check["name"]: check["title"] for check in settings.limits()["check"]}
    words = {
        None: "none was met",
        "generator": "the load generator itself, not the storage",
        "sessions_max": "the pool of sessions",
        "ceiling": "the ceiling that was asked for, not the storage",
        "throughput": "transactions were completed more slowly than they arrived",
    }
    title = titles.get(name or "")
    return words.get(name, str(name)) if title is None else title[0].lower() + title[1:]


def in_words(found: Capacity) -> list[str]:
    """The answer as lines."""
    limits = {check["name"]: check["limit"]["strict"] for check in settings.limits()["check"]}
    read_ms = limits["database_read_latency_mean"]
    if found.users is None:
        lines = [
            f"no number of {found.kind_of_user} users can be stated: {'; '.join(found.reasons)}"
        ]
    else:
        about = "at least" if found.at_least else "about"
        word = "inconclusive: " if found.result == "inconclusive" else ""
        lines = [
            f"{word}carries {about} {found.users:,} {found.kind_of_user} users at {read_ms:g} ms "
            f"({found.database_iops or 0:.0f} database IOPS; {found.iops_per_user:g} for each user "
            f"and "
            f"{found.headroom_factor - 1:.0%} headroom)"
        ]
    if (bracket := found.failed_iops_above_share) is not None:
        lines.append(
            f"bracket: {found.database_iops or 0:.0f} database IOPS pass; the next rate, "
            f"{bracket:.1%} higher, did not pass"
        )
    lines.append(f"first limit: {limit_in_words(found.first_limit)}")
    if found.users is not None and found.first_limit != "generator":
        lines.append(
            "confidence: none is stated, because each rate was looked at until it was decided"
            + (
                ""
                if found.confirmed
                else "; the time was over before the rate could be tried for longer"
            )
        )
    lines.append("not tested:")
    lines += [f"  - {item}" for item in found.not_tested]
    return lines
