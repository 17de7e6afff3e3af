"""The runs of several hosts as one result, with its page.

Made from their folders, or judged again from the folder of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import verdict_of
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.folder import Content
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener
from plimsoll.multihost import combined_folder
from plimsoll.verdict.text import lines_of


@dataclass(frozen=True)
class Combined:
    """What the runs of several hosts came to.

    Attributes:
        folder: the folder of all, with copies of their runs.
        verdict: the content of its `verdict.json`.
    """

    folder: Path
    verdict: Content

    @property
    def result(self) -> str:
        """The worst of the hosts: `pass`, `fail` or `inconclusive`."""
        return str(self.verdict["result"])

    @property
    def report(self) -> Path | None:
        """The page, where one was written."""
        return folder.report_of(self.folder)

    def lines(self) -> list[str]:
        """The figures of each host and of all, and the verdict, for people."""
        from plimsoll.multihost import page

        summary = Summary.read(self.folder / folder.SUMMARY)
        hosts = page.lines_of(*combined_folder.read(self.folder), summary)
        return [*hosts, "", *lines_of(verdict_of(self.verdict))]


def combine_hosts(
    hosts: Sequence[tuple[str | None, StrPath]],
    out: StrPath | None = None,
    *,
    overlap_percent: float = combined_folder.OVERLAP_PERCENT,
    different_plans: bool = False,
    listener: Listener | None = None,
) -> Combined:
    """Add up the runs of several hosts against one storage.

    Sums, percentiles from merged distributions, the worst result.

    Args:
        hosts: for each host its name, or None for that of its plan or machine, and the folder of
            its run.
        out: the new folder; one below `runs/` if left out.
        overlap_percent: how much of the longest measured time must be common to all.
        different_plans: whether runs of different pages, editions, tests or limits may be added up.
        listener: warned when no report can be written.

    Raises:
        CombineError: every reason why these runs cannot be added up.
        FolderError: the folder is taken, or files are missing or damaged.
    """
    named = [(name, Path(home)) for name, home in hosts]
    out = None if out is None else Path(out)
    with reading(*(path for _, path in named)):
        home, verdict = combined_folder.combine(
            named, out, overlap_percent=overlap_percent, different_plans=different_plans
        )
        write_page(home, listener or Listener())
    return Combined(home, verdict.plain())


def judge_hosts(home: StrPath, *, listener: Listener | None = None) -> Combined:
    """Judge the runs of several hosts again from the folder of all.

    Raises:
        CombineError, FolderError: files are missing or damaged.
    """
    home = Path(home)
    with reading(home):
        verdict = combined_folder.judge_again(home)
        write_page(home, listener or Listener())
    return Combined(home, verdict.plain())


def write_page(home: Path, listener: Listener) -> None:
    """The page of all hosts, where its libraries are installed."""
    try:
        from plimsoll.multihost.page import render

        folder.write_text(home / folder.REPORT, render(home, *combined_folder.read(home)))
    except ModuleNotFoundError as error:
        listener.warning(f"no report.html was written, because {error.name} is not installed")
