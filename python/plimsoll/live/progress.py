"""What is known of a run while it goes on, gathered from its events and samples, for whoever shows
it.

Rates and latencies are those of the last few seconds. The remaining time is what the plan says for
phases that have a length, and what the measured rate says for those that work through bytes; where
neither is known it is None, never a guess.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from plimsoll import settings
from plimsoll.databases import preflight
from plimsoll.documents.event import Event
from plimsoll.documents.phase_actions import (
    GenerateLogs,
    Measure,
    PhaseAction,
    Search,
    Soak,
    WarmUp,
)
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import TargetIopsLoad
from plimsoll.files.folder import Content
from plimsoll.files.parquet import Columns
from plimsoll.live.json_lines import JsonLines
from plimsoll.live.mail_so_far import MailSoFar
from plimsoll.workloads.families import OPERATIONS

SCHEMA_VERSION = 1
SHOWN_METRICS = ("database_read", "database_write", "log_write")
#: A load that aims at database I/O is told its rate by what its transactions make, once the caches
#: are warm.
CALIBRATING = "measuring the I/O of a transaction"
WINDOW_NS = 5_000_000_000
#: Metrics whose bytes tell how far a phase is.
WORKED_THROUGH = {
    "prepare": "prepare",
    "checksum": "checksum",
    "backup": "backup",
    "restore": "checksum",
    "recover": "log_read",
}


class Figures:
    """See the module text."""

    def __init__(
        self,
        plan: Plan,
        metrics: list[str],
        bytes_to_prepare: int,
        later_s: dict[str, float] | None = None,
    ) -> None:
        self._later_s = later_s or {}
        self._plan, self._metrics = plan, metrics
        self._code = {name: code for code, name in enumerate(metrics)}
        run, stored = plan.run, plan.run.stored_bytes()
        self._total_bytes = {
            "prepare": bytes_to_prepare,
            "checksum": stored,
            "backup": stored,
            "restore": stored,
            "recover": run.logs_count() * len(run.instances) * preflight.LOG_BYTES,
        }
        #: Log generation of each instance: when the phase began, and now.
        self._logs: dict[int, tuple[float, float]] = {}
        self._phases = {phase.name: phase.action for phase in run.phases}
        #: Where there are several, each has a rate of its own.
        self._loads = [load.name for load in run.workloads] if len(run.workloads) > 1 else []
        self._operations = [self._code[name] for name in OPERATIONS if name in self._code]
        self._rows: deque[tuple[int, int, str, int, int]] = deque()
        self._bytes = dict.fromkeys(WORKED_THROUGH.values(), 0)
        self._cache = (0.0, 0.0)
        self.name = plan.name
        self.phase: str | None = None
        self.phase_start_ns = self.now_ns = 0
        self.errors = 0
        self._calibrates = any(
            isinstance(workload.load, TargetIopsLoad) for workload in run.workloads
        )
        #: What the phase does that its name does not tell.
        self.doing: str | None = None
        self.limits_ms = _mean_limits(plan.judgement.limits)
        self._mail = MailSoFar(plan, self._code)

    def json_lines(self) -> JsonLines:
        """What writes the samples of this run as lines of JSON."""
        return JsonLines(self._plan, self._metrics)

    @property
    def places(self) -> list[str]:
        """The paths of the targets."""
        return [target.path for target in self._plan.run.targets]

    @property
    def hung_after_s(self) -> float:
        """After how many seconds an I/O counts as hung."""
        return self._plan.run.hung_after_ms / 1000

    def event(self, event: Event) -> None:
        """Take an event."""
        self.now_ns = max(self.now_ns, event.time_ns)
        if event.kind == "phase_started":
            self.phase, self.phase_start_ns = event.phase, event.time_ns
            self._rows.clear()
            self._bytes = dict.fromkeys(self._bytes, 0)
            self._logs.clear()
            self._mail.begin()
            self.doing = None
        elif event.kind == "cache_warm" and self._calibrates:
            self.doing = CALIBRATING

    def sample(self, table: Columns) -> None:
        """Take a batch of samples."""
        self.now_ns = max(self.now_ns, int(table["end_ns"][-1]))
        self.errors += int(table["errors"].sum())
        for name in SHOWN_METRICS:
            self._count(table, name, table["metric"] == self._code[name])
        if self._loads:
            operations = np.isin(table["metric"], self._operations)
            for code, load in enumerate(self._loads, 1):
                self._count(table, _load_key(load), operations & (table["workload"] == code))
        while self._rows and self._rows[0][0] < self.now_ns - WINDOW_NS:
            self._rows.popleft()
        fresh = table["end_ns"] > self.phase_start_ns
        for name in self._bytes:
            self._bytes[name] += int(
                table["bytes"][fresh & (table["metric"] == self._code[name])].sum()
            )
        self._note_logs(table, fresh)
        self._mail.add(table, self.phase_start_ns)
        last = table["end_ns"] == table["end_ns"][-1]
        levels = [
            float(table["value"][last & (table["metric"] == self._code[name])].sum())
            for name in ("cache_used", "cache_limit")
        ]
        self._cache = (levels[0], levels[1])

    def _count(self, table: Columns, name: str, chosen: npt.NDArray[np.bool_]) -> None:
        """Keep what the chosen rows of each moment hold, under a name."""
        for end_ns in sorted(set(table["end_ns"][chosen].tolist())):
            if end_ns <= self.phase_start_ns:
                continue  # the last interval of the phase before
            rows = chosen & (table["end_ns"] == end_ns)
            counted = int(table["count"][rows].sum()), int(table["latency_ns_sum"][rows].sum())
            self._rows.append((end_ns, int(table["interval_ns"][rows].max()), name, *counted))

    def _note_logs(self, table: Columns, fresh: Any) -> None:
        chosen = fresh & (table["metric"] == self._code["log_generation"])
        for instance, generation in zip(
            table["instance"][chosen].tolist(), table["value"][chosen].tolist(), strict=True
        ):
            first, _ = self._logs.get(instance, (generation, generation))
            self._logs[instance] = (first, generation)

    def logs_written(self) -> int:
        """Logs that every instance has written since the phase began."""
        return int(min((now - first for first, now in self._logs.values()), default=0))

    def rate(self, name: str) -> tuple[float, float | None]:
        """Operations per second and their mean latency in milliseconds, over the last few
        seconds.
        """
        rows = [
            (interval, count, total)
            for _, interval, metric, count, total in self._rows
            if metric == name
        ]
        seconds = sum(interval for interval, _, _ in rows) / 1e9
        count = sum(count for _, count, _ in rows)
        latency_ms = sum(total for _, _, total in rows) / count / 1e6 if count else None
        return (count / seconds if seconds else 0.0), latency_ms

    def worked(self) -> tuple[float, float] | None:
        """MiB worked through and MiB per second, in a phase that works through bytes."""
        action = self._phases.get(self.phase or "")
        name = WORKED_THROUGH.get(action.kind) if action else None
        elapsed_s = (self.now_ns - self.phase_start_ns) / 1e9
        if name is None or elapsed_s <= 0:
            return None
        return self._bytes[name] / 2**20, self._bytes[name] / 2**20 / elapsed_s

    def cache_percent(self) -> float | None:
        """How full the caches are; None where there is none."""
        used, limit = self._cache
        return 100 * used / limit if limit else None

    def share_done(self) -> float | None:
        """How far the phase is, from 0 to 1."""
        action = self._phases.get(self.phase or "")
        if action is None or self.doing is not None:
            return None
        elapsed_s = (self.now_ns - self.phase_start_ns) / 1e9
        if (duration_s := _duration_s(action)) is not None:
            return min(1.0, elapsed_s / duration_s) if duration_s else None
        if isinstance(action, GenerateLogs):
            return min(1.0, self.logs_written() / action.logs_count)
        if isinstance(action, WarmUp):
            percent = self.cache_percent()
            return None if percent is None else min(1.0, percent / max(action.cache_percent, 1))
        total = self._total_bytes.get(action.kind)
        if action.kind not in WORKED_THROUGH:
            return None
        return min(1.0, self._bytes[WORKED_THROUGH[action.kind]] / total) if total else None

    def remaining_s(self) -> float | None:
        """What the phase still takes; None where nobody can say."""
        action, share = self._phases.get(self.phase or ""), self.share_done()
        if action is None or not share or action.kind == "warm_up":
            return None
        elapsed_s = (self.now_ns - self.phase_start_ns) / 1e9
        duration_s = _duration_s(action)
        return (
            elapsed_s * (1 - share) / share
            if duration_s is None
            else max(0.0, duration_s - elapsed_s)
        )

    def total_remaining_s(self) -> float | None:
        """What the phase and those after it are likely to take; None where nobody can say."""
        remaining = self.remaining_s()
        return None if remaining is None else remaining + self._later_s.get(self.phase or "", 0.0)

    def snapshot(self) -> Content:
        """Everything as plain data."""
        rates = {name: self.rate(name) for name in SHOWN_METRICS}
        worked = self.worked()
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "phase": self.phase,
            "doing": self.doing,
            "elapsed_s": round(self.now_ns / 1e9, 1),
            "phase_elapsed_s": round((self.now_ns - self.phase_start_ns) / 1e9, 1),
            "phase_remaining_s": _rounded(self.remaining_s()),
            "total_remaining_s": _rounded(self.total_remaining_s()),
            "phase_share_done": _rounded(self.share_done(), 3),
            "database_iops": round(rates["database_read"][0] + rates["database_write"][0], 1),
            **{f"{name}_per_s": round(rate, 1) for name, (rate, _) in rates.items()},
            **{
                f"{name}_latency_ms_mean": _rounded(latency, 3)
                for name, (_, latency) in rates.items()
            },
            "worked_mib": None if worked is None else round(worked[0]),
            "worked_mib_per_s": None if worked is None else round(worked[1]),
            "cache_percent": _rounded(self.cache_percent()),
            "loads": [self._of_load(load) for load in self._loads],
            "errors": self.errors,
            **({"mail": words} if (words := self._mail.in_words()) else {}),
        }

    def _of_load(self, load: str) -> Content:
        per_s, latency_ms = self.rate(_load_key(load))
        return {"name": load, "per_s": round(per_s, 1), "ms_mean": _rounded(latency_ms, 3)}


def _load_key(load: str) -> str:
    """Under what the samples of a load are kept; no metric is called so."""
    return f"load {load}"


def _duration_s(action: PhaseAction) -> float | None:
    """How long a phase is, where its plan says so."""
    return action.duration_s if isinstance(action, (Measure, Search, Soak)) else None


def _mean_limits(limit_set: str) -> dict[str, float]:
    """The limits of the mean latencies, for showing figures against them."""
    return {
        check["metric"]: check["limit"][limit_set]
        for check in settings.limits()["check"]
        if check.get("statistic") == "mean"
        and check.get("metric") in SHOWN_METRICS
        and limit_set in check["limit"]
    }


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def duration_in_words(seconds: float) -> str:
    """A duration for people.

    >>> duration_in_words(95), duration_in_words(7260)
    ('1 min 35 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
