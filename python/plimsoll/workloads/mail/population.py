"""How much mail users send and receive.

The balance of a population whose users answer what they read.

A user sends `new` messages a day of its own accord, each to `recipients`. Of every message that it
processes it makes others: an answer goes to one, an answer to all and a forwarded message to
`recipients`. With b messages made of one, and a share f of what is received processed, a user
receives R = new x recipients / (1 - f b) and sends S = new + f (reply + reply_all + forward) R.
LoadSim's published averages follow from its published shares (`tests/workloads/test_mail_data.py`);
a run counts both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Population:
    """See the module text.

    Attributes:
        new: messages a user sends of its own accord, in a day.
        recipients: of each of them, on average.
        reply: share of processed messages that are answered; likewise `reply_all` and `forward`.
        processed: share of the received messages that are processed.
    """

    new: float
    recipients: float
    reply: float
    reply_all: float
    forward: float
    processed: float = 1.0

    @property
    def made_of_one(self) -> float:
        """Messages that are received because one was.

        >>> Population(3, 4, 0.10, 0.03, 0.05).made_of_one
        0.42000000000000004
        """
        return self.processed * (self.reply + (self.reply_all + self.forward) * self.recipients)

    @property
    def is_growing(self) -> bool:
        """Whether there is no balance: every message makes another one, or more."""
        return self.made_of_one >= 1

    @property
    def received(self) -> float:
        """Messages that a user receives in a day.

        Raises:
            ValueError: there is no balance.

        >>> round(Population(3, 4, 0.10, 0.03, 0.05).received, 1)
        20.7
        """
        if self.is_growing:
            raise ValueError(growing(self.made_of_one))
        return self.new * self.recipients / (1 - self.made_of_one)

    @property
    def sent(self) -> float:
        """Messages that a user sends in a day.

        >>> round(Population(3, 4, 0.10, 0.03, 0.05).sent, 1)
        6.7
        """
        return (
            self.new + self.processed * (self.reply + self.reply_all + self.forward) * self.received
        )


def growing(made_of_one: float) -> str:
    """Why such a population is refused."""
    return f"the mail population would grow without end (each message makes {made_of_one:.2f} more)"


def mean_recipients(rows: Sequence[Sequence[float]]) -> float:
    """The mean of rows of weight and count.

    >>> mean_recipients([[3, 4], [7, 5]])
    4.7
    """
    return sum(weight * count for weight, count in rows) / sum(weight for weight, _ in rows)


def population_of(
    tasks: Mapping[str, float],
    recipients: Sequence[Sequence[float]],
    on_read: Mapping[str, float],
    processed: float,
) -> Population:
    """The population of users with these tasks.

    What is sent of their own accord is SendMail and RequestMeeting.
    """
    return Population(
        new=tasks.get("SendMail", 0) + tasks.get("RequestMeeting", 0),
        recipients=mean_recipients(recipients),
        reply=on_read["reply"],
        reply_all=on_read["reply_all"],
        forward=on_read["forward"],
        processed=processed,
    )
