"""`plimsoll import`: files of Jetstress, Iometer and DVD Store to plans and run folders.

What a file is, its content says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, stop_with
from plimsoll.errors.system_errors import system_reason


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JetstressConfig.xml, ICF files and "
            "configurations of DVD Store, results of "
            "Iometer (CSV), result pages (HTML), result files (XML), the "
            "text of a solution paper, or a file of claims.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="A plan file for a configuration, a folder for the run folders of reports. "
            "Nothing is overwritten."
        ),
    ] = None,
    root: Annotated[
        str,
        typer.Option(help="The directory below which drive letters and targets are mounted here."),
    ] = "/mnt",
    store: Annotated[
        str | None,
        typer.Option(
            help="Where the stores of a configuration of DVD Store lie, such as "
            "postgresql://ds2user@{target}/ds2; on the engine below --root if left out.",
            metavar="ADDRESS",
        ),
    ] = None,
) -> None:
    """Make a plan of a configuration, a run folder of a report.

    Say what was kept and what does not add up.

    Example: plimsoll import Performance_2011_4_21_3_43_56.html DBChecksum_2011_4_21_5_46_6.html
    --out runs

    Example: plimsoll import DriverConfig.txt --store postgresql://ds2user@{target}/ds2
    """
    found = plimsoll.read_imports(files, root, store)
    for origin, findings in found.claims:
        print(f"{origin}: {len(findings)} statements do not follow from its figures")
        _tell_findings(findings)
    if found.errors:
        refuse(found.errors)
    for source, plan in found.plans:
        _keep_plan(source.path, plan, out if not found.reports and len(found.plans) == 1 else None)
    for source, tests in found.iometer:
        _keep_tests(source.path, tests, out if len(found.iometer) == 1 else None)
    for _, results in found.results:
        _keep_results(results, out or plimsoll.DEFAULT_PARENT)
    for report in found.reports:
        _keep_report(report, out or plimsoll.DEFAULT_PARENT)
    for paper in found.papers:
        target = plimsoll.keep_paper(paper, out or plimsoll.DEFAULT_PARENT)
        print(
            f"the paper itself: {len(paper.tables)} tables, {len(paper.findings)} findings between "
            f"them and its reports"
        )
        _tell_findings(paper.findings)
        print(f"  tables: {target}")


def _tell_findings(findings: Sequence[Any]) -> None:
    for finding in findings:
        print(
            f"  {'!' if finding.kind == plimsoll.CONTRADICTION else ' '} {finding.kind}, "
            f"{finding.where}: {finding.text}"
        )


def _keep_plan(source: Path, found: plimsoll.Imported, out: Path | None) -> None:
    target = out or source.with_suffix(".plan.toml")
    _write_new(target, found.text)
    _tell(found)
    print(f"plan: {target}")


def _keep_tests(source: Path, found: plimsoll.IometerPlans, out: Path | None) -> None:
    """Write the tests of a configuration of Iometer: one into a file, several into a folder."""
    if len(found.plans) == 1:
        targets = [out or source.with_suffix(".plan.toml")]
    else:
        parent = out or source.with_suffix(".plans")
        parent.mkdir(parents=True, exist_ok=True)
        targets = [
            parent / f"test{number:03}.plan.toml" for number in range(1, len(found.plans) + 1)
        ]
    for target, plan in zip(targets, found.plans, strict=True):
        _write_new(target, plan.text)
        print(f"plan: {target}: {plan.name}")
    for remark in found.remarks:
        print(f"note: {remark}")


def _keep_results(results: plimsoll.IometerResults, parent: Path) -> None:
    """Say what stands in the tables of Iometer, and keep them."""
    with refusing(plimsoll.FolderError):
        target = plimsoll.keep_results(results, parent)
    for table in results.tables:
        print(table.in_words())
    _tell_findings(results.findings)
    for warning in results.warnings:
        print(f"note: {warning.render(results.name)}")
    print(f"  tables: {target}")


def _keep_report(report: plimsoll.ReportedTest, parent: Path) -> None:
    """Write a report as a run folder below a parent and say what came of it."""
    with refusing(plimsoll.FolderError):
        target, verdict, findings = plimsoll.keep_report(report, parent)
    plimsoll.write_report(target, showing(quiet=True))
    print(f"{verdict.headline}; {verdict.throughput}")
    for finding in findings:
        mark = "!" if finding["kind"] == plimsoll.CONTRADICTION else " "
        print(f"  {mark} {finding['kind']}, {finding['where']}: {finding['text']}")
    for repair in report.get("repairs") or []:
        print(f"    repaired: {repair}")
    for loss in report.get("losses") or []:
        print(f"  ! lost: {loss}")
    print(f"  run folder: {target}")


def _write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        stop_with(
            exit_codes.USAGE, f"{path} exists; name another with --out, nothing is overwritten"
        )
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{path}: {system_reason(error)}")


def _tell(found: plimsoll.Imported) -> None:
    print(f"{len(found.mapped)} fields translated:")
    for path, key in found.mapped.items():
        print(f"  {path} -> {key}")
    print(f"{len(found.kept)} fields without effect here:")
    for path, reason in found.kept.items():
        print(f"  {path}: {reason}")
    for remark in found.remarks:
        print(f"note: {remark}")
