"""No two Rust files use each other, directly or by way of others.

Each can be read once those below it are known.

A file uses another where a path in it, in a `use` or in the code, leads to something that the other
defines. What a module only passes on (`pub use`) leads to where it is defined. Tests count for
nothing. A use that closes a circle is allowed where a comment directly above it says why, as `//
Circle: ...`."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(
    path.parent
    for path in (ROOT / "crates").glob("*/Cargo.toml")
    if (path.parent / "src/lib.rs").exists()
)
#: Circles that still stand without a word, by crate: none may come.
LEFT: dict[str, int] = {}
_TEST_MODULE = re.compile(
    r"^#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod \w+ \{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*")
_TEXT = re.compile(r'r#".*?"#|"(?:\\.|[^"\\])*"', re.DOTALL)
_USE = re.compile(r"^[ \t]*((?:pub(?:\([^)]*\))? )?)use ([^;]+);", re.MULTILINE)
_CHILD = re.compile(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")

Segments = tuple[str, ...]


@dataclass
class Module:
    """A file of a crate: where it stands, what it uses, and the names it brings in."""

    path: Segments
    children: set[str] = field(default_factory=set)
    names: dict[str, Segments] = field(default_factory=dict)
    globs: list[Segments] = field(default_factory=list)
    uses: list[Segments] = field(default_factory=list)


def expanded(tree: str) -> list[tuple[Segments, str]]:
    """Each path of a `use`, with the name it is known by here; "*" for everything."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        segments = tuple(part.strip() for part in path.split("::"))
        if segments[-1] == "self":
            segments = segments[:-1]
        return [(segments, alias.strip() or segments[-1])]
    parts, depth, part = [], 0, ""
    for letter in rest.rsplit("}", 1)[0]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [
        found
        for part in (*parts, part)
        if part.strip()
        for found in expanded(head.strip() + part.strip())
    ]


def absolute(path: Segments, home: Module) -> Segments | None:
    """The path from the crate's root.

    `None` for one that leads out of the crate or to the file itself.
    """
    place = home.path
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("self", "super"):
        while path and path[0] in ("self", "super"):
            place, path = (place, path[1:]) if path[0] == "self" else (place[:-1], path[1:])
        return (*place, *path)
    return (*place, *path) if path[0] in home.children else None


def read_module(text: str, path: Segments) -> Module:
    """What a file uses; lines below an excuse do not count."""
    module = Module(path)
    text = _TEST_MODULE.sub("", text)
    text = re.sub(r"^[ \t]*// Circle: \S.*\n(?:[ \t]*//.*\n)*[^;]*;", "", text, flags=re.MULTILINE)
    text = _TEXT.sub('""', _COMMENT.sub("", text))
    module.children = set(_CHILD.findall(text))
    for visibility, tree in _USE.findall(text):
        for segments, name in expanded(tree):
            place = absolute(segments, module)
            if place is None:
                continue
            if name == "*":
                module.globs.append(place[:-1])
            else:
                module.names[name] = place
            if not visibility:
                module.uses.append(place)
    for found in _PATH.findall(_USE.sub("", text)):
        place = absolute(tuple(found.split("::")), module)
        if place is not None:
            module.uses.append(place)
    return module


def home_of(
    place: Segments, modules: dict[Segments, Module], seen: frozenset[Segments] = frozenset()
) -> Segments:
    """The module that defines what a path leads to, past every module that only passes it on."""
    module: Segments = ()
    rest = place
    while rest and (*module, rest[0]) in modules:
        module, rest = (*module, rest[0]), rest[1:]
    if not rest or place in seen:
        return module
    here = modules[module]
    if rest[0] in here.names:
        return home_of((*here.names[rest[0]], *rest[1:]), modules, seen | {place})
    for passed_on in here.globs:
        home = home_of((*passed_on, *rest), modules, seen | {place})
        if home != module:
            return home
    return module


def users(modules: dict[Segments, Module]) -> dict[Segments, set[Segments]]:
    """Which modules each module uses."""
    return {
        path: {home_of(place, modules) for place in module.uses} - {path}
        for path, module in modules.items()
    }


def circles(graph: dict[Segments, set[Segments]]) -> list[list[Segments]]:
    """The groups of modules that reach each other."""
    reached: dict[Segments, set[Segments]] = {}
    for start in graph:
        found, waiting = set[Segments](), [start]
        while waiting:
            new = graph[waiting.pop()] - found
            found |= new
            waiting.extend(new)
        reached[start] = found
    groups = {
        tuple(sorted(path for path in reached[start] if start in reached[path]))
        for start in graph
        if start in reached[start]
    }
    return [list(group) for group in sorted(groups)]


def modules_of(crate: Path) -> dict[Segments, Module]:
    """The files of a crate, tests and programs left out."""
    modules = {}
    for file in sorted((crate / "src").rglob("*.rs")):
        parts = file.relative_to(crate / "src").with_suffix("").parts
        if "tests" in parts or parts[0] in ("bin", "main"):
            continue
        path = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
        modules[path] = read_module(file.read_text(encoding="utf-8"), path)
    return modules


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_two_files_use_each_other(crate: Path) -> None:
    """Files in a circle can only be understood, changed and tested together.

    They are one file in pieces.
    """
    graph = users(modules_of(crate))
    found = []
    for group in circles(graph):
        ties = [
            f"{'/'.join(one)} -> {'/'.join(other)}"
            for one in group
            for other in sorted(graph[one])
            if other in group
        ]
        found.append(ties)
    left = LEFT.get(crate.name, 0)
    assert len(found) <= left, found
    assert len(found) == left, f"{left - len(found)} fewer than LEFT says: lower it"


def made_of(**files: str) -> list[list[Segments]]:
    """The circles among files that are given by name; `__` stands for the folder."""
    paths = {name: () if name == "lib" else tuple(name.split("__")) for name in files}
    return circles(users({path: read_module(files[name], path) for name, path in paths.items()}))


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"lib": "mod a;\nmod b;", "a": "use crate::b::B;", "b": "pub struct B;"}, 0),
        ({"lib": "mod a;\nmod b;", "a": "use crate::b::B;", "b": "use crate::{a::A, c};"}, 1),
        (
            {"lib": "mod a;\nmod b;\npub use b::B;", "a": "use crate::B;", "b": "use crate::a::A;"},
            1,
        ),
        ({"lib": "mod a;\npub use a::A;", "a": "use crate::A;"}, 0),
        ({"lib": "mod a;", "a": "mod b;\npub use b::B;", "a__b": "use super::A;"}, 0),
        ({"lib": "mod a;", "a": "mod b;\nuse b::B;", "a__b": "use super::A;"}, 1),
        ({"lib": "mod a;", "a": "mod b;\nfn f() { b::g() }", "a__b": "fn g() { super::f() }"}, 1),
        (
            {
                "lib": "mod a;",
                "a": "mod b;\nuse b::B;",
                "a__b": "// Circle: one thing.\nuse super::A;",
            },
            0,
        ),
        (
            {
                "lib": "mod a;",
                "a": "mod b;\nuse b::B;",
                "a__b": "#[cfg(test)]\nmod tests {\nuse super::super::A;\n}\n",
            },
            0,
        ),
        (
            {
                "lib": "mod a;\nmod b;",
                "a": "use crate::b::B;",
                "b": '// use crate::a::A;\nconst T: &str = "crate::a::A";',
            },
            0,
        ),
        (
            {
                "lib": "mod a;\nmod b;\nmod c;",
                "a": "use crate::b::B;",
                "b": "use crate::c::C;",
                "c": "fn f(a: crate::a::A) {}",
            },
            1,
        ),
    ],
)
def test_circles_are_found(files: dict[str, str], wanted: int) -> None:
    """A guard that finds nothing guards nothing."""
    assert len(made_of(**files)) == wanted
