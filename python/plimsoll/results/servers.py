"""What the servers of a run used of processors and memory while it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plimsoll.documents.outcome import Outcome
from plimsoll.documents.server_usage import ServerSeries, ServerUsage, ServerUsageFile
from plimsoll.documents.summary import AnySummary
from plimsoll.files import folder
from plimsoll.settings import MEASURED_KINDS
from plimsoll.units import NS_PER_S

#: From here on the machine has no processor time left to speak of.
OUT_OF_PROCESSORS_SHARE = 0.9
#: Below this share of the memory nothing is left to speak of.
OUT_OF_MEMORY_SHARE = 0.05


def server_usage(run_folder: Path, outcome: Outcome) -> list[ServerUsage]:
    """The usage of every watched server over the measured phases; empty where none was watched.

    Raises:
        FolderError: the file is damaged.
    """
    path = run_folder / folder.SERVER_USAGE
    if not path.exists():
        return []
    file = ServerUsageFile.read(path)
    spans = [
        (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
        for phase in outcome.phases
        if phase.kind in MEASURED_KINDS
    ]
    return [
        usage_of(series, spans, file.processors).replace(machine_memory_bytes=file.memory_bytes)
        for series in file.servers
    ]


def usage_of(
    series: ServerSeries, spans: Sequence[tuple[float, float]], processors: int
) -> ServerUsage:
    """What one server used within some spans.

    Args:
        series: its samples.
        spans: first and last moment of each, in seconds on the clock of the run.
        processors: of the machine.
    """
    ends, seconds = np.array(series.end_s, float), np.array(series.seconds, float)
    inside = np.zeros(len(ends), bool)
    for first_s, last_s in spans:
        inside |= (ends - seconds / 2 >= first_s) & (ends - seconds / 2 <= last_s)
    inside &= seconds > 0
    if not inside.any():
        return ServerUsage(
            name=series.name,
            busy_mean=None,
            busy_max=None,
            share_percent=None,
            resident_bytes_mean=None,
            resident_bytes_max=None,
            processes_max=0,
            gone_s=0.0,
            problem=series.problem or "no sample was taken while it was measured",
        )
    seconds, busy = seconds[inside], np.array(series.busy_s, float)[inside]
    resident = np.array(series.resident_bytes, float)[inside]
    count = np.array(series.processes, int)[inside]
    mean = float(busy.sum() / seconds.sum())
    return ServerUsage(
        name=series.name,
        busy_mean=mean,
        busy_max=float((busy / seconds).max()),
        share_percent=100 * mean / processors,
        resident_bytes_mean=float((resident * seconds).sum() / seconds.sum()),
        resident_bytes_max=int(resident.max()),
        processes_max=int(count.max()),
        gone_s=float(seconds[count == 0].sum()),
        problem=series.problem,
    )


def who_was_out(
    usage: Sequence[ServerUsage], busy_share: float | None, memory_free_bytes: float | None
) -> list[str]:
    """Who was out of what, in sentences: the processors or the memory, and who had most of them.

    Args:
        usage: of the servers and the run.
        busy_share: of all processors of the machine, 0 to 1; None where it is not known.
        memory_free_bytes: memory that was available; None where it is not known.
    """
    found = []
    known = [item for item in usage if item.share_percent is not None]
    if busy_share is not None and busy_share >= OUT_OF_PROCESSORS_SHARE and known:
        order = sorted(known, key=lambda item: -(item.share_percent or 0.0))
        parts = [f"{item.name} {item.share_percent:.0f} %" for item in order]
        rest = max(100 * busy_share - sum(item.share_percent or 0.0 for item in known), 0.0)
        parts.append(f"others {rest:.0f} %")
        found.append(
            f"the processors of this machine were out, {busy_share:.0%} busy: {', '.join(parts)}"
        )
    total = known[0].machine_memory_bytes if known else 0
    free = None if memory_free_bytes is None or not total else memory_free_bytes / total
    if free is not None and free < OUT_OF_MEMORY_SHARE:
        most = max(known, key=lambda item: item.resident_bytes_mean or 0.0)
        mib = (most.resident_bytes_mean or 0.0) / 2**20
        text = f"{free:.1%} of it were free; {most.name} had most, {mib:,.0f} MiB"
        found.append(f"the memory of this machine was out: {text}")
    found += [
        f"{item.name} had no process for {item.gone_s:.0f} s while it was measured"
        for item in usage
        if item.gone_s
    ]
    return found


def summary_in_words(summary: AnySummary) -> list[str]:
    """Who was out of what in a run, in sentences; none where no server was watched."""
    busy, memory = summary.machine.get("cpu_busy"), summary.machine.get("memory_available")
    return who_was_out(
        summary.servers,
        None if busy is None else busy.mean,
        None if memory is None else memory.mean,
    )
