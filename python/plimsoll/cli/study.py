"""`plimsoll study`: variants of one base under the same load, ranked, with the confidence of each
difference.

Modelled variants run several at once in processes of their own; real ones strictly one after
another, because two loads on one storage measure each other. A study that was interrupted or killed
goes on where it stopped when it is started again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, say, stop_with, warn


def study(
    study_file: Annotated[
        Path, typer.Argument(help='A TOML file with kind = "study".', metavar="STUDY.toml")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the study; runs/study-NAME if left out.", metavar="DIR"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Modelled variants at once; the processors if left out."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree to long and large runs beforehand.")
    ] = False,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the variants; write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result (or the variants) as JSON.")
    ] = False,
    document: Annotated[
        str,
        typer.Option(
            "--document",
            help="Also write a document: some of html, pdf and docx, with commas between.",
            metavar="FORMATS",
        ),
    ] = "",
) -> None:
    """Carry out a study, or the rest of one that was interrupted, and rank its variants.

    Exits with 0 when every variant came to its end, 2 when the file or the folder is wrong, 3 when
    a variant could not be carried out, 4 when it was interrupted; the rest is done when it is
    started again.

    Example: plimsoll study examples/studies/raid_type.toml
    """
    formats = [word.strip().lower() for word in document.split(",") if word.strip()]
    known = plimsoll.STUDY_DOCUMENT_FORMATS
    if any(word not in known for word in formats):
        stop_with(exit_codes.USAGE, f"--document {document}: write some of {', '.join(known)}")
    try:
        wanted = plimsoll.read_study(study_file)
    except plimsoll.InputError as error:
        refuse([error])
    if dry_run:
        _show_variants(wanted, as_json=as_json)
        return
    listener = showing(quiet=True)
    with refusing():
        _agree(
            wanted,
            agreed=yes,
            create=create,
            allow_system_disk=allow_system_disk,
            listener=listener,
        )
        found = plimsoll.carry_out_study(
            wanted,
            study_file,
            out,
            jobs=jobs,
            create=create,
            allow_system_disk=allow_system_disk,
            listener=listener,
        )
    _show(found, as_json=as_json)
    if formats:
        with refusing(plimsoll.FolderError, plimsoll.MissingLibraryError):
            written = plimsoll.write_study_document(wanted, found, formats)
        if written.not_printed:
            warn(f"no PDF was written: {written.not_printed}")
        for path in written.paths:
            say(f"document:     {path}")
    if found.interrupted:
        say("interrupted; start it again to go on where it stopped")
    raise typer.Exit(found.exit_code)


def _show_variants(wanted: plimsoll.Study, *, as_json: bool) -> None:
    """What would be carried out."""
    rows = [
        {
            "name": variant.name,
            "kind": "real" if variant.is_real else "modelled",
            "settings": variant.settings,
            "runs": wanted.repeat,
        }
        for variant in wanted.variants
    ]
    if as_json:
        typer.echo(
            json.dumps({"schema_version": 1, "name": wanted.name, "variants": rows}, indent=2)
        )
        return
    typer.echo(f"{wanted.name}: {len(rows)} variants, ranked by {wanted.rank_by}")
    for variant, row in zip(wanted.variants, rows, strict=True):
        settings = "; ".join(f"{key} = {value}" for key, value in variant.settings.items())
        typer.echo(
            f"  {variant.name}: {row['kind']}, {wanted.repeat} runs; {settings or 'as the base'}"
        )


def _agree(
    wanted: plimsoll.Study,
    *,
    agreed: bool,
    create: bool,
    allow_system_disk: bool,
    listener: plimsoll.Listener,
) -> None:
    """Check every real variant, and ask where all of them together take long."""
    seconds, times = 0.0, wanted.repeat
    for _, found, takes in plimsoll.check_study(
        wanted, create=create, allow_system_disk=allow_system_disk, listener=listener
    ):
        options.ask_before_much(takes.plan, found, agreed=agreed, times=times)
        seconds += takes.seconds * times
    if seconds > plimsoll.LARGE_S and not agreed:
        words = plimsoll.duration_in_words(seconds)
        stop_with(
            exit_codes.USAGE, f"all real variants together take about {words}; give --yes to agree"
        )


def _show(found: plimsoll.StudyResult, *, as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps(
                {**found.content.plain(), "study_folder": str(found.folder)},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    typer.echo("\n".join(found.lines()))
    typer.echo(f"\nstudy folder: {found.folder}")
    if found.report:
        typer.echo(f"report:       {found.report}")
