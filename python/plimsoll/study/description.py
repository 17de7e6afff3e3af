"""Reading a study file: the base, its variants, and what each of them is when it is completed.

A variant changes values by their path: `light.changes.level`, `plan.instance.*.edition`,
`plan.workload.mix.load`. In a list of tables, a part of the path is a name, a number counted from
1, or `*` for all. Every mistake is reported at once, those of a variant with its name.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plimsoll.advice.drawings import TopologyDrawing, drawings_of_file
from plimsoll.compare.figures import FIGURES
from plimsoll.compare.published import PREFIX, PublishedResult, is_published, published_result
from plimsoll.compare.sides import ComparisonError
from plimsoll.documents.plan import Plan
from plimsoll.documents.study import Light
from plimsoll.files.paths import StrPath
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.schema import (
    READERS,
    Collector,
    Field,
    Given,
    ListOf,
    Number,
    Table,
    Tables,
    Text,
    require_kind,
)
from plimsoll.inputs.toml_lines import LocatedFile, read_located
from plimsoll.plan.complete import complete_plan
from plimsoll.study.modelled_variant import LIGHT_FIELDS, OWN_FIGURES, complete_light

KEEP, ANEW = "keep", "anew"
RANKS = (*(figure.name for figure in FIGURES), *(figure.name for figure in OWN_FIGURES))
VARIANTS_MAX = 500
#: More digits than the place of an entry can have.
PLACE_DIGITS_MAX = 9

_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the study"),
    "description": Field(Text(), meaning="what it asks, in a sentence"),
    "source": Field(Text(), meaning="where it was published"),
    "rank_by": Field(
        Text(RANKS), default="database_iops", meaning="the figure by which variants are ranked"
    ),
    "baseline": Field(
        Text(), meaning="the variant all others are compared with; the first if left out"
    ),
    "repeat": Field(
        Number(1, 100, whole=True),
        default=3,
        meaning="runs of each variant; modelled ones with other seeds",
    ),
    "databases": Field(
        Text((KEEP, ANEW)),
        default=KEEP,
        meaning="whether real databases are deleted after each variant",
    ),
    "published": Field(
        ListOf(Text()),
        default=[],
        meaning='results of papers beside the variants: ["published:netapp-2007"]',
    ),
    "topology": Field(
        Text(), meaning="a topology file next to this one, whose drawings the document shows"
    ),
    "plan_file": Field(Text(), meaning="a plan as the base, next to this file"),
    "light": Field(Table({}), meaning="the light load on a modelled array as the base"),
    "plan": Field(Table({}), meaning="a plan as the base"),
    "axes": Field(
        Tables(
            {
                "key": Field(Text(), required=True, meaning="the path of what varies"),
                "title": Field(Text(), meaning="what it is called"),
            },
            unique="key",
        ),
        default=[],
        meaning="every combination of their values is a variant",
    ),
    "variants": Field(
        Tables({"name": Field(Text(), required=True, meaning="its name")}, unique="name"),
        default=[],
        meaning="variants",
    ),
}
#: Read by hand, because their values are whatever the changed key takes.
_FREE = {"axes": "values", "variants": "set"}
#: What a variant changes, by path: whatever the changed keys take.
Settings = dict[str, object]


@dataclass(frozen=True)
class Variant:
    """One variant.

    Attributes:
        name: how it is called.
        slug: the name of its folder.
        settings: what it changes, by path.
        light: the completed light load; None for a plan.
        plan: the completed plan; None for a light load.
    """

    name: str
    slug: str
    settings: Settings
    light: Light | None
    plan: Plan | None

    @property
    def is_real(self) -> bool:
        """Whether it writes to storage."""
        return self.plan is not None and not self.plan.run.modelled


@dataclass(frozen=True)
class Study:
    """A study that can be carried out.

    Attributes:
        name: what it is called.
        description: what it asks.
        source: where it was published.
        rank_by: the figure by which variants are ranked.
        baseline: the variant all others are compared with; the first where none is named.
        repeat: runs of each variant.
        databases: whether real databases stay, KEEP or ANEW.
        variants: at least one.
        published: results of papers that stand beside them.
        axis: title and values of the one axis with numbers, for curves.
        topology: drawings of its topology file, where it names one.
    """

    name: str
    description: str | None
    source: str | None
    rank_by: str
    baseline: str | None
    repeat: int
    databases: str
    variants: list[Variant]
    published: list[PublishedResult]
    axis: tuple[str, list[float]] | None
    topology: tuple[TopologyDrawing, ...] = ()


def read_study(path: StrPath) -> Study:
    """Read, check and complete a study file.

    Raises:
        InputError: with every mistake found.
    """
    path = Path(path)
    document = read_located(path)
    require_kind(document, ("study",), READERS)
    collector = Collector(document)
    content = _top(document, collector)
    axes = _axes(document, content, collector)
    base = _base(document, content, path, collector)
    named = _combinations(document, content, axes, collector)
    variants = _variants(named, base, document, collector) if base else []
    published = _published(content["published"] or [], collector)
    topology = drawings_of_file(path, content["topology"], collector)
    collector.raise_if_any()
    slugs = [variant.slug for variant in variants]
    repeated = [variant.name for variant in variants if slugs.count(variant.slug) > 1]
    if repeated:
        message = f"{' and '.join(repeated)} would share a folder"
        raise InputError(
            str(path),
            [Mistake(0, "variants", message, "give them names that differ in letters or digits")],
        )
    told = {
        key: content[key]
        for key in ("name", "description", "source", "rank_by", "baseline", "databases")
    }
    return Study(
        **told,
        repeat=int(content["repeat"]),
        variants=variants,
        published=published,
        axis=_one_axis(axes, variants),
        topology=topology,
    )


def _published(names: Sequence[str], collector: Collector) -> list[PublishedResult]:
    """The results of papers that are named."""
    found = []
    for number, name in enumerate(names):
        if not is_published(name):
            collector.add(
                ("published", number), f"is {name!r}", f"write {PREFIX} and the name of a result"
            )
            continue
        try:
            found.append(published_result(name))
        except ComparisonError as error:
            collector.add(("published", number), *error.problems[0].split("; ", 1))
    return found


def _top(document: LocatedFile, collector: Collector) -> Given:
    """The top level, with what is free in it left out of the check."""
    data = dict(document.data)
    for key, free in _FREE.items():
        if isinstance(data.get(key), list) and all(isinstance(item, dict) for item in data[key]):
            data[key] = [
                {name: value for name, value in item.items() if name != free} for item in data[key]
            ]
    for key in ("light", "plan"):
        if isinstance(data.get(key), dict):
            data[key] = {}
    collector.document = LocatedFile(document.name, data, document.lines)
    content = collector.top(_FIELDS)
    collector.document = document
    return content


def _base(document: LocatedFile, content: Given, path: Path, collector: Collector) -> Given:
    """`{"light": ...}` or `{"plan": ...}` as written; exactly one of the ways must be used."""
    ways = [key for key in ("light", "plan", "plan_file") if document.data.get(key)]
    if len(ways) != 1:
        said = " and ".join(f"`{way}`" for way in ways) or "nothing"
        collector.add(
            (), f"has {said} as its base", "write exactly one of [light], [plan] and plan_file"
        )
        return {}
    if not content[ways[0]] and not isinstance(document.data[ways[0]], dict):
        return {}
    if ways == ["plan_file"]:
        other = read_located(path.parent / str(content["plan_file"]))
        require_kind(other, ("plan",), {})
        return {"plan": other.data}
    if ways == ["plan"]:
        return {"plan": {"kind": "plan", "schema_version": 1, **document.data["plan"]}}
    collector.table(document.data["light"], LIGHT_FIELDS, ("light",))
    return {"light": document.data["light"]}


def _axes(
    document: LocatedFile, content: Given, collector: Collector
) -> list[tuple[str, str, list[Any]]]:
    found = []
    for index, axis in enumerate(content["axes"]):
        values = document.data["axes"][index].get("values")
        if not isinstance(values, list) or not values:
            collector.add(
                ("axes", index, "values"),
                "is missing or empty",
                "write the values it takes: values = [3, 6]",
            )
            continue
        if axis["key"]:
            found.append((axis["key"], axis["title"] or axis["key"].rpartition(".")[2], values))
    return found


def _combinations(
    document: LocatedFile,
    content: Given,
    axes: list[tuple[str, str, list[Any]]],
    collector: Collector,
) -> list[tuple[str, Settings]]:
    """Named variants, each with every combination of the axes' values."""
    named: list[tuple[str, Settings]] = []
    for index, variant in enumerate(content["variants"]):
        settings = document.data["variants"][index].get("set", {})
        if not isinstance(settings, dict):
            collector.add(
                ("variants", index, "set"),
                "must be a table",
                'write set = { "light.sessions" = 12 }',
            )
        elif any(key in ("light", "plan") for key in settings):
            hint = 'put the whole path in quotes: set = { "light.sessions" = 12 }'
            collector.add(("variants", index, "set"), "has a path without quotes", hint)
        else:
            named.append((variant["name"] or f"variant {index + 1}", settings))
    count = max(1, len(named)) * math.prod(len(values) for _, _, values in axes)
    if count > VARIANTS_MAX:
        collector.add(("axes",), f"make {count} variants", f"{VARIANTS_MAX} are the most")
        return []
    found = []
    for values in itertools.product(*(values for _, _, values in axes)):
        settings = {key: value for (key, _, _), value in zip(axes, values, strict=True)}
        words = ", ".join(
            f"{title} {_word(value)}" for (_, title, _), value in zip(axes, values, strict=True)
        )
        found += [
            (f"{name}, {words}" if words else name, {**own, **settings})
            for name, own in named or [("", {})]
        ]
    found = [(name.removeprefix(", ") or "base", settings) for name, settings in found]
    names = [name for name, _ in found]
    if content["baseline"] is not None and content["baseline"] not in names:
        hint = nearest_names(content["baseline"], names)
        collector.add(("baseline",), f'is "{content["baseline"]}", no variant', hint)
    return found


def _variants(
    named: list[tuple[str, Settings]], base: Given, document: LocatedFile, collector: Collector
) -> list[Variant]:
    """Every variant completed. A mistake goes to the line of the setting it comes from.

    One of the base is told once.
    """
    variants = []
    of_base = {(item.where, item.message) for item in _attempt("base", {}, base, document.name)[1]}
    told = {(item.where, item.message) for item in collector.mistakes}
    for name, settings in named:
        variant, mistakes = _attempt(name, settings, base, document.name)
        if variant is not None:
            variants.append(variant)
        for item in mistakes:
            what = (item.where, item.message)
            setting = None if what in of_base else _setting_of(item.where, settings)
            if setting is None and what in told:
                continue
            told.add(what)
            where = item.where if setting is None else f"variant {name}: {item.where}"
            collector.mistakes.append(
                replace(item, line=_line_of(document, item.where, setting), where=where)
            )
    return variants


def _attempt(
    name: str, settings: Settings, base: Given, file_name: str
) -> tuple[Variant | None, tuple[Mistake, ...]]:
    try:
        return _variant(name, settings, base, file_name), ()
    except InputError as error:
        return None, error.mistakes


def _setting_of(where: str, settings: Settings) -> str | None:
    """The path among a variant's settings that a mistake is about.

    The one that shares the longest beginning with it.
    """
    parts = _parts(where)
    alike = {
        path: sum(
            1 for mine, theirs in zip(parts, _parts(path), strict=False) if theirs in (mine, "*")
        )
        for path in settings
    }
    return max(alike, key=lambda path: alike[path], default=None) if any(alike.values()) else None


def _line_of(document: LocatedFile, where: str, setting: str | None) -> int:
    """The line of a setting, of an axis, or of the base."""
    if setting is not None:
        for index, variant in _written_tables(document, "variants"):
            if isinstance(variant.get("set"), dict) and setting in variant["set"]:
                return document.line_of(("variants", index, "set", setting))
        for index, axis in _written_tables(document, "axes"):
            if axis.get("key") == setting:
                return document.line_of(("axes", index, "values"))
    return document.line_of(tuple(_parts(where)))


def _written_tables(document: LocatedFile, key: str) -> list[tuple[int, Given]]:
    """The tables of a list as written, with their places, whatever else is written there."""
    written = document.data.get(key)
    items = enumerate(written) if isinstance(written, list) else ()
    return [(index, item) for index, item in items if isinstance(item, dict)]


def _parts(where: str) -> list[str]:
    """`target[1].path` and `plan.target.1.path` as the same words."""
    parts = re.sub(r"\[(\d+)\]", r".\1", where).split(".")
    return parts[1:] if parts[0] == "plan" else parts


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _variant(name: str, settings: Settings, base: Given, file_name: str) -> Variant:
    data = copy.deepcopy(base)
    problems = []
    for path, value in settings.items():
        problem = change(data, path, value)
        if problem:
            problems.append(Mistake(0, path, *problem))
    if problems:
        raise InputError(file_name, problems)
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "variant"
    if "light" in data:
        return Variant(name, slug, settings, complete_light(data["light"], file_name), None)
    plan = complete_plan(LocatedFile(file_name, data["plan"], {}))
    return Variant(name, slug, settings, None, plan)


def change(data: Given, path: str, value: Any) -> tuple[str, str] | None:
    """Set a value by its path; answers what is wrong with the path and a hint, or None.

    >>> plan = {"plan": {"instance": [{"name": "one"}, {"name": "two"}]}}
    >>> change(plan, "plan.instance.*.edition", "2003"), plan["plan"]["instance"][1]["edition"]
    (None, '2003')
    """
    *parts, last = path.split(".")
    places: list[Any] = [data]
    walked = ""
    for part in parts:
        found: list[Any] = []
        for place in places:
            if isinstance(place, list):
                items = _items(place, part)
                if not items:
                    names = [str(item.get("name")) for item in place if isinstance(item, dict)]
                    return (
                        f"`{walked}` has no `{part}`",
                        f"write *, a number from 1, or a name; {nearest_names(part, names)}",
                    )
                found += items
            elif isinstance(place, dict):
                if place is data and part not in place:
                    return (
                        f"begins with `{part}`",
                        f"this study's paths begin with {' or '.join(place)}",
                    )
                found.append(place.setdefault(part, {}))
            else:
                return f"`{walked}` is no table", "name a key of a table"
        places, walked = found, f"{walked}.{part}".removeprefix(".")
    for place in places:
        if not isinstance(place, dict):
            return (
                f"`{walked}` is no table",
                "name a key of a table; of a list of tables, say which: * for all",
            )
        place[last] = copy.deepcopy(value)
    return None


def _items(tables: list[Any], part: str) -> list[Any]:
    if part == "*":
        return list(tables)
    if part.isdecimal() and len(part) <= PLACE_DIGITS_MAX:
        return tables[int(part) - 1 : int(part)] if int(part) else []
    return [item for item in tables if isinstance(item, dict) and item.get("name") == part]


def _one_axis(
    axes: list[tuple[str, str, list[Any]]], variants: list[Variant]
) -> tuple[str, list[float]] | None:
    """The axis of a study that has one and nothing else, with numbers on it."""
    if len(axes) != 1 or len(variants) != len(axes[0][2]):
        return None
    _, title, values = axes[0]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return None
    return title, [float(value) for value in values]
