"""From what a person writes to what is run: `plan.toml` is read, checked and completed to `plan.json`.

A plan is lists of hosts, targets, instances, workloads and phases. Every mistake is reported at once with its line. The
completed plan holds every value, so that it says by itself what was run; its `run` part is exactly what the Rust side
is given, its `judgement` part is what the verdict needs and Rust never sees.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

from plimsoll import settings
from plimsoll.arrays.plan_storage import modelled_storage
from plimsoll.arrays.plan_target import target_array
from plimsoll.arrays.presets import CHANGES
from plimsoll.host.block_devices import is_device
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import Collector, Field, Flag, ListOf, Number, Table, Tables, Text, require_kind
from plimsoll.inputs.toml_lines import LocatedFile, read_located
from plimsoll.plan import hosts as planned_hosts
from plimsoll.plan import load as loads
from plimsoll.plan import scenarios, shared_pages, stop_conditions
from plimsoll.plan.limits import LimitError, parse_limit

MIB = 1024 * 1024
#: Of one part of a path: no file system takes longer ones.
NAME_BYTES_MAX = 255
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
BACKENDS = ("engine", "raw_files")
PHASE_KINDS = (
    "prepare",
    "warm_up",
    "precondition",
    "soak",
    "search",
    "measure",
    "backup",
    "generate_logs",
    "recover",
    "stop",
    "checksum",
)
IO_METHODS = ("auto", "io_uring", "libaio", "threads")
DURABLE_WRITES = ("faster", "dsync", "fdatasync")
PAGE_KIB = (4, 8, 16, 32)

HOST_FIELDS = {"name": Field(Text(), required=True, meaning="what to call the machine")}

TARGET_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the storage"),
    "path": Field(
        Text(), meaning="the directory that is put to the test, or a whole block device; missing only beside `modelled`"
    ),
    "modelled": Field(
        Text(),
        meaning="in the place of `path`, an array to be simulated: a preset, FILE.toml or FILE.toml#NAME; every figure is "
        "then MODELLED",
    ),
    "changes": Field(
        Table(CHANGES), meaning='figures of the modelled array to change: { level = "RAID 10", sets = [8] }'
    ),
    "log_path": Field(Text(), meaning="a directory for the logs, if they lie elsewhere; a block device needs one"),
    "host": Field(Text(), meaning="the machine it is attached to; the first one if left out"),
    "design_used_percent": Field(
        Number(1, 100), meaning="how full the design fills the storage; a test far below it is warned of"
    ),
    "rated_endurance_tb": Field(
        Number(0.001, 1e9), meaning="TB its drives may be written in their life, for the share a run takes"
    ),
}

INSTANCE_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the instance; also the name of its directory"),
    "target": Field(Text(), meaning="the storage it lies on; the first one if left out"),
    "edition": Field(Text(tuple(settings.editions())), meaning="whose habits it has"),
    "backend": Field(Text(BACKENDS), meaning="what stands behind it"),
    "weight": Field(Number(0.001, 1000), meaning="its share of a load that works on several instances; 1 if left out"),
    "databases": Field(Number(1, 250, whole=True), meaning="databases that share its log and cache"),
    "database_size_mib": Field(Number(64, 64 * 1024 * 1024, whole=True), meaning="size of each database when prepared"),
    "page_kib": Field(Number(4, 32, whole=True), meaning="page size: 4, 8, 16 or 32"),
    "record_bytes": Field(Number(300, 8000, whole=True), meaning="bytes of a record"),
    "vacancy_percent": Field(
        Number(0, 90, whole=True), meaning="share of leaf pages with room for another record when prepared"
    ),
    "compressible_percent": Field(Number(0, 100, whole=True), meaning="share of the content a compressor could remove"),
    "duplicate_percent": Field(
        Number(0, 99, whole=True),
        meaning="share of the prepared pages that are duplicates: each is the same in all databases of the plan that state this",
    ),
    "cache_mib_min": Field(Number(1, 1024 * 1024, whole=True), meaning="the cache never shrinks below this"),
    "cache_mib_max": Field(
        Number(1, 1024 * 1024, whole=True),
        meaning="the cache of the instance never grows above this; the edition's for each database if left out",
    ),
    "log_framing": Field(Text(("sector_512", "segment_4096")), meaning="how log records are framed on disk"),
    "checkpoint_depth_mib": Field(Number(1, 65536, whole=True), meaning="log that recovery may need"),
    "circular_log": Field(Flag(), meaning="whether logs before the checkpoint are deleted"),
    "copies": Field(Number(1, 16, whole=True), meaning="copies of each database; each further one reads the log back"),
    "maintenance": Field(Flag(), meaning="whether background maintenance runs"),
    "maintenance_throttle_ms": Field(Number(0, 60_000, whole=True), meaning="its pause before each read"),
    "maintenance_read_kib": Field(Number(4, 4096, whole=True), meaning="length of its reads"),
    "page_images": Field(Flag(), meaning="whether torn pages can be repaired from the log"),
    "hold_checkpoint": Field(
        Flag(), meaning="whether the checkpoint stays, so that a crash leaves all the log; yes where a phase recovers"
    ),
}

WORKLOAD_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the load"),
    "instances": Field(ListOf(Text(), 1), meaning="the instances it works on; all of them if left out"),
    "load": Field(Table(loads.LOAD_FIELDS), meaning="how hard it presses, in exactly one way: { sessions = 3 }"),
    "sluggish": Field(Number(0, 1000), meaning="think time as a multiple of service time"),
    "insert_percent": Field(Number(0, 100, whole=True), meaning="share of new records"),
    "delete_percent": Field(Number(0, 100, whole=True), meaning="share of removed records"),
    "replace_percent": Field(Number(0, 100, whole=True), meaning="share of rewritten records"),
    "read_percent": Field(Number(0, 100, whole=True), meaning="share of read records"),
    "lazy_commit_percent": Field(Number(0, 100, whole=True), meaning="share of commits that do not wait for the log"),
    "folder_records": Field(
        Number(0, 1_000_000_000, whole=True),
        meaning="records of the folder a session works in; 0 for the whole database",
    ),
    "batch_operations": Field(
        Number(1, 1_000_000, whole=True), meaning="operations before a session goes to another folder"
    ),
    "hot_percent": Field(Number(1, 99, whole=True), meaning="share of the records that are hot; none if left out"),
    "hot_access_percent": Field(
        Number(1, 100, whole=True), meaning="share of the operations on records that go to the hot ones"
    ),
    "replies": Field(Flag(), meaning="whether new records go beside records just read, where there is room"),
}

PHASE_FIELDS = {
    "name": Field(Text(), meaning="what to call the phase; its kind if left out"),
    "kind": Field(Text(PHASE_KINDS), required=True, meaning="what it does"),
    "workloads": Field(
        ListOf(Text()), meaning="loads that run in it; all of them in warm_up, search and measure if left out"
    ),
    "duration_s": Field(Number(1, 30 * 86400), meaning="how long to measure or to soak, or to search at most"),
    "round_s": Field(Number(1, 86400), meaning="length of a round of preconditioning; 60 if left out"),
    "rounds_max": Field(Number(2, 10_000, whole=True), meaning="rounds at most; 25 if left out"),
    "window_rounds": Field(Number(2, 100, whole=True), meaning="rounds that must keep steady together; 5 if left out"),
    "range_percent": Field(Number(0.1, 1000), meaning="how far these may lie apart, of their mean; 20 if left out"),
    "slope_percent": Field(Number(0.1, 1000), meaning="how much the line through them may slope; 10 if left out"),
    "logs": Field(Number(1, 100_000, whole=True), meaning="logs of 1 MiB that every instance has to write"),
    "timeout_s": Field(Number(1, 30 * 86400), meaning="how long to wait for a warm cache or for the logs"),
    "cache_percent": Field(Number(0, 100, whole=True), meaning="how full a warm cache is"),
    "counter_interval_s": Field(
        Number(1, 3600, whole=True),
        meaning="interval of the table of counters; as published if left out: 15, checksum and backup 30, recovery 2",
    ),
    "read_kib": Field(Number(4, 4096, whole=True), meaning="length of backup or checksum reads"),
    "reads_in_flight": Field(Number(1, 4096, whole=True), meaning="backup or checksum reads of each database at once"),
}

PLAN_FIELDS = {
    "schema_version": Field(Number(1, 1, whole=True), required=True, meaning="write schema_version = 1"),
    "name": Field(Text(), default="run", meaning="what to call the run"),
    "description": Field(Text(), default=None, meaning="a sentence for the report"),
    "test": Field(Text(tuple(settings.QUALIFYING_S)), default=settings.RUN_DEFAULTS["test"], meaning="kind of test"),
    "limits": Field(
        Text(tuple(settings.limits()["sets"])), default=settings.RUN_DEFAULTS["limits"], meaning="limit set"
    ),
    "required_iops": Field(Number(0, 1e9), default=None, meaning="database IOPS that must be reached"),
    "stated_limits": Field(
        ListOf(Text()), default=[], meaning='further limits on fields of the summary: ["log_write_latency_ms_p99<5"]'
    ),
    "mailbox_profile": Field(
        Table(scenarios.MAILBOX_FIELDS), meaning="sizes and load from users, quota and IOPS of a user"
    ),
    "disk_throughput": Field(Table(scenarios.THROUGHPUT_FIELDS), meaning="sizes and load from shares of the volumes"),
    "source": Field(
        Text(("any", "new", "existing", "restored")),
        meaning="databases that are there, or new ones where none are (any); always new ones; only those that are there; a saved set",
    ),
    "restore_from": Field(
        Text(), meaning="the saved set that is restored before the run; see `plimsoll prepare --save`"
    ),
    "seed": Field(
        Number(0, 2**53, whole=True), default=settings.RUN_DEFAULTS["seed"], meaning="decides keys and content"
    ),
    "max_iops": Field(Number(1, 1e9), meaning="reads and writes per second the run does at most, on shared storage"),
    "max_mib_per_s": Field(Number(1, 1e9), meaning="MiB per second the run reads and writes at most"),
    "stop_if": Field(ListOf(Text()), default=[], meaning="conditions that stop the run, as in the command's --stop-if"),
    "io_method": Field(Text(IO_METHODS), default=settings.RUN_DEFAULTS["io_method"], meaning="how I/O is done"),
    "durable_writes": Field(
        Text(DURABLE_WRITES),
        default=settings.RUN_DEFAULTS["durable_writes"],
        meaning="how a durable write reaches stable storage: with RWF_DSYNC, by a fdatasync after it, or the faster of both",
    ),
    "sample_interval_ms": Field(Number(10, 60_000, whole=True), default=settings.RUN_DEFAULTS["sample_interval_ms"]),
    "hung_after_ms": Field(Number(100, 3_600_000, whole=True), default=settings.RUN_DEFAULTS["hung_after_ms"]),
    "sessions_max": Field(
        Number(1, 1_000_000, whole=True),
        default=settings.ARRIVALS["sessions_max"],
        meaning="open transactions at once, over all loads that arrive by a schedule",
    ),
    "jetstress_fields": Field(
        ListOf(Text()),
        default=[],
        meaning="fields of a JetstressConfig.xml that mean nothing here, kept for its export",
    ),
    "host": Field(Tables(HOST_FIELDS, unique="name"), default=[], meaning="machines"),
    "target": Field(Tables(TARGET_FIELDS, 1, unique="name"), required=True, meaning="storage under test"),
    "instance": Field(Tables(INSTANCE_FIELDS, 1, unique="name"), required=True, meaning="engine instances"),
    "workload": Field(Tables(WORKLOAD_FIELDS, unique="name"), default=[], meaning="loads"),
    "phase": Field(Tables(PHASE_FIELDS), default=[], meaning="what happens, in order"),
}

READERS = {"requirements": "plimsoll size", "catalogue": "plimsoll select"}


def read_plan(path: Path, host: str | None = None) -> dict[str, Any]:
    """Read, check and complete a plan file.

    Args:
        path: a TOML file with `kind = "plan"`.
        host: which of the plan's hosts this is, where there are several.

    Returns:
        The completed plan, ready to be written as `plan.json`.

    Raises:
        InputError: with every mistake found.
    """
    document = read_located(path)
    require_kind(document, ("plan",), READERS)
    return complete_plan(document, host)


def plan_of_options(data: dict[str, Any]) -> dict[str, Any]:
    """Complete a plan that a command made of its options.

    Raises:
        InputError: with every mistake found.
    """
    return complete_plan(LocatedFile("options", {"kind": "plan", "schema_version": 1, **data}, {}))


def complete_plan(document: LocatedFile, host: str | None = None) -> dict[str, Any]:
    """Check a located plan, fill in every default, and take out what other hosts carry out.

    Raises:
        InputError: with every mistake found.
    """
    collector = Collector(document)
    content = {key: value for key, value in document.data.items() if key != "kind"}
    plan = collector.table(content, PLAN_FIELDS, ())
    scenarios.apply(plan, dict.fromkeys(WORKLOAD_FIELDS) | {"name": "mix"}, collector)
    if plan["host"] == []:
        plan["host"] = [{"name": "local"}]
    run = {
        "schema_version": settings.SCHEMA_VERSION,
        **{key: plan[key] for key in ("seed", "sample_interval_ms", "hung_after_ms", "io_method", "durable_writes")},
        "max_iops": _rate(plan["max_iops"]),
        "max_mib_per_s": _rate(plan["max_mib_per_s"]),
        # Consent is typed for each run and never read from a file.
        "destroy_serials": [],
        "hosts": plan["host"],
        "targets": _targets(plan, collector),
        "instances": _instances(plan, collector),
        "workloads": _workloads(plan, collector),
        "phases": _phases(plan, collector),
    }
    array = target_array(plan, run["instances"], collector)
    loads.mistakes_of_phases(plan, run["workloads"], collector)
    shared_pages.share_leaves(plan, run["instances"], collector)
    names = [str(item["name"]) for item in plan["host"]]
    this_host = planned_hosts.choose_host(names, host, collector)
    if len(names) > 1:
        planned_hosts.check_hosts(run | {"modelled": array}, collector)
    stated = _stated_limits(plan["stated_limits"] or [], collector)
    for index, text in enumerate(plan["stop_if"]):
        try:
            stop_conditions.parse(text)
        except stop_conditions.ConditionError as error:
            collector.add(("stop_if", index), str(error), error.hint)
    intervals = _counter_intervals(plan, collector)
    source = _source(plan, collector)
    collector.raise_if_any()
    rated = {item["name"]: item["rated_endurance_tb"] for item in plan["target"] if item["rated_endurance_tb"]}
    judgement = {key: plan[key] for key in ("limits", "test", "required_iops")} | {"stated_limits": stated}
    if array is not None:
        run["modelled"] = modelled_storage(array, run["instances"])
        judgement["modelled"] = array
    if len(names) > 1:
        # What is required of all hosts no single one can be judged by.
        judgement["hosts"] = {"all": names, "required_iops": judgement["required_iops"]}
        judgement["required_iops"] = None
        run = planned_hosts.part_of(run, str(this_host))
    if judgement["required_iops"] is None:
        judgement["required_iops"] = _iops_of_users(plan, run["workloads"])
    return {
        "kind": "plan",
        "schema_version": settings.SCHEMA_VERSION,
        "name": plan["name"],
        "description": plan["description"],
        "stop_if": plan["stop_if"],
        "source": source,
        "run": _whole(run),
        "judgement": {
            **judgement,
            "rated_endurance_tb": rated,
            "counter_interval_s": intervals,
            "design_used_percent": {
                item["name"]: item["design_used_percent"] for item in plan["target"] if item["design_used_percent"]
            },
            "duplicate_percent": max(item["duplicate_percent"] or 0 for item in plan["instance"]),
            "editions": _editions_of(plan, run["instances"]),
        },
    }


def _source(plan: dict[str, Any], collector: Collector) -> dict[str, Any]:
    """Where the databases of a run come from."""
    kind, directory = plan["source"], plan["restore_from"]
    if kind == "restored" and directory is None:
        collector.add(("source",), "is restored, but nothing says from where", "write restore_from = DIR")
    if directory is not None and kind not in (None, "restored"):
        collector.add(("restore_from",), f"means nothing beside source {kind}", "leave out one of them")
    usual = "any" if directory is None else "restored"
    return {"kind": kind or usual, "from": str(Path(directory).expanduser().absolute()) if directory else None}


def _stated_limits(given: list[str], collector: Collector) -> list[str]:
    """The stated limits as they are shown, each checked against the fields that a summary will have."""
    found = []
    for index, text in enumerate(given):
        try:
            found.append(parse_limit(text).text)
        except LimitError as error:
            collector.add(("stated_limits", index), error.message, error.hint)
    return found


def _rate(value: float | None) -> float | None:
    return None if value is None else float(value)


#: Keys whose whole values stay fractions; so do times.
_FRACTIONS = ("sluggish", "weight", "range_percent", "slope_percent")


def _whole(value: Any, key: str = "") -> Any:
    """Whole numbers written as 3.0 become 3, because the Rust side takes no fractions where it counts."""
    if isinstance(value, dict):
        return {name: _whole(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item, key) for item in value]
    if isinstance(value, float) and value.is_integer() and not key.endswith("_s") and key not in _FRACTIONS:
        return int(value)
    return value


def _edition_name(instance: dict[str, Any]) -> str:
    return str(instance.get("edition") or settings.INSTANCE_DEFAULTS["edition"])


def _named(wanted: str | None, names: list[str], path: tuple[str | int, ...], collector: Collector) -> str:
    """A reference to another list, checked; the first name when left out."""
    if wanted is None:
        return names[0] if names else ""
    if wanted not in names:
        collector.add(path, f'names "{wanted}", which is not in the plan', nearest_names(wanted, names))
    return wanted


def _targets(plan: dict[str, Any], collector: Collector) -> list[dict[str, Any]]:
    hosts = [host["name"] for host in plan["host"]]
    for index, target in enumerate(plan["target"] or []):
        for key in ("path", "log_path"):
            if any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in Path(target[key] or "").parts):
                collector.add(("target", index, key), f"holds a name of more than {NAME_BYTES_MAX} bytes", "shorten it")
    return [
        {
            "name": target["name"],
            "host": _named(target["host"], hosts, ("target", index, "host"), collector),
            "path": str(_path_of(target)),
        }
        for index, target in enumerate(plan["target"] or [])
    ]


#: Where modelled storage seems to lie; nothing is ever written there.
MODELLED_ROOT = Path("/modelled")


def _path_of(target: dict[str, Any]) -> Path:
    if target.get("modelled"):
        return MODELLED_ROOT / str(target.get("name"))
    return Path(target.get("path") or ".").expanduser().absolute()


def _check_devices(plan: dict[str, Any], collector: Collector) -> None:
    """A whole block device holds one database of the engine and nothing else."""
    first_target = next((target["name"] for target in plan["target"] or []), None)
    for number, target in enumerate(plan["target"] or []):
        if target["modelled"] or not is_device(_path_of(target)):
            continue
        if target["log_path"] is None:
            hint = "name a directory on a file system for the log, the checkpoint and the flush map"
            collector.add(("target", number, "log_path"), "is missing, but `path` is a block device", hint)
        on_it = [
            (index, instance)
            for index, instance in enumerate(plan["instance"] or [])
            if (instance["target"] or first_target) == target["name"]
        ]
        for index, _ in on_it[1:]:
            collector.add(
                ("instance", index, "target"), f'is "{target["name"]}", a device that is taken', "add a target"
            )
        for index, instance in on_it:
            if (instance["databases"] or 1) > 1:
                collector.add(
                    ("instance", index, "databases"), "is above 1, but the target is a block device", "write 1"
                )
            if instance["backend"] == "raw_files":
                collector.add(("instance", index, "backend"), "needs a directory, but the target is a block device")


def _instances(plan: dict[str, Any], collector: Collector) -> list[dict[str, Any]]:
    targets = {target["name"]: target for target in plan["target"] or []}
    _check_devices(plan, collector)
    recovers = any(phase["kind"] == "recover" for phase in plan["phase"])
    return [
        _instance(index, given, plan["seed"], targets, collector, recovers=recovers)
        for index, given in enumerate(plan["instance"] or [])
    ]


def _instance(
    index: int, given: dict[str, Any], seed: int, targets: dict[str, Any], collector: Collector, *, recovers: bool
) -> dict[str, Any]:
    name = given["name"] or "unnamed"
    if not _NAME.fullmatch(name):
        collector.add(("instance", index, "name"), "cannot be the name of a directory", "use letters, digits, . _ -")
    edition = settings.editions()[_edition_name(given)]
    value = {
        **edition,
        **settings.INSTANCE_DEFAULTS,
        **{key: value for key, value in given.items() if value is not None},
    }
    if edition["cache_scope"] == "database":
        # What the edition says, it says of one database; what the plan says, it says of the instance.
        for key in ("cache_mib_min", "cache_mib_max"):
            if given[key] is None:
                value[key] = edition[key] * value["databases"]
    page_kib = value.get("page_kib", edition["page_bytes"] // 1024)
    if page_kib not in PAGE_KIB:
        collector.add(("instance", index, "page_kib"), f"is {page_kib}", "write 4, 8, 16 or 32")
    if value["cache_mib_min"] > value["cache_mib_max"]:
        if given["cache_mib_min"] is not None:
            collector.add(("instance", index, "cache_mib_min"), "is above cache_mib_max", "lower it")
        value["cache_mib_min"] = value["cache_mib_max"]
    target_name = _named(given["target"], list(targets), ("instance", index, "target"), collector)
    target = targets.get(target_name, {})
    path = _path_of(target)
    log_root = path.with_name(f"{path.name} logs") if target.get("modelled") else path
    log_directory = Path(target.get("log_path") or log_root).expanduser().absolute() / name
    has_cache = value["backend"] == "engine"
    on_device = is_device(path)
    # A device has no inside: whatever is not the database lies with the logs.
    directory = log_directory if on_device else path / name
    suffix = "edb" if has_cache else "dat"
    return {
        "name": name,
        "target": target_name,
        "backend": value["backend"],
        "directory": str(directory),
        "log_directory": str(log_directory),
        "unfinished": False,
        "weight": None if given["weight"] is None else float(given["weight"]),
        "page_bytes": page_kib * 1024,
        "databases": [
            {
                "file_name": str(path) if on_device else f"database{number:03}.{suffix}",
                "size_bytes": value["database_size_mib"] * MIB,
                "seed": seed * 1_000_003 + index * 1009 + number,
                "record_bytes": value["record_bytes"],
                "vacancy_percent": value["vacancy_percent"] if has_cache else None,
                "compressible_percent": value["compressible_percent"],
                "sharing": None,
                "existing_records": None,
            }
            for number in range(1, value["databases"] + 1)
        ],
        "cache_bytes_min": value["cache_mib_min"] * MIB if has_cache else 0,
        "cache_bytes_max": value["cache_mib_max"] * MIB if has_cache else 0,
        "checkpoint_depth_bytes": value["checkpoint_depth_mib"] * MIB,
        "circular_log": value["circular_log"],
        "hold_checkpoint": value.get("hold_checkpoint", recovers) if has_cache else None,
        "log_framing": value["log_framing"],
        "page_images": value["page_images"],
        "copies_count": value["copies"],
        "maintenance": {
            "throttle_ms": value["maintenance_throttle_ms"],
            "read_bytes": value["maintenance_read_kib"] * 1024,
        }
        if value["maintenance"] and has_cache
        else None,
        **settings.ENGINE_SIZES,
    }


def _workloads(plan: dict[str, Any], collector: Collector) -> list[dict[str, Any]]:
    names = [instance["name"] for instance in plan["instance"] or []]
    given_list = plan["workload"] or [dict.fromkeys(WORKLOAD_FIELDS) | {"name": "mix"}]
    workloads = []
    for index, given in enumerate(given_list):
        instances = given["instances"] or names
        for name in instances:
            _named(name, names, ("workload", index, "instances"), collector)
        first: dict[str, Any] = next((item for item in plan["instance"] or [] if item["name"] in instances), {})
        edition = settings.editions()[_edition_name(first)]
        value = {**edition, **{key: value for key, value in given.items() if value is not None}}
        load = loads.complete_load(given["load"], _edition_name(first), plan, ("workload", index, "load"), collector)
        shares = [f"{kind}_percent" for kind in ("insert", "delete", "replace", "read")]
        total = sum(value[share] for share in shares)
        if total != 100:
            collector.add(
                ("workload", index), f"has shares that add up to {total} %", "insert, delete, replace and read make 100"
            )
        workloads.append(
            {
                "name": given["name"],
                "instances": instances,
                "mix": {share: value[share] for share in (*shares, "lazy_commit_percent")},
                "locality": {
                    **{key: value[key] for key in ("folder_records", "batch_operations", "replies")},
                    **_hot_set(given, index, collector),
                },
                "load": load,
                "sluggish": value["sluggish"],
            }
        )
    return workloads


def _hot_set(given: dict[str, Any], index: int, collector: Collector) -> dict[str, int]:
    """The hot set of a workload; both of its keys or none."""
    keys = ("hot_percent", "hot_access_percent")
    stated = {key: given[key] for key in keys if given.get(key) is not None}
    if len(stated) == 1:
        missing = next(key for key in keys if key not in stated)
        collector.add(
            ("workload", index, missing), "is missing", "say how many records are hot and how much goes to them"
        )
        return {}
    if stated and stated["hot_access_percent"] < stated["hot_percent"]:
        hint = "hot records get more than their share; exchange the two"
        collector.add(("workload", index, "hot_access_percent"), "is below hot_percent", hint)
    return stated


_PHASE_KEYS = {
    "prepare": (),
    "warm_up": ("timeout_s", "cache_percent", "workloads"),
    "precondition": (*settings.PRECONDITION, "workloads"),
    "soak": ("duration_s", "workloads"),
    "search": ("duration_s", "workloads"),
    "measure": ("duration_s", "workloads"),
    "backup": ("read_kib", "reads_in_flight", "workloads"),
    "generate_logs": ("logs", "timeout_s", "workloads"),
    "recover": (),
    "stop": (),
    "checksum": ("read_kib", "reads_in_flight"),
}
#: Phases that need the engine: raw files have neither a log nor a backup of their own.
_ENGINE_KINDS = ("backup", "generate_logs", "recover")
#: Phases that workloads run in when nothing is said of them, and those they may run in.
_LOADED_KINDS = ("warm_up", "precondition", "soak", "search", *settings.MEASURED_KINDS)


def _phases(plan: dict[str, Any], collector: Collector) -> list[dict[str, Any]]:
    names = [workload["name"] for workload in plan["workload"]] or ["mix"]
    usual = _usual_phases(any((workload["load"] or {}).get("search") for workload in plan["workload"]))
    phases = []
    for index, given in enumerate(plan["phase"] or usual):
        kind = given["kind"]
        if kind is None:
            continue
        for key, value in given.items():
            if value is not None and key not in ("name", "kind", "counter_interval_s", *_PHASE_KEYS[kind]):
                collector.add(("phase", index, key), f"means nothing in a phase of kind {kind}", "remove it")
        known = any(mistake.where == f"phase[{index + 1}].duration_s" for mistake in collector.mistakes)
        if kind in ("measure", "search", "soak") and given["duration_s"] is None and not known:
            collector.add(("phase", index, "duration_s"), "is missing", f"say how long to {kind}")
        if kind == "precondition":
            window, rounds = (given[key] or settings.PRECONDITION[key] for key in ("window_rounds", "rounds_max"))
            if window > rounds:
                key = "window_rounds" if given["window_rounds"] is not None else "rounds_max"
                collector.add(("phase", index, key), "leaves no window of rounds", "let rounds_max be the larger one")
        for name in given["workloads"] or []:
            _named(name, names, ("phase", index, "workloads"), collector)
        if kind in _ENGINE_KINDS and any(item["backend"] == "raw_files" for item in plan["instance"] or []):
            collector.add(("phase", index, "kind"), f"{kind} needs the engine, but an instance is raw files")
        usual_loads = names if kind in _LOADED_KINDS else []
        workloads = given["workloads"] if given["workloads"] is not None else usual_loads
        action = _phase_action(kind, given)
        phases.append({"name": given["name"] or kind, "action": action, "workloads": workloads})
    return phases


def _counter_intervals(plan: dict[str, Any], collector: Collector) -> dict[str, int]:
    """The stated intervals of the table of counters, by phase; none can be shorter than a sample."""
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


def _editions_of(plan: dict[str, Any], instances: list[dict[str, Any]]) -> list[str]:
    kept = {instance["name"] for instance in instances}
    return [_edition_name(instance) for instance in plan["instance"] if instance["name"] in kept]


def _iops_of_users(plan: dict[str, Any], workloads: list[dict[str, Any]]) -> float | None:
    """What loads stated in users must make: a test of a thousand users is passed by serving them."""
    in_users = {given["name"] for given in plan["workload"] if (given["load"] or {}).get("users")}
    stated = [workload["load"]["target_iops"] for workload in workloads if workload["name"] in in_users]
    return sum(stated) if stated and len(stated) == len(workloads) else None


def _usual_phases(searches: bool) -> list[dict[str, Any]]:
    """The phases of a plan that names none: a qualification, after a search where one is asked for."""
    kinds = ("prepare", "warm_up", *(("search",) if searches else ()), "measure", "stop", "checksum")
    durations = {"search": settings.SEARCH["duration_s"], "measure": settings.QUALIFYING_DURATION_S}
    return [dict.fromkeys(PHASE_FIELDS) | {"kind": kind, "duration_s": durations.get(kind)} for kind in kinds]


def _phase_action(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    def value(key: str, default: Any) -> Any:
        return default if given[key] is None else given[key]

    match kind:
        case "warm_up":
            percent = value("cache_percent", settings.CACHE_WARM_PERCENT)
            timeout_s = float(value("timeout_s", settings.WARM_UP_TIMEOUT_S))
            return {"kind": kind, "cache_percent": percent, "timeout_s": timeout_s}
        case "precondition":
            wanted = {key: value(key, default) for key, default in settings.PRECONDITION.items()}
            return {
                "kind": kind,
                **{key: float(wanted[key]) for key in ("range_percent", "slope_percent", "round_s")},
                **{key: int(wanted[key]) for key in ("rounds_max", "window_rounds")},
            }
        case "measure" | "search" | "soak":
            return {"kind": kind, "duration_s": float(value("duration_s", 0.0))}
        case "generate_logs":
            timeout_s = float(value("timeout_s", settings.GENERATE_TIMEOUT_S))
            return {"kind": kind, "logs_count": value("logs", settings.RECOVERY_LOGS), "timeout_s": timeout_s}
        case "checksum" | "backup":
            checksum = kind == "checksum"
            length = value("read_kib", settings.CHECKSUM_READ_KIB if checksum else settings.BACKUP_READ_KIB)
            read_bytes = length * 1024
            usual = settings.CHECKSUM_READS_IN_FLIGHT if checksum else settings.BACKUP_READS_IN_FLIGHT
            in_flight = value("reads_in_flight", usual)
            return {"kind": kind, "read_bytes": read_bytes, "reads_in_flight": in_flight}
    return {"kind": kind}
