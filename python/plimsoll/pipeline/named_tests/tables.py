"""Parts of plans that the named tests have in common: phases, instances, the target."""

from __future__ import annotations

import tomllib
from pathlib import Path

from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.pipeline.named_tests.options import OPTIONS

#: Options of a plan, as its file has them.
Tables = dict[str, object]


def stated(**values: object) -> Tables:
    """What was stated of some options; None was not, and is left to the defaults.

    >>> stated(users=200, spacing=None, log_path=Path("logs"))
    {'users': 200, 'log_path': 'logs'}
    """
    return {
        key: str(value) if isinstance(value, Path) else value
        for key, value in values.items()
        if value is not None
    }


def phase(kind: str, **values: object) -> Tables:
    """A phase of a plan; what is None is left to the defaults."""
    return {"kind": kind, **stated(**values)}


def worked(
    seconds: float,
    workload: str,
    ramp_s: float,
    *,
    search_s: float | None = None,
    audit: bool = False,
    checksum: bool = False,
) -> list[Tables]:
    """The phases of a test of clients: load before it is measured, where that takes time; a search,
    where one is made; and what is read again afterwards.
    """
    ramp = phase("soak", name="ramp up", duration_s=ramp_s, workloads=[workload])
    return [
        phase("prepare"),
        *([ramp] if ramp_s else []),
        *([] if search_s is None else [phase("search", duration_s=search_s)]),
        phase("measure", duration_s=seconds),
        *([phase("audit")] if audit else []),
        phase("stop"),
        *([phase("checksum")] if checksum else []),
    ]


def loaded(seconds: float, search_s: float | None = None) -> list[Tables]:
    """The phases of a test of databases under load."""
    searching = [] if search_s is None else [phase("search", duration_s=search_s)]
    measuring = phase("measure", duration_s=seconds)
    return [
        phase("prepare"),
        phase("warm_up"),
        *searching,
        measuring,
        phase("stop"),
        phase("checksum"),
    ]


def instance_rows(databases: int, **row: object) -> list[Tables]:
    """One instance for each database, as the published tool laid them out."""
    return [{"name": f"instance{number}", **stated(**row)} for number in range(1, databases + 1)]


def storage_problems(
    path: Path | None, modelled: str | None, change: list[str] | None, what: str
) -> list[str]:
    """What is wrong with storage that is a path, or a modelled array with what is changed of it.

    Args:
        path: where the test works.
        modelled: the array that is simulated instead.
        change: figures of that array.
        what: what a path may be.
    """
    problems = []
    if (path is None) == (modelled is None):
        problems.append(f"name either {what}, or an array with --modelled")
    if modelled is None and change:
        problems.append("--change is for arrays named with --modelled")
    return problems


def storage(
    path: Path | None, modelled: str | None, change: list[str] | None, log_path: Path | None
) -> Tables:
    """The target of a plan: a path, or a modelled array with what is changed of it.

    Raises:
        InputError: a change cannot be read.
    """
    changes = parse_changes(change) or None
    return {
        "name": "target",
        **stated(path=path, modelled=modelled, changes=changes, log_path=log_path),
    }


def parse_changes(change: list[str] | None) -> Tables:
    """Figures of a modelled array as they are given with `--change`.

    >>> parse_changes(["level='RAID 10'", "sets=[8]"])
    {'level': 'RAID 10', 'sets': [8]}

    Raises:
        InputError: they cannot be read.
    """
    try:
        return tomllib.loads("\n".join(change or []))
    except tomllib.TOMLDecodeError as error:
        hint = (
            "write it as in a file of arrays, such as --change \"level='RAID 10'\" --change "
            "'sets=[8]'"
        )
        mistake = Mistake(0, "", f"--change cannot be read: {error}", hint)
        raise InputError(OPTIONS, [mistake]) from error
