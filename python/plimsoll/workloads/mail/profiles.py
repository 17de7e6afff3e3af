"""What mail users do in a day, by name from the shipped data, and what their mails are like."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from plimsoll.workloads.mail.population import Population, population_of

DEFAULT_PROFILE = "average"


@dataclass(frozen=True)
class Sizes:
    """What mails are like: rows of weight, bytes of the body, bytes of the attachment."""

    name: str
    rows: tuple[tuple[float, int, int], ...]
    source: str
    basis: str

    @property
    def mean_bytes(self) -> float:
        """The mean of bodies and attachments, in bytes."""
        weights = sum(weight for weight, _, _ in self.rows)
        return sum(weight * (body + attachment) for weight, body, attachment in self.rows) / weights


@dataclass(frozen=True)
class Profile:
    """What a user does in a day.

    Attributes:
        tasks: counts for each user and day.
        sent: messages that a user sends in a day, as stated; likewise `received`.
        recipients: rows of weight and count.
        on_read: what becomes of a message that is read: shares of 1.
        processed_share: share of the received messages that are processed.
        inbox_limit: a visit trims the inbox to so many.
        initial: what a new mailbox holds: folders, messages in each, messages in the inbox.
        sizes: the name of what its mails are like.
        day_h: hours of a day.
        basis: of each part: read, derived, inferred, recalled or own.
    """

    name: str
    tasks: Mapping[str, float]
    tasks_per_day: float
    sent: float
    received: float
    recipients: tuple[tuple[float, int], ...]
    on_read: Mapping[str, float]
    processed_share: float
    inbox_limit: int
    initial: Mapping[str, int]
    sizes: str
    day_h: float
    source: str
    basis: Mapping[str, str]

    @property
    def population(self) -> Population:
        """How much mail its users send and receive."""
        return population_of(self.tasks, self.recipients, self.on_read, self.processed_share)


@cache
def profiles() -> dict[str, Profile]:
    """The shipped profiles by name.

    >>> list(profiles())[:4], profiles()["heavy"].tasks_per_day
    (['light', 'average', 'heavy', 'very-heavy'], 132)
    """
    content = tomllib.loads(
        files("plimsoll.data").joinpath("mail_profiles.toml").read_text(encoding="utf-8")
    )
    found = {}
    for row in content["profile"]:
        recipients = tuple((weight, count) for weight, count in row["recipients"])
        found[row["name"]] = Profile(**{**row, "recipients": recipients})
    return found


@cache
def sizes() -> dict[str, Sizes]:
    """The shipped sizes by name.

    >>> sizes()["loadgen-50k"].mean_bytes
    51200.0
    """
    content = tomllib.loads(
        files("plimsoll.data").joinpath("mail_sizes.toml").read_text(encoding="utf-8")
    )
    found = {}
    for row in content["sizes"]:
        rows = tuple((weight, body, attachment) for weight, body, attachment in row["rows"])
        found[row["name"]] = Sizes(row["name"], rows, row["source"], row["basis"])
    return found
