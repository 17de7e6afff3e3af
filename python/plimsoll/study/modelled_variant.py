"""A variant by the light load.

Its streams on a modelled array, in virtual time, and the figures that come out.

What a database does comes from published rates (`mix`). Where tests did not publish their threads,
a rate is read off at a latency: `at_latency_ms` raises or lowers the sessions until the mean read
latency lies on both sides of it, and interpolates. Users with their I/O make a required rate; then
the latency at that rate and the headroom are read off the same way.

Limits: those of the model (`docs/reference/modelled-array.md`); repetitions differ in their seed
only, so their spread says how far chance reaches inside the model and nothing of how far the model
is from hardware: that is in `docs/papers.md`.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from plimsoll.arrays import streams as work
from plimsoll.arrays.description import array_description, with_logs_on
from plimsoll.arrays.neighbours import neighbour_rows
from plimsoll.arrays.plan_target import collected_array
from plimsoll.arrays.pools import free_gb, has_log_pool
from plimsoll.arrays.presets import CHANGES, changed_array, wanted_array
from plimsoll.compare.figures import LESS, MORE, NEITHER, Figure
from plimsoll.documents.array_spec import ArraySpec
from plimsoll.documents.outcome import ArrayReport
from plimsoll.documents.study import Light, LightMix, LightResult
from plimsoll.errors import PlimsollError
from plimsoll.inputs.schema import Collector, Field, Flag, Given, Number, Table, Text
from plimsoll.inputs.toml_lines import LocatedFile
from plimsoll.settings import QUALIFYING_CAPACITY_SHARE
from plimsoll.units import NS_PER_S

_MIX = {
    "read_bytes": Field(Number(512, 1e7), default=33_600.0, meaning="mean size of a database read"),
    "writes_per_read": Field(Number(0, 100), default=0.613, meaning="page writes for each read"),
    "write_bytes": Field(Number(512, 1e7), default=37_500.0, meaning="mean size of a page write"),
    "logs_per_read": Field(Number(0, 100), default=0.49, meaning="log writes for each read"),
    "log_bytes": Field(Number(512, 1e7), default=5_300.0, meaning="mean size of a log write"),
    "write_depth": Field(
        Number(1, 4096, whole=True), default=64, meaning="page writes on their way at once"
    ),
    "burst_ms": Field(
        Number(0, 60_000),
        default=work.BURST_MS,
        meaning="interval of bursts of page writes; 0 for bursts of 49 pages",
    ),
}
LIGHT_FIELDS = {
    "array": Field(Text(), required=True, meaning="a preset, FILE.toml or FILE.toml#NAME"),
    "changes": Field(Table(CHANGES), default={}, meaning="figures of the array to change"),
    "log_array": Field(Text(), meaning="drives of another preset for the logs alone"),
    "log_changes": Field(Table(CHANGES), default={}, meaning="figures of that preset to change"),
    "databases": Field(Number(1, 250, whole=True), default=4, meaning="databases"),
    "database_gb": Field(
        Number(1, 1e6), required=True, meaning="size of each database, decimal GB"
    ),
    "volume_gb": Field(Number(1, 1e7), required=True, meaning="size of the volume of one database"),
    "log_gb": Field(Number(1, 1e6), default=80.0, meaning="size of the log volume of one database"),
    "databases_per_volume": Field(
        Number(1, 250, whole=True), default=1, meaning="databases that share a volume"
    ),
    "logs_apart": Field(Flag(), default=True, meaning="whether logs have volumes of their own"),
    "sessions": Field(
        Number(1, 100_000, whole=True),
        required=True,
        meaning="sessions in all; where reading off begins",
    ),
    "at_latency_ms": Field(
        Number(0.01, 10_000), meaning="read the figures off at this mean read latency"
    ),
    "users": Field(Number(1, 1e9, whole=True), meaning="users that must be served"),
    "iops_per_user": Field(Number(0.0001, 1000), meaning="database I/O of one of them"),
    "maintenance": Field(Flag(), default=True, meaning="whether background maintenance runs"),
    "maintenance_pause_ms": Field(
        Number(0, 60_000), default=work.TICK_MS, meaning="its pause between reads"
    ),
    "mix": Field(Table(_MIX), default={}, meaning="what a database does for each page read"),
    "warm_up_s": Field(
        Number(1, 86_400, whole=True), default=40, meaning="simulated seconds before measuring"
    ),
    "measure_s": Field(
        Number(1, 864_000, whole=True), default=150, meaning="simulated seconds measured"
    ),
}

#: The busiest of the pools beside that of the databases.
OTHER_DRIVES = "drives of other pools"
#: How busy the stages of an array are, by the model's names for them.
STAGE_FIGURES = {
    stage: Figure(
        f"{stage.replace(' ', '_')}_busy_percent", f"{stage.capitalize()} at work", "%", NEITHER
    )
    for stage in (
        "drives",
        OTHER_DRIVES,
        "controllers",
        "links to the array",
        "links to the host",
        "host",
        "disk queue",
        "cap",
    )
}
OWN_FIGURES = (
    Figure("headroom", "Headroom: database IOPS carried by those required", "", MORE),
    Figure("required_iops", "Database IOPS required", "1/s", NEITHER),
    Figure("read_latency_ms_at_required", "Database read latency at the required rate", "ms", LESS),
    Figure("maintenance_per_s", "Maintenance reads", "1/s", MORE),
    Figure("sessions", "Sessions", "", NEITHER),
    Figure("neighbour_iops", "IOPS of neighbours", "1/s", NEITHER),
    Figure("neighbour_drives_busy_percent", "Drives at work for neighbours", "%", NEITHER),
    *STAGE_FIGURES.values(),
)
#: The model's classes and ours.
_RATES = {
    "database_read": "total_database_read_per_s",
    "database_write": "total_database_write_per_s",
    "log_write": "total_log_write_per_s",
    "maintenance": "maintenance_per_s",
}
_LATENCIES = {
    "database_read": "total_database_read_latency_ms_mean",
    "database_write": "total_database_write_latency_ms_mean",
    "log_write": "total_log_write_latency_ms_mean",
}
READ_LATENCY = "total_database_read_latency_ms_mean"
#: How much the sessions change from one try to the next, how many tries there are, and the least of
#: them.
STEP, TRIES_MAX, SESSIONS_MIN = 1.3, 24, 1


class LightError(PlimsollError):
    """A light load that cannot be simulated, with the reason."""


def complete_light(data: Given, file_name: str) -> Light:
    """Check a light load and fill in its defaults.

    Raises:
        InputError: with every mistake found.
    """
    collector = Collector(LocatedFile(file_name, {"light": data}, {}))
    given = collector.table(data, LIGHT_FIELDS, ("light",))
    given["mix"] = LightMix(**collector.table(data.get("mix", {}), _MIX, ("light", "mix")))
    # Twice checked is twice reported.
    collector.mistakes = list(dict.fromkeys(collector.mistakes))
    if (given["users"] is None) != (given["iops_per_user"] is None):
        collector.add(
            ("light", "users"), "and `iops_per_user` belong together", "write both or none of them"
        )
    is_whole = not collector.mistakes
    for key in ("changes", "log_changes"):
        given[key] = {name: value for name, value in given[key].items() if value is not None}
    light = Light(**given)
    _check_arrays(light, _layout(light)[0] if is_whole else [], collector)
    if is_whole and light.database_gb > light.volume_gb:
        collector.add(
            ("light", "database_gb"), "is more than the volume holds", "write a larger `volume_gb`"
        )
    collector.raise_if_any()
    return light


def _check_arrays(light: Light, volumes: list[tuple[str, float]], collector: Collector) -> None:
    """What the two arrays cannot be, and whether the volumes go on them.

    Told before the first variant is simulated.
    """
    for name, changes in (("array", "changes"), ("log_array", "log_changes")):
        if not getattr(light, name):
            continue
        array, can_be = collected_array(
            getattr(light, name),
            getattr(light, changes),
            ("light", name),
            ("light", changes),
            collector,
        )
        if array is None or not can_be:
            continue
        on_logs = name == "log_array"
        if on_logs and any(array.get(key) for key in ("groups", "volumes", "neighbours")):
            message = "has groups, volumes or neighbours, and drives for the logs alone have none"
            collector.add(
                ("light", name),
                message,
                "describe them with `array`, and the logs' drives with log_sets",
            )
        apart = light.log_array or has_log_pool(array)
        here = [
            size_gb for title, size_gb in volumes if not apart or title.startswith("log") == on_logs
        ]
        held = free_gb(array)
        if sum(here) > held:
            message = f"holds {held:,.0f} GB, but the volumes on it ask for {sum(here):,.0f} GB"
            collector.add(
                ("light", name), message, "make the volumes smaller, or use larger or more drives"
            )


def warnings_of(light: Light) -> list[str]:
    """What a reader must know of this variant."""
    warnings = []
    share = light.database_gb / light.volume_gb
    if share < QUALIFYING_CAPACITY_SHARE:
        warnings.append(
            f"the databases fill {share:.0%} of their volumes, far below what a design uses: seeks "
            f"are short, so rates are high"
        )
    array = changed_array(wanted_array(light.array), light.changes)
    if any(row["iops"] for row in array["neighbours"]):
        warnings.append(
            "no published result had neighbours, so that the model's error says nothing of them"
        )
    return warnings


def simulated(light: Light, seed: int) -> dict[str, float]:
    """The figures of one variant with one seed.

    Raises:
        LightError: the latency to read off at cannot be reached, or the array cannot be simulated.
    """
    first = _at(light, int(light.sessions), seed)
    at_ms, found = light.at_latency_ms, first
    if at_ms is not None:
        found = _between(_bracket(light, seed, READ_LATENCY, at_ms, first), READ_LATENCY, at_ms)
    if light.users is not None:
        required = light.users * (light.iops_per_user or 0.0)
        found = {**found, "required_iops": required, "headroom": found["database_iops"] / required}
        try:
            at = _between(
                _bracket(light, seed, "database_iops", required, first), "database_iops", required
            )
            found["read_latency_ms_at_required"] = at[READ_LATENCY]
        except LightError:
            # More than the array makes with any number of sessions: there is no such latency.
            pass
    return found


def _bracket(
    light: Light, seed: int, figure: str, wanted: float, first: dict[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Two neighbouring numbers of sessions with the wanted value between them.

    Both rise with the sessions.
    """
    tried = {int(first["sessions"]): first}
    for _ in range(TRIES_MAX):
        ordered = [tried[count] for count in sorted(tried)]
        for low, high in pairwise(ordered):
            if low[figure] <= wanted <= high[figure]:
                return low, high
        least, most = min(tried), max(tried)
        down = tried[least][figure] > wanted
        if down and least <= SESSIONS_MIN:
            break
        count = max(SESSIONS_MIN, int(least / STEP)) if down else max(most + 1, round(most * STEP))
        tried[count] = _at(light, count, seed)
        if (
            not down
            and figure == "database_iops"
            and tried[count][figure] < 1.005 * tried[most][figure]
        ):
            break
    span = (
        f"{min(tried)} to {max(tried)} sessions make {tried[min(tried)][figure]:.4g} to "
        f"{tried[max(tried)][figure]:.4g}"
    )
    raise LightError(f"{figure} of {wanted:g} is not reached: {span}")


def _between(
    pair: tuple[dict[str, float], dict[str, float]], figure: str, wanted: float
) -> dict[str, float]:
    low, high = pair
    width = high[figure] - low[figure]
    share = (wanted - low[figure]) / width if width else 0.0
    return {
        name: value + share * (high[name] - value) for name, value in low.items() if name in high
    }


def _at(light: Light, sessions: int, seed: int) -> dict[str, float]:
    from plimsoll import _native

    spec = {
        "array": _array(light).plain(),
        "streams": _streams(light, sessions),
        "seed": seed,
        "warm_up_ns": int(light.warm_up_s) * NS_PER_S,
        "measure_ns": int(light.measure_s) * NS_PER_S,
    }
    try:
        outcome = json.loads(_native.simulate(json.dumps(spec)))
    except _native.ConfigError as error:
        raise LightError(str(error)) from error
    rows = {row["class"]: row for row in outcome["classes"]}
    found = {name: rows[kind]["per_second"] for kind, name in _RATES.items() if kind in rows}
    found |= {
        name: rows[kind]["latency_ms_mean"] for kind, name in _LATENCIES.items() if kind in rows
    }
    found["database_iops"] = found["total_database_read_per_s"] + found.get(
        "total_database_write_per_s", 0.0
    )
    found["sessions"] = float(sessions)
    array = ArrayReport.from_plain(outcome["array"], "what the array counted")
    if array.neighbours:
        found["neighbour_iops"] = sum(row.iops for row in neighbour_rows(array))
        drives = next(row for row in array.stages if row.stage == "drives")
        found["neighbour_drives_busy_percent"] = 100 * drives.neighbour_utilisation
    # The busiest comes first, so that of several other pools it is the one that stays.
    for use in reversed(array.stages):
        stage = use.stage if use.stage in STAGE_FIGURES else OTHER_DRIVES
        found[STAGE_FIGURES[stage].name] = 100 * use.utilisation
    return found


def _layout(light: Light) -> tuple[list[tuple[str, float]], list[work.Place]]:
    """Volumes and where the databases lie.

    Several to a volume one behind the other, logs in volumes of their own or behind them.
    """
    volumes: list[tuple[str, float]] = []
    places: list[work.Place] = []
    share, count = int(light.databases_per_volume), int(light.databases)
    for first in range(0, count, share):
        here = min(share, count - first)
        number = len(volumes)
        volumes.append((f"database {first}", light.volume_gb * here))
        if light.logs_apart:
            volumes.append((f"log {first}", light.log_gb * here))
        for index in range(here):
            log = number + 1 if light.logs_apart else number
            behind = here * light.database_gb + 1 + 2 * index
            log_start = index * light.log_gb if light.logs_apart else behind
            places.append(
                work.Place(number, log, light.database_gb, index * light.database_gb, log_start)
            )
    return volumes, places


def _array(light: Light) -> ArraySpec:
    volumes, _ = _layout(light)
    array = changed_array(wanted_array(light.array), light.changes)
    logs = {name for name, _ in volumes if name.startswith("log ")}
    description = array_description(array, volumes, light.warm_up_s, logs)
    if not light.log_array:
        return description
    return with_logs_on(
        description, changed_array(wanted_array(light.log_array), light.log_changes), logs
    )


def _streams(light: Light, sessions: int) -> list[work.Stream]:
    _, places = _layout(light)
    mix = work.Mix(**light.mix.given())
    count = len(places)
    shares = [sessions // count + (index < sessions % count) for index in range(count)]
    streams = [
        work.sessions(place, share, mix)
        for place, share in zip(places, shares, strict=True)
        if share
    ]
    if light.maintenance:
        streams += [work.maintenance(place, light.maintenance_pause_ms) for place in places]
    return streams


def carry_out(light: Light, seed: int, path: Path) -> str | None:
    """Simulate and write the result beside its definition, for a process of its own.

    Answers what went wrong.
    """
    figures, problem = None, None
    try:
        figures = simulated(light, seed)
    except LightError as error:
        problem = str(error)
    result = LightResult(
        schema_version=1, definition=light, seed=seed, figures=figures, problem=problem
    )
    result.write(path)
    return problem
