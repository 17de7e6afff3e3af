"""Transfers by purpose: of each database, of each log, and of all together.

Everything is asked once for all places, because a run may have hundreds of them. Means are weighted
by operations. Beside them stands what the published test tool computed: the plain mean of the means
of fixed intervals, empty intervals counted as zero. A rest shorter than half such an interval
belongs to the interval before it: one slow transfer in the last millisecond of a run is no sample
of its own. Percentiles come from the merged distributions, not from samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.figures import Transfers
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.files.parquet import Query, Row, Values
from plimsoll.results.distributions import quantiles_ms
from plimsoll.units import NS_PER_MS, NS_PER_S

#: Figures of a database and of a log, with the metrics that are put together for each. The
#: published tool counted all reads of a file and subtracted those of maintenance or replication;
#: here each purpose is counted by itself.
DATABASE_FIGURES = {
    "database_read": ("database_read",),
    "database_write": ("database_write",),
    "maintenance": ("maintenance",),
    "database_read_with_maintenance": ("database_read", "maintenance"),
}
LOG_FIGURES = {
    "log_write": ("log_write",),
    "log_read": ("log_read",),
    "log_replication": ("log_replication",),
    "log_read_with_replication": ("log_read", "log_replication"),
}

#: A figure of an instance's database; without instance and database of all together.
Place = tuple[str, str | None, int | None]

_PAIRS = ", ".join(
    f"('{figure}', '{metric}')"
    for figure, metrics in {**DATABASE_FIGURES, **LOG_FIGURES}.items()
    for metric in metrics
)
#: To stand behind a table with the column `metric`.
_BY_FIGURE = f"JOIN (VALUES {_PAIRS}) AS pair(figure, metric) USING (metric)"


def _by_place(*columns: str) -> str:
    """Groups for each place and for all together, each divided further by some columns."""
    more = "".join(f", {column}" for column in columns)
    return f"GROUP BY GROUPING SETS ((figure, instance, database{more}), (figure{more}))"


class AllTransfers:
    """The transfers of all places of a run.

    Args:
        ask: asks the tables `measured` and `bucket`.
        phases: in which was measured.
        seconds: how long that was.
    """

    def __init__(self, ask: Query, phases: Sequence[PhaseOutcome], seconds: float) -> None:
        self._ask, self._phases, self._seconds = ask, phases, seconds
        self._interval_ns = settings.limits()["sample_interval_s"] * NS_PER_S
        self._lasts = [self._last_interval(phase) for phase in phases]
        self._sums = self._rows(
            "SELECT figure, instance, database, sum(count)::BIGINT AS count,"
            " sum(errors)::BIGINT AS errors, sum(bytes)::BIGINT AS bytes,"
            " sum(latency_ns_sum)::DOUBLE AS total_ns, max(latency_ns_max)::BIGINT AS max_ns"
            f" FROM measured {_BY_FIGURE} {_by_place()}"
        )
        self._published = self._published_means()
        self._over_time: dict[Place, Row] = {}
        # One figure after the other: a row for each moment of each place fills much memory.
        for figure in dict.fromkeys(place[0] for place, row in self._sums.items() if row["count"]):
            self._over_time |= self._rows(
                # In order of time: a sum of fractions differs in its last digit with the order,
                # and hashes have none.
                "SELECT figure, instance, database,"
                " sum(mean_ns * interval_ns ORDER BY end_ns) / sum(interval_ns) AS mean_ns FROM"
                " (SELECT figure, instance, database, end_ns,"
                " sum(latency_ns_sum)::DOUBLE / sum(count) AS mean_ns,"
                " max(interval_ns)::DOUBLE AS interval_ns"
                f" FROM measured {_BY_FIGURE} WHERE figure = $figure AND interval_ns > 0"
                f" {_by_place('end_ns')} HAVING sum(count) > 0)"
                " GROUP BY figure, instance, database",
                {"figure": figure},
            )
        self._buckets = self._rows(
            "SELECT figure, instance, database, list(upper_ns ORDER BY upper_ns) AS uppers,"
            " list(count ORDER BY upper_ns) AS counts FROM"
            " (SELECT figure, instance, database, upper_ns::BIGINT AS upper_ns,"
            f" sum(count)::BIGINT AS count FROM bucket {_BY_FIGURE}"
            f" WHERE list_contains($phases, phase) AND count > 0 {_by_place('upper_ns')})"
            " GROUP BY figure, instance, database",
            {"phases": [phase.name for phase in phases]},
        )

    def of(self, figure: str, instance: str | None, database: int | None) -> Transfers:
        """Figures of one database, of one log (the database 0), or of all."""
        place, seconds = (figure, instance, database), self._seconds
        sums = self._sums.get(place, {})
        published, buckets = self._published.get(place, {}), self._buckets.get(place, {})
        count, size = sums.get("count", 0), sums.get("bytes", 0)
        over_time_ns = self._over_time.get(place, {}).get("mean_ns")
        return Transfers(
            count=count,
            errors=sums.get("errors", 0),
            per_s=count / seconds if seconds else 0.0,
            bytes_per_s=size / seconds if seconds else 0.0,
            bytes_mean=size / count if count else None,
            bytes_mean_of_samples=published.get("bytes_mean"),
            latency_ms_mean=sums["total_ns"] / count / NS_PER_MS if count else None,
            latency_ms_mean_of_samples=published.get("latency_ms_mean"),
            latency_ms_mean_over_time=None if over_time_ns is None else over_time_ns / NS_PER_MS,
            latency_ms_sample_mean_max=published.get("latency_ms_max") if count else None,
            **quantiles_ms(
                list(zip(buckets.get("uppers", ()), buckets.get("counts", ()), strict=True)),
                "latency_ms",
            ),
            latency_ms_max=sums["max_ns"] / NS_PER_MS if count else None,
        )

    def worst_interval_ns(
        self, figure: str, instance: str, database: int
    ) -> tuple[int, int] | None:
        """The published interval with the highest mean latency; None where there is none."""
        found = self._published.get((figure, instance, database))
        if found is None:
            return None
        place, number = found["worst"]
        phase = self._phases[place]
        start_ns = phase.start_ns + number * self._interval_ns
        # The last one takes a short rest with it.
        is_last = number == self._lasts[place]
        return start_ns, phase.end_ns if is_last else start_ns + self._interval_ns

    def _last_interval(self, phase: PhaseOutcome) -> int:
        """The number of the last published interval of a phase."""
        whole, rest_ns = divmod(phase.end_ns - phase.start_ns, self._interval_ns)
        return whole if whole == 0 or 2 * rest_ns >= self._interval_ns else whole - 1

    def _published_means(self) -> dict[Place, Row]:
        """Means over the published intervals of all phases, in order.

        Intervals begin with their phase: one across two phases would be a sliver of each.
        """
        if not self._phases:
            return {}
        return self._rows(
            "SELECT figure, instance, database,"
            " sum(size ORDER BY place, number) / count(*) AS bytes_mean,"
            " sum(latency_ms ORDER BY place, number) / count(*) AS latency_ms_mean,"
            " max(latency_ms) AS latency_ms_max,"
            " arg_max([place, number], latency_ms ORDER BY place, number) AS worst FROM"
            " (SELECT figure, instance, database, place,"
            " sum(latency_ns_sum)::DOUBLE / greatest(sum(count), 1) / 1e6 AS latency_ms,"
            " sum(bytes)::DOUBLE / greatest(sum(count), 1) AS size,"
            " least((end_ns::BIGINT - start_ns - 1) // $interval, last)::BIGINT AS number"
            f" FROM measured {_BY_FIGURE} JOIN"
            " (SELECT unnest($phases) AS phase, unnest($places) AS place,"
            " unnest($starts) AS start_ns, unnest($lasts) AS last) USING (phase)"
            f" {_by_place('place', 'number')}) GROUP BY figure, instance, database",
            {
                "interval": self._interval_ns,
                "phases": [phase.name for phase in self._phases],
                "places": list(range(len(self._phases))),
                "starts": [phase.start_ns for phase in self._phases],
                "lasts": self._lasts,
            },
        )

    def _rows(self, query: str, values: Values | None = None) -> dict[Place, Row]:
        return {
            (row["figure"], row["instance"], row["database"]): row
            for row in self._ask(query, values or {})
        }
