"""`plimsoll select`: which array, with which drives and RAID level, and how many, for a capacity and an IOPS need."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.arrays.catalogue_match import modelled_rate
from plimsoll.arrays.papers.error_band import band_percent
from plimsoll.cli.input_errors import refuse
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.pages.sections import Section, print_sections, write_html
from plimsoll.sizing.catalogue import SHIPPED_CATALOGUE, ArrayRow, read_catalogue, read_drive_classes
from plimsoll.sizing.raid import RAID_LEVELS
from plimsoll.sizing.selection import GB_PER_GIB, SOURCE, Candidate, Need, Selection, select_arrays

SHIPPED = "shipped"
#: Options that are keys of the need under another or the same name.
NEED_KEYS = {
    "capacity_gb": "volumes_gb", "iops": "database_iops", "copies": "copies", "databases": "databases",
    "snapshot_gb": "snapshot_gb", "clone_gb": "clone_gb", "replication_gb": "replication_gb", "extra_iops": "extra_iops",
    "log_iops": "log_iops", "hot_spares_min": "hot_spares_minimum", "arrays_max": "arrays_per_copy_maximum", "rank": "ranking",
}  # fmt: skip
RANKINGS = ("arrays", "drives", "price")
EXIT_NOTHING_FITS = 1
FOOTER = (
    "Capacities are decimal GB, as drives are sold. The planner's formula (drives x IOPS per drive / write cost, half of "
    f"the I/O reads) is off by 20 % on average against published arrays. Method: {SOURCE}."
)


def select(
    requirements: Annotated[
        Path | None, typer.Argument(metavar="REQUIREMENTS.toml", help="Size this file and choose for it; options win.")
    ] = None,
    capacity_gib: Annotated[
        float | None, typer.Option(help="Capacity of one copy, 1024-based as `size` prints it.")
    ] = None,
    capacity_gb: Annotated[float | None, typer.Option(help="Capacity of one copy in decimal GB.")] = None,
    iops: Annotated[float | None, typer.Option(help="Database IOPS of all users, log IOPS not counted.")] = None,
    copies: Annotated[int | None, typer.Option(help="Copies of each database, the active one included.")] = None,
    databases: Annotated[
        int | None, typer.Option(help="Number of databases, to warn beyond the measured range.")
    ] = None,
    snapshot_gb: Annotated[float | None, typer.Option(help="Snapshot reserve of one copy, decimal GB.")] = None,
    clone_gb: Annotated[float | None, typer.Option(help="Space for clones, decimal GB.")] = None,
    replication_gb: Annotated[float | None, typer.Option(help="Space for array replication, decimal GB.")] = None,
    extra_iops: Annotated[float | None, typer.Option(help="IOPS of mobile, search and other clients.")] = None,
    log_iops: Annotated[
        float | None, typer.Option(help="Log IOPS; added only where a catalogue excludes them.")
    ] = None,
    raid: Annotated[list[str] | None, typer.Option(help='RAID level allowed, such as "RAID 50"; repeatable.')] = None,
    drive_class: Annotated[list[str] | None, typer.Option(help='Drive class, such as "SAS 15k"; repeatable.')] = None,
    hot_spares_min: Annotated[int, typer.Option(help="Hot spares each array must have.")] = 1,
    arrays_max: Annotated[int | None, typer.Option(help="Most arrays one copy may span.")] = None,
    rank: Annotated[str, typer.Option(help="Best means fewest: arrays, drives or price.")] = "arrays",
    catalogue: Annotated[
        list[str] | None, typer.Option(help='Catalogue file, repeatable; "shipped" is the built-in one.')
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the result as an HTML page.")] = None,
) -> None:
    """Choose an array in six steps; every other one comes with the reason why not.

    Example: plimsoll select --capacity-gib 15768 --iops 900 --copies 2 --databases 12
    """
    rows, errors = _read_catalogues(catalogue or [SHIPPED])
    options = {key: value for key, value in locals().items() if key not in ("rows", "errors")}
    sized, requirement_errors = _sized_need(requirements)
    errors += requirement_errors + _option_errors(options, rows, requirements)
    if errors:
        refuse(errors)
    need = _need(options, sized)
    selection = select_arrays(need, rows, read_drive_classes())
    if html:
        try:
            write_html(html, "Array selection", selection_sections(selection), FOOTER)
        except InputError as error:
            refuse([error])
    if as_json:
        typer.echo(json.dumps(selection_json(selection), indent=2))
    else:
        print_sections(selection_sections(selection))
    if selection.chosen is None:
        raise typer.Exit(EXIT_NOTHING_FITS)


def _sized_need(requirements: Path | None) -> tuple[Need | None, list[InputError]]:
    """The need of a requirements file, sized only when one is given."""
    if requirements is None:
        return None, []
    from plimsoll.advice.requirement_facts import need_of, sized

    try:
        return need_of(sized(requirements)), []
    except InputError as error:
        return None, [error]


def _need(options: dict[str, Any], sized: Need | None) -> Need:
    """The need the options state, laid over the one the requirements give."""
    need = sized or Need(volumes_gb=0.0, database_iops=0.0)
    stated: dict[str, Any] = {
        NEED_KEYS[key]: value for key, value in options.items() if key in NEED_KEYS and value is not None
    }
    if options["capacity_gib"] is not None:
        stated["volumes_gb"] = options["capacity_gib"] * GB_PER_GIB
    if options["raid"]:
        stated["raid_levels"] = tuple(level for level in RAID_LEVELS if level in options["raid"])
    return replace(need, **stated, drive_classes=tuple(options["drive_class"] or ()))


def _read_catalogues(names: list[str]) -> tuple[list[ArrayRow], list[InputError]]:
    rows: list[ArrayRow] = []
    errors: list[InputError] = []
    for name in names:
        try:
            rows += read_catalogue(SHIPPED_CATALOGUE if name == SHIPPED else Path(name)).rows
        except InputError as error:
            errors.append(error)
    return rows, errors


def _option_errors(options: dict[str, Any], rows: list[ArrayRow], requirements: Path | None) -> list[InputError]:
    """Every option out of range, at once."""
    mistakes: list[Mistake] = []
    capacities = (options["capacity_gb"] is not None) + (options["capacity_gib"] is not None)
    if capacities == 2 or (capacities == 0 and requirements is None):
        message = "is needed once" if options["capacity_gb"] is None else "is given in two units"
        hint = "give a requirements file, --capacity-gib (1024-based, as `plimsoll size` prints it) or --capacity-gb (decimal)"
        mistakes.append(Mistake(0, "--capacity-gib", message, hint))
    if options["iops"] is None and requirements is None:
        mistakes.append(Mistake(0, "--iops", "is missing", "give the database IOPS, for instance --iops 900"))
    limits = {
        "capacity_gib": (1e-3, 1e9), "capacity_gb": (1e-3, 1e9), "iops": (0, 1e8), "snapshot_gb": (0, 1e9),
        "clone_gb": (0, 1e9), "replication_gb": (0, 1e9), "extra_iops": (0, 1e8), "log_iops": (0, 1e8), "copies": (1, 16),
        "databases": (1, 100_000), "hot_spares_min": (0, 100), "arrays_max": (1, 10_000),
    }  # fmt: skip
    for key, (low, high) in limits.items():
        value = options[key]
        if value is not None and not low <= value <= high:
            mistakes.append(
                Mistake(
                    0, _option(key), f"is {value}, but must lie between {low:g} and {high:g}", "check sign and unit"
                )
            )
    known = {"raid": RAID_LEVELS, "drive_class": tuple({row.drive_class for row in rows}), "rank": RANKINGS}
    for key, names in known.items():
        given = [options[key]] if isinstance(options[key], str) else options[key] or []
        mistakes += [
            Mistake(0, _option(key), f'is "{name}", which is unknown', nearest_names(name, names))
            for name in given
            if names and name not in names
        ]
    return [InputError("options", mistakes)] if mistakes else []


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def selection_json(selection: Selection) -> dict[str, Any]:
    """The result as plain data; keys carry their units."""
    return {
        "kind": "selection",
        "schema_version": 1,
        "required_capacity_gb": selection.required_gb,
        "required_iops": selection.required_iops,
        "need": asdict(selection.need),
        "chosen": _candidate_json(selection.chosen) if selection.chosen else None,
        "candidates": [_candidate_json(candidate) for candidate in selection.candidates],
        "steps": [asdict(step) for step in selection.steps],
        "caveats": list(selection.caveats),
        "source": SOURCE,
    }


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    row = asdict(candidate.row)
    row.pop("conditions")
    figures = {key: value for key, value in asdict(candidate).items() if key not in ("row", "model_absence")}
    return row | figures | {"modelled": _modelled_json(candidate)}


def _modelled_json(candidate: Candidate) -> dict[str, Any]:
    """What the model says of the arrays of one copy, or why it says nothing."""
    rate = modelled_rate(candidate.row.model, candidate.row.raid)
    if rate is None:
        return {"iops_per_copy": None, "status": "not_evaluated", "reason": candidate.model_absence}
    iops = rate.iops * candidate.arrays_per_copy
    reason = f"point {rate.point} of `plimsoll papers`, for each array, reads at 18.5 ms"
    return {"iops_per_copy": iops, "status": "modelled", "reason": reason, "band_percent": rate.band_percent}


def selection_sections(selection: Selection) -> list[Section]:
    """The result as sections for the terminal and the HTML page."""
    need, chosen = selection.need, selection.chosen
    if chosen:
        price = "" if chosen.price_total_usd is None else f", {chosen.price_total_usd:,.2f} USD"
        answer = [f"{chosen.arrays_total} x {chosen.row.title}{price}", chosen.reason]
    else:
        answer = ["No row of the catalogue can serve this need; the table says why for each."]
    steps = Section("Steps", (), ("Step >", "What", "How"), [(str(s.number), s.title, s.text) for s in selection.steps])
    columns = ("", "Array", "Usable GB >", "Arrays >", "Published >", "Formula >", "Model >", "Why")
    rows = [
        (
            candidate.status,
            candidate.row.title,
            f"{candidate.row.usable_capacity_gb:,.0f}",
            f"{candidate.arrays_per_copy} x {need.copies}",
            _number(candidate.iops_per_copy, "not published"),
            _number(candidate.planner_iops_per_copy, "no rule"),
            _number(_modelled_json(candidate)["iops_per_copy"], "no preset"),
            candidate.reason,
        )
        for candidate in selection.candidates
    ]
    candidates = Section(
        "Candidates",
        (
            "Published, formula and model are IOPS of one copy's arrays. The formula is the planner's rule, which ignores caches.",
            "No rule: the drive class has no planning figure. Model: MODELLED, not measured, where a preset stands for the "
            f"array; the band is {band_percent('database_iops'):.0f} % either way.",
        ),
        columns,
        rows,
        frozenset({0} if chosen else ()),
    )
    caveats = [Section("Mind", [f"- {caveat}" for caveat in selection.caveats])] if selection.caveats else []
    return [Section("Choice", answer), *caveats, steps, candidates]


def _number(value: float | None, absent: str) -> str:
    return absent if value is None else f"{value:,.0f}"
