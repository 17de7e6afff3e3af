"""What a repeated run came to, on the output."""

from __future__ import annotations

import json

import typer

import plimsoll


def show_series(found: plimsoll.Series, *, as_json: bool) -> None:
    """Every run, and the figures they have in common."""
    parent = found.folder
    if as_json:
        typer.echo(json.dumps({**found.content.plain(), "run_folder": str(parent)}, indent=2))
        return
    typer.echo("\n" + "\n".join(found.lines()))
    typer.echo(f"\nrun folders: {parent}/run-1 and so on")
    if found.report:
        typer.echo(f"report:      {found.report}")
