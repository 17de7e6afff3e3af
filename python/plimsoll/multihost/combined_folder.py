"""The folder of several hosts.

Copies of their runs as `host-1`, `host-2` and so on, and beside them the files of one run.

`hosts.json` says whose run lies in which folder. Plan, summary, verdict and report have the shape
of a run's, so that the list of runs, comparisons and archives take the folder like any other. It
can be judged again from itself. Folders are numbered and not named after hosts, so that no name is
left in a redacted archive.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.verdict import Verdict
from plimsoll.files import folder
from plimsoll.multihost.overlap import Overlap, overlap_of
from plimsoll.multihost.reading import CombineError, HostRun, read_hosts
from plimsoll.multihost.totals import summarize
from plimsoll.multihost.verdict import judge

SCHEMA_VERSION = 1
#: Less of the longest measured time in common is refused: what each host did alone is not what the
#: storage bears from all.
OVERLAP_PERCENT = 90.0


def combine(
    arguments: Sequence[tuple[str | None, Path]],
    wanted: Path | None,
    *,
    overlap_percent: float = OVERLAP_PERCENT,
    different_plans: bool = False,
) -> tuple[Path, Verdict]:
    """Make one folder of the runs of several hosts.

    Args:
        arguments: for each host its name, if the user gave one, and the folder of its run.
        wanted: the new folder; one below `runs/` if None.
        overlap_percent: how much of the longest measured time must be common to all.
        different_plans: whether runs of different pages, editions, tests or limits may be added up.

    Returns:
        The folder and the verdict.

    Raises:
        CombineError: every reason why these runs cannot be added up.
        FolderError: the wanted folder is taken.
    """
    hosts = read_hosts(arguments, different_plans=different_plans)
    measured_together(hosts, overlap_percent)
    name = _name_of(hosts)
    if wanted is not None and wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        raise folder.FolderError(
            f"{wanted} is not an empty folder; name a new one, nothing is overwritten"
        )
    home = folder.new_folder(name, wanted)
    try:
        return home, _fill(
            home, name, hosts, overlap_percent=overlap_percent, different_plans=different_plans
        )
    except BaseException:
        # Half of a result would be taken for one; all of it comes from the runs.
        shutil.rmtree(home)
        raise


def _fill(
    home: Path,
    name: str,
    hosts: Sequence[HostRun],
    *,
    overlap_percent: float,
    different_plans: bool,
) -> Verdict:
    """Copy the runs into the new folder, list them, and judge them; answers the verdict."""
    listed = []
    for number, host in enumerate(hosts, 1):
        shutil.copytree(host.path, home / f"host-{number}")
        listed.append(
            {
                "host": host.name,
                "folder": f"host-{number}",
                "named": host.is_named,
                "from": str(host.path),
            }
        )
    content = {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "overlap_percent": overlap_percent,
        "different_plans": different_plans,
        "hosts": listed,
    }
    folder.write_json(home / folder.HOSTS, content)
    return judge_again(home)


def measured_together(hosts: Sequence[HostRun], overlap_percent: float) -> Overlap:
    """The time in which all hosts measured.

    Raises:
        CombineError: it is too little of the time that any of them did.
    """
    found = overlap_of([host.window for host in hosts])
    if found.seconds > 0 and 100 * found.share >= overlap_percent:
        return found
    if found.seconds > 0:
        how = f"for only {found.seconds:.0f} s, {found.share:.0%} of the longest measured time"
        way = (
            f"start them together (`plimsoll run --start-at`), or say --overlap-percent "
            f"{math.floor(100 * found.share)} or less"
        )
    else:
        how, way = "at no time", "start them together: `plimsoll run --start-at`"
    lines = "; ".join(
        f"{row.name} from {row.summary.window.start_utc} to {row.summary.window.end_utc}"
        for row in hosts
    )
    raise CombineError(
        [
            f"the hosts measured together {how} ({lines}, by the clocks of the hosts). To know "
            f"what the storage bears from all, {way}"
        ]
    )


def judge_again(home: Path) -> Verdict:
    """Summary and verdict from the copies of the runs; answers the verdict.

    Raises:
        CombineError, FolderError: files are missing or damaged.
    """
    hosts, overlap = read(home)
    content = folder.read_json(home / folder.HOSTS)
    summary = summarize(content["name"], hosts, overlap)
    found = judge(hosts, summary, overlap)
    folder.write_json(home / folder.PLAN, plan_of(content["name"], hosts, found.required_iops))
    folder.write_json(home / folder.SUMMARY, summary.plain())
    folder.write_json(home / folder.VERDICT, found.plain())
    return found


def read(home: Path) -> tuple[list[HostRun], Overlap]:
    """The hosts of such a folder, and when all of them measured.

    Raises:
        CombineError, FolderError: files are missing or damaged.
    """
    content = folder.read_json(home / folder.HOSTS)
    try:
        arguments = [
            (str(item["host"]), folder.inner(home, item["folder"])) for item in content["hosts"]
        ]
        percent, different = float(content["overlap_percent"]), bool(content["different_plans"])
    except (KeyError, TypeError, ValueError) as error:
        raise folder.FolderError(
            f"{home / folder.HOSTS} is not what `plimsoll combine` writes: {error}"
        ) from error
    hosts = read_hosts(arguments, different_plans=different)
    return hosts, measured_together(hosts, percent)


def _name_of(hosts: Sequence[HostRun]) -> str:
    return " and ".join(dict.fromkeys(str(host.run.plan["name"]) for host in hosts))


def plan_of(name: str, hosts: Sequence[HostRun], required_iops: float | None) -> folder.Content:
    """The plans of all hosts as one: what was put to the test, for comparisons.

    Nobody carries it out.
    """
    first = hosts[0].run.plan
    joined: dict[str, list[folder.Content]] = {"targets": [], "instances": [], "workloads": []}
    for host in hosts:
        run = host.run.plan["run"]

        def called(given: str, prefix: str = host.name) -> str:
            return f"{prefix}/{given}"

        joined["targets"] += [
            {**item, "name": called(item["name"]), "host": host.name} for item in run["targets"]
        ]
        joined["instances"] += [
            {**item, "name": called(item["name"]), "target": called(item["target"])}
            for item in run["instances"]
        ]
        joined["workloads"] += [
            {
                **item,
                "name": called(item["name"]),
                "instances": [called(each) for each in item["instances"]],
            }
            for item in run["workloads"]
        ]
    return {
        **{key: first.get(key) for key in ("kind", "schema_version", "description")},
        "name": name,
        "combined": True,
        "run": {**first["run"], "hosts": [{"name": host.name} for host in hosts], **joined},
        "judgement": {**first["judgement"], "required_iops": required_iops},
    }
