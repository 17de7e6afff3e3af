"""Every published capability of sizing, selection, cost, advice and the report is borne by a test.

A test bears an id by carrying it in its name, `test_CAL_01_...`, or in its docstring. The ids come
from the reference list of capabilities of the published tests and papers; the list below is what
these commands answer for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = ("sizing", "advice", "cli", "plan", "report")
BORNE_BY = {
    "CAL": range(1, 25),
    "TCO": range(1, 8),
    "ADV": range(1, 5),
    "DAG": (1, 6, 9),
    "HA": (3, 5, 7),
    "STO": (1, 2, 4, 6, 12),
    "NET": range(1, 6),
    "BKP": (2, 4),
    "ENG": (23,),
    "DAT": (2, 3),
    "RPT": (*range(1, 18), 30, 31),
    "MON": (1, 5, 6, 7),
}
WANTED = [f"{family}-{number:02d}" for family, numbers in BORNE_BY.items() for number in numbers]
_ID = re.compile(r"(?<![A-Za-z])([A-Z]{2,3})[-_](\d{2})(?!\d)")


def ids_in(text: str) -> set[str]:
    """The ids a name or a docstring carries, in the spelling of the list."""
    return {f"{family}-{number}" for family, number in _ID.findall(text)}


def each_test_in(source: str) -> Iterator[ast.FunctionDef]:
    """The test functions of a file.

    Ids in comments or in the docstring of the file count for nothing.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


@pytest.fixture(scope="module")
def borne() -> dict[str, list[str]]:
    """The tests that bear each id."""
    bearers: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in sorted((TESTS / folder).glob("test_*.py")):
            for test in each_test_in(path.read_text(encoding="utf-8")):
                for capability in ids_in(f"{test.name} {ast.get_docstring(test) or ''}"):
                    bearers.setdefault(capability, []).append(f"{path.name}::{test.name}")
    return bearers


@pytest.mark.parametrize("capability", WANTED)
def test_a_test_bears_the_id(capability: str, borne: dict[str, list[str]]) -> None:
    """A capability without a test may be lost in any change, and nobody would see it."""
    assert borne.get(capability), f"no test bears {capability}"


def test_the_search_finds_ids_only_where_they_are_borne() -> None:
    """Otherwise the check above would pass on ids that merely stand somewhere."""
    source = (
        '"""CAL-01"""\n# CAL-02\ndef test_CAL_03_adds():\n    """Also HA-05, not XCAL-040."""\ndef '
        "helper_CAL_06(): ...\n"
    )
    found = [ids_in(f"{test.name} {ast.get_docstring(test)}") for test in each_test_in(source)]
    assert found == [{"CAL-03", "HA-05"}]
