"""What keeps a run from being a qualification, however good its figures are.

A rehearsal is judged by the same limits. It only must not be quoted as if it were the published
kind of test: two hours, databases of the designed size that no cache holds, the storage driven as
intended, and nothing left unseen.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.environment import Environment, StorageFacts
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.documents.summary import Summary
from plimsoll.plan.fill_level import far_below_design
from plimsoll.results.digits import shown
from plimsoll.verdict.stages import stages_missing
from plimsoll.workloads.mail.fields import is_storage

#: How the beginnings of these sentences read: of the disk's remark, and of the probe's warning.
BUFFERED = "buffered I/O"
DIRECT_NOT_KNOWN = "whether direct I/O works is not known"
#: Ways of doing I/O on real files; each opens them with direct I/O first.
DIRECT_METHODS = ("io_uring", "libaio", "threads")
#: Classes of storage (`data/storage_classes.toml`) on which nothing can be qualified.
NOT_QUALIFYING_CLASSES = ("memory", "ram_disk", "unknown")
#: So many times a limit is no chance any more but a stall.
TAIL_FACTOR = 10
#: More of the time than this without an answer is said.
UNANSWERED_SHARE = 0.01


def obstacles(plan: Plan, summary: Summary, environment: Environment) -> list[str]:
    """Every reason why a run is no qualification, in sentences; the gravest comes first."""
    if plan.judgement.modelled:
        return ["every figure is MODELLED: no storage was touched", *_fit_our_cache(plan)]
    return [
        *_not_known_storage(environment["targets"]),
        *_too_short(plan, summary),
        *_gaps(summary),
        *_no_counters(plan, summary),
        *_may_fit_a_cache(plan, environment),
        *far_below_design(plan, environment.get("targets", [])),
        *_not_the_real_thing(plan, summary),
        *(f"I/O: {remark}" for remark in summary.io.remarks),
        *_unseen(summary),
        *warnings_of(summary),
        *_of_the_environment(environment["warnings"], summary),
    ]


def through_page_cache(summary: Summary) -> bool:
    """Whether reads and writes could be answered by this machine's memory."""
    return any(remark.startswith(BUFFERED) for remark in summary.io.remarks)


def not_tested(plan: Plan) -> list[str]:
    """What no run under load tests, said of every one.

    Figures of a storage that drops its flushes are the best there are.
    """
    if plan.judgement.modelled:
        return []
    return [
        "whether a flush reaches stable storage was not tested: storage that drops flushes is fast "
        "and loses what it "
        "acknowledged; `plimsoll powercut` and `plimsoll audit` test it"
    ]


def _not_known_storage(targets: Sequence[StorageFacts]) -> list[str]:
    """Storage whose figures say nothing of any drive, or of nobody knows what."""
    found = []
    for target in targets:
        known = target.get("storage_class")
        if known and known["class"] in NOT_QUALIFYING_CLASSES:
            found.append(
                f"{target.get('path', 'a target')} is {known['title']}: {known['meaning']}"
            )
    return found


def _of_the_environment(warnings: Sequence[str], summary: Summary) -> list[str]:
    """What the machine was found to be before the run, less what the run itself has answered.

    Before the first database there is no file on which direct I/O could be tried. The run opened
    its databases with it, or remarks that it could not.
    """
    prepared = any(phase.kind == "prepare" and phase.complete for phase in summary.phases)
    answered = prepared and summary.io.method in DIRECT_METHODS
    return [text for text in warnings if not (answered and text.startswith(DIRECT_NOT_KNOWN))]


def warnings_of(summary: Summary) -> list[str]:
    """What the measurements themselves say against being taken for the storage's, in sentences."""
    step = summary.plateaus
    conditioning = summary.conditioning
    unsteady = (
        conditioning and conditioning.precondition and not conditioning.precondition.is_steady
    )
    return [
        *([conditioning.text] if unsteady and conditioning and conditioning.text else []),
        *([step.text] if step.kind != "none" else []),
        *(text for row in summary.device_view for text in row.disagreements),
        *_stood_still(summary),
        *_tails(summary),
        *_unfinished(summary),
        *_rising(summary),
        *stages_missing(summary),
        *_unanswered(summary),
    ]


def _tails(summary: Summary) -> list[str]:
    """Single transfers far beyond what the limits allow on average: users wait for each of them.

    The 99.9th percentile is held against the limit of means, the longest against the limit of a
    quarter minute's mean, each tenfold. Where both of one place are beyond, one sentence says so.
    """
    limits = _limits()
    found = []
    for metric, places in (("database_read", summary.databases), ("log_write", summary.instances)):
        for place in places:
            figures = place.transfers(metric)
            tail, longest = figures.latency_ms_p999 or 0.0, figures.latency_ms_max or 0.0
            far = tail > TAIL_FACTOR * limits[metric, "mean"]
            if far or longest > TAIL_FACTOR * limits[metric, "sample_mean_max"]:
                what = metric.replace("_", " ") + "s"
                found.append(
                    f"{what} of {place.name} stalled: one in a thousand took {shown(tail, 'ms')} "
                    f"or more, the longest "
                    f"{shown(longest, 'ms')}"
                )
    return found


def _limits() -> dict[tuple[str, str], float]:
    """The strict limits by metric and statistic."""
    return {
        (rule["metric"], rule["statistic"]): rule["limit"]["strict"]
        for rule in settings.limits()["check"]
    }


def _unfinished(summary: Summary) -> list[str]:
    """I/O that the end of the measured time cut off, held against the limit of the longest.

    A stall that reaches beyond the end leaves nothing in the figures but a shorter time.
    """
    limits = _limits()
    names = {(item.instance, item.database): item.name for item in summary.databases}
    return [
        f"{item.metric.replace('_', ' ')}s of "
        f"{names.get((item.instance, item.database), item.instance)} stalled when the measured "
        f"time ended: the longest took {shown(item.latency_ms_max, 'ms')}, and is in no figure"
        for item in summary.unfinished
        if item.latency_ms_max > TAIL_FACTOR * limits[item.metric, "sample_mean_max"]
    ]


def _rising(summary: Summary) -> list[str]:
    """Latencies that rose throughout and ended beyond the limit of their mean."""
    limits = _limits()
    names = {(item.instance, item.database): item.name for item in summary.databases}
    return [
        f"{item.metric.replace('_', ' ')}s of "
        f"{names.get((item.instance, item.database), item.instance)} became slower and slower: "
        f"{shown(item.first_ms, 'ms')} on average in the first fifth of the measured time, "
        f"{shown(item.last_ms, 'ms')} in the last, beyond the limit of "
        f"{shown(limits[item.metric, 'mean'], 'ms')}"
        for item in summary.rising
        if item.last_ms > limits[item.metric, "mean"]
    ]


def _unanswered(summary: Summary) -> list[str]:
    """Time in which the storage answered nothing although it was asked."""
    still = summary.stand_still
    if still is None or still.share <= UNANSWERED_SHARE:
        return []
    return [
        f"no I/O was completed in {still.seconds:.0f} s of {summary.window.seconds:.0f} s "
        f"({still.share:.1%}) although I/O was "
        f"waiting, {still.longest_s:.0f} s at a time at most"
    ]


def _stood_still(summary: Summary) -> list[str]:
    """A process that was stopped, or a machine that was paused.

    What was under way meanwhile looks as slow as that was long.
    """
    gaps = summary.clock_gaps
    if gaps is None:
        return []
    longest = f", {gaps.longest_s:.1f} s at most at a time" if gaps.count > 1 else ""
    return [
        f"the run itself stood still for {gaps.seconds:.1f} s while it was measured{longest}: its "
        f"process was stopped or its "
        "machine was paused; latencies of that time are not the storage's"
    ]


def _too_short(plan: Plan, summary: Summary) -> list[str]:
    test = plan.judgement.test
    if test == "recovery":
        return _too_few_logs(summary)
    seconds, wanted = summary.window.seconds, settings.QUALIFYING_S[test]
    if seconds >= wanted:
        return []
    what = "a qualification" if test == "performance" else f"a qualification by the {test} test"
    takes = f"{wanted // 3600} hours" if wanted >= 3600 else f"{wanted // 60} minutes"
    return [f"{seconds:.0f} s were measured; {what} takes {takes}"]


def _no_counters(plan: Plan, summary: Summary) -> list[str]:
    """A stress test is about errors, so who could not look must say so."""
    counted = summary.device_errors
    if plan.judgement.test != "stress" or (counted and counted.readable):
        return []
    return [
        "no device or file system under test has error counters that can be read, so errors that "
        "were repeated are not seen"
    ]


def _gaps(summary: Summary) -> list[str]:
    """A gap speaks against a run whose measuring it cut, unless what came after it is long enough
    by itself.
    """
    cut = [gap for gap in summary.gaps if gap.phase_seconds_before]
    if not cut or summary.window.seconds >= settings.QUALIFYING_DURATION_S:
        return []
    return [
        f"the run was cut off for {gap.seconds:.0f} s during {gap.phase}; "
        f"{gap.phase_seconds_before:.0f} s before the gap "
        "are not judged"
        for gap in cut
    ]


def _too_few_logs(summary: Summary) -> list[str]:
    fewest = min((found.logs_count for found in summary.recoveries), default=0)
    if fewest >= settings.RECOVERY_LOGS:
        return []
    return [
        f"{fewest:.0f} logs were replayed; a qualification by the recovery test takes "
        f"{settings.RECOVERY_LOGS}"
    ]


def _size(instance: InstanceSpec) -> int:
    return sum(int(database.size_bytes) for database in instance.databases)


def _fit_our_cache(plan: Plan) -> list[str]:
    found = []
    for instance in plan.run.engine_instances:
        size, cache = _size(instance), instance.cache_bytes_max
        if cache and size < settings.QUALIFYING_CACHE_MULTIPLE * cache:
            found.append(
                f"the databases of {instance.name} are only {size / cache:.1f} times its cache"
            )
    return found


def _may_fit_a_cache(plan: Plan, environment: Environment) -> list[str]:
    found = _fit_our_cache(plan)
    memory_kib = environment["machine"]["memory_kib"]
    total = sum(_size(instance) for instance in plan.run.instances)
    if not plan.run.our_instances:
        return _behind_others(plan.run.instances)
    if memory_kib and total < memory_kib * 1024:
        found.append(
            "all databases together are smaller than this machine's memory; the storage's cache "
            "may hold them"
        )
    return found


def _behind_others(instances: Sequence[InstanceSpec]) -> list[str]:
    """What a server, or a library of others, reads its data from, nobody outside of it can see."""
    return [
        f"what {item.name} answers may come out of the memory of its machine: it reads and writes "
        f"through the page cache"
        for item in instances
    ] + [
        f"nothing is known of the storage behind {item.name}: no data_path says where it is "
        f"mounted on this machine"
        for item in instances
        if not is_storage(item.directory)
    ]


def _not_the_real_thing(plan: Plan, summary: Summary) -> list[str]:
    found = [
        f"instance {instance.name} is raw files, not a transactional engine"
        for instance in plan.run.record_instances
        if instance.backend != "engine"
    ]
    if summary.debug_build:
        found.append("this is a debug build of Plimsoll, which measures itself")
    if summary.virtual_time:
        found.append("time was simulated")
    return found


def _unseen(summary: Summary) -> list[str]:
    log = summary.kernel_log
    if log and log.readable and log.reason:
        return [
            f"not all of the kernel log was read, so storage errors in it may be missing: "
            f"{log.reason}"
        ]
    if log and log.readable:
        return []
    why = log.reason if log else "this run has no record of it"
    return [f"the kernel log was not readable, so storage errors in it would not be seen: {why}"]
