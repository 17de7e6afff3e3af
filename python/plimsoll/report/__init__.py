"""From the files of a run folder to one self-contained HTML file that needs no network.

The verdict and its reasons come first, then the sections of the published test reports in their order, then charts with
a table behind each, then the circumstances and what was not measured.
"""

from plimsoll.report.page import write_report

__all__ = ["write_report"]
