"""The benchmarks must keep working, and what they say of themselves must follow from their
record.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

import pairs  # noqa: E402
import reads  # noqa: E402
import report  # noqa: E402
import together  # noqa: E402


def test_the_lower_bound_lies_below_the_median_and_hears_of_every_pair() -> None:
    """A bound that flattered would let a miss pass as met."""
    steady = [1.0] * 11
    assert pairs.lower_bound(steady) == 1.0
    shaky = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert 0.5 <= pairs.lower_bound(shaky) < 1.0
    assert pairs.lower_bound([value * 2 for value in shaky]) == 2 * pairs.lower_bound(shaky)


def test_pairs_take_turns_at_going_first() -> None:
    """A warm-up that always hit the same side would be measured as its speed."""
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return 1.0

    compared = pairs.compare(3, lambda: side("ours"), lambda: side("theirs"))
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert compared.ratios == [1.0, 1.0, 1.0]


def test_latencies_are_compared_at_the_same_outstanding_io() -> None:
    """At 32 sessions 25 reads are outstanding.

    Fio at 32 asks more of the device, and comparing with it would flatter the engine.
    """
    assert [reads.neighbours(outstanding) for outstanding in (0.9, 1.0, 3.25, 16.0, 25.0)] == [
        [1],
        [1],
        [2, 4],
        [16],
        [16, 32],
    ]
    # Twice the outstanding I/O brings 1.5 times the rate here; half of the way in logarithms is the
    # root of both.
    low = {"iops": 12000.0, "us_mean": 2e6 / 12000, "us_p99": 200.0, "outstanding": 2.0}
    high = {"iops": 18000.0, "us_mean": 4e6 / 18000, "us_p99": 800.0, "outstanding": 4.0}
    found = reads.at_outstanding(8**0.5, [low, high])
    assert found["iops"] == pytest.approx(12000 * 1.5**0.5)
    assert found["us_p99"] == pytest.approx(400)
    assert found["iops"] * found["us_mean"] / 1e6 == pytest.approx(8**0.5), (
        "Little's law holds between the depths, too"
    )
    assert reads.at_outstanding(0.9, [low]) == low


@pytest.mark.parametrize(("at_once", "met"), [(0.44, True), (0.46, False)])
def test_loads_at_once_are_held_against_the_sum_of_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: float, *, met: bool
) -> None:
    """Four of a tenth of a processor may cost 0.44 together; each comes first in its turn."""
    asked: list[tuple[object, ...]] = []

    def one(words: list[object]) -> dict[str, object]:
        asked.append(tuple(words[5:]))
        return {"busiest": 0.1 if len(words) == 6 else at_once}

    monkeypatch.setattr(together, "_one", one)
    (figure,) = together.cost(tmp_path, quick=False)
    assert figure.met is met and figure.value.startswith(f"{at_once / 0.4:.3f} ")
    rounds = asked[5:]
    assert len(asked) == 5 + 5 * together.ROUNDS, "the first of each is not counted"
    assert {rounds[5 * number] for number in range(5)} == set(asked[:5])


def test_the_page_follows_from_the_record(tmp_path: Path) -> None:
    """A figure retyped by hand would be a figure nobody measured."""
    recorded = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    report.write(recorded, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "benchmarks.md").read_text()
    for section in recorded.values():
        assert section["environment"]["commit"]
        assert section["environment"]["processor"]


@pytest.mark.slow
@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v fio"], capture_output=True, check=False).returncode
    != 0,
    reason="fio is not installed",
)
def test_every_benchmark_runs_in_its_quick_form(tmp_path: Path) -> None:
    """A benchmark that is run once a year is found broken once a year."""
    # Not in a directory of pytest, which may be on tmpfs where direct I/O means nothing.
    command = [sys.executable, "bench/run.py", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Virtual time") == 3
    assert "redo rate" in done.stdout


def test_whatever_is_measured_has_a_place_in_the_document(tmp_path: Path) -> None:
    """Sections were recorded for days and stood nowhere."""
    with pytest.raises(KeyError, match="no place in the document for surprise"):
        report.write({"surprise": {}}, tmp_path / "page.md")
    recorded = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for name, section in recorded.items():
        assert f": {name.replace('_', ' ')}\n" in page
        assert all(figure["value"] in page for figure in section["figures"])
