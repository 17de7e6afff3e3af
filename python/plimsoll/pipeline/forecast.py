"""What a run will take before anything is written: files, space, bytes written, share of the drive's endurance, time.

What depends on the storage is estimated at a stated rate and called "about"; a phase that waits for a condition gets its
longest time. What cannot be known is "unknown". A run beyond ten minutes, or one that takes more than a tenth of the free
space, needs a yes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import typer

from plimsoll import settings
from plimsoll.databases import preflight
from plimsoll.live.progress import in_words

LARGE_S = 600
LARGE_SHARE = 0.1
#: Only for the forecast; while the run goes on the measured rate takes its place.
ASSUMED_MIB_PER_S = 150
STOP_S = 5.0
#: A target of database I/O is aimed at in windows: until two that follow each other agree, and no more than so many.
CALIBRATION_WINDOWS_MIN, CALIBRATION_WINDOWS_MAX = 2, 10
TB = 1000**4


@dataclass(frozen=True)
class PhaseOutlook:
    """One phase before it begins.

    Attributes:
        name: as in the plan.
        seconds: how long it takes, or at most takes.
        how: "exactly", "about" or "at most".
        bytes_written: what is written for certain; load writes what the storage lets it.
    """

    name: str
    seconds: float
    how: str
    bytes_written: int | None


def phases(plan: dict[str, Any], expected: preflight.Forecast) -> list[PhaseOutlook]:
    """Every phase with its time and what it writes."""
    run = plan["run"]
    stored = sum(item["size_bytes"] for instance in run["instances"] for item in instance["databases"])
    mib_per_s = min(ASSUMED_MIB_PER_S, run["max_mib_per_s"] or ASSUMED_MIB_PER_S)
    found = []
    for phase in run["phases"]:
        action = phase["action"]
        seconds: float
        written: int | None
        match action["kind"]:
            case "prepare":
                seconds, how, written = (
                    expected.bytes_to_prepare / 2**20 / mib_per_s,
                    "about",
                    expected.bytes_to_prepare,
                )
            case "warm_up":
                seconds, how, written = (
                    action["timeout_s"] + CALIBRATION_WINDOWS_MAX * calibrate_s(run),
                    "at most",
                    None,
                )
            case "precondition":
                seconds, how, written = action["round_s"] * action["rounds_max"], "at most", None
            case "generate_logs":
                seconds, how, written = action["logs_count"] * settings.GENERATE_S_PER_LOG, "about", None
            case "recover":
                logs = sum(item["action"].get("logs_count", 0) for item in run["phases"])
                seconds, how, written = logs * settings.REPLAY_S_PER_LOG, "about", None
            case "checksum" | "backup":
                seconds, how, written = stored / 2**20 / mib_per_s, "about", 0
            case "stop":
                seconds, how, written = STOP_S, "about", None
            case "soak" if action.get("until_utc_s"):
                # However long the phases before it take, it ends at its moment.
                seconds, how, written = max(0.0, action["until_utc_s"] - time.time()), "at most", None
            case _:
                seconds, how, written = action.get("duration_s", 0.0), "exactly", None
        found.append(PhaseOutlook(phase["name"], float(seconds), how, written))
    return found


def calibrate_s(run: dict[str, Any]) -> float:
    """How long one window is in which the I/O of a transaction is measured, where a load aims at database I/O."""
    return max((item["load"].get("calibrate_s", 0.0) for item in run["workloads"]), default=0.0)


def total_s(plan: dict[str, Any], expected: preflight.Forecast) -> float:
    """What the run is likely to take; waiting for a warm cache is left out, because it usually takes seconds."""
    found = phases(plan, expected)
    warm = any(phase["action"]["kind"] == "warm_up" for phase in plan["run"]["phases"])
    calibrating = CALIBRATION_WINDOWS_MIN * calibrate_s(plan["run"]) if warm else 0.0
    return calibrating + sum(phase.seconds for phase in found if phase.how != "at most")


def later_s(plan: dict[str, Any], expected: preflight.Forecast) -> dict[str, float]:
    """For each phase, what the phases after it are likely to take."""
    found, total = {}, 0.0
    for phase in reversed(phases(plan, expected)):
        found[phase.name] = total
        total += phase.seconds if phase.how != "at most" else 0.0
    return found


def endurance(plan: dict[str, Any], expected: preflight.Forecast) -> list[str]:
    """The share of the rated endurance that preparing takes, for each target that states one."""
    rated: dict[str, float] = plan["judgement"].get("rated_endurance_tb", {})
    lines = []
    for target in plan["run"]["targets"]:
        name = target["name"]
        if name not in rated:
            lines.append(f"{name}: unknown; state `rated_endurance_tb` of its drives in the plan to have it computed")
            continue
        names = [item["name"] for item in plan["run"]["instances"] if item["target"] == name]
        share = expected.bytes_to_prepare / (rated[name] * TB)
        what = (
            "preparing" if len(plan["run"]["targets"]) == 1 else f"preparing {', '.join(names)} (all targets counted)"
        )
        lines.append(f"{name}: {what} takes {share:.3%} of {rated[name]:g} TB; the load adds what the storage lets it")
    return lines


def bounds(plan: dict[str, Any]) -> list[str]:
    """What keeps the run from pressing harder or longer, if anything does."""
    units = {"max_iops": "reads and writes per second", "max_mib_per_s": "MiB per second"}
    lines = [f"  at most {plan['run'][name]:g} {unit}" for name, unit in units.items() if plan["run"].get(name)]
    lines += [f"  stops when {condition}" for condition in plan.get("stop_if", [])]
    return ["", "bounds", *lines] if lines else []


def as_lines(plan: dict[str, Any], expected: preflight.Forecast) -> list[str]:
    """The whole outlook for people."""
    run = plan["run"]
    lines = [f"plan {plan['name']}", "", "files"]
    for instance in run["instances"]:
        state = "to be prepared"
        if instance["name"] in expected.recovered:
            state = "to be recovered"
        elif instance["name"] in expected.restored:
            state = "to be restored"
        elif instance["name"] in expected.reused:
            state = "there already"
        for database in instance["databases"]:
            path = preflight.database_path(instance, database)
            lines.append(f"  {path}  {database['size_bytes'] >> 20} MiB, {state}")
        lines.append(
            f"  {instance['log_directory']}/  logs and checkpoint, about {preflight.LOG_RESERVE_BYTES >> 20} MiB"
        )
    lines += ["", "space"]
    lines += [
        f"  {mount}: {needed >> 20:,} MiB needed with room for growth, {expected.bytes_free[mount] >> 20:,} MiB free "
        f"({needed / max(expected.bytes_free[mount], 1):.0%})"
        for mount, needed in expected.bytes_needed.items()
    ] or ["  nothing new"]
    lines += ["", "bytes written"]
    lines.append(
        f"  {expected.bytes_to_prepare >> 20:,} MiB for certain, by preparing; the load writes what the storage lets it"
    )
    lines += bounds(plan)
    lines += ["", "share of the rated endurance", *(f"  {line}" for line in endurance(plan, expected)), "", "time"]
    lines += [f"  {phase.name:<12}{phase.how} {in_words(phase.seconds)}" for phase in phases(plan, expected)]
    lines.append(f"  {'total':<12}about {in_words(total_s(plan, expected))}, waiting for warm caches not counted")
    return lines


def reasons_to_ask(
    plan: dict[str, Any], expected: preflight.Forecast, times: int = 1, *, time_agreed: bool = False
) -> list[str]:
    """Why this run needs a yes; none for a small one, and none where nothing is real."""
    if plan["run"].get("modelled"):
        return []
    reasons = []
    seconds = total_s(plan, expected) * times
    if seconds > LARGE_S and not time_agreed:
        reasons.append(f"it takes about {in_words(seconds)}" + (f" in {times} runs" if times > 1 else ""))
    if expected.deleted:
        reasons.append(f"it deletes the databases in {', '.join(expected.deleted)}")
    for mount, needed in expected.bytes_needed.items():
        share = needed / max(expected.bytes_free[mount], 1)
        if share > LARGE_SHARE:
            reasons.append(f"it takes {share:.0%} of the free space on {mount}")
    return reasons


def ask(
    plan: dict[str, Any], expected: preflight.Forecast, *, agreed: bool, times: int = 1, time_agreed: bool = False
) -> str | None:
    """Ask for a yes where one is needed; whoever stated the time has agreed to it, and to nothing else.

    Returns:
        None to go on; otherwise why not.
    """
    reasons = reasons_to_ask(plan, expected, times, time_agreed=time_agreed)
    if agreed or not reasons:
        return None
    where = ", ".join(dict.fromkeys(target["path"] for target in plan["run"]["targets"]))
    sentence = f"this run writes to {where}, and {' and '.join(reasons)}"
    if not sys.stdin.isatty():
        return f"{sentence}; look at it with --dry-run, and give --yes to agree"
    return None if typer.confirm(f"{sentence}; go on?", err=True) else ""
