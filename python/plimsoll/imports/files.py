"""Files of other tools, of any kind and together.

What is in them, and the run folders that are made of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from plimsoll.documents.reported import ReportedFinding, ReportedTest, read_findings
from plimsoll.documents.verdict import Verdict
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.paths import StrPath, paths_of
from plimsoll.imports.consistency_checks import Finding, as_data
from plimsoll.imports.detect import (
    CLAIMS,
    CONFIGURATION,
    DVDSTORE,
    ICF,
    IOMETER_RESULTS,
    PAPER,
    Source,
    joined,
    paper_text,
    read_report,
    recognise,
)
from plimsoll.imports.dvdstore.config import plan_of_dvdstore
from plimsoll.imports.imported import Imported
from plimsoll.imports.iometer.icf import read_icf
from plimsoll.imports.iometer.results_csv import IometerResults, read_results
from plimsoll.imports.iometer.to_plan import IometerPlans, plans_of_icf
from plimsoll.imports.jetstress.config_read import import_config
from plimsoll.imports.papers.checks import check_paper
from plimsoll.imports.papers.claims import check_claims
from plimsoll.imports.papers.tables import PaperTables, read_tables
from plimsoll.imports.papers.text import read_paper
from plimsoll.imports.to_run_folder import write_run_folder
from plimsoll.inputs.mistakes import InputError


@dataclass(frozen=True)
class ImportedPaper:
    """A paper: its reports, the figures of its numbered tables, and what does not add up between
    them.
    """

    name: str
    reports: list[ReportedTest]
    tables: PaperTables
    findings: list[Finding]

    @classmethod
    def read(cls, path: Path, text: str) -> ImportedPaper:
        """Take a paper apart."""
        reports, tables = read_paper(str(path), text), read_tables(text)
        return cls(path.stem, reports, tables, check_paper(tables, reports))


@dataclass
class ImportedFiles:
    """What is in some files of other tools.

    Attributes:
        plans: the plan of each configuration, with its file.
        iometer: the plans of each configuration of Iometer, with its file.
        results: of each table of results of Iometer.
        reports: of result pages and papers, those of one test joined.
        papers: papers with numbered tables.
        claims: of each file of claims, what does not follow from its figures.
        errors: of files that cannot be read.
    """

    plans: list[tuple[Source, Imported]] = field(default_factory=list)
    iometer: list[tuple[Source, IometerPlans]] = field(default_factory=list)
    results: list[tuple[Source, IometerResults]] = field(default_factory=list)
    reports: list[ReportedTest] = field(default_factory=list)
    papers: list[ImportedPaper] = field(default_factory=list)
    claims: list[tuple[str, list[Finding]]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


def read_imports(
    files: StrPath | Sequence[StrPath], root: str = "/mnt", store: str | None = None
) -> ImportedFiles:
    """Read configurations, result pages, result files, papers and claims.

    What a file is, its content says.

    Args:
        files: in any order.
        root: the directory below which drive letters and targets are mounted here.
        store: where the stores of a configuration of DVD Store lie, with `{target}` for the name
            of each target; on the engine below the root if left out.
    """
    found, configurations = ImportedFiles(), list[Source]()
    for path in paths_of(files):
        try:
            source = recognise(path)
            if source.kind == CLAIMS:
                found.claims.append(check_claims(path))
            elif source.kind == PAPER:
                found.papers.append(ImportedPaper.read(path, paper_text(source)))
                found.reports += found.papers[-1].reports
            elif source.kind == ICF:
                read = read_icf(str(path), paper_text(source))
                found.iometer.append((source, plans_of_icf(str(path), read, root)))
            elif source.kind == IOMETER_RESULTS:
                found.results.append((source, read_results(str(path), paper_text(source))))
            elif source.kind == DVDSTORE:
                text = paper_text(source)
                found.plans.append((source, plan_of_dvdstore(str(path), text, root, store)))
            elif source.kind == CONFIGURATION:
                configurations.append(source)
            else:
                found.reports.append(read_report(source))
        except InputError as error:
            found.errors.append(error)
    for source in configurations:
        try:
            found.plans.append((source, import_config(str(source.path), source.content, root)))
        except InputError as error:
            found.errors.append(error)
    found.reports = found.reports if found.errors else joined(found.reports)
    return found


def keep_paper(paper: ImportedPaper, parent: StrPath) -> Path:
    """Write the tables of a paper, and what does not add up in them, below a folder.

    Answers the file.
    """
    parent = Path(parent)
    content = {"schema_version": 1, "tables": paper.tables, "findings": as_data(paper.findings)}
    target = parent / f"{paper.name}.paper.json"
    folder.write_json(target, content)
    return target


def keep_results(results: IometerResults, parent: StrPath) -> Path:
    """Write tables of Iometer, and what does not add up in them, below a folder.

    Answers the file.

    Raises:
        FolderError: the file exists, or cannot be written.
    """
    parent = Path(parent)
    name = Path(results.name)
    target = parent / f"{name.stem}.iometer.json"
    if target.exists():
        raise folder.FolderError(
            f"{target} exists; name another folder with --out, nothing is overwritten"
        )
    content = {"schema_version": 1, **asdict(results), "name": name.name}
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.write_json(target, content)
    except OSError as error:
        raise folder.FolderError(f"{target}: {system_reason(error)}") from error
    return target


def keep_report(
    report: ReportedTest, parent: StrPath
) -> tuple[Path, Verdict, Sequence[ReportedFinding]]:
    """Write a report as a run folder below a parent.

    Returns:
        The folder, its verdict, and what does not add up in the report.

    Raises:
        FolderError: the folder exists, or cannot be made.
    """
    parent = Path(parent)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(report["source"]["files"][0]).stem) or "report"
    place = report["source"].get("part")
    target = parent / (f"{name}-{place}" if place else name)
    if target.exists() and any(target.iterdir()):
        raise folder.FolderError(
            f"{target} exists; name another folder with --out, nothing is overwritten"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise folder.FolderError(f"{target}: {system_reason(error)}") from error
    verdict = write_run_folder(target, report)
    return target, verdict, read_findings(target / folder.CONSISTENCY)
