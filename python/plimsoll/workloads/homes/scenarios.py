"""What users of home folders do: the shipped scenarios, and the operations that they make.

The figures and where each comes from stand in `data/home_folders.toml`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from plimsoll.documents.home_scenarios import ScenarioName, StepName

KIB = 1024
NAME = "home-folders"
#: What each step counts as; `crates/plimsoll-workload/src/homes/home.rs` says the same.
_ONE: dict[str, str] = {
    "list_home": "query_directory",
    "list_folder": "query_directory",
    "stat_folder": "query_info",
    "stat_file": "query_info",
    "stat_new": "query_info",
    "probe_lock": "create",
    "probe_new": "create",
    "open_file": "create",
    "create_new": "create",
    "close_file": "close",
    "close_new": "close",
    "read_head": "read",
    "sync_new": "other",
    "replace_file": "other",
    "delete_file": "other",
    "make_folder": "other",
    "remove_folder": "other",
}


@dataclass(frozen=True)
class Scenario:
    """What a user does, how often relative to the others, and in which steps."""

    name: ScenarioName
    weight: float
    steps: tuple[StepName, ...]
    source: str


@dataclass(frozen=True)
class Size:
    """A length of files, and how often it is relative to the others."""

    kib: int
    weight: float


@dataclass(frozen=True)
class HomeFolders:
    """The shipped scenarios, and what lies in the folders.

    Attributes:
        scenarios: what users do.
        sizes: how long files are.
        folders: folders of a home at first.
        files_per_folder: files of each of these at first.
        piece_kib: the longest read or write.
        scenarios_per_h: what a user goes through in an hour.
        overload_percent: less than this of what was planned is overload.
        response_ms_p95: what the 95th percentile of response times may be.
        mix: the published operations, in percent.
        mix_source: where these come from.
    """

    scenarios: tuple[Scenario, ...]
    sizes: tuple[Size, ...]
    folders: int
    files_per_folder: int
    piece_kib: int
    scenarios_per_h: float
    overload_percent: float
    response_ms_p95: float
    mix: dict[str, float]
    mix_source: str


@cache
def home_folders() -> HomeFolders:
    """The shipped data."""
    content = tomllib.loads(
        files("plimsoll.data").joinpath("home_folders.toml").read_text(encoding="utf-8")
    )
    pace, home, mix = content["pace"], content["home"], content["mix"]
    return HomeFolders(
        scenarios=tuple(
            Scenario(row["name"], float(row["weight"]), tuple(row["steps"]), row["source"])
            for row in content["scenario"]
        ),
        sizes=tuple(Size(int(row["kib"]), float(row["weight"])) for row in content["size"]),
        folders=int(home["folders"]["value"]),
        files_per_folder=int(home["files_per_folder"]["value"]),
        piece_kib=int(home["piece_kib"]["value"]),
        scenarios_per_h=float(pace["scenarios_per_h"]["value"]),
        overload_percent=float(pace["overload_percent"]["value"]),
        response_ms_p95=float(pace["response_ms_p95"]["value"]),
        mix={name: float(value) for name, value in mix.items() if name not in ("basis", "source")},
        mix_source=str(mix["source"]),
    )


def mean_bytes(sizes: Sequence[Size]) -> float:
    """The mean length of a file.

    >>> mean_bytes([Size(4, 1), Size(8, 1)])
    6144.0
    """
    return sum(size.kib * KIB * size.weight for size in sizes) / sum(size.weight for size in sizes)


def operations(homes: HomeFolders) -> dict[str, float]:
    """How often each operation is made, in percent of the six that are published.

    For homes as they are made. `other` stands beside the six: 100 and it are all operations.
    """
    weights = sum(size.weight for size in homes.sizes)
    pieces = sum(size.weight * math.ceil(size.kib / homes.piece_kib) for size in homes.sizes)
    several = {
        "read_file": ("read", pieces / weights),
        "write_new": ("write", pieces / weights),
        "list_tree": ("query_directory", 1 + homes.folders),
    }
    counted: dict[str, float] = {}
    for scenario in homes.scenarios:
        for step in scenario.steps:
            operation, times = several.get(step) or (_ONE[step], 1)
            counted[operation] = counted.get(operation, 0) + scenario.weight * times
    published = sum(counted[name] for name in homes.mix)
    return {name: 100 * count / published for name, count in counted.items()}


def published_operations(homes: HomeFolders) -> dict[str, float]:
    """The published mix, made 100 over what a mounted client can cause."""
    total = sum(homes.mix.values())
    return {name: 100 * value / total for name, value in homes.mix.items()}
