"""Samples and events as lines of JSON, and percentiles of the user's choice, as a program asks for
them.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.places import plimsoll

SMALL = ["--databases", "1", "--size-mib", "64", "--cache-mib", "8"]


def test_lines_of_json_and_percentiles(tmp_path: Path) -> None:
    """A program that reads a run while it goes on: each line one object, the verdict last."""
    options = [*SMALL, "--minutes", "0.05", "--sessions", "1", "--json-lines"]
    result = plimsoll(
        "test", "performance", tmp_path / "disk", *options, "--out", tmp_path / "run", cwd=tmp_path
    )
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = {line["kind"] for line in lines}
    assert kinds == {"sample", "event", "verdict"}
    assert lines[-1]["kind"] == "verdict"
    reads = [line for line in lines if line.get("metric") == "database_read"]
    assert any(line.get("count") for line in reads)
    assert all(line["phase"] and line["instance"] for line in reads)
    table = plimsoll("report", tmp_path / "run", "--percentiles", "50,99.999", cwd=tmp_path)
    assert "p99.999" in table.stdout and "database read" in table.stdout
    wrong = plimsoll("report", tmp_path / "run", "--percentiles", "101", cwd=tmp_path)
    assert wrong.returncode == 2 and "50,99.9" in wrong.stderr


@pytest.mark.slow
def test_lines_of_json_of_a_curve(tmp_path: Path) -> None:
    """Samples of several points follow one another: a line before them says which it is."""
    options = [
        "--depth",
        "1,2",
        "--size-mib",
        "64",
        "--seconds",
        "1",
        "--ramp-s",
        "0",
        "--yes",
        "--json-lines",
    ]
    done = plimsoll("test", "io", tmp_path / "disk", *options, "--out", "out", cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    points = [place for place, line in enumerate(lines) if line["kind"] == "point"]
    asked = [(lines[at]["block_bytes"], lines[at]["depth"]) for at in points]
    assert asked == [(4096, 1), (4096, 2)]
    assert points[0] == 0
    for first, end in pairwise([*points, len(lines) - 1]):
        reads = [line for line in lines[first:end] if line.get("metric") == "file_read"]
        assert sum(line.get("count", 0) for line in reads) > 0
    assert lines[-1]["kind"] == "curve" and len(lines[-1]["points"]) == 2
    both = plimsoll("test", "io", tmp_path / "disk", *options, "--json", cwd=tmp_path)
    assert both.returncode == 2 and "leave it or --json-lines out" in both.stderr
