"""Clients over endpoints: figures from samples, the check, and the table of the report."""

import pytest

from plimsoll.results.summary import summarize
from plimsoll.verdict.endpoints import endpoint_checks
from tests.support.mail_run import MailRun, make_mail_folder

READ = "mail_read_and_process_messages"


def check_of(tmp_path, run, **plan):
    summary = summarize(make_mail_folder(tmp_path / "run", run, **plan))
    (figures,), (check,) = summary.endpoints, endpoint_checks(summary)
    return figures, check


def even():
    return MailRun(
        tasks={READ: [20.0, 40.0] * 400},
        levels={"mail_waiting": [0.0]},
        endpoints={1: {"endpoint_sessions": 25.0}, 2: {"endpoint_sessions": 25.0}},
    )


def test_HA_06_each_endpoint_has_sessions_operations_and_latency(tmp_path):
    figures, check = check_of(tmp_path, even())
    assert figures.policy == "single affinity" and figures.addresses is None
    first, second = figures.endpoints
    assert (first.endpoint, second.endpoint) == ("127.0.0.1:10143", "127.0.0.2:10143")
    assert (first.clients, first.sessions, first.sessions_max) == (25, 25, 25)
    assert (first.operations, first.share) == (400, 0.5)
    assert first.ms_mean == pytest.approx(20) and second.ms_mean == pytest.approx(40)
    assert first.ms_p95 < 25 < 35 < second.ms_p95
    assert check.status == "pass" and "spread as single affinity has it" in check.reason


def uneven(at):
    """Of 1,000 tasks the first endpoint did three quarters."""
    return MailRun(
        tasks={READ: [20.0] * 1000},
        levels={"mail_waiting": [0.0]},
        endpoints=at,
        second_every=4,
    )


def test_an_uneven_spread_that_no_policy_explains_is_a_finding(tmp_path):
    at = {1: {"endpoint_sessions": 25.0}, 2: {"endpoint_sessions": 25.0}}
    _, check = check_of(tmp_path, uneven(at), instance={"distribution": "round robin"})
    assert check.status == "not_evaluated"
    assert "round robin does not explain the spread" in check.reason
    assert "75.0% of the operations with 25 of 50 clients" in check.reason


def test_clients_that_moved_from_a_dead_endpoint_explain_it(tmp_path):
    at = {
        1: {"endpoint_sessions": 50.0, "endpoint_moved": 25},
        2: {"endpoint_sessions": 0.0, "endpoint_refused": 31},
    }
    figures, check = check_of(tmp_path, uneven(at), instance={"distribution": "round robin"})
    assert (figures.endpoints[0].moved, figures.endpoints[1].refused) == (25, 31)
    assert check.status == "pass"
    assert "31 attempts at connecting came to nothing (127.0.0.2:10143 31)" in check.reason
    assert "25 connections were of clients from another endpoint" in check.reason


def test_LG_13_all_clients_of_one_address_are_at_one_endpoint_and_it_is_said(tmp_path):
    run = MailRun(
        tasks={READ: [20.0] * 1000},
        levels={"mail_waiting": [0.0]},
        endpoints={1: {"endpoint_sessions": 50.0}},
        second_every=0,
    )
    figures, check = check_of(tmp_path, run, instance={"client_addresses": 1})
    assert [item.clients for item in figures.endpoints] == [50, 0]
    assert check.status == "pass" and "127.0.0.2:10143 takes nobody" in check.reason
    # The same without an address to explain it.
    _, check = check_of(tmp_path / "other", run)
    assert check.status == "not_evaluated" and "127.0.0.2:10143 takes nobody" in check.reason


def test_one_refusal_explains_no_uneven_spread(tmp_path):
    """One of 25 clients met a refusal once; half of what its endpoint was to do is missing."""
    at = {
        1: {"endpoint_sessions": 25.0},
        2: {"endpoint_sessions": 25.0, "endpoint_refused": 1},
    }
    _, check = check_of(tmp_path, uneven(at), instance={"distribution": "round robin"})
    assert check.status == "not_evaluated"
    assert "round robin does not explain the spread" in check.reason
    assert "1 attempts at connecting came to nothing (127.0.0.2:10143 1)" in check.reason


def test_so_few_operations_that_chance_moves_a_share_are_not_judged(tmp_path):
    """Of 200 operations a half is known to 14 points, which is more than a fifth of it."""
    run = MailRun(
        tasks={READ: [20.0] * 200},
        levels={"mail_waiting": [0.0]},
        endpoints={1: {"endpoint_sessions": 25.0}, 2: {"endpoint_sessions": 25.0}},
    )
    _, check = check_of(tmp_path, run)
    assert (check.status, check.measured) == ("not_evaluated", None)
    assert "200 operations are too few" in check.reason
