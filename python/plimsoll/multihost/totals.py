"""The figures of each host in the common time, and of all hosts together.

Rates and counts of all are the sums of the hosts', to the last digit. Means are weighted by operations. Percentiles come from the merged
distributions, which every run keeps with the same bounds: a percentile of all is not a mean of percentiles. The plain
means of samples, which the published reports print, are averaged over hosts as those reports average them over databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.multihost.overlap import Overlap, monotonic_ns_of, utc_text
from plimsoll.multihost.reading import HostRun
from plimsoll.results.summary import DATABASE_FIGURES, LOG_FIGURES, QUANTILES, figures_within, quantile_ms

SCHEMA_VERSION = 1
_COUNTED = ("errors_in_run", "hung_in_run", "missing_records", "write_conflicts")
_SIZES = ("initial_bytes", "final_bytes", "grown_bytes", "pages_verified", "pages_damaged")
_WORST = ("executor_busy_mean", "executor_busy_max", "reap_gap_ms_p99", "arrival_lag_ms_p99")


def summarize(name: str, hosts: Sequence[HostRun], overlap: Overlap) -> dict[str, Any]:
    """The summary of all hosts: the shape of a run's, and beside it what every host contributed."""
    found = [_within(host, overlap) for host in hosts]
    totals = [item["total"] for item in found]
    windows = [item["window"] for item in found]
    return {
        "schema_version": SCHEMA_VERSION,
        "combined": True,
        "name": name,
        "ending": _worst_ending([host.run.summary["ending"] for host in hosts]),
        "error": next((host.run.summary["error"] for host in hosts if host.run.summary["error"]), None),
        "window": {
            "start_utc": utc_text(overlap.span[0]),
            "end_utc": utc_text(overlap.span[1]),
            "seconds": overlap.seconds,
            "samples_count": sum(window["samples_count"] for window in windows),
            "published_interval_s": windows[0]["published_interval_s"],
            "complete": all(window["complete"] for window in windows),
        },
        "overlap": {
            "seconds": overlap.seconds,
            "share": overlap.share,
            "hosts": [
                {
                    "host": host.name,
                    "start_utc": utc_text(host.window[0]),
                    "end_utc": utc_text(host.window[1]),
                    "share": overlap.share_of(index),
                    "seconds_counted": windows[index]["seconds"],
                    "clock": host.run.environment.get("clock"),
                }
                for index, host in enumerate(hosts)
            ],
        },
        "total": total_of(totals, [item["distributions"] for item in found]),
        "hosts": [{"host": host.name, **item["total"]} for host, item in zip(hosts, found, strict=True)],
        "databases": _places(hosts, [item["databases"] for item in found]),
        "instances": _places(hosts, [item["instances"] for item in found]),
        "operations": [
            {**row, "workload": f"{host.name}/{row['workload']}"}
            for host, item in zip(hosts, found, strict=True)
            for row in item["operations"]
        ],
        "generator": {key: _highest([item["generator"][key] for item in found]) for key in _WORST},
        "machine": {},
        "checksums": _places(hosts, [host.run.summary["checksums"] for host in hosts]),
        "backups": [],
        "recoveries": [],
        "virtual_time": False,
        "debug_build": any(host.run.summary["debug_build"] for host in hosts),
    }


def _within(host: HostRun, overlap: Overlap) -> dict[str, Any]:
    anchors = host.run.outcome["anchors"]
    span = (monotonic_ns_of(overlap.span[0], anchors), monotonic_ns_of(overlap.span[1], anchors))
    found = figures_within(host.path, span)
    # Sizes and pages are of the whole run; a window has none of its own.
    found["total"] |= {key: host.run.summary["total"].get(key) for key in _SIZES}
    return found


def _places(hosts: Sequence[HostRun], lists: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Databases or instances of all hosts; the host stands before every name, because hosts may call theirs alike."""
    return [
        {
            **place,
            "host": host.name,
            **{key: f"{host.name}/{place[key]}" for key in ("name", "instance") if key in place},
        }
        for host, places in zip(hosts, lists, strict=True)
        for place in places
    ]


def total_of(totals: Sequence[dict[str, Any]], distributions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The totals of several hosts as one."""
    figures = {
        name: together([total[name] for total in totals], [item[name] for item in distributions], "latency")
        for name in (*DATABASE_FIGURES, *LOG_FIGURES)
    }
    transactions = [total["transactions"] for total in totals]
    return {
        "database_iops": sum(total["database_iops"] for total in totals),
        "transactions_per_s": sum(total["transactions_per_s"] for total in totals),
        **figures,
        "transactions": together(transactions, [item["transactions"] for item in distributions], "response"),
        **{key: sum(total[key] for total in totals) for key in _COUNTED},
        **{key: _sum([total[key] for total in totals]) for key in _SIZES},
    }


def together(figures: Sequence[dict[str, Any]], distributions: Sequence[Any], what: str) -> dict[str, Any]:
    """One kind of transfer or operation of several hosts.

    Args:
        figures: of each host, with the keys of a summary.
        distributions: of each host: upper bounds and counts.
        what: "latency" or "response", as the keys begin.
    """
    count = sum(figure["count"] for figure in figures)
    found: dict[str, Any] = {"count": count, "per_s": sum(figure["per_s"] for figure in figures)}
    if what == "latency":
        found |= {
            "errors": sum(figure["errors"] for figure in figures),
            "bytes_per_s": sum(figure["bytes_per_s"] for figure in figures),
            "bytes_mean": _weighted(figures, "bytes_mean"),
            "bytes_mean_of_samples": _plain_mean(figures, "bytes_mean_of_samples"),
            "latency_ms_mean_of_samples": _plain_mean(figures, "latency_ms_mean_of_samples"),
            "latency_ms_sample_mean_max": _highest([figure["latency_ms_sample_mean_max"] for figure in figures]),
        }
    buckets = merged(distributions)
    return {
        **found,
        f"{what}_ms_mean": _weighted(figures, f"{what}_ms_mean"),
        **{f"{what}_ms_{name}": quantile_ms(buckets, share) if buckets else None for name, share in QUANTILES.items()},
        f"{what}_ms_max": _highest([figure[f"{what}_ms_max"] for figure in figures]),
    }


def merged(distributions: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Several distributions as one, because all have the same bounds.

    >>> merged([[(10, 1), (20, 2)], [(20, 3), (40, 1)]])
    [(10, 1), (20, 5), (40, 1)]
    """
    found: dict[int, int] = {}
    for buckets in distributions:
        for upper_ns, count in buckets:
            found[upper_ns] = found.get(upper_ns, 0) + count
    return sorted(found.items())


def _weighted(figures: Sequence[dict[str, Any]], key: str) -> float | None:
    known = [figure for figure in figures if figure["count"] and figure[key] is not None]
    count = sum(figure["count"] for figure in known)
    return sum(figure["count"] * figure[key] for figure in known) / count if count else None


def _plain_mean(figures: Sequence[dict[str, Any]], key: str) -> float | None:
    known = [figure[key] for figure in figures if figure[key] is not None]
    return sum(known) / len(known) if known else None


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Sequence[int | None]) -> int | None:
    """A sum that is not known as long as a part of it is not."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _worst_ending(endings: Sequence[str]) -> str:
    return next((ending for ending in endings if ending != "complete"), "complete")
