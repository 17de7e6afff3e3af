"""Files of drives, arrays and links, in which every figure has its source.

The reading that all of them share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from plimsoll.arrays.inheritance import completed_rows
from plimsoll.inputs.schema import READERS, Collector, Field, Given, Tables, Text, require_kind
from plimsoll.inputs.toml_lines import LocatedFile, read_located

DATA_FOLDER = Path(__file__).parent.parent / "data"
#: Keys that say what somebody wants, not what a thing is.
_UNSOURCED = (
    "name",
    "title",
    "sources",
    "failed_drive_count",
    "reserve_share",
    "faults",
    "link",
    "groups",
    "volumes",
    "neighbours",
)
_MEANING = "where each figure is from, by its key or by several with commas"

Lists = Mapping[str, Mapping[str, Field]]
Shipped = Mapping[str, Callable[[], Mapping[str, Mapping[str, object]]]]


def read_sourced(path: Path, kind: str, lists: Lists, shipped: Shipped | None = None) -> Given:
    """Read a file of such lists of tables.

    Args:
        path: the file.
        kind: the kind it must be.
        lists: the fields of each list.
        shipped: for each list, what gives the rows that `like` may name; no `like` where it is left
            out.

    Raises:
        InputError: every mistake of the file.
    """
    document = read_located(path)
    collector = Collector(document)
    content = collect_sourced(document, collector, kind, lists, shipped)
    collector.raise_if_any()
    return content


def collect_sourced(
    document: LocatedFile,
    collector: Collector,
    kind: str,
    lists: Lists,
    shipped: Shipped | None = None,
) -> Given:
    """The content of such a file; its mistakes go to the collector, all but a wrong kind.

    Raises:
        InputError: it is a file of another kind.
    """
    require_kind(document, (kind,), READERS)
    if shipped is not None:
        document = completed_rows(document, collector, lists, shipped)
    _check_sources(document, collector, lists)
    fields: dict[str, Field] = {"name": Field(Text(), required=True, meaning="what the file holds")}
    for key, row in lists.items():
        fields[key] = Field(Tables(row, unique="name"), default=[], meaning="one table for each")
    # The sources have been looked at by their own rules, so the fields need not know them.
    stripped = {
        key: [{name: item for name, item in row.items() if name != "sources"} for row in value]
        if key in lists and isinstance(value, list) and all(isinstance(row, dict) for row in value)
        else value
        for key, value in document.data.items()
    }
    collector.document = LocatedFile(document.name, stripped, document.lines)
    content = collector.top(fields)
    for key in lists:
        given = document.data.get(key)
        for row, written in zip(
            content[key], given if isinstance(given, list) else [], strict=False
        ):
            row["sources"] = written.get("sources")
    return content


def _check_sources(document: LocatedFile, collector: Collector, lists: Lists) -> None:
    """Every figure has exactly one source, and every source belongs to a figure."""
    for key, fields in lists.items():
        rows = document.data.get(key, [])
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            sources = row.get("sources") if isinstance(row, dict) else None
            if not isinstance(sources, dict):
                collector.add((key, index, "sources"), "is missing", _MEANING)
                continue
            named = [name.strip() for names in sources for name in names.split(",")]
            for name in named:
                if name not in fields:
                    collector.add(
                        (key, index, "sources"), f"names `{name}`, no figure of this table"
                    )
            for name in row:
                if name not in _UNSOURCED and name in fields and name not in named:
                    hint = f'add {name} = "..." to its sources, beginning with "assumed" if it is'
                    collector.add((key, index, name), "has no source", hint)
