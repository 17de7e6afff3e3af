"""The nine tables of a solution document, each figure by the rule of the published tables.

Rates of databases add up and latencies are plain means over the databases; a backup's rate is shown
as mean and sum, a replay as the mean of elapsed by logs. Decimals are computed as decimals and
rounded half up at the last printed digit, because binary halves fall either way. Source of the
rules: tables 1 to 9 of the EMC VNXe3300 report, recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from plimsoll.files.folder import Content
from plimsoll.pages.tables import Table
from plimsoll.solution.prescribed import HARDWARE, SOFTWARE, rows_of
from plimsoll.solution.solution import Run, Solution

GIB = 1024**3
Figure = float | int | None


def exact(value: Figure) -> Decimal | None:
    """A figure as the decimal number that its text says."""
    return None if value is None else Decimal(repr(value))


def rounded(value: Decimal | None, decimals: int) -> str:
    """A figure with so many decimals, halves up; a dash where nothing was measured.

    >>> rounded(Decimal("8.4745"), 3), rounded(None, 3)
    ('8.475', '–')
    """
    return (
        "–" if value is None else str(value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))
    )


def plain(value: Decimal | None, decimals: int) -> str:
    """A figure without zeros behind its last digit.

    >>> plain(Decimal("204.280"), 3)
    '204.28'
    """
    text = rounded(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def total(values: Sequence[Figure]) -> Decimal | None:
    """The sum, None when a part is unknown."""
    known = [number for number in map(exact, values) if number is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(values) else None


def mean(values: Sequence[Figure]) -> Decimal | None:
    """The plain mean, None when a part is unknown."""
    whole = total(values)
    return None if whole is None else whole / len(values)


def latency(figures: Content) -> Figure:
    """The mean latency of a purpose.

    Weighted by operations where it was measured so, else that of the original's samples.
    """
    weighted: Figure = figures["latency_ms_mean"]
    return figures["latency_ms_mean_of_samples"] if weighted is None else weighted


def _pairs(title: str, rows: list[list[Any]], note: str = "") -> Table:
    return Table(title, ["", "Value"], rows, note)


def table_1(solution: Solution) -> Table:
    """The simulated configuration."""
    profile, storage = solution.content["profile"], solution.content["storage"]
    size, run_note = tested_gb(solution)
    used = (
        size
        / (Decimal(profile["databases_per_host"]) * Decimal(repr(storage["database_lun_gb"])))
        * 100
        if size
        else None
    )
    rows = [
        ["Mailboxes simulated", profile["users"]],
        ["Availability groups", profile["dags"]],
        ["Servers in each group", profile["servers_per_dag"]],
        ["Active mailboxes of a server", profile["active_users_per_server"]],
        ["Databases of a host", profile["databases_per_host"]],
        ["Copies of a database", profile["copies_per_database"]],
        [
            "Mailboxes of a database",
            profile["active_users_per_server"] // profile["databases_per_host"],
        ],
        [
            f"I/O per second of a mailbox, {profile['headroom_percent']:g} % headroom included",
            f"{profile['iops_per_user']:g}",
        ],
        ["Size of a database volume (GB)", f"{storage['database_lun_gb']:g}"],
        ["Size of a log volume (GB)", f"{storage['log_lun_gb']:g}"],
        ["Size of all databases in the performance test (GB)", rounded(size, 1)],
        ["Share of the volumes that databases use (%)", rounded(used, 2)],
    ]
    note = (
        f"The size is the final one of the performance run{run_note}; the share is that size by "
        f"the databases' volumes, rounded at the last digit."
    )
    return _pairs("Table 1: Simulated configuration", rows, note)


def tested_gb(solution: Solution) -> tuple[Decimal | None, str]:
    """The size of the databases of one server in the performance run, in binary GB as the published
    tables have it.
    """
    run = solution.runs["performance"][0]
    size = run.summary["total"]["final_bytes"]
    return (Decimal(size) / GIB if size else None), (
        f" of {run.machine}" if len(solution.runs["performance"]) > 1 else ""
    )


def table_2(solution: Solution) -> Table:
    """Hardware."""
    return _pairs(
        "Table 2: Storage hardware",
        rows_of(solution, solution.content["hardware"], HARDWARE),
        "Rows that the description leaves out are what Linux shows on the host of the performance "
        "run, or not stated.",
    )


def table_3(solution: Solution) -> Table:
    """Software."""
    return _pairs(
        "Table 3: Storage software",
        rows_of(solution, solution.content["software"], SOFTWARE),
    )


def table_4(solution: Solution) -> Table:
    """The disks of the databases: capacities, and how much of the raw one is used."""
    storage = solution.content["storage"]
    raw = Decimal(repr(storage["raw_gb_per_disk"])) * storage["disks"]
    formatted = Decimal(repr(storage["formatted_gb"]))
    size, _ = tested_gb(solution)
    rows = [
        ["Disk type, speed and firmware", storage["disk"]],
        ["Raw capacity of a disk (GB)", f"{storage['raw_gb_per_disk']:g}"],
        ["Disks in the test", storage["disks"]],
        ["Raw capacity (GB)", plain(raw, 2)],
        [
            "Slice of each disk (GB)",
            None if storage["slice_gb"] is None else f"{storage['slice_gb']:g}",
        ],
        ["Disks and volumes", storage["disks_per_luns"]],
        ["RAID level", storage["raid"]],
        ["Formatted capacity (GB)", plain(formatted, 2)],
        ["Storage capacity utilisation (%)", rounded(formatted / raw * 100, 2)],
        ["Database capacity utilisation (%)", rounded(size / raw * 100 if size else None, 2)],
    ]
    note = (
        "Utilisations are formatted capacity and size of the databases by raw capacity, rounded at "
        "the last digit."
    )
    return _pairs("Table 4: Disks of the databases", rows, note)


def table_5(solution: Solution) -> Table:
    """The disks of the logs, which may be those of the databases."""
    storage = solution.content["storage"]
    disks = storage["log_disks"] or storage["disks"]
    each = storage["log_raw_gb_per_disk"] or storage["raw_gb_per_disk"]
    rows = [
        ["Disk type, speed and firmware", storage["log_disk"] or storage["disk"]],
        ["Raw capacity of a disk (GB)", f"{each:g}"],
        ["Spindles in the test", disks],
        ["Raw capacity (GB)", plain(Decimal(repr(each)) * disks, 2)],
        ["Disks and volumes", storage["disks_per_luns"] if storage["log_disks"] is None else None],
        ["RAID level", storage["log_raid"] or storage["raid"]],
        [
            "Formatted capacity (GB)",
            plain(Decimal(repr(storage["log_formatted_gb"] or storage["formatted_gb"])), 2),
        ],
    ]
    shared = "Logs lie on the disks of the databases." if storage["log_disks"] is None else ""
    return _pairs("Table 5: Disks of the logs", rows, shared)


TABLE_6_ROWS = (
    "Database disk transfers/s",
    "Database disk reads/s",
    "Database disk writes/s",
    "Average database disk read latency (ms)",
    "Average database disk write latency (ms)",
    "Log disk writes/s",
    "Average log disk write latency (ms)",
)


def server_figures(run: Run) -> list[Decimal | None]:
    """The seven figures of a server.

    Rates add up over its databases, latencies are their plain means.
    """
    databases, logs = run.summary["databases"], run.summary["instances"]
    reads = [place["database_read"] for place in databases]
    writes = [place["database_write"] for place in databases]
    flushes = [place["log_write"] for place in logs]
    read_rate, write_rate = (total([item["per_s"] for item in items]) for items in (reads, writes))
    achieved = exact(run.summary["total"]["database_iops"])
    if run.reported is None and read_rate is not None and write_rate is not None:
        achieved = read_rate + write_rate
    return [
        achieved,
        read_rate,
        write_rate,
        mean([latency(item) for item in reads]),
        mean([latency(item) for item in writes]),
        total([item["per_s"] for item in flushes]),
        mean([latency(item) for item in flushes]),
    ]


def table_6(solution: Solution) -> Table:
    """Metrics of each server, and of all where there are several."""
    columns = [server_figures(run) for run in solution.runs["performance"]]
    headings = names_of(solution, "performance")
    if len(columns) > 1:
        headings.append("All servers")
        columns.append(
            [
                _over_servers(title, [column[place] for column in columns])
                for place, title in enumerate(TABLE_6_ROWS)
            ]
        )
    rows = [
        [title, *(plain(column[place], 3) for column in columns)]
        for place, title in enumerate(TABLE_6_ROWS)
    ]
    note = (
        "Rates are sums over the databases, latencies plain means over the databases of each "
        "server."
    )
    return Table("Table 6: Metrics of each server", ["Performance test", *headings], rows, note)


def _over_servers(title: str, values: list[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known, Decimal(0)) / (len(known) if "latency" in title else 1)


def names_of(solution: Solution, place: str) -> list[str]:
    """The servers of the runs of a kind."""
    return [solution.machine(run, index) for index, run in enumerate(solution.runs[place])]


def backup_figures(run: Run) -> tuple[Decimal | None, Decimal | None]:
    """MB/s of a database, as the plain mean, and of the server, as the sum."""
    rates = [item["mib_per_s"] for item in run.summary["backups"]]
    return mean(rates), total(rates)


def table_7(solution: Solution) -> Table:
    """How fast databases are read for a backup."""
    figures = [backup_figures(run) for run in solution.runs["backup"]]
    rows = [
        ["MB read/s of each database", *(plain(each, 3) for each, _ in figures)],
        ["MB read/s of the server", *(plain(whole, 3) for _, whole in figures)],
    ]
    note = "Mean and sum over the databases of the server; a MB is 1,048,576 bytes."
    return Table(
        "Table 7: Database read-only performance",
        ["Backup test", *names_of(solution, "backup")],
        rows,
        note,
    )


def seconds_per_log(run: Run) -> Decimal | None:
    """The mean over the databases of elapsed time by logs that were replayed."""
    found = [item["seconds_per_log"] for item in run.summary["recoveries"]]
    return mean(found)


def table_8(solution: Solution) -> Table:
    """How long a log takes to replay."""
    runs = solution.runs["recovery"]
    counts = [[item["logs_count"] for item in run.summary["recoveries"]] for run in runs]
    rows: list[list[Any]] = [
        [
            "Average time to play one log file (s)",
            *(rounded(seconds_per_log(run), 2) for run in runs),
        ],
        [
            "Logs replayed of each database",
            *(", ".join(plain(exact(count), 0) for count in found) for found in counts),
        ],
    ]
    note = "Elapsed time by the logs that were really replayed, not by those that were asked for."
    return Table(
        "Table 8: Log replay", ["Soft recovery", *names_of(solution, "recovery")], rows, note
    )


def users_by_iops(solution: Solution) -> tuple[int, str]:
    """The most users that the highest measured rate carries, and how that was computed."""
    place = "max_iops" if solution.runs["max_iops"] else "performance"
    rates = [exact(run.summary["total"]["database_iops"]) for run in solution.runs[place]]
    rate = sum((value for value in rates if value is not None), Decimal(0))
    each = Decimal(repr(solution.content["profile"]["iops_per_user"]))
    users = int(rate / each)
    text = f"{plain(rate, 3)} I/O per second by {each} of a user are {users:,} users, rounded down"
    stated = solution.content["mailbox_sizing"]["users_by_iops_stated"]
    if stated is not None and stated < users:
        return stated, f"{text}; the maker states {stated:,} and keeps the rest as a reserve"
    return users, text


def maximum_users(solution: Solution) -> list[tuple[float, int, str]]:
    """Size of a mailbox, most users, and what limits them."""
    profile = solution.content["profile"]
    capacity_gb = Decimal(repr(profile["mailbox_gb"])) * profile["users"]
    by_iops, _ = users_by_iops(solution)
    found = []
    for size in solution.content["mailbox_sizing"]["mailbox_sizes_gb"]:
        by_capacity = int(capacity_gb / Decimal(repr(size)))
        users = min(by_capacity, by_iops)
        found.append((size, users, "capacity" if by_capacity <= by_iops else "I/O"))
    return found


def table_9(solution: Solution) -> Table:
    """The most users for each size of mailbox."""
    rows: list[list[Any]] = [
        [users, f"{size:g}", limit] for size, users, limit in maximum_users(solution)
    ]
    return Table(
        "Table 9: Maximum user count", ["Maximum users", "Mailbox size (GB)", "Limited by"], rows
    )


def evidence_table(solution: Solution) -> Table:
    """Where each figure comes from."""
    rows = []
    for place, runs in solution.runs.items():
        for index, run in enumerate(runs):
            seconds = run.summary["window"]["seconds"]
            length = None if not seconds else f"{seconds / 3600:.1f} h"
            qualifies = "yes" if run.verdict["qualifying"] else "no"
            name = place.replace("_", " ")
            rows.append(
                [
                    name,
                    solution.machine(run, index),
                    run.verdict["result"],
                    qualifies,
                    length,
                    _origin(run),
                ]
            )
    return Table(
        "Evidence", ["Test", "Server", "Result", "Qualifies", "Measured for", "Measured by"], rows
    )


def _origin(run: Run) -> str:
    if run.reported is None:
        return f"Plimsoll {run.environment['plimsoll']}"
    tool = run.verdict["imported"]
    return f"{tool['tool']} {tool['tool_version'] or ''}".strip() + ", imported"


def reservations(solution: Solution) -> list[str]:
    """What speaks against relying on a run, each in a sentence that begins with its test."""
    found = []
    for place, runs in solution.runs.items():
        for index, run in enumerate(runs):
            contradictions = sum(
                1 for finding in run.findings if finding["kind"] == "contradiction"
            )
            reasons = [*run.verdict["not_qualifying_because"], *run.verdict.get("cautions", [])]
            reasons += (
                [f"its figures contradict each other in {contradictions} places, see its appendix"]
                if contradictions
                else []
            )
            if reasons:
                found.append(
                    f"{place.replace('_', ' ').capitalize()}, {solution.machine(run, index)}: "
                    f"{'; '.join(reasons)}."
                )
    return found
