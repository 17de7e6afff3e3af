"""What judges a soak must see a leak, and a short run must be flat by it."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from plimsoll.files import folder
from tests.soak.flat import MIB, Allowance, Reading, judged, not_flat, told_by_reader
from tests.soak.soaking import reader_seconds, soak

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
FLAT = [
    Reading(
        float(second), 200 * MIB + second % 5 * MIB, 40, 12, 8 * MIB, (500 + second) * MIB, second
    )
    for second in range(200)
]


def test_what_is_flat_is_flat() -> None:
    """Noise, and growth by what the load inserts, are no leaks."""
    assert not_flat(FLAT) == []


@pytest.mark.parametrize(
    ("leak", "phrase"),
    [
        (
            {"memory_bytes": lambda one: one.memory_bytes + int(one.seconds) * MIB // 4},
            "memory grew",
        ),
        ({"descriptors_count": lambda one: 40 + int(one.seconds) // 20}, "descriptors grew from"),
        ({"threads_count": lambda one: 12 + int(one.seconds) // 20}, "threads grew"),
        ({"log_bytes": lambda one: int(one.seconds) * MIB}, "logs grew"),
        ({"database_bytes": lambda one: int(one.seconds**2) * MIB}, "databases grew by"),
        ({"run_folder_bytes": lambda one: int(one.seconds**2) << 10}, "the run folder grew by"),
    ],
)
def test_a_leak_is_seen(leak: dict[str, object], phrase: str) -> None:
    """Each in its own words; a judge that sees nothing would make every soak pass."""
    leaking = [replace(one, **{key: grow(one) for key, grow in leak.items()}) for one in FLAT]  # type: ignore[operator, arg-type]
    (problem,) = not_flat(leaking)
    assert phrase in problem


def test_too_few_readings_say_nothing() -> None:
    """A run that broke off at once is not flat, it is unknown."""
    assert "only 3 readings" in not_flat(FLAT[:3])[0]


@pytest.mark.parametrize(
    ("damage", "phrase"),
    [
        ({"ending": "failed"}, "ended failed"),
        ({"error": {"family": "disk", "message": "gone"}}, "gone"),
        ({"checksums": []}, "no page was verified"),
        ({"checksums": [{"name": "one", "bad": 3}]}, "3 bad pages in one"),
    ],
)
def test_a_run_that_failed_is_no_soak(
    damage: dict[str, object], phrase: str, tmp_path: Path
) -> None:
    """A run that dies early uses nothing more, and is as flat as can be."""
    events = tmp_path / folder.EVENTS
    shutil.copy(GOLDEN / folder.EVENTS, events)
    shutil.copy(GOLDEN / folder.SAMPLES, tmp_path)
    summary = folder.read_json(GOLDEN / folder.SUMMARY)
    folder.write_json(tmp_path / folder.SUMMARY, summary)
    assert judged(tmp_path) == []
    folder.write_json(tmp_path / folder.SUMMARY, summary | damage)
    assert phrase in " ".join(judged(tmp_path))
    folder.write_json(tmp_path / folder.SUMMARY, summary)
    with events.open("a") as file:
        file.write('{"kind": "io_error", "message": "no medium"}\n')
    assert "1 I/O failed" in " ".join(judged(tmp_path))
    # As if nothing had been done any more after a tenth of the time.
    idle = (
        "SELECT * REPLACE (if(end_ns > (SELECT quantile_cont(end_ns, 0.1) FROM all_rows), 0, "
        "count) AS count) FROM all_rows"
    )
    duckdb.sql(f"CREATE OR REPLACE VIEW all_rows AS FROM '{GOLDEN / folder.SAMPLES}'")
    duckdb.sql(f"COPY ({idle}) TO '{tmp_path / folder.SAMPLES}' (FORMAT parquet)")
    assert "the load stood still" in " ".join(judged(tmp_path))
    (tmp_path / folder.SUMMARY).unlink()
    assert "left no result" in " ".join(judged(tmp_path))


@pytest.mark.parametrize(
    ("part_s", "slowest_count", "stood_still"),
    [
        (2, 195, False),
        (2, 1, False),
        (2, 0, True),
        (59, 1, False),
        (60, 599, False),
        (60, 195, True),
        (3600, 195, True),
    ],
)
def test_a_busy_machine_is_no_standstill(
    tmp_path: Path, part_s: int, slowest_count: int, stood_still: bool
) -> None:
    """Some seconds may be taken by another process, a minute may not.

    No operation at all is a standstill however short.
    """
    shutil.copy(GOLDEN / folder.EVENTS, tmp_path)
    shutil.copy(GOLDEN / folder.SUMMARY, tmp_path)
    # The load has a beginning, an end, and the middle of each of its four parts between them.
    counts = [0, 1770, 0, slowest_count, 0, 1770, 0, 1770, 0]
    rows = [
        ("measure", "read", half * part_s * 500_000_000, count) for half, count in enumerate(counts)
    ]
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES {', '.join(map(str, rows))}) AS row(phase, metric, end_ns, "
        f"count))"
        f" TO '{tmp_path / folder.SAMPLES}' (FORMAT parquet)"
    )
    assert any("stood still" in problem for problem in judged(tmp_path)) == stood_still


def test_a_transaction_that_did_not_stay_open_is_missed(tmp_path: Path) -> None:
    """Without it nothing is kept that could stay."""
    for name in (folder.EVENTS, folder.SAMPLES, folder.SUMMARY):
        shutil.copy(GOLDEN / name, tmp_path)
    assert judged(tmp_path) == []
    assert "no transaction stayed open" in " ".join(judged(tmp_path, 600))
    with (tmp_path / folder.EVENTS).open("a") as file:
        text = "a transaction was open for 599.8 s and read the same 1000 rows 120 times"
        file.write(json.dumps({"kind": "long_reader_ended", "text": text}) + "\n")
    assert judged(tmp_path, 600) == []


def test_a_short_soak_is_flat(tmp_path: Path) -> None:
    """The short form of `make soak`.

    Some seconds under load, with an allowance for what Python still loads and for logs before the
    first checkpoint.
    """
    hours = 8 / 3600
    code, readings = soak(tmp_path, hours, 64)
    assert code in (0, 1, 3), (tmp_path / "errors.txt").read_text()
    allowed = Allowance(
        memory_bytes=64 * MIB, descriptors_count=8, threads_count=8, log_bytes=64 * MIB
    )
    assert not_flat(readings, allowed) == []
    assert judged(tmp_path / "run", reader_seconds(hours)) == []
    (told,) = told_by_reader(tmp_path / "run")
    assert "read the same 1000 rows" in told
    with (tmp_path / "readings.csv").open() as file:
        assert len(list(csv.reader(file))) == len(readings) + 1
