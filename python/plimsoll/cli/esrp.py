"""`plimsoll esrp`: a description of a solution and its runs to a document: HTML, PDF, DOCX and XLSX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.terminal import say, stop_with
from plimsoll.inputs.mistakes import InputError

FORMATS = ("html", "pdf", "docx", "xlsx")


def esrp(
    solution_file: Annotated[Path, typer.Argument(metavar="SOLUTION.toml", help="The description of the solution.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write into; that of the description if left out.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--formats", help="Which of html, pdf, docx and xlsx, with commas between.")
    ] = "html,pdf,docx,xlsx",
) -> None:
    """Write the document of a tested solution: tables 1 to 9, drawings, sizing, and the reports as appendices.

    Example: plimsoll esrp examples/esrp/solution.toml --out /tmp/solution
    """
    try:
        from plimsoll.solution.document import document_of
        from plimsoll.solution.solution import read_solution
        from plimsoll.solution.write_html import PrintError, page_of, print_pdf
    except ModuleNotFoundError as error:
        stop_with(
            exit_codes.USAGE, f"{error.name} is not installed, which documents need: pip install 'plimsoll[report]'"
        )
    wanted = [word.strip().lower() for word in formats.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in FORMATS]
    if unknown or not wanted:
        stop_with(exit_codes.USAGE, f"--formats {formats}: write some of {', '.join(FORMATS)}")
    try:
        solution = read_solution(solution_file)
    except InputError as error:
        refuse([error])
    with reading(*(run.path for runs in solution.runs.values() for run in runs)):
        document = document_of(solution)
        parent = out or solution_file.parent
        base = parent / solution_file.stem
        try:
            parent.mkdir(parents=True, exist_ok=True)
            page = base.with_suffix(".html")
            page.write_text(page_of(document), encoding="utf-8")
            written = [page]
            if "xlsx" in wanted:
                from plimsoll.solution.write_xlsx import write_xlsx

                written.append(base.with_suffix(".xlsx"))
                write_xlsx(solution, document, written[-1])
            if "docx" in wanted:
                from plimsoll.solution.write_docx import write_docx

                written.append(base.with_suffix(".docx"))
                write_docx(document, written[-1])
            if "pdf" in wanted:
                print_pdf(page, base.with_suffix(".pdf"))
                written.append(base.with_suffix(".pdf"))
        except PrintError as error:
            say(f"warning: no PDF was written: {error}")
        except OSError as error:
            stop_with(
                exit_codes.USAGE,
                f"{error.filename or parent}: {(error.strerror or str(error)).lower()}; name another folder with --out",
            )
    if "html" not in wanted and "pdf" not in wanted:
        page.unlink()
        written.remove(page)
    for path in written:
        print(path)
