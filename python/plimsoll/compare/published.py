"""Published results as sides of a comparison: `published:netapp-2007` in the place of a run folder.

The data are in `data/published_results.toml`, each result with its paper and place. A paper prints
means of one run on its own storage: such a side has no samples, no environment and no databases,
and every comparison with it says where it comes from.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plimsoll import settings
from plimsoll.compare.sides import ComparisonError, RunRead, Side
from plimsoll.documents.reported import ReportedTest, ReportSource
from plimsoll.imports import report_origin, to_run_folder

PREFIX = "published:"
MIB = 1048576
#: Figures of a paper by the names under which they are compared; other tools print plain means of
#: samples.
NAMES = {
    "database_iops": "database_iops",
    "reads_per_s": "total_database_read_per_s",
    "writes_per_s": "total_database_write_per_s",
    "log_reads_per_s": "total_log_read_with_replication_per_s",
    "log_writes_per_s": "total_log_write_per_s",
    "read_latency_ms": "total_database_read_latency_ms_mean_of_samples",
    "write_latency_ms": "total_database_write_latency_ms_mean_of_samples",
    "log_read_latency_ms": "total_log_read_with_replication_latency_ms_mean_of_samples",
    "log_write_latency_ms": "total_log_write_latency_ms_mean_of_samples",
    "backup_mib_per_s": "backup_mib_per_s",
    "recovery_seconds_per_log": "recovery_seconds_per_log",
    "reads_per_write": "reads_per_write",
    "orders_per_min": "orders_per_min",
    "mail_p95_weighted_ms": "mail_p95_weighted_ms",
    "file_iops_per_user": "file_iops_per_user",
    "orders_per_user_per_min": "orders_per_user_per_min",
}


@dataclass(frozen=True)
class PublishedResult:
    """One result that a paper prints.

    Attributes:
        id: the name it is compared under.
        title: what was tested.
        paper: who printed it.
        where: at which place of the paper.
        test: the kind of test.
        figures: as printed.
        users: how many users it stands for.
        note: what is wrong or particular with it.
    """

    id: str
    title: str
    paper: str
    where: str
    test: str
    figures: Mapping[str, float]
    users: int | None = None
    note: str | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, in a sentence."""
        note = f"; {self.note}" if self.note else ""
        return f"published, not measured here: {self.paper}, {self.where}{note}"

    def compared(self) -> dict[str, float]:
        """The figures under the names by which they are compared."""
        stated = {
            name: float(self.figures[own]) for own, name in NAMES.items() if own in self.figures
        }
        orders = self.figures.get("orders_per_min")
        if orders and self.users:
            stated["orders_per_user_per_min"] = orders / self.users
        reads, writes = self.figures.get("reads_per_s"), self.figures.get("writes_per_s")
        if reads and writes:
            stated.setdefault("reads_per_write", reads / writes)
        if "cache_used_mib" in self.figures:
            stated["cache_used_bytes"] = self.figures["cache_used_mib"] * MIB
        return stated


@cache
def published_results() -> Mapping[str, PublishedResult]:
    """Every published result by the name it is compared under."""
    return {row["id"]: PublishedResult(**row) for row in settings.published_results()["result"]}


def is_published(name: str | Path) -> bool:
    """Whether a side is a published result and no folder."""
    return str(name).startswith(PREFIX)


def published_result(name: str | Path) -> PublishedResult:
    """The result of a name that begins with the prefix.

    Raises:
        ComparisonError: there is none of this name; with those that there are.
    """
    bare = str(name).removeprefix(PREFIX)
    found = published_results().get(bare)
    if found is None:
        near = difflib.get_close_matches(bare, published_results(), 1)
        hint = (
            f"did you mean {PREFIX}{near[0]}"
            if near
            else f"there are {', '.join(published_results())}"
        )
        raise ComparisonError([f"no published result is called {bare!r}; {hint}"])
    return found


def published_side(path: Path) -> Side | None:
    """The side of a published result; None for a folder.

    Raises:
        ComparisonError: there is no result of this name.
    """
    if not is_published(path):
        return None
    result = published_result(path)
    report = ReportedTest(
        test_type="performance",
        source=ReportSource(files=[result.paper], format="published"),
    )
    summary = to_run_folder.summary_of(report).replace(name=result.id)
    plan = {
        "name": result.title,
        "imported": report_origin.origin_of(report).plain(),
        "run": {"instances": [], "workloads": [], "targets": []},
        "judgement": {"test": result.test, "users": result.users},
    }
    run = RunRead(path, plan, summary, {}, {}, None, stated=result.compared(), origin=result.origin)
    return Side(result.id, path, [run])
