"""The document of a tested solution, written as HTML, PDF, DOCX and XLSX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.errors import MissingLibraryError
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.damage import reading
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath
from plimsoll.solution.solution import read_solution

if TYPE_CHECKING:
    from plimsoll.solution.document import Document

DOCUMENT_FORMATS = ("html", "pdf", "docx", "xlsx")


@dataclass(frozen=True)
class Written:
    """The files of a document.

    Attributes:
        paths: what was written.
        not_printed: why there is no PDF, where one was wanted.
    """

    paths: list[Path]
    not_printed: str | None = None


def write_solution(
    solution_file: StrPath, out: StrPath | None = None, formats: Sequence[str] = DOCUMENT_FORMATS
) -> Written:
    """Write the document of a tested solution.

    Tables 1 to 9, drawings, sizing, and the reports as appendices.

    Args:
        solution_file: the description of the solution; it names the run folders.
        out: the folder to write into; that of the description if left out.
        formats: some of `DOCUMENT_FORMATS`.

    Raises:
        InputError: with every mistake of the description.
        FolderError: files of a run are missing or damaged, or nothing can be written there.
        MissingLibraryError: a library that documents need is not installed.
    """
    solution_file = Path(solution_file)
    out = None if out is None else Path(out)
    try:
        from plimsoll.solution.document import document_of
    except ModuleNotFoundError as error:
        raise MissingLibraryError("a document", error.name) from error
    solution = read_solution(solution_file)
    with reading(*(run.path for runs in solution.runs.values() for run in runs)):
        document = document_of(solution)
        parent = out or solution_file.parent
        base = parent / solution_file.stem
        try:
            parent.mkdir(parents=True, exist_ok=True)
            sheets = []
            if "xlsx" in formats:
                from plimsoll.solution.write_xlsx import write_xlsx

                sheets = [base.with_suffix(".xlsx")]
                write_xlsx(solution, document, sheets[0])
            found = write_formats(document, base.with_suffix(".html"), formats)
            return Written([*found.paths, *sheets], found.not_printed)
        except OSError as error:
            why = system_reason(error)
            raise FolderError(
                f"{error.filename or parent}: {why}; name another folder with --out"
            ) from error


def write_formats(document: Document, page: Path, formats: Sequence[str]) -> Written:
    """A document as a page, and what is made of it; the page goes where nobody wanted it.

    Args:
        document: what every format shows.
        page: where the page is written; the others lie beside it with their own endings.
        formats: some of html, pdf and docx.

    Raises:
        OSError: nothing can be written there.
    """
    from plimsoll.solution.write_html import PrintError, page_of, print_pdf

    page.write_text(page_of(document), encoding="utf-8")
    written, not_printed = [page], None
    if "docx" in formats:
        from plimsoll.solution.write_docx import write_docx

        written.append(page.with_suffix(".docx"))
        write_docx(document, written[-1])
    if "pdf" in formats:
        try:
            print_pdf(page, page.with_suffix(".pdf"))
            written.append(page.with_suffix(".pdf"))
        except PrintError as error:
            not_printed = str(error)
    if "html" not in formats and "pdf" not in formats:
        page.unlink()
        written.remove(page)
    return Written(written, not_printed)
