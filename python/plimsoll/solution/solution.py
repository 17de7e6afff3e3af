"""`solution.toml`: the description of a tested solution, and the runs that are its evidence.

A description says what the storage is and for whom; figures come from the runs alone. Runs are run
folders, measured or imported, or result pages of Jetstress, one for each server. Evidence is
refused when it is missing, modelled, failed or of another kind than its place: a document may be
wrong in many ways, but not in what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plimsoll.advice.drawings import TopologyDrawing, drawings_of_file
from plimsoll.documents.environment import Environment, read_environment
from plimsoll.documents.reported import (
    ReportedFinding,
    ReportedTest,
    read_findings,
    read_reported,
)
from plimsoll.files import folder
from plimsoll.imports.consistency_checks import as_data, check
from plimsoll.imports.detect import CONFIGURATION, PAPER, read_report, recognise
from plimsoll.imports.reported_verdict import verdict_of
from plimsoll.imports.to_run_folder import environment_of, plan_of, summary_of
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.schema import (
    READERS,
    Collector,
    Field,
    Given,
    ListOf,
    Number,
    Table,
    Tables,
    Text,
    require_kind,
)
from plimsoll.inputs.toml_lines import LocatedFile, read_located

_PATHS = ListOf(Text(), 1)
RUN_FIELDS = {
    "stress": Field(
        _PATHS,
        required=True,
        meaning="run folders or result pages of the 24-hour test, one for each server",
    ),
    "performance": Field(
        _PATHS, required=True, meaning="run folders of the two-hour test; table 6 is made of them"
    ),
    "max_iops": Field(
        ListOf(Text()), default=[], meaning="run folders of the test for the highest rate"
    ),
    "backup": Field(
        _PATHS, required=True, meaning="run folders of the backup test; table 7 is made of them"
    ),
    "recovery": Field(
        _PATHS, required=True, meaning="run folders of the soft recovery; table 8 is made of them"
    ),
    "log_generation": Field(
        ListOf(Text()), default=[], meaning="run folders of the load that wrote the replayed logs"
    ),
}
PROFILE_FIELDS = {
    "users": Field(Number(1, 1e9, whole=True), required=True, meaning="mailboxes of the solution"),
    "iops_per_user": Field(
        Number(0.0001, 1000), required=True, meaning="database I/O of one user, headroom included"
    ),
    "headroom_percent": Field(Number(0, 500), default=20, meaning="headroom in it"),
    "messages_per_day": Field(Number(0, 1e6), meaning="messages of one user, sent and received"),
    "mailbox_gb": Field(Number(0.001, 1e6), required=True, meaning="size of one mailbox"),
    "dags": Field(Number(0, 1000, whole=True), default=1, meaning="availability groups"),
    "servers_per_dag": Field(Number(1, 16, whole=True), default=1, meaning="servers of a group"),
    "active_users_per_server": Field(
        Number(1, 1e9, whole=True), required=True, meaning="mailboxes a server serves"
    ),
    "databases_per_host": Field(
        Number(1, 10_000, whole=True), required=True, meaning="databases of one server"
    ),
    "copies_per_database": Field(
        Number(1, 16, whole=True), default=1, meaning="copies, the active one included"
    ),
}
STORAGE_FIELDS = {
    "disk": Field(Text(), required=True, meaning="disk type, speed and firmware"),
    "raw_gb_per_disk": Field(Number(0.1, 1e7), required=True, meaning="raw capacity of a disk"),
    "disks": Field(Number(1, 1e6, whole=True), required=True, meaning="disks in the test"),
    "disks_per_luns": Field(Text(), required=True, meaning="how disks are put to volumes"),
    "slice_gb": Field(Number(0, 1e7), meaning="slice of each disk, where only a part is used"),
    "raid": Field(Text(), required=True, meaning="RAID level"),
    "formatted_gb": Field(
        Number(0.1, 1e9), required=True, meaning="formatted capacity of what holds the databases"
    ),
    "database_lun_gb": Field(Number(0.1, 1e9), required=True, meaning="size of a database volume"),
    "log_lun_gb": Field(Number(0.1, 1e9), required=True, meaning="size of a log volume"),
    "log_disk": Field(Text(), meaning="disks of the logs; those of the databases if left out"),
    "log_raw_gb_per_disk": Field(Number(0.1, 1e7), meaning="raw capacity of a log disk"),
    "log_disks": Field(Number(1, 1e6, whole=True), meaning="disks of the logs"),
    "log_raid": Field(Text(), meaning="RAID level of the logs"),
    "log_formatted_gb": Field(
        Number(0.1, 1e9), meaning="formatted capacity of what holds the logs"
    ),
}
NAMED_FIELDS = {
    "name": Field(Text(), required=True, meaning="what it is"),
    "value": Field(Text(), required=True, meaning="what there is of it"),
}
TEXT_FIELDS = {
    "title": Field(Text(), required=True, meaning="a heading"),
    "text": Field(Text(), required=True, meaning="a paragraph"),
}
BOX_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call it in the drawing"),
    "detail": Field(Text(), meaning="a second line in its box"),
}
ARRAY_FIELDS = {
    **BOX_FIELDS,
    "controllers": Field(Number(1, 64, whole=True), default=1, meaning="its controllers"),
}
LINK_FIELDS = {
    "from": Field(Text(), required=True, meaning="host, switch or array at one end"),
    "to": Field(Text(), required=True, meaning="that at the other end"),
    "label": Field(Text(), meaning="kind and speed"),
    "count": Field(Number(1, 64, whole=True), default=1, meaning="how many there are"),
}
POOL_FIELDS = {
    "name": Field(Text(), required=True, meaning="disk group or pool"),
    "array": Field(Text(), required=True, meaning="the array it is in"),
    "disks": Field(Number(1, 2000, whole=True), required=True, meaning="disks, spares not counted"),
    "spares": Field(Number(0, 100, whole=True), default=0, meaning="spare disks"),
    "raid": Field(Text(), required=True, meaning="RAID level"),
    "volumes": Field(ListOf(Text()), default=[], meaning="volumes on it, as drawn"),
}
SIZING_FIELDS = {
    "mailbox_sizes_gb": Field(
        ListOf(Number(0.001, 1e6), 1), required=True, meaning="sizes of which table 9 has a row"
    ),
    "users_by_iops_stated": Field(
        Number(1, 1e9, whole=True),
        meaning="the most users the maker states, where it is below what was measured",
    ),
}
SOLUTION_FIELDS = {
    "title": Field(Text(), required=True, meaning="name of the solution"),
    "vendor": Field(Text(), required=True, meaning="who offers it"),
    "tested": Field(Text(), required=True, meaning="when it was tested"),
    "contact": Field(Text(), required=True, meaning="whom to ask"),
    "overview": Field(Text(), required=True, meaning="a paragraph for readers in a hurry"),
    "description": Field(ListOf(Text(), 1), required=True, meaning="paragraphs on the solution"),
    "conclusion": Field(Text(), meaning="the maker's last word"),
    "feature": Field(Tables(TEXT_FIELDS), default=[], meaning="features"),
    "best_practice": Field(Tables(TEXT_FIELDS), default=[], meaning="advice for building it"),
    "profile": Field(Table(PROFILE_FIELDS), required=True, meaning="the customer it is meant for"),
    "storage": Field(Table(STORAGE_FIELDS), required=True, meaning="disks and volumes"),
    "hardware": Field(
        Tables(NAMED_FIELDS),
        default=[],
        meaning="rows of table 2; prescribed ones that are left out come from the runs, or are not "
        "stated",
    ),
    "software": Field(
        Tables(NAMED_FIELDS), default=[], meaning="rows of table 3; what is left out likewise"
    ),
    "host": Field(Tables(BOX_FIELDS, 1, unique="name"), required=True, meaning="servers, drawn"),
    "switch": Field(Tables(BOX_FIELDS, unique="name"), default=[], meaning="switches, drawn"),
    "array": Field(Tables(ARRAY_FIELDS, 1, unique="name"), required=True, meaning="arrays, drawn"),
    "link": Field(Tables(LINK_FIELDS, 1), required=True, meaning="links between them, drawn"),
    "pool": Field(Tables(POOL_FIELDS, 1), required=True, meaning="disk groups, drawn"),
    "mailbox_sizing": Field(Table(SIZING_FIELDS), required=True, meaning="appendix A"),
    "topology": Field(
        Text(), meaning="a topology file next to this one, whose drawings the document shows"
    ),
    "runs": Field(Table(RUN_FIELDS), required=True, meaning="the evidence"),
}
#: Which kind of test may stand where. A test for the highest rate may be of either kind of load.
KINDS = {
    "stress": ("performance", "stress"),
    "performance": ("performance", "stress"),
    "max_iops": ("maximum", "performance", "stress"),
    "backup": ("backup", "performance", "stress"),
    "recovery": ("recovery", "performance", "stress"),
    "log_generation": ("performance", "stress", "recovery"),
}
#: Runs whose verdict must be a pass; a backup and a replay have no limits and so none.
JUDGED = ("stress", "performance", "max_iops")


@dataclass(frozen=True)
class Run:
    """One run folder that is evidence."""

    path: Path
    plan: folder.Content
    summary: folder.Content
    verdict: folder.Content
    environment: Environment
    #: What an imported report said; None for a run of our own.
    reported: ReportedTest | None
    findings: tuple[ReportedFinding, ...]

    @property
    def machine(self) -> str:
        """The server it ran on."""
        return str(self.environment["machine"]["host_name"] or "")


@dataclass(frozen=True)
class Solution:
    """A checked description with its evidence."""

    content: Given
    runs: dict[str, tuple[Run, ...]]
    #: Of its topology file, where it names one.
    topology: tuple[TopologyDrawing, ...] = ()

    def machine(self, run: Run, index: int) -> str:
        """The server of a run; reports of backups and replays name none, so that of the performance
        test at its place.
        """
        return run.machine or self.runs["performance"][index].machine or "server"


def read_solution(path: Path) -> Solution:
    """Read a description and the runs it names.

    Raises:
        InputError: with every mistake found, each with its line.
    """
    document = read_located(path)
    require_kind(document, ("solution",), READERS)
    collector = Collector(document)
    content = {
        key: value for key, value in document.data.items() if key not in ("kind", "schema_version")
    }
    checked = collector.table(content, SOLUTION_FIELDS, ())
    _check_drawing(checked, collector)
    topology = drawings_of_file(path, checked["topology"], collector)
    runs = {
        place: tuple(
            run
            for index, text in enumerate((checked["runs"] or {}).get(place) or [])
            if (run := _read_run(path.parent / text, place, ("runs", place, index), collector))
            is not None
        )
        for place in RUN_FIELDS
    }
    if not collector.mistakes:
        _check_counts(runs, document, collector)
    collector.raise_if_any()
    return Solution(checked, runs, topology)


def _check_drawing(content: Given, collector: Collector) -> None:
    """Links and pools name what is described."""
    boxes = {box["name"] for kind in ("host", "switch", "array") for box in content[kind] or []}
    arrays = {array["name"] for array in content["array"] or []}
    for index, link in enumerate(content["link"] or []):
        for end in ("from", "to"):
            if link[end] is not None and link[end] not in boxes:
                collector.add(
                    ("link", index, end),
                    f'names "{link[end]}", which is no host, switch or array of this file',
                    "describe it, or correct the name",
                )
    for index, pool in enumerate(content["pool"] or []):
        if pool["array"] is not None and pool["array"] not in arrays:
            collector.add(
                ("pool", index, "array"),
                f'names "{pool["array"]}", which is no array of this file',
                "describe it, or correct the name",
            )


def _read_run(
    path: Path, place: str, where: tuple[str | int, ...], collector: Collector
) -> Run | None:
    """The run in a folder or in a report of another tool, or a mistake and None."""
    try:
        run = _run_of_report(path) if path.is_file() else _run_of_folder(path)
    except folder.FolderError as error:
        collector.add(
            where,
            f"is not a finished run: {error}",
            "name the folder of a run that `plimsoll run`, `test` or `import` wrote",
        )
        return None
    except OSError as error:
        collector.add(where, f"cannot be read: {error.strerror}", "name the folder of a run")
        return None
    except InputError as error:
        first = error.mistakes[0]
        collector.add(
            where,
            f"cannot be imported: {first.render(error.file_name).replace(chr(10), ' ')}",
            "repair that file, or name a run folder",
        )
        return None
    except (KeyError, TypeError, AttributeError) as error:
        collector.add(
            where, f"holds files of another form: {error!r}", "run `plimsoll report` on it"
        )
        return None
    try:
        problem = _unfit(run.plan, run.summary, run.verdict, place)
    except (KeyError, TypeError, AttributeError) as error:
        collector.add(
            where,
            f"holds files of another form: {error!r} is missing",
            "run `plimsoll report` on it",
        )
        return None
    if problem:
        collector.add(where, *problem)
    return None if problem else run


def _run_of_folder(path: Path) -> Run:
    if (path / folder.HOSTS).exists():
        raise folder.FolderError(
            f"{path} holds several hosts; list the run of each server: {path.name}/host-1 and so on"
        )
    names = (folder.PLAN, folder.SUMMARY, folder.VERDICT)
    plan, summary, verdict = (folder.read_json(path / name) for name in names)
    environment = read_environment(path / folder.ENVIRONMENT)
    is_reported = (path / folder.REPORTED).exists()
    reported = read_reported(path / folder.REPORTED) if is_reported else None
    findings = read_findings(path / folder.CONSISTENCY) if reported else ()
    return Run(path, plan, summary, verdict, environment, reported, tuple(findings))


def _run_of_report(path: Path) -> Run:
    """A result page or file, imported where it stands."""
    source = recognise(path)
    if source.kind in (CONFIGURATION, PAPER):
        hint = (
            "a result page (HTML) or result file (XML) was expected; import a paper first and name "
            "its run folders"
        )
        raise InputError(str(path), [Mistake(0, "", f"is a {source.kind}", hint)])
    report = read_report(source)
    findings = as_data(check(report))
    return Run(
        path,
        plan_of(report),
        summary_of(report).plain(),
        verdict_of(report).plain(),
        environment_of(report),
        report,
        tuple(findings),
    )


def _unfit(
    plan: folder.Content, summary: folder.Content, verdict: folder.Content, place: str
) -> tuple[str, str] | None:
    """Why a run cannot be the evidence for its place."""
    if (
        plan["judgement"].get("modelled")
        or plan["run"].get("modelled")
        or summary["virtual_time"]
        or verdict.get("prediction")
    ):
        return (
            "was modelled, not measured",
            "a model is no evidence; name a run on the storage itself",
        )
    if summary["debug_build"]:
        return (
            "was made by a debug build",
            "a debug build measures itself; run it again with a release build",
        )
    if summary["ending"] != "complete":
        return f"did not come to its end ({summary['ending']})", "run it again"
    kind = plan["judgement"]["test"]
    if kind not in KINDS[place]:
        return f"is a {kind} test", f"a {' or '.join(KINDS[place])} test was expected here"
    if place in JUDGED and verdict["result"] != "pass":
        return f"has the result {verdict['result']}", "a solution is shown by tests that passed"
    wanted = {"backup": "backups", "recovery": "recoveries"}.get(place)
    if wanted and not summary[wanted]:
        return f"holds no {place}", f"a run with a {place} was expected here"
    return None


def _check_counts(
    runs: dict[str, tuple[Run, ...]], document: LocatedFile, collector: Collector
) -> None:
    """Every server has a run of each kind."""
    count = len(runs["performance"])
    for place, found in runs.items():
        if found and len(found) != count:
            collector.add(
                ("runs", place),
                f"has {len(found)} runs, but performance has {count}",
                "name one for each server",
            )


def table_fields() -> dict[str, dict[str, Field]]:
    """Every table of the file with its keys, for the reference page."""
    nested = {
        "[[feature]], [[best_practice]]": TEXT_FIELDS,
        "[[hardware]], [[software]]": NAMED_FIELDS,
        "[[host]], [[switch]]": BOX_FIELDS,
    }
    return {
        "top level": SOLUTION_FIELDS,
        "[profile]": PROFILE_FIELDS,
        "[storage]": STORAGE_FIELDS,
        "[mailbox_sizing]": SIZING_FIELDS,
        "[runs]": RUN_FIELDS,
        **nested,
        "[[array]]": ARRAY_FIELDS,
        "[[link]]": LINK_FIELDS,
        "[[pool]]": POOL_FIELDS,
    }
