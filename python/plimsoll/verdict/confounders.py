"""Whether a failed check may be the load generator's own doing.

Only checks that failed are doubted: a figure within its limits is true however busy the generator was, because its delays
can only make figures worse. Errors, hung I/O and damaged pages are never doubted. Where the block layer itself counted
more than the limit, no delay of the generator can have made the difference. The limits are data (`data/doubts.toml`).
"""

from __future__ import annotations

from typing import Any

from plimsoll import settings

#: Where others use the device too, the block layer's mean is not ours.
OTHERS_SHARE_MAX = 0.1
#: What delays everything the generator does, by the names of `data/doubts.toml`.
SLOW_GENERATOR = ("executor_busy", "executor_wait", "cpu_throttled", "cpu_stolen")


def doubts_of(check: dict[str, Any], summary: dict[str, Any]) -> list[dict[str, str]]:
    """Why a failed check may be the generator's fault: name and text of each doubt; empty when it cannot be."""
    kind = _kind(check)
    if kind is None:
        return []
    if kind == "stalls":
        return _idle_device(check, summary)
    figures = _figures(check, summary)
    if kind == "latency" and _device_alone_fails(check, figures):
        return []
    found = [_named(name, figures[name]) for name in SLOW_GENERATOR if figures.get(name, 0.0) > rule(name)["limit"]]
    judged_ms = _judged_ms(check, summary)
    # Disk latency does not count from the intended start, so arrivals do not belong to it. What arrives late lowers a rate
    # by its share of the time that was measured.
    arrivals_judged_ms = {"response": judged_ms, "rate": 1000 * summary["window"]["seconds"]}.get(kind)
    for name, judged in (("reap_gap", judged_ms), ("arrival_lag", arrivals_judged_ms)):
        delay_ms = summary["generator"].get(f"{name}_ms_p99")
        if judged and delay_ms is not None and delay_ms > rule(name)["limit"] * judged:
            found.append(_named(name, delay_ms, judged))
    return found


def rule(name: str) -> dict[str, Any]:
    """One row of the data."""
    found: dict[str, Any] = next(row for row in settings.doubts()["doubt"] if row["name"] == name)
    return found


def doubt(name: str, value: float, judged_ms: float = 0.0) -> str:
    """The sentence of a doubt."""
    row = rule(name)
    text: str = row["text"].format(value=value, limit=row["limit"], judged=judged_ms)
    return text


def generator_limited(summary: dict[str, Any]) -> list[str]:
    """Why the rate of a run may be the generator's limit and not the storage's; for a rate that is quoted as a maximum."""
    figures = _machine_means(summary)
    return [doubt(name, figures[name]) for name in SLOW_GENERATOR if figures.get(name, 0.0) > rule(name)["limit"]]


def _kind(check: dict[str, Any]) -> str | None:
    """What a delay of the generator would do to a figure: lengthen a latency or a response, or lower a rate."""
    if check["name"] == "page_fault_stalls":
        return "stalls"
    metric = check["metric"]
    if "response_ms" in metric:
        return "response"
    if check["unit"] == "ms" and not metric.startswith(("reap_gap", "arrival_lag")):
        return "latency"
    throughput = metric in ("database_iops", "transactions_per_s", "iops") or metric.endswith("_per_s")
    return "rate" if throughput and not metric.startswith("page_fault_stalls") else None


def split_of(check: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any] | None:
    """Where the time of a judged latency went, over the time it was judged over."""
    window = "worst_sample" if check["statistic"] == "sample_mean_max" else "whole"
    metric = check["metric"].split("_latency_ms")[0]
    for split in summary.get("time_splits", []):
        if (split["scope"], split["metric"], split["window"]) == (check["scope"], metric, window):
            found: dict[str, Any] = split
            return found
    return None


def _machine_means(summary: dict[str, Any]) -> dict[str, float]:
    machine = {name: levels["mean"] for name, levels in summary.get("machine", {}).items()}
    busy = summary["generator"]["executor_busy_mean"]
    return machine | ({} if busy is None else {"executor_busy": busy})


def _figures(check: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    """What the generator and its machine did while the check was measured."""
    return {**_machine_means(summary), **(split_of(check, summary) or {})}


def _judged_ms(check: dict[str, Any], summary: dict[str, Any]) -> float | None:
    """The mean latency that a delay is compared with."""
    if check["statistic"] in ("mean", "sample_mean_max") and check["unit"] == "ms":
        return float(check["measured"])
    metric = check["metric"]
    if "response_ms" in metric:
        operation = metric.split("_response_ms")[0]
        means = [row["response_ms_mean"] for row in summary["operations"] if row["operation"] == operation]
        return means[0] if means else None
    places = [*summary["databases"], *summary["instances"]]
    for name in ("database_read", "database_write", "maintenance", "log_write", "log_read", "log_replication"):
        if metric.startswith(f"{name}_latency"):
            found = [item[name] for item in places if item["name"] == check["scope"] and name in item]
            return _mean(found[0]) if found else None
        if metric.startswith(f"total_{name}_latency"):
            return _mean(summary["total"][name])
    # A rate: the mean read, which is what closed sessions wait for most.
    return _mean(summary["total"].get("database_read", {}))


def _mean(figures: dict[str, Any]) -> float | None:
    mean: float | None = figures.get("latency_ms_mean")
    return mean


def _device_alone_fails(check: dict[str, Any], figures: dict[str, Any]) -> bool:
    """Whether the block layer counted more than the limit, of I/O that was ours."""
    device = figures.get("device")
    if not device or device["others_share"] > OTHERS_SHARE_MAX or check["statistic"] not in ("mean", "sample_mean_max"):
        return False
    counted = device["read_latency_ms_mean"] if check["metric"] == "database_read" else device["write_latency_ms_mean"]
    return counted is not None and counted > check["limit"]


def _named(name: str, value: float, judged_ms: float = 0.0) -> dict[str, str]:
    return {"name": name, "text": doubt(name, value, judged_ms)}


def _idle_device(check: dict[str, Any], summary: dict[str, Any]) -> list[dict[str, str]]:
    """Stalls while the device under the databases had time to spare are the cache's."""
    for device in summary.get("devices", []):
        if (device["instance"], device["role"]) == (check["scope"], "databases"):
            limit = rule("page_fault_stalls")["limit"]
            return [_named("page_fault_stalls", device["busy"])] if device["busy"] < limit else []
    return []
