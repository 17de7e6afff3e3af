"""A configuration of Iometer as plans: one for each test that it would have carried out.

A worker becomes a workload with its depth and access specification on files of its own size, one
for each of its targets. A target that several workers share is one file with one workload for each
of them. Specifications run one after the other, each with its whole cycling series; of combined
cycles targets are the outer and depth the inner one. What the original leaves to the machine it
runs on, the size of a whole disk above all, has to be looked at: the remarks say where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from plimsoll.imports.iometer.icf import (
    EXPONENTIAL,
    SECTOR_BYTES,
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
    """One test: which workers and how many of their targets take part, and at which depth."""

    specification: str
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
        return ", ".join([self.specification, *parts])


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
            if icf.specification(wanted) is None:
                text = (
                    f'worker "{worker.name}" is given "{wanted}", which is no specification of the '
                    f"file"
                )
                mistakes.append(Mistake(worker.line_number, "", text, "look at the spelling"))
    if mistakes:
        raise InputError(name, mistakes)


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


def _steps(icf: Icf, workers: list[Worker]) -> Iterator[_Step]:
    """The tests in the order of the original.

    Specifications outside, then targets or workers, then depth.
    """
    specifications = list(
        dict.fromkeys(name for worker in workers for name in worker.specifications)
    )
    targets = max(len(worker.targets) for worker in workers)
    all_targets = _series(icf.disk_cycling, targets)
    all_workers = _series(icf.worker_cycling, len(workers))
    depths = _series(icf.depth_cycling, 0)
    for name in specifications:
        step = _Step(name)
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
    taking_part = [worker for worker in workers if step.specification in worker.specifications][
        : step.workers
    ]
    specification = icf.specification(step.specification)
    lines = list(specification.lines) if specification else []
    instances: dict[str, Given] = {}
    workloads: list[Given] = []
    for number, worker in enumerate(taking_part, 1):
        targets = worker.targets[: step.targets]
        names = []
        for target in targets:
            path_name = _path_name(target.name)
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
                for worker in taking_part[:1]
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
    for workload in workloads:
        head += [
            "",
            "[[workload]]",
            *(f"{key} = {_value(value)}" for key, value in workload.items()),
        ]
        head += ["access = [", *(f"    {_inline(line)}," for line in lines), "]"]
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
        The keys of a workload: `access`, and `outstanding` where all workers that have it agree.

    Raises:
        InputError: it cannot be read, or it is not clear which one is meant.
    """
    icf = read_icf(str(path), decode(str(path), read_bytes(path))).icf
    assigned = list(dict.fromkeys(name for worker in icf.workers for name in worker.specifications))
    names = [wanted] if wanted else assigned or [item.name for item in icf.specifications]
    found = icf.specification(names[0]) if len(names) == 1 else None
    if found is None:
        known = ", ".join(f'"{item.name}"' for item in icf.specifications) or "none"
        problem = (
            f'has no specification "{wanted}"' if wanted else f"assigns {len(names)} specifications"
        )
        raise InputError(str(path), [Mistake(0, "", problem, f"name one of {known}")])
    depths = {worker.outstanding for worker in icf.workers if found.name in worker.specifications}
    depth = {"outstanding": depths.pop()} if len(depths) == 1 else {}
    return {"access": [asdict(line) for line in found.lines], **depth}
