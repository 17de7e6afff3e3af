"""The checks of nodes that died: room on the survivor, the time of the failover."""

from types import SimpleNamespace

import pytest

from plimsoll.documents.event_figures import EventFigures, FailoverFigures
from plimsoll.documents.staged_events import EventLimits
from plimsoll.report.together import together_tables
from plimsoll.verdict.nodes import fit_in_words, node_checks
from tests.support.event_answers import response

PLAN = SimpleNamespace(run=SimpleNamespace(workloads=()), judgement=SimpleNamespace(published=None))
SUMS = ("right needs 48 (a 16, b 32) of 40 MiB of memory",)


def event(served_s, limit_s=None, lacking=()):
    judge = EventLimits() if limit_s is None else EventLimits(failover_s_max=limit_s)
    came = FailoverFigures(
        instance="mail",
        node="left",
        to="right",
        opened_s=2.0,
        served_s=served_s,
        lost_count=3,
        cache_mib_max=16.0,
        log_mib=4.0,
    )
    return EventFigures(
        name="left dies",
        kind="node",
        phase="measure",
        begun_s=10.0,
        applied_s=10.0,
        undone_s=None,
        is_proved=True,
        problem=None,
        io_errors=0,
        judge=judge,
        loads=(),
        failovers=(came,),
        fit=SUMS,
        fit_lacking=lacking,
    )


def summary_of(found):
    return SimpleNamespace(events=[found], servers=(), endpoints=())


def statuses(found):
    summary = SimpleNamespace(events=[found], records_audits=())
    return {check.name: (check.status, check.reason) for check in node_checks(summary)}


@pytest.mark.parametrize(
    ("served_s", "status", "said"),
    [
        (2.5, "pass", "2.5 s is within 3 s"),
        (3.5, "fail", "3.5 s is above 3 s"),
        (None, "fail", "nothing was served again in the phase"),
    ],
)
def test_HA_02_the_failover_is_held_against_its_limit(served_s, status, said):
    """What never served again is no short failover."""
    found = statuses(event(served_s, 3.0))
    assert found["event_failover"][0] == status
    assert said in found["event_failover"][1]


def test_without_a_limit_the_failover_is_told_and_not_judged():
    assert set(statuses(event(2.5))) == {"node_fit"}


def test_a_shortage_that_the_plan_allows_is_named_and_stands_next_to_the_verdict():
    """The plan lets the survivor be short, so nothing fails; who reads the result must know."""
    short = event(2.5, lacking=SUMS)
    status, reason = statuses(short)["node_fit"]
    assert status == "pass"
    assert reason == f"the plan lets it be short: {SUMS[0]}"
    summary = SimpleNamespace(events=[short])
    assert fit_in_words(summary) == [f"after event left dies the survivor was short: {SUMS[0]}"]


def test_a_failover_of_servers_alone_is_not_evaluated():
    """Nothing of ours died, so no time is known; the limit is not left out for that."""
    servers = event(2.5, 3.0).replace(failovers=())
    status, reason = statuses(servers)["event_failover"]
    assert status == "not_evaluated" and "no instance of this run died with it" in reason


def test_the_table_of_answers_says_why_failover_and_back_differ():
    """The first operation comes before the rate is back; samples know the latter to a sample."""
    died = event(2.5, 3.0).replace(loads=[response(2.0)])
    notes = [table.note for table in together_tables(PLAN, summary_of(died))]
    assert any("Failover ends with the first operation that is served again" in it for it in notes)
    other = died.replace(failovers=())
    assert not any(
        "Failover ends" in table.note for table in together_tables(PLAN, summary_of(other))
    )
