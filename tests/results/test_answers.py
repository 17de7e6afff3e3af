"""What a test was to find out stands before everything else.

Who asks how much does not want to look for it.
"""

from typing import Any

import pytest

from plimsoll.results.answers import answers
from tests.support.plain_stages import summary_of

SEARCH = {
    "workload": "mix",
    "end": "narrow",
    "passed_per_s": 480.0,
    "passed_iops": 470.0,
    "confirmed": True,
    "failed_per_s": 489.6,
    "limited_by": "log_write_latency_mean",
    "confidence_percent": None,
    "tolerance_percent": 2,
    "steps_count": 9,
}


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (
            {},
            "highest rate of mix: 480.0 transactions/s and 470 database IOPS pass, 489.6 "
            "transactions/s do not; "
            "first limit: average log write latency",
        ),
        (
            {"failed_per_s": None, "limited_by": None},
            "highest rate of mix: 480.0 transactions/s and 470 database IOPS pass, "
            "no higher rate was seen to fail; first limit: none was met",
        ),
        (
            {"passed_per_s": None, "passed_iops": None, "failed_per_s": 1.0},
            "highest rate of mix: none passes; 1 transactions/s do not; "
            "first limit: average log write latency",
        ),
        (
            {"search": "max_sessions", "passed_sessions": 20, "failed_sessions": 21},
            "most sessions of mix: 20 with 480.0 transactions/s and 470 database IOPS pass, "
            "21 do not; first limit: average log write latency",
        ),
        (
            {
                "search": "max_sessions",
                "passed_sessions": 10,
                "failed_per_s": None,
                "limited_by": None,
            },
            "most sessions of mix: 10 with 480.0 transactions/s and 470 database IOPS pass, "
            "no higher number was seen to fail; first limit: none was met",
        ),
        (
            {
                "search": "max_sessions",
                "passed_per_s": None,
                "passed_iops": None,
                "failed_per_s": 0.4,
                "failed_sessions": 1,
            },
            "most sessions of mix: none passes; 1 does not; first limit: average log write latency",
        ),
    ],
)
def test_a_search_answers_with_its_bracket_and_its_first_limit(
    found: dict[str, Any], answer: str
) -> None:
    """`test max` printed twenty lines before the rate that it had looked for."""
    assert answers(summary_of({"load": {"searches": [SEARCH | found]}})) == [answer]


def test_a_run_without_a_question_has_no_answer() -> None:
    """A performance test asks whether limits are kept: its verdict is the answer."""
    assert answers(summary_of({})) == []
