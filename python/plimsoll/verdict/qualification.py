"""What keeps a run from being a qualification, however good its figures are.

A rehearsal is judged by the same limits. It only must not be quoted as if it were the published kind of test: two hours,
databases of the designed size that no cache holds, the storage driven as intended, and nothing left unseen.
"""

from __future__ import annotations

from typing import Any

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.documents.summary import Summary
from plimsoll.plan.fill_level import far_below_design


def obstacles(plan: Plan, summary: Summary, environment: dict[str, Any]) -> list[str]:
    """Every reason why a run is no qualification, in sentences."""
    if plan.judgement.modelled:
        return ["every figure is MODELLED: no storage was touched"]
    return [
        *_too_short(plan, summary),
        *_gaps(summary),
        *_no_counters(plan, summary),
        *_may_fit_a_cache(plan, environment),
        *far_below_design(plan, environment.get("targets", [])),
        *_not_the_real_thing(plan, summary),
        *(f"I/O: {remark}" for remark in summary.io.remarks),
        *_unseen(summary),
        *warnings_of(summary),
        *environment["warnings"],
    ]


def warnings_of(summary: Summary) -> list[str]:
    """What the measurements themselves say against being taken for the storage's, in sentences."""
    step = summary.plateaus
    conditioning = summary.conditioning
    unsteady = conditioning and conditioning.precondition and not conditioning.precondition.is_steady
    return [
        *([conditioning.text] if unsteady and conditioning and conditioning.text else []),
        *([step.text] if step.kind != "none" else []),
        *(text for row in summary.device_view for text in row.disagreements),
    ]


def _too_short(plan: Plan, summary: Summary) -> list[str]:
    test = plan.judgement.test
    if test == "recovery":
        return _too_few_logs(summary)
    seconds, wanted = summary.window.seconds, settings.QUALIFYING_S[test]
    if seconds >= wanted:
        return []
    what = "a qualification" if test == "performance" else f"a qualification by the {test} test"
    return [f"{seconds:.0f} s were measured; {what} takes {wanted // 3600} hours"]


def _no_counters(plan: Plan, summary: Summary) -> list[str]:
    """A stress test is about errors, so who could not look must say so."""
    counted = summary.device_errors
    if plan.judgement.test != "stress" or (counted and counted.readable):
        return []
    return [
        "no device or file system under test has error counters that can be read, so errors that were repeated are not seen"
    ]


def _gaps(summary: Summary) -> list[str]:
    """A gap speaks against a run whose measuring it cut, unless what came after it is long enough by itself."""
    cut = [gap for gap in summary.gaps if gap.phase_seconds_before]
    if not cut or summary.window.seconds >= settings.QUALIFYING_DURATION_S:
        return []
    return [
        f"the run was cut off for {gap.seconds:.0f} s during {gap.phase}; {gap.phase_seconds_before:.0f} s before the gap "
        "are not judged"
        for gap in cut
    ]


def _too_few_logs(summary: Summary) -> list[str]:
    fewest = min((found.logs_count for found in summary.recoveries), default=0)
    if fewest >= settings.RECOVERY_LOGS:
        return []
    return [f"{fewest:.0f} logs were replayed; a qualification by the recovery test takes {settings.RECOVERY_LOGS}"]


def _size(instance: InstanceSpec) -> int:
    return sum(int(database.size_bytes) for database in instance.databases)


def _may_fit_a_cache(plan: Plan, environment: dict[str, Any]) -> list[str]:
    found = []
    for instance in plan.run.instances:
        size, cache = _size(instance), instance.cache_bytes_max
        if cache and size < settings.QUALIFYING_CACHE_MULTIPLE * cache:
            found.append(f"the databases of {instance.name} are only {size / cache:.1f} times its cache")
    memory_kib = environment["machine"]["memory_kib"]
    total = sum(_size(instance) for instance in plan.run.instances)
    if memory_kib and total < memory_kib * 1024:
        found.append("all databases together are smaller than this machine's memory; the storage's cache may hold them")
    return found


def _not_the_real_thing(plan: Plan, summary: Summary) -> list[str]:
    found = [
        f"instance {instance.name} is raw files, not a transactional engine"
        for instance in plan.run.instances
        if instance.backend != "engine"
    ]
    if summary.debug_build:
        found.append("this is a debug build of Plimsoll, which measures itself")
    if summary.virtual_time:
        found.append("time was simulated")
    return found


def _unseen(summary: Summary) -> list[str]:
    log = summary.kernel_log
    if log and log.readable:
        return []
    why = log.reason if log else "this run has no record of it"
    return [f"the kernel log was not readable, so storage errors in it would not be seen: {why}"]
