"""Whether a failed check may be the load generator's own doing.

Only checks that failed are doubted: a figure within its limits is true however busy the generator
was, because its delays can only make figures worse. Errors, hung I/O and damaged pages are never
doubted. Where the block layer itself counted more than the limit, no delay of the generator can
have made the difference. A delay excuses a check only where its largest possible share, taken away
whole, brings the figure within the limit (`plimsoll.verdict.excuses`); the arithmetic is said. From
which size on a delay counts at all is data (`data/doubts.toml`).
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.figures import DatabaseFigures, InstanceFigures
from plimsoll.documents.latency_split import TimeSplit
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Doubt
from plimsoll.verdict.excuses import without_delay, without_share

#: Of what was due, the share that was done: a late generator lowers it as it lowers a rate.
SHARES_DONE = ("homes_achieved", "store_carried", "mail_achieved")
#: Where others use the device too, the block layer's mean is not ours.
OTHERS_SHARE_MAX = 0.1
#: Means below so much of the limit of reads keep no buffer from anybody.
AT_ONCE = 0.05
#: What delays everything the generator does, by the names of `data/doubts.toml`.
SLOW_GENERATOR = ("executor_busy", "executor_wait", "cpu_throttled", "cpu_stolen")


def doubts_of(check: Check, summary: Summary) -> list[Doubt]:
    """Why a failed check may be the generator's fault: name and text of each doubt.

    Empty when it cannot be.
    """
    kind = _kind(check)
    if kind is None:
        return []
    if kind == "stalls":
        return _idle_device(check, summary)
    split = split_of(check, summary)
    figures = _figures(split, summary)
    if kind == "latency" and _device_alone_fails(check, split):
        return []
    found = [
        _with_arithmetic(_named(name, figures[name]), excused)
        for name in SLOW_GENERATOR
        if figures.get(name, 0.0) > rule(name)["limit"]
        and (excused := without_share(check, kind, figures[name]))
    ]
    found += [*_stood_still(check, kind, summary), *_out_of_reach(check, kind, summary)]
    judged_ms = _judged_ms(check, summary)
    # Disk latency does not count from the intended start, so arrivals do not belong to it. What
    # arrives late lowers a rate by its share of the time that was measured.
    arrivals_judged_ms = {"response": judged_ms, "rate": 1000 * summary.window.seconds}.get(kind)
    for name, judged in (("reap_gap", judged_ms), ("arrival_lag", arrivals_judged_ms)):
        delay_ms: float | None = getattr(summary.generator, f"{name}_ms_p99")
        if judged and delay_ms is not None and delay_ms > rule(name)["limit"] * judged:
            excused = without_delay(check, kind, delay_ms, judged)
            found += [_with_arithmetic(_named(name, delay_ms, judged), excused)] if excused else []
    return found


def _with_arithmetic(found: Doubt, arithmetic: str) -> Doubt:
    return found.replace(text=f"{found.text}; {arithmetic}")


def rule(name: str) -> settings.DoubtRule:
    """One row of the data."""
    return next(row for row in settings.doubts() if row["name"] == name)


def doubt(name: str, value: float, judged_ms: float = 0.0) -> str:
    """The sentence of a doubt."""
    row = rule(name)
    text: str = row["text"].format(value=value, limit=row["limit"], judged=judged_ms)
    return text


def generator_limited(summary: Summary) -> list[str]:
    """Why the rate of a run may be the generator's limit and not the storage's.

    For a rate that is quoted as a maximum.
    """
    return [found.text for found, _ in withheld(summary) if found.name in SLOW_GENERATOR]


def withheld(summary: Summary) -> list[tuple[Doubt, float]]:
    """What kept the load generator of a run from its work, with the share of the time it took."""
    figures, gaps = _machine_means(summary), summary.clock_gaps
    found = [
        (_named(name, figures[name]), figures[name])
        for name in SLOW_GENERATOR
        if figures.get(name, 0.0) > rule(name)["limit"]
    ]
    if gaps is not None and summary.window.seconds:
        found.append((_named("clock_gap", gaps.seconds), gaps.seconds / summary.window.seconds))
    return found


def _kind(check: Check) -> str | None:
    """What a delay of the generator would do to a figure.

    Lengthen a latency or a response, or lower a rate.
    """
    if check.name == "page_fault_stalls":
        return "stalls"
    if check.name in SHARES_DONE:
        return "rate"
    metric = check.metric
    if "response_ms" in metric:
        return "response"
    if check.statistic == "mail":
        return None
    if check.unit == "ms" and not metric.startswith(("reap_gap", "arrival_lag")):
        return "latency"
    throughput = metric in ("database_iops", "transactions_per_s", "iops") or metric.endswith(
        "_per_s"
    )
    return "rate" if throughput and not metric.startswith("page_fault_stalls") else None


def split_of(check: Check, summary: Summary) -> TimeSplit | None:
    """Where the time of a judged latency went, over the time it was judged over."""
    window = "worst_sample" if check.statistic == "sample_mean_max" else "whole"
    metric = check.metric.split("_latency_ms")[0]
    for split in summary.time_splits:
        if (split.scope, split.metric, split.window) == (check.scope, metric, window):
            return split
    return None


def _machine_means(summary: Summary) -> dict[str, float]:
    machine = {name: levels.mean for name, levels in summary.machine.items()}
    busy = summary.generator.executor_busy_mean
    return machine | ({} if busy is None else {"executor_busy": busy})


def _figures(split: TimeSplit | None, summary: Summary) -> dict[str, float]:
    """What the generator and its machine did while a check was measured, by name."""
    found = _machine_means(summary)
    for name in SLOW_GENERATOR:
        value = split.level(name) if split else None
        if value is not None:
            found[name] = value
    return found


def _judged_ms(check: Check, summary: Summary) -> float | None:
    """The mean latency that a delay is compared with."""
    if check.statistic == "mail":
        return check.measured if check.unit == "ms" else None
    if check.statistic in ("mean", "sample_mean_max") and check.unit == "ms":
        return check.measured
    metric = check.metric
    if "response_ms" in metric:
        operation = metric.split("_response_ms")[0]
        means = [row.response_ms_mean for row in summary.operations if row.operation == operation]
        return means[0] if means else None
    places: list[DatabaseFigures | InstanceFigures] = [*summary.databases, *summary.instances]
    for name in (
        "database_read",
        "database_write",
        "maintenance",
        "log_write",
        "log_read",
        "log_replication",
    ):
        if metric.startswith(f"{name}_latency"):
            found = [
                item.transfers(name)
                for item in places
                if item.name == check.scope and hasattr(item, name)
            ]
            return found[0].latency_ms_mean if found else None
        if metric.startswith(f"total_{name}_latency"):
            return summary.total.transfers(name).latency_ms_mean
    # A rate: the mean read, which is what closed sessions wait for most.
    return summary.total.database_read.latency_ms_mean


def _stood_still(check: Check, kind: str, summary: Summary) -> list[Doubt]:
    """Whether times in which the run itself stood still can make up what a figure is beyond its
    limit.

    What was under way in a gap is longer by the gap. By Little's law that adds the gap's share of
    the time to a mean, and takes it from a rate. A single transfer is longer by one gap.
    """
    gaps, measured = summary.clock_gaps, check.measured
    if gaps is None or not measured or not summary.window.seconds:
        return []
    if kind == "rate":
        share, beyond = gaps.seconds / summary.window.seconds, 1 - measured / check.limit
    elif check.statistic == "mean" or check.metric.endswith("_mean"):
        share, beyond = gaps.seconds / summary.window.seconds, 1 - check.limit / measured
    elif check.statistic == "sample_mean_max":
        sample_s = min(settings.limits()["sample_interval_s"], summary.window.seconds)
        share, beyond = gaps.longest_s / sample_s, 1 - check.limit / measured
    else:
        share, beyond = 1000 * gaps.longest_s, measured - check.limit
    return (
        [_named("clock_gap", gaps.seconds)] if share >= beyond * rule("clock_gap")["limit"] else []
    )


def _out_of_reach(check: Check, kind: str, summary: Summary) -> list[Doubt]:
    """A rate that the generator would not reach with all of its time, on storage that answers at
    once, says nothing against a storage that transactions hardly wait for.
    """
    busy, measured = summary.generator.executor_busy_mean, check.measured
    if kind != "rate" or check.name in SHARES_DONE or not busy or not measured:
        return []
    ceiling, share = measured / min(busy, 1.0), _own_share(summary)
    if ceiling >= check.limit or share <= rule("out_of_reach")["limit"]:
        return []
    found = Doubt(name="out_of_reach", text=doubt("out_of_reach", share))
    arithmetic = (
        f"at work {busy:.0%} of the time it made {measured:,.0f} a second, so with all of it at "
        f"most {ceiling:,.0f} of {check.limit:,.0f}"
    )
    return [_with_arithmetic(found, arithmetic)]


def _own_share(summary: Summary) -> float:
    """The share of a transaction's time in which it waited for no I/O, over the whole run."""
    for split in summary.transaction_splits:
        parts = split.split_ms
        if split.scope == "run":
            waits = (parts.log_flush, parts.submission, parts.kernel_queue, parts.device)
            own = parts.engine or 0.0
            whole = own + sum(part or 0.0 for part in waits)
            return own / whole if whole else 0.0
    return 0.0


def _device_alone_fails(check: Check, split: TimeSplit | None) -> bool:
    """Whether the block layer counted more than the limit, of I/O that was ours."""
    device = split.device if split else None
    if (
        not device
        or device.others_share > OTHERS_SHARE_MAX
        or check.statistic not in ("mean", "sample_mean_max")
    ):
        return False
    counted = (
        device.read_latency_ms_mean
        if check.metric == "database_read"
        else device.write_latency_ms_mean
    )
    return counted is not None and counted > check.limit


def _named(name: str, value: float, judged_ms: float = 0.0) -> Doubt:
    return Doubt(name=name, text=doubt(name, value, judged_ms))


def _idle_device(check: Check, summary: Summary) -> list[Doubt]:
    """Stalls while the device under the databases had time to spare are the cache's.

    Where no block layer counts, as under memory and shares, our own I/O tells as much.
    """
    counted = [
        device.busy
        for device in summary.devices
        if (device.instance, device.role) == (check.scope, "databases")
    ]
    busy = counted[0] if counted else _under_way(check.scope, summary) or 1.0
    if busy < rule("page_fault_stalls")["limit"]:
        return [_named("page_fault_stalls", busy)]
    return [] if counted else _answered_at_once(check.scope, summary)


def _answered_at_once(instance: str, summary: Summary) -> list[Doubt]:
    """Where no block layer counts, several transfers may be under way on storage that is idle, as
    memory is.

    A fault waits for as long as a write takes to free a buffer. Where that is a small part of what
    users may wait for, the cache had too few buffers.
    """
    means_ms = [
        figures.latency_ms_mean
        for database in summary.databases
        if database.instance == instance
        for figures in (database.database_read, database.database_write)
        if figures.latency_ms_mean is not None
    ]
    slowest_ms = max(means_ms, default=0.0)
    limit_ms = next(
        row["limit"]["strict"]
        for row in settings.limits()["check"]
        if row["name"] == "database_read_latency_mean"
    )
    if not means_ms or slowest_ms > AT_ONCE * limit_ms:
        return []
    text = (
        f"page faults stalled although reads and writes took no more than {slowest_ms:.2g} ms on "
        f"average, of {limit_ms:g} ms allowed: the cache, not the storage, was the limit"
    )
    return [Doubt(name="page_fault_stalls", text=text)]


def _under_way(instance: str, summary: Summary) -> float:
    """The mean I/O under way on the databases of an instance, by Little's law.

    No storage works on it for a larger share of the time.
    """
    return sum(
        figures.per_s * (figures.latency_ms_mean or 0.0) / 1000
        for database in summary.databases
        if database.instance == instance
        for figures in (
            database.database_read,
            database.database_write,
            database.maintenance,
        )
    )


def held_back(check: Check, plan: Plan, summary: Summary) -> list[Doubt]:
    """A rate at the ceiling that the run itself had to keep says nothing against the storage."""
    if _kind(check) != "rate":
        return []
    total, run = summary.total, plan.run
    parts = (
        total.database_read_with_maintenance,
        total.database_write,
        total.log_write,
        total.log_read,
    )
    used = max(
        sum(part.per_s for part in parts) / run.max_iops if run.max_iops else 0.0,
        sum(part.bytes_per_s for part in parts) / 2**20 / run.max_mib_per_s
        if run.max_mib_per_s
        else 0.0,
    )
    return [_named("ceiling", used)] if used > rule("ceiling")["limit"] else []


def more_than_planned(check: Check, summary: Summary) -> list[Doubt]:
    """A time that is too long under more load than its window allows may be short enough under the
    load that was planned. Errors and damage are no matter of load.
    """
    if check.unit != "ms":
        return []
    above = [
        item.max / item.most
        for item in summary.load_windows
        if item.max is not None and item.max > item.most > 0
    ]
    return [_named("above_window", max(above))] if above else []
