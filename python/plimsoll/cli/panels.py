"""Help in panels: the options that only this command has come first, then those it shares with
others, each group under a heading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

OWN = "Options of this test"


class PanelCommand(TyperCommand):
    """A command whose help lists its options by panel."""

    #: The heading of each shared parameter; what is not in it is the command's own.
    panel_of: Mapping[str, str] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], OWN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                heading = (
                    "Arguments" if is_argument else self.panel_of.get(parameter.name or "", OWN)
                )
                panels.setdefault(heading, []).append(record)
        for heading, records in panels.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def in_panels(panel_of: Mapping[str, str]) -> type[PanelCommand]:
    """The kind of a command whose parameters of these names stand under these headings."""
    return type("CommandInPanels", (PanelCommand,), {"panel_of": panel_of})
