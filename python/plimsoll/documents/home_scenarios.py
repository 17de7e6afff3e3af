"""What a run spec says of home folders: lengths of files, and scenarios with their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document

ScenarioName = Literal[
    "copy_in",
    "copy_out",
    "edit",
    "browse",
    "search",
    "delete",
    "new_folder",
    "remove_folder",
]
StepName = Literal[
    "list_home",
    "list_folder",
    "list_tree",
    "stat_folder",
    "stat_file",
    "open_file",
    "read_head",
    "read_file",
    "close_file",
    "probe_lock",
    "probe_new",
    "create_new",
    "write_new",
    "sync_new",
    "close_new",
    "stat_new",
    "replace_file",
    "delete_file",
    "make_folder",
    "remove_folder",
]


class HomeFileSize(Document):
    """A length of files in home folders."""

    bytes: int
    weight: float


class HomeScenario(Document):
    """What a user of home folders does, and how often."""

    name: ScenarioName
    weight: float
    steps: Sequence[StepName]
