"""From the files of a run folder to one self-contained HTML file that needs no network.

The verdict and its reasons come first, then the sections of the published test reports in their
order, then charts with a table behind each, then the circumstances and what was not measured.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.report.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """Load the page only for those who write one: tables in words need none of its libraries."""
    if name != "write_report":
        raise AttributeError(name)
    from plimsoll.report.page import write_report as found

    return found
