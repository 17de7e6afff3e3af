"""What mail users did, in a summary.

Tasks, score, commands, levels, front ends, and the audit of what was accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents.document import Document


class MailTaskFigures(Document):
    """One of the tasks of mail users.

    What was asked for, what came of it, and how long it took from its intended start.
    """

    task: str
    support: str
    per_day: float
    weight: float
    planned_count: int
    done_count: int
    refused_count: int
    ms_mean: float | None
    ms_p50: float | None
    ms_p95: float | None
    ms_p99: float | None
    ms_max: float | None
    service_ms_mean: float | None


class MailScore(Document):
    """The weighted mean of the 95th percentiles of tasks.

    Over those of which there are results enough.

    `missing` are weighted tasks with too few results, as sentences; their weight is in
    `weight_total` and not in `weight_judged`.
    """

    weights: str
    ms: float | None
    weight_total: float
    weight_judged: float
    missing: Sequence[str]
    worst_task: str | None
    worst_ms: float | None


class MailTiming(Document):
    """A command, or the delivery of a mail."""

    name: str
    count: int
    ms_mean: float | None
    ms_p50: float | None
    ms_p95: float | None
    ms_p99: float | None
    ms_max: float | None


class MailEndpointFigures(Document):
    """What one front end of a mail server did of all tasks."""

    endpoint: str
    done_count: int
    share: float | None


class MailLevels(Document):
    """The highest value of each level at any sample, and what waited at the end."""

    commands_open_max: float | None
    tasks_open_max: float | None
    queued_max: float | None
    waiting_max: float | None
    waiting_end: float | None


class MailVolume(Document):
    """The device below the storage of a mail server, where a plan names it."""

    device: str
    latency_ms_mean: float | None
    latency_ms_max: float | None


class MailIo(Document):
    """I/O per second of a mail store: pages of the mailboxes, of the queue, and of both logs."""

    reads: float
    writes: float
    queue_reads: float
    queue_writes: float
    log_writes: float
    per_user: float


class MailStoreFigures(Document):
    """What a mail store on the engine was asked to hold, and what its users cost its storage.

    `compression` is how many times shorter a day was than the published one: I/O for each user is
    divided by it where it stands next to a published figure.
    """

    mailboxes: int
    messages_per_mailbox: int
    mailbox_mib: float
    cache_mib_per_user: float
    layout: str
    views: int
    indexed: bool
    older_per_visit: int
    background_reads_per_task: float
    compression: float
    io: MailIo | None


class MailMoves(Document):
    """Mailboxes that were moved to another database of their store while users worked.

    Rates are mailboxes an hour. Bytes are those of values: of what was read, rewritten and, with
    keys, page changes and page images, logged at both places. `other_log_bytes` is the log that the
    mailboxes' databases took beside the moves. `sizing_factor` is one and the share of the
    mailboxes that was moved, by which sizing multiplies the log of users; `measured_factor` is one
    and the log of the moves for each byte of the other log.
    """

    asked_percent_per_day: float
    asked_per_h: float
    reached_per_h: float
    planned_count: int
    moved_count: int
    mailboxes: int
    read_bytes: int
    written_bytes: int
    log_bytes: int
    log_per_written_byte: float | None
    other_log_bytes: int | None
    sizing_factor: float
    measured_factor: float | None
    moved: MailTiming | None
    closed: MailTiming | None


class MailFigures(Document):
    """What mail users did.

    Where the load answered events, `errors_share_quiet` is the share of what was refused in the
    rest of the time, and `answers_refused_count` counts the tasks and recipients that were refused
    from an event until the load was back.
    """

    workload: str
    profile: str
    client: str
    on_store: bool = False
    users: int
    day_h: float
    day_h_published: float
    left_out: Sequence[str]
    seconds: float
    tasks: Sequence[MailTaskFigures]
    score: MailScore
    planned_count: int
    done_count: int
    refused_count: int
    errors_share: float | None
    errors_share_quiet: float | None = None
    answers_refused_count: int = 0
    commands: Sequence[MailTiming]
    service_ms_mean: float | None
    command_ms_p95: float | None
    delivery: MailTiming | None
    probes_sent: int
    probes_lost: int
    levels: MailLevels
    endpoints: Sequence[MailEndpointFigures]
    volume: MailVolume | None
    sent_per_day: float | None
    sent_per_day_expected: float | None
    received_per_day: float | None
    received_per_day_expected: float | None
    store: MailStoreFigures | None = None
    moves: MailMoves | None = None
    counters: Mapping[str, int]


class MailAudit(Document):
    """Whether every mail that a server accepted is there.

    Counts by name, and what does not add up.
    """

    instance: str
    seconds: float
    counts: Mapping[str, int]
    findings: Sequence[str]
