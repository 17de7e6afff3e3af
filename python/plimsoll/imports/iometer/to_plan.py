"""A configuration of Iometer as plans: one for each test that it would have carried out.

A worker becomes a workload with its depth and access specification on files of its own size, one
for each of its targets. A target that several workers share is one file with one workload for each
of them. In each test every worker has the next specification of its own list, and rests where there
is none or it is `Idle` (`Worker::SetAccess` of the original); each test has its whole cycling
series; of combined cycles targets are the outer and depth the inner one. What the original leaves
to the machine it runs on, the size of a whole disk above all, has to be looked at: the remarks say
where.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from plimsoll.imports.iometer.icf import (
    EXPONENTIAL,
    SECTOR_BYTES,
    AccessSpecification,
    Cycling,
    Icf,
    IcfRead,
    Worker,
    read_icf,
)
from plimsoll.imports.jetstress.report_html import decode
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.safe_xml import read_bytes
from plimsoll.inputs.schema import Given
from plimsoll.workloads.files.patterns import AccessLine

MIB = 1024 * 1024
#: What is used of a target whose size the file does not state.
UNSTATED_MIB = 1024
#: A configuration can ask for thousands of tests; so many plans are made of one.
PLANS_MAX = 1000
#: The specification that every copy of the original has, and that lets a worker rest.
IDLE = "idle"


@dataclass
class IometerPlan:
    """One test of a configuration.

    Attributes:
        name: the specification, with the step of a cycle where there is one.
        text: the plan file.
    """

    name: str
    text: str


@dataclass
class IometerPlans:
    """The tests of a configuration, and what has to be looked at.

    Attributes:
        plans: in the order of the original.
        remarks: what the user has to look at, with lines of the file where there are some.
    """

    plans: list[IometerPlan]
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Step:
    """One test: which workers and how many of their targets take part, and at which depth.

    Attributes:
        at: the place in the list of each worker where its specification stands.
        specifications: the names of these, each once.
    """

    at: int
    specifications: tuple[str, ...]
    workers: int | None = None
    targets: int | None = None
    depth: int | None = None

    def name(self) -> str:
        parts = [
            f"{count} {what}"
            for what, count in (("workers", self.workers), ("targets", self.targets))
            if count
        ]
        parts += [f"depth {self.depth}"] if self.depth else []
        return ", ".join([" and ".join(self.specifications), *parts])


def plans_of_icf(name: str, found: IcfRead, root: str = "/mnt") -> IometerPlans:
    """The plans of a configuration.

    Args:
        name: of the file, for mistakes.
        found: as it was read.
        root: the directory below which targets are mounted here, each by its name.

    Raises:
        InputError: it assigns nothing to anybody, or asks for too much.
    """
    icf = found.icf
    workers = [worker for worker in icf.workers if worker.kind == "DISK" and worker.targets]
    _must_do_something(name, icf, workers)
    remarks = [f"line {warning.line}: {warning.message}" for warning in found.warnings]
    remarks += _remarks(icf, workers)
    steps = list(_steps(icf, workers))
    if len(steps) > PLANS_MAX:
        raise InputError(
            name, [Mistake(0, "", f"asks for {len(steps)} tests", f"{PLANS_MAX} are the most")]
        )
    return IometerPlans(
        [IometerPlan(step.name(), _text(icf, workers, step, root)) for step in steps], remarks
    )


def _must_do_something(name: str, icf: Icf, workers: list[Worker]) -> None:
    mistakes = []
    if not workers:
        mistakes.append(
            Mistake(
                0,
                "",
                "has no disk worker with a target",
                "assign one, or use a specification by itself",
            )
        )
    for worker in workers:
        if not worker.specifications:
            text = f'worker "{worker.name}" has no access specification'
            mistakes.append(Mistake(worker.line_number, "", text, "assign at least one to it"))
        for wanted in worker.specifications:
            if wanted.lower() != IDLE and icf.specification(wanted) is None:
                text = (
                    f'worker "{worker.name}" is given "{wanted}", which is no specification of the '
                    f"file"
                )
                mistakes.append(Mistake(worker.line_number, "", text, "look at the spelling"))
    if not mistakes and not _tests(icf, workers):
        mistakes.append(Mistake(0, "", "lets all workers rest", "assign a specification to one"))
    if mistakes:
        raise InputError(name, mistakes)


def _at(icf: Icf, worker: Worker, at: int) -> AccessSpecification | None:
    """What a worker does in a test; None where it rests."""
    wanted = worker.specifications[at] if at < len(worker.specifications) else IDLE
    return None if wanted.lower() == IDLE else icf.specification(wanted)


def _remarks(icf: Icf, workers: list[Worker]) -> list[str]:
    found = []
    if any(worker.kind != "DISK" for worker in icf.workers):
        found.append("workers on networks are left out: storage is loaded here")
    if any(worker.test_connection_rate for worker in workers):
        found.append(
            "the test connection rate is left out: it opens and closes network connections"
        )
    if any(worker.maximum_sectors == 0 for worker in workers):
        found.append(
            f"the file uses whole disks; {UNSTATED_MIB} MiB of each are used here: change file_mib"
        )
    if any(worker.starting_sector for worker in workers):
        found.append("starting sectors are left out: files begin at their beginning")
    found += _unlike(workers)
    if icf.run_time_s == 0:
        found.append(
            "the file runs until it is stopped; the plan measures for 60 s: change duration_s"
        )
    if len(icf.managers) > 1:
        found.append(
            "the workers of all managers run on this host; `plimsoll combine` puts several hosts "
            "together"
        )
    found.append("paths were made of the names of targets: look at them before running it")
    return found


def _unlike(workers: list[Worker]) -> list[str]:
    """Targets of which workers that share them say different things."""
    sharing: dict[str, list[Worker]] = {}
    for worker in workers:
        for target in worker.targets:
            sharing.setdefault(target.name, []).append(worker)
    found = []
    for name, each in sharing.items():
        sizes = {worker.maximum_sectors for worker in each}
        patterns = {worker.data_pattern for worker in each}
        what = [
            word
            for word, values in (("maximum size", sizes), ("data pattern", patterns))
            if len(values) > 1
        ]
        if what:
            found.append(
                f'workers of "{name}" differ in {" and ".join(what)}; all use the largest size and '
                f"the pattern of the first"
            )
    return found


def _series(cycling: Cycling, most: int) -> list[int]:
    """The values of a cycle up to the most there can be."""
    last = min(cycling.end or most, most) if most else cycling.end or cycling.start
    values, value = [], max(cycling.start, 1)
    while value <= last:
        values.append(value)
        following = value * cycling.step if cycling.how == EXPONENTIAL else value + cycling.step
        if following <= value:
            break
        value = following
    return values or [max(cycling.start, 1)]


def _tests(icf: Icf, workers: list[Worker]) -> list[_Step]:
    """The tests before any cycling, without those in which all workers rest."""
    longest = max(len(worker.specifications) for worker in workers)
    found = []
    for at in range(longest):
        each = [item for worker in workers if (item := _at(icf, worker, at)) is not None]
        if each:
            found.append(_Step(at, tuple(dict.fromkeys(item.name for item in each))))
    return found


def _steps(icf: Icf, workers: list[Worker]) -> Iterator[_Step]:
    """The tests in the order of the original.

    Specifications outside, then targets or workers, then depth.
    """
    targets = max(len(worker.targets) for worker in workers)
    all_targets = _series(icf.disk_cycling, targets)
    all_workers = _series(icf.worker_cycling, len(workers))
    depths = _series(icf.depth_cycling, 0)
    for step in _tests(icf, workers):
        match icf.test_type:
            case "CYCLE_TARGETS" | "INCREMENT_TARGETS_PARALLEL" | "INCREMENT_TARGETS_SERIAL":
                yield from (replace(step, targets=count) for count in all_targets)
            case "CYCLE_WORKERS":
                yield from (replace(step, workers=count) for count in all_workers)
            case "CYCLE_WORKERS_AND_TARGETS":
                yield from (
                    replace(step, targets=count, workers=more)
                    for count in all_targets
                    for more in all_workers
                )
            case "CYCLE_OUTSTANDING_IOS":
                yield from (replace(step, depth=depth) for depth in depths)
            case "CYCLE_OUTSTANDING_IOS_AND_TARGETS":
                yield from (
                    replace(step, targets=count, depth=depth)
                    for count in all_targets
                    for depth in depths
                )
            case _:
                yield step


def _text(icf: Icf, workers: list[Worker], step: _Step, root: str) -> str:
    """A plan file of one test."""
    busy = [
        (worker, item) for worker in workers if (item := _at(icf, worker, step.at)) is not None
    ][: step.workers]
    paths = _path_names(workers)
    instances: dict[str, Given] = {}
    workloads: list[Given] = []
    lines: list[list[AccessLine]] = []
    for number, (worker, specification) in enumerate(busy, 1):
        targets = worker.targets[: step.targets]
        names = []
        for target in targets:
            path_name = paths[target.name]
            known = instances.setdefault(
                path_name, {"file_mib": 1, "data_pattern": worker.data_pattern}
            )
            known["file_mib"] = max(known["file_mib"], _size_mib(worker))
            names.append(path_name)
        depth = step.depth or worker.outstanding
        workloads.append(
            {
                "name": f"worker {number}",
                "instances": list(dict.fromkeys(names)),
                "outstanding": depth,
            }
        )
        lines.append(specification.lines)
    head = [
        "# Made from a configuration of Iometer by `plimsoll import`; look at the paths before "
        "running it.",
        'kind = "plan"',
        "schema_version = 1",
        f"name = {_value(_name(step))}",
        f"description = "
        f"{_value(': '.join(part for part in (icf.description, step.name()) if part))}",
        *(
            [
                f"seed = {worker.fixed_seed}"
                for worker, _ in busy[:1]
                if worker.fixed_seed is not None
            ]
        ),
    ]
    for path_name in instances:
        head += [
            "",
            "[[target]]",
            f"name = {_value(path_name)}",
            f"path = {_value(f'{root}/{path_name}')}",
        ]
    for path_name, instance in instances.items():
        head += [
            "",
            "[[instance]]",
            f"name = {_value(path_name)}",
            f"target = {_value(path_name)}",
            'backend = "files"',
        ]
        head += [f"{key} = {_value(value)}" for key, value in instance.items()]
    for workload, access in zip(workloads, lines, strict=True):
        head += [
            "",
            "[[workload]]",
            *(f"{key} = {_value(value)}" for key, value in workload.items()),
        ]
        head += ["access = [", *(f"    {_inline(line)}," for line in access), "]"]
    return "\n".join([*head, *_phases(icf, [item["name"] for item in workloads])]) + "\n"


def _phases(icf: Icf, names: list[str]) -> list[str]:
    phases: list[Given] = [{"kind": "prepare"}]
    if icf.ramp_up_s:
        phases.append(
            {"name": "ramp up", "kind": "soak", "duration_s": icf.ramp_up_s, "workloads": names}
        )
    phases += [
        {"kind": "measure", "duration_s": icf.run_time_s or 60, "workloads": names},
        {"kind": "stop"},
    ]
    lines: list[str] = []
    for phase in phases:
        lines += ["", "[[phase]]"]
        lines += [f"{key} = {_value(value)}" for key, value in phase.items()]
    return lines


def _size_mib(worker: Worker) -> int:
    if not worker.maximum_sectors:
        return UNSTATED_MIB
    return max(1, -(-worker.maximum_sectors * SECTOR_BYTES // MIB))


def _path_names(workers: list[Worker]) -> dict[str, str]:
    """The directory of each target; targets that are called differently have different ones."""
    found: dict[str, str] = {}
    for target in (target for worker in workers for target in worker.targets):
        if target.name not in found:
            wanted = _path_name(target.name)
            further = (f"{wanted}-{number}" for number in count(2))
            found[target.name] = next(
                name for name in chain([wanted], further) if name not in found.values()
            )
    return found


def _path_name(target: str) -> str:
    """A directory for a target: `E:` becomes `E`, `PHYSICALDRIVE:1` `PHYSICALDRIVE-1`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", target).strip("-.") or "target"


def _name(step: _Step) -> str:
    return re.sub(r"[^A-Za-z0-9._ -]+", " ", step.name()).strip()[:64] or "iometer"


def _inline(line: AccessLine) -> str:
    usual = {"delay_ms": 0, "burst": 1, "align_bytes": 0, "reply_bytes": 0}
    stated = {
        key: value for key, value in asdict(line).items() if key not in usual or value != usual[key]
    }
    return "{ " + ", ".join(f"{key} = {value}" for key, value in stated.items()) + " }"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def access_of_icf(path: Path, wanted: str | None = None) -> Given:
    """The access specification of a configuration, for a workload on other targets than its own.

    Args:
        path: the configuration.
        wanted: the name of the specification; the one that is assigned, or the only one there is,
            if left out.

    Returns:
        The keys of a workload: `access`, and where all workers that have it agree, `outstanding`
        with the most `workers` that share a target: what one target of the configuration sees.

    Raises:
        InputError: it cannot be read, or it is not clear which one is meant.
    """
    icf = read_icf(str(path), decode(str(path), read_bytes(path))).icf
    assigned = list(
        dict.fromkeys(
            name for worker in icf.workers for name in worker.specifications if name.lower() != IDLE
        )
    )
    names = [wanted] if wanted else assigned or [item.name for item in icf.specifications]
    found = icf.specification(names[0]) if len(names) == 1 else None
    if found is None:
        known = ", ".join(f'"{item.name}"' for item in icf.specifications) or "none"
        problem = (
            f'has no specification "{wanted}"' if wanted else f"assigns {len(names)} specifications"
        )
        raise InputError(str(path), [Mistake(0, "", problem, f"name one of {known}")])
    having = [
        (manager.number, worker)
        for manager in icf.managers
        for worker in manager.workers
        if any(icf.specification(name) is found for name in worker.specifications)
    ]
    depths = {worker.outstanding for _, worker in having}
    sharing = Counter(
        (number, target.name) for number, worker in having for target in worker.targets
    )
    depth = (
        {"outstanding": depths.pop(), "workers": max(sharing.values(), default=1)}
        if len(depths) == 1
        else {}
    )
    return {"access": [asdict(line) for line in found.lines], **depth}
