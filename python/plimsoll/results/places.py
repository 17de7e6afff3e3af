"""What databases are called in summary, verdict and report: the instance and the file."""

from __future__ import annotations

from pathlib import Path

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import InstanceSpec


def database_name(instance: InstanceSpec, number: int) -> str:
    """The name of a database of an instance, counted from 1."""
    return f"{instance.name}/{Path(instance.databases[number - 1].file_name).stem}"


def names_of_databases(plan: Plan) -> dict[tuple[str, int], str]:
    """The names of all databases of a plan, by instance and number."""
    return {
        (instance.name, number): database_name(instance, number)
        for instance in plan.run.instances
        for number in range(1, len(instance.databases) + 1)
    }
