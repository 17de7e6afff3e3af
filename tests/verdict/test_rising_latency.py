"""Latencies that rise throughout a run: within the limit on average, and not for long."""

from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.plain_stages import judge, summarize
from tests.support.synthetic import EMC, START_S, make_folder
from tests.verdict.test_sustained_and_stalls import rewritten

#: Of the time since the measured time began, in nanoseconds.
SINCE_NS = f"(end_ns - {START_S} * 1000000000::BIGINT)"
READS = "phase = 'measure' AND metric = 'database_read'"


@pytest.mark.parametrize(
    ("each_ns", "is_said"),
    [
        # 1 ms at first, 32 at the end: 16 on average.
        (f"1000000 + {SINCE_NS} / 2000", True),
        # The same and less: the last fifth is within the limit of 20 ms.
        (f"1000000 + {SINCE_NS} / 4000", False),
        # The same the other way round: it became faster.
        (f"31000000 - {SINCE_NS} / 2000", False),
        # High at the end, but not higher and higher.
        (f"CASE WHEN {SINCE_NS} > 48000000000 THEN 30000000 ELSE 10000000 END", False),
    ],
)
def test_reads_that_become_slower_and_slower_are_said(
    tmp_path: Path, each_ns: str, is_said: bool
) -> None:
    """They pass, and the next hour would fail: nobody has seen where they end."""
    run = make_folder(
        tmp_path / "run",
        seconds=60,
        interval_s=1,
        rates=[{**EMC[0], "database_read": (5.0, 100.0, 32768.0)}],
    )
    rewritten(
        run,
        latency_ns_sum=f"CASE WHEN {READS} THEN (count * ({each_ns}))::UBIGINT ELSE "
        f"latency_ns_sum END::UBIGINT",
    )
    plan, environment = (folder.read_json(run / name) for name in (folder.PLAN, folder.ENVIRONMENT))
    found = summarize(run)
    verdict = judge(plan, found, environment)
    failed = [check["name"] for check in verdict["checks"] if check["status"] == "fail"]
    assert "database_read_latency_mean" not in failed
    said = "database reads of instance1/database001 became slower and slower: "
    for texts in (verdict["warnings"], verdict["not_qualifying_because"]):
        assert any(text.startswith(said) for text in texts) == is_said
    if is_said:
        (rising,) = found["rising"]
        assert 3 < rising["first_ms"] < 6 and 26 < rising["last_ms"] < 30
