"""`python tests/imports/write_examples.py`.

Write the result pages of `examples/esrp` from the published figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

from plimsoll.imports.jetstress.report_html import page_of
from plimsoll.imports.report_model import sections_of
from tests.support.published import REPORTS

NAMES = {
    "appendix_b": "stress",
    "appendix_c": "performance",
    "appendix_d": "max_iops",
    "appendix_e": "backup",
    "appendix_f_replay": "recovery",
    "appendix_f_generation": "log_generation",
}


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        f"{NAMES[name]}.html": page_of("Test Result Report", sections_of(report()))
        for name, report in REPORTS.items()
    }


if __name__ == "__main__":
    folder = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "examples" / "esrp"
    )
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
