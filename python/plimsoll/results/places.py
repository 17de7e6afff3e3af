"""What databases are called in summary, verdict and report: the instance and the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.files.parquet import Row


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


def name_of(row: Row, names: Mapping[tuple[str, int], str]) -> str:
    """The name of the database that a row is of; that of its instance for the log, which is 0.

    Args:
        row: with `instance` and `database`.
        names: as from `names_of_databases`.
    """
    return names.get((row["instance"], row["database"]), row["instance"])
