"""The samples of a running test as OpenMetrics text, for whoever scrapes it while it goes on.

Format: OpenMetrics 1.0 text. What samples count per interval is added up here to counters that only
grow; levels stand as they were last. Names and units come from the dictionary of metrics.
Everything is told of the last closed sample; nothing is measured for a scrape.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from plimsoll.documents.event import Event
from plimsoll.documents.plan import Plan
from plimsoll.files.parquet import Columns
from plimsoll.units import NS_PER_S

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: Levels of the dictionary that say what happened in an interval: counters for who scrapes.
ADDED_UP = (
    "handing_over",
    "interrupts",
    "context_switches",
    "pages_repurposed",
    "page_faults",
    "major_page_faults",
    "pages_swapped",
    "network_received",
    "network_sent",
    "device_reads",
    "device_read_bytes",
    "device_read_time",
    "device_writes",
    "device_write_bytes",
    "device_write_time",
    "device_flushes",
    "device_flush_time",
)
#: What a unit of the dictionary is called here, and by what it is divided.
UNITS = {"byte": ("bytes", 1.0), "ns": ("seconds", NS_PER_S), "ratio": ("ratio", 1.0)}

#: instance, database, workload: what a row belongs to.
Place = tuple[int, int, int]


class Exposition:
    """What has been counted so far, and its text. Fed by one thread, read by others."""

    def __init__(self, plan: Plan, metrics: list[tuple[str, str, str, str]], version: str) -> None:
        """Args: the completed plan.

        Name, kind, unit and meaning of each metric in the order of their codes; our version.
        """
        run = plan.run
        self._metrics = metrics
        self._instances = [instance.name for instance in run.instances]
        self._workloads = ["", *(workload.name for workload in run.workloads)]
        self._phases = [phase.name for phase in run.phases]
        self._run = {"name": plan.name, "version": version}
        self._phase: str | None = None
        self._counts: dict[tuple[int, Place], list[float]] = {}
        self._levels: dict[tuple[int, Place], float] = {}
        self._lock = threading.Lock()

    def event(self, event: Event) -> None:
        """Take an event: only which phase it is matters here."""
        if event.kind == "phase_started":
            with self._lock:
                self._phase = event.phase

    def sample(self, table: Columns) -> None:
        """Take a batch of samples, as columns."""
        names = (
            "metric",
            "instance",
            "database",
            "workload",
            "count",
            "errors",
            "bytes",
            "latency_ns_sum",
            "value",
        )
        with self._lock:
            for code, instance, database, workload, *sums, value in zip(
                *(table[name].tolist() for name in names), strict=True
            ):
                key = (code, (instance, database, workload))
                name, kind, _, _ = self._metrics[code]
                if kind == "level" and name not in ADDED_UP:
                    self._levels[key] = value
                    continue
                before = self._counts.setdefault(key, [0.0] * 5)
                for position, amount in enumerate((*sums, value)):
                    before[position] += amount

    def text(self) -> str:
        """Everything, as one exposition."""
        with self._lock:
            counts = {key: list(values) for key, values in sorted(self._counts.items())}
            levels = dict(sorted(self._levels.items()))
            phase = self._phase
        lines = ["# TYPE plimsoll_run info", "# HELP plimsoll_run The run that goes on."]
        lines.append(f"plimsoll_run_info{_labels(self._run)} 1")
        lines += [
            "# TYPE plimsoll_phase stateset",
            "# HELP plimsoll_phase The phase the run is in.",
        ]
        lines += [
            f"plimsoll_phase{_labels({'plimsoll_phase': name})} {int(name == phase)}"
            for name in dict.fromkeys(self._phases)
        ]
        lines += self._transfers(counts)
        lines += self._events(counts)
        lines += self._each(counts, levels)
        return "\n".join([*lines, "# EOF"]) + "\n"

    def _of_kind(
        self, counts: dict[tuple[int, Place], list[float]], kinds: Iterable[str]
    ) -> list[tuple[str, Place, list[float]]]:
        return [
            (self._metrics[code][0], place, values)
            for (code, place), values in counts.items()
            if self._metrics[code][1] in kinds
        ]

    def _transfers(self, counts: dict[tuple[int, Place], list[float]]) -> list[str]:
        """Four families for whatever is transferred, and one for what is only timed."""
        lines: list[str] = []
        rows = self._of_kind(counts, ("transfer",))
        for family, kind, unit, text, column in (
            ("plimsoll_transfers", "counter", None, "Transfers completed.", 0),
            ("plimsoll_transfer_errors", "counter", None, "Transfers that failed.", 1),
            ("plimsoll_transferred_bytes", "counter", "bytes", "Bytes transferred.", 2),
        ):
            lines += _head(family, kind, unit, text)
            lines += [
                f"{family}_total{self._place(place, purpose=name)} {_number(values[column])}"
                for name, place, values in rows
            ]
        lines += self._latencies(
            "plimsoll_transfer_latency_seconds", "Latency of transfers.", "purpose", rows
        )
        timed = self._of_kind(counts, ("timing",))
        return lines + self._latencies(
            "plimsoll_time_seconds", "Times of everything else that is timed.", "of", timed
        )

    def _latencies(
        self, family: str, text: str, label: str, rows: list[tuple[str, Place, list[float]]]
    ) -> list[str]:
        lines = _head(family, "summary", "seconds", text)
        for name, place, values in rows:
            labels = self._place(place, **{label: name})
            lines.append(f"{family}_count{labels} {_number(values[0])}")
            lines.append(f"{family}_sum{labels} {_number(values[3] / NS_PER_S)}")
        return lines

    def _events(self, counts: dict[tuple[int, Place], list[float]]) -> list[str]:
        lines = _head("plimsoll_events", "counter", None, "Events without a duration.")
        for name, place, values in self._of_kind(counts, ("counter",)):
            lines.append(
                f"plimsoll_events_total{self._place(place, event=name)} {_number(values[0])}"
            )
        return lines

    def _each(
        self, counts: dict[tuple[int, Place], list[float]], levels: dict[tuple[int, Place], float]
    ) -> list[str]:
        """A family of its own for each level.

        A gauge, or a counter of what its intervals added up.
        """
        lines: list[str] = []
        for code, (name, kind, unit, meaning) in enumerate(self._metrics):
            if kind != "level":
                continue
            unit_name, divisor = UNITS.get(unit, (None, 1.0))
            family = f"plimsoll_{name}"
            if unit_name and not family.endswith(f"_{unit_name}"):
                family += f"_{unit_name}"
            added_up = name in ADDED_UP
            places = (
                [(place, values[4]) for (of, place), values in counts.items() if of == code]
                if added_up
                else [(place, value) for (of, place), value in levels.items() if of == code]
            )
            if not places:
                continue
            lines += _head(family, "counter" if added_up else "gauge", unit_name, meaning)
            suffix = "_total" if added_up else ""
            lines += [
                f"{family}{suffix}{self._place(place)} {_number(value / divisor)}"
                for place, value in places
            ]
        return lines

    def _place(self, place: Place, **more: str) -> str:
        instance, database, workload = place
        labels = {**more, "instance": self._instances[instance], "database": str(database)}
        if workload:
            labels["workload"] = self._workloads[workload]
        return _labels(labels)


def _head(family: str, kind: str, unit: str | None, text: str) -> list[str]:
    lines = [f"# TYPE {family} {kind}"]
    if unit:
        lines.append(f"# UNIT {family} {unit}")
    return [*lines, f"# HELP {family} {_escaped(text)}"]


def _labels(labels: Mapping[str, str]) -> str:
    """Labels in braces.

    >>> _labels({"a": "x", "b": "y"})
    '{a="x",b="y"}'
    """
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """A number without a needless point.

    >>> _number(3.0), _number(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if float(value).is_integer() else repr(float(value))
