"""How many threads carry the instances of a run, and which loads cannot be shared out between
them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from plimsoll.documents.run_spec import InstanceSpec, RunSpec, SearchLoad, SessionsLoad
from plimsoll.inputs.schema import Collector

#: More are a mistake, not a plan.
THREADS_MAX = 1024


def thread_count(stated: int | str, instances: int) -> int | None:
    """The threads of a run spec; None for one, which needs no word.

    Args:
        stated: a count, or "auto" for one of each instance and at most the processors less one.
        instances: how many instances the plan has.

    >>> thread_count(4, 8), thread_count(1, 8), thread_count("auto", 1)
    (4, None, None)
    """
    if stated == "auto":
        stated = min(instances, max(1, len(os.sched_getaffinity(0)) - 1))
    count = int(stated)
    return count if count > 1 else None


def threads_of(instances: Sequence[InstanceSpec], count: int) -> list[int]:
    """The thread of each instance, counted from 0.

    In the order of the plan, each goes to the one with the fewest databases.

    Rust places them by the same rule (`threads_of_instances`).
    """
    databases, places = [0] * count, []
    for instance in instances:
        thread = databases.index(min(databases))
        databases[thread] += len(instance.databases)
        places.append(thread)
    return places


def threads_stated(given: int | str) -> int | str:
    """What a command was given: "auto" or a count.

    Raises:
        ValueError: neither.

    >>> threads_stated("4"), threads_stated("auto")
    (4, 'auto')
    """
    if given == "auto":
        return given
    if not str(given).isdecimal() or not 1 <= int(given) <= THREADS_MAX:
        raise ValueError(f"is {given}; write auto, or a whole number from 1 to {THREADS_MAX}")
    return int(given)


def unshared(run: RunSpec) -> dict[int, str]:
    """Pools of sessions that have fewer sessions than threads, by the position of their workload:
    each thread needs one of its own.
    """
    places, found = threads_of(run.instances, run.thread_count), {}
    for index, workload in enumerate(run.workloads):
        load = workload.load
        if not isinstance(load, SessionsLoad | SearchLoad) or not load.shared:
            continue
        named = zip(places, run.instances, strict=True)
        threads = {thread for thread, instance in named if instance.name in workload.instances}
        if load.sessions < len(threads):
            found[index] = (
                f"workload {workload.name} shares {load.sessions} sessions between instances on "
                f"{len(threads)} threads; "
                f"take at least {len(threads)} sessions, or fewer threads"
            )
    return found


def mistakes_of_threads(run: RunSpec, collector: Collector) -> None:
    """Note what `unshared` finds, each at its workload."""
    for index, sentence in unshared(run).items():
        what, hint = sentence.removeprefix(f"workload {run.workloads[index].name} ").split("; ")
        collector.add(("workload", index), what, hint)
