"""The help of each named test.

Its own options first, then those it shares, in panels, with an example that can be copied.
"""

import re

import pytest

from plimsoll.cli import run_program

TESTS = (
    "performance",
    "backup",
    "recovery",
    "checksum",
    "stress",
    "max",
    "mailbox",
    "throughput",
    "files",
    "mail",
    "io",
    "store",
)
#: What only this test has.
OWN = {
    "backup": "--under-load",
    "recovery": "--logs",
    "stress": "--hours",
    "mailbox": "--users",
    "files": "--pattern",
    "io": "--block",
}


@pytest.mark.parametrize("name", TESTS)
def test_help_comes_in_panels(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty options in one list hide the three that matter."""
    assert run_program(["test", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Example: plimsoll test {name}" in re.sub(r"\s+", " ", text)
    panels = re.findall(r"^(\w[\w ]+):$", text, flags=re.MULTILINE)
    assert panels[-1] == "How the run is carried out"
    assert "Options" not in panels
    own, shared = text.split("How the run is carried out:")
    assert "--dry-run" in shared and "\n  --dry-run" not in own
    if name in OWN:
        assert OWN[name] in own.partition("What is tested:")[0]


def test_every_named_test_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """A test that is added is added here."""
    run_program(["test", "--help"])
    listed = re.findall(
        r"^  (\w+)  ", capsys.readouterr().out.split("Commands:")[1], flags=re.MULTILINE
    )
    assert set(TESTS) == set(listed)
