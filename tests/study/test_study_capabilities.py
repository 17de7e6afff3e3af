"""Every study of the papers that is built is borne by a test; what is not built is listed.

A test bears an id by carrying it in its name or docstring. An id leaves `NOT_BUILT` in the change
that builds it."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
WANTED = {f"STU-{number:02d}" for number in range(1, 19)}
#: Mail clients and their cache modes; groups of servers with copies; a degraded cluster.
NOT_BUILT = {"STU-08", "STU-09", "STU-12", "STU-13", "STU-14"}


def test_every_built_study_is_borne_by_a_test() -> None:
    """A study nobody tests is one nobody can rely on."""
    files = [
        *TESTS.glob("study/test_s[!t]*.py"),
        *TESTS.glob("study/test_study_command.py"),
        *TESTS.glob("compare/test_c*.py"),
    ]
    borne = {
        name
        for file in files
        for name in re.findall(r"STU-\d{2}", file.read_text(encoding="utf-8"))
    }
    assert borne >= WANTED - NOT_BUILT
    assert not NOT_BUILT & borne
