"""The tasks of mail users: their names, what a target does of each, their metrics, and the weights
of a score.

Names and weights are those of a published score sheet (`data/mail_tasks.toml`,
`data/published_results.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, NotRequired, TypedDict, cast

from plimsoll import settings

Support = Literal["done", "mapped", "unsupported"]
#: What keeps the mail, by the name of its backend: a server that speaks IMAP, or a store on our
#: engine.
Target = Literal["imap", "mail_store"]
PUBLISHED, MAIL_ONLY = "figure-5", "mail-only"
#: Names of sets of weights.
WEIGHTS = (PUBLISHED, MAIL_ONLY)


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: as the score sheet spells it.
        supports: what each target does of it.
        hows: by what, or what it would need.
        is_phase: whether it is a phase of a run and nothing that a user does in its day.
        weight: in the published score.
    """

    name: str
    supports: Mapping[Target, Support]
    hows: Mapping[Target, str]
    is_phase: bool
    weight: float

    @property
    def metric(self) -> str:
        """The name of its metric.

        >>> tasks()["ReadAndProcessMessages"].metric
        'mail_read_and_process_messages'
        """
        return "mail" + re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", self.name)

    def is_loadable(self, target: Target) -> bool:
        """Whether a load on a target may hold it."""
        return not self.is_phase and self.supports[target] != "unsupported"


class TaskRow(TypedDict):
    """A task of the score sheet and what targets do of it; see `data/mail_tasks.toml`."""

    name: str
    imap: Support
    how: str
    store: Support
    store_how: str
    phase: NotRequired[bool]


class TaskFile(TypedDict):
    """The tasks, and sets of weights."""

    task: list[TaskRow]
    weights: dict[str, dict[str, str | float]]


@cache
def tasks() -> dict[str, Task]:
    """All tasks by name, in the order of the score sheet.

    >>> len(tasks()), sum(task.weight for task in tasks().values())
    (28, 60)
    """
    weights = weights_of(PUBLISHED)
    found = {}
    for row in _data()["task"]:
        name = row["name"]
        found[name] = Task(
            name,
            {"imap": row["imap"], "mail_store": row["store"]},
            {"imap": row["how"], "mail_store": row["store_how"]},
            bool(row.get("phase", False)),
            weights.get(name, 0),
        )
    return found


def weights_of(name: str) -> dict[str, float]:
    """The tasks of a set of weights that move its score.

    >>> weights_of("mail-only")
    {'SendMail': 1, 'ReadAndProcessMessages': 52}
    """
    return {task: weight for task, weight in _weights(name).items() if not isinstance(weight, str)}


def source_of_weights(name: str) -> str:
    """Where a set of weights comes from."""
    return str(_weights(name)["source"])


def _weights(name: str) -> Mapping[str, str | float]:
    if name == PUBLISHED:
        return settings.published_results()["mail_weights"]
    return _data()["weights"][name]


def loadable(target: Target) -> tuple[Task, ...]:
    """The tasks that a load on a target may hold."""
    return tuple(task for task in tasks().values() if task.is_loadable(target))


def unsupported(wanted: Mapping[str, float], target: Target) -> list[str]:
    """Those of some tasks that a load on a target cannot hold, in the order of the score sheet.

    >>> unsupported({"SendMail": 1, "CreateTask": 1, "BrowseCalendar": 2}, "imap")
    ['BrowseCalendar', 'CreateTask']
    """
    return [
        name for name, task in tasks().items() if wanted.get(name) and not task.is_loadable(target)
    ]


@cache
def _data() -> TaskFile:
    text = files("plimsoll.data").joinpath("mail_tasks.toml").read_text(encoding="utf-8")
    return cast(TaskFile, tomllib.loads(text))
