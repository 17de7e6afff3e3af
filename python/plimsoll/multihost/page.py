"""The result of several hosts for people.

A page with the total first and every host beside it, and lines for a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.documents.environment import WallClock
from plimsoll.documents.figures import Totals
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict, read_verdict
from plimsoll.files import folder
from plimsoll.multihost.overlap import Overlap
from plimsoll.multihost.reading import HostRun, remarks
from plimsoll.multihost.verdict import TOGETHER_SHARE
from plimsoll.pages.tables import Table, duration_shown, shown
from plimsoll.verdict.text import WORDS, colour_of

if TYPE_CHECKING:
    from plimsoll.pages.kit import Chart

TOTAL = "All hosts"
#: Heading, kind of transfer and figure of the rows of hosts; the total is made the same way.
RATES = (
    ("Database IOPS", "database_iops", None),
    ("Database reads/s", "database_read", "per_s"),
    ("Database writes/s", "database_write", "per_s"),
    ("Log writes/s", "log_write", "per_s"),
    ("Maintenance reads/s", "maintenance", "per_s"),
    ("Transactions/s", "transactions_per_s", None),
)
LATENCIES = (
    ("Database read, mean (ms)", "database_read", "latency_ms_mean"),
    ("p99 (ms)", "database_read", "latency_ms_p99"),
    ("Database write, mean (ms)", "database_write", "latency_ms_mean"),
    ("p99 (ms)", "database_write", "latency_ms_p99"),
    ("Log write, mean (ms)", "log_write", "latency_ms_mean"),
    ("p99 (ms)", "log_write", "latency_ms_p99"),
    ("Transaction response, p99 (ms)", "transactions", "response_ms_p99"),
)


def warnings_of(hosts: Sequence[HostRun], overlap: Overlap) -> list[str]:
    """What a reader must know before the figures mean anything."""
    apart = []
    if overlap.share < TOGETHER_SHARE:
        apart = [
            f"all hosts measured together for {duration_shown(overlap.seconds)}, "
            f"{overlap.share:.0%} of the longest measured "
            "time; rates and means are of that time, percentiles of all that each host measured"
        ]
    return [*apart, *remarks(hosts), clock_caveat(hosts)]


def clock_caveat(hosts: Sequence[HostRun]) -> str:
    """How far the common time can be trusted."""
    each = ", ".join(
        f"{host.name}: {clock_words(host.run.environment.get('clock'))}" for host in hosts
    )
    return (
        f"the common time is found by the wall clock of each host ({each}); clocks that are a "
        f"second apart shift "
        "the windows by a second"
    )


def clock_words(clock: WallClock | None) -> str:
    """What a kernel said of its clock.

    >>> clock_words({"synchronised": True, "error_ms_max": 12.34}), clock_words(None)
    ('in step within 12.3 ms by its own account', 'not known to be in step')
    """
    if clock is None or clock.get("synchronised") is None:
        return "not known to be in step"
    if not clock["synchronised"]:
        return "NOT kept in step"
    return f"in step within {shown(clock.get('error_ms_max') or 0.0)} ms by its own account"


def lines_of(hosts: Sequence[HostRun], overlap: Overlap, summary: Summary) -> list[str]:
    """The table of hosts and what must be known, for a terminal.

    The verdict is printed as any other.
    """
    table = rates_table(summary)
    latencies = {row[0]: row for row in latency_table(summary).rows}
    headings = [
        "",
        "database IOPS",
        "transactions/s",
        "db read ms",
        "p99",
        "log write ms",
        "p99",
        "result",
    ]
    results = {host.name: str(host.verdict.result) for host in hosts}
    rows = [headings]
    for row in table.rows:
        times = latencies[row[0]]
        rows.append(
            [
                str(row[0]),
                *(
                    shown(value)
                    for value in (row[1], row[-1], times[1], times[2], times[5], times[6])
                ),
                results.get(row[0], ""),
            ]
        )
    widths = [max(len(row[index]) for row in rows) for index in range(len(headings))]
    lines = [
        "  "
        + "  ".join(
            cell.ljust(width) if index in (0, len(headings) - 1) else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    span = f"from {summary.window.start_utc} to {summary.window.end_utc}"
    head = f"all {len(hosts)} hosts measured together for {duration_shown(overlap.seconds)}, {span}"
    return [head, "", *lines, "", *(f"note: {text}" for text in warnings_of(hosts, overlap))]


def _row(
    name: str | None, total: Totals, columns: Sequence[tuple[str, str, str | None]]
) -> list[Any]:
    values = [(getattr(total, kind), figure) for _, kind, figure in columns]
    return [
        name,
        *(value if figure is None else getattr(value, figure) for value, figure in values),
    ]


def rates_table(summary: Summary) -> Table:
    """Rates of every host in the common time, and their sums."""
    rows = [_row(item.host, item, RATES) for item in summary.hosts]
    note = "In the time that all hosts measured. The last row is the sum of the rows above it."
    headings = ["Host", *(heading for heading, _, _ in RATES)]
    return Table(
        "Rates", headings, [*rows, _row(TOTAL, summary.total, RATES)], note, has_total=True
    )


def latency_table(summary: Summary) -> Table:
    """Latencies of every host, and of all transfers of all hosts as if one had made them."""
    rows = [_row(item.host, item, LATENCIES) for item in summary.hosts]
    note = (
        "The last row: means weighted by operations, and percentiles of the merged distributions "
        "of all hosts, not means of "
        "their percentiles."
    )
    headings = ["Host", *(heading for heading, _, _ in LATENCIES)]
    return Table(
        "Latencies", headings, [*rows, _row(TOTAL, summary.total, LATENCIES)], note, has_total=True
    )


def render(home: Path, hosts: Sequence[HostRun], overlap: Overlap) -> str:
    """The page as text."""
    from plimsoll.pages.kit import Chapter
    from plimsoll.pages.sheet import Sheet, render_sheet

    summary, verdict = Summary.read(home / folder.SUMMARY), read_verdict(home / folder.VERDICT)
    return render_sheet(
        Sheet(
            product="Plimsoll, several hosts at once",
            title=summary.name,
            where=f"{len(hosts)} hosts, together for {duration_shown(overlap.seconds)} from "
            f"{summary.window.start_utc}",
            status=colour_of(verdict),
            headline=verdict.headline,
            sentences=[*verdict.reasons, *_qualifying(verdict)],
            warnings=[*warnings_of(hosts, overlap), *verdict.cautions],
            chapters=[
                Chapter(
                    "total",
                    "All hosts and their total",
                    [rates_table(summary), latency_table(summary)],
                    _charts(summary),
                ),
                Chapter(
                    "hosts", "Hosts", [_hosts(home, hosts), _windows(summary), *_obstacles(verdict)]
                ),
                Chapter("checks", "Checks", [_checks(verdict)]),
                Chapter(
                    "databases",
                    "Databases and instances",
                    [_databases(summary), _instances(summary)],
                ),
            ],
            made_by="plimsoll report",
        )
    )


def _qualifying(verdict: Verdict) -> list[str]:
    count = len(verdict.not_qualifying_because)
    return (
        [f"A rehearsal and no qualification; {count} reasons stand under Hosts."] if count else []
    )


def _obstacles(verdict: Verdict) -> list[Table]:
    """What keeps the hosts from a qualification, opened on demand.

    Every host has its own list, and most are alike.
    """
    rows = [[text] for text in verdict.not_qualifying_because]
    return (
        [Table("Not a qualification, because", ["Host and reason"], rows, folded=True)]
        if rows
        else []
    )


def _hosts(home: Path, hosts: Sequence[HostRun]) -> Table:
    listed = {
        item["host"]: item["folder"] for item in folder.read_json(home / folder.HOSTS)["hosts"]
    }
    rows = [
        [
            host.name,
            host.machine,
            ", ".join(str(target["path"]) for target in host.run.plan["run"]["targets"]),
            len(host.summary.databases),
            host.verdict.headline,
            "; ".join(host.verdict.reasons),
            listed[host.name],
        ]
        for host in hosts
    ]
    headings = ["Host", "Machine", "Storage", "Databases", "Result", "Reasons", "Folder"]
    return Table(
        "Hosts",
        headings,
        rows,
        "Each folder is the whole run of that host, with a report of its own.",
    )


def _windows(summary: Summary) -> Table:
    rows = [
        [
            row.host,
            row.start_utc,
            row.end_utc,
            f"{row.share:.1%}",
            row.seconds_counted,
            clock_words(row.clock),
        ]
        for row in (summary.overlap.hosts if summary.overlap else ())
    ]
    headings = [
        "Host",
        "Measured from (UTC)",
        "until (UTC)",
        "Share that is common",
        "Seconds counted",
        "Its clock",
    ]
    note = (
        "Counted are the samples that lie wholly in the common time, so each host's seconds end "
        "where its samples do."
    )
    return Table("Measured time", headings, rows, note)


def _checks(verdict: Verdict) -> Table:
    rows = [
        [check.host or TOTAL, check.title, check.scope, WORDS[check.status], check.reason]
        for check in verdict.checks
    ]
    note = (
        "Each host was judged over all that it measured; what all must make together, over the "
        "common time."
    )
    return Table(
        "Every check of every host", ["Host", "Check", "Where", "Result", "Why"], rows, note
    )


def _databases(summary: Summary) -> Table:
    rows = [
        [
            item.name,
            item.iops,
            item.database_read.latency_ms_mean,
            item.database_read.latency_ms_p99,
            item.database_write.latency_ms_mean,
        ]
        for item in summary.databases
    ]
    return Table(
        "Databases",
        ["Database", "IOPS", "Read, mean (ms)", "Read, p99 (ms)", "Write, mean (ms)"],
        rows,
    )


def _instances(summary: Summary) -> Table:
    rows = [
        [
            item.name,
            item.log_write.per_s,
            item.log_write.latency_ms_mean,
            item.log_write.latency_ms_p99,
            item.page_fault_stalls_per_s,
        ]
        for item in summary.instances
    ]
    headings = [
        "Instance",
        "Log writes/s",
        "Log write, mean (ms)",
        "Log write, p99 (ms)",
        "Page fault stalls/s",
    ]
    return Table("Instances", headings, rows)


def _charts(summary: Summary) -> list[Chart]:
    """The key figures of every host as bars."""
    from plimsoll.compare.charts import KEY_FIGURES, Bars, value_chart
    from plimsoll.compare.figures import FIGURES

    titles = {figure.name: (figure.title, figure.unit) for figure in FIGURES}
    values: dict[str, list[float | None]] = {
        "database_iops": [item.database_iops for item in summary.hosts],
        "total_database_read_latency_ms_mean": [
            item.database_read.latency_ms_mean for item in summary.hosts
        ],
        "total_log_write_latency_ms_mean": [
            item.log_write.latency_ms_mean for item in summary.hosts
        ],
    }
    hosts = [item.host or "" for item in summary.hosts]
    return [
        value_chart(
            Bars(
                name,
                *titles[name],
                [(host, value, None) for host, value in zip(hosts, values[name], strict=True)],
            )
        )
        for name, _, _ in KEY_FIGURES
    ]
