"""Which runs are added up: read from their folders, named after their hosts, and everything that
forbids it said at once.

A host is called as the plan calls it, by the name of its machine where the plan says nothing, or as
the user writes it: `NAME=DIR`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.compare.differences import is_imported, is_modelled
from plimsoll.compare.sides import ComparisonError, RunRead, read_run
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict
from plimsoll.errors import RefusedError
from plimsoll.files import folder
from plimsoll.multihost.overlap import Span, window_of
from plimsoll.pages.tables import size_shown
from plimsoll.plan.load import described_plain

#: What a plan calls its only host when it says nothing.
UNNAMED = "local"


class CombineError(RefusedError):
    """Runs that cannot be added up; one line for each reason."""


@dataclass(frozen=True)
class HostRun:
    """What one host did.

    Attributes:
        name: what the host is called.
        run: its run.
        window: when it measured, in UTC.
        is_named: whether the user gave the name.
    """

    name: str
    run: RunRead
    window: Span
    is_named: bool = False

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.run.path

    @property
    def summary(self) -> Summary:
        """The figures of the run; imported ones are refused before."""
        found = self.run.summary
        assert isinstance(found, Summary), "imported runs are refused"
        return found

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run; runs without one are refused before."""
        assert self.run.verdict is not None, "runs without a verdict are refused"
        return self.run.verdict

    @property
    def machine(self) -> str | None:
        """What the machine calls itself."""
        found = self.run.environment.get("machine", {}).get("host_name")
        return str(found) if found else None


def parse_host_argument(text: str) -> tuple[str | None, Path]:
    """A folder, or a host's name with its folder.

    A folder whose own name has an equals sign is a folder.

    >>> parse_host_argument("runs/a"), parse_host_argument("alpha=runs/a")
    ((None, PosixPath('runs/a')), ('alpha', PosixPath('runs/a')))
    """
    name, equals, rest = text.partition("=")
    if equals and name and "/" not in name and not Path(text).exists():
        return name, Path(rest)
    return None, Path(text)


def read_hosts(
    arguments: Sequence[tuple[str | None, Path]], *, different_plans: bool = False
) -> list[HostRun]:
    """Read every run.

    Args:
        arguments: names, where the user gave some, and folders.
        different_plans: whether runs of different pages, editions, tests or limits may be added up.

    Raises:
        CombineError: every reason why these runs cannot be added up.
    """
    problems: list[str] = []
    found = []
    for name, path in arguments:
        try:
            found.append(_host(name, path))
        except CombineError as error:
            problems += error.problems
    if problems:
        raise CombineError(problems)
    if len(found) < 2:
        raise CombineError(["one host is no several; name the run folders of two hosts or more"])
    problems = [*_duplicates(found), *_incomplete_plan(found)]
    if not different_plans:
        problems += _unlike(found)
    if problems:
        raise CombineError(problems)
    return found


def _host(name: str | None, path: Path) -> HostRun:
    if (path / folder.HOSTS).exists():
        raise CombineError([f"{path} is combined already; name the runs of its hosts"])
    if (path / folder.REPEATS).exists():
        raise CombineError(
            [f"{path} holds a repeated run; name one of the runs in it, such as {path / 'run-1'}"]
        )
    try:
        run = read_run(path)
    except ComparisonError as error:
        raise CombineError(error.problems) from error
    problems = []
    if is_modelled(run):
        problems.append(
            f"{path} is MODELLED: its array had no other host, so there is nothing to add up"
        )
    if is_imported(run):
        problems.append(
            f"{path} was imported: a report of another tool does not tell what happened when"
        )
    missing = [
        item
        for item in (folder.SAMPLES, folder.HISTOGRAMS, folder.VERDICT)
        if not (path / item).exists()
    ]
    if missing and not problems:
        problems.append(
            f"{path} lacks {', '.join(missing)}; `plimsoll report {path}` says what can still be "
            f"done"
        )
    window = window_of(run.outcome)
    if window is None and not problems:
        fault = run.outcome.get("error")
        why = f" ({fault['text']})" if fault else "; expected a run with a phase of kind measure"
        problems.append(f"{path}: nothing was measured under load{why}")
    if problems or window is None:
        raise CombineError(problems)
    return HostRun(name or _own_name(run), run, window, name is not None)


def _own_name(run: RunRead) -> str:
    hosts = run.plan["run"].get("hosts") or [{"name": UNNAMED}]
    planned = str(hosts[0]["name"])
    machine = run.environment.get("machine", {}).get("host_name")
    return str(machine) if planned == UNNAMED and machine else planned


def _duplicates(hosts: Sequence[HostRun]) -> list[str]:
    """The same run or the same host twice: it would be counted twice."""
    problems = []
    for index, host in enumerate(hosts):
        for other in hosts[:index]:
            if _is_same_run(host, other):
                problems.append(
                    f"{other.path} and {host.path} are the same run; leave one of them out"
                )
            elif host.name == other.name:
                problems.append(
                    f"{other.path} and {host.path} are both of host {host.name}; leave one out, or "
                    f"call them by "
                    f"different names: NAME={host.path}"
                )
            elif (
                host.machine
                and host.machine == other.machine
                and not (host.is_named and other.is_named)
            ):
                problems.append(
                    f"{other.path} and {host.path} were both carried out on the machine "
                    f"{host.machine}; one machine is "
                    "one host. If they are two all the same, name both: NAME=DIR"
                )
    return problems


def _is_same_run(host: HostRun, other: HostRun) -> bool:
    first, second = (item.run.outcome["anchors"][0] for item in (host, other))
    return host.path.resolve() == other.path.resolve() or (
        first == second and host.machine == other.machine
    )


def _incomplete_plan(hosts: Sequence[HostRun]) -> list[str]:
    """Hosts of a common plan that are missing, and runs of another plan."""
    planned = [
        tuple((host.run.plan["judgement"].get("hosts") or {}).get("all", ())) for host in hosts
    ]
    if len(set(planned)) > 1:
        shown = "; ".join(
            f"{host.path}: {', '.join(names) or 'one host'}"
            for host, names in zip(hosts, planned, strict=True)
        )
        return [f"the runs are not of one plan, because their plans name different hosts ({shown})"]
    present = [
        (host.run.plan["run"].get("hosts") or [{"name": UNNAMED}])[0]["name"] for host in hosts
    ]
    twice = [name for name, count in Counter(present).items() if planned[0] and count > 1]
    missing = [name for name in planned[0] if name not in present]
    return [
        *(
            f"host {name} of the plan is there {present.count(name)} times; leave all but one out"
            for name in twice
        ),
        *(f"host {name} of the plan is missing; add the folder of its run" for name in missing),
    ]


def _unlike(hosts: Sequence[HostRun]) -> list[str]:
    aspects: list[tuple[str, Callable[[RunRead], str]]] = [
        ("page sizes", lambda run: " and ".join(map(size_shown, sorted(_each(run, "page_bytes"))))),
        (
            "editions",
            lambda run: " and ".join(sorted(set(run.plan["judgement"].get("editions") or []))),
        ),
        ("kinds of test", lambda run: str(run.plan["judgement"].get("test"))),
        ("limit sets", lambda run: str(run.plan["judgement"].get("limits"))),
    ]
    problems = []
    for words, read in aspects:
        values = [read(host.run) for host in hosts]
        if len(set(values)) > 1:
            shown = ", ".join(
                f"{host.name}: {value}" for host, value in zip(hosts, values, strict=True)
            )
            problems.append(
                f"the hosts had different {words} ({shown}), so their figures do not add up to one "
                f"of anything; "
                "run one plan on all, or say --different-plans"
            )
    return problems


def _each(run: RunRead, key: str) -> set[Any]:
    return {item[key] for item in run.plan["run"]["instances"]}


def remarks(hosts: Sequence[HostRun]) -> list[str]:
    """What a reader must know of these hosts, in sentences."""
    return [*_late(hosts), *_same_machine(hosts), *_same_content(hosts), *_different_loads(hosts)]


def _late(hosts: Sequence[HostRun]) -> list[str]:
    """Hosts that were not ready at the moment they were to start."""
    return [
        f"{host.name}: {event['text']}"
        for host in hosts
        for event in folder.read_events(host.path)
        if event.get("kind") == "started_late"
    ]


def _same_machine(hosts: Sequence[HostRun]) -> list[str]:
    counted = Counter(host.machine for host in hosts if host.machine)
    return [
        f"{' and '.join(host.name for host in hosts if host.machine == machine)} are one machine, "
        f"{machine}: they shared "
        "its processors and its path to the storage"
        for machine, count in counted.items()
        if count > 1
    ]


def _same_content(hosts: Sequence[HostRun]) -> list[str]:
    """Databases made from one seed are copies of each other, which storage that deduplicates keeps
    once.
    """
    holders: dict[tuple[Any, ...], list[str]] = {}
    for host in hosts:
        for instance in host.run.plan["run"]["instances"]:
            for database in instance["databases"]:
                key = (database["seed"], instance["page_bytes"], database["record_bytes"])
                holders.setdefault(key, []).append(host.name)
    groups = list(dict.fromkeys(tuple(names) for names in holders.values() if len(set(names)) > 1))
    return [
        f"databases of {' and '.join(dict.fromkeys(names))} were made from the same seed, so they "
        f"hold the same records: "
        "storage that deduplicates looks better than it is; use one plan with [[host]], or another "
        "`seed` on each"
        for names in groups
    ]


def _different_loads(hosts: Sequence[HostRun]) -> list[str]:
    loads = [
        "; ".join(described_plain(item["load"]) for item in host.run.plan["run"]["workloads"])
        for host in hosts
    ]
    versions = [str(host.run.environment.get("plimsoll")) for host in hosts]
    found = []
    for words, values in (("loads", loads), ("versions of Plimsoll", versions)):
        if len(set(values)) > 1:
            shown = ", ".join(
                f"{host.name}: {value}" for host, value in zip(hosts, values, strict=True)
            )
            found.append(f"the hosts had different {words} ({shown})")
    return found
