"""What mail users are judged by.

The published limits at their edges, what was not measured, and how a run may end.
"""

from types import SimpleNamespace

import pytest

from plimsoll.documents.mail import MailMoves
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.files import folder
from plimsoll.results.measurements import Measurements
from plimsoll.verdict.mail import mail_checks
from tests.support.event_answers import event, response
from tests.support.mail_run import SOUND, MailRun, make_mail_folder, usual_run
from tests.support.plain_stages import filled, judge, summarize

#: Levels of three samples of 20 s.
THREE = {"mail_waiting": [0.0] * 3, "mail_commands_open": [1.0] * 3, "mail_queued": [1.0] * 3}


def verdict_of(path, run=None, **plan):
    made = make_mail_folder(path / "run", run, **plan)
    whole = summarize(made)
    found = judge(
        folder.read_json(made / folder.PLAN), whole, folder.read_json(made / folder.ENVIRONMENT)
    )
    return found, {check["name"]: check for check in found["checks"]}


def steady(read_ms=50.0, send_ms=60.0, **further):
    """A run in which every task takes the same time."""
    further.setdefault(
        "levels",
        {
            "mail_open": [1.0],
            "mail_waiting": [0.0],
            "mail_queued": [1.0],
            "mail_commands_open": [1.0],
        },
    )
    tasks = {"mail_read_and_process_messages": [read_ms] * 400, "mail_send_mail": [send_ms] * 40}
    return MailRun(tasks=tasks, **further)


def test_LG_08_below_a_second_passes_and_a_second_fails(tmp_path):
    """The limit is strict; the figure shows enough digits to be told from it."""
    found, checks = verdict_of(tmp_path / "a", steady(990.0, 990.0))
    assert (
        found["result"] == "pass"
        and checks["mail_score"]["status"] == checks["mail_task_p95"]["status"] == "pass"
    )
    found, checks = verdict_of(tmp_path / "b", steady(1000.0, 1000.0))
    assert found["result"] == "fail" and checks["mail_score"]["status"] == "fail"
    assert "not below the limit of 1000 ms" in checks["mail_score"]["reason"]


def test_both_readings_of_the_published_sentence_are_judged(tmp_path):
    """One slow task of little weight leaves the mean below the limit."""
    found, checks = verdict_of(tmp_path, steady(50.0, 4000.0))
    assert checks["mail_score"]["status"] == "pass" and checks["mail_task_p95"]["status"] == "fail"
    assert checks["mail_task_p95"]["reason"].startswith("SendMail:") and found["result"] == "fail"


def test_a_score_says_what_it_is_made_of(tmp_path):
    _, checks = verdict_of(tmp_path)
    reason = checks["mail_score"]["reason"]
    assert "weights mail-only" in reason and "cannot do BrowseCalendar" in reason


def test_too_few_results_are_no_score(tmp_path):
    """What was not evaluated is never a pass."""
    run = MailRun(
        tasks={"mail_send_mail": [5.0] * 30, "mail_read_and_process_messages": [5.0] * 19},
        levels={"mail_waiting": [0.0]},
    )
    found, checks = verdict_of(tmp_path, run)
    assert checks["mail_score"]["status"] == "not_evaluated" and found["result"] == "inconclusive"
    assert "ReadAndProcessMessages (weight 52) has 19 results" in checks["mail_score"]["reason"]


@pytest.mark.parametrize(
    ("level", "value", "check", "status"),
    [
        ("mail_commands_open", 69.0, "mail_open_max", "pass"),
        ("mail_commands_open", 70.0, "mail_open_max", "fail"),
        ("mail_queued", 49.0, "mail_queued_max", "pass"),
        ("mail_queued", 50.0, "mail_queued_max", "fail"),
    ],
)
def test_LG_09_MON_04_limits_at_all_times_hold_at_every_sample(
    tmp_path, level, value, check, status
):
    run = steady(levels={**THREE, level: [1.0, value, 1.0]}, commands={"mail_body": [9.0] * 100})
    _, checks = verdict_of(tmp_path, run, limits="s1")
    assert checks[check]["status"] == status, checks[check]["reason"]


def test_LG_09_service_latency_and_the_volume(tmp_path):
    _, checks = verdict_of(
        tmp_path / "a",
        steady(commands={"mail_body": [9.9] * 10, "mail_connect": [900.0] * 10}),
        limits="s1",
    )
    assert checks["mail_service_mean"]["status"] == "pass", "opening a connection is no request"
    assert (
        checks["mail_volume_mean"]["status"] == "not_evaluated"
        and "data_path" in checks["mail_volume_mean"]["reason"]
    )
    _, checks = verdict_of(tmp_path / "b", steady(commands={"mail_body": [10.0] * 10}), limits="s1")
    assert checks["mail_service_mean"]["status"] == "fail"
    assert "mail_score" not in checks, "a limit that a set does not have is not checked"


def test_delivery_and_errors_of_the_set_like_spec(tmp_path):
    run = steady(
        commands={"mail_delivery": [900.0] * 30, "mail_body": [20.0] * 30},
        refused={"mail_send_mail": 3},
    )
    _, checks = verdict_of(tmp_path / "a", run, limits="spec-like")
    assert [
        checks[name]["status"] for name in ("mail_command_p95", "mail_delivery_p95", "mail_errors")
    ] == ["pass"] * 3
    lost = steady(
        commands={"mail_delivery": [900.0] * 30, "mail_body": [20.0]},
        counters={"mail_probes_sent": 40, "mail_probes_lost": 10},
    )
    _, checks = verdict_of(tmp_path / "b", lost, limits="spec-like")
    assert checks["mail_delivery_p95"]["status"] == "fail", (
        "a probe that never came is no quick one"
    )
    _, checks = verdict_of(tmp_path / "c", run)
    assert checks["mail_errors"]["status"] == "fail", "three of 443 are above one in a thousand"
    _, checks = verdict_of(tmp_path / "d", steady(), limits="vmware")
    assert checks["mail_send_p95"]["status"] == "pass"


@pytest.mark.parametrize(
    ("begun_s", "back_s", "status", "words"),
    [
        (None, None, "fail", "6.383 % is not below"),
        (12.0, 8.0, "pass", "0 % is below the limit of 0.1 %; 30 more, from an event until"),
        (40.0, 8.0, "fail", "% is not below the limit"),
        (12.0, None, "fail", "6.383 % is not below"),
        (12.0, 900.0, "not_evaluated", "every task fell into the time from an event until"),
    ],
)
def test_tasks_refused_while_an_event_lasted_are_judged_by_the_event(
    tmp_path, begun_s, back_s, status, words
):
    """A server that a plan takes away refuses 30 mails in the first 20 s; it was back, or not."""
    made = make_mail_folder(tmp_path / "run", steady(refused={"mail_send_mail": 30}, levels=THREE))
    plan, outcome = Plan.read(made / folder.PLAN), Outcome.read(made / folder.OUTCOME)
    answer = response(back_s).replace(workload="mail")
    events = [] if begun_s is None else [event(begun_s, begun_s + 5, answer)]
    with Measurements(made, outcome) as measured:
        (figures,) = measured.mail(plan, events)
    summary = SimpleNamespace(mail=[figures], mail_audits=[])
    check = next(item for item in mail_checks(plan, summary) if item.name == "mail_errors")
    assert check.status == status and words in check.reason, check.reason
    assert figures.errors_share == pytest.approx(30 / 470)


def test_mail_that_came_back_wrong_while_an_event_lasted_is_excused_by_nothing(tmp_path):
    run = steady(counters={"mail_bodies_wrong": 4}, levels=THREE)
    made = make_mail_folder(tmp_path / "run", run)
    plan, outcome = Plan.read(made / folder.PLAN), Outcome.read(made / folder.OUTCOME)
    for back_s in (8.0, 900.0):
        staged = event(12.0, 17.0, response(back_s).replace(workload="mail"))
        with Measurements(made, outcome) as measured:
            (figures,) = measured.mail(plan, [staged])
        summary = SimpleNamespace(mail=[figures], mail_audits=[])
        check = next(item for item in mail_checks(plan, summary) if item.name == "mail_errors")
        assert check.status == "fail", check.reason


def test_tasks_that_pile_up_fail_however_quick_those_that_were_done_are(tmp_path):
    run = steady(
        planned={"mail_read_and_process_messages": 500}, levels={"mail_waiting": [0.0, 50.0, 60.0]}
    )
    found, checks = verdict_of(tmp_path, run)
    assert found["result"] == "fail"
    assert checks["mail_achieved"]["status"] == checks["mail_queue_end"]["status"] == "fail"


def test_an_overloaded_run_fails_and_a_lost_server_is_no_verdict(tmp_path):
    """Too much load is a result; a server that went away says nothing of its speed."""
    found, _ = verdict_of(
        tmp_path / "a",
        steady(error=("overloaded", "too much load: 80 tasks of 50 users are unfinished")),
    )
    assert found["result"] == "fail" and "too much load" in found["reasons"][0]
    found, _ = verdict_of(
        tmp_path / "b", steady(error=("service", "127.0.0.1:10143 was lost for 60 s"))
    )
    assert found["result"] == "inconclusive" and "was lost" in found["reasons"][0]


def test_mail_that_is_gone_fails_whatever_was_quick(tmp_path):
    run = usual_run()
    run.audit, run.findings = {**SOUND, "missing": 2}, ["2 accepted mails are in no folder: u3, u7"]
    found, checks = verdict_of(tmp_path, run)
    assert found["result"] == "fail" and checks["mail_audit"]["status"] == "fail"
    assert "u3, u7" in checks["mail_audit"]["reason"]


def test_a_late_generator_excuses_a_response_and_never_an_audit(tmp_path):
    """Responses run from the intended start: who is late himself makes them long."""
    made = make_mail_folder(
        tmp_path / "run", steady(1005.0, 1005.0, findings=["1 mail is doubled"])
    )
    whole = summarize(made)
    whole["generator"]["arrival_lag_ms_p99"] = 400.0
    found = judge(
        folder.read_json(made / folder.PLAN), whole, folder.read_json(made / folder.ENVIRONMENT)
    )
    checks = {check["name"]: check for check in found["checks"]}
    assert [doubt["name"] for doubt in checks["mail_score"]["doubts"]] == ["arrival_lag"]
    assert checks["mail_audit"]["doubts"] == [] and found["result"] == "fail"


@pytest.mark.parametrize(
    ("due", "moved", "status"),
    [(200, 198, "pass"), (200, 197, "pass"), (200, 196, "fail"), (1, 0, "pass"), (12, 6, "fail")],
)
def test_moves_that_were_due_and_not_made_fail(tmp_path, due, moved, status):
    """The move that is under way at the end is always allowed."""
    made = make_mail_folder(tmp_path / "run")
    whole = summarize(made)
    moves = {"planned_count": due, "moved_count": moved}
    whole["mail"][0]["moves"] = filled(MailMoves, moves)
    found = judge(
        folder.read_json(made / folder.PLAN), whole, folder.read_json(made / folder.ENVIRONMENT)
    )
    check = next(check for check in found["checks"] if check["name"] == "mail_moves")
    assert check["status"] == status, check["reason"]


def test_users_without_moves_have_no_check_of_moves(tmp_path):
    _, checks = verdict_of(tmp_path)
    assert "mail_moves" not in checks
