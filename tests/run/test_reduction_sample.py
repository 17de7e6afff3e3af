"""What the written pages are like: measured on the files, against contents that are known."""

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.run_spec import RunSpec
from plimsoll.documents.summary import Content
from plimsoll.files import folder
from plimsoll.run.reduction_sample import (
    ALGORITHM,
    PIECE_BYTES,
    PIECES_MAX,
    measure_content,
    piece_starts,
)
from tests.support.places import plimsoll
from tests.support.plain_stages import filled

KIB = 1024


def measured(home: Path, **files: bytes) -> Content:
    for name, content in files.items():
        (home / name).write_bytes(content)
    return measure_content(
        run_of(home, *({"file_name": name, "compressible_percent": 0} for name in files))
    )


def run_of(home: Path, *databases: dict[str, Any]) -> RunSpec:
    instance = {"backend": "engine", "directory": str(home), "databases": list(databases)}
    return RunSpec.from_plain(filled(RunSpec, {"instances": [instance]}))


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("percent", [0, 25, 50, 100])
def test_known_contents_are_found_again(tmp_path: Path, percent: int) -> None:
    """Blocks of noise with a share of spaces: what can be taken off is that share."""
    spaces = 32 * KIB * percent // 100
    content = b"".join(noise(32 * KIB - spaces, seed) + b" " * spaces for seed in range(32))
    found = measured(tmp_path, one=content).databases[0]
    assert found.compressible_percent == pytest.approx(percent, abs=1.5)
    assert found.zero_percent == 0


def test_duplicates_are_found_across_databases(tmp_path: Path) -> None:
    """Copies of one file are what makes a deduplicating storage look absurdly good.

    Half of all blocks is the least they are.
    """
    once, other = noise(256 * KIB, 1), noise(256 * KIB, 2)
    assert measured(tmp_path, one=once, two=other).duplicate_percent == 0
    assert measured(tmp_path, one=once, two=once).duplicate_percent == 50
    assert measured(tmp_path, one=once, two=noise(100, 3) + once).duplicate_percent == 0


def test_zeros_are_counted_by_themselves(tmp_path: Path) -> None:
    """Space that was never written is no duplicate of anything."""
    found = measured(tmp_path, one=noise(256 * KIB) + bytes(256 * KIB))
    assert found.databases[0].zero_percent == 50
    assert found.duplicate_percent == 0


def test_a_large_file_is_sampled_from_end_to_end() -> None:
    """A sample of the beginning alone would miss what the load wrote at the end."""
    starts = piece_starts(1 << 40)
    assert len(set(starts)) == PIECES_MAX
    assert (starts[0], starts[-1]) == (0, (1 << 40) - PIECE_BYTES)


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    """A figure for a file nobody could read would be an invention."""
    found = measure_content(run_of(tmp_path, {"file_name": "x", "compressible_percent": 3}))
    assert found.duplicate_percent is None
    assert found.databases[0].reason == "No such file or directory"


def test_the_dial_does_what_it_says_on_a_real_database(tmp_path: Path) -> None:
    """More compressible content, more that a storage can take off, and the report says how much."""
    plan = tmp_path / "plan.toml"
    instances = "".join(
        f'[[instance]]\nname = "c{percent}"\ndatabase_size_mib = 64\ncache_mib_max = '
        f"8\ncompressible_percent = {percent}\n"
        for percent in (0, 50)
    )
    plan.write_text(
        'kind = "plan"\nschema_version = 1\n'
        f'[[target]]\nname = "disk"\npath = "{tmp_path / "db"}"\n{instances}'
        '[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "measure"\nduration_s = 2\n[[phase]]\nkind '
        '= "stop"\n'
    )
    result = plimsoll("run", plan, "--yes", "--quiet", "--out", "out", cwd=tmp_path)
    assert result.returncode in (0, 1, 3), result.stderr
    content = json.loads((tmp_path / "out" / folder.CONTENT).read_text())
    plain, half = (item["compressible_percent"] for item in content["databases"])
    # What grew in the measured seconds is partly empty, and that compresses.
    assert plain < 40
    assert half - plain == pytest.approx(50 * (1 - plain / 100), abs=12)
    # Somebody else's sum over the whole of one file.
    whole = (tmp_path / "db" / "c50" / "database001.edb").read_bytes()
    blocks = [whole[place : place + 32 * KIB] for place in range(0, len(whole), 32 * KIB)]
    packed = sum(min(len(zlib.compress(block, 1)), len(block)) for block in blocks)
    assert half == pytest.approx(100 * (1 - packed / len(whole)), abs=3)
    assert content["duplicate_percent"] < 10
    report = (tmp_path / "out" / folder.REPORT).read_text()
    assert "Content of the written pages" in report
    assert ALGORITHM in report


DUPLICATES = """
kind = "plan"
schema_version = 1
[[target]]
name = "disk"
path = "{home}/db"
[[instance]]
name = "one"
databases = {count}
database_size_mib = {size}
cache_mib_max = 8
duplicate_percent = {percent}
[[instance]]
name = "two"
database_size_mib = 64
cache_mib_max = 8
{further}
[[phase]]
kind = "prepare"
[[phase]]
kind = "stop"
"""


def duplicates_plan(
    home: Path,
    *,
    count: int = 1,
    percent: int = 40,
    size: int = 64,
    further: str = "duplicate_percent = 40",
) -> Path:
    plan = home / "plan.toml"
    plan.write_text(
        DUPLICATES.format(home=home, count=count, percent=percent, size=size, further=further)
    )
    return plan


@pytest.mark.parametrize(
    ("count", "percent"),
    [
        pytest.param(1, 0, marks=pytest.mark.slow),
        pytest.param(1, 40, marks=pytest.mark.slow),
        (2, 20),
    ],
)
def test_the_dial_of_duplicates_does_what_it_says(tmp_path: Path, count: int, percent: int) -> None:
    """A storage that deduplicates must find the share that was asked for, whatever the number of
    databases, and none by default.
    """
    plan = duplicates_plan(
        tmp_path, count=count, percent=percent, further=f"duplicate_percent = {percent}"
    )
    result = plimsoll("run", plan, "--yes", "--quiet", "--out", "out", cwd=tmp_path)
    assert result.returncode in (0, 1, 3), result.stderr
    content = json.loads((tmp_path / "out" / folder.CONTENT).read_text())
    assert content["asked_duplicate_percent"] == percent
    # A leaf with room ends in a block that holds its tags alone, and these are alike: a twentieth
    # of what is not shared.
    assert content["duplicate_percent"] == pytest.approx(percent + 0.05 * (100 - percent), abs=4)
    assert (
        f"{percent} % of the prepared pages were asked for"
        in (tmp_path / "out" / folder.REPORT).read_text()
        or not percent
    )
    verified = plimsoll("verify", tmp_path / "db", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"further": ""}, "needs two databases"),
        (
            {"percent": 60, "further": "duplicate_percent = 60"},
            "is above 50, the most that 2 databases can have in common",
        ),
        ({"percent": 30}, "is 40, but 30 in another instance"),
        ({"size": 128}, "stands in instances of different size_bytes"),
        ({"further": "duplicate_percent = 40\npage_kib = 8"}, "different page_bytes"),
        ({"further": 'duplicate_percent = 40\nbackend = "raw_files"'}, "needs the engine"),
        ({"percent": 100}, "duplicate_percent"),
    ],
)
def test_duplicates_that_cannot_be_are_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """A dial that silently does less than it says would be taken at its word."""
    result = plimsoll("run", duplicates_plan(tmp_path, **changes), "--dry-run", cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr
    assert "plan.toml:" in result.stderr, "with its line"
