"""Published sizing figures, by product generation, each with its source and how well it is known.

The figures live in `data/guidance.toml`, the user profiles in `data/profiles.toml`. A file of the
user's own in the form of the former adds or replaces figures, which is also how processor and
memory tables of a server vendor are plugged in. An edition may extend another and then states only
what differs.

Limit: a figure is one number; step functions such as the message-size factor are code, beside the
table they belong to.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from plimsoll.inputs.records import dataclass
from plimsoll.inputs.toml_lines import TomlTable
from plimsoll.sizing.traced import Step, given
from plimsoll.units import UNIT_SUFFIXES

DATA = Path(__file__).parent.parent / "data"
BASES = ("read", "derived", "recalled", "assumed")


@dataclass(frozen=True)
class Figure:
    """One published number.

    Attributes:
        value: The number, in the unit its name ends in.
        source: A key of the sources and the place in it.
        basis: One of `BASES`.
    """

    value: float
    source: str
    basis: str


@dataclass(frozen=True)
class Guidance:
    """All figures of one product generation.

    Attributes:
        name: The edition, such as "exchange_2010".
        title: The edition for a reader.
        figures: By name.
    """

    name: str
    title: str
    figures: Mapping[str, Figure]
    _steps: dict[str, Step] = field(default_factory=dict, repr=False, compare=False)

    def number(self, name: str) -> float:
        """The bare value of a figure.

        Raises:
            KeyError: The edition states no such figure.
        """
        return self.figures[name].value

    def step(self, name: str) -> Step:
        """A figure as the beginning of a chain, with its source.

        The same figure is always the same step.
        """
        if name not in self._steps:
            figure = self.figures[name]
            note = (
                ""
                if figure.basis in ("read", "derived")
                else f"{figure.basis}: check before quoting"
            )
            self._steps[name] = given(name, figure.value, title_of(name), figure.source, note)
        return self._steps[name]


@dataclass(frozen=True)
class Profile:
    """A named user profile.

    Attributes:
        name: The word a requirements file uses.
        messages_per_day: Messages sent and received by one user.
        source: Where it comes from.
    """

    name: str
    messages_per_day: float
    source: str


def title_of(name: str) -> str:
    """A figure's name as a reader would say it, its unit left to the unit column.

    Example:
        >>> title_of("log_file_mb"), title_of("iops_headroom_factor"), title_of("dag_servers_max_count")
        ('Log file', 'IOPS headroom factor', 'DAG servers max')
    """  # noqa: E501
    suffix = next(
        suffix for suffix in UNIT_SUFFIXES if name.endswith(f"_{suffix}") or name == suffix
    )
    stem = name if suffix in ("factor", "fraction", "ratio") else name.removesuffix(f"_{suffix}")
    words = stem.replace("_", " ").replace("iops", "IOPS").replace("dag", "DAG")
    return words[0].upper() + words[1:]


@cache
def read_data(name: str) -> TomlTable:
    """Read a data file of the package; what it returns is shared and must not be changed."""
    return tomllib.loads((DATA / name).read_text(encoding="utf-8"))


def editions(data: TomlTable | None = None, extra: TomlTable | None = None) -> dict[str, Guidance]:
    """All editions, those of the package first, with the user's figures laid over them.

    Args:
        data: The content of a guidance file; that of the package by default.
        extra: The content of a user's guidance file in the same form.

    Returns:
        The editions by name.

    Raises:
        KeyError: An edition extends one that comes nowhere before it.
    """
    found: dict[str, Guidance] = {}
    for row in [
        *(data or read_data("guidance.toml"))["edition"],
        *(extra or {}).get("edition", []),
    ]:
        base = row["name"] if row["name"] in found else row.get("extends")
        inherited = dict(found[base].figures) if base else {}
        own = {
            name: Figure(float(f["value"]), f["source"], f["basis"])
            for name, f in row.get("figures", {}).items()
        }
        title = row.get("title") or (
            found[row["name"]].title if row["name"] in found else row["name"]
        )
        found[row["name"]] = Guidance(row["name"], title, inherited | own)
    return found


def profiles() -> dict[str, Profile]:
    """The named user profiles."""
    rows = read_data("profiles.toml")["profile"]
    return {
        row["name"]: Profile(row["name"], float(row["messages_per_day"]), row["source"])
        for row in rows
    }


def cite(source: str, sources: Mapping[str, str]) -> str:
    """Expand the key a source begins with to the document it stands for.

    Example:
        >>> cite("dell_eql, Table 14", {"dell_eql": "Dell paper"})
        'Dell paper, Table 14'
    """
    for key, document in sources.items():
        if source == key or source.startswith((f"{key},", f"{key}:")):
            return document + source[len(key) :]
    return source
