"""The facts rules may refer to, drawn from a requirements file and the sizing that follows from it.

Every key of the file is a fact by its dotted name (`copies.count`, `network.flow_control`), unless
it was left out and has no default; every figure of the sizing is one by its own name
(`database_iops`, `log_space_days`). The same figures feed the array choice and the suggestions.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path

from plimsoll.advice.engine import Subject
from plimsoll.advice.suggestions import Figures
from plimsoll.inputs.expression import Fact
from plimsoll.sizing.design import Sizing, size
from plimsoll.sizing.need import need_of
from plimsoll.sizing.requirements import Requirements, read_requirements

DESCRIBED = frozenset({"requirements"})
TABLES = (
    "users",
    "transactions",
    "copies",
    "databases",
    "logs",
    "backup",
    "storage",
    "network",
    "server",
)


def sized(path: Path) -> Sizing:
    """Read a requirements file and size it.

    Raises:
        InputError: with every mistake in the file.
    """
    return size(read_requirements(path))


def requirement_subject(sizing: Sizing, file_name: str) -> Subject:
    """The requirements and their sizing as one subject."""
    facts: dict[str, Fact] = {step.name: step.value for step in sizing.steps}
    facts |= _table_facts(sizing.requirements)
    return Subject(
        "requirements", sizing.requirements.title or Path(file_name).name, facts, file_name
    )


def _table_facts(requirements: Requirements) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"edition": requirements.edition}
    for name in TABLES:
        table = getattr(requirements, name)
        if is_dataclass(table):
            stated = {f"{name}.{entry.name}": getattr(table, entry.name) for entry in fields(table)}
            facts |= {key: value for key, value in stated.items() if value is not None}
    facts["storage.measured_iops_stated"] = "storage.measured_iops" in facts
    return facts


def figures_of(sizing: Sizing) -> Figures:
    """What the suggestions rest on."""
    memory = sizing.results.get("server_memory_gb")
    return Figures(
        need_of(sizing), memory.value if memory else None, sizing.requirements.server.memory_gb
    )
