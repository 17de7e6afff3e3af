"""The rows that tables 2 and 3 of a tested solution must have, and what of them the runs tell.

Nobody can say of a solution without a queue depth what it was tested with. What the description
states stands; what it leaves out is taken from `environment.json` of the performance run, as far as
Linux shows it there; what nobody says is "not stated". Source of the rows: tables 2 and 3 of the
EMC VNXe3300 report, which follow the template of Microsoft's storage solution program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.documents.environment import Environment, StorageAdapter
from plimsoll.solution.solution import Solution

NOT_STATED = "not stated"
Fill = Callable[[Solution, Environment], str | None]


def _adapters(environment: Environment) -> list[StorageAdapter]:
    """Adapters that lead out of the machine."""
    found = environment.get("adapters") or []
    return [item for item in found if item.get("transport") in ("fc", "iscsi", "sas")]


def _joined(words: Sequence[str | None]) -> str | None:
    """Each word once, in their order."""
    return ", ".join(dict.fromkeys(word for word in words if word)) or None


def _connection(_: Solution, environment: Environment) -> str | None:
    names = {"fc": "Fibre Channel", "iscsi": "iSCSI", "sas": "SAS"}
    return _joined(
        [
            f"{names[str(item['transport'])]} {item.get('speed') or ''}".strip()
            for item in _adapters(environment)
        ]
    )


def _controllers(solution: Solution, _: Environment) -> str | None:
    return str(sum(array["controllers"] for array in solution.content["array"]))


def _adapter_models(_: Solution, environment: Environment) -> str | None:
    return _joined(
        [
            ", firmware ".join(filter(None, (item["model"], item.get("firmware"))))
            for item in _adapters(environment)
            if item.get("model")
        ]
    )


def _adapter_count(_: Solution, environment: Environment) -> str | None:
    return str(len(_adapters(environment))) if _adapters(environment) else None


def _server(_: Solution, environment: Environment) -> str | None:
    machine = environment.get("machine") or {}
    memory_kib, cpus = machine.get("memory_kib"), machine.get("cpus_present")
    return _joined(
        [
            " ".join(str(machine[key]) for key in ("vendor", "product") if machine.get(key)),
            machine.get("cpu_model"),
            f"{cpus} processors" if cpus else None,
            f"{memory_kib / 1024**2:.0f} GiB memory" if memory_kib else None,
        ]
    )


def _disks(solution: Solution, _: Environment) -> str | None:
    storage = solution.content["storage"]
    return str(storage["disks"] + (storage["log_disks"] or 0))


def _drivers(_: Solution, environment: Environment) -> str | None:
    return _joined(
        [
            f"{item['driver']} {item.get('driver_version') or ''}".strip()
            for item in _adapters(environment)
            if item.get("driver")
        ]
    )


def _range(values: Sequence[int | None]) -> str | None:
    known = sorted({value for value in values if value is not None})
    if not known:
        return None
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _target_queue(_: Solution, environment: Environment) -> str | None:
    return _range([item.get("commands_max") for item in _adapters(environment)])


def _disk_queue(_: Solution, environment: Environment) -> str | None:
    adapters = _adapters(environment)
    depths = [item.get(key) for item in adapters for key in ("queue_depth_min", "queue_depth_max")]
    return _range([depth if isinstance(depth, int) else None for depth in depths])


def _multipath(_: Solution, environment: Environment) -> str | None:
    if "multipath" not in environment:
        return None
    devices = environment["multipath"]
    if not devices:
        return "none"
    paths = _range([item.get("paths_count") for item in devices])
    policy = _joined([item.get("policy") for item in devices])
    return f"device mapper, {paths} paths{', ' + policy if policy else ''}"


def _system(_: Solution, environment: Environment) -> str | None:
    system = environment.get("operating_system") or {}
    return _joined([system.get("distribution"), system.get("kernel")])


def _engine(_: Solution, environment: Environment) -> str | None:
    version = environment.get("plimsoll")
    return f"Plimsoll {version}" if version and "imported" not in environment else None


def _unknown(_: Solution, __: Environment) -> str | None:
    return None


HARDWARE: tuple[tuple[str, Fill], ...] = (
    ("Storage connectivity", _connection),
    ("Storage model and firmware", _unknown),
    ("Storage cache", _unknown),
    ("Storage controllers", _controllers),
    ("Storage ports", _unknown),
    ("Most bandwidth to a host", _unknown),
    ("Switch model and firmware", _unknown),
    ("Host adapter model and firmware", _adapter_models),
    ("Host adapters in a host", _adapter_count),
    ("Host server", _server),
    ("Disks tested", _disks),
    ("Most disks in the storage", _unknown),
)
SOFTWARE: tuple[tuple[str, Fill], ...] = (
    ("Host adapter driver", _drivers),
    ("Host adapter queue (commands at once)", _target_queue),
    ("Queue depth of a disk", _disk_queue),
    ("Multipathing", _multipath),
    ("Host operating system", _system),
    ("Database engine", _engine),
    ("Replication", _unknown),
)


def rows_of(
    solution: Solution,
    stated: Sequence[Mapping[str, object]],
    prescribed: Sequence[tuple[str, Fill]],
) -> list[list[Any]]:
    """The prescribed rows in their order, then those that the description has besides.

    Args:
        solution: the description with its runs.
        stated: rows of the description, each with `name` and `value`.
        prescribed: names of rows, and where their values may come from.
    """
    environment = solution.runs["performance"][0].environment
    said = {str(item["name"]).casefold(): str(item["value"]) for item in stated}
    rows: list[list[Any]] = []
    for name, fill in prescribed:
        value = said.pop(name.casefold(), None)
        rows.append([name, value or fill(solution, environment) or NOT_STATED])
    rows += [
        [item["name"], item["value"]] for item in stated if str(item["name"]).casefold() in said
    ]
    return rows
