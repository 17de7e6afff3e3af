"""The table of counters: what the published reports sampled, under the published names, from the
samples of a run.

`counters.parquet` has one row for each counter of each place and interval. The engine's counters
and the machine's stand in one table with one clock. Which counters there are, their Linux sources
and the published intervals are data (`data/counters.toml`). The values of an interval come from the
finer samples; the averages of the published reports are plain means of these values, intervals
without a transfer counted as zero. A rest shorter than half an interval belongs to the interval
before it, as everywhere.

Limits: latencies of an interval are means, and a counter of the kernel belongs to everybody on the
machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from plimsoll import settings
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import CounterAverages
from plimsoll.files import folder, parquet
from plimsoll.units import NS_PER_S

#: Rows of a disk's samples: under the databases, under the log.
ROLES = {1: "databases", 0: "log"}
#: One value of an interval, from the sums of its samples, by how it comes about.
_VALUES = {
    "latency": "coalesce(sum(latency_ns_sum) / nullif(sum(count), 0) / 1e6, 0)",
    "bytes": "coalesce(sum(bytes) / nullif(sum(count), 0), 0)",
    "per_s": "sum(count) / any_value(seconds)",
    "level": "sum(weighted) / any_value(seconds) / 1e9 * factor",
    "level_per_s": "sum(total) / any_value(seconds) * factor",
    "ratio": "coalesce(sum(total) FILTER (NOT divides) / nullif(sum(total) FILTER (divides), 0), 0)"
    " * factor",
}
#: What a counter takes from one metric of one place.
_PART = (
    *("object", "counter", "unit", "how", "factor", "metric", "divides"),
    *("instance", "database", "label", "role"),
)
_TYPES = {"factor": float, "divides": bool, "database": np.uint32}


def interval_s(phase_name: str, kind: str, plan: Plan) -> float:
    """The interval of the table in a phase.

    What the plan states, else what was published for its kind.
    """
    stated = plan.judgement.counter_interval_s
    if phase_name in stated:
        return float(stated[phase_name])
    published = settings.counters()["intervals_s"]
    return float(published.get(kind, published["other"]))


def write_counters(run_folder: Path) -> Path:
    """Write `counters.parquet` from the samples of a run.

    Raises:
        FolderError: an earlier stage's file is missing.
    """
    plan, outcome = Plan.read(run_folder / folder.PLAN), Outcome.read(run_folder / folder.OUTCOME)
    samples = run_folder / folder.SAMPLES
    if not samples.is_file():
        raise folder.FolderError(f"{samples} is missing; the run was cut off before it measured")
    target = run_folder / folder.COUNTERS
    with folder.replacing(target) as unfinished, parquet.database() as database:
        database.execute(f"CREATE TEMP VIEW sample AS SELECT * FROM {parquet.rows_of(samples)}")
        _bin(database, plan, outcome)
        _create_table(database)
        _fill(database, plan, outcome)
        database.execute(
            f"COPY (SELECT * FROM counter ORDER BY end_ns, object, counter, instance) "
            f"{parquet.into(unfinished)}"
        )
    return target


def averages(run_folder: Path, ask: parquet.Query) -> list[CounterAverages]:
    """Average, minimum and maximum of every counter in each kind of phase.

    Empty for a run without the table.

    The average is the published one: the plain mean of the values of all intervals.
    """
    path = run_folder / folder.COUNTERS
    if not path.is_file():
        return []
    found = ask(
        "SELECT phase_kind, object, counter, instance, role, unit, avg(value) AS average, "
        "min(value) AS minimum,"
        f" max(value) AS maximum, count(*) AS intervals_count FROM {parquet.rows_of(path)}"
        " GROUP BY ALL ORDER BY phase_kind, object, counter, instance",
        {},
    )
    about = {(row["object"], row["counter"]): row for row in settings.counters()["counter"]}
    averages = []
    for item in found:
        row = about.get((item["object"], item["counter"]), {})
        averages.append(
            CounterAverages(**item, source=row.get("source"), nearness=row.get("nearness"))
        )
    return averages


def wide_table(run_folder: Path) -> tuple[list[str], list[list[Any]]]:
    """The table as performance monitors write it.

    One row for each interval, one column for each counter of each place.

    Raises:
        FolderError: the run has no table of counters.
    """
    path = run_folder / folder.COUNTERS
    if not path.is_file():
        raise folder.FolderError(f"{path} is missing; write it with `plimsoll report {run_folder}`")
    with parquet.database() as database:
        rows = database.execute(
            "SELECT end_utc, phase, object, instance, counter, value"
            f" FROM {parquet.rows_of(path)} ORDER BY end_ns, object, counter, instance"
        ).fetchall()
    columns: dict[str, int] = {}
    lines: dict[tuple[str, str], dict[int, float]] = {}
    for end_utc, phase, thing, instance, counter, value in rows:
        column = columns.setdefault(f"\\{thing}({instance})\\{counter}", len(columns))
        lines.setdefault((end_utc, phase), {})[column] = value
    width = len(columns)
    table = [
        [*key, *(values.get(column) for column in range(width))] for key, values in lines.items()
    ]
    return ["end_utc", "phase", *columns], table


def _bin(database: duckdb.DuckDBPyConnection, plan: Plan, outcome: Outcome) -> None:
    """Put the samples of each phase together by intervals; every phase begins one of its own."""
    database.execute(
        "CREATE TEMP TABLE phase (name VARCHAR, kind VARCHAR, start_ns BIGINT, end_ns BIGINT,"
        " alone BOOLEAN, width_ns BIGINT, last BIGINT, utc_ns BIGINT)"
    )
    names = [phase.name for phase in outcome.phases]
    for phase in outcome.phases:
        width_ns = int(interval_s(phase.name, phase.kind, plan) * NS_PER_S)
        whole, rest = divmod(max(phase.end_ns - phase.start_ns, 0), width_ns)
        last = whole if whole == 0 or 2 * rest >= width_ns else whole - 1
        alone = names.count(phase.name) == 1
        times = [phase.start_ns, phase.end_ns, alone, width_ns, last, _utc_ns(0, outcome)]
        database.execute(
            "INSERT INTO phase VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [phase.name, phase.kind, *times]
        )
    database.execute(
        "CREATE TEMP TABLE placed AS SELECT s.*, p.kind AS phase_kind, p.utc_ns,"
        " greatest(0, least((s.end_ns::BIGINT - p.start_ns - 1) // p.width_ns, p.last)) AS bin"
        # Samples bear the name of their phase; phases of the same name are told apart by their
        # times.
        " FROM sample s JOIN phase p ON s.phase = p.name AND (p.alone OR (s.end_ns > p.start_ns "
        "AND s.end_ns <= p.end_ns))"
        " WHERE s.interval_ns > 0"
    )
    database.execute(
        "CREATE TEMP TABLE binned AS WITH ends AS"
        " (SELECT phase, bin, max(end_ns)::BIGINT AS end_ns,"
        " (max(end_ns)::BIGINT - min(end_ns::BIGINT - interval_ns::BIGINT)) / 1e9 AS seconds FROM "
        "placed GROUP BY phase, bin)"
        " SELECT phase, bin, phase_kind, instance, database, metric, e.end_ns AS end_ns, e.seconds "
        "AS seconds,"
        " any_value(utc_ns) AS utc_ns, sum(count)::DOUBLE AS count, sum(bytes)::DOUBLE AS bytes,"
        " sum(latency_ns_sum)::DOUBLE AS latency_ns_sum, sum(value) AS total, sum(value * "
        "interval_ns) AS weighted"
        " FROM placed JOIN ends e USING (phase, bin)"
        " GROUP BY phase, bin, phase_kind, instance, database, metric, e.end_ns, e.seconds"
    )


def _create_table(database: duckdb.DuckDBPyConnection) -> None:
    database.execute(
        "CREATE TEMP TABLE counter (end_ns BIGINT, end_utc VARCHAR, interval_s DOUBLE,"
        " phase VARCHAR, phase_kind VARCHAR, object VARCHAR, instance VARCHAR, role VARCHAR,"
        " counter VARCHAR, unit VARCHAR, value DOUBLE)"
    )


def _fill(database: duckdb.DuckDBPyConnection, plan: Plan, outcome: Outcome) -> None:
    """All counters of all their places."""
    parts = [
        (
            *(row["object"], row["counter"], row["unit"], row["how"], row.get("factor", 1.0)),
            *(metric, metric == row.get("per")),
            *(place.instance, place.database, place.label, place.role),
        )
        for row in settings.counters()["counter"]
        for place in _places(row["scope"], plan, outcome)
        for metric in dict.fromkeys([*row["metrics"], *([row["per"]] if "per" in row else [])])
    ]
    columns = {
        name: np.array(column, dtype=_TYPES.get(name, object))
        for name, column in zip(_PART, zip(*parts, strict=True), strict=True)
    }
    database.register("part", columns)
    formulas = " ".join(f"WHEN '{how}' THEN {formula}" for how, formula in _VALUES.items())
    database.execute(
        "INSERT INTO counter SELECT b.end_ns, strftime(make_timestamp((b.end_ns + "
        "any_value(b.utc_ns)) // 1000),"
        " '%Y-%m-%dT%H:%M:%S.%gZ'), b.seconds, b.phase, b.phase_kind, p.object, p.label, p.role, "
        f"p.counter, p.unit, CASE p.how {formulas} END"
        " FROM binned b JOIN part p ON b.instance = p.instance AND b.database = p.database"
        " AND b.metric = p.metric"
        " GROUP BY b.end_ns, b.seconds, b.phase, b.phase_kind, p.object, p.label, p.role, "
        "p.counter, p.unit, p.how, p.factor"
    )
    database.unregister("part")


@dataclass(frozen=True)
class _Place:
    """Where samples are, by what name people know the place, and what it is for."""

    instance: str
    database: int
    label: str
    role: str


def _places(scope: str, plan: Plan, outcome: Outcome) -> list[_Place]:
    """Where the samples of a scope are, with the name of each place and what it is for."""
    instances = plan.run.instances
    if scope == "machine":
        return [_Place(instances[0].name, 0, "_Total", "machine")]
    if scope == "device":
        return _disks(outcome)
    if scope == "log":
        return [_Place(item.name, 0, item.name, "log") for item in instances]
    return [
        _Place(item.name, number, f"{item.name}/{Path(database.file_name).stem}", "database")
        for item in instances
        for number, database in enumerate(item.databases, 1)
    ]


def _disks(outcome: Outcome) -> list[_Place]:
    """Each disk once, with everything it carries: its counters are the same for all of that."""
    carries: dict[str, list[str]] = {}
    first: dict[str, tuple[str, int]] = {}
    for device in outcome.devices:
        for row, role in ROLES.items():
            name = device.log if role == "log" else device.databases
            if name:
                carries.setdefault(name, []).append(f"{role} of {device.instance}")
                first.setdefault(name, (device.instance, row))
    return [_Place(*first[name], name, ", ".join(roles)) for name, roles in carries.items()]


def _utc_ns(monotonic_ns: int, outcome: Outcome) -> int:
    """What a moment of the run's clock is in UTC, by the first anchor."""
    anchor = outcome.anchors[0]
    return int(anchor.utc_ns + monotonic_ns - anchor.monotonic_ns)
