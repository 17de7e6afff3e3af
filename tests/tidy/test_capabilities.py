"""Every capability of the published engine, of the performance test and of the modelled array is
borne by a test, in Rust or in Python.

A test bears an id by carrying it in its name, or in its docstring, in Rust the documentation
directly above its `#[test]`."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ID = re.compile(r"(?:ENG|JST|RPT|MON|BKP|DAT|STU|SIM|STO|HA|UI|ORC)-\d{2}")
_RUST_TEST = re.compile(
    r"((?:^[ \t]*///.*\n)*[ \t]*#\[test\](?:\n[ \t]*#\[.*\])*\n[ \t]*fn \w+)", re.MULTILINE
)
_ENGINE = {f"ENG-{number:02d}" for number in range(1, 25)}
_PERFORMANCE_TEST = {
    *("JST-01", "JST-22", "RPT-30", "RPT-31", "MON-01", "MON-05", "MON-06", "MON-07"),
    *(f"JST-{number:02d}" for number in range(6, 20)),
    *(f"RPT-{number:02d}" for number in range(1, 18)),
}
_MODELLED_ARRAY = {
    *("HA-04", "MON-02", "STO-03", "STO-11", "STU-11", "STU-15", "STU-16", "STU-17"),
    *(f"SIM-{number:02d}" for number in range(1, 19)),
    *(f"STU-{number:02d}" for number in range(1, 8)),
}
_OTHER_TESTS = {
    *(
        "JST-02",
        "JST-03",
        "JST-04",
        "JST-05",
        "JST-20",
        "JST-21",
        "BKP-01",
        "BKP-02",
        "BKP-03",
        "DAT-01",
        "UI-01",
        "UI-02",
        "ORC-09",
    ),
    *("STU-10", "STU-15", "STU-18"),
    *(f"RPT-{number:02d}" for number in range(10, 33)),
}


def ids_of_rust_tests(source: str) -> set[str]:
    """The ids in names and documentation of a file's tests.

    Those in other comments count for nothing.
    """
    return {name for text in _RUST_TEST.findall(source) for name in ids_in(text)}


def ids_in(text: str) -> list[str]:
    """Ids as `JST-01` in prose and as `jst_01` in names."""
    return _ID.findall(text.upper().replace("_", "-"))


def ids_of_python_tests(source: str) -> set[str]:
    """The ids in the docstrings of a file's tests."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    tests = [node for node in functions if node.name.startswith("test_")]
    return {
        name for test in tests for name in ids_in(f"{test.name} {ast.get_docstring(test) or ''}")
    }


def test_every_capability_is_borne_by_a_test() -> None:
    """A capability without a test may be lost in any change, and nobody would see it."""
    borne: set[str] = set()
    for path in sorted((ROOT / "crates").glob("*/tests/**/*.rs")):
        borne |= ids_of_rust_tests(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "tests").glob("*/test_*.py")):
        borne |= ids_of_python_tests(path.read_text(encoding="utf-8"))
    wanted = _ENGINE | _PERFORMANCE_TEST | _MODELLED_ARRAY | _OTHER_TESTS
    assert borne >= wanted, f"no test bears {sorted(wanted - borne)}"


def test_only_the_words_of_a_test_count() -> None:
    """An id in a file's own text or above a helper must not hide that its test is gone."""
    rust = (
        "//! ENG-01\n/// ENG-02\nfn helper() {}\n/// ENG-03: it\n/// works, ENG-04.\n#[test]\nfn "
        "works() {}\n#[test]\nfn jst_05_too() {}\n"
    )
    assert ids_of_rust_tests(rust) == {"ENG-03", "ENG-04", "JST-05"}
    python = '"""ENG-05"""\ndef test_it():\n    """ENG-06"""\ndef helper():\n    """ENG-07"""\n'
    assert ids_of_python_tests(python) == {"ENG-06"}
