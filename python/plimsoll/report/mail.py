"""The section "Mail": the tasks of the score sheet, the score with its arithmetic, commands, front
ends, queues, delivery, and the audit.

A published row next to a figure is there to be read, never to pass by: it was measured with another
server, another client and another array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll import settings
from plimsoll.documents.mail import MailAudit, MailFigures, MailStoreFigures, MailTaskFigures
from plimsoll.documents.plan import MailAsked, Plan
from plimsoll.documents.run_spec import MailInstance, MailWorkload
from plimsoll.documents.summary import Summary
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table
from plimsoll.pages.vega import (
    colour,
    finished,
    layer,
    nominal,
    quantitative,
)
from plimsoll.report.mailbox_moves import moves_table
from plimsoll.results.measurements import Measurements
from plimsoll.workloads.mail.fields import account_names, is_storage, mean_bytes, messages_filled
from plimsoll.workloads.mail.tasks import MAIL_ONLY, PUBLISHED, source_of_weights, tasks

#: Levels that a chart shows over time, by their metrics.
LEVELS = {
    "mail_open": "tasks under way",
    "mail_waiting": "tasks due and not begun",
    "mail_queued": "messages handed over and not answered",
    "mail_commands_open": "commands open",
}
POINTS_MAX = 240
LEVEL_ROWS_MAX = 24


def mail_tables(plan: Plan, summary: Summary) -> list[Table]:
    """The tables of every workload of mail users; none where there is none."""
    loads = {item.name: item for item in plan.run.workloads if isinstance(item, MailWorkload)}
    found = [_servers(plan.run.mail_instances)] if plan.run.mail_instances and loads else []
    for figures in summary.mail:
        found += [
            _asked(loads[figures.workload], plan.judgement.mail[figures.workload], figures),
            _tasks(figures),
            _score(figures),
            _published(figures),
            *([_store(figures, figures.store)] if figures.store else []),
            *([_relations(figures, figures.store)] if figures.store else []),
            *([moves_table(figures.workload, figures.moves)] if figures.moves else []),
            _commands(figures),
            _queues(figures),
            _balance(figures),
            _counters(figures),
        ]
    return [*found, *(_audit(item) for item in summary.mail_audits)]


def only_servers(plan: Plan) -> bool:
    """Whether a plan has nothing but mail servers.

    Nothing that reads or writes databases of ours.
    """
    return len(plan.run.mail_instances) == len(plan.run.instances)


def _servers(servers: Sequence[MailInstance]) -> Table:
    rows: list[list[Any]] = []
    for item in servers:
        tls = {"none": "no", "starttls": "STARTTLS", "tls": "yes"}
        filled = f"{messages_filled(item):,} at most" if item.init else "not asked for"
        rows += [
            [
                item.name,
                endpoint.imap,
                tls[item.imap_tls],
                f"{item.deliver_protocol} {endpoint.deliver}",
                tls[item.deliver_tls],
                account_names(item),
                filled,
                round(mean_bytes(item)),
                item.directory if is_storage(item.directory) else "not stated",
            ]
            for endpoint in item.databases
        ]
    headings = [
        "Server",
        "Read at",
        "TLS",
        "Delivered to",
        "TLS",
        "Accounts",
        "Filled",
        "Mean bytes",
        "Storage",
    ]
    note = (
        "Only accounts with our marker message are used. Counters of the storage are of its "
        "device: of everyone on it."
    )
    return Table("Mail servers", headings, rows, note)


def _asked(load: MailWorkload, asked: MailAsked, figures: MailFigures) -> Table:
    recipients = ", ".join(f"{item.count} (weight {item.weight:g})" for item in load.recipients)
    shares = ", ".join(
        f"{name.replace('_', ' ')} {value:.0%}" for name, value in load.on_read.plain().items()
    )
    rows: list[list[Any]] = [
        ["Users", asked.users],
        ["Profile", asked.profile],
        ["Source of the profile", asked.source],
        ["Client", load.client],
        ["Day of a user, h", load.day_h],
        ["Compression of the published day", f"{asked.day_h_published / load.day_h:.3g} times"],
        ["Tasks of a user and day", sum(item.per_day for item in load.tasks)],
        [
            "Spacing",
            "even over all users, as LoadGen"
            if load.dispatch == "even"
            else "independent (Poisson), as LoadSim",
        ],
        ["Recipients of a new mail", recipients],
        ["Of what is read", shares],
        ["Weights of the score", asked.weights],
        ["Left out: the server cannot do it", ", ".join(figures.left_out) or "nothing"],
    ]
    return Table(f"What was asked for: {figures.workload}", [], rows)


def _tasks(figures: MailFigures) -> Table:
    rows: list[list[Any]] = [
        [
            item.task,
            _support(item, figures),
            item.weight or None,
            item.per_day or None,
            item.planned_count,
            item.done_count,
            item.refused_count,
            item.ms_mean,
            item.ms_p50,
            item.ms_p95,
            item.ms_p99,
            item.ms_max,
            item.service_ms_mean,
        ]
        for item in figures.tasks
    ]
    rows.append(
        [
            "All",
            None,
            sum(item.weight for item in figures.tasks),
            sum(item.per_day for item in figures.tasks),
            figures.planned_count,
            figures.done_count,
            figures.refused_count,
            *[None] * 6,
        ]
    )
    headings = [
        "Task",
        "Support",
        "Weight",
        "Per day",
        "Due",
        "Done",
        "Refused",
        "Mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "Longest ms",
        "Service ms",
    ]
    note = (
        "Times run from the intended start: the wait of a user whose earlier task was late counts. "
        "Service is the mean from the "
        "actual start. Phases of a run are none of a user's day."
    )
    return Table(f"Tasks: {figures.workload}", headings, rows, note, has_total=True)


def _support(item: MailTaskFigures, figures: MailFigures) -> str:
    if item.task in figures.left_out:
        return "unsupported, left out"
    if tasks()[item.task].is_phase:
        return "phase of the run"
    return item.support


def _score(figures: MailFigures) -> Table:
    """The arithmetic: weight times p95, and what it adds up to."""
    rows: list[list[Any]] = []
    needed = settings.MAIL["results_min"]
    for item in figures.tasks:
        if item.weight:
            judged = item.ms_p95 is not None and item.done_count >= needed
            product = item.weight * item.ms_p95 if judged and item.ms_p95 is not None else None
            words = "" if judged else f"{item.done_count} results of {needed} needed: left out"
            rows.append([item.task, item.weight, item.ms_p95, product, words])
    score = figures.score
    products = score.ms * score.weight_judged if score.ms is not None else None
    rows.append(["Sum", score.weight_judged, None, products, f"of weights {score.weight_total:g}"])
    rows.append(["Score: sum of products by sum of weights", None, score.ms, None, ""])
    source = (
        source_of_weights(score.weights) if score.weights in (PUBLISHED, MAIL_ONLY) else "the plan"
    )
    note = f"Weights {score.weights}: {source}."
    if figures.left_out:
        note += (
            f" The server cannot do {', '.join(figures.left_out)}: this is no score of all 60 "
            f"weights."
        )
    return Table(
        f"Score: {figures.workload}", ["Task", "Weight", "p95 ms", "Product", ""], rows, note
    )


def _published(figures: MailFigures) -> Table:
    rows: list[list[Any]] = [
        [
            row["title"],
            row["users"],
            row["figures"]["mail_p95_weighted_ms"],
            f"{row['paper']}, {row['where']}",
        ]
        for row in settings.published_results()["result"]
        if "mail_p95_weighted_ms" in row.get("figures", {})
    ]
    own = f"this run, {figures.profile}, {figures.client}, weights {figures.score.weights}"
    rows.insert(0, [own, figures.users, figures.score.ms, ""])
    note = (
        "The published users had the profile average, a cached client, MAPI and weights figure-5, "
        "next to an online store and "
        "file servers. The rows tell what was reached there, and are no limit here."
    )
    return Table(
        f"Published scores next to this one: {figures.workload}",
        ["Run", "Users", "Score ms", "Source"],
        rows,
        note,
    )


def _store(figures: MailFigures, store: MailStoreFigures) -> Table:
    """What a store on the engine holds, and the I/O that its users cost."""
    io = store.io
    rows: list[list[Any]] = [
        ["Mailboxes", store.mailboxes],
        ["Messages of a mailbox at first", store.messages_per_mailbox],
        ["MiB of a mailbox at first", store.mailbox_mib],
        ["Cache for each mailbox, MiB", store.cache_mib_per_user],
        ["Messages are kept", "once for all" if store.layout == "shared" else "in each mailbox"],
        ["Kept views of a folder besides the one by date", store.views],
        ["Words are indexed", "yes" if store.indexed else "no"],
        ["Older messages of an online visit", store.older_per_visit],
        ["Messages read behind each task", store.background_reads_per_task],
    ]
    if io is not None:
        rows += [
            ["Reads of the mailboxes, 1/s", io.reads],
            ["Writes of the mailboxes, 1/s", io.writes],
            ["Reads of the queue, 1/s", io.queue_reads],
            ["Writes of the queue, 1/s", io.queue_writes],
            ["Writes of both logs, 1/s", io.log_writes],
        ]
    return Table(f"Store: {figures.workload}", [], rows)


def _relations(figures: MailFigures, store: MailStoreFigures) -> Table:
    """I/O of a user next to what was published."""
    io = store.io
    pace = store.compression
    per_user = io.per_user / pace if io else None
    ratio = io.reads / io.writes if io and io.writes else None
    rows: list[list[Any]] = [
        [f"this run, {figures.profile}, {figures.client}", figures.users, per_user, ratio, ""]
    ]
    rows += [
        [
            row["title"],
            row["users"],
            row.get("iops_per_user"),
            row.get("reads_to_writes"),
            row["source"],
        ]
        for row in settings.mail_relations()["row"]
    ]
    note = (
        f"Reads and writes of the mailboxes; a day of {figures.day_h:g} h is {pace:.3g} times as "
        f"dense as the published one, by which the rate of a user is divided here. Caches, "
        f"mailboxes and profiles differ: docs/mail.md says which relations come out and which do "
        f"not. Nothing is judged by them."
    )
    headings = ["Run", "Users", "IOPS a user", "Reads for a write", "Source"]
    return Table(f"I/O next to published figures: {figures.workload}", headings, rows, note)


def _commands(figures: MailFigures) -> Table:
    rows: list[list[Any]] = [
        [item.name, item.count, item.ms_mean, item.ms_p50, item.ms_p95, item.ms_p99, item.ms_max]
        for item in figures.commands
    ]
    note = f"Mean of all but the opening of connections: {figures.service_ms_mean or 0.0:.3g} ms."
    if figures.on_store:
        note = f"Mean of all steps: {figures.service_ms_mean or 0.0:.3g} ms."
    headings = [
        "Step" if figures.on_store else "Command",
        "Count",
        "Mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "Longest ms",
    ]
    title = "Steps" if figures.on_store else "Commands"
    return Table(f"{title}: {figures.workload}", headings, rows, note)


def _queues(figures: MailFigures) -> Table:
    levels, delivery, volume = figures.levels, figures.delivery, figures.volume
    rows: list[list[Any]] = [
        ["Commands open, most at a sample", levels.commands_open_max],
        ["Tasks under way, most", levels.tasks_open_max],
        ["Messages handed over and not answered, most", levels.queued_max],
        ["Tasks due and not begun, most", levels.waiting_max],
        ["Tasks due and not begun, at the end", levels.waiting_end],
        *(
            []
            if figures.on_store
            else [["Probes sent", figures.probes_sent], ["Probes lost", figures.probes_lost]]
        ),
        ["Delivery, mean ms", delivery.ms_mean if delivery else None],
        ["Delivery, p95 ms", delivery.ms_p95 if delivery else None],
        ["Delivery, longest ms", delivery.ms_max if delivery else None],
        ["Volume", volume.device if volume else "not stated"],
        ["Volume latency, mean ms", volume.latency_ms_mean if volume else None],
        ["Volume latency, worst sample, ms", volume.latency_ms_max if volume else None],
    ]
    return Table(f"Queues and delivery: {figures.workload}", [], rows)


def _balance(figures: MailFigures) -> Table:
    rows: list[list[Any]] = [
        ["Sent", figures.sent_per_day, figures.sent_per_day_expected],
        ["Received", figures.received_per_day, figures.received_per_day_expected],
    ]
    note = (
        "Messages of a user and day: counted, and as the balance of the profile has it. A short "
        "run reads few of the mails it "
        "sends, so it lies below the balance."
    )
    return Table(
        f"Mail sent and received: {figures.workload}", ["", "Counted", "Balance"], rows, note
    )


def _counters(figures: MailFigures) -> Table:
    rows: list[list[Any]] = [
        [name.removeprefix("mail_").replace("_", " ").capitalize(), count]
        for name, count in figures.counters.items()
    ]
    return Table(f"Counters: {figures.workload}", [], rows, folded=True)


def _audit(audit: MailAudit) -> Table:
    rows: list[list[Any]] = [
        [name.replace("_", " ").capitalize(), count] for name, count in audit.counts.items()
    ]
    rows += [["Does not add up", finding] for finding in audit.findings]
    note = (
        "Since the store was made: accepted recipients are those delivered and those that wait. "
        "Messages are what came less what was deleted."
        if "delivered" in audit.counts
        else "Accepted recipients are those received and those deleted; what was lost with its "
        "connection may be there or not."
    )
    return Table(f"Audit: {audit.instance}", [], rows, note)


def mail_charts(figures: Sequence[MailFigures], measured: Measurements) -> list[Chart]:
    """How long each task took, and the levels over time, for each workload."""
    found = [
        _chart(item, number)
        for number, item in enumerate(figures, 1)
        if any(row.done_count for row in item.tasks)
    ]
    return [*found, *([levels] if figures and (levels := _levels_chart(measured)) else [])]


def _chart(figures: MailFigures, number: int) -> Chart:
    shown = [item for item in figures.tasks if item.done_count]
    order = [item.task for item in shown]
    data = [
        {"x": item.task, "v": value, "w": name}
        for item in shown
        for name, value in (("mean", item.ms_mean), ("p95", item.ms_p95), ("p99", item.ms_p99))
        if value is not None
    ]
    title = f"Time of each task, {figures.workload}"
    words = [f"{item.task}: p95 {item.ms_p95:.3g} ms" for item in shown if item.ms_p95 is not None]
    chart = layer(
        {"type": "point", "filled": True, "size": 70},
        data,
        x=quantitative("v", title="ms", scale={"type": "log"}),
        y=nominal("x", title=None, sort=order),
        color=colour(["mean", "p95", "p99"]),
        shape=nominal("w", title=None),
        tooltip=[
            nominal("x", title="task"),
            nominal("w", title="what"),
            quantitative("v", format=".3~g", title="ms"),
        ],
    )
    description = ". ".join([title, *words])
    return Chart(
        f"mail-{number}",
        title,
        description,
        finished(chart, title, words[:1], description),
        _tasks(figures),
    )


def _levels_chart(measured: Measurements) -> Chart | None:
    """Levels over time, of all workloads together."""
    data: list[dict[str, float | str]] = []
    for metric, name in LEVELS.items():
        data += [
            {"x": row["second"], "v": row["level"], "w": name}
            for row in measured.series(metric, POINTS_MAX)
        ]
    if not data:
        return None
    title = "Queues and open requests over time"
    most = {
        name: max((point["v"] for point in data if point["w"] == name), default=0.0)
        for name in LEVELS.values()
    }
    words = [f"{name}: {value:.3g} at most" for name, value in most.items()]
    names = list(LEVELS.values())
    chart = layer(
        {"type": "line"},
        data,
        x=quantitative("x", title="s"),
        y=quantitative("v", title="count"),
        color=colour(names),
        strokeDash=nominal("w", title=None, scale={"domain": names}),
    )
    times = sorted({point["x"] for point in data})
    each = {(point["x"], point["w"]): point["v"] for point in data}
    step = max(1, len(times) // LEVEL_ROWS_MAX)
    rows: list[list[Any]] = [
        [at, *(each.get((at, name)) for name in LEVELS.values())] for at in times[::step]
    ]
    table = Table(title, ["Second", *LEVELS.values()], rows)
    description = ". ".join([title, *words])
    return Chart("mail-levels", title, description, finished(chart, title, [], description), table)
