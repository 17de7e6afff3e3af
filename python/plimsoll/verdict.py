"""From a summary to a verdict: pass, fail or inconclusive, with one reason for every check.

Limits are data (`data/limits.toml`), each with its source. A check that could not be evaluated makes the result
inconclusive, never a pass. A failed latency check counts as inconclusive only where the load generator itself was late
enough to have caused it. A result qualifies storage only under conditions that are listed when they are not met.
"""

from __future__ import annotations

from typing import Any

from plimsoll import config

SCHEMA_VERSION = 1
PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
NOT_EVALUATED = "not_evaluated"
EXECUTOR_BUSY_MAX = 0.9
#: The load generator may look for completions this late, as a share of the latency that is judged.
REAP_GAP_SHARE_MAX = 0.05
REQUIRED_IOPS_MARGIN = 0.05


def judge(plan: dict[str, Any], summary: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
    """Judge a run.

    Args:
        plan: the completed plan.
        summary: as from `plimsoll.measurements`.
        environment: as from `plimsoll.environment`.

    Returns:
        The content of `verdict.json`.
    """
    limit_set = plan["judgement"]["limits"]
    checks = [
        check
        for rule in config.limits()["check"]
        for check in _checks_of_rule(rule, rule["limit"][limit_set], plan, summary)
    ]
    if plan["judgement"]["required_iops"] is not None:
        checks.append(_required_iops(plan["judgement"]["required_iops"], summary))
    doubts = _generator_doubts(checks, summary)
    result, reasons = _result(checks, doubts, summary)
    obstacles = _not_qualifying(plan, summary, environment)
    return {
        "schema_version": SCHEMA_VERSION,
        "result": result,
        "headline": _headline(result, obstacles),
        "limits": limit_set,
        "reasons": reasons,
        "checks": checks,
        "qualifying": not obstacles,
        "not_qualifying_because": obstacles,
        "doubts": doubts,
        "required_iops": plan["judgement"]["required_iops"],
        "achieved_iops": summary["total"]["database_iops"],
    }


def _headline(result: str, obstacles: list[str]) -> str:
    word = result.capitalize()
    return f"{word} (rehearsal, not a qualification)" if obstacles else word


def _check(rule: dict[str, Any], scope: str, measured: float | None, limit: float, lacking: str) -> dict[str, Any]:
    if measured is None:
        status, reason = NOT_EVALUATED, lacking
    elif measured <= limit:
        status, reason = PASS, f"{_shown(measured, rule['unit'])} is within the limit of {_shown(limit, rule['unit'])}"
    else:
        status, reason = FAIL, f"{_shown(measured, rule['unit'])} is above the limit of {_shown(limit, rule['unit'])}"
    return {
        "name": rule["name"],
        "title": rule["title"],
        "scope": scope,
        "statistic": rule["statistic"],
        "measured": measured,
        "limit": limit,
        "unit": rule["unit"],
        "status": status,
        "reason": reason,
        "source": rule["source"],
    }


def _shown(value: float, unit: str) -> str:
    text = f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.3g}"
    return f"{text} {unit}"


def _checks_of_rule(
    rule: dict[str, Any], limit: float, plan: dict[str, Any], summary: dict[str, Any]
) -> list[dict[str, Any]]:
    nothing = "nothing of the kind was measured"
    match rule["scope"], rule["statistic"]:
        case "run", "errors":
            return [_check(rule, "run", summary["total"]["errors_in_run"], limit, nothing)]
        case "run", _:
            return [_check(rule, "run", summary["total"]["hung_in_run"], limit, nothing)]
        case "database", "bad_pages":
            return [_bad_pages(rule, database["name"], limit, summary) for database in summary["databases"]]
        case "instance", "per_s":
            return [_stalls(rule, instance, limit, plan) for instance in summary["instances"]]
        case scope, statistic:
            places = summary["databases"] if scope == "database" else summary["instances"]
            figure = f"latency_ms_{statistic}"
            return [_check(rule, place["name"], place[rule["metric"]][figure], limit, nothing) for place in places]


def _bad_pages(rule: dict[str, Any], name: str, limit: float, summary: dict[str, Any]) -> dict[str, Any]:
    passes = [checksum for checksum in summary["checksums"] if checksum["name"] == name]
    measured = None
    if passes:
        last = passes[-1]
        measured = last["bad"] + last["correctable"] + last["wrong_page_number"]
    return _check(rule, name, measured, limit, "no checksum pass was completed")


def _stalls(rule: dict[str, Any], instance: dict[str, Any], limit: float, plan: dict[str, Any]) -> dict[str, Any]:
    spec = next(item for item in plan["run"]["instances"] if item["name"] == instance["name"])
    if spec["backend"] != "engine":
        check = _check(rule, instance["name"], None, limit, "raw files have no cache whose pages could fault")
        return {**check, "status": "not_applicable"}
    return _check(rule, instance["name"], instance["page_fault_stalls_per_s"], limit, "nothing was measured")


def _required_iops(required: float, summary: dict[str, Any]) -> dict[str, Any]:
    achieved = summary["total"]["database_iops"]
    enough = achieved >= required * (1 - REQUIRED_IOPS_MARGIN)
    headroom = achieved / required if required else None
    return {
        "name": "required_iops",
        "title": "Database IOPS that the plan requires",
        "scope": "run",
        "statistic": "mean",
        "measured": achieved,
        "limit": required,
        "unit": "1/s",
        "status": PASS if enough else FAIL,
        "reason": f"{achieved:.0f} of {required:.0f} required" + (f", headroom {headroom:.2f}" if headroom else ""),
        "source": "the plan; a margin of 5 % as in the 2013 test tool's profile",
    }


def _generator_doubts(checks: list[dict[str, Any]], summary: dict[str, Any]) -> list[str]:
    """Reasons why failed latency checks may be the load generator's fault."""
    failed = [check for check in checks if check["status"] == FAIL and check["unit"] == "ms"]
    generator = summary["generator"]
    busy, gap_ms = generator["executor_busy_mean"], generator["reap_gap_ms_p99"]
    doubts = []
    if failed and busy is not None and busy > EXECUTOR_BUSY_MAX:
        doubts.append(
            f"the load generator's thread was busy {busy:.0%} of the time, so it may have delayed completions"
        )
    for check in failed:
        if gap_ms is not None and gap_ms > REAP_GAP_SHARE_MAX * check["measured"]:
            doubts.append(
                f"{check['title'].lower()} ({check['scope']}): the load generator looked for completions only every "
                f"{gap_ms:.3g} ms (p99)"
            )
    return doubts


def _result(checks: list[dict[str, Any]], doubts: list[str], summary: dict[str, Any]) -> tuple[str, list[str]]:
    failed = [check for check in checks if check["status"] == FAIL]
    missing = [check for check in checks if check["status"] == NOT_EVALUATED]
    certain = [check for check in failed if check["unit"] != "ms"] if doubts else failed
    error = summary["error"]
    if error and error["family"] in ("disk", "corruption"):
        return FAIL, [error["text"], *_reasons(failed)]
    if certain:
        return FAIL, _reasons(failed)
    if doubts:
        return INCONCLUSIVE, [*doubts, *_reasons(failed)]
    if summary["ending"] != "complete":
        text = error["text"] if error else "the run did not come to its end"
        return INCONCLUSIVE, [text, *_reasons(missing)]
    if missing:
        return INCONCLUSIVE, _reasons(missing)
    iops = summary["total"]["database_iops"]
    return PASS, [f"every check is within its limit at {iops:.0f} database IOPS"]


def _reasons(checks: list[dict[str, Any]]) -> list[str]:
    return [f"{check['title']} ({check['scope']}): {check['reason']}" for check in checks]


def _not_qualifying(plan: dict[str, Any], summary: dict[str, Any], environment: dict[str, Any]) -> list[str]:
    obstacles = []
    seconds, wanted = summary["window"]["seconds"], config.QUALIFYING_DURATION_S
    if seconds < wanted:
        obstacles.append(f"{seconds:.0f} s were measured; a qualification takes {wanted // 3600} hours")
    for instance in plan["run"]["instances"]:
        size = sum(database["size_bytes"] for database in instance["databases"])
        cache = instance["cache_bytes_max"]
        if cache and size < config.QUALIFYING_CACHE_MULTIPLE * cache:
            obstacles.append(f"the databases of {instance['name']} are only {size / cache:.1f} times its cache")
        if instance["backend"] != "engine":
            obstacles.append(f"instance {instance['name']} is raw files, not a transactional engine")
    memory_kib = environment["machine"]["memory_kib"]
    total = sum(database["size_bytes"] for item in plan["run"]["instances"] for database in item["databases"])
    if memory_kib and total < memory_kib * 1024:
        obstacles.append(
            "all databases together are smaller than this machine's memory; the storage's cache may hold them"
        )
    if summary["debug_build"]:
        obstacles.append("this is a debug build of Plimsoll, which measures itself")
    if summary["virtual_time"]:
        obstacles.append("time was simulated")
    obstacles += [f"I/O: {remark}" for remark in summary["io"]["remarks"]]
    obstacles += environment["warnings"]
    return obstacles
