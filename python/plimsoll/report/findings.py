"""What stands first in the report.

The figures that were judged, and what follows from the numbers in plain sentences.

No sentence holds a number that is not in `summary.json` or `verdict.json`: a sentence is written
with the paths of its values, and the page carries each path beside its value, so that every claim
can be traced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from plimsoll.documents.figures import DatabaseFigures, InstanceFigures
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Verdict
from plimsoll.pages.tables import shown, size_shown

_VALUE = re.compile(r"\{([a-z0-9_.]+)(?:\|([a-z]+))?\}")
#: The published tool's mean is mentioned when it differs by more than this share.
WORTH_MENTIONING = 0.05


@dataclass(frozen=True)
class Figure:
    """One figure with what it was judged by."""

    title: str
    value: str
    what: str
    details: list[str]
    #: Share of the limit that is used, or None where there is none.
    used: float | None = None
    status: str = ""


Places = Sequence[DatabaseFigures] | Sequence[InstanceFigures]


def figure_list(summary: Summary, verdict: Verdict) -> list[Figure]:
    """The two latencies that are judged, at the place that is slowest, and the two rates."""
    figures = [
        _backup(summary),
        _recovery(summary),
        *_mail(summary, verdict),
        *_stores(summary),
        _latency(
            summary.databases,
            "database_read",
            "Database reads",
            "database_read_latency_mean",
            verdict,
        ),
        _latency(summary.instances, "log_write", "Log writes", "log_write_latency_mean", verdict),
        _iops(summary, verdict),
        _transactions(summary),
    ]
    return [figure for figure in figures if figure is not None]


def _latency(
    places: Places, metric: str, title: str, check_name: str, verdict: Verdict
) -> Figure | None:
    index = slowest(places, metric)
    if index is None:
        return None
    place = places[index]
    figures = place.transfers(metric)
    check = next(
        (c for c in verdict.checks if c.name == check_name and c.scope == place.name), None
    )
    details = [
        f"p99 {shown(figures.latency_ms_p99)} ms, longest {shown(figures.latency_ms_max)} ms"
    ]
    if len(places) > 1:
        details.append(f"slowest of {len(places)}: {place.name}")
    mean_ms = figures.latency_ms_mean
    if check is None or not check.limit or mean_ms is None:
        return Figure(
            title, f"{shown(figures.latency_ms_mean)} ms", "mean, weighted by operations", details
        )
    details.append(f"limit of the mean {shown(check.limit)} ms")
    judged_ms = mean_ms
    if check.left_out_s is not None and check.measured is not None:
        judged_ms = check.measured
        details.append(
            f"judged by {shown(judged_ms)} ms, where {shown(check.left_out_s)} s of events are "
            f"left out"
        )
    return Figure(
        title,
        f"{shown(figures.latency_ms_mean)} ms",
        "mean, weighted by operations",
        details,
        judged_ms / check.limit,
        status_of(check),
    )


def slowest(places: Places, metric: str) -> int | None:
    """The position of the place with the highest mean latency."""
    means = [place.transfers(metric).latency_ms_mean for place in places]
    known = [(mean_ms, -index) for index, mean_ms in enumerate(means) if mean_ms is not None]
    return -max(known)[1] if known else None


def _backup(summary: Summary) -> Figure | None:
    total = summary.backup_total
    if not total:
        return None
    details = [f"{shown(total.mib_per_s_mean)} MiB/s for each of {total.databases_count} databases"]
    return Figure(
        "Backup", f"{shown(total.mib_per_s_sum)} MiB/s", "all databases of the server", details
    )


def _recovery(summary: Summary) -> Figure | None:
    known = [item for item in summary.recoveries if item.seconds_per_log is not None]
    if not known:
        return None
    slow = max(known, key=lambda item: item.seconds_per_log or 0.0)
    details = [
        f"{slow.logs_count:.0f} logs in {shown(slow.seconds)} s, {shown(slow.mib_per_s)} MiB/s"
    ]
    if len(known) > 1:
        details.append(f"slowest of {len(known)}: {slow.instance}")
    return Figure("Soft recovery", f"{shown(slow.seconds_per_log)} s", "for each log", details)


def _mail(summary: Summary, verdict: Verdict) -> list[Figure]:
    """The score of every workload of mail users."""
    found = []
    for item in summary.mail:
        score = item.score
        check = next(
            (c for c in verdict.checks if c.name == "mail_score" and c.scope == item.workload), None
        )
        details = [
            f"weights {score.weights}, {shown(score.weight_judged)} of {shown(score.weight_total)} "
            f"judged",
            f"{shown(item.done_count)} of {shown(item.planned_count)} tasks done, {item.users} "
            f"users",
        ]
        if item.left_out:
            details.append(f"left out: {', '.join(item.left_out)}")
        used = score.ms / check.limit if check and check.limit and score.ms is not None else None
        what = "weighted mean of the 95th percentiles"
        found.append(
            Figure(
                "Score of mail users",
                f"{shown(score.ms)} ms",
                what,
                details,
                used,
                status_of(check) if check else "",
            )
        )
    return found


def _stores(summary: Summary) -> list[Figure]:
    """The orders of every workload on a store."""
    return [
        Figure(
            "Orders per minute",
            f"{item.opm:,}",
            "rolled back ones included",
            [f"{shown(float(item.rolled_back_count))} of {item.orders_count:,} rolled back"]
            + (
                [f"at most {shown(item.think_bound_opm)} by think time"]
                if item.think_bound_opm
                else []
            ),
        )
        for item in summary.store
    ]


def _only_servers(summary: Summary) -> bool:
    """Whether nothing but clients of servers was measured: no storage of ours has figures."""
    total = summary.total
    return bool(summary.mail or summary.store) and not (
        total.database_read.count or total.database_write.count or total.log_write.count
    )


def _iops(summary: Summary, verdict: Verdict) -> Figure | None:
    if not summary.window.seconds or _only_servers(summary):
        return None
    total, required = summary.total, verdict.required_iops
    read, write = total.database_read, total.database_write
    details = [f"{shown(read.per_s)} reads/s and {shown(write.per_s)} writes/s"]
    check = next((c for c in verdict.checks if c.name == "required_iops"), None)
    details.append(
        "no requirement was stated"
        if required is None
        else f"required {shown(float(required))} per second"
    )
    status = status_of(check) if check else ""
    return Figure(
        "Database I/O",
        f"{shown(total.database_iops)} /s",
        "transactional reads and writes",
        details,
        None,
        status,
    )


def _transactions(summary: Summary) -> Figure | None:
    total = summary.total.transactions
    if not total.count:
        return None
    details = [
        f"response p99 {shown(total.response_ms_p99)} ms, longest {shown(total.response_ms_max)} "
        f"ms",
        "from the intended start to the end of the commit",
    ]
    return Figure("Transactions", f"{shown(total.per_s)} /s", "all kinds together", details)


def finding_list(summary: Summary, verdict: Verdict) -> list[Markup]:
    """Sentences in which every number carries its path."""
    values = {"summary": summary.plain(), "verdict": verdict.plain()}
    return [told(sentence, values) for sentence in _sentences(summary, verdict)]


def told(sentence: str, values: Mapping[str, object]) -> Markup:
    """A sentence with its values in their places.

    >>> str(told("{summary.rate} per s", {"summary": {"rate": 12345.6}}))
    '<data value="12345.6" data-source="summary.rate">12,346</data> per s'
    """
    parts: list[str] = []
    end = 0
    for match in _VALUE.finditer(sentence):
        path, form = match.groups()
        value = at(path, values)
        parts += [str(escape(sentence[end : match.start()]))]
        parts += [
            f'<data value="{escape(value)}" '
            f'data-source="{path}">{escape(_FORMS[form](value))}</data>'
        ]
        end = match.end()
    return Markup("".join([*parts, str(escape(sentence[end:]))]))


def at(path: str, values: Any) -> Any:
    """The value at a path of names and positions.

    >>> at("summary.databases.1.name", {"summary": {"databases": [{}, {"name": "two"}]}})
    'two'
    """
    for step in path.split("."):
        values = values[int(step)] if step.isdigit() else values[step]
    return values


_FORMS: dict[str | None, Callable[[Any], str]] = {
    None: shown,
    "size": size_shown,
    "percent": lambda value: f"{100 * value:.0f} %",
    "whole": lambda value: f"{value:,.0f}",
}


def _sentences(summary: Summary, verdict: Verdict) -> list[str]:
    return [
        *_throughput_sentences(summary, verdict),
        *_latency_sentences(summary, "databases", "database_read", "reads"),
        *_latency_sentences(summary, "instances", "log_write", "log writes"),
        *_other_sentences(summary),
        *_integrity_sentences(summary),
        *_machine_sentences(summary),
    ]


def _throughput_sentences(summary: Summary, verdict: Verdict) -> list[str]:
    if not summary.window.seconds:
        return []
    if _only_servers(summary):
        return [
            f"{{summary.mail.{number}.users}} users had "
            f"{{summary.mail.{number}.planned_count|whole}} tasks due and "
            f"{{summary.mail.{number}.done_count|whole}} done over "
            f"{{summary.window.seconds|whole}} s."
            for number, _ in enumerate(summary.mail)
        ] + [
            f"Customers placed {{summary.store.{number}.opm}} orders per minute over "
            f"{{summary.window.seconds|whole}} s; "
            f"{{summary.store.{number}.rolled_back_count|whole}} of "
            f"{{summary.store.{number}.orders_count|whole}} were rolled back."
            for number, _ in enumerate(summary.store)
        ]
    found = [
        "The storage carried {summary.total.database_iops} database I/O per second over "
        "{summary.window.seconds|whole} s: "
        "{summary.total.database_read.per_s} reads and {summary.total.database_write.per_s} "
        "writes, and "
        "{summary.total.log_write.per_s} log writes next to them."
    ]
    if verdict.required_iops is not None:
        found.append("The plan requires {verdict.required_iops} database I/O per second.")
    if summary.total.grown_bytes:
        found.append(
            "The databases grew by {summary.total.grown_bytes|size} to "
            "{summary.total.final_bytes|size} under "
            "{summary.total.transactions_per_s} transactions per second."
        )
    return found


def _latency_sentences(summary: Summary, places: str, metric: str, what: str) -> list[str]:
    where: Places = summary.databases if places == "databases" else summary.instances
    index = slowest(where, metric)
    if index is None:
        return []
    path = f"summary.{places}.{index}.{metric}"
    figures = where[index].transfers(metric)
    sentence = (
        f"{what.capitalize()} are slowest at {{summary.{places}.{index}.name}}: "
        f"{{{path}.latency_ms_mean}} ms on average, "
        f"99 % within {{{path}.latency_ms_p99}} ms, the longest {{{path}.latency_ms_max}} ms."
    )
    plain, mean_ms = figures.latency_ms_mean_of_samples, figures.latency_ms_mean
    if (
        plain is not None
        and mean_ms is not None
        and abs(plain - mean_ms) > WORTH_MENTIONING * mean_ms
    ):
        sentence += (
            f" The published tool, which weights samples alike, would have printed "
            f"{{{path}.latency_ms_mean_of_samples}} ms."
        )
    return [sentence]


def _other_sentences(summary: Summary) -> list[str]:
    """Backup and recovery, where a run has them."""
    found = []
    if summary.backup_total:
        found.append(
            "A backup of {summary.backup_total.databases_count} databases read "
            "{summary.backup_total.bytes|size} in "
            "{summary.backup_total.seconds} s: {summary.backup_total.mib_per_s_sum} MiB per second "
            "for the server."
        )
    for index, item in enumerate(summary.recoveries):
        if item.seconds_per_log is None or item.pages_read_per_log is None:
            continue
        path = f"summary.recoveries.{index}"
        found.append(
            f"Recovery of {{{path}.instance}} replayed {{{path}.logs_count|whole}} logs in "
            f"{{{path}.seconds}} s, "
            f"{{{path}.seconds_per_log}} s for each. For each it read "
            f"{{{path}.pages_read_per_log|whole}} pages and wrote "
            f"{{{path}.writes_per_log}} times."
        )
    return found


def _integrity_sentences(summary: Summary) -> list[str]:
    found = []
    if summary.total.pages_verified is not None:
        found.append(
            "{summary.total.pages_verified} pages were read back and verified; "
            "{summary.total.pages_damaged} of them were "
            "damaged or misplaced."
        )
    if summary.total.pages_corrected:
        found.append(
            "{summary.total.pages_corrected} pages with a flipped bit were put right while the "
            "load ran."
        )
    if summary.clock_gaps:
        found.append(
            "The run itself stood still {summary.clock_gaps.count} times, "
            "{summary.clock_gaps.seconds} s in all: its process was "
            "stopped or its machine was paused."
        )
    found.append(
        "{summary.total.errors_in_run} transfers failed and {summary.total.hung_in_run} hung in "
        "the whole run."
    )
    return found


def _machine_sentences(summary: Summary) -> list[str]:
    if summary.generator.executor_busy_mean is None:
        return []
    sentence = (
        "The load generator's thread was busy for {summary.generator.executor_busy_mean|percent} "
        "of the time"
    )
    if "cpu_busy" in summary.machine:
        sentence += ", the machine's processors for {summary.machine.cpu_busy.mean|percent}"
    sentences = [sentence + "."]
    if summary.generator.threads:
        sentences[0] = sentences[0].replace(
            "The load generator's thread was", "The load generator's busiest thread was"
        )
    if summary.generator.threads_enough:
        sentences.append(
            "A thread of the load generator was the limit; {summary.generator.threads_enough} "
            "threads would do. One instance is "
            "carried by one thread: use as many instances."
        )
    return sentences


def status_of(check: Check) -> str:
    """The state of a check for its colour and word; of a modelled one what it predicts."""
    predicted = {
        "predicted pass": "pass",
        "predicted fail": "fail",
        "too close to call": "not_evaluated",
    }
    word = predicted.get(check.predicted or "")
    return f"{word} predicted" if word else str(check.status)
