"""The results of stores as the driver of DVD Store counts them: sums since the warm-up ended, at
the end of every ten seconds.

Means are those of orders from their intended start, as everywhere here; the original begins when a
thread gets to it, which is the same for sessions that think. Lines end with the
last sample within their ten seconds. Where the original shows the longest of the last hundred
orders, the longest of the last ten seconds stands: single orders are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import StoreWorkload
from plimsoll.files.parquet import Query
from plimsoll.results.distributions import Counted, counted_of
from plimsoll.units import NS_PER_MS, NS_PER_S

#: As the driver prints, unless told otherwise.
LINE_EVERY_S = 10
#: Steps by the names that the driver has for them.
STEPS = {
    "login": "store_login",
    "newcust": "store_new_customer",
    "browse": "store_search",
    "purchase": "store_purchase",
}


@dataclass(frozen=True)
class DvdStoreLine:
    """Sums since the warm-up.

    Attributes:
        seconds: since the warm-up ended.
        orders: with those that were rolled back.
        total_ns: how long all orders took.
        longest_ns: the longest order of the last ten seconds.
        rolled_back: orders without stock.
        sampled_ms: mean of the orders of the last ten seconds.
    """

    seconds: float
    orders: int
    total_ns: float
    longest_ns: int
    rolled_back: int
    sampled_ms: float

    @property
    def opm(self) -> int:
        """Orders per minute, whole."""
        return int(60 * self.orders / self.seconds) if self.seconds else 0

    @property
    def mean_ms(self) -> float:
        """Mean of all orders; 0 where there was none."""
        return self.total_ns / self.orders / NS_PER_MS if self.orders else 0.0

    @property
    def longest_ms(self) -> float:
        """The longest order of the last ten seconds."""
        return self.longest_ns / NS_PER_MS

    @property
    def rolled_back_percent(self) -> float:
        """Share of orders without stock; 0 where there was none."""
        return 100 * self.rolled_back / self.orders if self.orders else 0.0


@dataclass(frozen=True)
class DvdStoreTable:
    """What the driver says of one target, or of all.

    Attributes:
        workload: the name of the load; empty for all.
        lines: one for every ten seconds, and one for the end.
        steps: by the driver's names.
        orders_from_start, rolled_back_from_start: with those of the warm-up.
    """

    workload: str
    lines: list[DvdStoreLine]
    steps: dict[str, Counted]
    orders_from_start: int
    rolled_back_from_start: int


def dvdstore_tables(plan: Plan, ask: Query) -> list[DvdStoreTable]:
    """The table of all loads on stores, then those of each where there are several.

    None where the run loaded no store, or measured nothing.

    Args:
        plan: the completed plan.
        ask: asks the tables `sample` and `measured` (samples of the measured phases).
    """
    names = [item.name for item in plan.run.workloads if isinstance(item, StoreWorkload)]
    each = [("", names)] if len(names) == 1 else [("", names), *((name, [name]) for name in names)]
    tables = [_table(ask, title, loads) for title, loads in each if names]
    return [table for table in tables if table.lines]


def _table(ask: Query, title: str, loads: Sequence[str]) -> DvdStoreTable:
    started = ask(
        "SELECT (coalesce(sum(count) FILTER (metric = 'order'), 0))::BIGINT AS orders,"
        " (coalesce(sum(count) FILTER (metric = 'store_rolled_back'), 0))::BIGINT AS rolled_back"
        " FROM sample WHERE list_contains($loads, workload)",
        {"loads": list(loads)},
    )[0]
    return DvdStoreTable(
        workload=title,
        lines=_lines(ask, loads),
        steps=_steps(ask, loads),
        orders_from_start=started["orders"],
        rolled_back_from_start=started["rolled_back"],
    )


def _lines(ask: Query, loads: Sequence[str]) -> list[DvdStoreLine]:
    rows = ask(
        "WITH each AS (SELECT end_ns, max(interval_ns)::BIGINT AS interval_ns,"
        " (sum(count) FILTER (of_load AND metric = 'order'))::BIGINT AS orders,"
        " (sum(latency_ns_sum) FILTER (of_load AND metric = 'order'))::DOUBLE AS total_ns,"
        " (max(latency_ns_max) FILTER (of_load AND metric = 'order'))::BIGINT AS longest_ns,"
        " (sum(count) FILTER (of_load AND metric = 'store_rolled_back'))::BIGINT AS rolled_back"
        " FROM (SELECT *, coalesce(list_contains($loads, workload), false) AS of_load FROM "
        "measured)"
        " GROUP BY end_ns),"
        " numbered AS (SELECT *, (sum(interval_ns) OVER (ORDER BY end_ns))::BIGINT AS passed_ns"
        " FROM each)"
        " SELECT max(passed_ns)::BIGINT AS passed_ns, coalesce(sum(orders), 0)::BIGINT AS orders,"
        " coalesce(sum(total_ns), 0)::DOUBLE AS total_ns,"
        " coalesce(max(longest_ns), 0)::BIGINT AS longest_ns,"
        " coalesce(sum(rolled_back), 0)::BIGINT AS rolled_back"
        " FROM numbered GROUP BY (passed_ns - 1) // $every_ns ORDER BY passed_ns",
        {"loads": list(loads), "every_ns": int(LINE_EVERY_S * NS_PER_S)},
    )
    lines: list[DvdStoreLine] = []
    orders, total_ns, rolled_back = 0, 0.0, 0
    for row in rows:
        orders, total_ns = orders + row["orders"], total_ns + row["total_ns"]
        rolled_back += row["rolled_back"]
        lines.append(
            DvdStoreLine(
                seconds=row["passed_ns"] / NS_PER_S,
                orders=orders,
                total_ns=total_ns,
                longest_ns=row["longest_ns"],
                rolled_back=rolled_back,
                sampled_ms=row["total_ns"] / row["orders"] / NS_PER_MS if row["orders"] else 0.0,
            )
        )
    return lines


def _steps(ask: Query, loads: Sequence[str]) -> dict[str, Counted]:
    counted = [counted_of(ask, load) for load in loads]
    steps: dict[str, Counted] = {}
    for name, metric in STEPS.items():
        own = [one[metric] for one in counted if metric in one]
        steps[name] = Counted(
            count=sum(one.count for one in own),
            total_ns=sum(one.total_ns for one in own),
            max_ns=max((one.max_ns for one in own), default=0),
        )
    return steps
