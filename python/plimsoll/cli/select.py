"""`plimsoll select`: which array, with which drives and RAID level, and how many, for a capacity
and an IOPS need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.sections import print_sections
from plimsoll.inputs.mistakes import Mistake
from plimsoll.pages.sections import Section, write_html

#: Options that are keys of the need under another or the same name.
NEED_KEYS = {
    "capacity_gib": "volumes_gb",
    "capacity_gb": "volumes_gb",
    "iops": "database_iops",
    "copies": "copies",
    "databases": "databases",
    "snapshot_gb": "snapshot_gb",
    "clone_gb": "clone_gb",
    "replication_gb": "replication_gb",
    "extra_iops": "extra_iops",
    "log_iops": "log_iops",
    "hot_spares_min": "hot_spares_minimum",
    "arrays_max": "arrays_per_copy_maximum",
}
EXIT_NOTHING_FITS = 1
FOOTER = (
    "Capacities are decimal GB, as drives are sold. The planner's formula (drives x IOPS per drive "
    "/ write cost, half of "
    f"the I/O reads) is off by 20 % on average against published arrays. Method: "
    f"{plimsoll.SELECTION_SOURCE}."
)


def select(
    requirements: Annotated[
        Path | None,
        typer.Argument(
            metavar="REQUIREMENTS.toml", help="Size this file and choose for it; options win."
        ),
    ] = None,
    capacity_gib: Annotated[
        float | None, typer.Option(help="Capacity of one copy, 1024-based as `size` prints it.")
    ] = None,
    capacity_gb: Annotated[
        float | None, typer.Option(help="Capacity of one copy in decimal GB.")
    ] = None,
    iops: Annotated[
        float | None, typer.Option(help="Database IOPS of all users, log IOPS not counted.")
    ] = None,
    copies: Annotated[
        int | None, typer.Option(help="Copies of each database, the active one included.")
    ] = None,
    databases: Annotated[
        int | None, typer.Option(help="Number of databases, to warn beyond the measured range.")
    ] = None,
    snapshot_gb: Annotated[
        float | None, typer.Option(help="Snapshot reserve of one copy, decimal GB.")
    ] = None,
    clone_gb: Annotated[float | None, typer.Option(help="Space for clones, decimal GB.")] = None,
    replication_gb: Annotated[
        float | None, typer.Option(help="Space for array replication, decimal GB.")
    ] = None,
    extra_iops: Annotated[
        float | None, typer.Option(help="IOPS of mobile, search and other clients.")
    ] = None,
    log_iops: Annotated[
        float | None, typer.Option(help="Log IOPS; added only where a catalogue excludes them.")
    ] = None,
    raid: Annotated[
        list[str] | None, typer.Option(help='RAID level allowed, such as "RAID 50"; repeatable.')
    ] = None,
    drive_class: Annotated[
        list[str] | None, typer.Option(help='Drive class, such as "SAS 15k"; repeatable.')
    ] = None,
    hot_spares_min: Annotated[int, typer.Option(help="Hot spares each array must have.")] = 1,
    arrays_max: Annotated[int | None, typer.Option(help="Most arrays one copy may span.")] = None,
    rank: Annotated[
        str, typer.Option(help="Best means fewest: arrays, drives or price.")
    ] = "arrays",
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            help='Catalogue file, repeatable; "shipped" is the built-in one of the 2020s, '
            '"equallogic_2010" that of the Dell paper.'
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole result as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write the result as an HTML page.")
    ] = None,
) -> None:
    """Choose an array in six steps; every other one comes with the reason why not.

    Example: plimsoll select --capacity-gib 15768 --iops 900 --copies 2 --databases 12
    """
    numbers: dict[str, float | None] = {
        "capacity_gib": capacity_gib,
        "capacity_gb": capacity_gb,
        "iops": iops,
        "snapshot_gb": snapshot_gb,
        "clone_gb": clone_gb,
        "replication_gb": replication_gb,
        "extra_iops": extra_iops,
        "log_iops": log_iops,
        "copies": copies,
        "databases": databases,
        "hot_spares_min": hot_spares_min,
        "arrays_max": arrays_max,
    }
    names = {"raid": raid or [], "drive_class": drive_class or [], "rank": [rank]}
    rows: list[Any] = []
    errors: list[plimsoll.InputError] = []
    for name in catalogue or [plimsoll.SHIPPED]:
        found, wrong = _gathered(plimsoll.read_catalogues, [name], [])
        rows, errors = rows + found, errors + wrong
    sized, more = (
        _gathered(plimsoll.need_of_requirements, requirements, None) if requirements else (None, [])
    )
    errors += more + _option_errors(numbers, names, rows, sized, is_sized=requirements is not None)
    if errors:
        refuse(errors)
    selection = plimsoll.select(_need(numbers, names, sized), rows)
    if html:
        try:
            write_html(html, "Array selection", selection_sections(selection), FOOTER)
        except plimsoll.InputError as error:
            refuse([error])
    if as_json:
        typer.echo(json.dumps(plimsoll.selection_json(selection), indent=2))
    else:
        print_sections(selection_sections(selection))
    if selection.chosen is None:
        raise typer.Exit(EXIT_NOTHING_FITS)


def _gathered(
    read: Callable[[Any], Any], what: Any, otherwise: Any
) -> tuple[Any, list[plimsoll.InputError]]:
    """What is read, or the mistakes in it, so that those of all inputs are told at once."""
    try:
        return read(what), []
    except plimsoll.SeveralInputsError as error:
        return otherwise, error.errors
    except plimsoll.InputError as error:
        return otherwise, [error]


def _need(
    numbers: Mapping[str, float | None],
    names: Mapping[str, list[str]],
    sized: plimsoll.Need | None,
) -> plimsoll.Need:
    """The need the options state, laid over the one the requirements give."""
    need = sized or plimsoll.Need(volumes_gb=0.0, database_iops=0.0)
    stated: Any = {
        NEED_KEYS[key]: value
        for key, value in numbers.items()
        if key in NEED_KEYS and value is not None
    }
    if (capacity_gib := numbers["capacity_gib"]) is not None:
        stated["volumes_gb"] = capacity_gib * plimsoll.GB_PER_GIB
    if raid := names["raid"]:
        known = [level for level in plimsoll.RAID_LEVELS if level in raid]
        stated["raid_levels"] = (*known, *(level for level in raid if level not in known))
    stated |= {"ranking": names["rank"][0], "drive_classes": tuple(names["drive_class"])}
    return replace(need, **stated)


def _option_errors(
    numbers: Mapping[str, float | None],
    names: Mapping[str, list[str]],
    rows: list[Any],
    sized: plimsoll.Need | None,
    *,
    is_sized: bool,
) -> list[plimsoll.InputError]:
    """Every option out of range, at once; a requirements file has told its own mistakes."""
    mistakes: list[Mistake] = []
    capacities = (numbers["capacity_gb"] is not None) + (numbers["capacity_gib"] is not None)
    if capacities == 2 or (capacities == 0 and not is_sized):
        message = "is needed once" if numbers["capacity_gb"] is None else "is given in two units"
        hint = (
            "give a requirements file, --capacity-gib (1024-based, as `plimsoll size` prints it) "
            "or --capacity-gb (decimal)"
        )
        mistakes.append(Mistake(0, "--capacity-gib", message, hint))
    if numbers["iops"] is None and not is_sized:
        mistakes.append(
            Mistake(0, "--iops", "is missing", "give the database IOPS, for instance --iops 900")
        )
    try:
        plimsoll.check_need(_need(numbers, names, sized), rows)
    except plimsoll.InputError as error:
        stated = {NEED_KEYS[key]: key for key, value in numbers.items() if value is not None}
        stated |= {"raid_levels": "raid", "drive_classes": "drive_class", "ranking": "rank"}
        mistakes += [
            replace(mistake, where=_option(stated[mistake.where]))
            for mistake in error.mistakes
            if mistake.where in stated
        ]
    return [plimsoll.InputError("options", mistakes)] if mistakes else []


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def selection_sections(selection: plimsoll.Selection) -> list[Section]:
    """The result as sections for the terminal and the HTML page."""
    need, chosen = selection.need, selection.chosen
    if chosen:
        price = "" if chosen.price_total_usd is None else f", {chosen.price_total_usd:,.2f} USD"
        answer = [f"{chosen.arrays_total} x {chosen.row.title}{price}", chosen.reason]
    else:
        answer = ["No row of the catalogue can serve this need; the table says why for each."]
    steps = Section(
        "Steps",
        (),
        ("Step >", "What", "How"),
        [(str(s.number), s.title, s.text) for s in selection.steps],
    )
    columns = ("", "Array", "Usable GB >", "Arrays >", "Published >", "Formula >", "Model >", "Why")
    rows = [
        (
            candidate.status,
            candidate.row.title,
            f"{candidate.row.usable_capacity_gb:,.0f}",
            f"{candidate.arrays_per_copy} x {need.copies}",
            _number(
                candidate.iops_per_copy if candidate.row.iops_basis == "published" else None,
                "not published",
            ),
            _number(candidate.planner_iops_per_copy, "no rule"),
            _number(
                plimsoll.modelled_of(candidate)["iops_per_copy"],
                candidate.row.preset or "no preset",
            ),
            candidate.reason,
        )
        for candidate in selection.candidates
    ]
    candidates = Section(
        "Candidates",
        (
            "Published, formula and model are IOPS of one copy's arrays. The formula is the "
            "planner's rule, which ignores caches.",
            "No rule: the drive class has no planning figure. Model: MODELLED, not measured, where "
            "the papers ran the array; a name is the preset for `plimsoll model`; "
            f"for one that was never calibrated the band is "
            f"{plimsoll.band_percent('database_iops'):.0f} % either way.",
        ),
        columns,
        rows,
        frozenset({0} if chosen else ()),
    )
    caveats = (
        [Section("Mind", [f"- {caveat}" for caveat in selection.caveats])]
        if selection.caveats
        else []
    )
    return [Section("Choice", answer), *caveats, steps, candidates]


def _number(value: float | None, absent: str) -> str:
    return absent if value is None else f"{value:,.0f}"
