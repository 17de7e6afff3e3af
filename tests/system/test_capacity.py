"""How many users a storage carries.

The answer is arithmetic on what was found, and says what it does not know.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll.databases import preflight
from plimsoll.documents.capacity import Capacity
from plimsoll.documents.verdict import Verdict
from plimsoll.pipeline import forecast
from plimsoll.plan import capacity_search
from plimsoll.plan.complete import plan_of_options
from tests.support.plain_stages import filled, summary_of

SOURCE = str(Path(__file__).parents[2] / "python")
FOUND = {
    "workload": "mix",
    "end": "narrow",
    "passed_per_s": 480.0,
    "passed_iops": 470.0,
    "confirmed": True,
    "failed_per_s": 489.6,
    "limited_by": "log_write_latency_mean",
    "confidence_percent": None,
    "tolerance_percent": 2,
}


def answer(
    search: dict[str, Any] | None = None, result: str = "pass", iops: float = 462.5, **bounds: float
) -> Capacity:
    plan = plan_of_options(capacity_search.capacity_options(Path("/data"), 15, "2010", 4096))
    plan = plan.replace(run=plan.run.replace(**bounds))
    summary = {
        "load": {"searches": [FOUND | (search or {})]},
        "total": {"database_iops": iops},
        "window": {"seconds": 180.0},
    }
    verdict = {"result": result, "reasons": ["a reason"], "not_qualifying_because": ["too short"]}
    return capacity_search.answer(
        plan, summary_of(summary), Verdict.from_plain(filled(Verdict, verdict)), "vnxe", 0.2
    )


def test_the_published_appendix_comes_out() -> None:
    """EMC's paper: 462.5 IOPS at 0.2 for each user and 20 per cent headroom are 1,927, printed as
    1,900.
    """
    found = answer()
    assert found.users == 1900
    assert not found.at_least
    text = "\n".join(capacity_search.in_words(found))
    assert "carries about 1,900 vnxe users at 20 ms" in text
    assert text.splitlines()[1].startswith(
        "bracket: 462 database IOPS pass; the next rate, 2.0% higher"
    )
    assert text.splitlines()[2] == "first limit: average log write latency"
    assert "confidence: none is stated" in text and "2.0% higher" in text
    assert answer().confidence_percent is None, "so many looks hold no 95 % together"
    assert "too short" in text and "backup, recovery" in text


def test_the_lower_of_search_and_judged_phase_counts() -> None:
    """A number must hold in both.

    What was found while searching and what was measured afterwards.
    """
    assert answer(iops=600.0).database_iops == 470.0


def test_a_generator_limit_gives_a_lower_bound() -> None:
    """A storage quicker than one thread carries at least so many.

    Saying "about" would sell it short.
    """
    for search in ({"limited_by": "generator"}, {"failed_per_s": None, "limited_by": None}):
        assert "carries at least 1,900 vnxe users" in "\n".join(
            capacity_search.in_words(answer(search))
        )
    assert "not the storage" in "\n".join(
        capacity_search.in_words(answer({"limited_by": "generator"}))
    )


def test_an_answer_whose_first_limit_was_the_generator_is_inconclusive() -> None:
    """A passing disturbance of the machine ended the search, and the answer quoted 95 % for a rate
    at which the storage was never tried.
    """
    found = answer({"limited_by": "generator"})
    assert (found.result, found.confidence_percent, found.failed_iops_above_share) == (
        "inconclusive",
        None,
        None,
    )
    text = "\n".join(capacity_search.in_words(found))
    assert text.startswith("inconclusive: carries at least 1,900 vnxe users")
    assert "confidence" not in text and "bracket" not in text
    assert answer().result == "pass"


def test_a_ceiling_gives_a_lower_bound_and_is_no_limit_of_the_storage() -> None:
    """On a shared array a search is held back on purpose.

    What it found must not read like all the array can do.
    """
    for limit in ("throughput", "page_fault_stalls", "generator"):
        text = "\n".join(capacity_search.in_words(answer({"limited_by": limit}, max_iops=480.0)))
        assert "carries at least 1,900 vnxe users" in text
        assert "first limit: the ceiling that was asked for, not the storage" in text
        assert "more than the ceiling of 480 reads and writes per second that was asked for" in text
    assert "ceiling" not in "\n".join(
        capacity_search.in_words(answer({"limited_by": "throughput"}))
    )


def test_no_number_without_a_pass() -> None:
    """A rate that failed when it was judged is no answer, however good the search looked."""
    found = answer(result="fail")
    assert found.users is None
    assert "no number of vnxe users can be stated: a reason" in capacity_search.in_words(found)[0]


def test_the_plan_keeps_to_its_minutes_and_its_space(tmp_path: Path) -> None:
    """One command without a plan must neither fill a disk nor take all day."""
    size = capacity_search.database_size_mib(tmp_path, 15)
    assert capacity_search.SIZE_MIB_MIN <= size <= capacity_search.SIZE_MIB_MAX
    assert capacity_search.database_size_mib(tmp_path, 1) <= 60 * 150
    plan = plan_of_options(capacity_search.capacity_options(tmp_path, 15, "2010", size))
    seconds = sum(getattr(phase.action, "duration_s", 0) for phase in plan.run.phases)
    assert seconds <= 15 * 60 * 0.8
    load = plan.run.workloads[0].load
    assert (load.step_s + load.settle_s) * 10 < 15 * 60 * capacity_search.SEARCH_SHARE


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plimsoll.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": SOURCE},
        check=False,
    )


@pytest.mark.slow
def test_one_command_gives_the_answer(tmp_path: Path) -> None:
    """Prepare, search, judge, answer, clean up.

    On a real disk, in half a minute, with its points kept for the chart.
    """
    result = run(
        "capacity",
        tmp_path / "disk",
        "--users",
        "heavy",
        "--minutes",
        "0.5",
        "--size-mib",
        "256",
        "--backend",
        "raw_files",
        "--out",
        tmp_path / "run",
        "--json",
        cwd=tmp_path,
    )
    assert result.returncode in (0, 1, 3), result.stderr
    found = json.loads(result.stdout)
    assert found["kind_of_user"] == "heavy"
    assert (found["users"] is None) == (result.returncode != 0)
    points = json.loads((tmp_path / "run" / "points.json").read_text())
    steps = points["searches"][0]["steps"]
    assert len(steps) >= 2
    assert all(step["database_iops"] > 0 for step in steps)
    assert json.loads((tmp_path / "run" / "capacity.json").read_text())["users"] == found["users"]
    assert not (tmp_path / "disk").exists(), "it cleans up after itself"


def test_the_harm_of_a_search_can_be_looked_at_and_bounded(tmp_path: Path) -> None:
    """A search presses harder than any other load.

    What it will write, and its ceilings, must be seen beforehand.
    """
    bounds = [
        "--max-iops",
        "200",
        "--max-mib-per-s",
        "20",
        "--stop-if",
        "db_read_latency_ms_p99>50 for 30s",
    ]
    shown = run("capacity", tmp_path / "disk", "--minutes", "1", "--dry-run", *bounds, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for line in (
        "at most 200 reads and writes per second",
        "at most 20 MiB per second",
        "stops when db_read",
        "endurance",
    ):
        assert line in shown.stdout
    plan = json.loads(
        run(
            "capacity",
            tmp_path / "disk",
            "--minutes",
            "1",
            "--dry-run",
            "--json",
            *bounds,
            cwd=tmp_path,
        ).stdout
    )
    assert (plan["run"]["max_iops"], plan["run"]["max_mib_per_s"]) == (200.0, 20.0)
    assert plan["stop_if"] == ["db_read_latency_ms_p99>50 for 30s"]
    refused = run(
        "capacity",
        tmp_path / "disk",
        "--minutes",
        "1",
        "--dry-run",
        "--stop-if",
        "nonsense",
        cwd=tmp_path,
    )
    assert refused.returncode == 2 and "is not a condition" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_minutes_agree_to_time_and_not_to_space(tmp_path: Path) -> None:
    """A fifth of the free space is taken only after a yes, however short the search.

    Its own choice of size needs none.
    """
    fifth_mib = shutil.disk_usage(tmp_path).free // 5 >> 20
    refused = run(
        "capacity", tmp_path / "disk", "--minutes", "1", "--size-mib", fifth_mib, cwd=tmp_path
    )
    assert refused.returncode == 2
    assert "of the free space" in refused.stderr and "--yes" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    own = plan_of_options(
        capacity_search.capacity_options(
            tmp_path / "disk", 15, "2010", capacity_search.database_size_mib(tmp_path, 15)
        )
    )
    expected = preflight.inspect(own.run)
    assert forecast.reasons_to_ask(own, expected, time_agreed=True) == []


def test_an_unknown_user_is_a_usage_error(tmp_path: Path) -> None:
    """Guessing what a user makes would look like a fact."""
    result = run("capacity", tmp_path, "--users", "hevy", cwd=tmp_path)
    assert result.returncode == 2
    assert "--iops-per-user" in result.stderr
    assert list(tmp_path.iterdir()) == []
