"""What a load must make, window by window of the measured time, to be the load that was planned.

    window = { iops_per_user = [0.60, 0.75] }
    window = { orders_per_min = [700, 800], over_s = 60 }

Outside of it the load was another one than planned, and nothing is concluded from the run. Each
family has figures of its own; one of a user needs a load that says how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents import run_spec as spec
from plimsoll.documents.phase_actions import Measure
from plimsoll.documents.plan import FilesAsked, LoadWindow
from plimsoll.inputs.schema import Collector, Field, Given, ListOf, Number
from plimsoll.plan.load import has_stages
from plimsoll.workloads.families import WINDOW_S, WINDOWS
from plimsoll.workloads.files.fields import WINDOW_SHARES
from plimsoll.workloads.store.rate import USERS_PER_SESSION, ceiling
from plimsoll.workloads.window_figures import Per, WindowFigure

SECONDS: dict[Per, float] = {"s": 1.0, "min": 60.0, "h": 3600.0}


def _meanings() -> dict[str, str]:
    """The keys of all families, with what each is in them."""
    found: dict[str, list[str]] = {}
    for own in WINDOWS.values():
        for key, figure in own.items():
            found.setdefault(key, []).append(figure.meaning)
    return {key: "; ".join(meanings) for key, meanings in found.items()}


_BAND = ListOf(Number(0, 1e9), 2)
WINDOW_FIELDS = {
    **{
        key: Field(_BAND, meaning=f"least and most, {meaning}")
        for key, meaning in _meanings().items()
    },
    "over_s": Field(
        Number(1, 86400),
        meaning="length of a window; 10 for files, 600 for mail users, 60 for others if left out, "
        "and never more than is measured",
    ),
}


def family_name(load: spec.WorkloadSpec) -> str:
    """The family of a completed load, as `WINDOWS` names it."""
    return load.family or "records"


def figure_of(load: spec.WorkloadSpec, window: LoadWindow) -> WindowFigure:
    """What a window is about."""
    return WINDOWS[family_name(load)][window.figure]


def unit_s(figure: WindowFigure, load: spec.WorkloadSpec) -> float:
    """The time that a figure is counted in, in seconds."""
    if isinstance(load, spec.MailWorkload) and figure.per == "day":
        return load.day_h * SECONDS["h"]
    return SECONDS[figure.per]


def completed(
    given_list: Sequence[Given],
    run: spec.RunSpec,
    files: Mapping[str, FilesAsked],
    collector: Collector,
) -> dict[str, LoadWindow]:
    """The window of every load that has one, by the names of the loads.

    Users of files have the published one where nothing is said.

    Args:
        given_list: the checked tables of the loads, absent keys None.
        run: what they became, in the same order, and the phases.
        files: what was asked of loads on files.
        collector: takes the mistakes.
    """
    found: dict[str, LoadWindow] = {}
    for index, (given, load) in enumerate(zip(given_list, run.workloads, strict=False)):
        longest_s = max(
            (
                phase.action.duration_s
                for phase in run.phases
                if isinstance(phase.action, Measure)
                and phase.action.duration_s
                and load.name in phase.workloads
            ),
            default=None,
        )
        path = ("workload", index, "window")
        stated = {key: value for key, value in (given["window"] or {}).items() if value is not None}
        if given["window"] is None:
            window = _published(given, files.get(load.name))
        else:
            window = _stated(stated, given, load, run.workloads, path, collector)
        if window is None:
            continue
        usual_s = WINDOW_S[family_name(load)]
        over_s = float(stated.get("over_s", min(usual_s, longest_s or usual_s)))
        if longest_s is not None and over_s > longest_s:
            collector.add(
                (*path, "over_s"),
                f"is {over_s:g}, but {longest_s:g} s are measured at a time",
                "write a shorter one, or leave it out",
            )
        found[load.name] = window.replace(over_s=over_s)
    return found


def _published(given: Given, files: FilesAsked | None) -> LoadWindow | None:
    """The band that the published tests wanted users of files to keep, as wide as theirs."""
    if files is None or files.users is None or (given["load"] or {}).get("iops_per_user") is None:
        return None
    each = (files.target_iops or 0.0) / files.users
    least, most = (round(each * share, 9) for share in WINDOW_SHARES)
    return LoadWindow(figure="iops_per_user", least=least, most=most, over_s=0, users=files.users)


def _stated(
    stated: Given,
    given: Given,
    load: spec.WorkloadSpec,
    loads: Sequence[spec.WorkloadSpec],
    path: tuple[str | int, ...],
    collector: Collector,
) -> LoadWindow | None:
    """The window as the plan states it; None where it is a mistake."""
    family = family_name(load)
    own = WINDOWS[family]
    bands = {key: value for key, value in stated.items() if key != "over_s"}
    for key in bands:
        if key not in own:
            collector.add(
                (*path, key),
                f"is no figure of {family.replace('_', ' ')}",
                f"write {' or '.join(own)}",
            )
    if len(bands) != 1:
        said = " and ".join(bands) or "no figure"
        collector.add(path, f"says {said}", f"write one of {', '.join(own)}")
    if has_stages(load) or isinstance(load.load, spec.SearchLoad):
        why = "changes in stages" if has_stages(load) else "is looked for"
        collector.add(path, f"is of one rate, but that of this load {why}", "remove it")
        return None
    if len(bands) != 1 or not set(bands) <= set(own):
        return None
    ((key, band),) = bands.items()
    if len(band) != 2 or band[0] >= band[1]:
        collector.add((*path, key), "is no band", "write the least and the most: [0.60, 0.75]")
        return None
    figure, users = own[key], _users(given, load)
    if figure.of_user and users is None:
        collector.add((*path, key), "needs users", "say how many in `load`")
        return None
    if figure.counted == "database_io":
        _check_alone(load, loads, (*path, key), collector)
    window = LoadWindow(
        figure=key,
        least=float(band[0]),
        most=float(band[1]),
        over_s=0,
        users=users if figure.of_user else None,
    )
    _check_asked(window, load, given, (*path, key), collector)
    return window


def _users(given: Given, load: spec.WorkloadSpec) -> int | None:
    """The users of a load; None where it does not say how many."""
    users = (given["load"] or {}).get("users")
    if users is not None and isinstance(load, spec.StoreWorkload):
        sessions = getattr(load.load, "sessions", None)
        return None if sessions is None else sessions * USERS_PER_SESSION
    return None if users is None else int(users)


def _check_alone(
    load: spec.WorkloadSpec,
    loads: Sequence[spec.WorkloadSpec],
    path: tuple[str | int, ...],
    collector: Collector,
) -> None:
    """I/O of databases that several loads work on cannot be told apart."""
    shared = [
        other.name
        for other in loads
        if other.name != load.name and set(other.instances) & set(load.instances)
    ]
    if shared:
        collector.add(
            path,
            f"is of databases that {shared[0]} works on, too",
            "write transactions_per_s, or give each load instances of its own",
        )


def _check_asked(
    window: LoadWindow,
    load: spec.WorkloadSpec,
    given: Given,
    path: tuple[str | int, ...],
    collector: Collector,
) -> None:
    """A window that the load would miss even if everything went as planned."""
    planned, most = _planned(window, load, given)
    if planned is not None and not window.least <= planned <= window.most:
        collector.add(
            path,
            f"leaves out the {planned:.4g} that the load asks for",
            "write a band around it, or another load",
        )
    if most is not None and most < window.least:
        collector.add(
            path,
            f"begins above the {most:.4g} that think time allows",
            "write a lower band, more sessions or less think time",
        )


def _planned(
    window: LoadWindow, load: spec.WorkloadSpec, given: Given
) -> tuple[float | None, float | None]:
    """What a load asks for in the unit of its window, and what its think time allows at most.

    None where nobody knows it before.
    """
    figure, asked = figure_of(load, window), load.load
    per_s: float | None = None
    if isinstance(load, spec.MailWorkload):
        users = float((given["load"] or {}).get("users") or 1)
        per_s = users * sum(task.per_day for task in load.tasks) / (load.day_h * SECONDS["h"])
    elif figure.counted == "database_io" and isinstance(asked, spec.TargetIopsLoad):
        per_s = asked.target_iops
    elif figure.counted == "transfers":
        per_s = _transfers_per_s(given)
    elif figure.counted == "operations" and isinstance(asked, spec.RateLoad):
        per_s = asked.transactions_per_s
    scale = unit_s(figure, load) / (window.users or 1)
    most = None
    if isinstance(load, spec.StoreWorkload) and isinstance(asked, spec.SessionsLoad):
        per_min = ceiling(asked.sessions, load.think_s, 0.0)
        most = None if per_min is None else per_min / SECONDS["min"] * scale
    return None if per_s is None else per_s * scale, most


def _transfers_per_s(given: Given) -> float | None:
    """The I/O per second that a load on files asks for."""
    stated = {key: value for key, value in (given["load"] or {}).items() if value is not None}
    share = float(stated.get("throughput_percent", 100)) / 100
    if "users" in stated and "iops_per_user" in stated:
        return float(stated["users"]) * float(stated["iops_per_user"]) * share
    return float(stated["target_iops"]) * share if "target_iops" in stated else None
