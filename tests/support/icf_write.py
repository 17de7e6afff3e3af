"""Writing a configuration of Iometer in the form of version 1.1.0, key by key and tab by tab."""

from __future__ import annotations

from plimsoll.imports.iometer.icf import (
    AccessSpecification,
    Cycling,
    Icf,
    Manager,
    Worker,
    has_unnamed_specifications,
)
from plimsoll.workloads.files.patterns import numbers_of

VERSION = "1.1.0"
_RULE_TO = 80


def write_icf(icf: Icf) -> str:
    """The text of a configuration."""
    known = icf.version and not has_unnamed_specifications(icf.version)
    version = f"Version {icf.version if known else VERSION} "
    lines = [version, *_setup(icf), *_display(icf), *_specifications(icf), *_managers(icf), version]
    return "\n".join(lines) + "\n"


def _section(name: str) -> str:
    return f"'{name} ".ljust(_RULE_TO, "=")


def _columns(*values: object) -> str:
    return "\t" + "".join(str(value).ljust(11) for value in values).rstrip()


def _cycling(key: str, cycling: Cycling) -> list[str]:
    if cycling.end is None:
        head, values = ("start", "step", "step type"), (cycling.start, cycling.step, cycling.how)
        return [f"'{key}", "'" + _columns(*head), _columns(*values)]
    numbers = (cycling.start, cycling.end, cycling.step, cycling.how)
    return [f"'{key}", "'" + _columns("start", "end", "step", "step type"), _columns(*numbers)]


def _setup(icf: Icf) -> list[str]:
    minutes, seconds = divmod(icf.run_time_s, 60)
    hours, minutes = divmod(minutes, 60)
    return [
        _section("TEST SETUP"),
        "'Test Description",
        f"\t{icf.description}",
        "'Run Time",
        "'" + _columns("hours", "minutes", "seconds"),
        _columns(hours, minutes, seconds),
        "'Ramp Up Time (s)",
        f"\t{icf.ramp_up_s}",
        "'Default Disk Workers to Spawn",
        f"\t{icf.disk_workers}",
        "'Default Network Workers to Spawn",
        f"\t{icf.network_workers}",
        "'Record Results",
        f"\t{icf.record_results}",
        *_cycling("Worker Cycling", icf.worker_cycling),
        *_cycling("Disk Cycling", icf.disk_cycling),
        *_cycling("Queue Depth Cycling", icf.depth_cycling),
        "'Test Type",
        f"\t{icf.test_type}",
        "'END test setup",
    ]


def _display(icf: Icf) -> list[str]:
    if not icf.display:
        return []
    lines = [_section("RESULTS DISPLAY")]
    for key, values in icf.display:
        lines += [f"'{key}", *(f"\t{value}" for value in values)]
    return [*lines, "'END results display"]


def _specifications(icf: Icf) -> list[str]:
    lines = [_section("ACCESS SPECIFICATIONS")]
    for item in icf.specifications:
        lines += _specification(item)
    return [*lines, "'END access specifications"]


def _specification(item: AccessSpecification) -> list[str]:
    lines = ["'Access specification name,default assignment", f"\t{item.name},{item.default}"]
    lines.append("'size,% of size,% reads,% random,delay,burst,align,reply")
    for line in item.lines:
        lines.append("\t" + ",".join(str(number) for number in numbers_of(line)))
    return lines


def _managers(icf: Icf) -> list[str]:
    lines = [_section("MANAGER LIST")]
    for manager in icf.managers:
        lines += _manager(manager)
    return [*lines, "'END manager list"]


def _manager(manager: Manager) -> list[str]:
    lines = ["'Manager ID, manager name", f"\t{manager.number},{manager.name}"]
    lines += ["'Manager network address", f"\t{manager.address}"]
    for worker in manager.workers:
        lines += _worker(worker)
    return [*lines, "'End manager"]


def _worker(worker: Worker) -> list[str]:
    rate = "ENABLED" if worker.test_connection_rate else "DISABLED"
    seed = "DISABLED,0" if worker.fixed_seed is None else f"ENABLED,{worker.fixed_seed}"
    lines = [
        "'Worker",
        f"\t{worker.name}",
        "'Worker type",
        f"\t{worker.kind}",
        "'Default target settings for worker",
    ]
    lines.append(
        "'Number of outstanding IOs,test connection rate,transactions per connection,use fixed "
        "seed,fixed seed value"
    )
    lines.append(f"\t{worker.outstanding},{rate},{worker.transactions_per_connection},{seed}")
    if worker.kind == "DISK":
        lines.append("'Disk maximum size,starting sector,Data pattern")
        lines.append(f"\t{worker.maximum_sectors},{worker.starting_sector},{worker.data_pattern}")
    lines += ["'End default target settings for worker", "'Assigned access specs"]
    lines += [f"\t{name}" for name in worker.specifications]
    lines += ["'End assigned access specs", "'Target assignments"]
    for target in worker.targets:
        lines += ["'Target", f"\t{target.name}", "'Target type", f"\t{target.kind}", "'End target"]
    return [*lines, "'End target assignments", "'End worker"]
