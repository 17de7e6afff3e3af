"""The events and figures of a run as lines of text."""

from __future__ import annotations

from plimsoll.documents.event import Event
from plimsoll.files.folder import Content
from plimsoll.live.progress import SHOWN_METRICS, Figures, duration_in_words
from plimsoll.pages.tables import shortened

LOAD_NAME_MAX = 24
TITLES = {
    "database_read": "database reads",
    "database_write": "database writes",
    "log_write": "log writes",
}


def metric_title(name: str) -> str:
    """What a metric of `SHOWN_METRICS` is called in lines and tables."""
    return TITLES[name]


def event_line(event: Event) -> str:
    """An event as a line."""
    mark = "" if event.level == "info" else f"{event.level}: "
    return f"  {event.time_ns / 1e9:8.1f} s  {mark}{event.text}"


def figures_line(shown: Content | Figures) -> str:
    """What is known of a run, in one line.

    Args:
        shown: the figures that `Listener.begins` brings, or what `state_of` answers while it runs.
    """
    if isinstance(shown, Figures):
        shown = shown.snapshot()
    parts = []
    if shown["phase_share_done"] is None and shown["doing"] is None:
        parts.append(str(shown["phase"]))
    if shown["phase_share_done"] is not None:
        parts.append(f"{shown['phase']} {shown['phase_share_done']:.0%}")
    if shown["doing"] is not None:
        parts.append(f"{shown['phase']}: {shown['doing']}")
    if shown["phase_remaining_s"] is not None:
        parts.append(f"{duration_in_words(shown['phase_remaining_s'])} left")
    if shown["worked_mib"] is not None:
        parts.append(f"{shown['worked_mib']:,} MiB, {shown['worked_mib_per_s']:,} MiB/s")
    for load in shown.get("loads", ()):
        if load["ms_mean"] is not None:
            name = shortened(load["name"], LOAD_NAME_MAX)
            parts.append(f"{name} {load['per_s']:.0f}/s {load['ms_mean']:.2f} ms")
    for name in SHOWN_METRICS:
        latency = shown[f"{name}_latency_ms_mean"]
        if latency is not None:
            parts.append(f"{TITLES[name]} {shown[f'{name}_per_s']:.0f}/s {latency:.2f} ms")
    if shown.get("mail"):
        parts.append(shown["mail"])
    if shown["cache_percent"] is not None:
        parts.append(f"cache {shown['cache_percent']:.0f} %")
    if shown["errors"]:
        parts.append(f"{shown['errors']} errors")
    return f"  {shown['elapsed_s']:8.1f} s  " + ", ".join(parts)
