"""Which failed operations are counted, and none of them twice."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.documents.outcome import ErrorReport
from plimsoll.files import folder
from plimsoll.results.integrity import ended_by_an_operation, failed_operations_s

READ = "read of /data/one failed: input/output error (errno 5)"
GONE = "list /data/u1 failed: no such file or directory (errno 2); check the path"


def outcome(family: str, text: str) -> Any:
    """A run that ended in its second phase, after 9 s."""
    phases = [
        SimpleNamespace(end_ns=2_000_000_000, complete=True),
        SimpleNamespace(end_ns=9_000_000_000, complete=False),
    ]
    return SimpleNamespace(error=ErrorReport(family=family, text=text), phases=phases)


@pytest.mark.parametrize(
    ("family", "text", "expected", "is_counted"),
    [
        ("disk", READ, [4.0], True),
        ("disk", f"the log is damaged: {READ}", [4.0], True),
        ("disk", GONE, [4.0, 9.0], True),
        ("corruption", "/data/u1/f1 has 3 bytes, but 9 were written", [4.0, 9.0], False),
        ("disk", "hung I/O: an I/O that was under way has not returned", [4.0, 9.0], False),
        ("stopped", "the run was stopped", [4.0], False),
        ("config", "no space", [4.0], False),
    ],
)
def test_what_ends_a_run_has_failed_and_is_counted_once(
    tmp_path: Path, family: str, text: str, expected: list[float], *, is_counted: bool
) -> None:
    """One read has failed after 4 s, which the engine tried again or did not."""
    told = {"time_ns": 4_000_000_000, "utc_ns": 0, "level": "error", "phase": None}
    line = json.dumps({**told, "kind": "io_error", "text": READ})
    (tmp_path / folder.EVENTS).write_text(f"{line}\n", encoding="utf-8")
    assert failed_operations_s(tmp_path, outcome(family, text)) == expected
    assert ended_by_an_operation(outcome(family, text)) is is_counted
