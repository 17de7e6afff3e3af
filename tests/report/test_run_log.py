"""RPT-10: the test log in the order of the published ones, with its bounds, counts and results."""

import re
from pathlib import Path

import pytest

from plimsoll.report.run_log import LogLine, lines_of_folder, log_table
from plimsoll.settings import ENGINE_FORMAT

#: A word of each line in the published order.
ORDER = (
    "prepare started",
    "cache 1024 to 2048 pages",
    "thresholds (strict): average database read latency 20 ms",
    "40 % insert, 20 % delete, 5 % replace, 35 % read, 70 % lazy commits",
    "every cache holds 90 %",
    "collecting begins: a sample every 1 s",
    "collecting ends",
    "transactions (insert ",
    "every database was closed cleanly",
    "checksum: 100 % of ",
    " samples of 1 s cover ",
    "instance1/database001: Average database read latency: ",
    "result: ",
    "report saved",
)


@pytest.fixture(scope="module")
def lines(golden: Path) -> list[LogLine]:
    """The log of a run on a real disk that is kept with the tests."""
    return lines_of_folder(golden)


def test_RPT_10_the_log_has_the_published_order(lines: list[LogLine]) -> None:
    """Whoever knows the published log finds each of its lines where it was."""
    texts = [line.text for line in lines]
    places = [next((i for i, text in enumerate(texts) if word in text), -1) for word in ORDER]
    assert -1 not in places, [w for w, place in zip(ORDER, places, strict=True) if place < 0]
    assert places == sorted(places)
    assert [line.time_ns for line in lines] == sorted(line.time_ns for line in lines)


def test_JST_11_the_prerequisite_has_its_bound_in_bytes(lines: list[LogLine]) -> None:
    """90 % of 2,048 pages of 32 KiB, for each instance."""
    bounds = [line.text for line in lines if line.text.startswith("attaining prerequisites")]
    bound = 2048 * 32768 * 90 // 100
    assert len(bounds) == 2
    assert all(f"holds at least {bound:,} bytes (90 % of {2048 * 32768:,})" in t for t in bounds)


def test_ENG_20_each_instance_says_what_it_did(lines: list[LogLine]) -> None:
    """The counts of the log are the sums of its operations."""
    counted = [line.text for line in lines if " transactions (" in line.text]
    assert [text.split(":")[0] for text in counted] == ["instance1", "instance2"]
    for text in counted:
        total, *each = (int(word.replace(",", "")) for word in re.findall(r" (\d[\d,]*)", text))
        assert total == sum(each) > 0


def test_every_check_has_a_line_with_its_place(lines: list[LogLine]) -> None:
    """A result for each instance, not one for all."""
    results = [line.text for line in lines if line.text.endswith((": pass", ": FAIL"))]
    for place in ("instance1", "instance2"):
        assert any(text.startswith(f"{place}: Average log write latency: ") for text in results)
        assert any(
            text.startswith(f"{place}/database001: Damaged or misplaced pages: ")
            for text in results
        )


def test_the_checksum_goes_on_in_tenths_at_most(lines: list[LogLine]) -> None:
    """Progress, that ends at all of it; each database is told of when it is done."""
    shares = [
        int(found[1]) for line in lines if (found := re.match(r"checksum: (\d+) %", line.text))
    ]
    assert shares == sorted(set(shares)) and shares[-1] == 100 and len(shares) <= 10
    done = [line.text for line in lines if line.phase == "checksum" and ".edb: " in line.text]
    assert len(done) == 2


def test_the_log_is_a_table_of_seconds(lines: list[LogLine]) -> None:
    """What the report shows."""
    table = log_table(lines)
    assert table.headings[0] == "Second" and len(table.rows) == len(lines)


def test_the_report_names_the_format_that_the_engine_writes() -> None:
    """The version that stands in every header."""
    header = Path(__file__).parents[2] / "crates/plimsoll-engine/src/header.rs"
    constants = dict(re.findall(r"pub const (FORMAT_\w+): u32 = (0x\w+);", header.read_text()))
    version, update = constants["FORMAT_VERSION"], int(constants["FORMAT_UPDATE"], 16)
    assert f"ESE {version}, update {hex(update)}" == ENGINE_FORMAT
