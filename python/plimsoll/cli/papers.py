"""`plimsoll papers`: every published result beside what the modelled array makes of it.

Touches no disk.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

import plimsoll
from plimsoll import InputError
from plimsoll.cli.input_errors import refuse
from plimsoll.inputs.mistakes import Mistake, nearest_names


def papers(
    point: Annotated[
        list[str] | None, typer.Argument(help="Only these points; all of them when left out.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of figures as JSON.")
    ] = False,
) -> None:
    """Run the published points on the modelled arrays and show published, modelled and error.

    Example: plimsoll papers emc-3-threads
    """
    points = plimsoll.read_points()
    wrong = [name for name in point or [] if name not in points]
    if wrong:
        refuse(
            [
                InputError(
                    "options",
                    [
                        Mistake(
                            0,
                            "point",
                            f'is "{name}", no published point',
                            nearest_names(name, points),
                        )
                        for name in wrong
                    ],
                )
            ]
        )
    results = plimsoll.run_papers(point or [])
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results], indent=2))
        return
    typer.echo("MODELLED, not measured.")
    for row in plimsoll.papers_table(results):
        typer.echo(f"{row[0]:<26} {row[1]:<34} {row[2]:>10} {row[3]:>10} {row[4]:>9}  {row[5]}")
    for line in plimsoll.papers_summary(results):
        typer.echo(line)
