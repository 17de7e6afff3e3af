"""From what a person writes to what is run.

`plan.toml` is read, checked and completed to `plan.json`.

A plan is lists of hosts, targets, instances, workloads and phases. Every mistake is reported at
once with its line. The completed plan holds every value, so that it says by itself what was run;
its `run` part is exactly what the Rust side is given, its `judgement` part is what the verdict
needs and Rust never sees.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from plimsoll import settings
from plimsoll.arrays.plan_storage import modelled_storage
from plimsoll.arrays.plan_target import target_array
from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT, Document
from plimsoll.documents.plan import (
    FilesAsked,
    HomesAsked,
    HostsOfPlan,
    Judgement,
    MailAsked,
    Plan,
    Source,
)
from plimsoll.files.paths import StrPath, whole_path
from plimsoll.host.block_devices import is_device
from plimsoll.inputs.schema import (
    READERS,
    Collector,
    Given,
    require_kind,
)
from plimsoll.inputs.toml_lines import LocatedFile, read_located
from plimsoll.plan import (
    events,
    lagged_copies,
    nodes,
    phases,
    repeats,
    scenarios,
    shared_pages,
    starts,
    stop_conditions,
    watch,
    windows,
)
from plimsoll.plan import hosts as planned_hosts
from plimsoll.plan import load as loads
from plimsoll.plan.fields import PLAN_FIELDS, WORKLOAD_FIELDS
from plimsoll.plan.follow_ons import without_follow_ons
from plimsoll.plan.limits import LimitError, parse_limit
from plimsoll.plan.places import NEEDS_DIRECTORY, check_devices, note_servers, path_of
from plimsoll.plan.threads import mistakes_of_threads, thread_count
from plimsoll.workloads import distribution, records
from plimsoll.workloads.families import check_workload_keys, family_of, foreign_keys
from plimsoll.workloads.files import fields as files
from plimsoll.workloads.homes import fields as homes
from plimsoll.workloads.mail import fields as mail
from plimsoll.workloads.mail import stored
from plimsoll.workloads.store import fields as store

MIB = 1024 * 1024
#: Of one part of a path: no file system takes longer ones.
NAME_BYTES_MAX = 255
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
PAGE_KIB = (4, 8, 16, 32)


def read_plan(path: StrPath, host: str | None = None) -> Plan:
    """Read, check and complete a plan file.

    Args:
        path: a TOML file with `kind = "plan"`.
        host: which of the plan's hosts this is, where there are several.

    Returns:
        The completed plan, ready to be written as `plan.json`.

    Raises:
        InputError: with every mistake found.
    """
    path = Path(path)
    document = read_located(path)
    require_kind(document, ("plan",), READERS)
    return complete_plan(document, host)


def plan_of_options(data: Mapping[str, object]) -> Plan:
    """Complete a plan that a command made of its options.

    Raises:
        InputError: with every mistake found.
    """
    return complete_plan(LocatedFile("options", {"kind": "plan", "schema_version": 1, **data}, {}))


def complete_plan(document: LocatedFile, host: str | None = None) -> Plan:
    """Check a located plan, fill in every default, and take out what other hosts carry out.

    Raises:
        InputError: with every mistake found.
    """
    collector = Collector(document)
    content = {key: value for key, value in document.data.items() if key != "kind"}
    plan = collector.table(content, PLAN_FIELDS, ())
    of_values = len(collector.mistakes)
    plan["instance"] = [
        store.take_address(given, index, collector)
        for index, given in enumerate(plan["instance"] or [])
    ]
    _usual_of_family(plan, content)
    scenarios.apply(plan, dict.fromkeys(WORKLOAD_FIELDS) | {"name": "mix"}, collector)
    if plan["host"] == []:
        plan["host"] = [{"name": "local"}]
    run = spec.RunSpec(
        schema_version=settings.SCHEMA_VERSION,
        seed=plan["seed"],
        sample_interval_ms=plan["sample_interval_ms"],
        hung_after_ms=plan["hung_after_ms"],
        io_method=plan["io_method"],
        durable_writes=plan["durable_writes"],
        max_iops=_rate(plan["max_iops"]),
        max_mib_per_s=_rate(plan["max_mib_per_s"]),
        threads=thread_count(plan["threads"], len(plan["instance"] or ())) or ABSENT,
        pin=plan["pin"] or ABSENT,
        # Consent is typed for each run and never read from a file.
        destroy_serials=(),
        hosts=[spec.HostSpec(name=item["name"]) for item in plan["host"]],
        targets=_targets(plan, collector),
        instances=_instances(plan, collector),
        workloads=(),
        phases=phases.completed(plan, collector),
    )
    workloads, files_asked, homes_asked, mail_asked = _workloads(plan, run.instances, collector)
    run = run.replace(
        workloads=workloads,
        phases=starts.one_after_the_other(run.phases, plan["workload"], collector),
    )
    array = target_array(plan, run.instances, collector)
    if array is None:
        mistakes_of_threads(run, collector)
    staged = events.completed(plan, run.phases, collector, modelled=array is not None)
    cluster, staged = nodes.completed(plan, run, staged, collector)
    if cluster is not None:
        run = run.replace(cluster=cluster)
    array = None if array is None else events.with_faults(array, plan, collector)
    if any(event.hold_s_max is not None for event in staged):
        run = run.replace(can_hold_writes=True)
    loads.mistakes_of_phases(plan, run.workloads, collector)
    load_windows = windows.completed(plan["workload"], run, files_asked, collector)
    run = run.replace(instances=shared_pages.share_leaves(plan, run.instances, collector))
    names = [str(item["name"]) for item in plan["host"]]
    this_host = planned_hosts.choose_host(names, host, collector)
    if len(names) > 1:
        planned_hosts.check_hosts(run, collector, modelled=array is not None)
    stated = _stated_limits(plan["stated_limits"] or [], collector)
    for index, text in enumerate(plan["stop_if"]):
        try:
            stop_conditions.parse(text)
        except stop_conditions.ConditionError as error:
            collector.add(("stop_if", index), str(error), error.hint)
    intervals = phases.counter_intervals(plan, collector)
    source = _source(plan, collector)
    watched = watch.completed(plan, collector)
    collector.mistakes = without_follow_ons(collector.mistakes, of_values)
    collector.raise_if_any()
    if array is not None:
        run = run.replace(modelled=modelled_storage(array, run.instances))
    hosts = ABSENT
    if len(names) > 1:
        # What is required of all hosts no single one can be judged by.
        hosts = HostsOfPlan(all=names, required_iops=plan["required_iops"])
        run = planned_hosts.part_of(run, str(this_host))
    stated_iops = plan["required_iops"]
    required = (
        _required_iops(plan, run, files_asked)
        if hosts is not ABSENT or stated_iops is None
        else stated_iops
    )
    if plan["margin_percent"] and required is None and not stated_iops:
        collector.add(
            ("margin_percent",),
            "means nothing without a required rate",
            "write `required_iops`, or leave it out",
        )
        collector.raise_if_any()
    kept = {instance.name for instance in run.record_instances}
    return Plan(
        kind="plan",
        schema_version=settings.SCHEMA_VERSION,
        name=plan["name"],
        description=plan["description"],
        stop_if=plan["stop_if"],
        source=source,
        run=_whole(run),
        judgement=Judgement(
            limits=plan["limits"],
            test=plan["test"],
            required_iops=required,
            margin_percent=plan["margin_percent"],
            stated_limits=stated,
            modelled=ABSENT if array is None else array,
            hosts=hosts,
            rated_endurance_tb=_of_targets(plan, "rated_endurance_tb"),
            counter_interval_s=intervals,
            design_used_percent=_of_targets(plan, "design_used_percent"),
            log_room_bytes=lagged_copies.rooms(plan) or ABSENT,
            duplicate_percent=max(item["duplicate_percent"] or 0 for item in plan["instance"]),
            editions=[_edition_name(given) for given in plan["instance"] if given["name"] in kept],
            files=files_asked or ABSENT,
            homes=homes_asked or ABSENT,
            mail=mail_asked or ABSENT,
            published=ABSENT if plan["published"] is None else plan["published"],
            load_windows=load_windows or ABSENT,
        ),
        events=staged or ABSENT,
        watch=watched or ABSENT,
        repeat=repeats.completed(plan["repeat"], modelled=array is not None) or ABSENT,
    )


def _of_targets(plan: Given, key: str) -> dict[str, float]:
    """What is stated of targets, by their names."""
    return {item["name"]: item[key] for item in plan["target"] if item[key]}


def _usual_of_family(plan: Given, stated: Given) -> None:
    """What a plan of nothing but files, or stores, gets where it says nothing.

    Its own kind of test and limits.
    """
    instances = plan["instance"] or []
    if instances and all(family_of(item["backend"]) == "files" for item in instances):
        plan["limits"] = stated.get("limits", settings.FILES["limits"])
        plan["test"] = stated.get("test", "files")
    if instances and all(family_of(item["backend"]) == "home_folders" for item in instances):
        plan["limits"] = stated.get("limits", settings.HOMES["limits"])
        plan["test"] = stated.get("test", "files")
    if instances and all(family_of(item["backend"]) == "store" for item in instances):
        plan["test"] = stated.get("test", "store")
    if instances and all(family_of(item["backend"]) == "mail" for item in instances):
        plan["limits"] = stated.get("limits", settings.MAIL["limits"])
        plan["test"] = stated.get("test", "mail")


def _source(plan: Given, collector: Collector) -> Source:
    """Where the databases of a run come from."""
    kind, directory = plan["source"], plan["restore_from"]
    if kind == "restored" and directory is None:
        collector.add(
            ("source",), "is restored, but nothing says from where", "write restore_from = DIR"
        )
    if directory is not None and kind not in (None, "restored"):
        collector.add(
            ("restore_from",), f"means nothing together with source {kind}", "leave out one of them"
        )
    usual = "any" if directory is None else "restored"
    return Source(
        kind=kind or usual,
        from_=whole_path(directory) if directory else None,
    )


def _stated_limits(given: list[str], collector: Collector) -> list[str]:
    """The stated limits as they are shown, each checked against the fields that a summary will
    have.
    """
    found = []
    for index, text in enumerate(given):
        try:
            found.append(parse_limit(text).text)
        except LimitError as error:
            collector.add(("stated_limits", index), error.message, error.hint)
    return found


def _rate(value: float | None) -> float | None:
    return None if value is None else float(value)


D = TypeVar("D", bound=Document)
#: Keys whose whole values stay fractions; so do times.
_FRACTIONS = ("sluggish", "weight", "range_percent", "slope_percent")


def _whole(value: D) -> D:
    """Whole numbers written as 3.0 become 3, because the Rust side takes no fractions where it
    counts.
    """
    return value.replace(**{name: _whole_value(item, name) for name, item in value.given().items()})


def _whole_value(value: object, key: str) -> object:
    if isinstance(value, Document):
        return _whole(value)
    if isinstance(value, tuple):
        return [_whole_value(item, key) for item in value]
    if (
        isinstance(value, float)
        and value.is_integer()
        and not key.endswith("_s")
        and key not in _FRACTIONS
    ):
        return int(value)
    return value


def _edition_name(instance: Given) -> str:
    return str(instance.get("edition") or settings.INSTANCE_DEFAULTS["edition"])


def _targets(plan: Given, collector: Collector) -> list[spec.TargetSpec]:
    note_servers(plan, collector)
    hosts = [host["name"] for host in plan["host"]]
    for index, target in enumerate(plan["target"] or []):
        for key in ("path", "log_path"):
            if any(
                len(os.fsencode(part)) > NAME_BYTES_MAX for part in Path(target[key] or "").parts
            ):
                collector.add(
                    ("target", index, key),
                    f"holds a name of more than {NAME_BYTES_MAX} bytes",
                    "shorten it",
                )
    return [
        spec.TargetSpec(
            name=target["name"],
            host=collector.named(target["host"], hosts, ("target", index, "host")),
            path=str(path_of(target)),
        )
        for index, target in enumerate(plan["target"] or [])
    ]


AnyInstance = (
    spec.RecordsInstance
    | spec.FilesInstance
    | spec.HomesInstance
    | spec.StoreInstance
    | spec.StoreClientInstance
    | spec.MailInstance
    | spec.MailStoreInstance
)


def _instances(plan: Given, collector: Collector) -> list[AnyInstance]:
    targets = {target["name"]: target for target in plan["target"] or []}
    check_devices(plan, collector)
    recovers = any(phase["kind"] == "recover" for phase in plan["phase"])
    return [
        _mail_instance(index, given, plan, targets, collector)
        if given["backend"] in mail.SERVER_BACKENDS
        else _instance(index, given, plan, targets, collector, recovers=recovers)
        for index, given in enumerate(plan["instance"] or [])
    ]


def _place(
    index: int, given: Given, targets: Mapping[str, Given], collector: Collector
) -> tuple[Given, str | None]:
    """What every instance has: its name, where it lies, its weight.

    And the block device that holds it, if one does.
    """
    name = given["name"] or "unnamed"
    if not _NAME.fullmatch(name):
        collector.add(
            ("instance", index, "name"),
            "cannot be the name of a directory",
            "use letters, digits, . _ -",
        )
    target_name = collector.named(given["target"], list(targets), ("instance", index, "target"))
    target = targets.get(target_name, {})
    path = path_of(target)
    log_root = path.with_name(f"{path.name} logs") if target.get("modelled") else path
    log_directory = Path(target.get("log_path") or log_root).expanduser().absolute() / name
    on_device = is_device(path)
    common = {
        "name": name,
        "target": target_name,
        "backend": given["backend"] or settings.INSTANCE_DEFAULTS["backend"],
        # A device has no inside: whatever is not the database lies with the logs.
        "directory": str(log_directory if on_device else path / name),
        "log_directory": str(log_directory),
        "unfinished": False,
        "weight": None if given["weight"] is None else float(given["weight"]),
    }
    return common, str(path) if on_device else None


def _loads_on(given: Given, plan: Given) -> list[Given]:
    """The workloads on an instance."""
    names = [item["name"] for item in plan["instance"]]
    return [
        item for item in plan["workload"] or [] if given["name"] in (item["instances"] or names)
    ]


def _mail_instance(
    index: int, given: Given, plan: Given, targets: Mapping[str, Given], collector: Collector
) -> spec.MailInstance:
    """A mail server, whose accounts are those that its users need."""
    common, _ = _place(index, given, targets, collector)
    place = str(path_of(targets.get(common["target"], {"is_server": True})))
    loads_on_it = _loads_on(given, plan)
    users = max((mail.users_of(item) for item in loads_on_it), default=1)
    profile = mail.profile_of(next(iter(loads_on_it), None))
    common |= {"directory": place, "log_directory": place}
    return mail.instance(common, given, users, profile, index, collector)


def _instance(
    index: int,
    given: Given,
    plan: Given,
    targets: Mapping[str, Given],
    collector: Collector,
    *,
    recovers: bool,
) -> AnyInstance:
    seed, source = plan["seed"], plan["source"]
    common, device = _place(index, given, targets, collector)
    if given["backend"] in store.CLIENT_BACKENDS:
        if targets.get(common["target"], {}).get("modelled"):
            hint = "leave modelled out, or leave the address out to have the store on the engine"
            collector.add(
                ("instance", index, "store_address"), "is outside of a modelled array", hint
            )
        place = ("instance", index)
        foreign_keys(
            given, "a store that is not on the engine", store.CLIENT_KEYS, place, collector
        )
        # Of a server nothing lies here but what is stated of its storage.
        storage = str(path_of(targets.get(common["target"], {"is_server": True})))
        common |= {"directory": storage, "log_directory": storage}
        return store.client_instance(common, given, seed, index, source, collector)
    if family_of(given["backend"]) == "files":
        files.instance_mistakes(given, index, collector)
        return files.instance(common, given, seed, index, device)
    if family_of(given["backend"]) == "home_folders":
        if device:
            collector.add(("instance", index, "backend"), *NEEDS_DIRECTORY)
        homes.instance_mistakes(given, index, collector)
        loads_on_it = _loads_on(given, plan)
        return homes.instance(common, given, loads_on_it, seed, index, source, collector)
    for keys, what, backend in (
        (files.INSTANCE_FIELDS, "files", "files"),
        (homes.INSTANCE_FIELDS, "home folders", "home_folders"),
    ):
        for key in keys:
            if given[key] is not None:
                collector.add(
                    ("instance", index, key),
                    f"means something only for {what}",
                    f'write backend = "{backend}"',
                )
    is_store = family_of(given["backend"]) == "store"
    is_mail = given["backend"] in mail.STORE_BACKENDS
    for key in mail.OF_SERVERS if is_mail else mail.INSTANCE_FIELDS:
        if given[key] is not None:
            what = "a mail server" if is_mail else "mail"
            hint = 'write backend = "imap"'
            if key in distribution.FIELDS:
                what, hint = "a server with several endpoints", "remove it"
            collector.add(("instance", index, key), f"means something only for {what}", hint)
    for key in ("store_mode", "reviews_per_product"):
        if given[key] is not None and not is_store:
            hint = 'remove it, or write backend = "store"'
            collector.add(("instance", index, key), "means something only for a store", hint)
    if given["store_size"] is not None and not is_store:
        hint = 'write backend = "store"'
        collector.add(("instance", index, "store_size"), "means something only for a store", hint)
    edition = settings.editions()[_edition_name(given)]
    value = {
        **edition,
        **settings.INSTANCE_DEFAULTS,
        **{key: value for key, value in given.items() if value is not None},
    }
    if edition["cache_scope"] == "database":
        # What the edition says, it says of one database; what the plan says, it says of the
        # instance.
        if given["cache_mib_min"] is None:
            value["cache_mib_min"] = edition["cache_mib_min"] * value["databases"]
        if given["cache_mib_max"] is None:
            value["cache_mib_max"] = edition["cache_mib_max"] * value["databases"]
    page_kib = value.get("page_kib", edition["page_bytes"] // 1024)
    if page_kib not in PAGE_KIB:
        collector.add(("instance", index, "page_kib"), f"is {page_kib}", "write 4, 8, 16 or 32")
    if value["cache_mib_min"] > value["cache_mib_max"]:
        if given["cache_mib_min"] is not None:
            collector.add(
                ("instance", index, "cache_mib_min"), "is above cache_mib_max", "lower it"
            )
        value["cache_mib_min"] = value["cache_mib_max"]
    has_cache = value["backend"] != "raw_files"
    suffix = "edb" if has_cache else "dat"
    maintenance = spec.MaintenanceSpec(
        throttle_ms=value["maintenance_throttle_ms"],
        read_bytes=value["maintenance_read_kib"] * 1024,
    )
    shared: Given = (
        common
        | settings.ENGINE_SIZES
        | {
            "page_bytes": page_kib * 1024,
            "cache_bytes_min": value["cache_mib_min"] * MIB if has_cache else 0,
            "cache_bytes_max": value["cache_mib_max"] * MIB if has_cache else 0,
            "checkpoint_depth_bytes": value["checkpoint_depth_mib"] * MIB,
            "circular_log": value["circular_log"],
            "hold_checkpoint": value.get("hold_checkpoint", recovers) if has_cache else None,
            "log_framing": value["log_framing"],
            "page_images": value["page_images"],
            "copies_count": value["copies"],
            "lagged_copies": lagged_copies.completed(given, index, plan, collector),
            "maintenance": maintenance if value["maintenance"] and has_cache else None,
            "long_reader_s": value.get("long_reader_s") if has_cache else None,
        }
    )
    if "version_store_mib" in value:
        shared["version_store_bytes_max"] = value["version_store_mib"] * MIB
    if is_store:
        if device:
            collector.add(("instance", index, "backend"), *NEEDS_DIRECTORY)
        only = store.database(given, seed, index, f"database001.{suffix}", collector)
        return spec.StoreInstance(**shared, databases=[only])
    if is_mail:
        if device:
            collector.add(("instance", index, "backend"), *NEEDS_DIRECTORY)
        loads_on_it = _loads_on(given, plan)
        return stored.instance(
            shared,
            given,
            max((mail.users_of(item) for item in loads_on_it), default=1),
            mail.profile_of(next(iter(loads_on_it), None)),
            index,
            seed,
            collector,
            searches=any(mail.searches(item) for item in loads_on_it),
            moves=any(item["moves"] is not None for item in loads_on_it),
        )
    return spec.RecordsInstance(
        **shared,
        databases=[
            spec.DatabaseSpec(
                file_name=device or f"database{number:03}.{suffix}",
                size_bytes=value["database_size_mib"] * MIB,
                seed=seed * 1_000_003 + index * 1009 + number,
                record_bytes=value["record_bytes"],
                vacancy_percent=value["vacancy_percent"] if has_cache else None,
                compressible_percent=value["compressible_percent"],
                sharing=None,
                existing_records=None,
            )
            for number in range(1, value["databases"] + 1)
        ],
    )


def _workloads(
    plan: Given, completed: Sequence[spec.InstanceSpec], collector: Collector
) -> tuple[
    list[spec.WorkloadSpec], dict[str, FilesAsked], dict[str, HomesAsked], dict[str, MailAsked]
]:
    """The workloads, and what the verdict needs to know of those on files and of users."""
    names = [instance["name"] for instance in plan["instance"] or []]
    given_list = plan["workload"] or [dict.fromkeys(WORKLOAD_FIELDS) | {"name": "mix"}]
    workloads: list[spec.WorkloadSpec] = []
    asked: dict[str, FilesAsked] = {}
    homes_asked: dict[str, HomesAsked] = {}
    mail_asked: dict[str, MailAsked] = {}
    for index, given in enumerate(given_list):
        instances = given["instances"] or names
        for name in instances:
            collector.named(name, names, ("workload", index, "instances"))
        own = [item for item in plan["instance"] or [] if item["name"] in instances]
        families = sorted({family_of(item["backend"]) for item in own}) or ["records"]
        if len(families) > 1:
            hint = "write one workload for each of both"
            both = " and on ".join(
                name.replace("records", "databases").replace("_", " ") for name in families
            )
            collector.add(("workload", index, "instances"), f"works on {both}", hint)
        check_workload_keys(given, families[0], index, collector)
        common: Given = {"name": given["name"], "instances": instances}
        if families == ["files"]:
            count = sum(len(item.databases) for item in completed if item.name in instances)
            workload, shown = files.workload(
                common, given, count, plan["sessions_max"], index, collector
            )
            workloads.append(workload)
            asked[workload.name] = shown
            continue
        if families == ["home_folders"]:
            there = sum(
                item.homes
                for item in completed
                if isinstance(item, spec.HomesInstance) and item.name in instances
            )
            in_homes, homes_asked[given["name"]] = homes.workload(
                common, given, there, index, collector
            )
            workloads.append(in_homes)
            continue
        if families == ["store"]:
            workloads.append(store.workload(common, given, plan, index, collector))
            continue
        if families == ["mail"]:
            kept = [item for item in own if item["backend"] in mail.STORE_BACKENDS]
            if kept and len(kept) < len(own):
                hint = "write one workload for each of both"
                collector.add(
                    ("workload", index, "instances"), "works on a server and on a store", hint
                )
            users, mail_asked[given["name"]] = mail.workload(
                common, given, _edition_name(kept[0]) if kept else None, completed, index, collector
            )
            workloads.append(users)
            continue
        edition_name = _edition_name(own[0] if own else {})
        path = ("workload", index, "load")
        common["load"] = loads.complete_load(given["load"], edition_name, plan, path, collector)
        edition = settings.editions()[edition_name]
        workloads.append(records.workload(common, given, edition, index, collector))
    return workloads, asked, homes_asked, mail_asked


def _required_iops(plan: Given, run: spec.RunSpec, asked: Mapping[str, FilesAsked]) -> float | None:
    """What the loads must make, from what was asked; users of files have a window instead."""
    workloads, kinds = run.workloads, settings.MEASURED_KINDS
    beside = {frozenset(each.workloads) for each in run.phases if each.action.kind in kinds}
    if len(beside) > 1 or any(loads.has_stages(workload) for workload in workloads):
        # Stages, and loads that are measured in turns: a mean of them says nothing.
        return None
    if not asked:
        return _iops_of_users(plan, workloads)
    wanted = [item.target_iops for item in asked.values() if item.users is None]
    known = [value for value in wanted if value is not None]
    return (
        sum(known) * float(settings.FILES["rate_share"]) if len(known) == len(workloads) else None
    )


def _iops_of_users(plan: Given, workloads: Sequence[spec.WorkloadSpec]) -> float | None:
    """What loads stated in users must make.

    A test of a thousand users is passed by serving them.
    """
    in_users = {given["name"] for given in plan["workload"] if (given["load"] or {}).get("users")}
    aimed = [workload.load for workload in workloads if workload.name in in_users]
    stated = [load.target_iops for load in aimed if isinstance(load, spec.TargetIopsLoad)]
    return (
        loads.required_of_aimed(sum(stated)) if stated and len(stated) == len(workloads) else None
    )
