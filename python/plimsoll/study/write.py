"""The document of a study, written as HTML, PDF and DOCX into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plimsoll.errors import MissingLibraryError
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.folder import FolderError
from plimsoll.solution.write import Written, write_formats
from plimsoll.study.description import Study

if TYPE_CHECKING:
    from plimsoll.study.conduct import StudyResult

STUDY_DOCUMENT_FORMATS = ("html", "pdf", "docx")
#: Without its ending, in the folder of the study; `report.html` there is the page with tables that
#: can be sorted and charts that can be asked.
DOCUMENT = "document"


def write_study_document(
    wanted: Study, found: StudyResult, formats: Sequence[str] = STUDY_DOCUMENT_FORMATS
) -> Written:
    """Write the document of a study that was carried out.

    Executive summary, key findings with the figures they rest on, method, environment, results with
    charts, and every figure in appendices.

    Args:
        wanted: as from `read_study`.
        found: as from `carry_out_study`.
        formats: some of `STUDY_DOCUMENT_FORMATS`.

    Raises:
        FolderError: nothing can be written there.
        MissingLibraryError: a library that documents need is not installed.
    """
    try:
        from plimsoll.study.document import document_of
    except ModuleNotFoundError as error:
        raise MissingLibraryError("a document", error.name) from error
    document = document_of(wanted, found.content, found.folder)
    page = found.folder / f"{DOCUMENT}.html"
    try:
        return write_formats(document, page, formats)
    except OSError as error:
        why = system_reason(error)
        raise FolderError(f"{error.filename or page}: {why}") from error
