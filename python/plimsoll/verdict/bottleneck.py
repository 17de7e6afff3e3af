"""Who is guilty: for each failed check and each of the longest stalls, the first limiting layer and its evidence.

`plimsoll.results.latency_breakdown` says how long each layer took. The one that took most is the limiting one; among equals the first on
the way of an I/O, because what is behind it only sees what it lets through. Two things the numbers alone would get wrong:
while the load generator has no processor, completed I/O waits for it, and that wait looks like one before the device; and
a device that works for others is slow without being weak.
"""

from __future__ import annotations

from typing import Any

from plimsoll.results.latency_breakdown import LAYERS
from plimsoll.verdict.checks import is_fault, shown
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


def guilty_of_check(check: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any] | None:
    """The limiting layer of a failed check; None where no time is judged."""
    if is_fault(check):
        return _entry(check, "device", "fault", None, [check["reason"]])
    if check["name"] == "page_fault_stalls":
        return _stalls(check, summary)
    split = split_of(check, summary)
    if split is None and (check["unit"] == "1/s" or "response_ms" in check["metric"]):
        split = _transactions("run", summary)
    if split is None:
        return None
    layer, cause, evidence = limiting_layer(split)
    if layer == "device" and cause == "device" and check["metric"].startswith("log_"):
        cause = "log"
    return _entry(check, layer, cause, split, evidence)


def guilty_of_stall(stall: dict[str, Any]) -> dict[str, Any]:
    """The limiting layer of one long transaction, with its time."""
    layer, cause, evidence = limiting_layer(stall)
    if layer == "log_flush" and stall["log_split_ms"]:
        parts = stall["log_split_ms"]
        within = max(parts, key=lambda part: parts[part] or 0.0)
        if parts[within]:
            evidence.append(f"{shown(parts[within], 'ms')} of it was {_title(within, parts)} of one log write")
    return {
        "what": "stall",
        "begun_utc": stall["begun_utc"],
        "scope": stall["instance"],
        "operation": stall["operation"],
        "length_ms": stall["length_ms"],
        **_accusation(layer, cause, stall, evidence),
    }


def limiting_layer(split: dict[str, Any]) -> tuple[str, str, list[str]]:
    """The layer that took most of the time, what stands behind it, and the evidence."""
    parts = {layer: split["split_ms"][layer] or 0.0 for layer in LAYERS}
    total = sum(parts.values()) or 1.0
    withheld, starved = _starved(split)
    if _explains(withheld, parts["kernel_queue"] / total):
        # Completed I/O that nobody looks at is indistinguishable from I/O that waits before the device.
        parts["engine"] += parts["kernel_queue"]
    layer = max(LAYERS, key=lambda name: parts[name])
    share = parts[layer] / total
    title = "engine, its processor time included" if starved and layer == "engine" else _title(layer, split["split_ms"])
    evidence = [f"{title} took {shown(parts[layer], 'ms')} of {shown(total, 'ms')} ({share:.0%})"]
    device = split.get("device")
    if layer == "engine":
        # The gap is evidence only where it can hold what is to be explained.
        gap_ms = split.get("reap_gap_ms_max", 0.0)
        late = [f"the load generator did not look for up to {shown(gap_ms, 'ms')}"] if gap_ms > parts[layer] / 2 else []
        return layer, "cpu" if starved or late else "engine", [*evidence, *(starved or late)]
    if layer in ("log_flush", "submission"):
        own = "log" if layer == "log_flush" else "submission"
        return layer, "cpu" if _explains(withheld, share) else own, [*evidence, *starved, *_of_device(device)]
    evidence += _of_device(device)
    if device and _works_for_others(device):
        evidence.append(f"{device['others_share']:.0%} of what {device['name']} did was not asked for by this run")
        return layer, "neighbour", evidence
    return layer, "queue" if layer == "kernel_queue" else "device", evidence


def _explains(withheld: float, share: float) -> bool:
    """Whether lost processor time can be what a layer's share of the time is made of: it is at least half as much."""
    return withheld > 0 and withheld >= share / 2


def _works_for_others(device: dict[str, Any]) -> bool:
    """Whether others keep the device from the run: an idle device has time for both."""
    return bool(device["others_share"] >= OTHERS_SHARE and device["busy"] >= IDLE_BUSY)


def _title(layer: str, parts: dict[str, Any]) -> str:
    """A layer by name; kernel queue and device are one where the block layer says nothing."""
    together = layer == "device" and parts.get("kernel_queue") is None
    return "kernel queue and device" if together else TITLES[layer]


def _starved(split: dict[str, Any]) -> tuple[float, list[str]]:
    """How much of the time the load generator lacked processor time, beyond what is harmless, and why, in sentences."""
    beyond = {name: split[name] for name in SLOW_GENERATOR if (split.get(name) or 0.0) > rule(name)["limit"]}
    return max(beyond.values(), default=0.0), [doubt(name, value) for name, value in beyond.items()]


def _of_device(device: dict[str, Any] | None) -> list[str]:
    if not device:
        return []
    counted = [
        f"{what} took {shown(device[f'{what}_latency_ms_mean'], 'ms')}"
        for what in ("read", "write", "flush")
        if device[f"{what}_latency_ms_mean"] is not None
    ]
    sentence = (
        f"{device['name']} was busy {device['busy']:.0%} of the time with {device['queue_mean']:.2g} requests in flight"
    )
    return [f"{sentence}; in the block layer a {', a '.join(counted)}" if counted else sentence]


def _transactions(scope: str, summary: dict[str, Any]) -> dict[str, Any] | None:
    for split in summary.get("transaction_splits", []):
        if split["scope"] == scope:
            found: dict[str, Any] = split
            return found
    return None


def _stalls(check: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any] | None:
    """Page faults without a free buffer: the cache's fault where the device had time to spare, else the device's."""
    split = _transactions(check["scope"], summary)
    device = split.get("device") if split else None
    if not split or not device:
        return None
    evidence = [check["reason"], *_of_device(device)]
    if device["busy"] < IDLE_BUSY:
        return _entry(check, "engine", "cache", split, evidence)
    neighbour = _works_for_others(device)
    if neighbour:
        evidence.append(f"{device['others_share']:.0%} of what {device['name']} did was not asked for by this run")
    return _entry(check, "device", "neighbour" if neighbour else "device", split, evidence)


def _entry(
    check: dict[str, Any], layer: str, cause: str, split: dict[str, Any] | None, evidence: list[str]
) -> dict[str, Any]:
    return {
        "what": "check",
        "check": check["name"],
        "title": check["title"],
        "scope": check["scope"],
        **_accusation(layer, cause, split, evidence),
    }


def _accusation(layer: str, cause: str, split: dict[str, Any] | None, evidence: list[str]) -> dict[str, Any]:
    text = f"{TITLES[layer]}: {CAUSES[cause]}"
    return {
        "layer": layer,
        "cause": cause,
        "text": text,
        "evidence": evidence,
        "split_ms": split["split_ms"] if split else None,
    }
