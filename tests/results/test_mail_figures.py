"""Figures of mail users from the files of a run.

Percentiles, score, levels, front ends, the balance and the audit.
"""

import numpy as np
import pytest

from plimsoll.compare import compare, read_sides
from plimsoll.documents.summary import Summary
from plimsoll.results.mail import in_words
from tests.support.mail_run import MailRun, make_mail_folder, usual_run
from tests.support.plain_stages import summarize, summary_of
from tests.support.synthetic import finish


def figures_of(path, run=None, **plan):
    found = summarize(make_mail_folder(path / "run", run, **plan))
    return found["mail"][0], found


def test_LG_06_percentiles_are_those_of_the_raw_responses(tmp_path):
    """Distributions keep two digits: within one in a hundred, and never below."""
    run = usual_run()
    found, _ = figures_of(tmp_path, run)
    rows = {row["task"]: row for row in found["tasks"]}
    for task, metric in (
        ("ReadAndProcessMessages", "mail_read_and_process_messages"),
        ("SendMail", "mail_send_mail"),
    ):
        raw = np.asarray(run.tasks[metric])
        for name, share in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99)):
            exact = np.quantile(raw, share, method="inverted_cdf")
            assert exact <= rows[task][f"ms_{name}"] * 1.000001 <= exact * 1.11, (task, name)
        assert rows[task]["done_count"] == len(raw) == rows[task]["planned_count"]
    assert len(found["tasks"]) == 28 and rows["BrowseCalendar"]["ms_p95"] is None


def test_LG_07_the_score_is_the_weighted_mean(tmp_path):
    """By hand: (52 x 100 + 1 x 630) / 53."""
    run = MailRun(
        tasks={"mail_read_and_process_messages": [100.0] * 40, "mail_send_mail": [630.0] * 20},
        levels={"mail_waiting": [0.0]},
    )
    score = figures_of(tmp_path, run)[0]["score"]
    assert score["ms"] == pytest.approx((52 * 100 + 630) / 53)
    assert (score["weight_judged"], score["weight_total"], score["missing"]) == (53, 53, [])
    assert (score["worst_task"], score["worst_ms"]) == ("SendMail", 630)


def test_a_task_with_too_few_results_is_named_and_left_out_of_the_mean(tmp_path):
    run = MailRun(
        tasks={"mail_read_and_process_messages": [100.0] * 40, "mail_send_mail": [5000.0] * 19},
        levels={"mail_waiting": [0.0]},
    )
    found, whole = figures_of(tmp_path, run)
    score = found["score"]
    assert score["ms"] == 100 and (score["weight_judged"], score["weight_total"]) == (52, 53)
    assert score["missing"] == ["SendMail (weight 1) has 19 results of 20 that are needed"]
    lines = in_words(summary_of(whole).mail, summary_of(whole).mail_audits)
    assert any("52 of 53 judged" in line for line in lines) and any(
        "19 results of 20" in line for line in lines
    )


def test_levels_front_ends_and_balance(tmp_path):
    found, whole = figures_of(tmp_path)
    levels = found["levels"]
    assert (levels["commands_open_max"], levels["queued_max"], levels["waiting_end"]) == (5, 4, 0)
    assert [(row["endpoint"], row["done_count"]) for row in found["endpoints"]] == [
        ("127.0.0.1:10143", 800),
        ("127.0.0.2:10143", 800),
    ]
    user_days = 50 * 60 / (0.5 * 3600)
    assert found["sent_per_day"] == pytest.approx(90 / user_days)
    assert found["received_per_day"] == pytest.approx(360 / user_days)
    assert found["received_per_day_expected"] == pytest.approx(40)
    assert found["delivery"]["count"] == 6 and found["probes_lost"] == 0
    assert found["volume"] is None and found["errors_share"] == 0
    assert whole["mail_audits"][0]["counts"]["received"] == 300 and "store_audits" not in whole
    assert Summary.from_plain(whole).plain() == whole


def test_scores_are_compared(tmp_path):
    """Two runs differ by their score, not by database I/O that neither has."""
    sides = []
    for name, read_ms in (("slow", 100.0), ("quick", 50.0)):
        tasks = {"mail_read_and_process_messages": [read_ms] * 40, "mail_send_mail": [read_ms] * 20}
        sides.append(
            finish(
                make_mail_folder(
                    tmp_path / name / "run", MailRun(tasks=tasks, levels={"mail_waiting": [0.0]})
                )
            )
        )
    found = compare(read_sides(sides)).plain()
    score = next(row for row in found["figures"] if row["name"] == "mail_score_ms")
    assert [value["value"] for value in score["sides"]] == [pytest.approx(100), pytest.approx(50)]
    assert score["against_first"][-1]["factor"] == pytest.approx(2)
