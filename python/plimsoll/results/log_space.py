"""How much space the log took: as it was seen in the samples, as copies with a lag need it, and as
sizing has it.

The published rule adds the lag of the most lagged copy to the days of log that a volume must hold
(Dell EqualLogic Exchange 2010 sizing paper, section 3.3.4), and a fifth on top (Table 15). It is
applied twice: to the rate that was measured, and to the logs that the same table expects of so many
users. A day that is pressed into fewer hours writes its logs in these hours.

Limit: the rate of the measured time stands for that of the whole lag. A run that is much shorter
than the lag has seen neither the nights nor the busiest hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.environment import read_environment
from plimsoll.documents.figures import Level
from plimsoll.documents.log_space import LogSpaceFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import (
    EngineInstance,
    LaggedCopy,
    MailStoreInstance,
    MailWorkload,
)
from plimsoll.files import folder
from plimsoll.files.parquet import Query
from plimsoll.sizing.guidance import Guidance, editions
from plimsoll.sizing.logs import log_volume
from plimsoll.units import (
    BYTES_PER_GB,
    BYTES_PER_KB,
    BYTES_PER_MB,
    NS_PER_S,
    SECONDS_PER_HOUR,
)
from plimsoll.workloads.mail.stored import mean_bytes

LOG_BYTES = BYTES_PER_MB
#: The edition whose paper the rule stands in; it says the same of all.
GUIDANCE = "exchange_2010"
STATED, FOUND = "the plan", "what was free when the run began"


def log_space(run_folder: Path, plan: Plan, ask: Query) -> list[LogSpaceFigures]:
    """The figures of every instance that has copies with a lag, or a stated room for its log."""
    rooms = plan.judgement.log_room_bytes
    concerned = [
        item for item in plan.run.engine_instances if item.lagged_copies or item.name in rooms
    ]
    free = _free_bytes(run_folder, plan, concerned) if concerned else {}
    found = [_figures(plan, item, rooms.get(item.name), free, ask) for item in concerned]
    return [figures for figures in found if figures is not None]


def _figures(
    plan: Plan,
    instance: EngineInstance,
    stated: int | None,
    free: dict[str, float],
    ask: Query,
) -> LogSpaceFigures | None:
    place = {"instance": instance.name}
    measured = ask(
        "SELECT avg(value) AS mean, min(value) AS min, max(value) AS max FROM measured"
        " WHERE metric = 'log_space' AND instance = $instance",
        place,
    )[0]
    if measured["mean"] is None:
        return None
    most = {
        row["metric"]: float(row["most"])
        for row in ask(
            "SELECT metric, max(value) AS most FROM sample WHERE instance = $instance"
            " AND metric IN ('log_space', 'log_lagged') GROUP BY metric",
            place,
        )
    }
    rate = _written_bytes_per_s(instance.name, ask)
    copies = list(instance.lagged_copies)
    reached = _are_reached(copies, instance.name, ask)
    far = _far_bytes(copies, rate)
    room = free.get(instance.name) if stated is None else float(stated)
    kept = most["log_space"]
    needed: float | None = kept
    if copies and not reached:
        needed = None if far is None else max(kept, far + _besides(instance.name, ask))
    guidance = editions()[GUIDANCE]
    overhead = guidance.number("log_overhead_factor")
    return LogSpaceFigures(
        instance=instance.name,
        log_directory=instance.log_directory,
        copies=copies,
        kept_bytes=Level(**measured),
        kept_bytes_max=kept,
        lagged_bytes_max=most.get("log_lagged"),
        written_bytes_per_s=rate,
        lag_reached=bool(copies) and reached,
        needed_bytes=needed,
        room_bytes=room,
        room_source=None if room is None else FOUND if stated is None else STATED,
        sizing_bytes=None if far is None else far * overhead,
        sizing_users_bytes=_of_users(plan, instance, copies, guidance),
    )


def _written_bytes_per_s(instance: str, ask: Query) -> float | None:
    """Log written while it was measured, by the numbers of its generations; None where the time was
    too short for one to end.
    """
    rows = ask(
        "SELECT phase, max(value) - min(value) AS logs, max(end_ns)::BIGINT - min(end_ns)::BIGINT"
        " AS ns FROM measured WHERE metric = 'log_generation' AND instance = $instance"
        " GROUP BY phase",
        {"instance": instance},
    )
    logs, seconds = sum(row["logs"] for row in rows), sum(row["ns"] for row in rows) / NS_PER_S
    return logs * LOG_BYTES / seconds if seconds and logs else None


def _are_reached(copies: Sequence[LaggedCopy], instance: str, ask: Query) -> bool:
    """Whether the run went on for longer than every lag, seen where the copies were followed."""
    row = ask(
        "SELECT max(end_ns)::BIGINT - min(end_ns)::BIGINT AS ns, max(value) FILTER (metric ="
        " 'log_generation') - min(value) FILTER (metric = 'log_generation') AS logs FROM sample"
        " WHERE instance = $instance AND end_ns IN (SELECT end_ns FROM sample WHERE instance ="
        " $instance AND metric = 'log_lagged')",
        {"instance": instance},
    )[0]
    seconds, logs = (row["ns"] or 0) / NS_PER_S, row["logs"] or 0
    return all(
        logs >= (copy.lag_logs or 0) if copy.lag_s is None else seconds >= copy.lag_s
        for copy in copies
    )


def _far_bytes(copies: Sequence[LaggedCopy], rate: float | None) -> float | None:
    """What the most lagged copy needs by the measured rate; None where that is not known."""
    each = [
        copy.lag_logs * float(LOG_BYTES)
        if copy.lag_logs is not None
        else None
        if rate is None or copy.lag_s is None
        else copy.lag_s * rate
        for copy in copies
    ]
    known = [size for size in each if size is not None]
    return max(known) if known and len(known) == len(each) else None


def _besides(instance: str, ask: Query) -> float:
    """What was kept besides the need of copies, in the mean: for recovery, and until it is
    deleted.
    """
    row = ask(
        "SELECT avg(space - lagged) AS besides FROM (SELECT end_ns,"
        " max(value) FILTER (metric = 'log_space') AS space,"
        " max(value) FILTER (metric = 'log_lagged') AS lagged"
        " FROM measured WHERE instance = $instance GROUP BY end_ns)",
        {"instance": instance},
    )[0]
    return float(row["besides"] or 0.0)


def _of_users(
    plan: Plan, instance: EngineInstance, copies: Sequence[LaggedCopy], guidance: Guidance
) -> float | None:
    """What the published table expects of the users of a mail store in the longest lag."""
    lags = [copy.lag_s for copy in copies]
    longest = max((lag for lag in lags if lag is not None), default=None)
    if not isinstance(instance, MailStoreInstance) or longest is None or None in lags:
        return None
    total = 0.0
    for load in plan.run.workloads:
        if not isinstance(load, MailWorkload) or instance.name not in load.instances:
            continue
        asked = plan.judgement.mail[load.name]
        if asked.sent_per_day is None or asked.received_per_day is None:
            return None
        volume = log_volume(
            asked.users,
            1,
            asked.sent_per_day + asked.received_per_day,
            mean_bytes(instance.filling.messages.sizes) / BYTES_PER_KB,
            longest / (load.day_h * SECONDS_PER_HOUR),
            guidance,
            _moved_share(load, instance, longest),
        )
        total += volume.log_volume_size.value * BYTES_PER_GB
    return total or None


def _moved_share(load: MailWorkload, instance: MailStoreInstance, lag_s: float) -> float:
    """The share of the mailboxes that is moved within a lag: what sizing adds to their log."""
    moved = (load.mailbox_moves_per_h or 0.0) * lag_s / SECONDS_PER_HOUR
    return min(1.0, moved / instance.filling.mailboxes)


def _free_bytes(
    run_folder: Path, plan: Plan, instances: Sequence[EngineInstance]
) -> dict[str, float]:
    """What each instance may still write where its log lies; logs on one volume share it."""
    if plan.judgement.modelled or not (run_folder / folder.ENVIRONMENT).is_file():
        return {}
    targets = read_environment(run_folder / folder.ENVIRONMENT).get("targets", [])
    systems = [system for target in targets if (system := target.get("file_system"))]
    mounts: dict[str, tuple[str, float]] = {}
    for instance in instances:
        place = Path(instance.log_directory)
        holding = [
            (system["mount_point"], float(system["free_bytes"]))
            for system in systems
            if "free_bytes" in system and place.is_relative_to(system["mount_point"])
        ]
        if holding:
            mounts[instance.name] = max(holding, key=lambda found: len(found[0]))
    sharing = [mount for mount, _ in mounts.values()]
    return {name: free / sharing.count(mount) for name, (mount, free) in mounts.items()}
