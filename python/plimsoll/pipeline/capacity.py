"""How many users a storage carries.

The plan of a search for the highest rate, and what its run says in users.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plimsoll import settings
from plimsoll.documents.capacity import Capacity
from plimsoll.documents.plan import Plan
from plimsoll.errors import InvalidValueError
from plimsoll.files import folder
from plimsoll.files.paths import StrPath
from plimsoll.pipeline.qualify import Result
from plimsoll.plan import capacity_search
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.load import GUIDANCE
from plimsoll.sizing.guidance import profiles


def check_user(users: str, edition: str, iops_per_user: float | None) -> None:
    """Whether it is known what such a user makes.

    Raises:
        InvalidValueError: it is not.
    """
    if iops_per_user is None and users.isdecimal():
        raise InvalidValueError(
            f"--users {users} is a number, but the number is what is looked for; name the kind of "
            f"user, such as heavy, or try so many: `plimsoll test mailbox PATH --users {users}`"
        )
    if iops_per_user is None and (users not in profiles() or edition not in GUIDANCE):
        known = ", ".join(sorted(profiles()))
        raise InvalidValueError(
            f"what {users} users of edition {edition} make was not published; give "
            f"--iops-per-user, or one of {known} "
            f"with edition {' or '.join(GUIDANCE)}"
        )
    if edition not in settings.editions():
        raise InvalidValueError(
            f"edition is {edition}; write one of {', '.join(settings.editions())}"
        )


def build_capacity_plan(
    path: StrPath,
    minutes: float,
    edition: str,
    *,
    size_mib: int | None = None,
    backend: str = str(settings.INSTANCE_DEFAULTS["backend"]),
    io_method: str = "auto",
    stop_if: Sequence[str] = (),
) -> Plan:
    """A plan that looks for the highest rate which keeps the limits.

    Args:
        path: a directory on the storage.
        minutes: how long it may take, about.
        edition: whose limits and load.
        size_mib: of the database; by free space and time if left out.
        backend: `engine` or `raw_files`.
        io_method: as in a plan.
        stop_if: conditions that stop the run.

    Raises:
        InputError: with every mistake found.
    """
    path = Path(path)
    size = size_mib if size_mib is not None else capacity_search.database_size_mib(path, minutes)
    wanted = capacity_search.capacity_options(path, minutes, edition, size, backend, io_method)
    return plan_of_options(wanted | {"stop_if": list(stop_if)})


def users_carried(
    plan: Plan, result: Result, users: str, iops_per_user: float | None = None
) -> Capacity:
    """The answer in users, also written as `capacity.json` into the run folder.

    Args:
        plan: of the run, as from `build_capacity_plan`.
        result: of the run.
        users: kind of user.
        iops_per_user: database I/O of one of them, where it is known better than by its kind.
    """
    each = capacity_search.user_iops(users, plan.judgement.editions[0], iops_per_user)
    found = capacity_search.answer(plan, result.summary, result.verdict, users, each)
    found.write(result.folder / folder.CAPACITY)
    return found


def users_in_words(answer: Capacity) -> list[str]:
    """The answer as lines."""
    return capacity_search.in_words(answer)
