"""Every TOML that the documents show can be read, and is a plan, or fits into one.

Whole plans are checked as they stand; parts of one are put into a plan that has the rest. Only the
paths are others.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.toml_lines import LocatedFile
from plimsoll.plan.complete import complete_plan
from plimsoll.plan.fields import INSTANCE_FIELDS, PLAN_FIELDS, TARGET_FIELDS, WORKLOAD_FIELDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_INDENTED = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)
_FENCED = re.compile(r"^```(?:toml)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TOML = re.compile(r"(?:#.*\n|\s*\n)*(?:\[\[?[\w.]+\]\]?|[a-z_]+ = [\[{\"\d])")
_COMMAND = re.compile(r"(?:\.venv/bin/)?plimsoll ")

#: What a part of a plan leaves to the reader: instances of these names, and the rest.
INSTANCES: dict[str, dict[str, Any]] = {
    "mail": {"name": "mail", "database_size_mib": 20480},
    "shop": {"name": "shop", "backend": "store", "store_size": "10MB"},
    "share": {"name": "share", "backend": "files", "file_mib": 64},
}
#: Two paths, and figures that can be changed.
MODELLED = {"name": "array", "modelled": "dell-md3000i"}
AUDITED = ("store", "mail_store", "imap", "home_folders")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Where each block of TOML stands, and what is in it; commands next to it are left out."""
    text, found = page.read_text(encoding="utf-8"), list[tuple[str, str]]()
    for pattern in (_INDENTED, _FENCED):
        for match in pattern.finditer(text):
            block = match.group(1) if pattern is _FENCED else match.group()
            lines = [re.sub("^    ", "", line) for line in block.splitlines()]
            shown = "\n".join(line for line in lines if not _COMMAND.match(line)).strip("\n")
            if _TOML.match(shown):
                line = text[: match.start()].count("\n") + 1
                found.append((f"{page.relative_to(ROOT)}:{line}", shown))
    return found


SHOWN = [block for page in PAGES for block in blocks(page)]


def whole(part: dict[str, Any], passwords: str) -> dict[str, Any] | None:
    """A plan with this part in it; None where it is no part of a plan."""
    if not set(part) <= set(PLAN_FIELDS):
        of_load = {key: part[key] for key in part if key in WORKLOAD_FIELDS}
        rest = {key: part[key] for key in part if key not in of_load}
        if set(rest) <= set(INSTANCE_FIELDS):
            instance, load = {**INSTANCES["mail"], **rest}, {"name": "mail", **of_load}
            return whole({"instance": [instance], "workload": [load]}, passwords)
        if set(part) <= set(TARGET_FIELDS):
            return whole({"target": [{**MODELLED, **part}]}, passwords)
        return None
    instances = list(part.get("instance", []))
    there = {item["name"] for item in instances}
    wanted = (name for load in part.get("workload", []) for name in load.get("instances", []))
    instances += [INSTANCES[name] for name in dict.fromkeys(wanted) if name not in there]
    instances = [_with_account(item, passwords) for item in instances or [INSTANCES["mail"]]]
    servers = all({"store_address", "deliver"} & set(item) for item in instances)
    breaks = any("do" in event and "node" not in event for event in part.get("event", []))
    disk = {"name": "server"} if servers else {"name": "array", "path": "/mnt/array"}
    targets = part.get("target") or [MODELLED if breaks else disk]
    if "target" not in instances[0] and len(targets) > 1:
        instances = [
            {**instances[0], "name": f"on {target['name']}", "target": target["name"]}
            for target in targets
        ]
    loads = [_with_way(item, instances) for item in part.get("workload", [])] or [
        _with_way({"name": item["name"], "instances": [item["name"]]}, instances)
        for item in instances
    ]
    phases = _phases(part, instances)
    return {**part, "target": targets, "instance": instances, "workload": loads, "phase": phases}


def _with_account(instance: dict[str, Any], passwords: str) -> dict[str, Any]:
    """An instance with what the accounts of a mail server need."""
    if instance.get("backend") != "imap":
        return instance
    return {"address": "u{n}@example.org", "password_file": passwords, **instance}


def _with_way(load: dict[str, Any], instances: list[dict[str, Any]]) -> dict[str, Any]:
    """A load that says how hard it presses."""
    names = load.get("instances", [instances[0]["name"]])
    on = next(item for item in instances if item["name"] == names[0])
    if on.get("backend") == "imap":
        return {"weights": "mail-only", "load": {"users": 10}, **load}
    return {"load": {"transactions_per_s": 10}, **load}


def _phases(part: dict[str, Any], instances: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The usual phases of these instances, with those that are shown in their places."""
    shown = part.get("phase", [])
    if any(phase["kind"] == "measure" for phase in shown):
        return list(shown)
    audited = any("store_address" in item or item.get("backend") in AUDITED for item in instances)
    dies = any(event.get("do") == "node killed" for event in part.get("event", []))
    servers = any({"store_address", "deliver"} & set(item) for item in instances)
    before = ("prepare",) if servers else ("prepare", "warm_up")
    audit = [{"kind": "audit"}] if audited or dies else []
    early = [phase for phase in shown if phase["kind"] in ("precondition", "soak", "search")]
    return [
        *({"kind": kind} for kind in before),
        *early,
        {"kind": "measure", "duration_s": 3600},
        *(phase for phase in shown if phase not in early),
        *audit,
        {"kind": "stop"},
    ]


@pytest.mark.parametrize(("where", "text"), SHOWN, ids=[where for where, _ in SHOWN])
def test_every_plan_and_every_part_of_one_is_taken(where: str, text: str, tmp_path: Path) -> None:
    """What a page shows is copied first, and whoever copies it has not read the rest yet."""
    shown = tomllib.loads(text)
    if shown.get("kind", "plan") != "plan":
        return
    passwords = tmp_path / "passwords"
    passwords.write_text("*:secret\n")
    passwords.chmod(0o600)
    plan = shown if "kind" in shown else whole(shown, str(passwords))
    if plan is None:
        return
    placed = _placed({"schema_version": 1, **plan}, tmp_path, str(passwords))
    hosts = [host["name"] for host in plan.get("host", [])]
    try:
        complete_plan(LocatedFile(where, placed, {}), hosts[0] if hosts else None)
    except InputError as error:
        pytest.fail(str(error))


def _placed(value: Any, tmp_path: Path, passwords: str) -> Any:
    """The same with its paths in places of the test."""
    if isinstance(value, dict):
        return {
            key: passwords if key == "password_file" else _placed(item, tmp_path, passwords)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_placed(item, tmp_path, passwords) for item in value]
    is_place = isinstance(value, str) and value.startswith("/mnt/")
    return f"{tmp_path}{value}" if is_place else value


def test_the_pages_show_plans() -> None:
    """A pattern that finds nothing would pass every page."""
    assert sum('kind = "plan"' in text for _, text in SHOWN) >= 2
    pages = {where.split(":")[0] for where, _ in SHOWN}
    assert {f"docs/{name}.md" for name in ("combined", "degraded", "mail", "loads")} <= pages
    assert len(SHOWN) > 25
