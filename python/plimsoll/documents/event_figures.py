"""How the loads of a run answered its staged events, as its summary holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document
from plimsoll.documents.staged_events import EventKind, EventLimits

StoppedBy = Literal["person", "condition", "failure"]


class SeenResponse(Document):
    """What the samples show before the delays of the load generator are taken out of them."""

    pause_s: float
    dip_percent: float | None
    recovered_s: float | None


class LoadResponse(Document):
    """How one load answered an event.

    Rates in completed operations per second, times in seconds from the event on.

    None stands for what did not happen or could not be seen. `degraded_per_s` is the mean from when
    the event was detected until it was undone, or until the phase ended; `surge_per_s` the highest
    rate of one sample after that. The means of response times are those before the event and from
    the event until it was undone, or until the phase ended.

    What the load generator's own delays can have made is taken out of when it was seen, pause, dip
    and recovery; `seen` has them with it, and `generator_late_s` is by how much the generator was
    late at most. A fall by less than `unseen_percent` of the rate before is not told from chance.

    `pause_s` is what the longest pause lasted at least, `pause_s_most` what it lasted at most;
    `pause_goes_on_s` is how long one had lasted when the time of the event ended. Pauses of up to
    `pause_chance_s` are chance, by what the load did before. From `unproved_s` on the load may have
    been back, but too little time was left to tell; from `perhaps_s` on it lacked no more than
    chance makes of a load that is back. The time of the event ended after `judged_s`, with its
    phase or when the event `cut_by` changed something; `stopped_by` is who ended the phase early: a
    person, a condition of the plan, or the failure of the run. The event `disturbed_by` is too near
    for a rate before. `failed_count` operations came to nothing, in `samples_count` samples.
    """

    workload: str
    baseline_per_s: float | None
    baseline_s: float
    detected_s: float | None
    pause_s: float
    least_per_s: float | None
    dip_percent: float | None
    recovered_s: float | None
    degraded_per_s: float | None
    degraded_change_percent: float | None
    surge_per_s: float | None
    before_ms_mean: float | None
    lasting_ms_mean: float | None
    generator_late_s: float | None = None
    seen: SeenResponse | None = None
    unseen_percent: float | None = None
    pause_s_most: float | None = None
    pause_goes_on_s: float | None = None
    pause_chance_s: float | None = None
    unproved_s: float | None = None
    perhaps_s: float | None = None
    judged_s: float | None = None
    cut_by: str | None = None
    stopped_by: StoppedBy | None = None
    disturbed_by: str | None = None
    failed_count: int | None = None
    samples_count: int | None = None


class DegradedFigures(Document):
    """Latencies of a database, or of the log of an instance, while an event lasted, in ms.

    The last one is the largest mean of the published sample interval. What was read or written
    before the event, and not once while it lasted, has a count of 0 and no latencies.
    """

    scope: str
    metric: str
    count: int
    latency_ms_mean: float | None
    latency_ms_sample_mean_max: float | None


class FailoverFigures(Document):
    """An instance of a dead node on the survivor; times in seconds from the death on.

    Attributes:
        instance: its name.
        node: who died.
        to: who survived.
        opened_s: until it could be spoken to again: its log was replayed.
        served_s: until the first operation was served again; null where none was in the phase.
        lost_count: operations that were being carried out when the node died.
        cache_mib_max: what its cache may grow to on the survivor.
        log_mib: log that was replayed.
    """

    instance: str
    node: str
    to: str
    opened_s: float
    served_s: float | None
    lost_count: int
    cache_mib_max: float
    log_mib: float


class EventFigures(Document):
    """An event of a run as it was judged; seconds on the axis of the run's samples.

    `degraded` holds the latencies from `degraded_from_s` to `degraded_until_s`, where the plan
    states limits for that time; `held_s` is how long all writes were held for it. `undone_in` is a
    later measured phase that it degraded, because undoing it took so long.
    """

    name: str
    kind: EventKind
    phase: str
    begun_s: float | None
    applied_s: float | None
    undone_s: float | None
    is_proved: bool | None
    problem: str | None
    io_errors: int
    judge: EventLimits
    loads: Sequence[LoadResponse]
    degraded_from_s: float | None = None
    degraded_until_s: float | None = None
    degraded: Sequence[DegradedFigures] = ()
    held_s: float | None = None
    undone_in: str | None = None
    failovers: Sequence[FailoverFigures] = ()
    fit: Sequence[str] = ()
    fit_lacking: Sequence[str] = ()


class QuietFigures(Document):
    """Latencies of a database, or of the log of an instance, while no event lasted, in ms.

    The mean is the highest of three: by operations, by samples, and by time. The last one is the
    largest mean of the published sample interval.
    """

    scope: str
    metric: str
    latency_ms_mean: float
    latency_ms_sample_mean_max: float


class Undisturbed(Document):
    """The measured time without that in which events lasted: their names, and seconds."""

    events: Sequence[str]
    left_out_s: float
    seconds: float
    figures: Sequence[QuietFigures]
