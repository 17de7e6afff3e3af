"""The judgement: from acknowledgements and what was found to what the storage has done, on cases
made by hand.
"""

from typing import Any

import pytest

from plimsoll.powercut.judge import judge
from plimsoll.powercut.witness_log import Line, Statement

RINGS = {"commit": 4, "mark": 4}


def statement(count: int, *, behind: int = 1, passed_over: int = 0) -> Statement:
    """One session and one lane in turn.

    Each began when all but the last few before it were acknowledged.
    """
    known = Statement({"run": "1"}, RINGS, ended="silent")
    for number in range(1, count + 1):
        if number != passed_over:
            kind = "commit" if number % 2 else "mark"
            known.add(Line(kind, 0, (number + 1) // 2, number, max(number - behind, 0)))
    return known


def survey_of(known: Statement) -> dict[str, Any]:
    """A survey that shows everything."""
    commits: dict[int, dict[str, Any]] = {}
    marks: dict[int, dict[str, Any]] = {}
    for line in known.newest.values():
        slot = line.sequence % 4
        row = {"lane": 0, "slot": slot, "sequence": line.sequence, "started": line.started}
        if line.kind == "commit":
            commits[slot] = row | {"twin": line.sequence, "is_sound": True}
        else:
            marks[slot] = row | {"sectors": []}
    return {
        "recovery": None,
        "database_error": None,
        "marks_error": None,
        "commits": list(commits.values()),
        "marks": list(marks.values()),
    }


def row(survey: dict[str, Any], kind: str, sequence: int) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in survey[kind] if item["sequence"] == sequence)
    return found


def check(
    survey: dict[str, Any], known: Statement, result: str, *names: str, physical: int | None = 4096
) -> dict[str, Any]:
    found = judge(known, survey, physical_bytes=physical, unwitnessed_max=8)
    assert (found["result"], [finding["name"] for finding in found["findings"]]) == (
        result,
        list(names),
    ), found
    return found


def test_all_there_passes() -> None:
    """Also what was overwritten by later rounds of the ring.

    Of each place only the newest is looked for.
    """
    known = statement(40)
    found = check(survey_of(known), known, "pass")
    assert found["figures"]["looked_for"] == 8


def test_more_than_acknowledged_is_no_loss() -> None:
    """A write that was under way may have arrived; its acknowledgement was what the cut took."""
    check(survey_of(statement(40)), statement(36), "pass")


def test_a_lost_end_is_a_dropped_flush() -> None:
    """Nothing that began after the first lost one is there."""
    known = statement(40)
    survey = survey_of(statement(34))
    found = check(survey, known, "fail", "drops_flushes")
    assert found["figures"]["first_lost_number"] == 35
    assert found["figures"]["lost_commits"] == found["figures"]["lost_marks"] == 3


@pytest.mark.parametrize("kind", ["commits", "marks"])
def test_a_hole_is_a_reordering(kind: str) -> None:
    """Something that began after it was acknowledged is there."""
    known = statement(40)
    survey = survey_of(known)
    row(survey, kind, 18)["sequence"] = 14
    if kind == "commits":
        row(survey, kind, 14)["twin"] = 14
    found = check(survey, known, "fail", "reorders")
    assert found["findings"][0]["count"] == 1


def test_what_was_under_way_together_may_come_in_any_order() -> None:
    """A lost end whose survivors all began before the first lost one was acknowledged is no
    reordering.
    """
    known = statement(40, behind=4)
    survey = survey_of(known)
    row(survey, "marks", 19)["sequence"] = 15
    found = check(survey, known, "fail", "drops_flushes")
    assert found["findings"][0]["count"] == 1


@pytest.mark.parametrize(
    ("physical", "result"), [(4096, "fail"), (None, "inconclusive"), (512, "pass")]
)
def test_a_torn_block_counts_where_it_was_promised_not_to(
    physical: int | None, result: str
) -> None:
    """A disk of 512-byte sectors may tear 4 KiB; it is told all the same."""
    known = statement(40)
    survey = survey_of(known)
    mark = row(survey, "marks", 20)
    mark.update(sequence=None, started=0, sectors=[24, 24, 20, 20, 20, 24, 20, 20])
    check(survey, known, result, "tears_4k", physical=physical)


def test_an_acknowledged_block_that_is_torn_counts_always() -> None:
    """Half of an acknowledged write is gone: that is no matter of sector sizes."""
    known = statement(40)
    survey = survey_of(known)
    row(survey, "marks", 20).update(
        sequence=None, started=0, sectors=[20, 20, 20, 20, 16, 16, 16, 16]
    )
    found = judge(known, survey, physical_bytes=512, unwitnessed_max=8)
    assert found["result"] == "fail"
    assert {finding["name"] for finding in found["findings"]} == {"drops_flushes", "tears_4k"}


def test_half_a_transaction_is_named() -> None:
    """The engine promises all or nothing.

    Half means that something below it changed what it had written.
    """
    known = statement(40)
    survey = survey_of(known)
    row(survey, "commits", 19)["twin"] = 15
    check(survey, known, "fail", "half_transactions")


def test_changed_content_is_named() -> None:
    """A row of the right number with other bytes is damage that no checksum has seen."""
    known = statement(40)
    survey = survey_of(known)
    row(survey, "commits", 17)["is_sound"] = False
    check(survey, known, "fail", "damaged")


def test_a_database_beyond_recovery_fails_and_the_marks_still_speak() -> None:
    """Which lie it was is told by the marks, even if no row can be read any more."""
    known = statement(40)
    survey = survey_of(known)
    survey["database_error"] = {"family": "corruption", "text": "damaged data: log file is corrupt"}
    survey["commits"] = []
    row(survey, "marks", 18)["sequence"] = 14
    found = check(survey, known, "fail", "reorders", "unrecoverable")
    assert found["figures"]["lost_commits"] == 0, "what cannot be read was not looked for"


def test_nothing_known_is_no_pass() -> None:
    """A cut before the first acknowledgement has shown nothing."""
    nothing = Statement({"run": "1"}, RINGS)
    check(survey_of(statement(0)), nothing, "inconclusive")
    survey = survey_of(statement(0)) | {
        "database_error": {"family": "corruption", "text": "no header"}
    }
    found = check(survey, nothing, "inconclusive", "unrecoverable")
    assert "nothing acknowledged" in found["reasons"][0], (
        "files that were still being made were never promised"
    )


def test_work_that_was_ended_is_no_pass() -> None:
    """Files that were closed cleanly were never at risk."""
    known = statement(40)
    found = judge(known, survey_of(known), physical_bytes=4096, unwitnessed_max=8, was_closed=True)
    assert found["result"] == "inconclusive"


@pytest.mark.parametrize(
    ("said", "phrase"),
    [
        ({"ended": "closed"}, "closed and did not fall silent"),
        ({"same_start": True}, "not been restarted"),
        ({"passed_over": 7}, "the log is not whole"),
        ({"count": 30}, "the log is not whole"),
    ],
)
def test_what_speaks_against_a_cut_leaves_it_open(said: dict[str, Any], phrase: str) -> None:
    """Everything is there, but nothing shows that anything was at risk.

    What is lost counts all the same.
    """
    known = statement(said.get("count", 40), passed_over=said.get("passed_over", 0))
    known.ended = said.get("ended", "silent")
    how = {
        "physical_bytes": 4096,
        "unwitnessed_max": 8,
        "same_start": said.get("same_start", False),
    }
    found = judge(known, survey_of(statement(40)), **how)
    assert found["result"] == "inconclusive"
    assert any(phrase in reason for reason in found["reasons"]), found["reasons"]
    asserted = judge(known, survey_of(statement(40)), was_cut=True, **how)
    assert asserted["result"] == ("inconclusive" if phrase == "the log is not whole" else "pass")
    survey = survey_of(statement(40))
    row(survey, "commits", 18)["twin"] = 14
    assert judge(known, survey, **how)["result"] == "fail"


@pytest.mark.parametrize(
    "pages",
    [
        {"verdict": "damaged", "bad": 5},
        {"verdict": "damaged", "bad": 0, "deep_findings": 2},
        {"verdict": "sound", "wrong_page_number": 1},
        {"verdict": "unreadable", "error": "i/o error"},
    ],
)
def test_pages_that_recovery_leaves_damaged_are_named(pages: dict[str, Any]) -> None:
    """Rows can all be there while an index or the space of the database is not."""
    known = statement(40)
    found = judge(
        known, survey_of(known), physical_bytes=4096, unwitnessed_max=8, pages_after=pages
    )
    assert [(found["result"], item["name"]) for item in found["findings"]] == [
        ("fail", "damaged_pages")
    ]
    sound = {"verdict": "sound", "bad": 0, "deep_findings": 0}
    assert (
        judge(known, survey_of(known), physical_bytes=4096, unwitnessed_max=8, pages_after=sound)[
            "result"
        ]
        == "pass"
    )


@pytest.mark.parametrize(
    "sectors", [[12, 12, 12, 12, 20, 20, 20, 24], [16, 20, 20, 20, 20, 20, 20, 24], [None, 16] * 4]
)
def test_a_later_write_under_way_excuses_nothing_older(sectors: list[int | None]) -> None:
    """The write under way may have put its own sectors there, and spoilt some.

    Older ones come from a write that was lost.
    """
    known = statement(40)
    survey = survey_of(known)
    row(survey, "marks", 20).update(sequence=None, started=0, sectors=sectors)
    found = judge(known, survey, physical_bytes=512, unwitnessed_max=8)
    assert found["result"] == "fail"
    assert "drops_flushes" in {item["name"] for item in found["findings"]}


def test_every_finding_says_what_it_means() -> None:
    """A name alone helps nobody who has to decide about an array."""
    known = statement(40)
    survey = survey_of(statement(20))
    found = judge(known, survey, physical_bytes=4096, unwitnessed_max=8)
    assert all(
        len(finding["meaning"]) > 40 and finding["examples"] for finding in found["findings"]
    )
