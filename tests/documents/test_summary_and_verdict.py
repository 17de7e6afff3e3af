"""Plans, summaries and verdicts are read and written key by key, also those of version 0.1.

What is none is refused whole.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.document import DocumentError
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import read_verdict, verdict_of
from plimsoll.report.page import render
from tests.support.plain_stages import filled

GOLDEN = Path(__file__).parents[1] / "golden"
OLD, NOW = GOLDEN / "version-0.1", GOLDEN / "run"


def content(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", [OLD, NOW], ids=lambda path: path.name)
@pytest.mark.parametrize(("kind", "name"), [(Plan, "plan.json"), (Summary, "summary.json")])
def test_plans_and_summaries_keep_their_keys(kind, name, folder):
    """A run is judged again from its files for years: what reads them must not lose any of it."""
    assert kind.read(folder / name).plain() == content(folder / name)


def test_a_verdict_of_version_1_is_read_as_one_of_version_2():
    """What was `guilty` is `bottlenecks`; nothing else changed."""
    old = content(OLD / "verdict.json")
    found = read_verdict(OLD / "verdict.json").plain()
    assert old["schema_version"] == 1 and "guilty" in old
    assert found == {key: value for key, value in old.items() if key != "guilty"} | {
        "schema_version": 2,
        "bottlenecks": old["guilty"],
    }


def test_a_bottleneck_of_version_1_is_told(tmp_path):
    """The accused of an old verdict stand in the report of today."""
    entry = {
        "what": "check",
        "check": "log_write_latency_mean",
        "title": "Log write latency mean",
        "scope": "one",
        "layer": "device",
        "cause": "log",
        "text": "device: the log",
        "evidence": ["it was slow"],
        "split_ms": None,
    }
    for path in NOW.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    old = content(OLD / "verdict.json") | {"guilty": [entry]}
    (tmp_path / "verdict.json").write_text(json.dumps(old), encoding="utf-8")
    assert "device: the log" in render(tmp_path)


def test_a_verdict_of_version_2_has_no_guilty():
    with pytest.raises(DocumentError, match="`guilty` is not a known key"):
        verdict_of(content(NOW / "verdict.json") | {"guilty": []})


def test_every_mistake_of_a_summary_is_reported():
    """Who repairs a file by hand wants the whole list."""
    wrong = filled(Summary, {"windows": 1, "total": {"database_iops": "300"}, "debug_build": None})
    with pytest.raises(DocumentError) as caught:
        Summary.from_plain(wrong)
    assert set(caught.value.mistakes) == {
        "`windows` is not a known key",
        '`total.database_iops` is "300", but must be a number',
        "`debug_build` is null, but must be true or false",
    }
