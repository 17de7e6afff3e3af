"""`plimsoll probe`: what is under a path, before anything is written there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import course
from plimsoll.storage import describe


def probe(
    path: Annotated[Path, typer.Argument(help="A directory or file; it need not exist yet.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Name the file system, the device and what about them a test must know. Never writes."""
    try:
        storage = describe(path)
    except OSError as error:
        course.stop_with(course.EXIT_USAGE, f"{path}: {error.strerror}")
    facts = storage.as_json()
    if as_json:
        typer.echo(json.dumps({**facts, "warnings": storage.warnings()}, indent=2))
        return
    for name, value in facts.items():
        shown = f"{value >> 20} MiB" if name in ("size_bytes", "free_bytes") else value
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        label = name.removesuffix("_bytes").replace("_", " ")
        typer.echo(f"  {label:<18}{'not known' if value is None else shown}")
    for warning in storage.warnings():
        typer.echo(f"  warning: {warning}")
