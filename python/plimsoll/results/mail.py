"""Figures of mail users: every task with its percentiles, the score, commands, queues, delivery,
the balance of mail, and the audit.

Percentiles come from the distributions. The score is the weighted mean of the 95th percentiles of
the tasks that have a weight; a task with too few results is named and its weight left out of the
mean, which says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.mail import (
    MailAudit,
    MailEndpointFigures,
    MailFigures,
    MailIo,
    MailLevels,
    MailScore,
    MailStoreFigures,
    MailTaskFigures,
    MailVolume,
)
from plimsoll.documents.outcome import InstanceDevices, Outcome
from plimsoll.documents.plan import MailAsked, Plan
from plimsoll.documents.run_spec import MailInstance, MailStoreInstance, MailWorkload
from plimsoll.files.parquet import Query
from plimsoll.results.answering import counts_while_answering
from plimsoll.results.audits import audits_of
from plimsoll.results.distributions import (
    Counted,
    buckets_of,
    counted_of,
    quantile_ms,
    quantiles_ms,
)
from plimsoll.results.mail_timing import PERCENTILES, timing_of
from plimsoll.results.mailbox_moves import moves_of
from plimsoll.units import NS_PER_MS
from plimsoll.workloads.mail.fields import OPERATIONS
from plimsoll.workloads.mail.stored import mean_bytes
from plimsoll.workloads.mail.tasks import Target, tasks

#: Commands, and what each is called; `mail_submit` is one hand-over by LMTP or SMTP, from MAIL to
#: the answer to DATA.
COMMANDS = {
    "mail_connect": "connect",
    "mail_tls": "TLS handshake",
    "mail_login": "LOGIN",
    "mail_select": "SELECT",
    "mail_list": "LIST",
    "mail_page": "FETCH of rows",
    "mail_body": "FETCH of a body",
    "mail_attachment": "FETCH of an attachment",
    "mail_changes": "FETCH of changes",
    "mail_store": "STORE",
    "mail_move": "MOVE",
    "mail_expunge": "EXPUNGE",
    "mail_append": "APPEND",
    "mail_search_command": "SEARCH",
    "mail_status": "STATUS",
    "mail_create": "CREATE",
    "mail_noop": "NOOP",
    "mail_submit": "hand-over of a mail",
    "mail_calendar": "appointments shown",
    "mail_item": "appointment, contact or rule written",
    "mail_look_up": "rules or address book read",
}
#: The same steps on a store on the engine, where they are no commands of a protocol.
STEPS = {
    **COMMANDS,
    "mail_list": "folders",
    "mail_page": "page of a folder",
    "mail_body": "body read",
    "mail_attachment": "attachment read",
    "mail_changes": "changes asked for",
    "mail_store": "read marks set",
    "mail_move": "moved to a folder",
    "mail_expunge": "removed",
    "mail_append": "copy laid into Sent",
    "mail_search_command": "search",
    "mail_create": "folder made",
    "mail_submit": "accepted by the queue",
}
#: Opening a connection is no request of a user that is logged on.
SERVICE = tuple(name for name in COMMANDS if name not in ("mail_connect", "mail_tls"))
COUNTERS = (
    "mail_connection_lost",
    "mail_timed_out",
    "mail_refused_commands",
    "mail_bad_commands",
    "mail_bodies_wrong",
    "mail_unparsed",
    "mail_validity_changed",
    "mail_messages_sent",
    "mail_recipients_accepted",
    "mail_recipients_refused",
    "mail_messages_read",
    "mail_bytes_read",
    "mail_probes_sent",
    "mail_probes_lost",
)
#: Of these none is a task that was refused, and each is an error of the server.
ERRORS = ("mail_bodies_wrong", "mail_unparsed", "mail_recipients_refused")
#: What an event is judged by where it happens while the load answers it.
REFUSED = (*(f"{task}_refused" for task in OPERATIONS), "mail_recipients_refused")


def mail_figures(
    plan: Plan,
    ask: Query,
    seconds: Mapping[str, float],
    phases: Sequence[str],
    devices: Sequence[InstanceDevices] = (),
    events: Sequence[EventFigures] = (),
) -> list[MailFigures]:
    """The figures of every workload of mail users.

    The arguments are those of `results.files.files_figures`, which devices carry the instances, and
    how the loads answered what was staged.
    """
    loads = [item for item in plan.run.workloads if isinstance(item, MailWorkload)]
    return [
        _figures(plan, load, ask, seconds[load.name], phases, devices, events)
        for load in loads
        if seconds[load.name]
    ]


def _figures(
    plan: Plan,
    load: MailWorkload,
    ask: Query,
    seconds: float,
    phases: Sequence[str],
    devices: Sequence[InstanceDevices],
    events: Sequence[EventFigures],
) -> MailFigures:
    asked = plan.judgement.mail[load.name]
    counted = counted_of(ask, load.name)
    store = next((item for item in plan.run.mail_stores if item.name in load.instances), None)
    rows = _tasks(load, asked, "mail_store" if store else "imap", counted, ask, phases)
    planned, done = sum(row.planned_count for row in rows), sum(row.done_count for row in rows)
    counters = {name: _count(counted, name) for name in COUNTERS}
    refused = sum(row.refused_count for row in rows)
    errors = refused + sum(counters[name] for name in ERRORS)
    answering = counts_while_answering(load.name, [*OPERATIONS, *REFUSED], ask, events)
    answers_refused = sum(answering[name] for name in REFUSED)
    quiet = done + refused - answering.total() + answering["mail_recipients_refused"]
    rest = errors - answers_refused
    service = [counted[name] for name in SERVICE if name in counted]
    service_count = sum(item.count for item in service)
    # Buckets of all commands are put together: no percentile is one of percentiles.
    merged = _merged(
        [buckets_of(ask, load.name, name, phases) for name in SERVICE if name in counted]
    )
    user_days = asked.users * seconds / (load.day_h * 3600)
    return MailFigures(
        workload=load.name,
        profile=asked.profile,
        client=load.client,
        on_store=store is not None,
        users=asked.users,
        day_h=load.day_h,
        day_h_published=asked.day_h_published,
        left_out=asked.left_out,
        seconds=seconds,
        tasks=rows,
        score=score_of(rows, asked.weights, asked.score_weights),
        planned_count=planned,
        done_count=done,
        refused_count=refused,
        errors_share=errors / (done + refused) if done + refused else None,
        errors_share_quiet=rest / max(quiet, 1) if answering and (quiet or rest) else ABSENT,
        answers_refused_count=answers_refused or ABSENT,
        commands=[
            timing_of(name, title, counted, load.name, ask, phases)
            for name, title in (STEPS if store else COMMANDS).items()
            if name in counted
        ],
        service_ms_mean=sum(item.total_ns for item in service) / service_count / NS_PER_MS
        if service_count
        else None,
        command_ms_p95=quantile_ms(merged, 0.95),
        delivery=timing_of("mail_delivery", "delivery", counted, load.name, ask, phases)
        if "mail_delivery" in counted
        else None,
        probes_sent=counters["mail_probes_sent"],
        probes_lost=counters["mail_probes_lost"],
        levels=_levels(load.name, ask),
        endpoints=_endpoints(plan, load, ask),
        volume=_volume_of_store(store, ask) if store else _volume(plan, load, ask, devices),
        sent_per_day=counters["mail_messages_sent"] / user_days,
        sent_per_day_expected=asked.sent_per_day,
        received_per_day=counters["mail_recipients_accepted"] / user_days,
        received_per_day_expected=asked.received_per_day,
        store=_of_store(store, load, asked, ask, seconds) if store else None,
        moves=moves_of(store, load, asked, counted, ask, seconds, phases) if store else None,
        counters=counters,
    )


def _count(counted: Mapping[str, Counted], metric: str) -> int:
    return counted[metric].count if metric in counted else 0


def _merged(each: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Several distributions as one."""
    total: dict[int, int] = {}
    for buckets in each:
        for upper_ns, count in buckets:
            total[upper_ns] = total.get(upper_ns, 0) + count
    return sorted(total.items())


def _of_store(
    store: MailStoreInstance, load: MailWorkload, asked: MailAsked, ask: Query, seconds: float
) -> MailStoreFigures:
    """What a store holds, and the I/O of its engines over the measured time."""
    filling = store.filling
    count = filling.folders * filling.messages_per_folder + filling.inbox
    rows = ask(
        "SELECT database::BIGINT AS database, metric, sum(count)::DOUBLE AS count FROM measured"
        " WHERE instance = $instance AND list_contains($metrics, metric)"
        " GROUP BY database, metric",
        {
            "instance": store.name,
            "metrics": ["database_read", "database_write", "log_write"],
        },
    )
    counts = {(row["database"], row["metric"]): row["count"] or 0.0 for row in rows}

    def per_s(database: int, metric: str) -> float:
        return counts.get((database, metric), 0.0) / seconds

    reads, writes = per_s(1, "database_read"), per_s(1, "database_write")
    return MailStoreFigures(
        mailboxes=filling.mailboxes,
        messages_per_mailbox=count,
        mailbox_mib=count * mean_bytes(filling.messages.sizes) / 2**20,
        cache_mib_per_user=store.cache_bytes_max / 2**20 / filling.mailboxes,
        layout=filling.layout,
        views=filling.views,
        indexed=filling.indexed,
        older_per_visit=load.older_per_visit or 0,
        background_reads_per_task=load.background_reads_per_task or 0.0,
        compression=asked.day_h_published / load.day_h,
        io=MailIo(
            reads=reads,
            writes=writes,
            queue_reads=per_s(2, "database_read"),
            queue_writes=per_s(2, "database_write"),
            log_writes=per_s(0, "log_write"),
            per_user=(reads + writes) / asked.users,
        ),
    )


def _tasks(
    load: MailWorkload,
    asked: MailAsked,
    target: Target,
    counted: Mapping[str, Counted],
    ask: Query,
    phases: Sequence[str],
) -> list[MailTaskFigures]:
    """All tasks of the score sheet, those that nobody does among them."""
    per_day = {item.task: item.per_day for item in load.tasks}
    found = []
    for name, task in tasks().items():
        known = counted.get(task.metric) if task.is_loadable(target) else None
        service = counted.get(f"{task.metric}_service")
        buckets = buckets_of(ask, load.name, task.metric, phases) if known else []
        found.append(
            MailTaskFigures(
                task=name,
                support=task.supports[target],
                per_day=per_day.get(name, 0),
                weight=asked.score_weights.get(name, 0),
                planned_count=_count(counted, f"{task.metric}_planned"),
                done_count=known.count if known else 0,
                refused_count=_count(counted, f"{task.metric}_refused"),
                ms_mean=known.ms_mean if known else None,
                **quantiles_ms(buckets, "ms", PERCENTILES),
                ms_max=known.ms_max if known else None,
                service_ms_mean=service.ms_mean if service else None,
            )
        )
    return found


def score_of(rows: Sequence[MailTaskFigures], name: str, weights: Mapping[str, float]) -> MailScore:
    """The weighted mean of the 95th percentiles.

    Args:
        rows: the tasks.
        name: what the weights are called.
        weights: of the tasks that have one.
    """
    by_name = {row.task: row for row in rows}
    judged: dict[str, float] = {}
    missing = []
    for task, weight in weights.items():
        row = by_name.get(task)
        count = row.done_count if row else 0
        if row is not None and row.ms_p95 is not None and count >= settings.MAIL["results_min"]:
            judged[task] = row.ms_p95
        else:
            missing.append(
                f"{task} (weight {weight:g}) has {count} results of {settings.MAIL['results_min']} "
                f"that are needed"
            )
    weight_judged = sum(weights[task] for task in judged)
    total = sum(weights[task] * value for task, value in judged.items())
    worst = max(judged, key=lambda task: judged[task], default=None)
    return MailScore(
        weights=name,
        ms=total / weight_judged if weight_judged else None,
        weight_total=sum(weights.values()),
        weight_judged=weight_judged,
        missing=missing,
        worst_task=worst,
        worst_ms=judged[worst] if worst else None,
    )


def _levels(workload: str, ask: Query) -> MailLevels:
    """The highest of each level at any sample.

    Limits that hold at all times are held against it.
    """
    rows = ask(
        "SELECT metric, max(value)::DOUBLE AS highest, arg_max(value, end_ns)::DOUBLE AS last FROM "
        "measured"
        " WHERE workload = $workload AND list_contains($metrics, metric) GROUP BY metric",
        {
            "workload": workload,
            "metrics": ["mail_open", "mail_waiting", "mail_queued", "mail_commands_open"],
        },
    )
    highest = {row["metric"]: row["highest"] for row in rows}
    last = {row["metric"]: row["last"] for row in rows}
    return MailLevels(
        commands_open_max=highest.get("mail_commands_open"),
        tasks_open_max=highest.get("mail_open"),
        queued_max=highest.get("mail_queued"),
        waiting_max=highest.get("mail_waiting"),
        waiting_end=last.get("mail_waiting"),
    )


def _endpoints(plan: Plan, load: MailWorkload, ask: Query) -> list[MailEndpointFigures]:
    """Which front end did how much: a load balancer that favours one shows here."""
    rows = ask(
        "SELECT instance, database::BIGINT AS database, sum(count)::BIGINT AS count FROM measured "
        "WHERE workload = $workload"
        " AND list_contains($metrics, metric) GROUP BY instance, database",
        {"workload": load.name, "metrics": list(OPERATIONS)},
    )
    counts = {(row["instance"], row["database"]): row["count"] or 0 for row in rows}
    total = sum(counts.values())
    found = []
    for server in plan.run.mail_instances:
        if server.name not in load.instances:
            continue
        for number, item in enumerate(server.databases, 1):
            count = counts.get((server.name, number), 0)
            found.append(
                MailEndpointFigures(
                    endpoint=item.imap, done_count=count, share=count / total if total else None
                )
            )
    return found


def _volume(
    plan: Plan, load: MailWorkload, ask: Query, devices: Sequence[InstanceDevices]
) -> MailVolume | None:
    """The device below the server's storage.

    Reads and writes of everyone on it, not of the server alone.
    """
    carried = {item.instance: item.databases for item in devices}
    names = [
        item.name
        for item in plan.run.mail_instances
        if item.name in load.instances and carried.get(item.name)
    ]
    if not names:
        return None
    rows = ask(
        "SELECT end_ns, sum(value) FILTER (WHERE metric IN ('device_read_time', "
        "'device_write_time'))::DOUBLE AS ns,"
        " sum(value) FILTER (WHERE metric IN ('device_reads', 'device_writes'))::DOUBLE AS count "
        "FROM measured"
        " WHERE instance = $instance AND database = 1 AND starts_with(metric, 'device_') GROUP BY "
        "end_ns",
        {"instance": names[0]},
    )
    busy = [(row["ns"] or 0.0, row["count"]) for row in rows if row["count"]]
    total = sum(count for _, count in busy)
    return MailVolume(
        device=str(carried[names[0]]),
        latency_ms_mean=sum(ns for ns, _ in busy) / total / NS_PER_MS if total else None,
        latency_ms_max=max((ns / count / NS_PER_MS for ns, count in busy), default=None),
    )


def _volume_of_store(store: MailStoreInstance, ask: Query) -> MailVolume:
    """The storage below the mailboxes, as the engine's reads and writes of pages saw it."""
    rows = ask(
        "SELECT end_ns, sum(latency_ns_sum)::DOUBLE AS ns, sum(count)::DOUBLE AS count"
        " FROM measured WHERE instance = $instance AND database = 1"
        " AND metric IN ('database_read', 'database_write') GROUP BY end_ns",
        {"instance": store.name},
    )
    busy = [(row["ns"] or 0.0, row["count"]) for row in rows if row["count"]]
    total = sum(count for _, count in busy)
    return MailVolume(
        device=store.directory,
        latency_ms_mean=sum(ns for ns, _ in busy) / total / NS_PER_MS if total else None,
        latency_ms_max=max((ns / count / NS_PER_MS for ns, count in busy), default=None),
    )


def mail_audits(plan: Plan, outcome: Outcome) -> list[MailAudit]:
    """What the audits of a run found, under the names of the instances."""
    return audits_of(plan, outcome, (MailInstance, MailStoreInstance), MailAudit)


def score_in_words(score: MailScore) -> str:
    """A score with what it is made of.

    >>> score_in_words(MailScore(weights="mail-only", ms=151.2, weight_total=53, weight_judged=52, missing=["SendMail"],
    ...     worst_task="ReadAndProcessMessages", worst_ms=151.2))
    'score 151 ms (weights mail-only, 52 of 53 judged)'
    """  # noqa: E501
    if score.ms is None:
        return f"no score (weights {score.weights}): no task has results enough"
    judged = (
        ""
        if score.weight_judged == score.weight_total
        else f", {score.weight_judged:g} of {score.weight_total:g} judged"
    )
    return f"score {score.ms:.3g} ms (weights {score.weights}{judged})"


def in_words(figures: Sequence[MailFigures], audits: Sequence[MailAudit]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for item in figures:
        lines.append(
            f"{item.workload}: {item.users} users, {item.profile}, {item.client}: "
            f"{score_in_words(item.score)}; "
            f"{item.done_count:,} of {item.planned_count:,} tasks done, {item.refused_count:,} "
            f"refused"
        )
        if item.left_out:
            lines.append(
                f"{item.workload}: the server cannot do {', '.join(item.left_out)}: left out of "
                f"load and score"
            )
        lines += [f"{item.workload}: {text}" for text in item.score.missing]
        if item.delivery and item.delivery.ms_p95 is not None:
            of = (
                f"{item.delivery.count} messages"
                if item.on_store
                else f"{item.delivery.count} probes, {item.probes_lost} lost"
            )
            lines.append(f"{item.workload}: delivery p95 {item.delivery.ms_p95:.3g} ms of {of}")
        if item.store and item.store.io:
            lines.append(
                f"{item.workload}: {item.store.io.per_user:.3g} IOPS a user on the mailboxes at "
                f"{item.store.compression:.3g} times the published pace"
            )
    for audit in audits:
        counts = audit.counts
        if audit.findings:
            lines.append(f"audit of {audit.instance}: {'; '.join(audit.findings)}")
            continue
        accepted = f"{counts.get('recipients_accepted', 0):,} mails accepted"
        lines.append(
            f"audit of {audit.instance}: {accepted} since it was made, "
            f"{counts['delivered']:,} delivered and {counts['queued']:,} queued; "
            f"{counts['messages']:,} messages counted, as they must be"
            if "delivered" in counts
            else f"audit of {audit.instance}: {accepted}, {counts.get('received', 0):,} there and "
            f"{counts.get('deleted', 0):,} deleted, as they must be"
        )
    return lines
