"""The phases of a plan: what a person may write of each kind, and what the run is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll import settings
from plimsoll.documents import phase_actions
from plimsoll.documents.document import ABSENT
from plimsoll.files.paths import whole_path
from plimsoll.host.block_devices import is_device
from plimsoll.inputs.schema import Collector, Field, Flag, Given, ListOf, Number, Tables, Text
from plimsoll.plan.nodes import NODE_KILLED
from plimsoll.workloads.families import family_of
from plimsoll.workloads.mail.fields import SERVER_BACKENDS
from plimsoll.workloads.store.fields import CLIENT_BACKENDS

#: Keys that a phase of each kind may have, beside its name and the interval of its counters.
KEYS: dict[str, tuple[str, ...]] = {
    "prepare": (),
    "warm_up": ("timeout_s", "cache_percent", "workloads"),
    "precondition": (*settings.PRECONDITION, "workloads"),
    "soak": ("duration_s", "workloads"),
    "search": ("duration_s", "workloads"),
    "measure": ("duration_s", "workloads"),
    "backup": ("read_kib", "reads_in_flight", "workloads", "to"),
    "restore": ("read_kib", "reads_in_flight", "clones", "truncate_log"),
    "generate_logs": ("logs", "timeout_s", "workloads"),
    "recover": (),
    "audit": (),
    "stop": (),
    "checksum": ("read_kib", "reads_in_flight"),
}
#: Phases that need the engine: raw files have neither a log nor a backup of their own.
_ENGINE_KINDS = ("backup", "restore", "generate_logs", "recover")
#: Phases that workloads run in when nothing is said of them, and those they may run in.
_LOADED_KINDS = ("warm_up", "precondition", "soak", "search", *settings.MEASURED_KINDS)

CLONE_FIELDS = {
    "of": Field(Text(), required=True, meaning="the directory that was cloned, as /data"),
    "at": Field(Text(), required=True, meaning="where its clone is, as /mnt/snapshot"),
}

PHASE_FIELDS = {
    "name": Field(Text(), meaning="what to call the phase; its kind if left out"),
    "kind": Field(Text(tuple(KEYS)), required=True, meaning="what it does"),
    "workloads": Field(
        ListOf(Text()),
        meaning="loads that run in it; all of them in warm_up, search and measure if left out",
    ),
    "duration_s": Field(
        Number(1, 30 * 86400), meaning="how long to measure or to soak, or to search at most"
    ),
    "round_s": Field(
        Number(1, 86400), meaning="length of a round of preconditioning; 60 if left out"
    ),
    "rounds_max": Field(Number(2, 10_000, whole=True), meaning="rounds at most; 25 if left out"),
    "window_rounds": Field(
        Number(2, 100, whole=True), meaning="rounds that must keep steady together; 5 if left out"
    ),
    "range_percent": Field(
        Number(0.1, 1000), meaning="how far these may lie apart, of their mean; 20 if left out"
    ),
    "slope_percent": Field(
        Number(0.1, 1000), meaning="how much the line through them may slope; 10 if left out"
    ),
    "logs": Field(
        Number(1, 100_000, whole=True), meaning="logs of 1 MiB that every instance has to write"
    ),
    "timeout_s": Field(
        Number(1, 30 * 86400), meaning="how long to wait for a warm cache or for the logs"
    ),
    "cache_percent": Field(Number(0, 100, whole=True), meaning="how full a warm cache is"),
    "counter_interval_s": Field(
        Number(1, 3600, whole=True),
        meaning="interval of the table of counters; as published if left out: 15, checksum and "
        "backup 30, recovery 2",
    ),
    "read_kib": Field(
        Number(4, 4096, whole=True), meaning="length of backup, restore or checksum reads"
    ),
    "reads_in_flight": Field(
        Number(1, 4096, whole=True),
        meaning="backup, restore or checksum reads of each database at once",
    ),
    "to": Field(
        Text(),
        meaning="folder, absent or empty, in which a backup is kept; a phase of kind restore after "
        "it proves that it is one",
    ),
    "truncate_log": Field(
        Flag(),
        meaning="in a phase of kind restore, while the databases are open: delete the log that a "
        "sound backup makes superfluous; for instances with circular_log = false",
    ),
    "clones": Field(
        Tables(CLONE_FIELDS),
        meaning="in a phase of kind restore: where an event that holds writes has put clones of "
        'the storage: [{ of = "/data", at = "/mnt/snapshot" }]',
    ),
}


def completed(plan: Given, collector: Collector) -> list[phase_actions.PhaseSpec]:
    """The phases of a checked plan, or the usual ones where it names none."""
    names = [workload["name"] for workload in plan["workload"]] or ["mix"]
    usual = _usual(any((workload["load"] or {}).get("search") for workload in plan["workload"]))
    found: list[phase_actions.PhaseSpec] = []
    families = {family_of(item["backend"]) for item in plan["instance"] or []}
    if families == {"mail"}:
        usual = _of_kinds(
            ("prepare", "measure", "audit", "stop"), {"measure": settings.QUALIFYING_S["mail"]}
        )
    if not any(map(_tells_what_it_holds, plan["instance"] or [])):
        usual = [phase for phase in usual if phase["kind"] != "checksum"]
    has_cache = not plan["instance"] or any(map(_may_have_cache, plan["instance"]))
    if not has_cache:
        usual = [phase for phase in usual if phase["kind"] != "warm_up"]
    for index, given in enumerate(plan["phase"] or usual):
        kind = given["kind"]
        if kind is None:
            continue
        for key, value in given.items():
            if value is not None and key not in ("name", "kind", "counter_interval_s", *KEYS[kind]):
                collector.add(
                    ("phase", index, key), f"means nothing in a phase of kind {kind}", "remove it"
                )
        known = any(
            mistake.where == f"phase[{index + 1}].duration_s" for mistake in collector.mistakes
        )
        if kind in ("measure", "search", "soak") and given["duration_s"] is None and not known:
            collector.add(("phase", index, "duration_s"), "is missing", f"say how long to {kind}")
        if kind == "precondition":
            window, rounds = (
                given[key] or settings.PRECONDITION[key] for key in ("window_rounds", "rounds_max")
            )
            if window > rounds:
                key = "window_rounds" if given["window_rounds"] is not None else "rounds_max"
                collector.add(
                    ("phase", index, key),
                    "leaves no window of rounds",
                    "let rounds_max be the larger one",
                )
        for name in given["workloads"] or []:
            collector.named(name, names, ("phase", index, "workloads"))
        if kind in _ENGINE_KINDS and any(
            item["backend"] == "raw_files" for item in plan["instance"] or []
        ):
            collector.add(
                ("phase", index, "kind"), f"{kind} needs the engine, but an instance is raw files"
            )
        if kind in _ENGINE_KINDS and any(
            item["backend"] == "files" for item in plan["instance"] or []
        ):
            collector.add(
                ("phase", index, "kind"), f"{kind} needs the engine, but an instance is files"
            )
        if kind in _ENGINE_KINDS and any(
            item["backend"] == "home_folders" for item in plan["instance"] or []
        ):
            collector.add(
                ("phase", index, "kind"),
                f"{kind} means nothing for home folders, which an instance is",
                "write a phase of kind audit, which reads every file",
            )
        if kind == "warm_up" and not has_cache:
            collector.add(
                ("phase", index, "kind"),
                "is warm_up, but there is no cache of ours: those of a server tell no one whether "
                "they are warm",
                'run the load without judging it: { kind = "soak", duration_s = 600 }',
            )
        if kind in _ENGINE_KINDS and any(
            item["backend"] == "imap" for item in plan["instance"] or []
        ):
            collector.add(
                ("phase", index, "kind"),
                f"{kind} needs files of ours, but an instance is a mail server",
            )
        if (
            kind == "audit"
            and not any(
                family_of(item["backend"]) in ("home_folders", "store", "mail")
                for item in plan["instance"] or []
            )
            and not any(event["do"] == NODE_KILLED for event in plan["event"])
        ):
            hint = "leave the phase out"
            collector.add(
                ("phase", index, "kind"),
                "is audit, but no instance is a store, a mail server or home folders, and no node "
                "dies",
                hint,
            )
        if kind in _ENGINE_KINDS and any(
            item["backend"] in CLIENT_BACKENDS for item in plan["instance"] or []
        ):
            collector.add(
                ("phase", index, "kind"),
                f"{kind} needs files of ours, but an instance is a database of others",
            )
        if kind == "checksum":
            _check_readable(index, plan["instance"] or [], collector)
        _check_kept(index, given, plan, collector)
        usual_loads = names if kind in _LOADED_KINDS else []
        workloads = given["workloads"] if given["workloads"] is not None else usual_loads
        found.append(
            phase_actions.PhaseSpec(
                name=given["name"] or kind,
                action=_action(kind, given, _kept_before(found)),
                workloads=workloads,
            )
        )
    return found


def _may_have_cache(instance: Given) -> bool:
    """Whether an instance is ours, so that its cache can be seen to fill, if it has one."""
    return instance["backend"] not in (*CLIENT_BACKENDS, *SERVER_BACKENDS)


def _check_readable(index: int, instances: Sequence[Given], collector: Collector) -> None:
    """A checksum pass leaves out what it cannot judge, but something must be left to read."""
    if not instances or any(map(_tells_what_it_holds, instances)):
        return
    files = [item["name"] for item in instances if item["backend"] == "files"]
    hint = "leave the phase out"
    if files:
        hint = f"write verify = true in instance {' and '.join(files)}, or {hint}"
    elif any(item["backend"] == "home_folders" for item in instances):
        hint = "write a phase of kind audit, which reads every file"
    collector.add(
        ("phase", index, "kind"), "is checksum, but no instance can be judged by reading it", hint
    )


def _tells_what_it_holds(instance: Given) -> bool:
    """Whether what is read from the storage of an instance says what should be there."""
    backend = instance["backend"]
    if backend == "files":
        return bool(instance["verify"])
    return backend not in ("home_folders", "imap", *CLIENT_BACKENDS)


def _check_kept(index: int, given: Given, plan: Given, collector: Collector) -> None:
    """A backup that is kept must be restored, and only a kept one can be."""
    kind, phases = given["kind"], plan["phase"] or []
    kept = [place for place, phase in enumerate(phases) if phase["to"] is not None]
    if kind == "restore" and given["clones"] is not None:
        _check_clones(index, given["clones"], plan, collector)
    elif kind == "restore" and not any(place < index for place in kept):
        hint = 'write to = "FOLDER" in a phase of kind backup before it, or clones, or leave it out'
        collector.add(("phase", index, "kind"), "is restore, but no backup is kept", hint)
    if kind == "restore" and given["truncate_log"]:
        _check_truncation(index, plan, collector)
    if kind != "backup" or given["to"] is None:
        return
    where = ("phase", index, "to")
    if kept[0] < index:
        collector.add(where, "keeps a second backup", "keep one in each plan")
    if not any(phase["kind"] == "restore" and phase["clones"] is None for phase in phases[index:]):
        hint = "add a phase of kind restore after it, or after stop"
        collector.add(where, "keeps a backup that no phase restores", hint)
    hint = "leave to out, and the phase of kind restore"
    if plan["repeat"] is not None:
        collector.add(where, "keeps a backup in a plan that is repeated", hint)
    hints = ("keep backups of records and stores, or leave to out", hint)
    _check_copied(where, "keeps a backup", hints, plan, collector)


def _check_copied(
    where: tuple[str | int, ...],
    what: str,
    hints: tuple[str, str],
    plan: Given,
    collector: Collector,
) -> None:
    """Copies are opened as files with one log: of mail stores, and of what is no file, is none.

    The hints are for mail stores, and for targets without files.
    """
    of_mail, of_targets = hints
    for instance in plan["instance"] or []:
        if family_of(instance["backend"]) == "mail":
            text = f"{what}, but mailboxes and queue have logs of their own"
            collector.add(where, text, of_mail)
    for target in plan["target"] or []:
        if target["modelled"] is not None:
            text = f"{what} of a modelled array, where nothing is real"
            collector.add(where, text, of_targets)
        elif target["path"] and is_device(Path(target["path"])):
            collector.add(where, f"{what} of a block device, which has no files", of_targets)


def _check_truncation(index: int, plan: Given, collector: Collector) -> None:
    """Log goes once a backup is known to be sound, and while there is somebody to delete it."""
    where = ("phase", index, "truncate_log")
    phases = plan["phase"] or []
    if phases[index]["clones"] is not None:
        hint = "keep a backup with `to` in a phase of kind backup"
        collector.add(where, "needs a backup: which log a clone needs, nobody says", hint)
    kept = [place for place, phase in enumerate(phases[:index]) if phase["to"] is not None]
    closing = ("stop", "recover")
    if kept and any(phase["kind"] in closing for phase in phases[kept[0] : index]):
        hint = "write the phase of kind restore before the phase of kind stop"
        collector.add(where, "needs open databases, which are closed before", hint)
    instances = plan["instance"] or []
    if instances and all(item["circular_log"] is not False for item in instances):
        hint = "write circular_log = false for the instances whose log is kept until a backup"
        collector.add(where, "has nothing to do: circular logging deletes log anyway", hint)


def _check_clones(index: int, clones: Sequence[Given], plan: Given, collector: Collector) -> None:
    """Clones are of what a target holds, lie elsewhere, and are made by an event of the plan."""
    where = ("phase", index, "clones")
    holding = [event for event in plan["event"] or [] if event["hold_writes"]]
    if not holding:
        hint = "add an [[event]] with hold_writes = true and the command that takes the snapshot"
        collector.add(where, "are opened, but no event takes a snapshot", hint)
    names = [phase["name"] or phase["kind"] for phase in plan["phase"] or []]
    for event in holding:
        if event["phase"] in names[index:]:
            hint = "stage it in a phase before this one"
            collector.add(where, "are opened before their snapshot is taken", hint)
    hints = ("open clones of records and stores", "leave them out")
    _check_copied(where, "opens clones", hints, plan, collector)
    for place, clone in enumerate(clones):
        _check_clone((*where, place), clone, plan, collector)
    for target in plan["target"] or []:
        has_files = target["modelled"] is None and not is_device(Path(target["path"] or "."))
        if (
            has_files
            and target["path"]
            and not any(_inside(target["path"], clone["of"]) for clone in clones if clone["of"])
        ):
            hint = f'name the mount point that holds it: {{ of = "{target["path"]}", at = "..." }}'
            collector.add(where, f"hold no clone of target {target['name']}", hint)


def _check_clone(
    where: tuple[str | int, ...], clone: Given, plan: Given, collector: Collector
) -> None:
    if not clone["of"] or not clone["at"]:
        return
    for target in plan["target"] or []:
        if not target["path"]:
            continue
        if _inside(clone["at"], target["path"]) or _inside(target["path"], clone["at"]):
            collector.add(
                (*where, "at"),
                f"overlaps target {target['name']}: {target['path']}",
                "let the snapshot be mounted elsewhere: what lies there is opened and recovered",
            )


def _inside(path: str, folder: str) -> bool:
    inner, outer = (Path(whole_path(item)).resolve() for item in (path, folder))
    return inner.is_relative_to(outer)


def _kept_before(phases: Sequence[phase_actions.PhaseSpec]) -> str:
    """Where the last backup was kept."""
    kept = [phase.action.to for phase in phases if isinstance(phase.action, phase_actions.Backup)]
    return next((place for place in reversed(kept) if place is not None), "")


def counter_intervals(plan: Given, collector: Collector) -> dict[str, int]:
    """The stated intervals of the table of counters, by phase.

    None can be shorter than a sample.
    """
    found = {}
    for index, given in enumerate(plan["phase"] or []):
        interval_s, sample_ms = given.get("counter_interval_s"), plan["sample_interval_ms"]
        if interval_s is None or given["kind"] is None:
            continue
        if sample_ms and interval_s * 1000 < sample_ms:
            hint = f"write at least {math.ceil(sample_ms / 1000)}, or lower sample_interval_ms"
            collector.add(("phase", index, "counter_interval_s"), "is shorter than a sample", hint)
        found[given["name"] or given["kind"]] = int(interval_s)
    return found


def _usual(searches: bool) -> list[Given]:
    """The phases of a plan that names none.

    A qualification, after a search where one is asked for.
    """
    kinds = (
        "prepare",
        "warm_up",
        *(("search",) if searches else ()),
        "measure",
        "stop",
        "checksum",
    )
    durations = {"search": settings.SEARCH["duration_s"], "measure": settings.QUALIFYING_DURATION_S}
    return _of_kinds(kinds, durations)


def _of_kinds(kinds: Sequence[str], durations: Mapping[str, float]) -> list[Given]:
    return [
        dict.fromkeys(PHASE_FIELDS) | {"kind": kind, "duration_s": durations.get(kind)}
        for kind in kinds
    ]


def _action(kind: str, given: Given, kept: str) -> phase_actions.PhaseAction:
    def value(key: str, default: Any) -> Any:
        return default if given[key] is None else given[key]

    duration_s = float(value("duration_s", 0.0))
    match kind:
        case "warm_up":
            percent = value("cache_percent", settings.CACHE_WARM_PERCENT)
            return phase_actions.WarmUp(
                kind=kind,
                cache_percent=percent,
                timeout_s=float(value("timeout_s", settings.WARM_UP_TIMEOUT_S)),
            )
        case "precondition":
            wanted = {key: value(key, default) for key, default in settings.PRECONDITION.items()}
            return phase_actions.Precondition(
                kind=kind,
                range_percent=float(wanted["range_percent"]),
                slope_percent=float(wanted["slope_percent"]),
                round_s=float(wanted["round_s"]),
                rounds_max=int(wanted["rounds_max"]),
                window_rounds=int(wanted["window_rounds"]),
            )
        case "measure":
            return phase_actions.Measure(kind=kind, duration_s=duration_s)
        case "search":
            return phase_actions.Search(kind=kind, duration_s=duration_s)
        case "soak":
            return phase_actions.Soak(kind=kind, duration_s=duration_s)
        case "generate_logs":
            timeout_s = float(value("timeout_s", settings.GENERATE_TIMEOUT_S))
            return phase_actions.GenerateLogs(
                kind=kind, logs_count=value("logs", settings.RECOVERY_LOGS), timeout_s=timeout_s
            )
        case "checksum":
            return phase_actions.Checksum(
                kind=kind,
                read_bytes=value("read_kib", settings.CHECKSUM_READ_KIB) * 1024,
                reads_in_flight=value("reads_in_flight", settings.CHECKSUM_READS_IN_FLIGHT),
            )
        case "backup":
            return phase_actions.Backup(
                kind=kind,
                read_bytes=value("read_kib", settings.BACKUP_READ_KIB) * 1024,
                reads_in_flight=value("reads_in_flight", settings.BACKUP_READS_IN_FLIGHT),
                to=ABSENT if given["to"] is None else whole_path(given["to"]),
            )
        case "restore":
            return phase_actions.Restore(
                kind=kind,
                truncate_log=given["truncate_log"] or ABSENT,
                from_=ABSENT if given["clones"] is not None else kept,
                clones=ABSENT
                if given["clones"] is None
                else [
                    phase_actions.CloneOf(
                        of=whole_path(clone["of"] or "/"), at=whole_path(clone["at"] or "/")
                    )
                    for clone in given["clones"]
                ],
                read_bytes=value("read_kib", settings.CHECKSUM_READ_KIB) * 1024,
                reads_in_flight=value("reads_in_flight", settings.CHECKSUM_READS_IN_FLIGHT),
            )
        case "recover":
            return phase_actions.Recover(kind=kind)
        case "audit":
            return phase_actions.Audit(kind=kind)
        case "stop":
            return phase_actions.Stop(kind=kind)
    return phase_actions.Prepare(kind="prepare")
