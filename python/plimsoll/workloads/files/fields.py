"""What a plan says of files.

`backend = "files"` of an instance, and the keys of a workload that works on it.

    [[instance]]
    name = "share"
    backend = "files"
    files = 2
    file_mib = 5120

    [[workload]]
    name = "users"
    pattern = "file-server"
    load = { users = 200, iops_per_user = 0.70 }

Without a load it is a closed one, Iometer's way: each of `workers` keeps `outstanding` transfers
under way on every file. With one, transactions arrive by a schedule, and `outstanding` of all
workers and files is the most that may be under way.
"""

from __future__ import annotations

from dataclasses import asdict

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.documents.plan import FilesAsked
from plimsoll.inputs.schema import Collector, Field, Flag, Given, Number, Tables, Text
from plimsoll.workloads.files.patterns import LINES_MAX, AccessLine, io_per_transaction, patterns
from plimsoll.workloads.window_figures import WindowFigure

BACKENDS = ("files",)
OPERATIONS = ("file_read", "file_write")
MIB = 1024 * 1024
BELOW_BLOCK = ("refuse", "round", "read_modify_write")
#: The band in which the published tests wanted a load of 0.70 I/O per second and user to stay, as
#: shares of it. Source: MD3000i paper, 0.60 to 0.75 I/O per second for each user of a file server.
WINDOW_SHARES = (0.60 / 0.70, 0.75 / 0.70)
DEFAULT_PATTERN = "file-server"

WINDOW_S = float(settings.FILES["window_s"])
WINDOWS = {
    "iops": WindowFigure(
        "I/O per second", "of files: transfers as they were asked for", "transfers"
    ),
    "iops_per_user": WindowFigure(
        "I/O per second and user", "of files: transfers of one user", "transfers", of_user=True
    ),
}

INSTANCE_FIELDS = {
    "files": Field(
        Number(1, 250, whole=True), meaning="with backend files: how many; 1 if left out"
    ),
    "file_mib": Field(
        Number(1, 64 * 1024 * 1024, whole=True),
        meaning="size of each file, or what is used of a device; 1024 if left out",
    ),
    "data_pattern": Field(
        Number(0, 2, whole=True),
        meaning="what is written to files: 0 repeats one byte, 1 is the same at every write of a "
        "place, 2 is always new",
    ),
    "verify": Field(
        Flag(), meaning="whether what is read from files is compared with what was written"
    ),
}

ACCESS_FIELDS = {
    "size_bytes": Field(
        Number(1, 1 << 30, whole=True), required=True, meaning="length of a request"
    ),
    "share_percent": Field(
        Number(0, 100, whole=True), required=True, meaning="how many of a hundred bursts"
    ),
    "read_percent": Field(
        Number(0, 100, whole=True), required=True, meaning="how many of a hundred requests read"
    ),
    "random_percent": Field(
        Number(0, 100, whole=True),
        required=True,
        meaning="how many of a hundred transfers go to a random place",
    ),
    "delay_ms": Field(
        Number(0, 3_600_000, whole=True), default=0, meaning="what the worker waits before a burst"
    ),
    "burst": Field(Number(1, 1_000_000, whole=True), default=1, meaning="transactions of a burst"),
    "align_bytes": Field(
        Number(0, 1 << 30, whole=True),
        default=0,
        meaning="transfers begin at multiples of it; 0: sectors of the storage",
    ),
    "reply_bytes": Field(
        Number(0, 1 << 30, whole=True), default=0, meaning="what answers each request; 0: nothing"
    ),
}

WORKLOAD_FIELDS = {
    "pattern": Field(
        Text(tuple(patterns())),
        meaning="a known access specification of files; file-server if left out",
    ),
    "access": Field(
        Tables(ACCESS_FIELDS, 1),
        meaning="the lines of an access specification, in the place of a pattern",
    ),
    "workers": Field(Number(1, 10_000, whole=True), meaning="workers on files; 1 if left out"),
    "outstanding": Field(
        Number(1, 10_000, whole=True),
        meaning="transfers that each worker keeps under way on every file; 1 if left out",
    ),
    "below_block": Field(
        Text(BELOW_BLOCK),
        meaning="what becomes of transfers that are no whole logical blocks; refuse if left out",
    ),
}

#: What may be said of a load on files.
LOAD_KEYS = (
    "target_iops",
    "users",
    "iops_per_user",
    "transactions_per_s",
    "spacing",
    "throughput_percent",
)
#: What is said of a rate, and the rates that it can be said of.
_NEEDS = {
    "spacing": ("target_iops", "users", "transactions_per_s"),
    "throughput_percent": ("target_iops", "users"),
}
_INSTANCE_KEYS = ("name", "target", "backend", "weight", "edition", *INSTANCE_FIELDS)


def instance_mistakes(given: Given, index: int, collector: Collector) -> None:
    """Report what is stated of an instance and means nothing to files."""
    for key, value in given.items():
        if value is not None and key not in _INSTANCE_KEYS:
            collector.add(("instance", index, key), "means nothing for files", "remove it")


def instance(
    common: Given, given: Given, seed: int, index: int, device: str | None
) -> spec.FilesInstance:
    """An instance of files.

    Args:
        common: what instances of all families have.
        given: the checked table, absent keys None.
        seed: of the plan.
        index: its position in the plan.
        device: the block device that takes the place of files.
    """
    count = int(given["files"] or 1)
    pattern = given["data_pattern"]
    return spec.FilesInstance(
        **common,
        databases=[
            spec.FileSpec(
                file_name=device or f"file{number:03}.dat",
                size_bytes=int(given["file_mib"] or settings.FILES["file_mib"]) * MIB,
                seed=seed * 1_000_003 + index * 1009 + number,
                existing_records=None,
            )
            for number in range(1, count + 1)
        ],
        data_pattern=int(settings.FILES["data_pattern"] if pattern is None else pattern),
        verify=bool(given["verify"]),
    )


def access_of(given: Given) -> list[AccessLine]:
    """The lines of a workload."""
    if given["access"]:
        return [
            AccessLine(**{key: int(value) for key, value in line.items()})
            for line in given["access"]
        ]
    return list(patterns()[given["pattern"] or DEFAULT_PATTERN].lines)


def workload(
    common: Given,
    given: Given,
    files_count: int,
    sessions_max: int,
    index: int,
    collector: Collector,
) -> tuple[spec.FilesWorkload, FilesAsked]:
    """A workload on files, and what its verdict and report need to know of it.

    Args:
        common: its name and its instances.
        given: the checked table, absent keys None.
        files_count: how many files it works on.
        sessions_max: open transactions at most, where nothing is said of them.
        index: its position in the plan.
        collector: takes the mistakes.
    """
    path = ("workload", index)
    lines = [line for line in access_of(given) if _is_whole(line)] or list(
        patterns()[DEFAULT_PATTERN].lines
    )
    if given["access"] and given["pattern"]:
        collector.add((*path, "pattern"), "cannot be combined with `access`", "write one of both")
    if given["access"]:
        _check_access(lines, (*path, "access"), collector)
    slots = int(given["workers"] or 1) * int(given["outstanding"] or 1)
    stated = {key: value for key, value in (given["load"] or {}).items() if value is not None}
    asked = _asked_iops(stated, (*path, "load"), collector)
    load = _load(given, stated, asked, io_per_transaction(lines), slots, files_count, sessions_max)
    if isinstance(load, spec.RateLoad) and any(line.delay_ms for line in lines):
        collector.add(
            path, "arrives by a schedule, but its access lines have delays", "leave out one of both"
        )
    shown = FilesAsked(
        pattern=None if given["access"] else given["pattern"] or DEFAULT_PATTERN,
        target_iops=asked,
        users=stated.get("users"),
        outstanding=slots * files_count
        if isinstance(load, spec.SessionsLoad)
        else load.sessions_max,
    )
    completed = spec.FilesWorkload(
        name=common["name"],
        instances=common["instances"],
        family="files",
        load=load,
        access=[spec.AccessLineSpec(**asdict(line)) for line in lines],
        workers=int(given["workers"] or 1),
        below_block=given["below_block"] or "refuse",
    )
    return completed, shown


def _load(
    given: Given,
    stated: Given,
    asked: float | None,
    io_per_task: float,
    slots: int,
    files_count: int,
    sessions_max: int,
) -> spec.SessionsLoad | spec.RateLoad:
    """A closed load where nothing is said of a rate.

    Otherwise arrivals, with as many under way as are asked for.
    """
    rate = stated.get("transactions_per_s") or (None if asked is None else asked / io_per_task)
    if rate is None:
        return spec.SessionsLoad(sessions=slots, shared=False)
    says_depth = given["outstanding"] is not None or given["workers"] is not None
    return spec.RateLoad(
        transactions_per_s=float(rate),
        spacing=stated.get("spacing") or settings.FILES["spacing"],
        sessions_max=slots * files_count if says_depth else sessions_max,
    )


def _is_whole(line: AccessLine) -> bool:
    return None not in (line.size_bytes, line.share_percent, line.read_percent, line.random_percent)


def _check_access(
    lines: list[AccessLine], path: tuple[str | int, ...], collector: Collector
) -> None:
    total = sum(line.share_percent for line in lines)
    if total != 100:
        collector.add(path, f"has shares that add up to {total} %", "make them 100")
    if len(lines) > LINES_MAX:
        collector.add(path, f"has {len(lines)} lines", f"write {LINES_MAX} at most")


def _asked_iops(load: Given, path: tuple[str | int, ...], collector: Collector) -> float | None:
    """The I/O per second that a load asks for; None where it is closed or states transactions."""
    for key in load:
        if key not in LOAD_KEYS:
            hint = (
                "a closed load says `workers` and `outstanding` beside `load`, not in it"
                if key == "sessions"
                else ""
            )
            collector.add(
                (*path, key), "means nothing for files", hint or f"write {', '.join(LOAD_KEYS[:4])}"
            )
    ways = [key for key in ("target_iops", "users", "transactions_per_s") if key in load]
    if len(ways) > 1:
        collector.add(path, f"says {' and '.join(ways)} of what may be loaded", "write one of them")
    for key, needed in _NEEDS.items():
        if key in load and not set(needed) & set(ways):
            collector.add(
                (*path, key), f"needs {' or '.join(needed)}", "say how much, or remove it"
            )
    share = float(load.get("throughput_percent", 100)) / 100
    if "users" in load:
        if "iops_per_user" not in load:
            collector.add(
                path, "says how many users, but not what each makes", "write iops_per_user"
            )
            return 1.0
        return float(load["users"]) * float(load["iops_per_user"]) * share
    if "iops_per_user" in load:
        collector.add((*path, "iops_per_user"), "needs users", "say how many")
    return float(load["target_iops"]) * share if "target_iops" in load else None
