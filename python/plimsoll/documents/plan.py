"""The completed plan, `plan.json`: what is run, and what the verdict needs that Rust never sees.

A plan is never changed once it is complete. Plans of version 0.1 may lack the keys that have a
default here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.document import Document
from plimsoll.documents.run_spec import RunSpec
from plimsoll.documents.server_usage import WatchedServer
from plimsoll.documents.staged_events import EventPlan


class Source(Document):
    """Where databases come from: any, new, existing or restored, these from a saved set."""

    kind: str
    from_: str | None


class HostsOfPlan(Document):
    """The hosts of a common plan, and what is required of all of them together."""

    all: Sequence[str]
    required_iops: float | None


class FilesAsked(Document):
    """What was asked of a workload on files, as far as its verdict and its report need it."""

    pattern: str | None
    target_iops: float | None
    users: int | None
    outstanding: int


class LoadWindow(Document):
    """What a load must make in every window of `over_s` seconds, or it was not as planned.

    `figure` is a key of `window` in a plan; `users` is None where it is not that of one user.
    """

    figure: str
    least: float
    most: float
    over_s: float
    users: int | None


class HomesAsked(Document):
    """What was asked of users of home folders, as far as their verdict and report need it."""

    users: int | None
    homes: int
    scenarios_per_h: float
    response_ms_p95_max: float
    overload_percent: float


class MailAsked(Document):
    """What was asked of mail users, as far as their verdict and their report need it.

    `left_out` are tasks of the profile that the server cannot do; the plan agreed to leave them out
    of load and score. `moved_percent_per_day` is the share of the mailboxes that moves to another
    database in a day of users.
    """

    profile: str
    source: str
    users: int
    day_h_published: float
    weights: str
    score_weights: Mapping[str, float]
    left_out: Sequence[str]
    sent_per_day: float | None
    received_per_day: float | None
    moved_percent_per_day: float | None = None


class Judgement(Document):
    """What the verdict needs.

    `modelled` is the described array in the vocabulary of its presets (`plimsoll.arrays.presets`),
    `published` the result of a paper that stands next to the run.
    """

    limits: str
    test: str
    required_iops: float | None
    margin_percent: float = 0
    stated_limits: Sequence[str] = ()
    modelled: ArraySheet | None = None
    hosts: HostsOfPlan | None = None
    rated_endurance_tb: Mapping[str, float] = {}
    counter_interval_s: Mapping[str, float] = {}
    design_used_percent: Mapping[str, float] = {}
    log_room_bytes: Mapping[str, int] = {}
    duplicate_percent: float = 0
    editions: Sequence[str] = ()
    files: Mapping[str, FilesAsked] = {}
    homes: Mapping[str, HomesAsked] = {}
    mail: Mapping[str, MailAsked] = {}
    published: str | None = None
    load_windows: Mapping[str, LoadWindow] = {}


class RepeatPlan(Document):
    """How a plan is repeated, and what is done before each run.

    Attributes:
        runs: how often it is carried out.
        before: commands, each a program and its arguments.
        timeout_s: how long each of them may take.
        ready: a command that is asked until it ends with 0.
        ready_timeout_s: for how long.
        settle_s: how long nothing is done then.
    """

    runs: int
    before: Sequence[Sequence[str]]
    timeout_s: float
    ready: Sequence[str]
    ready_timeout_s: float
    settle_s: float


class Plan(Document):
    """A completed plan."""

    kind: Literal["plan"]
    schema_version: Literal[1]
    name: str
    description: str | None
    combined: bool = False
    stop_if: Sequence[str] = ()
    source: Source | None = None
    run: RunSpec
    judgement: Judgement
    events: Sequence[EventPlan] = ()
    watch: Sequence[WatchedServer] = ()
    repeat: RepeatPlan | None = None
