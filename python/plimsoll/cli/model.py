"""`plimsoll model`: what an array would carry, in seconds.

Touches no disk; everything it prints is MODELLED.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

import plimsoll
from plimsoll import settings
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.terminal import reading_plan
from plimsoll.inputs.mistakes import Mistake, nearest_names


def model(
    array: Annotated[
        str | None,
        typer.Argument(
            metavar="ARRAY", help="A preset, FILE.toml or FILE.toml#NAME; the presets if left out."
        ),
    ] = None,
    databases: Annotated[
        int, typer.Option(help="Databases, each with a log volume of its own.", min=1, max=100)
    ] = 2,
    size_mib: Annotated[
        int | None, typer.Option(help="Size of each; six tenths of the array in all, if left out.")
    ] = None,
    sessions: Annotated[
        int | None, typer.Option(help="Only this many sessions for each database.", min=1)
    ] = None,
    edition: Annotated[
        str,
        typer.Option(
            help="Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, or as "
            "derived from it 2016 and 2019."
        ),
    ] = "2010",
    change: Annotated[
        list[str] | None,
        typer.Option(
            help="A figure of the array: level='RAID 10', sets=[8]. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the curve as JSON.")] = False,
) -> None:
    """Show how rate and latency of an array go with the load, where the limit is reached, and what
    gives way first.

    The light workload stands for the engine; `plimsoll test performance --modelled ARRAY` runs the
    engine itself.

    Example: plimsoll model nearline-raid6 --change "level='RAID 10'"
    """
    if array is None:
        for name, row in plimsoll.shipped_arrays().items():
            typer.echo(f"{name:<22} {row['title']}")
        return
    if edition not in settings.editions():
        refuse(
            [
                plimsoll.InputError(
                    "options",
                    [
                        Mistake(
                            0,
                            "--edition",
                            f'is "{edition}"',
                            nearest_names(edition, settings.editions()),
                        )
                    ],
                )
            ]
        )
    with reading_plan():
        found = plimsoll.model(
            array,
            changes=plimsoll.parse_changes(change),
            databases=databases,
            size_mib=size_mib,
            sessions=sessions,
            edition=edition,
        )
    typer.echo(json.dumps(found.plain(), indent=2) if as_json else "\n".join(_lines(found)))


def _lines(found: plimsoll.ModelledCurve) -> list[str]:
    points, burst = found.points, found.burst
    lines = [plimsoll.MODELLED_WARNING + ".", found.array, ""]
    if burst:
        lines.append("in the long run, when the burst credits are used up:")
    lines += _curve(points)
    if burst:
        minutes = burst.lasts_s / 60
        lines += [
            "",
            f"as long as full credits last, {minutes:,.0f} minutes at the highest rate:",
            *_curve(burst.points),
        ]
    lines += ["", _limit_sentence(found)]
    formula = found.formula_iops
    no_rule = "planner's formula: no rule for these drives"
    lines.append(
        no_rule if formula is None else f"planner's formula: {formula:,.0f}{found.formula_remark}"
    )
    nearest = found.nearest_validated_point
    lines.append(
        f"nearest validated point: {nearest.id}, {nearest.how}, IOPS off by "
        f"{nearest.error_percent:+.1f} %"
    )
    if found.neighbours_wanted_iops:
        lines += _neighbours(found)
    return lines


def _curve(points: Sequence[plimsoll.CurvePoint]) -> list[str]:
    rows = ["sessions/db     IOPS  reads ms  writes ms   log ms  busiest stage"]
    for point in points:
        rows.append(
            f"{point.sessions:>11} {point.iops:>8,.0f} {point.read_ms:>9.2f} "
            f"{point.write_ms:>10.2f} "
            f"{point.log_write_ms:>8.2f}  {point.busiest}, {point.utilisation:.0%}"
        )
        if point.neighbour_iops:
            rows[-1] += f", {point.neighbour_utilisation:.0%} for neighbours"
    return rows


def _neighbours(found: plimsoll.ModelledCurve) -> list[str]:
    """What neighbours made of what they wanted along the curve, and that nothing published had
    any.
    """
    made = [point.neighbour_iops for point in found.points]
    wanted, least = found.neighbours_wanted_iops, min(made)
    lines = [
        f"neighbours: {max(made):,.0f} of {wanted:,.0f} IOPS next to the lightest load, "
        f"{least:,.0f} next to the heaviest"
        if len(made) > 1
        else f"neighbours: {least:,.0f} of {wanted:,.0f} IOPS"
    ]
    return [*lines, "no published result had neighbours: the band says nothing of them"]


def _limit_sentence(found: plimsoll.ModelledCurve) -> str:
    """Where the limit is met, or why that cannot be said."""
    points, limit, within = (
        found.points,
        found.iops_at_20_ms,
        f"within {found.band_percent:.0f} % either way",
    )
    if limit is not None:
        return f"database IOPS at reads of 20 ms: {limit:,.0f}, {within}"
    if len(points) == 1 and points[0].sessions > 1:
        return f"rates are {within}; leave --sessions out for the rate at reads of 20 ms"
    if points[0].read_ms > plimsoll.MODEL_LIMIT_MS:
        return (
            f"reads take more than 20 ms even with a single session for each database; rates are "
            f"{within}"
        )
    return (
        f"reads stay below 20 ms, where more sessions bring nothing more: {points[-1].iops:,.0f} "
        f"database IOPS, {within}"
    )
