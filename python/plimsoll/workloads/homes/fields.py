"""What a plan says of home folders.

`backend = "home_folders"` of an instance, and the keys of a workload that works in them.

    [[instance]]
    name = "homes"
    backend = "home_folders"

    [[workload]]
    name = "users"
    load = { users = 200 }

Every user has a home and goes through so many scenarios in an hour, evenly spaced. A search looks
for the most users; homes are made for as many as `homes` says, and more users share them.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.documents.home_scenarios import HomeFileSize, HomeScenario
from plimsoll.documents.plan import HomesAsked
from plimsoll.inputs.schema import Collector, Field, Given, Number
from plimsoll.workloads.homes.scenarios import KIB, home_folders, mean_bytes
from plimsoll.workloads.window_figures import USUAL_S, WindowFigure

BACKENDS = ("home_folders",)
OPERATIONS = ("home_scenario",)
#: The directory of all homes, in that of their instance.
TREE = "homes"
SECONDS_PER_H = 3600
HOMES_MAX = 1_000_000

WINDOW_S = USUAL_S
WINDOWS = {
    "scenarios_per_s": WindowFigure("scenarios per second", "of all users of home folders"),
    "scenarios_per_user_per_h": WindowFigure(
        "scenarios per user and hour", "of one user of home folders", per="h", of_user=True
    ),
}

INSTANCE_FIELDS = {
    "homes": Field(
        Number(1, HOMES_MAX, whole=True),
        meaning="home folders: how many; as many as users work in them if left out",
    ),
    "folders_per_home": Field(
        Number(1, 1000, whole=True), meaning="of home folders: folders in each at first"
    ),
    "files_per_folder": Field(
        Number(1, 1000, whole=True), meaning="of home folders: files in each folder at first"
    ),
}

WORKLOAD_FIELDS = {
    "scenarios_per_h": Field(
        Number(0.01, 1_000_000),
        meaning="what a user of home folders goes through in an hour; 60 if left out",
    ),
    "response_ms_p95_max": Field(
        Number(0.001, 86_400_000),
        meaning="users of home folders are too many where the 95th percentile of response times "
        "is above it; 1000 if left out",
    ),
}

#: What may be said of a load on home folders.
LOAD_KEYS = (
    "users",
    "sessions",
    "search",
    "spacing",
    "step_s",
    "settle_s",
    "tolerance_percent",
    "throughput_percent",
)
_ONLY_SEARCH = ("step_s", "settle_s", "tolerance_percent", "throughput_percent")
_INSTANCE_KEYS = ("name", "target", "backend", "weight", "edition", *INSTANCE_FIELDS)


def instance_mistakes(given: Given, index: int, collector: Collector) -> None:
    """Report what is stated of an instance and means nothing to home folders."""
    for key, value in given.items():
        if value is not None and key not in _INSTANCE_KEYS:
            collector.add(("instance", index, key), "means nothing for home folders", "remove it")


def instance(
    common: Given,
    given: Given,
    loads: list[Given],
    seed: int,
    index: int,
    source: str | None,
    collector: Collector,
) -> spec.HomesInstance:
    """An instance of home folders.

    Args:
        common: what instances of all families have.
        given: the checked table, absent keys None.
        loads: the workloads that work in them.
        seed: of the plan.
        index: its position in the plan.
        source: where databases come from, as the plan says it.
        collector: takes the mistakes.
    """
    if source in ("existing", "restored"):
        collector.add(
            ("source",),
            f"is {source}, but home folders are made anew by every run",
            "leave it out",
        )
    known = home_folders()
    users = [int((item["load"] or {}).get("users") or 0) for item in loads]
    homes = int(given["homes"] or max(users, default=0) or settings.HOMES["homes"])
    folders = int(given["folders_per_home"] or known.folders)
    files_per_folder = int(given["files_per_folder"] or known.files_per_folder)
    size = int(homes * folders * files_per_folder * mean_bytes(known.sizes))
    return spec.HomesInstance(
        **common,
        databases=[
            spec.FileSpec(
                file_name=TREE,
                size_bytes=size,
                seed=seed * 1_000_003 + index * 1009 + 1,
                existing_records=None,
            )
        ],
        homes=homes,
        folders=folders,
        files_per_folder=files_per_folder,
        sizes=[HomeFileSize(bytes=item.kib * KIB, weight=item.weight) for item in known.sizes],
        piece_bytes=known.piece_kib * KIB,
    )


def workload(
    common: Given, given: Given, homes: int, index: int, collector: Collector
) -> tuple[spec.HomesWorkload, HomesAsked]:
    """A workload on home folders, and what its verdict and report need to know of it.

    Args:
        common: its name and its instances.
        given: the checked table, absent keys None.
        homes: how many homes it works in.
        index: its position in the plan.
        collector: takes the mistakes.
    """
    known = home_folders()
    path = ("workload", index, "load")
    pace = float(given["scenarios_per_h"] or known.scenarios_per_h)
    most_ms = float(given["response_ms_p95_max"] or known.response_ms_p95)
    stated = {key: value for key, value in (given["load"] or {}).items() if value is not None}
    load = _load(stated, pace, most_ms, homes, path, collector)
    completed = spec.HomesWorkload(
        name=common["name"],
        instances=common["instances"],
        family="home_folders",
        load=load,
        scenarios=[
            HomeScenario(name=item.name, weight=item.weight, steps=item.steps)
            for item in known.scenarios
        ],
    )
    asked = HomesAsked(
        users=stated.get("users"),
        homes=homes,
        scenarios_per_h=pace,
        response_ms_p95_max=most_ms,
        overload_percent=known.overload_percent,
    )
    return completed, asked


def _load(
    stated: Given,
    pace: float,
    most_ms: float,
    homes: int,
    path: tuple[str | int, ...],
    collector: Collector,
) -> spec.LoadSpec:
    for key in stated:
        if key not in LOAD_KEYS:
            collector.add(
                (*path, key),
                "means nothing for home folders",
                f"write {', '.join(LOAD_KEYS[:3])}",
            )
        elif key in _ONLY_SEARCH and "search" not in stated:
            collector.add((*path, key), "means nothing without a search", 'write search = "max"')
    ways: list[str] = [key for key in ("users", "search") if key in stated]
    ways += ["sessions"] if "sessions" in stated and "search" not in stated else []
    if len(ways) > 1:
        collector.add(path, f"says {' and '.join(ways)} of what may be loaded", "write one of them")
    spacing = stated.get("spacing") or settings.HOMES["spacing"]
    if stated.get("search") == "max_sessions":
        collector.add(
            (*path, "search"),
            "looks for sessions, and home folders are loaded by users who keep their own pace",
            'write search = "max"',
        )
    if "search" in stated:
        return spec.SearchLoad(
            search="max",
            sessions=int(stated.get("sessions") or min(homes, settings.HOMES["sessions"])),
            shared=True,
            spacing=spacing,
            sessions_max=homes,
            **{
                key: float(stated.get(key, settings.SEARCH[key]))
                for key in ("step_s", "settle_s", "tolerance_percent")
            },
            criteria=[
                spec.Criterion(
                    name="home_response", metric=OPERATIONS[0], statistic="p95", limit=most_ms
                )
            ],
            throughput_percent=float(stated.get("throughput_percent", 100)),
            shortfall_percent=100 - home_folders().overload_percent,
        )
    if "users" in stated:
        users = int(stated["users"])
        return spec.RateLoad(
            transactions_per_s=users * pace / SECONDS_PER_H,
            spacing=spacing,
            sessions_max=users,
        )
    return spec.SessionsLoad(sessions=int(stated.get("sessions") or 1), shared=True)
