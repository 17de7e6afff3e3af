"""Drives and arrays described by their difference from one that is known.

`like = "nearline-raid6"` and what is other.

A figure that is not written is taken from the other row together with its source; one that is
written without a source was stated in the file itself, and that is then its source. Whoever writes
few figures and no `like` is told so once, in the place of one mistake for each figure that is
missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import Collector, Field
from plimsoll.inputs.toml_lines import LocatedFile

#: More missing figures than this are a row that was not meant to be written out.
LACKING_MAX = 5

#: What a row says of a design and no source is asked for.
_WISHES = (
    "title",
    "failed_drive_count",
    "reserve_share",
    "faults",
    "groups",
    "volumes",
    "neighbours",
)

Rows = Mapping[str, Mapping[str, object]]


def completed_rows(
    document: LocatedFile,
    collector: Collector,
    lists: Mapping[str, Mapping[str, Field]],
    shipped: Mapping[str, Callable[[], Rows]],
) -> LocatedFile:
    """The file with every row written out.

    Args:
        document: the file as written.
        collector: takes the mistakes of `like`.
        lists: the fields of each list of tables.
        shipped: for each list, what gives the shipped rows by name; asked only where a row needs
            them.
    """
    data = dict(document.data)
    for key, fields in lists.items():
        rows = data.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            continue
        found: list[Mapping[str, object]] = []
        for index, row in enumerate(rows):
            earlier = {str(other.get("name")): other for other in found}
            found.append(
                _completed(row, fields, _Known(shipped[key], earlier), (key, index), collector)
            )
        data[key] = found
    return LocatedFile(document.name, data, document.lines)


@dataclass(frozen=True)
class _Known:
    """The rows that `like` may name: the shipped ones, and those before it in its file."""

    shipped: Callable[[], Rows]
    earlier: Rows

    def rows(self) -> Rows:
        return {**self.shipped(), **self.earlier}


def _completed(
    row: Mapping[str, object],
    fields: Mapping[str, Field],
    known: _Known,
    place: tuple[str, int],
    collector: Collector,
) -> Mapping[str, object]:
    lacking = [
        name
        for name, field in fields.items()
        if field.required and name not in row and name != "name"
    ]
    if "like" not in row and len(lacking) <= LACKING_MAX:
        return row
    rows = known.rows()
    name = row.get("like")
    if "like" not in row:
        example = next(iter(rows))
        shown = ", ".join(lacking[:3])
        hint = (
            f'write like = "{example}" (or another) to take the rest from there, or write them out'
        )
        collector.add(place, f"lacks {len(lacking)} figures: {shown} ...", hint)
    elif not isinstance(name, str) or name not in rows:
        collector.add(
            (*place, "like"), f'is "{name}", which is not known', nearest_names(str(name), rows)
        )
    # With a stand-in for what is not known the rest of the row can still be looked at.
    other = rows[name] if isinstance(name, str) and name in rows else next(iter(rows.values()))
    return _merged(row, other, fields, Path(collector.document.name).name)


def _merged(
    row: Mapping[str, object],
    other: Mapping[str, object],
    fields: Mapping[str, Field],
    file_name: str,
) -> Mapping[str, object]:
    stated = other.get("sources", {})
    theirs = by_figure(stated) if isinstance(stated, dict) else {}
    # What has neither source nor wish behind it is a default, which the row gets by itself.
    taken = {
        name: value
        for name, value in other.items()
        if name not in row and (name in theirs or name in _WISHES) and value is not None
    }
    if "title" in taken:
        taken["title"] = f"as {taken['title']}"
    given = row.get("sources", {})
    named = by_figure(given) if isinstance(given, dict) else {}
    own = {name: f"stated in {file_name}" for name in row if name in fields and name not in named}
    inherited = {name: text for name, text in theirs.items() if name in taken}
    sources = inherited | own | named if isinstance(given, dict) else given
    return (
        taken
        | {name: value for name, value in row.items() if name != "like"}
        | {"sources": sources}
    )


def by_figure(sources: Mapping[str, str]) -> dict[str, str]:
    """The sources by single figures, where several share one."""
    return {name.strip(): text for names, text in sources.items() for name in names.split(",")}
