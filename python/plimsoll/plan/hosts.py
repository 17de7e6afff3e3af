"""A plan for several hosts.

Each of them carries out its own part of it, and `plimsoll combine` adds the parts up.

The plan is one file on all hosts. It names them in `[[host]]`, and each target says to which it is
attached; instances follow their targets, and workloads their instances. What a host does not carry
out is taken out of the completed plan, so that everything after this knows one host. Databases keep
the seeds they have in the whole plan: no two hosts hold the same records.
"""

from __future__ import annotations

import platform

from plimsoll.documents.run_spec import HostSpec, RunSpec, SessionsLoad
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import Collector


def choose_host(names: list[str], wanted: str | None, collector: Collector) -> str | None:
    """Which host of a plan this is.

    The one that was named, or the one that is called like this machine.
    """
    if wanted is not None:
        if wanted in names:
            return wanted
        collector.add(("host",), f'does not name "{wanted}"', nearest_names(wanted, names))
        return None
    if len(names) == 1:
        return names[0]
    machine = platform.node()
    found = next((name for name in names if name in (machine, machine.partition(".")[0])), None)
    if found is None:
        hint = f"say which of them this is: --host {names[0]}; each host runs its own part"
        collector.add(
            ("host",), f"names {len(names)} machines, and none of them is called {machine}", hint
        )
    return found


def check_hosts(run: RunSpec, collector: Collector, *, modelled: bool) -> None:
    """What cannot be when several hosts share a plan."""
    of_instance = _hosts_of_instances(run)
    for index, host in enumerate(run.hosts):
        if host.name not in of_instance.values():
            hint = "give it a target with an instance, or leave it out"
            collector.add(
                ("host", index, "name"),
                f'"{host.name}" has no instance, so nothing would run there',
                hint,
            )
    for index, workload in enumerate(run.workloads):
        spread = {of_instance.get(name) for name in workload.instances}
        is_for_each_database = isinstance(workload.load, SessionsLoad) and not workload.load.shared
        if len(spread) > 1 and not is_for_each_database:
            hint = "a rate is kept by one host: write a workload for each, with its `instances`"
            collector.add(
                ("workload", index, "load"), "is one rate for instances of several hosts", hint
            )
    if modelled:
        collector.add(
            ("host",),
            "names several machines, but the storage is modelled",
            "a modelled array has one host",
        )


def _hosts_of_instances(run: RunSpec) -> dict[str, str]:
    hosts = {target.name: target.host for target in run.targets}
    return {instance.name: hosts.get(instance.target, "") for instance in run.instances}


def part_of(run: RunSpec, host: str) -> RunSpec:
    """The part of a completed `run` that one host carries out."""
    of_instance = _hosts_of_instances(run)
    kept = {name for name, place in of_instance.items() if place == host}
    workloads = [
        workload.replace(instances=[name for name in workload.instances if name in kept])
        for workload in run.workloads
        if kept.intersection(workload.instances)
    ]
    names = {workload.name for workload in workloads}
    return run.replace(
        hosts=[HostSpec(name=host)],
        targets=[target for target in run.targets if target.host == host],
        instances=[instance for instance in run.instances if instance.name in kept],
        workloads=workloads,
        phases=[
            phase.replace(workloads=[name for name in phase.workloads if name in names])
            for phase in run.phases
        ],
    )
