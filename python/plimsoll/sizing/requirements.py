"""A requirements file, read and checked: who will use the storage, and what is asked of it.

Reading never stops at the first mistake. Quantities, keys, ranges and the rules between keys (more
copies than servers, a group of 17 servers, a database beyond the limit of its mode) are all
examined, and one error carries everything that is wrong, each with its line and a hint. The keys
are those of `requirement_fields.py`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.quantity import Converted, convert, shown
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.schema import READERS, Collector, Given, Table, Tables, require_kind
from plimsoll.inputs.toml_lines import KeyPath, LocatedFile, read_located
from plimsoll.sizing.database_copies import Layout, Machine
from plimsoll.sizing.guidance import BASES, Guidance, editions, profiles
from plimsoll.sizing.requirement_fields import FIELDS, KIND, QUANTITIES
from plimsoll.units import unit_of_name

Contradiction = tuple[KeyPath, str, str]
TABLES_WITH_DEFAULTS = ("copies", "databases", "logs", "backup", "storage", "network", "server")


@dataclass(frozen=True)
class Users:
    """The `[users]` table; units are in the names."""

    count: int
    mailbox_quota_mb: float
    messages_per_day: float
    message_size_kb: float
    client_mode: str
    extra_iops_per_user: float
    growth_fraction: float
    profile: str | None = None


@dataclass(frozen=True)
class Transactions:
    """The `[transactions]` table; units are in the names."""

    per_second: float
    database_ios_each: float
    data_size_gb: float
    log_size_each_kb: float
    busy_time_h: float
    growth_fraction: float


@dataclass(frozen=True)
class Copies:
    """The `[copies]` table with its defaults resolved."""

    mode: str
    count: int
    servers: int
    layout: Layout
    lagged_count: int
    replay_lag_days: float

    @property
    def standalone(self) -> bool:
        """True where there is one copy on one server."""
        return self.mode == "standalone"


@dataclass(frozen=True)
class Databases:
    """The `[databases]` table."""

    max_size_gb: float | None
    users_max: int | None
    count_min: int
    recovery_count: int
    offline_maintenance_count: int


@dataclass(frozen=True)
class Logs:
    """The `[logs]` table."""

    retention_days: float | None
    mailboxes_moved_fraction: float | None
    iops_rule: str


@dataclass(frozen=True)
class Backup:
    """The `[backup]` table."""

    interval_days: float
    window_h: float | None
    read_rate_mb_per_s: float | None
    parallel_count: int
    during_work: bool
    replay_time_per_log_s: float | None


@dataclass(frozen=True)
class Storage:
    """The `[storage]` table."""

    raid: str | None
    snapshot_reserve_fraction: float
    replication_reserve_fraction: float
    clone_count: int
    thin_provisioning: bool
    compression_ratio: float
    deduplication_ratio: float
    file_retention: bool
    shared_with_other_workloads: bool
    system_disk_on_data_drives: bool
    file_system: str
    allocation_unit_kb: float
    partition_offset_kb: float
    controller_count: int
    measured_iops: float | None
    measured_capacity_gb: float | None


@dataclass(frozen=True)
class Network:
    """The `[network]` table."""

    port_count: int
    port_speed_mbit_per_s: float
    protocol_overhead_fraction: float
    switch_count: int | None
    client_port_count: int | None
    replication_network: bool | None
    uplink_aggregated: bool | None
    flow_control: bool | None
    port_fast: bool | None
    vlan_per_class: bool | None
    server_frame_bytes: int | None
    switch_frame_bytes: int | None
    storage_frame_bytes: int | None
    virtual_nic_type: str | None
    virtual_nic_count: int | None
    offload: bool | None


@dataclass(frozen=True)
class Server:
    """The `[server]` table."""

    memory_gb: float | None
    thread_count: int | None
    virtual: bool


@dataclass(frozen=True)
class Requirements:
    """A whole requirements file, checked, with defaults filled in.

    Attributes:
        name: The file as the user named it, or "options".
        stated: Keys that were written, as dotted paths; everything else is an assumption.
        guidance: The figures of the edition.
    """

    name: str
    title: str
    edition: str
    guidance: Guidance
    users: Users | None
    transactions: Transactions | None
    copies: Copies
    databases: Databases
    logs: Logs
    backup: Backup
    storage: Storage
    network: Network
    server: Server
    machines: tuple[Machine, ...]
    stated: frozenset[str]


def read_requirements(path: Path) -> Requirements:
    """Read a requirements file.

    Raises:
        InputError: With every mistake in it.
    """
    document = read_located(path)
    require_kind(document, (KIND,), READERS)
    return check_requirements(document, path.parent)


def check_requirements(document: LocatedFile, folder: Path = Path()) -> Requirements:
    """Check parsed requirements and fill in what was left out.

    Args:
        document: The parsed file, or options arranged like one.
        folder: Where `guidance_file` is looked for.

    Raises:
        InputError: With every mistake found.
    """
    converted = convert(document, QUANTITIES)
    data = {**{table: {} for table in TABLES_WITH_DEFAULTS}, **converted.document.data}
    data.pop("kind", None)
    collector = Collector(converted.document)
    content = collector.table(data, FIELDS, ())
    mistakes = converted.mistakes + [
        mistake for mistake in collector.mistakes if not _refused(mistake, converted)
    ]
    known, guidance_mistakes = _editions(content, document, folder)
    mistakes += guidance_mistakes
    _fill_in(content)
    # A key whose value was wrong has been replaced by its default; what that default contradicts is
    # no news.
    wrong = {mistake.where for mistake in mistakes} | converted.refused
    mistakes += [
        Mistake(converted.document.line_of(path), shown(path), message, hint)
        for path, message, hint in _contradictions(content, known)
        if shown(path) not in wrong
    ]
    if mistakes:
        raise InputError(
            document.name, [_in_words_of_the_file(mistake, converted) for mistake in mistakes]
        )
    return _requirements(document, content, known[content["edition"]])


def _refused(mistake: Mistake, converted: Converted) -> bool:
    """A quantity already refused with a better message is then missing.

    Saying so again would mislead.
    """
    return mistake.where in converted.refused


def _in_words_of_the_file(mistake: Mistake, converted: Converted) -> Mistake:
    where = converted.written.get(mistake.where, mistake.where)
    return Mistake(mistake.line, where, mistake.message, mistake.hint or _meaning(mistake.where))


def _meaning(where: str) -> str:
    """What a key means, for a mistake that came without a hint."""
    table, _, key = re.sub(r"\[\d+\]", "", where).rpartition(".")
    kind = FIELDS[table].kind if table in FIELDS else None
    known = kind.fields if isinstance(kind, (Table, Tables)) else FIELDS
    return f"it says {known[key].meaning}" if key in known else "see docs/reference/sizing.md"


def _editions(
    content: Given, document: LocatedFile, folder: Path
) -> tuple[dict[str, Guidance], list[Mistake]]:
    """The known editions with the user's guidance file laid over them, and what is wrong with that
    file.
    """
    name = content["guidance_file"]
    if not name:
        return editions(), []
    line = document.line_of(("guidance_file",))
    try:
        extra = read_located(folder / name)
        require_kind(extra, ("guidance",), READERS)
    except InputError as error:
        told = [f"{mistake.where} {mistake.message}".strip() for mistake in error.mistakes]
        return editions(), [
            Mistake(line, "guidance_file", f"{name}: {'; '.join(told)}", error.mistakes[0].hint)
        ]
    wrong = [
        Mistake(line, "guidance_file", f"{name}, line {extra.line_of(path)}: {message}", hint)
        for path, message, hint in _guidance_mistakes(extra.data)
    ]
    return (editions(), wrong) if wrong else (editions(extra=extra.data), [])


def _guidance_mistakes(data: Mapping[str, object]) -> Iterator[Contradiction]:
    """What is wrong with a guidance file.

    Editions without a name or a base, and figures that are none.
    """
    known = editions()
    rows = data.get("edition", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield ("edition",), "edition must be a list of tables", "begin each one with [[edition]]"
        return
    for index, row in enumerate(rows):
        name, base = row.get("name"), row.get("extends")
        if not isinstance(name, str):
            yield ("edition", index), "an edition has no name", 'write name = "exchange_2019"'
        elif name not in known and base not in known:
            hint = f"write extends = one of {', '.join(known)}"
            yield ("edition", index), f"{name} is new and extends no known edition", hint
        figures = row.get("figures", {})
        for key, figure in figures.items() if isinstance(figures, dict) else ():
            problem = _figure_problem(key, figure)
            if problem:
                hint = 'write name_with_unit = { value = 1, source = "...", basis = "read" }'
                yield ("edition", index, "figures", key), f"{key} {problem}", hint


def _figure_problem(key: str, figure: Any) -> str:
    """What is wrong with a figure, or nothing."""
    if not isinstance(figure, dict) or set(figure) != {"value", "source", "basis"}:
        return "needs a value, a source and a basis, and nothing else"
    value = figure["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        return f"is {value}, but must be a number that is not negative"
    if value == 0 and unit_of_name(key) not in ("MB/s", "days") and not key.endswith("_fraction"):
        return "is 0, which leaves nothing to size"
    if unit_of_name(key) is None:
        return "does not end in a unit, such as _mb, _factor or _per_user"
    if figure["basis"] not in BASES or not str(figure["source"]).strip():
        return f"needs a source, and a basis that is one of {', '.join(BASES)}"
    return ""


def _fill_in(content: Given) -> None:
    """Resolve the defaults that depend on other keys."""
    copies = content["copies"]
    if copies["mode"] is None:
        copies["mode"] = (
            "dag" if (copies["count"] or 1) > 1 or (copies["servers"] or 1) > 1 else "standalone"
        )
    copies["count"] = copies["count"] or (1 if copies["mode"] == "standalone" else 2)
    copies["servers"] = copies["servers"] or max(copies["count"], 1)
    if not content["edition"]:
        content["edition"] = "transactional" if content["transactions"] else "exchange_2010"
    users = content["users"]
    if users and users["messages_per_day"] is None and users["profile"] in profiles():
        users["messages_per_day"] = profiles()[users["profile"]].messages_per_day


def _contradictions(content: Given, known: Mapping[str, Guidance]) -> Iterator[Contradiction]:
    """What is wrong between keys that are each right by themselves."""
    if (content["users"] is None) == (content["transactions"] is None):
        yield (
            ("users",),
            "and [transactions] are both missing"
            if content["users"] is None
            else "and [transactions] are both given",
            "size one of the two: mailbox users, or a transactional load",
        )
    guidance = known.get(content["edition"])
    if guidance is None:
        hint = nearest_names(content["edition"], known)
        yield ("edition",), f'"{content["edition"]}" is not a known edition', hint
        guidance = known["exchange_2010"]
    yield from _profile_contradictions(content["users"])
    yield from _copy_contradictions(content["copies"], guidance)
    yield from _size_contradictions(content, guidance)


def _profile_contradictions(users: Given | None) -> Iterator[Contradiction]:
    if not users:
        return
    name = users["profile"]
    if name is not None and name not in profiles():
        yield (
            ("users", "profile"),
            f'"{name}" is not a known profile',
            nearest_names(name, profiles()),
        )
    elif name is None and users["messages_per_day"] is None:
        choices = ", ".join(f'"{profile}"' for profile in profiles())
        yield (
            ("users", "messages_per_day"),
            "is missing",
            f"write messages_per_day = 150, or profile = one of {choices}",
        )


def _copy_contradictions(copies: Given, guidance: Guidance) -> Iterator[Contradiction]:
    count, servers, most = (
        copies["count"],
        copies["servers"],
        int(guidance.number("dag_servers_max_count")),
    )
    if copies["mode"] == "standalone":
        if count > 1:
            hint = 'write mode = "dag", or count = 1'
            yield ("copies", "count"), f"is {count}, but a standalone server holds one copy", hint
        if copies["lagged_count"]:
            yield (
                ("copies", "lagged_count"),
                "is set, but a standalone server has no copies",
                'write mode = "dag"',
            )
        return
    if servers > most:
        hint = f"use at most {most} servers, or size several groups one by one"
        yield ("copies", "servers"), f"is {servers}, but a group has at most {most} servers", hint
    if count > servers:
        hint = f"use at least {count} servers, or at most {servers} copies"
        there = f"{servers} server{'s' if servers > 1 else ''}"
        yield (
            ("copies", "count"),
            f"is {count} on {there}, but a server holds one copy of a database",
            hint,
        )
    if copies["lagged_count"] >= count:
        hint = "leave at least one copy that replays at once"
        yield ("copies", "lagged_count"), f"is {copies['lagged_count']} of {count} copies", hint
    if copies["lagged_count"] and not copies["replay_lag_days"]:
        yield (
            ("copies", "replay_lag"),
            "is missing for the lagged copies",
            'write replay_lag = "7 days"',
        )
    if copies["replay_lag_days"] and not copies["lagged_count"]:
        yield ("copies", "lagged_count"), "is missing for the replay lag", "write lagged_count = 1"


def _size_contradictions(content: Given, guidance: Guidance) -> Iterator[Contradiction]:
    mode, wanted = content["copies"]["mode"], content["databases"]["max_size_gb"]
    largest = guidance.number(f"max_database_{mode}_gb")
    if wanted is not None and wanted > largest:
        yield (
            ("databases", "max_size_gb"),
            f"is {wanted:g} GB, but a database has at most {largest:g} GB in {mode} mode "
            f"({guidance.title})",
            f'write max_size = "{largest:g} GB" or less'
            + (', or mode = "dag"' if mode == "standalone" else ""),
        )
    if content["machine"] and not (
        content["server"]["memory_gb"] and content["server"]["thread_count"]
    ):
        hint = 'add [server] with memory = "48 GB" and thread_count = 16, those of one host'
        yield ("server",), "does not state the hosts that the machines run on", hint


def _requirements(document: LocatedFile, content: Given, guidance: Guidance) -> Requirements:
    users, transactions = content["users"], content["transactions"]
    machines = tuple(Machine(**machine) for machine in content["machine"])
    return Requirements(
        name=document.name,
        title=content["title"],
        edition=content["edition"],
        guidance=guidance,
        users=Users(**users) if users else None,
        transactions=Transactions(**transactions) if transactions else None,
        copies=Copies(**{**content["copies"], "layout": cast(Layout, content["copies"]["layout"])}),
        databases=Databases(**content["databases"]),
        logs=Logs(**content["logs"]),
        backup=Backup(**content["backup"]),
        storage=Storage(**content["storage"]),
        network=Network(**content["network"]),
        server=Server(**content["server"]),
        machines=machines,
        stated=frozenset(_stated(document.data)),
    )


def _stated(data: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _stated(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def as_document(name: str, tables: Mapping[str, object]) -> LocatedFile:
    """Arrange options like a parsed file; there are no lines to point at."""
    return LocatedFile(name, dict(tables), {})


def plain(requirements: Requirements) -> dict[str, object]:
    """The requirements as plain data, defaults included, for JSON."""

    def table(value: Any) -> Any:
        return (
            None
            if value is None
            else {each.name: getattr(value, each.name) for each in fields(value)}
        )

    return {
        "title": requirements.title,
        "edition": requirements.edition,
        **{
            name: table(getattr(requirements, name))
            for name in ("users", "transactions", *TABLES_WITH_DEFAULTS)
        },
        "machine": [table(machine) for machine in requirements.machines],
    }
