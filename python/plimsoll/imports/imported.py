"""What becomes of a configuration of another tool that means one test: a plan, and what has to be
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Imported:
    """A plan made of a configuration.

    Attributes:
        text: the plan file.
        mapped: path of each field that was translated, with the key it became.
        kept: path of each field without effect here, with the reason.
        remarks: what the user has to look at.
    """

    text: str
    mapped: dict[str, str]
    kept: dict[str, str]
    remarks: list[str]
