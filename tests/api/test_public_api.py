"""The public API: what it lists can be had, what it documents is there, and the command line is
written on it and nothing else.
"""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import plimsoll
from plimsoll import errors

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "plimsoll"
LISTED = re.findall(
    r"^from (\S+) import (\w+) as (\w+)$", (PACKAGE / "__init__.pyi").read_text(), re.MULTILINE
)

#: What the command line may import beside the public API, each with the reason.
BESIDE_THE_API = {
    "plimsoll": "the public API",
    "plimsoll.cli": "itself",
    "plimsoll.errors.system_errors": "what the operating system says reads the same in every "
    "message",
    "plimsoll.settings": "defaults of options stand where they are chosen",
    "plimsoll.inputs.mistakes": "mistakes in options are told like mistakes in files, with the "
    "nearest names",
    "plimsoll.files.sanitize": "what is printed must not control a terminal",
    "plimsoll.pages.sections": "the page kit",
    "plimsoll.pages.tables": "the page kit",
}
#: Programs below the command line: they end with a code of their own.
PROGRAMS = {"study/worker.py"}


def modules(home: Path) -> list[Path]:
    """The modules below a folder."""
    return sorted(home.rglob("*.py"))


def imports_of(tree: ast.AST) -> list[tuple[str, str | None]]:
    """Each module of ours that is imported, also within functions, with the name taken from it."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [(node.module or "", alias.name) for alias in node.names]
    return [(module, name) for module, name in found if module.partition(".")[0] == "plimsoll"]


def forbidden_imports(source: str) -> list[str]:
    """What a module of the command line imports from below it, not through the API."""
    public = {name for _, _, name in LISTED} | {"__version__"}
    wrong = []
    for module, name in imports_of(ast.parse(source)):
        if module == "plimsoll" and name is not None:
            if name not in public and f"plimsoll.{name}" not in BESIDE_THE_API:
                wrong.append(f"{module}.{name}")
        elif module not in BESIDE_THE_API and not module.startswith("plimsoll.cli."):
            wrong.append(module)
    return wrong


def test_every_public_name_can_be_had() -> None:
    """A name that moved away would be missed only by whoever uses it."""
    assert len(LISTED) > 100
    assert [name for _, name, alias in LISTED if name != alias] == [], (
        "a name is the same here and there"
    )
    for module, name, _ in LISTED:
        assert getattr(plimsoll, name) is getattr(import_module(module), name)
    assert {name for _, _, name in LISTED} <= set(dir(plimsoll))
    with pytest.raises(AttributeError, match="no attribute 'qualfiy'"):
        _ = plimsoll.qualfiy  # type: ignore[attr-defined]


def test_no_public_name_is_that_of_a_room() -> None:
    """Python puts a room into the package when it is loaded, in the place of whatever had its
    name.
    """
    rooms = {path.stem for path in PACKAGE.iterdir()}
    assert {name for _, _, name in LISTED} & rooms == set()


def test_every_error_of_the_tree_is_exported() -> None:
    """`except plimsoll.FolderError` needs no knowledge of where it stands."""
    drawn = set(re.findall(r"^ +(\w+Error)\b", errors.__doc__ or "", re.MULTILINE))
    exported = {name for _, _, name in LISTED if name.endswith("Error")}
    assert exported == drawn


def test_every_public_name_is_documented() -> None:
    """What nobody can read about, nobody uses."""
    page = (ROOT / "docs" / "api.md").read_text()
    assert [name for _, _, name in LISTED if not re.search(rf"\b{name}\b", page)] == []


def test_every_public_function_has_a_user() -> None:
    """What neither a command nor an example takes is a promise that helps nobody."""
    examples = (ROOT / "docs" / "api.md").read_text().partition("## All names")[0]
    taken = " ".join([examples, *(path.read_text() for path in modules(PACKAGE / "cli"))])
    functions = [name for _, name, _ in LISTED if inspect.isfunction(getattr(plimsoll, name))]
    assert [name for name in functions if not re.search(rf"\b{name}\b", taken)] == []


def test_text_is_a_path_wherever_a_path_is_asked_for() -> None:
    """Half of the functions taking text would leave a program to find out which half."""
    listed = {name: getattr(plimsoll, name) for _, name, _ in LISTED}
    functions = [found for found in listed.items() if inspect.isfunction(found[1])]
    functions += [
        (f"{name}.{called}", method)
        for name, kind in listed.items()
        if inspect.isclass(kind)
        for called, method in inspect.getmembers(kind)
        if (inspect.isfunction(method) or inspect.ismethod(method)) and not called.startswith("_")
    ]
    only_paths = [
        f"{name}({parameter.name})"
        for name, function in functions
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation in ("Path", "Path | None", "Sequence[Path]", Path)
    ]
    assert only_paths == []


@pytest.mark.parametrize("path", modules(PACKAGE / "cli"), ids=lambda path: path.stem)
def test_the_command_line_is_written_on_the_api(path: Path) -> None:
    """Whatever a command can do, a notebook, a page or a fleet can do as well."""
    assert forbidden_imports(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from plimsoll import qualify, exit_codes", []),
        ("import plimsoll\nfrom plimsoll.pages.sections import Section", []),
        ("from plimsoll import pipeline", ["plimsoll.pipeline"]),
        ("def late():\n    from plimsoll.run import execute", ["plimsoll.run"]),
        ("import plimsoll.files.folder", ["plimsoll.files.folder"]),
        ("from plimsoll.pages import chart_script", ["plimsoll.pages"]),
    ],
)
def test_an_import_past_the_api_is_seen(source: str, wrong: list[str]) -> None:
    """A guard that sees nothing passes everything."""
    assert forbidden_imports(source) == wrong


def talk_of(source: str) -> list[str]:
    """Where a module prints, asks, exits or knows the library of the command line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("print", "input")
        ):
            found.append(node.func.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in ("sys.stdout", "sys.stderr", "sys.stdin", "sys.exit", "os._exit"):
                found.append(name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            found += [
                name for name in names if name.partition(".")[0] in ("typer", "rich", "click")
            ]
    return found


def test_nothing_below_the_command_line_prints_asks_or_exits() -> None:
    """A library that prints cannot be used by a page, and one that exits ends a notebook."""
    below = [path for path in modules(PACKAGE) if PACKAGE / "cli" not in path.parents]
    talking = {
        str(path.relative_to(PACKAGE)): said
        for path in below
        if (said := talk_of(path.read_text()))
    }
    assert {name: said for name, said in talking.items() if name not in PROGRAMS} == {}
    assert {word for name in PROGRAMS for word in talking[name]} == {"sys.exit"}
    assert sorted(talk_of("import typer\nprint(1, file=sys.stderr)\nsys.exit(1)")) == [
        "print",
        "sys.exit",
        "sys.stderr",
        "typer",
    ]
