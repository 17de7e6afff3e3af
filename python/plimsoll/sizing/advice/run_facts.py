"""The facts rules may refer to, drawn from a plan or from the folder of a finished run.

A plan is read loosely: this module takes the keys it knows and leaves the checking of plans to the reader of plans. From
a run folder it takes `plan.json`, `verdict.json`, `summary.json` and `environment.json`, whichever exist; a fact whose
file or key is missing stays unknown. Each check of the verdict is a fact of its own: `check.NAME.status`,
`check.NAME.measured`, `check.NAME.limit`; each number or text at the top of summary and environment is `summary.NAME`
and `environment.NAME`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plimsoll.sizing.advice.engine import Subject
from plimsoll.sizing.expression import Fact
from plimsoll.sizing.mistakes import InputError, Mistake

DESCRIBED_BY_PLAN = frozenset({"plan"})
DESCRIBED_BY_RUN = frozenset({"plan", "run"})
JSON_BYTES_MAX = 64 * 1024 * 1024
SECONDS_PER_HOUR = 3600.0


def plan_subject(plan: dict[str, Any], file_name: str) -> Subject:
    """The plan as one subject."""
    return Subject("plan", Path(file_name).name, _known(_plan_facts(plan)), file_name)


def run_subjects(folder: Path) -> list[Subject]:
    """The subjects of a run folder: the run, and its plan when it is there.

    Raises:
        InputError: the folder holds no file of a run, or one of them cannot be read.
    """
    names = ("plan.json", "verdict.json", "summary.json", "environment.json")
    present = [name for name in names if (folder / name).is_file()]
    if not present:
        hint = "a run folder holds plan.json, summary.json and verdict.json"
        raise InputError(str(folder), [Mistake(0, "", "is not the folder of a run: none of its files is there", hint)])
    contents = {name: read_json(folder / name) for name in present}
    subjects = []
    if "plan.json" in contents:
        subjects.append(plan_subject(contents["plan.json"], str(folder / "plan.json")))
    facts: dict[str, Any] = dict(subjects[0].facts) if subjects else {}
    facts |= _verdict_facts(contents.get("verdict.json", {}))
    for name in ("summary", "environment"):
        facts |= {
            f"{name}.{key}": value
            for key, value in contents.get(f"{name}.json", {}).items()
            if isinstance(value, (bool, int, float, str))
        }
    return [*subjects, Subject("run", folder.name, _known(facts), str(folder))]


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        InputError: it cannot be read, is too large, or is no object.
    """
    try:
        if path.stat().st_size > JSON_BYTES_MAX:
            raise InputError(str(path), [Mistake(0, "", "is larger than 64 MiB")])
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(str(path), [Mistake(0, "", f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), [Mistake(0, "", "is not UTF-8 text")]) from error
    except json.JSONDecodeError as error:
        raise InputError(str(path), [Mistake(error.lineno, "", f"is not valid JSON: {error.msg}")]) from error
    except RecursionError as error:
        raise InputError(str(path), [Mistake(0, "", "is nested too deeply to be read")]) from error
    if not isinstance(content, dict):
        raise InputError(str(path), [Mistake(1, "", "is JSON, but not an object")])
    return content


def _known(facts: dict[str, Any]) -> dict[str, Fact]:
    return {name: fact for name, fact in facts.items() if fact is not None}


def _entries(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of tables under its plural name (a spec) or its singular one (a plan written by a person)."""
    found = content.get(f"{name}s", content.get(name))
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _plan_facts(plan: dict[str, Any]) -> dict[str, Any]:
    instances, phases = _entries(plan, "instance"), _entries(plan, "phase")
    databases = [database for instance in instances for database in _entries(instance, "database")]
    measured_s = [_number(action.get("duration_s")) for action in _actions(phases) if action.get("kind") == "measure"]
    sizes = [_number(database.get("size_bytes")) for database in databases]
    same = [
        str(instance.get("name"))
        for instance in instances
        if instance.get("directory") is not None and instance.get("directory") == instance.get("log_directory")
    ]
    with_maintenance = [instance.get("maintenance") is not None for instance in instances if "maintenance" in instance]
    kinds = [str(action.get("kind")) for action in _actions(phases)]
    requirements = plan.get("requirement") or plan.get("requirements")
    required = requirements.get("iops") if isinstance(requirements, dict) else plan.get("required_iops")
    return {
        "edition": plan.get("edition"),
        "test": plan.get("test"),
        "instance_count": len(instances) or None,
        "database_count": len(databases) or None,
        "database_bytes": None if None in sizes or not sizes else sum(size or 0 for size in sizes),
        "maintenance_enabled": all(with_maintenance) if with_maintenance else None,
        "circular_log": _common(instances, "circular_log"),
        "copies_count": max((n for i in instances if (n := _number(i.get("copies_count"))) is not None), default=None),
        "measured_h": None
        if None in measured_s or not measured_s
        else sum(s or 0 for s in measured_s) / SECONDS_PER_HOUR,
        "phases": kinds or None,
        "verifies_checksums": "checksum" in kinds if kinds else None,
        "warms_up": "warm_up" in kinds if kinds else None,
        "conditions_storage": "condition" in kinds or "precondition" in kinds if kinds else None,
        "required_iops": _number(required),
        "required_iops_stated": required is not None,
        "instances_with_log_beside_database": same if instances else None,
        "instances_with_log_beside_database_count": len(same) if instances else None,
        "repeat_count": _number(plan.get("repeat")),
        "media": plan.get("media"),
    }


def _actions(phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each phase does: its `action` table, or the phase itself where the kind stands in it."""
    return [phase["action"] if isinstance(phase.get("action"), dict) else phase for phase in phases]


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _common(entries: list[dict[str, Any]], key: str) -> bool | None:
    values = [entry[key] for entry in entries if isinstance(entry.get(key), bool)]
    return all(values) if values else None


def _verdict_facts(verdict: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in ("result", "qualifying", "limit_set"):
        if isinstance(verdict.get(name), (bool, str)):
            facts[name] = verdict[name]
    checks = _entries(verdict, "check")
    if "checks" in verdict:
        failed = [str(check.get("name")) for check in checks if check.get("status") == "fail"]
        skipped = [str(check.get("name")) for check in checks if check.get("status") == "not_evaluated"]
        facts |= {"checks_failed": failed, "checks_failed_count": len(failed)}
        facts |= {"checks_not_evaluated": skipped, "checks_not_evaluated_count": len(skipped)}
    for check in checks:
        for key in ("status", "measured", "limit"):
            if isinstance(check.get(key), (bool, int, float, str)):
                facts[f"check.{check.get('name')}.{key}"] = check[key]
    return facts
