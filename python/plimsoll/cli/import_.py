"""`plimsoll import`: files of Jetstress to plans and run folders. What a file is, its content says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import stop_with
from plimsoll.files import folder
from plimsoll.imports.consistency_checks import CONTRADICTION, Finding, as_data
from plimsoll.imports.detect import CLAIMS, CONFIGURATION, PAPER, Source, joined, paper_text, read_report, recognise
from plimsoll.imports.jetstress.config_read import Imported, import_config
from plimsoll.imports.papers.checks import check_paper
from plimsoll.imports.papers.claims import check_claims
from plimsoll.imports.papers.tables import read_tables
from plimsoll.imports.papers.text import read_paper
from plimsoll.imports.to_run_folder import write_run_folder
from plimsoll.inputs.mistakes import InputError


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JetstressConfig.xml files, result pages (HTML), result files (XML), the text of a solution paper, or a file of claims.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="A plan file for a configuration, a folder for the run folders of reports. Nothing is overwritten."
        ),
    ] = None,
    root: Annotated[str, typer.Option(help="The directory below which drive letters are mounted here.")] = "/mnt",
) -> None:
    """Make a plan of a configuration, a run folder of a report; say what was kept and what does not add up.

    Example: plimsoll import Performance_2011_4_21_3_43_56.html DBChecksum_2011_4_21_5_46_6.html --out runs
    """
    sources, papers, claims = [], [], []
    reports: list[dict[str, Any]] = []
    errors: list[InputError] = []
    for path in files:
        try:
            source = recognise(path)
            sources.append(source)
            if source.kind == CLAIMS:
                claims.append(check_claims(path))
            elif source.kind == PAPER:
                papers.append(Paper.read(path, paper_text(source)))
                reports += papers[-1].reports
            elif source.kind != CONFIGURATION:
                reports.append(read_report(source))
        except InputError as error:
            errors.append(error)
    for origin, findings in claims:
        print(f"{origin}: {len(findings)} statements do not follow from its figures")
        _tell_findings(findings)
    configurations = [source for source in sources if source.kind == CONFIGURATION]
    plans = _translate(configurations, root, errors)
    if errors:
        refuse(errors)
    for source, found in plans:
        _keep_plan(source, found, out if not reports and len(plans) == 1 else None)
    for report in joined(reports):
        keep_report(report, out or folder.DEFAULT_PARENT)
    for paper in papers:
        _keep_paper(paper, out or folder.DEFAULT_PARENT)


@dataclass(frozen=True)
class Paper:
    """A paper: its reports, the figures of its numbered tables, and what does not add up between them."""

    name: str
    reports: list[dict[str, Any]]
    tables: dict[str, Any]
    findings: list[Finding]

    @classmethod
    def read(cls, path: Path, text: str) -> Paper:
        """Take a paper apart."""
        reports, tables = read_paper(str(path), text), read_tables(text)
        return cls(path.stem, reports, tables, check_paper(tables, reports))


def _keep_paper(paper: Paper, parent: Path) -> None:
    content = {"schema_version": 1, "tables": paper.tables, "findings": as_data(paper.findings)}
    target = parent / f"{paper.name}.paper.json"
    folder.write_json(target, content)
    print(f"the paper itself: {len(paper.tables)} tables, {len(paper.findings)} findings between them and its reports")
    _tell_findings(paper.findings)
    print(f"  tables: {target}")


def _tell_findings(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"  {'!' if finding.kind == CONTRADICTION else ' '} {finding.kind}, {finding.where}: {finding.text}")


def _translate(sources: list[Source], root: str, errors: list[InputError]) -> list[tuple[Source, Imported]]:
    found = []
    for source in sources:
        try:
            found.append((source, import_config(str(source.path), source.content, root)))
        except InputError as error:
            errors.append(error)
    return found


def _keep_plan(source: Source, found: Imported, out: Path | None) -> None:
    target = out or source.path.with_suffix(".plan.toml")
    _write_new(target, found.text)
    _tell(found)
    print(f"plan: {target}")


def keep_report(report: dict[str, Any], parent: Path) -> Path:
    """Write a report as a run folder below a parent and say what came of it."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(report["source"]["files"][0]).stem) or "report"
    place = report["source"].get("part")
    target = parent / (f"{name}-{place}" if place else name)
    if target.exists() and any(target.iterdir()):
        stop_with(exit_codes.USAGE, f"{target} exists; name another folder with --out, nothing is overwritten")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{target}: {(error.strerror or str(error)).lower()}")
    verdict = write_run_folder(target, report)
    plimsoll.write_report(target, showing(quiet=True))
    print(f"{verdict['headline']}; {verdict['throughput']}")
    findings = folder.read_json(target / folder.CONSISTENCY)["findings"]
    for finding in findings:
        mark = "!" if finding["kind"] == CONTRADICTION else " "
        print(f"  {mark} {finding['kind']}, {finding['where']}: {finding['text']}")
    for repair in report.get("repairs") or []:
        print(f"    repaired: {repair}")
    for loss in report.get("losses") or []:
        print(f"  ! lost: {loss}")
    print(f"  run folder: {target}")
    return target


def _write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        stop_with(exit_codes.USAGE, f"{path} exists; name another with --out, nothing is overwritten")
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{path}: {(error.strerror or str(error)).lower()}")


def _tell(found: Imported) -> None:
    print(f"{len(found.mapped)} fields translated:")
    for path, key in found.mapped.items():
        print(f"  {path} -> {key}")
    print(f"{len(found.kept)} fields kept for an export, without effect here:")
    for path, reason in found.kept.items():
        print(f"  {path}: {reason}")
    for remark in found.remarks:
        print(f"note: {remark}")
