"""What `make fuzz` makes of libFuzzer's answers, and the form in which inputs are kept."""

from pathlib import Path

import pytest

from tests.fuzz import guided


def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, code: int) -> None:
    """A fuzzer that says this and ends so, once it has looked at the sound inputs."""
    program = tmp_path / "fuzzer"
    program.write_text(f'#!/bin/sh\n[ "$1" = -runs=0 ] && exit 0\necho "{says}" >&2\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setattr(guided, "build", lambda _: program)
    monkeypatch.setattr(guided, "CRATE", tmp_path)


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    """The same inputs in the same bytes, whatever their files are called.

    The engine's tests read the packed form too.
    """
    inputs = [b"", b"\x00" * 5000, b"page", bytes(range(256))]
    for number, content in enumerate(inputs):
        (tmp_path / "found").mkdir(exist_ok=True)
        (tmp_path / "found" / str(number)).write_bytes(content)
    assert guided.pack(tmp_path / "found", tmp_path / "kept.gz") == 4
    (tmp_path / "again").mkdir()
    guided.unpack(tmp_path / "kept.gz", tmp_path / "again")
    assert sorted(path.read_bytes() for path in (tmp_path / "again").iterdir()) == sorted(inputs)
    before = (tmp_path / "kept.gz").read_bytes()
    guided.pack(tmp_path / "again", tmp_path / "kept.gz")
    assert (tmp_path / "kept.gz").read_bytes() == before


def test_a_search_that_finds_nothing_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inputs, places and ways: how somebody sees whether longer would be worth it."""
    given(
        monkeypatch,
        tmp_path,
        "#2468 DONE   cov: 1357 ft: 4321 corp: 5/6b\n###### End of recommended dictionary. ######",
        0,
    )
    guided.search("recovery", 3, 1, keep=False)
    assert (
        "recovery: 2,468 inputs in 3 s reach 1,357 places in 4,321 ways" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("says", "code", "told"),
    [
        ("panicked at page.rs\n==1== ERROR: libFuzzer: deadly signal", 77, "panicked at page.rs"),
        ("==1== ERROR: libFuzzer: timeout after 20 seconds", 70, "an input does harm; it is in"),
        ("", 0, "an input does harm"),
        ("#2468 DONE   cov: 13 ft: 13 corp: 1/1b", 0, "the engine was built without counters"),
    ],
)
def test_a_search_that_finds_something_or_looks_at_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, code: int, told: str
) -> None:
    """Thousands of inputs to an engine without counters would look like hours of searching."""
    given(monkeypatch, tmp_path, says, code)
    with pytest.raises(SystemExit, match=told):
        guided.search("recovery", 3, 1, keep=False)
