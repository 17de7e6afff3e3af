"""The figures of each host in the common time, and of all hosts together.

Rates and counts of all are the sums of the hosts', to the last digit. Means are weighted by
operations. Percentiles come from the merged distributions, which every run keeps with the same
bounds: a percentile of all is not a mean of percentiles. The plain means of samples, which the
published reports print, are averaged over hosts as those reports average them over databases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from plimsoll.documents.document import ABSENT
from plimsoll.documents.figures import Responses, Totals, Transfers, Window
from plimsoll.documents.outcome import Ending
from plimsoll.documents.summary import Generator, HostInOverlap, Summary
from plimsoll.documents.summary import Overlap as OverlapFigures
from plimsoll.multihost.overlap import Overlap, Span, monotonic_ns_of, utc_ns_of, utc_text
from plimsoll.multihost.reading import HostRun
from plimsoll.results.distributions import Buckets, quantiles_ms
from plimsoll.results.rate_steps import plateaus
from plimsoll.results.summary import WindowFigures, figures_within, sum_of_known
from plimsoll.results.sustained import Beat, sustained_rate
from plimsoll.results.transfers import DATABASE_FIGURES, LOG_FIGURES
from plimsoll.units import NS_PER_S

SCHEMA_VERSION: Literal[1] = 1
_OF_THE_WHOLE_RUN = ("errors_in_run", "hung_in_run")
_COUNTED = ("errors_in_run", "hung_in_run", "missing_records", "write_conflicts")
_SIZES = (
    "initial_bytes",
    "final_bytes",
    "grown_bytes",
    "pages_verified",
    "pages_damaged",
    "pages_corrected",
)
_WORST = ("executor_busy_mean", "executor_busy_max", "reap_gap_ms_p99", "arrival_lag_ms_p99")


def summarize(name: str, hosts: Sequence[HostRun], overlap: Overlap) -> Summary:
    """The summary of all hosts: the shape of a run's, and beside it what every host contributed."""
    found = [_within(host, overlap) for host in hosts]
    totals = [item.total for item in found]
    windows = [item.window for item in found]
    total = total_of(totals, [item.distributions for item in found])
    # A rate that stages change is not held against itself.
    is_staged = any(load.stages for host in hosts for load in host.summary.load.workloads)
    beats = [_on_utc(host, item) for host, item in zip(hosts, found, strict=True)]
    together = [] if is_staged else [added(beats, overlap.span)]
    return Summary(
        schema_version=SCHEMA_VERSION,
        combined=True,
        name=name,
        ending=_worst_ending([host.summary.ending for host in hosts]),
        error=next((host.summary.error for host in hosts if host.summary.error), None),
        window=Window(
            start_utc=utc_text(overlap.span[0]),
            end_utc=utc_text(overlap.span[1]),
            seconds=overlap.seconds,
            samples_count=sum(window.samples_count for window in windows),
            published_interval_s=windows[0].published_interval_s,
            complete=all(window.complete for window in windows),
        ),
        overlap=OverlapFigures(
            seconds=overlap.seconds,
            share=overlap.share,
            hosts=[
                HostInOverlap(
                    host=host.name,
                    start_utc=utc_text(host.window[0]),
                    end_utc=utc_text(host.window[1]),
                    share=overlap.share_of(index),
                    seconds_counted=windows[index].seconds,
                    clock=host.run.environment.get("clock"),
                )
                for index, host in enumerate(hosts)
            ],
        ),
        total=total,
        plateaus=plateaus(together),
        sustained=sustained_rate(together, total.database_iops) or ABSENT,
        hosts=[item.total.replace(host=host.name) for host, item in zip(hosts, found, strict=True)],
        databases=[
            place.replace(
                host=host.name,
                name=f"{host.name}/{place.name}",
                instance=f"{host.name}/{place.instance}",
            )
            for host, item in zip(hosts, found, strict=True)
            for place in item.databases
        ],
        instances=[
            place.replace(host=host.name, name=f"{host.name}/{place.name}")
            for host, item in zip(hosts, found, strict=True)
            for place in item.instances
        ],
        operations=[
            row.replace(workload=f"{host.name}/{row.workload}")
            for host, item in zip(hosts, found, strict=True)
            for row in item.operations
        ],
        generator=Generator.from_plain(
            {key: _highest([getattr(item.generator, key) for item in found]) for key in _WORST},
        ),
        machine={},
        checksums=[
            place.replace(
                host=host.name,
                name=f"{host.name}/{place.name}",
                instance=f"{host.name}/{place.instance}",
            )
            for host in hosts
            for place in host.summary.checksums
        ],
        backups=[],
        recoveries=[],
        virtual_time=False,
        debug_build=any(host.summary.debug_build for host in hosts),
    )


def _within(host: HostRun, overlap: Overlap) -> WindowFigures:
    anchors = host.run.outcome["anchors"]
    span = (monotonic_ns_of(overlap.span[0], anchors), monotonic_ns_of(overlap.span[1], anchors))
    found = figures_within(host.path, span)
    # Sizes and pages are of the whole run; a window has none of its own. Errors are too, also those
    # from before a gap.
    whole = {key: getattr(host.summary.total, key) for key in (*_SIZES, *_OF_THE_WHOLE_RUN)}
    return replace(found, total=found.total.replace(**whole))


def _on_utc(host: HostRun, found: WindowFigures) -> list[Beat]:
    """The samples of a host with their ends in UTC, which is the only clock that hosts have in
    common.
    """
    anchors = host.run.outcome["anchors"]
    return [
        replace(row, end_ns=utc_ns_of(row.end_ns, anchors)) for rows in found.beats for row in rows
    ]


def added(hosts: Sequence[Sequence[Beat]], span: Span) -> list[Beat]:
    """The samples of several hosts as those of one.

    Equal stretches of the common time, in each the sum of their rates.

    A stretch is as long as the longest sample, and one that a host has no sample in is left out.

    >>> one = [Beat(10 * NS_PER_S, 10.0, 100.0), Beat(20 * NS_PER_S, 10.0, 50.0)]
    >>> [beat.operations for beat in added([one, one], (0, 20 * NS_PER_S))]
    [200.0, 100.0]
    """
    width_s = max((row.seconds for rows in hosts for row in rows), default=0.0)
    cells: list[dict[int, list[Beat]]] = []
    for rows in hosts:
        own: dict[int, list[Beat]] = {}
        for row in rows:
            middle_s = (row.end_ns - span[0]) / NS_PER_S - row.seconds / 2
            own.setdefault(int(middle_s / width_s), []).append(row)
        cells.append(own)
    common = sorted(set.intersection(*(set(own) for own in cells))) if cells else []
    found = []
    for cell in common:
        parts = [own[cell] for own in cells]
        seconds = [sum(row.seconds for row in rows) for rows in parts]
        rates = [
            sum(row.operations for row in rows) / length
            for rows, length in zip(parts, seconds, strict=True)
        ]
        sizes = [
            sum(row.size for row in rows) / length
            for rows, length in zip(parts, seconds, strict=True)
        ]
        end_ns = span[0] + int((cell + 1) * width_s * NS_PER_S)
        found.append(Beat(end_ns, width_s, sum(rates) * width_s, sum(sizes) * width_s))
    return found


def total_of(totals: Sequence[Totals], distributions: Sequence[Mapping[str, Buckets]]) -> Totals:
    """The totals of several hosts as one."""
    purposes = {
        name: transfers_together(
            [total.transfers(name) for total in totals], [item[name] for item in distributions]
        )
        for name in (*DATABASE_FIGURES, *LOG_FIGURES)
    }
    transactions = [total.transactions for total in totals]
    return totals[0].replace(
        host=ABSENT,
        database_iops=sum(total.database_iops for total in totals),
        transactions_per_s=sum(total.transactions_per_s for total in totals),
        **purposes,
        transactions=responses_together(
            transactions, [item["transactions"] for item in distributions]
        ),
        **{key: sum(getattr(total, key) for total in totals) for key in _COUNTED},
        **{key: sum_of_known([getattr(total, key) for total in totals]) for key in _SIZES},
    )


def transfers_together(figures: Sequence[Transfers], distributions: Sequence[Buckets]) -> Transfers:
    """One purpose of I/O of several hosts, with its distribution on each.

    Upper bounds and counts.
    """
    return Transfers(
        count=sum(figure.count for figure in figures),
        errors=sum(figure.errors for figure in figures),
        per_s=sum(figure.per_s for figure in figures),
        bytes_per_s=sum(figure.bytes_per_s for figure in figures),
        bytes_mean=_weighted([(figure.count, figure.bytes_mean) for figure in figures]),
        bytes_mean_of_samples=_plain_mean([figure.bytes_mean_of_samples for figure in figures]),
        latency_ms_mean=_weighted([(figure.count, figure.latency_ms_mean) for figure in figures]),
        latency_ms_mean_of_samples=_plain_mean(
            [figure.latency_ms_mean_of_samples for figure in figures]
        ),
        latency_ms_mean_over_time=_plain_mean(
            [figure.latency_ms_mean_over_time for figure in figures]
        ),
        latency_ms_sample_mean_max=_highest(
            [figure.latency_ms_sample_mean_max for figure in figures]
        ),
        **quantiles_ms(merged(distributions), "latency_ms"),
        latency_ms_max=_highest([figure.latency_ms_max for figure in figures]),
    )


def responses_together(figures: Sequence[Responses], distributions: Sequence[Buckets]) -> Responses:
    """The transactions of several hosts, with their distribution on each.

    Upper bounds and counts.
    """
    return Responses(
        count=sum(figure.count for figure in figures),
        per_s=sum(figure.per_s for figure in figures),
        response_ms_mean=_weighted([(figure.count, figure.response_ms_mean) for figure in figures]),
        **quantiles_ms(merged(distributions), "response_ms"),
        response_ms_max=_highest([figure.response_ms_max for figure in figures]),
    )


def merged(distributions: Sequence[Buckets]) -> list[tuple[int, int]]:
    """Several distributions as one, because all have the same bounds.

    >>> merged([[(10, 1), (20, 2)], [(20, 3), (40, 1)]])
    [(10, 1), (20, 5), (40, 1)]
    """
    found: dict[int, int] = {}
    for buckets in distributions:
        for upper_ns, count in buckets:
            found[upper_ns] = found.get(upper_ns, 0) + count
    return sorted(found.items())


def _weighted(means: Sequence[tuple[int, float | None]]) -> float | None:
    """The mean of means, each weighted by its count."""
    known = [(count, mean) for count, mean in means if count and mean is not None]
    total = sum(count for count, _ in known)
    return sum(count * mean for count, mean in known) / total if total else None


def _plain_mean(means: Sequence[float | None]) -> float | None:
    known = [mean for mean in means if mean is not None]
    return sum(known) / len(known) if known else None


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _worst_ending(endings: Sequence[Ending]) -> Ending:
    return next((ending for ending in endings if ending != "complete"), "complete")
