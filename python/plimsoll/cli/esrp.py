"""`plimsoll esrp`: a description of a solution and its runs to a document.

HTML, PDF, DOCX and XLSX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.terminal import refusing, stop_with, warn


def esrp(
    solution_file: Annotated[
        Path, typer.Argument(metavar="SOLUTION.toml", help="The description of the solution.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write into; that of the description if left out."),
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--formats", help="Which of html, pdf, docx and xlsx, with commas between."),
    ] = "html,pdf,docx,xlsx",
) -> None:
    """Write the document of a tested solution.

    Tables 1 to 9, drawings, sizing, and the reports as appendices.

    Example: plimsoll esrp examples/esrp/solution.toml --out /tmp/solution
    """
    wanted = [word.strip().lower() for word in formats.split(",") if word.strip()]
    known = plimsoll.DOCUMENT_FORMATS
    if not wanted or any(word not in known for word in wanted):
        stop_with(exit_codes.USAGE, f"--formats {formats}: write some of {', '.join(known)}")
    try:
        with refusing(plimsoll.FolderError, plimsoll.MissingLibraryError):
            found = plimsoll.write_solution(solution_file, out, wanted)
    except plimsoll.InputError as error:
        refuse([error])
    if found.not_printed:
        warn(f"no PDF was written: {found.not_printed}")
    for path in found.paths:
        print(path)
