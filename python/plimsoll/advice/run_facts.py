"""The facts rules may refer to, drawn from a completed plan or from the folder of a finished run.

A completed plan is what `plan.json` holds: its `run` part and its `judgement`. From a run folder
this module takes `plan.json`, `verdict.json`, `summary.json` and `environment.json`, whichever
exist; a fact whose file or key is missing stays unknown, so that folders of other versions are
looked at as far as they go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from plimsoll.advice.engine import Subject
from plimsoll.advice.stated import Facts, known, listed
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.sanitize import parse_json
from plimsoll.inputs.expression import Fact
from plimsoll.inputs.mistakes import InputError, Mistake

DESCRIBED_BY_PLAN = frozenset({"plan"})
DESCRIBED_BY_RUN = frozenset({"plan", "run"})
FILES = ("plan.json", "verdict.json", "summary.json", "environment.json")
SECONDS_PER_HOUR = 3600.0

#: The key to write, or the file to add, for a fact that is missing.
KEYS_BEHIND = {
    "achieved_iops": "verdict.json",
    "bad_pages_count": "checksums in summary.json",
    "capacity_utilisation_fraction": "environment.json with the size of each target",
    "checks_failed_count": "verdict.json",
    "checks_not_evaluated_count": "verdict.json",
    "kernel_errors_count": "a readable kernel log in summary.json",
    "limit_set": "limits",
    "log_faults_count": "log_check in summary.json",
    "obstacles_count": "verdict.json",
    "processors_busy_fraction": "machine.cpu_busy in summary.json",
    "qualifying": "verdict.json",
    "result": "verdict.json",
    "drives_throttled_count": "drive_health in summary.json, which smartctl and root give",
    "iscsi_mtu_bytes_min": "environment.json with the interface of each iSCSI session",
    "iscsi_mtus_count": "environment.json with the interface of each iSCSI session",
    "iscsi_queue_depth_min": "environment.json with iSCSI sessions that have disks",
    "iscsi_sessions_count": "environment.json of this version",
    "iscsi_sessions_per_target_min": "environment.json with iSCSI sessions",
    "multipath_paths_running_min": "environment.json with multipath devices",
    "multipath_policies": "environment.json with multipath devices, read as root",
    "nvme_block_bytes_min": "environment.json with NVMe drives",
    "nvme_power_state_max": "environment.json with NVMe drives, read as root",
    "nvme_volatile_caches_count": "environment.json with NVMe drives",
    "solid_state": "environment.json with the kind of each device",
    "targets_with_system_count": "environment.json with the device of each target",
}


def plan_subject(plan: Mapping[str, object], file_name: str) -> Subject:
    """A completed plan as one subject."""
    return Subject("plan", Path(file_name).name, known(_plan_facts(plan)), file_name)


def run_subjects(run_folder: Path) -> list[Subject]:
    """The subjects of a run folder: the run, and its plan when it is there.

    Raises:
        InputError: the folder holds no file of a run, or one of them cannot be read.
    """
    present = [name for name in FILES if (run_folder / name).is_file()]
    if not present:
        hint = "name the folder of one, which has plan.json in it"
        raise InputError(str(run_folder), [Mistake(0, "", "holds no run", hint)])
    contents = {name: read_object(run_folder / name) for name in present}
    subjects = []
    if "plan.json" in contents:
        subjects.append(plan_subject(contents["plan.json"], str(run_folder / "plan.json")))
    facts: Facts = dict(subjects[0].facts) if subjects else {}
    facts |= _summary_facts(contents.get("summary.json", {}))
    facts |= _environment_facts(contents.get("environment.json", {}), facts.get("database_bytes"))
    facts |= _verdict_facts(contents.get("verdict.json", {}))
    return [*subjects, Subject("run", run_folder.name, known(facts), str(run_folder))]


def read_object(path: Path) -> dict[str, object]:
    """One JSON object, with the line of what is wrong.

    Raises:
        InputError: it cannot be read, is too large, or is no object.
    """
    try:
        content = parse_json(folder.read_text(path))
    except OSError as error:
        raise InputError(
            str(path), [Mistake(0, "", f"cannot be read: {system_reason(error)}")]
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), [Mistake(0, "", "is not UTF-8 text")]) from error
    except json.JSONDecodeError as error:
        raise InputError(
            str(path), [Mistake(error.lineno, "", f"is not valid JSON: {error.msg}")]
        ) from error
    except ValueError as error:
        raise InputError(str(path), [Mistake(0, "", f"cannot be read: {error}")]) from error
    if not isinstance(content, dict):
        raise InputError(str(path), [Mistake(1, "", "is JSON, but not an object")])
    newer = folder.why_not_understood(path, content)
    if newer is not None:
        raise InputError(str(path), [Mistake(0, "", newer)])
    return content


def _tables(content: object, name: str) -> list[dict[str, object]]:
    """The tables of a list, or nothing where the file holds something else."""
    found = content.get(name) if isinstance(content, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _fact(value: object) -> Fact | None:
    """A value that rules can compare."""
    return value if isinstance(value, (bool, int, float, str, list)) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _sum(values: list[float | None]) -> float | None:
    """The sum, None when there is nothing to sum or a part is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _plan_facts(plan: Mapping[str, object]) -> Facts:
    run, stated = plan.get("run"), plan.get("judgement")
    judgement = stated if isinstance(stated, dict) else {}
    instances = _tables(run, "instances")
    engines = [
        instance
        for instance in instances
        if instance.get("backend", "engine") in ("engine", "store", "mail_store")
    ]
    actions = [
        action
        for phase in _tables(run, "phases")
        if isinstance(action := phase.get("action"), dict)
    ]
    kinds = [str(action.get("kind")) for action in actions]
    databases = [database for instance in instances for database in _tables(instance, "databases")]
    measured_s = _sum(
        [_number(action.get("duration_s")) for action in actions if action.get("kind") == "measure"]
    )
    beside = [
        str(i.get("name"))
        for i in instances
        if i.get("directory") and i.get("directory") == i.get("log_directory")
    ]
    return {
        "test": _fact(judgement.get("test")),
        "limit_set": _fact(judgement.get("limits")),
        "required_iops": _number(judgement.get("required_iops")),
        "required_iops_stated": judgement.get("required_iops") is not None if judgement else None,
        "instance_count": len(instances) or None,
        "database_count": len(databases) or None,
        "database_bytes": _sum([_number(database.get("size_bytes")) for database in databases]),
        "mail_store": any(i.get("backend") == "mail_store" for i in instances)
        if instances
        else None,
        "maintenance_enabled": all(states) if (states := _maintenance(engines)) else None,
        "circular_log": all(i.get("circular_log") is True for i in engines) if engines else None,
        "copies_count": max(
            (n for i in engines if (n := _number(i.get("copies_count"))) is not None), default=None
        ),
        "measured_h": None if measured_s is None else measured_s / SECONDS_PER_HOUR,
        "phases": kinds or None,
        "verifies_checksums": "checksum" in kinds if kinds else None,
        "warms_up": "warm_up" in kinds if kinds else None,
        "instances_with_log_beside_database": beside if instances else None,
        "instances_with_log_beside_database_count": len(beside) if instances else None,
    }


def _maintenance(engines: list[dict[str, object]]) -> list[bool]:
    """Whether maintenance runs, for the instances that say so.

    A plan of a version without it says nothing.
    """
    return [engine["maintenance"] is not None for engine in engines if "maintenance" in engine]


def _summary_facts(summary: Mapping[str, object]) -> Facts:
    window, total = summary.get("window"), summary.get("total")
    seconds = _number(window.get("seconds")) if isinstance(window, dict) else None
    last = {str(entry.get("name")): entry for entry in _tables(summary, "checksums")}
    bad = [
        _sum([_number(entry.get(key)) for key in ("bad", "correctable", "wrong_page_number")])
        for entry in last.values()
    ]
    facts: Facts = {
        "measured_h": None if seconds is None else seconds / SECONDS_PER_HOUR,
        "bad_pages_count": _sum(bad),
        "errors_count": _number(total.get("errors_in_run")) if isinstance(total, dict) else None,
        "log_faults_count": _log_faults(summary.get("log_check")),
        "kernel_errors_count": _kernel_errors(summary.get("kernel_log")),
        "processors_busy_fraction": _busy(summary.get("machine")),
        "virtual_time": _fact(summary.get("virtual_time")),
        "drives_throttled_count": _throttled(summary),
        "database_bytes": _sum(
            [_number(entry.get("final_bytes")) for entry in _tables(summary, "databases")]
        ),
    }
    return {**known(facts)}


def _throttled(summary: Mapping[str, object]) -> int | None:
    """Drives that were so warm that they slow down; None where none told."""
    drives = _tables(summary, "drive_health")
    told = [
        [_number(drive.get(key)) for key in ("warm_minutes", "critical_minutes", "throttled_count")]
        for drive in drives
    ]
    if not any(value is not None for values in told for value in values):
        return None
    return sum(1 for values in told if any(values))


def _log_faults(checked: object) -> int | None:
    """Findings in the logs, checkpoints and flush maps of all instances.

    None where one of them was not read.
    """
    instances = (
        [entry for entry in checked if isinstance(entry, dict)] if isinstance(checked, list) else []
    )
    if not instances or any(entry.get("unread") for entry in instances):
        return None
    return sum(len(entry.get("findings") or []) for entry in instances)


def _kernel_errors(log: object) -> int | None:
    """Lines of the kernel about the disks under test; None where its log could not be read."""
    if (
        not isinstance(log, dict)
        or log.get("readable") is not True
        or not isinstance(log.get("lines"), list)
    ):
        return None
    return len(log["lines"])


def _busy(machine: object) -> float | None:
    level = machine.get("cpu_busy") if isinstance(machine, dict) else None
    return _number(level.get("mean")) if isinstance(level, dict) else None


def _environment_facts(environment: Mapping[str, object], database_bytes: object) -> Facts:
    targets = {str(target.get("mount_point")): target for target in _tables(environment, "targets")}
    capacity_bytes = _sum([_number(target.get("size_bytes")) for target in targets.values()])
    stored = _number(database_bytes)
    with_system = [name for name, target in targets.items() if target.get("holds_system") is True]
    unknown = any(target.get("holds_system") is None for target in targets.values())
    kinds = {target.get("rotational") for target in targets.values()}
    nvme = _tables(environment, "nvme")
    caches = [drive.get("volatile_write_cache") for drive in nvme]
    sessions, multipath = _tables(environment, "iscsi"), _tables(environment, "multipath")
    targets_of = [str(session.get("target")) for session in sessions]
    paths = [_number(device.get("paths_running_count")) for device in multipath]
    mtus = [_number(session.get("interface_mtu_bytes")) for session in sessions]
    depths = [_number(session.get("queue_depth_min")) for session in sessions]
    policies = [device.get("policy") for device in multipath]
    blocks = [_number(drive.get("block_bytes")) for drive in nvme]
    return {
        "iscsi_sessions_count": len(sessions) if "iscsi" in environment else None,
        "iscsi_sessions_per_target_min": min(
            (targets_of.count(target) for target in targets_of), default=None
        ),
        "iscsi_mtu_bytes_min": min((mtu for mtu in mtus if mtu), default=None),
        "iscsi_mtus_count": len(set(mtus)) if mtus and None not in mtus else None,
        "iscsi_queue_depth_min": min((depth for depth in depths if depth), default=None),
        "multipath_paths_running_min": min(
            (count for count in paths if count is not None), default=None
        ),
        "multipath_policies": sorted({str(policy) for policy in policies})
        if policies and None not in policies
        else None,
        "nvme_volatile_caches_count": caches.count(True) if nvme and None not in caches else None,
        "nvme_block_bytes_min": min((block for block in blocks if block), default=None),
        "nvme_power_state_max": max(
            (state for drive in nvme if (state := _number(drive.get("power_state"))) is not None),
            default=None,
        ),
        "capacity_utilisation_fraction": stored / capacity_bytes
        if stored and capacity_bytes
        else None,
        "solid_state": False in kinds if kinds and None not in kinds else None,
        "targets_with_system": with_system if targets and not unknown else None,
        "targets_with_system_count": len(with_system) if targets and not unknown else None,
    }


def _verdict_facts(verdict: Mapping[str, object]) -> Facts:
    facts: Facts = {
        "result": _fact(verdict.get("result")),
        "limit_set": _fact(verdict.get("limits")),
        "qualifying": _fact(verdict.get("qualifying")),
        "achieved_iops": _number(verdict.get("achieved_iops")),
    }
    reasons = verdict.get("not_qualifying_because")
    if isinstance(reasons, list):
        facts |= listed("obstacles", [str(reason) for reason in reasons])
    if isinstance(verdict.get("checks"), list):
        for status, name in (("fail", "checks_failed"), ("not_evaluated", "checks_not_evaluated")):
            checks = [
                check for check in _tables(verdict, "checks") if check.get("status") == status
            ]
            facts |= listed(
                name, [f"{check.get('name')} ({check.get('scope')})" for check in checks]
            )
    return {**known(facts)}
