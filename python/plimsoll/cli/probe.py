"""`plimsoll probe`: what is under a path, before anything is written there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll.cli.terminal import refusing


def probe(
    path: Annotated[
        Path, typer.Argument(help="A directory, file or block device; it need not exist yet.")
    ],
    portal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Ask this iSCSI portal whether large packets reach it whole. May be repeated.",
        ),
    ] = None,
    packet_bytes: Annotated[
        int,
        typer.Option(
            "--packet-bytes", min=576, max=65_000, help="Size of these packets, as an MTU has it."
        ),
    ] = 9000,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    try_out: Annotated[
        bool,
        typer.Option(
            "--try",
            help="Also try what it honours, such as locks and renames, in a directory of its own.",
        ),
    ] = False,
) -> None:
    """Name the file system, the device, the way to it, and what about them a test must know.

    Writes nothing unless --try is given. To a portal it sends echo requests that may not be
    fragmented.

    Example: plimsoll probe /mnt/array --portal 10.0.0.5 --portal 10.0.0.6
    """
    with refusing(plimsoll.StorageError):
        found = plimsoll.probe(path)
        trials = plimsoll.try_share(path) if try_out else []
    facts = found.facts | {"share": trials} if try_out else found.facts
    ways = [plimsoll.path_mtu(address, packet_bytes) for address in portal or []]
    sessions, multipath = plimsoll.iscsi_sessions(), plimsoll.multipath_devices()
    if as_json:
        reached = [{**asdict(way), "is_whole": way.is_whole} for way in ways]
        network = {"iscsi": sessions, "multipath": multipath, "portals": reached}
        typer.echo(json.dumps({**facts, **network}, indent=2))
        return
    _lines(
        "path",
        {
            "path": facts["path"],
            "looked_at": facts["looked_at"],
            "exists": facts["exists"],
            "writable": facts["writable"],
            "lockable_memory_bytes": facts["lockable_memory_bytes"],
        },
    )
    _lines("file system", facts["file_system"] or {})
    _lines("device", facts["device"] or {})
    _lines("direct io", facts["direct_io"])
    for trial in trials:
        said = "honoured" if trial["honoured"] else f"not honoured: {trial['said']}"
        typer.echo(f"  {trial['name']:<26}{said}")
    kind = facts["storage_class"]
    _lines("class of storage", {"class": kind["title"], "means": kind["meaning"]})
    for layer in kind["layers"]:
        typer.echo(f"  {layer['name'].replace('_', ' '):<26}{layer['evidence']}")
    for method in facts["methods"]:
        verdict = method["refusal"] or "; ".join(["works", *method["remarks"]])
        typer.echo(f"  {method['name']:<26}{verdict}")
    for session in sessions:
        _lines(f"iSCSI {session['name']}", {k: v for k, v in session.items() if k != "name"})
    for device in multipath:
        _lines(f"multipath {device['name']}", {k: v for k, v in device.items() if k != "name"})
    for warning in found.warnings:
        typer.echo(f"  warning: {warning}")
    for way in ways:
        typer.echo(f"  {'' if way.is_whole else 'warning: '}{way.in_words()}")


def _lines(title: str, values: Mapping[str, object]) -> None:
    """A group of names and values, unknown ones included."""
    typer.echo(title)
    for name, value in values.items():
        if name.endswith("_bytes") and isinstance(value, int) and value >= 1 << 20:
            shown = f"{value >> 20:,} MiB"
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, list):
            shown = ", ".join(map(str, value)) or "none"
        else:
            shown = "not known" if value is None else str(value)
        typer.echo(f"  {name.removesuffix('_bytes').replace('_', ' '):<26}{shown}")
