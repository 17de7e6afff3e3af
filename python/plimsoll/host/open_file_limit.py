"""The descriptors that a run needs.

A limit that is too low would show as failing storage, in the middle of a run: it is raised as far
as the user may, and refused before anything is made where that is not enough.
"""

from __future__ import annotations

import resource

from plimsoll.documents.run_spec import HomesWorkload, RunSpec, SessionsLoad

#: What the program holds besides: its own files, those of the run folder, sockets, queues of I/O,
#: the kernel's log.
OWN_COUNT = 24
#: Log, next log, checkpoint, directories, marker.
INSTANCE_COUNT = 6
#: The database and its flush map.
DATABASE_COUNT = 2
#: A user of home folders: the file that is there, and the one that comes.
HOME_USER_COUNT = 2


def needed_count(run: RunSpec) -> int:
    """How many files a run may hold open at once."""
    databases = sum(len(instance.databases) for instance in run.instances)
    users = sum(_users(load) for load in run.workloads if isinstance(load, HomesWorkload))
    return (
        OWN_COUNT
        + len(run.instances) * INSTANCE_COUNT
        + databases * DATABASE_COUNT
        + users * HOME_USER_COUNT
    )


def _users(homes: HomesWorkload) -> int:
    """Users of home folders who can be at work at once: all, where the storage lets them wait."""
    load = homes.load
    if isinstance(load, SessionsLoad):
        return load.sessions
    return int(getattr(load, "sessions_max", 0))


def too_few(run: RunSpec) -> list[str]:
    """One sentence if the limit cannot be raised to what the run needs."""
    needed = needed_count(run)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return []
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= needed:
        return []
    return [
        f"this process may hold {allowed} files open and the run needs up to {needed}; "
        f"allow more, with ulimit -n {needed} before it, or take fewer databases or users"
    ]
