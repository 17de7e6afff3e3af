"""How hard a workload presses: exactly one of several ways, checked and completed.

    load = { sessions = 3 }                      sessions that wait for the storage: a closed load
    load = { target_iops = 240 }                 arrivals that make so much database I/O
    load = { users = 1000, profile = "heavy" }   the same, from users and what one of them makes
    load = { transactions_per_s = 100 }          arrivals at a stated rate
    load = { search = "max" }                    arrivals at the highest rate that keeps the limits
    load = { search = "max_sessions" }           the most sessions that keep the limits

Arrivals keep their schedule whatever the storage does (an open load); sessions slow down with it.
What a user makes comes from the sizing's profiles and guidance, so that a test and a sizing of the
same users agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT
from plimsoll.documents.summary import LoadShown
from plimsoll.inputs.schema import Collector, Field, Flag, Given, Number, Text
from plimsoll.sizing.guidance import editions, profiles
from plimsoll.sizing.iops import iops_per_user
from plimsoll.workloads import stages

SPACINGS = ("poisson", "regular")
#: A load stated in users aims so far above what they need: windows that fix its rate agree within
#: two per cent, and arrivals vary.
AIMED_ABOVE_PERCENT = 3
#: Which edition's guidance tells what a user of a test's edition makes.
GUIDANCE = {
    "2010": "exchange_2010",
    "2013": "exchange_2013",
    "2016": "exchange_2016",
    "2019": "exchange_2019",
}

#: More stages are put together where a load is described.
STAGES_TOLD_MAX = 6

LOAD_FIELDS = {
    "sessions": Field(
        Number(1, 100_000, whole=True), meaning="sessions; with search, those of the warm-up"
    ),
    "shared": Field(Flag(), meaning="whether sessions are one pool over all databases"),
    "target_iops": Field(Number(0.1, 1e9), meaning="database reads and writes per second"),
    "users": Field(Number(1, 1e9, whole=True), meaning="users whose database I/O is the target"),
    "profile": Field(Text(tuple(profiles())), meaning="what a user does in a day"),
    "iops_per_user": Field(
        Number(0.0001, 1000), meaning="database I/O of one user, instead of a profile"
    ),
    "throughput_percent": Field(
        Number(0.1, 1000), meaning="share of the target, or of what a search found, that is loaded"
    ),
    "transactions_per_s": Field(Number(0.01, 1e9), meaning="transactions that arrive per second"),
    "search": Field(
        Text(("max", "max_sessions")),
        meaning="look for the highest rate, or the most sessions, that keep the limits",
    ),
    "spacing": Field(Text(SPACINGS), meaning="how arrivals are spaced: independently or evenly"),
    "step_s": Field(Number(1, 86400), meaning="how long a search measures one level"),
    "settle_s": Field(
        Number(0, 3600), meaning="how long a search lets a new level run before it measures"
    ),
    "tolerance_percent": Field(Number(0.1, 50), meaning="how narrow a search must become"),
    **stages.LOAD_FIELDS,
}

#: Which key says how to load, and which others go with it.
WAYS: dict[str, tuple[str, ...]] = {
    "sessions": ("shared",),
    "target_iops": ("spacing", "throughput_percent", *stages.STAGE_KEYS),
    "users": ("profile", "iops_per_user", "spacing", "throughput_percent", *stages.STAGE_KEYS),
    "transactions_per_s": ("spacing", *stages.STAGE_KEYS),
    "search": (
        "sessions",
        "shared",
        "spacing",
        "step_s",
        "settle_s",
        "tolerance_percent",
        "throughput_percent",
    ),
}


def complete_load(
    given: Given | None,
    edition_name: str,
    plan: Given,
    path: tuple[str | int, ...],
    collector: Collector,
) -> spec.LoadSpec:
    """The load as Rust is given it.

    Args:
        given: the checked `load` table, absent keys None; None for the edition's sessions.
        edition_name: whose habits fill in what is absent.
        plan: the checked plan, for the limit set and the pool of sessions.
        path: where the table stands, for mistakes.
        collector: takes the mistakes.
    """
    stated = {key: value for key, value in (given or {}).items() if value is not None}
    edition = settings.editions()[edition_name]
    way = _way(stated, path, collector) if stated else "sessions"
    sessions = spec.SessionsLoad(
        sessions=stated.get("sessions", edition["sessions"]),
        shared=stated.get("shared", edition["sessions_shared"]),
    )
    if way == "sessions":
        return sessions
    spacing, sessions_max = (
        stated.get("spacing", settings.ARRIVALS["spacing"]),
        plan["sessions_max"],
    )
    found = stages.stages_of(stated, plan["sample_interval_ms"], path, collector)
    if way == "transactions_per_s":
        rate = float(stated["transactions_per_s"])
        return spec.RateLoad(
            transactions_per_s=rate,
            spacing=spacing,
            sessions_max=sessions_max,
            stages=found or ABSENT,
        )
    if way == "search":
        if stated["search"] == "max_sessions" and "spacing" in stated:
            collector.add(
                (*path, "spacing"), "means nothing where sessions are looked for", "remove it"
            )
        if stated["search"] == "max_sessions" and sessions.sessions > sessions_max:
            collector.add(
                (*path, "sessions"),
                f"begins the search with {sessions.sessions}, above the {sessions_max} that may be "
                f"tried",
                f"write fewer, or sessions_max = {sessions.sessions} or more",
            )
        return spec.SearchLoad(
            search=stated["search"],
            sessions=sessions.sessions,
            shared=sessions.shared,
            spacing=spacing,
            sessions_max=sessions_max,
            **{
                key: float(stated.get(key, settings.SEARCH[key]))
                for key in ("step_s", "settle_s", "tolerance_percent")
            },
            criteria=criteria(plan["limits"]),
            throughput_percent=float(stated.get("throughput_percent", 100)),
        )
    share = stated.get("throughput_percent", 100) / 100
    if way == "target_iops":
        target = stated["target_iops"] * share
    else:
        target = aimed_at(_of_users(stated, edition_name, path, collector) * share)
    return spec.TargetIopsLoad(
        target_iops=target,
        spacing=spacing,
        sessions_max=sessions_max,
        io_per_transaction_assumed=settings.ARRIVALS["io_per_transaction_assumed"],
        calibrate_s=settings.ARRIVALS["calibrate_s"],
        stages=found or ABSENT,
    )


def _way(stated: Given, path: tuple[str | int, ...], collector: Collector) -> str:
    """The one key that says how to load; `sessions` beside `search` are those of the warm-up."""
    found = [
        way for way in WAYS if way in stated and not (way == "sessions" and "search" in stated)
    ]
    known = ", ".join(f"`{way}`" for way in WAYS)
    if len(found) != 1:
        several = " and ".join(found) or "nothing"
        collector.add(
            path, f"says {several} of what may be loaded", f"write exactly one of {known}"
        )
        return "sessions"
    way = found[0]
    for key in stated:
        if key != way and key not in WAYS[way]:
            collector.add((*path, key), f"means nothing together with `{way}`", "remove it")
    return way


def aimed_at(required_iops: float) -> float:
    """The rate that a load stated in users aims at, so that one which is carried makes what its
    users need.

    >>> aimed_at(240), required_of_aimed(aimed_at(240))
    (247.2, 240.0)
    """
    return round(required_iops * (1 + AIMED_ABOVE_PERCENT / 100), 6)


def required_of_aimed(target_iops: float) -> float:
    """What the users of a load need, from the rate that it aims at."""
    return round(target_iops / (1 + AIMED_ABOVE_PERCENT / 100), 6)


def _of_users(
    stated: Given, edition_name: str, path: tuple[str | int, ...], collector: Collector
) -> float:
    """The database I/O of so many users, without headroom.

    A test adds its own by `throughput_percent`.
    """
    if ("profile" in stated) == ("iops_per_user" in stated):
        collector.add(
            path,
            "says how many users, but not what each makes",
            "write either `profile` or `iops_per_user`",
        )
        return 1.0
    if "iops_per_user" in stated:
        return float(stated["users"] * stated["iops_per_user"])
    if edition_name not in GUIDANCE:
        hint = "write `iops_per_user`, or take edition 2010, 2013, 2016 or 2019"
        collector.add((*path, "profile"), f"is not published for edition {edition_name}", hint)
        return 1.0
    return float(stated["users"]) * profile_iops(stated["profile"], edition_name)


def profile_iops(profile: str, edition_name: str) -> float:
    """Database I/O of one user of a profile, without headroom and with the store in copies.

    >>> profile_iops("heavy", "2010")
    0.1
    """
    guidance = editions()[GUIDANCE[edition_name]]
    return round(
        iops_per_user(profiles()[profile].messages_per_day, guidance, standalone=False).value, 9
    )


def criteria(limit_set: str) -> list[spec.Criterion]:
    """What a rate must keep while it is looked for: means and rates of the limit set.

    The judged phase looks at the rest.
    """
    return [
        spec.Criterion(
            name=check["name"],
            metric=check["metric"],
            statistic="mean" if check["statistic"] == "mean" else "per_s",
            limit=check.get("search_limit", check["limit"][limit_set]),
        )
        for check in settings.limits()["check"]
        if check["statistic"] in ("mean", "per_s") and limit_set in check["limit"]
    ]


def described(load: spec.LoadSpec | LoadShown) -> str:
    """A completed load in words.

    >>> described(spec.SessionsLoad(sessions=3, shared=False))
    '3 sessions for each database'
    """
    match load:
        case spec.TargetIopsLoad():
            return f"arrivals for {load.target_iops:g} database IOPS{_in_stages(load)}"
        case spec.RateLoad():
            return f"{load.transactions_per_s:g} transactions per second arrive{_in_stages(load)}"
        case spec.SessionsLoad():
            return f"{load.sessions} sessions {_of_whom(load)}"
        case spec.SearchedLoad(search="max_sessions"):
            return f"the most sessions {_of_whom(load)} that keep the limits"
    return "arrivals at the highest rate that keeps the limits"


def _in_stages(load: spec.TargetIopsLoad | spec.RateLoad) -> str:
    """What of it comes when, in words."""
    if not load.stages:
        return ""
    if len(load.stages) <= STAGES_TOLD_MAX:
        told = ", ".join(f"{stage.rate_percent:g} % for {stage.for_s:g} s" for stage in load.stages)
        return f": {told}"
    shares = [stage.rate_percent for stage in load.stages]
    lasts_s = sum(stage.for_s for stage in load.stages)
    return (
        f", in {len(shares)} stages of {min(shares):g} to {max(shares):g} % of it, {lasts_s:g} s "
        f"in all"
    )


def _of_whom(load: spec.SessionsLoad | spec.SearchedLoad) -> str:
    return "in all" if load.shared else "for each database"


def described_plain(load: Mapping[str, object]) -> str:
    """A load of a plan that is plain data, in words.

    Nothing where an imported plan does not know it.
    """
    return described(spec.AnyLoad.from_plain({"load": load}).load) if load else ""


def has_stages(workload: spec.WorkloadSpec) -> bool:
    """Whether the rate of a load changes while it is measured."""
    load = workload.load
    return isinstance(load, spec.RateLoad | spec.TargetIopsLoad) and bool(load.stages)


def mistakes_of_phases(
    plan: Given, workloads: Sequence[spec.WorkloadSpec], collector: Collector
) -> None:
    """Loads and phases that do not fit.

    A target that is never measured, a search that never happens.
    """
    if any(has_stages(workload) for workload in workloads):
        for key, why, hint in (
            (
                "event",
                "is told by what the rate was before, which stages change",
                "stage events on a load of one rate",
            ),
            (
                "required_iops",
                "is the rate of a whole run, which stages change",
                "leave it out: each stage must complete what is due in it",
            ),
        ):
            if plan[key]:
                collector.add((key,), why, hint)
    names = [workload.name for workload in workloads]
    warmed: set[str] = set()
    searched: set[str] = set()
    for index, phase in enumerate(plan["phase"]):
        running = phase["workloads"] if phase["workloads"] is not None else names
        loads = {workload.name: workload.load for workload in workloads if workload.name in running}
        searching = [name for name, load in loads.items() if isinstance(load, spec.SearchLoad)]
        match phase["kind"]:
            case "warm_up":
                warmed.update(loads)
            case "search":
                searched.update(searching)
                if len(searching) != 1:
                    message = f"has {len(searching)} workloads that search, but needs exactly one"
                    collector.add(
                        ("phase", index), message, 'write load = { search = "max" } in one of them'
                    )
            case "measure" | "generate_logs":
                for name, load in loads.items():
                    if isinstance(load, spec.TargetIopsLoad) and name not in warmed:
                        hint = (
                            "put a phase of kind warm_up before it: there the I/O of a transaction "
                            "is measured"
                        )
                        collector.add(
                            ("phase", index),
                            f"aims at IOPS with {name}, which never warmed up",
                            hint,
                        )
                    if isinstance(load, spec.SearchLoad) and name not in searched:
                        hint = "put a phase of kind search before it"
                        collector.add(
                            ("phase", index),
                            f"measures {name}, whose load is never looked for",
                            hint,
                        )
