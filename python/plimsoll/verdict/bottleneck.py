"""The bottleneck of each failed check and of each of the longest stalls.

The first limiting layer and its evidence.

`plimsoll.results.latency_breakdown` says how long each layer took. The one that took most is the
limiting one; among equals the first on the way of an I/O, because what is behind it only sees what
it lets through. Two things the numbers alone would get wrong: while the load generator has no
processor, completed I/O waits for it, and that wait looks like one before the device; and a device
that works for others is slow without being weak.
"""

from __future__ import annotations

from plimsoll.documents.latency_split import (
    DeviceUse,
    LogSplitMs,
    Split,
    SplitMs,
    StallSplit,
    TransactionSplit,
)
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, CheckBottleneck, StallBottleneck
from plimsoll.results.digits import shown
from plimsoll.results.latency_breakdown import LAYERS
from plimsoll.verdict.checks import is_fault
from plimsoll.verdict.confounders import SLOW_GENERATOR, doubt, rule, split_of

#: A device is taken to work for others when this much of what it did was not asked for by the run.
OTHERS_SHARE = 0.25
#: Below this the device had time to spare.
IDLE_BUSY = 0.5
TITLES = {
    "engine": "engine",
    "log_flush": "wait for the log",
    "submission": "submission",
    "kernel_queue": "kernel queue",
    "device": "device",
}
#: What stands behind a layer: `cause` in the verdict, and how it is printed.
CAUSES = {
    "paused": "the run itself stood still",
    "cpu": "the load generator lacks processor time",
    "engine": "the engine itself",
    "cache": "the engine's cache is too small for the rate",
    "log": "the log",
    "submission": "the kernel takes I/O in slowly",
    "queue": "I/O is held back before the device",
    "device": "the device",
    "neighbour": "the device works for others",
    "fault": "the storage is faulty",
}


def bottleneck_of_check(check: Check, summary: Summary) -> CheckBottleneck | None:
    """The limiting layer of a failed check; None where no time is judged, or where
    the run held itself back.
    """
    if is_fault(check):
        return _entry(check, "device", "fault", None, [check.reason])
    if check.name == "page_fault_stalls":
        return _stalls(check, summary)
    if any(doubt.name == "ceiling" for doubt in check.doubts):
        return None
    if stood_still := [doubt.text for doubt in check.doubts if doubt.name == "clock_gap"]:
        return _entry(check, "engine", "paused", split_of(check, summary), stood_still)
    split: Split | None = split_of(check, summary)
    if split is None and (check.unit == "1/s" or "response_ms" in check.metric):
        split = _transactions("run", summary)
    if split is None:
        return None
    layer, cause, evidence = limiting_layer(split)
    if layer == "device" and cause == "device" and check.metric.startswith("log_"):
        cause = "log"
    return _entry(check, layer, cause, split, evidence)


def bottleneck_of_stall(stall: StallSplit) -> StallBottleneck:
    """The limiting layer of one long transaction, with its time."""
    layer, cause, evidence = limiting_layer(stall)
    gap_ms = stall.clock_gap_ms_max or 0.0
    if gap_ms > stall.length_ms / 2:
        layer, cause = "engine", "paused"
        evidence = [
            f"the run itself stood still for {shown(gap_ms, 'ms')} meanwhile: it was stopped, or "
            f"its machine paused"
        ]
    elif layer == "log_flush" and stall.log_split_ms:
        parts = stall.log_split_ms
        within = max(parts.given(), key=lambda part: parts.layer(part) or 0.0)
        most_ms = parts.layer(within)
        if most_ms:
            evidence.append(
                f"{shown(most_ms, 'ms')} of it was {_title(within, parts)} of one log write"
            )
    return StallBottleneck(
        what="stall",
        begun_utc=stall.begun_utc,
        scope=stall.instance,
        operation=stall.operation,
        length_ms=stall.length_ms,
        layer=layer,
        cause=cause,
        text=_text(layer, cause),
        evidence=evidence,
        split_ms=stall.split_ms,
    )


def limiting_layer(split: Split) -> tuple[str, str, list[str]]:
    """The layer that took most of the time, what stands behind it, and the evidence."""
    parts = {layer: split.split_ms.layer(layer) or 0.0 for layer in LAYERS}
    total = sum(parts.values()) or 1.0
    withheld, starved = _starved(split)
    if _explains(withheld, parts["kernel_queue"] / total):
        # Completed I/O that nobody looks at is indistinguishable from I/O that waits before the
        # device.
        parts["engine"] += parts["kernel_queue"]
    layer = max(LAYERS, key=lambda name: parts[name])
    share = parts[layer] / total
    title = (
        "engine, its processor time included"
        if starved and layer == "engine"
        else _title(layer, split.split_ms)
    )
    evidence = [f"{title} took {shown(parts[layer], 'ms')} of {shown(total, 'ms')} ({share:.0%})"]
    device = split.device
    if layer == "engine":
        # The gap is evidence only where it can hold what is to be explained.
        gap_ms = split.reap_gap_ms_max
        late = (
            [f"the load generator did not look for up to {shown(gap_ms, 'ms')}"]
            if gap_ms > parts[layer] / 2
            else []
        )
        return layer, "cpu" if starved or late else "engine", [*evidence, *(starved or late)]
    if layer in ("log_flush", "submission"):
        own = "log" if layer == "log_flush" else "submission"
        return (
            layer,
            "cpu" if _explains(withheld, share) else own,
            [*evidence, *starved, *_of_device(device)],
        )
    evidence += _of_device(device)
    evidence += _of_others(device)
    if device and _works_for_others(device) and not device.servers:
        return layer, "neighbour", evidence
    return layer, "queue" if layer == "kernel_queue" else "device", evidence


def _explains(withheld: float, share: float) -> bool:
    """Whether lost processor time can be what a layer's share of the time is made of.

    It is at least half as much.
    """
    return withheld > 0 and withheld >= share / 2


def _works_for_others(device: DeviceUse) -> bool:
    """Whether others keep the device from the run: an idle device has time for both."""
    return bool(device.others_share >= OTHERS_SHARE and device.busy >= IDLE_BUSY)


def _of_others(device: DeviceUse | None) -> list[str]:
    """What a disk did for others; servers of the plan that work on it are among them."""
    if not device or not _works_for_others(device):
        return []
    share = f"{device.others_share:.0%} of what {device.name} did"
    if not device.servers:
        return [f"{share} was not asked for by this run"]
    return [
        f"{share} was not counted here; servers of the plan work on it, whose I/O is their own: "
        f"{', '.join(device.servers)}"
    ]


def _title(layer: str, parts: SplitMs | LogSplitMs) -> str:
    """A layer by name; kernel queue and device are one where the block layer says nothing."""
    together = layer == "device" and parts.kernel_queue is None
    return "kernel queue and device" if together else TITLES[layer]


def _starved(split: Split) -> tuple[float, list[str]]:
    """How much of the time the load generator lacked processor time, beyond what is harmless, and
    why, in sentences.
    """
    beyond = {
        name: value
        for name in SLOW_GENERATOR
        if (value := split.level(name) or 0.0) > rule(name)["limit"]
    }
    return max(beyond.values(), default=0.0), [doubt(name, value) for name, value in beyond.items()]


def _of_device(device: DeviceUse | None) -> list[str]:
    if not device:
        return []
    means = {
        "read": device.read_latency_ms_mean,
        "write": device.write_latency_ms_mean,
        "flush": device.flush_latency_ms_mean,
    }
    counted = [
        f"{what} took {shown(mean_ms, 'ms')}"
        for what, mean_ms in means.items()
        if mean_ms is not None
    ]
    sentence = (
        f"{device.name} was busy {device.busy:.0%} of the time with {device.queue_mean:.2g} "
        f"requests in flight"
    )
    return [f"{sentence}; in the block layer a {', a '.join(counted)}" if counted else sentence]


def _transactions(scope: str, summary: Summary) -> TransactionSplit | None:
    for split in summary.transaction_splits:
        if split.scope == scope:
            return split
    return None


def _stalls(check: Check, summary: Summary) -> CheckBottleneck | None:
    """Page faults without a free buffer.

    The cache's fault where the device had time to spare, else the device's.
    """
    split = _transactions(check.scope, summary)
    device = split.device if split else None
    if split and not device and check.doubts:
        evidence = [check.reason, *(doubt.text for doubt in check.doubts)]
        return _entry(check, "engine", "cache", split, evidence)
    if not split or not device:
        return None
    evidence = [check.reason, *_of_device(device)]
    if device.busy < IDLE_BUSY:
        return _entry(check, "engine", "cache", split, evidence)
    evidence += _of_others(device)
    neighbour = _works_for_others(device) and not device.servers
    return _entry(check, "device", "neighbour" if neighbour else "device", split, evidence)


def _entry(
    check: Check, layer: str, cause: str, split: Split | None, evidence: list[str]
) -> CheckBottleneck:
    return CheckBottleneck(
        what="check",
        check=check.name,
        title=check.title,
        scope=check.scope,
        layer=layer,
        cause=cause,
        text=_text(layer, cause),
        evidence=evidence,
        split_ms=split.split_ms if split else None,
    )


def _text(layer: str, cause: str) -> str:
    return f"{TITLES[layer]}: {CAUSES[cause]}"
