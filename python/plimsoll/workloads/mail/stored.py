"""What a plan says of a mail store on our own engine.

`backend = "mail_store"` of an instance. Its first database holds the mailboxes, its second one is
the transport queue, which has a log of its own next to the store's. Where mailboxes are moved there
is a third one with a log of its own, to which they go and from which they come back.

    [[instance]]
    name = "mail"
    backend = "mail_store"
    edition = "2010"
    mailbox_mib = 20

    [[workload]]
    name = "mail"
    profile = "average"
    load = { users = 200 }
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, TypedDict

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.inputs.schema import Collector, Field, Flag, Given, Number, Table, Text
from plimsoll.workloads.mail.profiles import Profile, Sizes, sizes
from plimsoll.workloads.records import DATABASE_KEYS

BACKEND = "mail_store"
MIB = 1024 * 1024
LAYOUTS = ("per_mailbox", "shared")
INSTANCE_FIELDS = {
    "layout": Field(
        Text(LAYOUTS),
        meaning="of a mail store: a copy of a message in each mailbox, or one for all; as the "
        "edition has it if left out",
    ),
    "views_kept": Field(
        Number(0, 16, whole=True),
        meaning="of a mail store: sorted views kept of each folder besides the one by date; as the "
        "edition has it if left out",
    ),
    "further_database": Field(
        Flag(),
        meaning="of a mail store: whether it has a further database for mailboxes that are moved; "
        "where a workload moves some if left out",
    ),
    "indexed": Field(
        Flag(),
        meaning="of a mail store: whether words are indexed; where users search if left out",
    ),
}
_PERCENT = Field(Number(0.001, 10_000))
WORKLOAD_FIELDS = {
    "older_per_visit": Field(
        Number(0, 1000, whole=True),
        meaning="on a mail store: older messages that a visit of an online user looks at; as the "
        "edition has it if left out",
    ),
    "background_reads_per_task": Field(
        Number(0, 1000),
        meaning="on a mail store: messages that jobs read behind each task; as the edition has it "
        "if left out",
    ),
    "moves": Field(
        Table({"percent_per_day": _PERCENT, "percent_per_week": _PERCENT}),
        meaning="on a mail store: the share of the mailboxes that is moved to another database "
        "while users work, by days of users as `day_h` has them: { percent_per_week = 10 }",
    ),
}
#: Keys of a mail server that a store takes, too.
SHARED_KEYS = (
    "account_count",
    "mailbox_mib",
    "sizes",
    "entropy_percent",
    "duplicate_mails_percent",
)
#: What a message takes beside its bytes: rows, keys, and pages that are not full.
_BYTES_BESIDE = 1_200
_GROWTH = 1.2
QUEUE_BYTES = 16 * MIB
DAYS_PER_WEEK = 7


class StoreHabits(TypedDict):
    """How stores of one edition keep and read mail; see `data/mail_stores.toml`."""

    layout: Literal["shared", "per_mailbox"]
    views: int
    older_per_visit: int
    background_reads_per_task: float
    basis: dict[str, str]
    source: str


@cache
def _editions() -> dict[str, StoreHabits]:
    text = files("plimsoll.data").joinpath("mail_stores.toml").read_text(encoding="utf-8")
    found: dict[str, StoreHabits] = tomllib.loads(text)["editions"]
    return found


def edition(name: str) -> StoreHabits:
    """How stores with the habits of an edition keep and read mail.

    >>> edition("2010")["layout"], edition("2007")["views"]
    ('per_mailbox', 2)
    """
    return _editions()[name]


def instance(
    shared: Given,
    given: Given,
    users: int,
    profile: Profile,
    index: int,
    seed: int,
    collector: Collector,
    *,
    searches: bool,
    moves: bool,
) -> spec.MailStoreInstance:
    """A store with a mailbox for each user.

    Args:
        shared: what instances on the engine have.
        given: the checked table, absent keys None.
        users: how many users the workloads on it have.
        profile: of the first of these workloads: what mailboxes are filled with.
        index: its position in the plan.
        seed: of the plan.
        collector: takes the mistakes.
        searches: whether any of its users searches.
        moves: whether a workload moves mailboxes.
    """
    for key in DATABASE_KEYS:
        if given.get(key) is not None:
            collector.add(
                ("instance", index, key),
                "means nothing for a mail store",
                "write account_count and mailbox_mib",
            )
    count = int(given["account_count"] or users)
    if count < users:
        collector.add(
            ("instance", index, "account_count"),
            f"is {count}, but there are {users} users",
            "write as many mailboxes as users, or fewer users",
        )
    mails = sizes()[given["sizes"] or profile.sizes]
    habits = edition(str(given["edition"] or settings.INSTANCE_DEFAULTS["edition"]))
    folders, each, inbox = _filling(given, profile, mails)
    filling = spec.MailStoreFilling(
        mailboxes=count,
        folders=folders,
        messages_per_folder=each,
        inbox=inbox,
        layout=given["layout"] or habits["layout"],
        views=int(habits["views"] if given["views_kept"] is None else given["views_kept"]),
        indexed=searches if given["indexed"] is None else bool(given["indexed"]),
        messages=messages(given, mails),
    )
    size = count * (folders * each + inbox) * (mails.mean_bytes + _BYTES_BESIDE) * _GROWTH
    first = seed * 1_000_003 + index * 1009 + 1
    further = moves or bool(given["further_database"])
    if moves:
        _check_movable(given, filling, index, collector)
    return spec.MailStoreInstance(
        **shared,
        databases=[
            spec.MailStoreDatabase(
                file_name="database001.edb",
                size_bytes=round(size) + 8 * MIB,
                seed=first,
                existing_records=None,
                store=filling,
            ),
            spec.MailStoreDatabase(
                file_name="database002.edb",
                size_bytes=QUEUE_BYTES,
                seed=first + 1,
                existing_records=None,
                store=None,
            ),
            *(
                [
                    spec.MailStoreDatabase(
                        file_name="database003.edb",
                        size_bytes=QUEUE_BYTES,
                        seed=first + 2,
                        existing_records=None,
                        store=None,
                    )
                ]
                if further
                else []
            ),
        ],
    )


def mailboxes_of(completed: Sequence[spec.InstanceSpec], names: Sequence[str]) -> int:
    """The mailboxes of the first store among instances with these names; 0 where there is none."""
    stores = (item for item in completed if isinstance(item, spec.MailStoreInstance))
    return next((item.filling.mailboxes for item in stores if item.name in names), 0)


def _check_movable(
    given: Given, filling: spec.MailStoreFilling, index: int, collector: Collector
) -> None:
    """Report what keeps mailboxes from being moved."""
    if filling.layout == "shared":
        collector.add(
            ("instance", index, "layout"),
            "is shared, but a mailbox that is moved takes its own messages with it",
            'write layout = "per_mailbox", or leave out the moves',
        )
    if filling.indexed:
        collector.add(
            ("instance", index, "indexed"),
            "is true, but the index of words does not go with a mailbox that is moved",
            "write indexed = false: a search reads the inbox then",
        )
    if given["further_database"] is False:
        collector.add(
            ("instance", index, "further_database"),
            "is false, but a workload moves mailboxes",
            "remove it, or leave out the moves",
        )


def moved_percent_per_day(given: Given, index: int, collector: Collector) -> float | None:
    """The share of the mailboxes that a workload moves in a day of its users, in percent."""
    moves = given["moves"]
    if moves is None:
        return None
    stated = {key: value for key, value in moves.items() if value is not None}
    if len(stated) != 1:
        text = "states both percent_per_day and percent_per_week" if stated else "states no rate"
        collector.add(
            ("workload", index, "moves"), text, "write either percent_per_day or percent_per_week"
        )
        return None
    [(key, value)] = stated.items()
    return float(value) / (DAYS_PER_WEEK if key == "percent_per_week" else 1)


def messages(given: Given, mails: Sizes) -> spec.MailMessages:
    """What mails are like."""
    entropy, duplicates = given["entropy_percent"], given["duplicate_mails_percent"]
    return spec.MailMessages(
        sizes=[
            spec.MailSize(weight=float(weight), body_bytes=body, attachment_bytes=more)
            for weight, body, more in mails.rows
        ],
        entropy_percent=int(settings.MAIL["entropy_percent"] if entropy is None else entropy),
        duplicate_percent=int(0 if duplicates is None else duplicates),
    )


def _filling(given: Given, profile: Profile, mails: Sizes) -> tuple[int, int, int]:
    """Folders, messages in each, messages in the inbox: as the profile says, or for a size."""
    initial = profile.initial
    folders, each, inbox = initial["folders"], initial["messages_per_folder"], initial["inbox"]
    if given["mailbox_mib"] is not None:
        wanted = max(0.0, float(given["mailbox_mib"]) * MIB / mails.mean_bytes - inbox)
        each = round(wanted / folders)
    return folders, each, inbox


def habits_of(given: Given, name: str) -> tuple[int, float]:
    """Older messages of a visit, and messages read behind a task, on a store of an edition."""
    usual = edition(name)
    older, behind = given["older_per_visit"], given["background_reads_per_task"]
    return (
        int(usual["older_per_visit"] if older is None else older),
        float(usual["background_reads_per_task"] if behind is None else behind),
    )


def shown(server: spec.MailStoreInstance) -> str:
    """What a store is filled with, in words."""
    filling = server.filling
    count = filling.folders * filling.messages_per_folder + filling.inbox
    mean = mean_bytes(filling.messages.sizes)
    return (
        f"{filling.mailboxes:,} mailboxes of {count:,} messages, {count * mean / MIB:.3g} MiB each"
    )


def mean_bytes(rows: Sequence[spec.MailSize]) -> float:
    """The mean of bodies and attachments of some mails."""
    total = sum(row.weight for row in rows)
    return sum(row.weight * (row.body_bytes + row.attachment_bytes) for row in rows) / total
