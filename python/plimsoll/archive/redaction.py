"""A copy of a run folder without the names of hosts, users, disks, paths and addresses.

Only kinds of files that are understood are copied: JSON, logs and notes as text, samples and
distributions column by column. Pages are not rewritten but made again from the redacted files,
because in a page a name may be broken in two; where that is not possible they are left out. What is
left out is said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from plimsoll.archive.archive import PackError, files_below
from plimsoll.archive.pseudonyms import Names
from plimsoll.files import folder, parquet

JSON_SUFFIXES, TEXT_SUFFIXES, TABLE_SUFFIXES = (
    (".json",),
    (".log", ".toml", ".txt", ".md", ".csv"),
    (".parquet",),
)
PAGE = ".html"
#: Columns that hold no names.
PLAIN_KINDS = ("BIGINT", "BOOLEAN", "DOUBLE", "FLOAT", "HUGEINT", "INTEGER", "UBIGINT", "UINTEGER")


def redacted_copy(home: Path, target: Path) -> tuple[Names, list[str]]:
    """Copy a folder without names; pages are left to the caller.

    Args:
        home: the folder of a run, or of several.
        target: an empty folder.

    Returns:
        The names and their pseudonyms, and the files that were left out.

    Raises:
        PackError: a file is damaged, so that nobody can tell what is in it.
    """
    names = Names()
    problems: list[str] = []
    trees: dict[Path, Any] = {}
    files = files_below(home)
    for path in files:
        if path.suffix in JSON_SUFFIXES:
            try:
                trees[path] = folder.read_json(path)
            except folder.FolderError as error:
                problems.append(
                    f"{error}; what is in a damaged file cannot be redacted, so remove or repair it"
                )
    if problems:
        raise PackError(problems)
    for path, tree in trees.items():
        names.learn(tree)
        # What was put together from several hosts bears their names before its own.
        if path.name == folder.PLAN and not (isinstance(tree, dict) and tree.get("combined")):
            names.kept |= _names_of_plan(tree)
    left_out = []
    for path in files:
        place = target / path.relative_to(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path in trees:
            folder.write_json(place, _redacted(trees[path], names))
        elif path.suffix in TEXT_SUFFIXES:
            place.write_text(_redacted_text(path, names), encoding="utf-8")
        elif path.suffix in TABLE_SUFFIXES:
            _redact_table(path, place, names)
        elif path.suffix != PAGE:
            left_out.append(path.relative_to(home).as_posix())
    return names, left_out


def _names_of_plan(plan: Any) -> set[str]:
    """Names of instances, targets and workloads: files, samples and figures hang on them."""
    run = plan.get("run", {}) if isinstance(plan, dict) else {}
    lists = (run.get(key) or [] for key in ("instances", "targets", "workloads", "phases"))
    return {
        str(item["name"])
        for items in lists
        for item in items
        if isinstance(item, dict) and item.get("name")
    }


def _redacted(tree: Any, names: Names) -> Any:
    if isinstance(tree, dict):
        return {names.redacted(key): _redacted(value, names) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_redacted(value, names) for value in tree]
    return names.redacted(tree) if isinstance(tree, str) else tree


def _redacted_text(path: Path, names: Names) -> str:
    """Lines of JSON by their values, other lines as they are."""
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n"):
        try:
            tree = json.loads(line) if line.startswith("{") else None
        except ValueError:
            tree = None
        lines.append(
            json.dumps(_redacted(tree, names)) if tree is not None else names.redacted(line)
        )
    return "".join(f"{line}\n" for line in lines)


def _redact_table(source: Path, target: Path, names: Names) -> None:
    """A Parquet file with its texts replaced value by value."""
    try:
        with parquet.database() as database:
            database.execute(f"CREATE TEMP TABLE rows AS SELECT * FROM {parquet.rows_of(source)}")
            columns = database.execute("DESCRIBE rows").fetchall()
            for name, kind, *_ in columns:
                if kind not in (*PLAIN_KINDS, "VARCHAR"):
                    raise PackError(
                        [
                            f"{source}: no rule says what column {name!r} of kind {kind} holds, so "
                            f"it cannot be redacted"
                        ]
                    )
                if kind != "VARCHAR":
                    continue
                column = parquet.column(name)
                for (value,) in database.execute(f"SELECT DISTINCT {column} FROM rows").fetchall():
                    new = names.redacted(value) if value else value
                    if new != value:
                        database.execute(
                            f"UPDATE rows SET {column} = ? WHERE {column} = ?", [new, value]
                        )
            database.execute(f"COPY rows {parquet.into(target)}")
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise PackError(
            [f"{source} cannot be read: {first}; expected a Parquet file as the run wrote it"]
        ) from error
