"""The tasks of mail users: their names, what a target does of each, their metrics, and the weights of a score.

Names and weights are those of a published score sheet (`data/mail_tasks.toml`, `data/published_results.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from plimsoll import settings

Support = Literal["done", "mapped", "unsupported"]
PUBLISHED, MAIL_ONLY = "figure-5", "mail-only"
#: Names of sets of weights.
WEIGHTS = (PUBLISHED, MAIL_ONLY)


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: as the score sheet spells it.
        support: what IMAP with LMTP or submission does of it.
        how: by what, or what it would need.
        is_phase: whether it is a phase of a run and nothing that a user does in its day.
        weight: in the published score.
    """

    name: str
    support: Support
    how: str
    is_phase: bool
    weight: float

    @property
    def metric(self) -> str:
        """The name of its metric.

        >>> tasks()["ReadAndProcessMessages"].metric
        'mail_read_and_process_messages'
        """
        return "mail" + re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", self.name)

    @property
    def is_loadable(self) -> bool:
        """Whether a load may hold it."""
        return not self.is_phase and self.support != "unsupported"


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
        found[name] = Task(name, row["imap"], row["how"], bool(row.get("phase", False)), weights.get(name, 0))
    return found


def weights_of(name: str) -> dict[str, float]:
    """The tasks of a set of weights that move its score.

    >>> weights_of("mail-only")
    {'SendMail': 1, 'ReadAndProcessMessages': 52}
    """
    table = settings.published_results()["mail_weights"] if name == PUBLISHED else _data()["weights"][name]
    return {task: weight for task, weight in table.items() if task not in ("source", "basis")}


def source_of_weights(name: str) -> str:
    """Where a set of weights comes from."""
    table = settings.published_results()["mail_weights"] if name == PUBLISHED else _data()["weights"][name]
    return str(table["source"])


def loadable() -> tuple[Task, ...]:
    """The tasks that a load may hold."""
    return tuple(task for task in tasks().values() if task.is_loadable)


def unsupported(wanted: Mapping[str, float]) -> list[str]:
    """Those of some tasks that a load cannot hold, in the order of the score sheet.

    >>> unsupported({"SendMail": 1, "CreateTask": 1, "BrowseCalendar": 2})
    ['BrowseCalendar', 'CreateTask']
    """
    return [name for name, task in tasks().items() if wanted.get(name) and not task.is_loadable]


@cache
def _data() -> settings.Row:
    return tomllib.loads(files("plimsoll.data").joinpath("mail_tasks.toml").read_text(encoding="utf-8"))
