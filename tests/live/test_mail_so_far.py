"""The score that is shown while mail users work.

Never below the one that the report will have, and close to it.
"""

import numpy as np
import pytest

from plimsoll.live.mail_so_far import MailSoFar, bound_of
from plimsoll.plan.complete import plan_of_options
from tests.support.mail_run import mail_plan

CODES = {
    name: number
    for number, name in enumerate(
        (
            "mail_read_and_process_messages",
            "mail_send_mail",
            "mail_send_mail_refused",
            "mail_waiting",
        )
    )
}


def sample(end_s, rows):
    """One sample: metric, count, 99th percentile in ns and level of each row."""
    return {
        "end_ns": np.full(len(rows), end_s * 1_000_000_000, np.uint64),
        "metric": np.array([CODES[row[0]] for row in rows]),
        "count": np.array([row[1] for row in rows], np.uint64),
        "latency_ns_p99": np.array([row[2] for row in rows], np.uint64),
        "value": np.array([row[3] for row in rows], float),
    }


@pytest.fixture
def so_far(tmp_path):
    passwords = tmp_path / "passwords"
    passwords.write_text("*:x\n", encoding="utf-8")
    return MailSoFar(plan_of_options(mail_plan(passwords)), CODES)


def test_the_bound_holds_the_score_and_lies_close(so_far):
    """A thousand intervals of a second.

    What is shown must not promise more than the report keeps.
    """
    random = np.random.default_rng(3)
    everything = {"mail_read_and_process_messages": [], "mail_send_mail": []}
    so_far.begin()
    for second in range(1, 1001):
        rows = []
        for metric, values in everything.items():
            found = random.lognormal(3.0, 0.5, 30)
            values.extend(found)
            rows.append((metric, 30, int(np.quantile(found, 0.99, method="inverted_cdf") * 1e6), 0))
        so_far.add(sample(second, rows), 0)
    read, send = (np.quantile(values, 0.95) for values in everything.values())
    score = (52 * read + send) / 53
    bound = so_far.score_ms_at_most()
    assert score <= bound <= 3 * score


def test_a_line_says_what_is_done_refused_and_waiting(so_far):
    so_far.begin()
    assert "no result yet" in so_far.in_words()
    rows = [
        ("mail_send_mail", 40, 90_000_000, 0),
        ("mail_send_mail_refused", 2, 0, 0),
        ("mail_waiting", 0, 0, 7),
    ]
    so_far.add(sample(5, rows), 0)
    assert (
        so_far.in_words() == "mail: 40 tasks done, 2 refused, 7 waiting, score so far at most 90 ms"
    )
    so_far.begin()
    so_far.add(sample(6, rows), 6_000_000_000)
    assert "0 tasks done" in so_far.in_words(), "what ended before the phase is not of it"


def test_a_bound_covers_ninety_five_of_a_hundred():
    assert bound_of({10.0: 96, 500.0: 4}) == 10 and bound_of({10.0: 95, 500.0: 5}) == 500
