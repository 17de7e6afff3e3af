"""The two scenarios of the published tool.

A plan says who uses the storage, or how much of it is used, and the rest follows.

    [mailbox_profile]                 databases hold users x quota, the load is users x IOPS, and
    must be reached users = 4000
    quota_mb = 250
    iops_per_user = 0.12              # or profile = "heavy"

    [disk_throughput]                 databases fill a share of the volumes, the load is a share of
    what they carry capacity_percent = 80
    throughput_percent = 100
    sessions = 3

A fifth of the capacity stays free for growth, as in the published tool. What a plan says of an
instance or a workload itself stands. Source of the rules: the tool's descriptions of 2007 to 2013
and the configuration files of 2013.
"""

from __future__ import annotations

import math
from pathlib import Path

from plimsoll import settings
from plimsoll.host.probe import StorageError, describe
from plimsoll.inputs.schema import Collector, Field, Given, Number, Text
from plimsoll.sizing.guidance import profiles

MIB = 1024 * 1024
#: A quarter of each database is kept free for it to grow: it takes 80 % of its part.
GROWTH_SHARE = 0.25
SIZE_MIB_MIN = 64

MAILBOX_FIELDS = {
    "users": Field(Number(1, 1e9, whole=True), required=True, meaning="mailboxes"),
    "quota_mb": Field(Number(1, 1e7), required=True, meaning="size of each in MiB"),
    "iops_per_user": Field(Number(0.0001, 1000), meaning="database I/O of one of them"),
    "profile": Field(Text(tuple(profiles())), meaning="what one of them does in a day, instead"),
    "headroom_percent": Field(
        Number(0, 1000), default=0, meaning="room above that, which must be reached too"
    ),
}
THROUGHPUT_FIELDS = {
    "capacity_percent": Field(
        Number(1, 100), default=100, meaning="share of the volumes that is used, growth included"
    ),
    "throughput_percent": Field(
        Number(1, 100),
        default=100,
        meaning="share of the highest rate that is loaded; below 100 it is searched for",
    ),
    "sessions": Field(
        Number(1, 100_000, whole=True),
        meaning="sessions for each database; the edition's if left out",
    ),
}


def apply(plan: Given, usual_workload: Given, collector: Collector) -> None:
    """Fill in sizes and loads that follow from a scenario; what the plan says itself stands.

    Args:
        plan: the checked plan; instances and workloads get values where they have none.
        usual_workload: the one of a plan that states none, with no key said.
        collector: takes the mistakes.
    """
    mailbox, throughput = plan["mailbox_profile"], plan["disk_throughput"]
    if mailbox is None and throughput is None:
        return
    if mailbox is not None and throughput is not None:
        collector.add(
            ("disk_throughput",),
            "means nothing together with mailbox_profile",
            "leave out one of them",
        )
        return
    if not plan["workload"]:
        plan["workload"] = [usual_workload]
    if mailbox is not None:
        _size_by_users(plan, mailbox, collector)
    else:
        _size_by_capacity(plan, throughput, collector)


def _count(plan: Given, instance: Given) -> int:
    return int(instance["databases"] or settings.INSTANCE_DEFAULTS["databases"])


def _size_by_users(plan: Given, scenario: Given, collector: Collector) -> None:
    if scenario["users"] is None or scenario["quota_mb"] is None:
        return  # said already
    count = sum(_count(plan, instance) for instance in plan["instance"] or [])
    size_mib = max(
        SIZE_MIB_MIN, math.ceil(scenario["users"] * scenario["quota_mb"] / max(count, 1))
    )
    for instance in plan["instance"] or []:
        instance["database_size_mib"] = instance["database_size_mib"] or size_mib
    each = {key: scenario[key] for key in ("iops_per_user", "profile") if scenario[key] is not None}
    if len(each) != 1:
        collector.add(
            ("mailbox_profile",),
            "says how many users, but not what each makes",
            "write either `iops_per_user` or `profile`",
        )
        return
    loads = {
        "users": scenario["users"],
        **each,
        "throughput_percent": 100 + scenario["headroom_percent"],
    }
    _load_all(plan, loads, collector, "mailbox_profile")


def _size_by_capacity(plan: Given, scenario: Given, collector: Collector) -> None:
    share = scenario["capacity_percent"] / 100 / (1 + GROWTH_SHARE)
    first = next((target["name"] for target in plan["target"] or []), None)
    volumes: dict[str, tuple[int, int]] = {}
    places: dict[str, str] = {}
    for index, target in enumerate(plan["target"] or []):
        if target.get("modelled"):
            collector.add(
                ("disk_throughput",),
                "asks volumes for their size, and a modelled array has none",
                "say database_size_mib",
            )
            continue
        try:
            storage = describe(Path(target["path"] or "."))
        except StorageError as error:
            collector.add(("target", index, "path"), f"has no capacity that can be asked: {error}")
            continue
        facts = storage.facts
        size = (facts["file_system"] or facts["device"] or {}).get("size_bytes") or 0
        places[target["name"]] = storage.mount_point
        volumes.setdefault(storage.mount_point, (size, 0))
    for instance in plan["instance"] or []:
        mount = places.get(instance["target"] or first or "")
        if mount is not None:
            volumes[mount] = (volumes[mount][0], volumes[mount][1] + _count(plan, instance))
    for instance in plan["instance"] or []:
        mount = places.get(instance["target"] or first or "")
        if mount is not None and instance["database_size_mib"] is None:
            size, count = volumes[mount]
            instance["database_size_mib"] = max(SIZE_MIB_MIN, int(size * share / count / MIB))
    sessions = {} if scenario["sessions"] is None else {"sessions": scenario["sessions"]}
    searching = {"search": "max", "throughput_percent": scenario["throughput_percent"], **sessions}
    loads = searching if scenario["throughput_percent"] < 100 else sessions
    _load_all(plan, loads, collector, "disk_throughput")


def _load_all(plan: Given, loads: Given, collector: Collector, name: str) -> None:
    """Give the load to the one workload that states none."""
    if not loads:
        return
    open_loads = [workload for workload in plan["workload"] if workload["load"] is None]
    if len(open_loads) != 1:
        collector.add(
            (name,),
            f"needs one workload without a load, but {len(open_loads)} have none",
            "leave `load` out of one",
        )
        return
    open_loads[0]["load"] = loads
