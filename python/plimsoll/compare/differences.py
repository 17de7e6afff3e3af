"""What else differs between the sides: plans, machines, storage.

What forbids a comparison and what a reader must know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plimsoll.compare.sides import RunRead, Side
from plimsoll.compare.withheld import withheld_from
from plimsoll.documents.comparison import SideBySide
from plimsoll.documents.document import DocumentError
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.files.folder import Content
from plimsoll.pages.tables import duration_shown, size_shown
from plimsoll.plan.load import described_plain
from plimsoll.report.published_cells import users_of_loads
from plimsoll.verdict.qualification import through_page_cache

#: Parts of a plan and of an environment that differ between any two runs and mean nothing.
_NEVER_THE_SAME = (
    "collected_utc",
    "free_bytes",
    "memory_available_kib",
    "load_average",
    "destroy_serials",
    "warnings",
    "error_ms_max",
)
_SECONDS_SHARE = 0.1
#: Load generators whose busy shares are this far apart did not press alike.
_BUSY_SHARE = 0.2


#: Tests whose figures have nothing in common with those of a load; every other test is a load on
#: databases.
_OF_THEIR_OWN = ("backup", "recovery", "checksum", "files", "store")


def unlike_tests(sides: Sequence[Side]) -> list[str]:
    """Why sides that measured different things cannot be compared, whatever the user says."""
    kinds = [_measured_what(side.first) for side in sides]
    if len({kind for kind in kinds if kind}) <= 1:
        return []
    shown = ", ".join(
        f"{side.name}: {kind or 'not known'}" for side, kind in zip(sides, kinds, strict=True)
    )
    return [
        f"the runs measured different things ({shown}), which have no figure in common; compare "
        f"runs of one test"
    ]


def _measured_what(run: RunRead) -> str | None:
    test = run.plan.get("judgement", {}).get("test")
    if not isinstance(test, str) or run.stated is not None:
        return None
    return test if test in _OF_THEIR_OWN else "a load on databases"


def unlike_users(sides: Sequence[Side]) -> list[str]:
    """Runs with other numbers of users than the papers that stand next to them, in sentences."""
    found = []
    for stated in (side.first for side in sides if side.first.stated is not None):
        users = stated.plan["judgement"].get("users")
        for side in sides:
            summary = side.first.summary
            if not users or side.first.stated is not None or not isinstance(summary, Summary):
                continue
            try:
                counts = users_of_loads(Plan.from_plain(side.first.plan), summary)
            except DocumentError:
                continue
            told = ", ".join(
                f"{count} users of {load} instead of {users}"
                for load, count in counts
                if count != users
            )
            if told:
                found.append(
                    f"{side.name}: {told}; only figures of each user can be compared with the paper"
                )
    return found


def refusals(sides: Sequence[Side]) -> list[str]:
    """Why these sides must not be compared unless the user says so."""
    pages = [_page_sizes(side.first) for side in sides]
    # Imported reports do not always tell theirs.
    if len({page for page in pages if page}) <= 1:
        return []
    shown = ", ".join(
        f"{side.name}: {' and '.join(map(size_shown, page))}"
        for side, page in zip(sides, pages, strict=True)
    )
    return [
        f"the runs have different page sizes ({shown}), so an I/O of one is not an I/O of the "
        f"other; "
        "compare runs of one page size, or say --across-page-sizes and read every rate with that "
        "in mind"
    ]


def warnings_about(sides: Sequence[Side]) -> list[str]:
    """What a reader must know before the figures mean anything, in sentences."""
    found = [*_unlike(sides), *_generators(sides), *_same_folders(sides)]
    for side in sides:
        found += [f"{side.name}: {text}, so it was left out" for text in side.left_out]
        for run in side.runs:
            found += [f"{side.name}: {text}" for text in _remarks(run)]
    return list(dict.fromkeys(found))


def _remarks(run: RunRead) -> list[str]:
    summary = run.summary
    found = []
    if is_modelled(run):
        found.append("MODELLED: a prediction, nothing was measured")
    if run.stated is not None:
        found.append(run.origin)
    elif is_imported(run):
        found.append("imported from another tool's report: means only, no samples")
    if summary.ending != "complete":
        found.append(f"the run ended {summary.ending}: its figures are those of a part")
    elif not summary.window.complete:
        found.append("the measured time was cut short")
    if isinstance(summary, Summary) and through_page_cache(summary):
        found.append("it was measured through the page cache of its machine")
    cut = [gap for gap in summary.gaps if gap.phase_seconds_before] if summary.gaps else []
    if cut:
        found.append("the run was cut off and went on: its figures are of what came after")
    if run.verdict is not None:
        found += run.verdict.warnings
    found += [
        f"{doubt.text}; its intervals are wider by what that can have changed"
        for doubt, _ in withheld_from(summary)
    ]
    if summary.debug_build:
        found.append("a debug build of Plimsoll, which measures itself")
    return found


def is_modelled(run: RunRead) -> bool:
    """Whether a run was simulated."""
    return bool(run.summary.virtual_time or run.plan["run"].get("modelled"))


def is_imported(run: RunRead) -> bool:
    """Whether a run was made by another tool."""
    return bool(run.summary.imported or run.plan.get("imported"))


def _unlike(sides: Sequence[Side]) -> list[str]:
    """Properties in which the sides differ and which by themselves change the figures."""
    aspects: list[tuple[str, Callable[[RunRead], Any]]] = [
        ("page sizes", lambda run: " and ".join(map(size_shown, _page_sizes(run)))),
        ("kinds of result", lambda run: "modelled" if is_modelled(run) else "measured"),
        ("kinds of test", lambda run: run.plan.get("judgement", {}).get("test")),
        (
            "editions",
            lambda run: " and ".join(
                dict.fromkeys(run.plan.get("judgement", {}).get("editions") or [])
            ),
        ),
        ("backends", lambda run: _each(run, "backend")),
        ("numbers of databases", lambda run: len(run.summary.databases)),
        ("database sizes", lambda run: size_shown(_bytes_of_databases(run))),
        (
            "largest caches",
            lambda run: size_shown(
                sum(item.get("cache_bytes_max") or 0 for item in _instances(run))
            ),
        ),
        (
            "loads",
            lambda run: "; ".join(
                described_plain(item["load"]) for item in run.plan["run"].get("workloads", [])
            ),
        ),
        ("versions of Plimsoll", lambda run: run.environment.get("plimsoll")),
        ("processors", lambda run: _processors(run)),
    ]
    found = []
    for words, read in aspects:
        values = [
            _or_none(read, side.first) if side.first.stated is None else None for side in sides
        ]
        if len({str(value) for value in values if value not in (None, "")}) > 1:
            shown = ", ".join(
                f"{side.name}: {value}" for side, value in zip(sides, values, strict=True)
            )
            found.append(f"different {words} ({shown})")
    seconds = [side.first.summary.window.seconds or 0.0 for side in sides]
    if min(seconds) > 0 and max(seconds) > (1 + _SECONDS_SHARE) * min(seconds):
        shown = ", ".join(
            f"{side.name}: {duration_shown(length)}"
            for side, length in zip(sides, seconds, strict=True)
        )
        found.append(f"different lengths of time measured ({shown})")
    return found


def _processors(run: RunRead) -> str | None:
    """Which processors made the load, and how many of them it had."""
    machine = run.environment["machine"]
    model, count = machine.get("cpu_model"), machine.get("cpus_usable")
    return None if model is None and count is None else f"{count or 'some'} x {model or 'unknown'}"


def _generators(sides: Sequence[Side]) -> list[str]:
    """Load generators that were busy to different degrees, or late.

    Then a difference may be theirs and not the storage's.
    """
    shares = [side.first.summary.generator.executor_busy_mean for side in sides]
    known = [share for share in shares if share is not None]
    if (
        len(known) < len(shares)
        or max(known) - min(known) <= _BUSY_SHARE
        or max(known) < 2 * _BUSY_SHARE
    ):
        return []
    shown = ", ".join(f"{side.name}: {share:.0%}" for side, share in zip(sides, known, strict=True))
    return [
        f"the load generators were busy to different degrees ({shown}): part of a difference may "
        f"be theirs"
    ]


def _or_none(read: Callable[[RunRead], Any], run: RunRead) -> Any:
    """An aspect of a run, None where an imported or older plan does not tell it."""
    try:
        return read(run)
    except (KeyError, TypeError, AttributeError):
        return None


def _same_folders(sides: Sequence[Side]) -> list[str]:
    resolved = [side.path.resolve() for side in sides]
    if len(set(resolved)) == len(resolved):
        return []
    return ["the same folder is on two sides: a run differs from itself in nothing"]


def _instances(run: RunRead) -> list[Content]:
    found: list[Content] = run.plan["run"]["instances"]
    return found


def _each(run: RunRead, key: str) -> str:
    return " and ".join(dict.fromkeys(str(item[key]) for item in _instances(run)))


def _page_sizes(run: RunRead) -> tuple[int, ...]:
    return tuple(sorted({item["page_bytes"] for item in _instances(run) if item.get("page_bytes")}))


def _bytes_of_databases(run: RunRead) -> int:
    return sum(
        int(database["size_bytes"]) for item in _instances(run) for database in item["databases"]
    )


def plan_rows(sides: Sequence[Side]) -> list[SideBySide]:
    """Every value of the plans side by side."""
    return _rows(
        [
            {"judgement": side.first.plan.get("judgement", {}), **side.first.plan["run"]}
            for side in sides
        ]
    )


def environment_rows(sides: Sequence[Side]) -> list[SideBySide]:
    """Every fact of the machines and storages side by side."""
    return _rows([side.first.environment for side in sides])


def _rows(trees: Sequence[Content]) -> list[SideBySide]:
    flat = [_flattened(tree) for tree in trees]
    keys = list(dict.fromkeys(key for leaves in flat for key in leaves))
    rows = []
    for key in keys:
        values = [leaves.get(key) for leaves in flat]
        rows.append(
            SideBySide(key=key, values=values, differs=any(value != values[0] for value in values))
        )
    return rows


def _flattened(tree: Any, prefix: str = "") -> dict[str, object]:
    """Leaves by their path; entries of a list go by their names, short lists of plain values are
    one leaf.
    """
    if isinstance(tree, dict):
        found: dict[str, object] = {}
        for key, value in tree.items():
            if key not in _NEVER_THE_SAME:
                found |= _flattened(value, f"{prefix}.{key}" if prefix else key)
        return found
    if isinstance(tree, list) and any(isinstance(item, (dict, list)) for item in tree):
        found = {}
        for index, item in enumerate(tree, 1):
            name = (item.get("name") or index) if isinstance(item, dict) else index
            found |= _flattened(item, f"{prefix}[{name}]")
        return found
    return {prefix: ", ".join(map(str, tree)) if isinstance(tree, list) else tree}
