"""`plimsoll cost`: what each option costs to buy and run, and whether a vendor's statements follow
from its figures.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.sections import print_sections
from plimsoll.errors.system_errors import system_reason
from plimsoll.inputs.mistakes import Mistake
from plimsoll.pages.sections import Section, write_html

SHIPPED = "sandisk_2014"


def cost(
    file: Annotated[
        str, typer.Argument(help=f'A file of kind = "cost", or {SHIPPED} for the shipped analysis.')
    ],
    steps: Annotated[
        bool, typer.Option("--steps", help="Show the formula behind every figure.")
    ] = False,
    as_json_text: Annotated[
        bool, typer.Option("--json", help="Print the whole result as JSON.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write the result, with every formula, as an HTML page."),
    ] = None,
    xlsx: Annotated[
        Path | None, typer.Option(help="Also write a workbook with live formulas.")
    ] = None,
) -> None:
    """Compare options by purchase, space, power, cooling, failures, and cost per IOPS, user and GB.

    Example: plimsoll cost sandisk_2014
    """
    try:
        study = plimsoll.read_cost_study(
            plimsoll.SHIPPED_STUDY if file == SHIPPED and not Path(file).exists() else Path(file)
        )
        if html:
            write_html(
                html, study.name, cost_sections(study, with_steps=True), f"Source: {study.source}."
            )
        if xlsx:
            _write_workbook(xlsx, study)
    except plimsoll.InputError as error:
        refuse([error])
    if as_json_text:
        typer.echo(json.dumps(plimsoll.cost_json(study), indent=2))
    else:
        print_sections(cost_sections(study, with_steps=steps))


def _write_workbook(path: Path, study: plimsoll.CostStudy) -> None:
    """Write the workbook; its library is imported only here.

    Raises:
        InputError: it cannot be written there, or the library is not installed.
    """
    try:
        path.write_bytes(plimsoll.cost_workbook(study))
    except ImportError as error:
        hint = 'install it with: pip install "plimsoll[report]"'
        raise plimsoll.InputError(
            str(path), [Mistake(0, "--xlsx", "needs XlsxWriter", hint)]
        ) from error
    except OSError as error:
        message = f"cannot be written: {system_reason(error)}"
        raise plimsoll.InputError(
            str(path), [Mistake(0, "--xlsx", message, "name a file in a folder that exists")]
        ) from error


def cost_sections(study: plimsoll.CostStudy, with_steps: bool) -> list[Section]:
    """The result as sections for the terminal and the HTML page."""
    names = [cost.option.name for cost in study.options]
    others = [name for name in names if name != study.reference]
    columns = [
        "",
        "Unit",
        *(f"{name} >" for name in names),
        *(f"{name} / {study.reference} >" for name in others),
    ]
    rows = [
        _summary_row(study, figure, decimals, names, others)
        for figure, decimals in plimsoll.COST_SUMMARY.items()
    ]
    intro = [f"{study.source}. Prices of {study.price_date}."]
    intro += [f"{cost.option.name}: {cost.option.title}" for cost in study.options]
    sections = [Section("Options", intro, columns, [row for row in rows if row])]
    absences = [
        f"{cost.option.name}: {text}"
        for cost in study.options
        for text in dict.fromkeys(cost.absences.values())
    ]
    if absences:
        sections.append(Section("Not stated", [f"- {absence}" for absence in absences]))
    if study.measurements:
        sections.append(_measurement_section(study, names, others))
    if study.claims:
        sections.append(_claim_section(study.claims))
    if study.consolidation:
        sections.append(_consolidation_section(study))
    if with_steps:
        sections += [_steps_section(cost) for cost in study.options]
    return sections


def _summary_row(
    study: plimsoll.CostStudy, figure: str, decimals: int, names: list[str], others: list[str]
) -> list[str]:
    steps = [study.option(name).figures.get(figure) for name in names]
    known = next((step for step in steps if step), None)
    if known is None:
        return []
    cells = ["not stated" if step is None else f"{step.value:,.{decimals}f}" for step in steps]
    return [
        known.title,
        known.unit,
        *cells,
        *(_factor(study.ratio(name, figure)) for name in others),
    ]


def _measurement_section(study: plimsoll.CostStudy, names: list[str], others: list[str]) -> Section:
    columns = ["Measured", "Unit", *(f"{name} >" for name in names)]
    columns += [f"{study.reference} better than {name} by >" for name in others]
    rows = []
    for measurement in study.measurements:
        cells = [
            f"{measurement.values[name]:,g}" if name in measurement.values else "-"
            for name in names
        ]
        better = [_factor(measurement.improvement(name, study.reference)) for name in others]
        rows.append([measurement.name.replace("_", " "), measurement.unit, *cells, *better])
    note = "Rates compare new over old, latencies old over new; below 1 means worse."
    return Section("Measurements", [note], columns, rows)


def _claim_section(claims: tuple[plimsoll.Claim, ...]) -> Section:
    rows = [
        (
            claim.id,
            claim.statement,
            f"{claim.stated:g}",
            "-" if claim.computed is None else f"{claim.computed:,.7g}",
            "-" if claim.difference_pct is None else f"{claim.difference_pct:+.1f} %",
            {True: "holds", False: "does not hold", None: claim.reason}[claim.holds],
        )
        for claim in claims
    ]
    failed = frozenset(index for index, claim in enumerate(claims) if claim.holds is False)
    note = f"{len(failed)} of {len(claims)} statements do not follow from the figures."
    return Section(
        "Statements",
        [note],
        ("", "Statement", "Stated >", "Computed >", "Off by >", ""),
        rows,
        failed,
    )


def _consolidation_section(study: plimsoll.CostStudy) -> Section:
    result = study.consolidation
    assert result is not None, "the caller checked"
    sides = (asdict(result.before), asdict(result.after), asdict(result.saved))
    rows = [(name.replace("_", " "), *(f"{side[name]:,g}" for side in sides)) for name in sides[0]]
    notes = []
    if result.virtual_per_physical_after is not None:
        notes.append(
            f"{result.virtual_per_physical_after:g} virtual machines per physical item afterwards."
        )
    if result.not_stated:
        notes.append("Not stated, counted as nothing: " + "; ".join(result.not_stated) + ".")
    return Section("Consolidation", notes, ("", "Before >", "After >", "Saved >"), rows)


def _steps_section(cost: plimsoll.OptionCost) -> Section:
    columns = ("Figure", "Value >", "Unit", "Formula", "Source")
    rows = [
        (step.title, f"{step.value:,.10g}", step.unit, _formula(step), step.source)
        for step in cost.figures.values()
    ]
    return Section(f"How the figures of {cost.option.name} come about", (), columns, rows)


def _formula(step: plimsoll.Step) -> str:
    return f"{step.formula} = {step.arithmetic}" if step.formula else "given"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f} x"
