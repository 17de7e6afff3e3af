"""Ten rows of the rogues' gallery as they are carried out by `make rogues`, and the frame that
judges them.

Nothing is planted without a device under it: root, /dev/fuse and loop devices are needed, and a
skip says what is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.rogues.conclusions import conclude
from tests.rogues.gallery import GALLERY
from tests.rogues.page import Row, kept_lines, page_of
from tests.rogues.rogue import MACHINE_WAS_BUSY, Concluded, Rogue, mistakes, was_busy
from tests.support.disk_rules import Rule

#: Short, but long enough on a busy machine for a page that was lost to be read again.
SECONDS = 3.0
#: How often a row is carried out on a machine that others keep busy.
ATTEMPTS = 4
FAST = [rogue for rogue in GALLERY if rogue.is_fast]
CONCLUDED = Concluded(
    "pass", "Rehearsal passed", (), ("io_errors",), (), (), (), "Rehearsal passed", 0, 1.0
)


@pytest.mark.parametrize("rogue", FAST, ids=lambda rogue: rogue.name.replace(" ", "-"))
def test_what_is_concluded_of(rogue: Rogue, tmp_path: Path) -> None:
    """A bad storage that passes, or a sound one that fails, is the worst that this program can do.

    Where other processes took the processor, the verdict of a sound storage says so and is
    inconclusive: that is right, but no answer to what is asked here, so the row is carried out
    again."""
    for attempt in range(ATTEMPTS):
        home = tmp_path / str(attempt)
        home.mkdir()
        concluded = conclude(replace(rogue, seconds=SECONDS), home)
        if not was_busy(rogue, concluded):
            break
    assert mistakes(rogue, concluded) == [], concluded.text[:4000]


def test_ten_rows_are_fast() -> None:
    """So many are carried out whenever the tests are."""
    assert len(FAST) == 10
    assert len({rogue.name for rogue in GALLERY}) == len(GALLERY), "every row has a name of its own"


@pytest.mark.parametrize(
    ("demanded", "found"),
    [
        (Rogue("n", "p", "pass", failed=("io_errors",), words=("REHEARSAL",)), []),
        (Rogue("n", "p", "fail"), ["result pass, not fail"]),
        (Rogue("n", "p", "fail or pass"), []),
        (Rogue("n", "p", "pass", words=("slow",)), ["never said: slow"]),
        (Rogue("n", "p", "pass", never=("passed",)), ["said: passed"]),
        (Rogue("n", "p", "pass", failed=("bad_pages",)), ["check bad_pages did not fail"]),
        (
            Rogue("n", "p", "pass", hinders=("stalled",)),
            ["qualifies: never said there: stalled", "no warning: never said there: stalled"],
        ),
        (
            Rogue("n", "p", "pass", rules=(Rule("read", "zero"),)),
            ["nothing was planted: no rule was ever applied"],
        ),
    ],
)
def test_a_conclusion_is_held_against_all_that_its_row_demands(
    demanded: Rogue, found: list[str]
) -> None:
    """A gallery that overlooks one demand shows nothing."""
    assert mistakes(demanded, CONCLUDED) == found


@pytest.mark.parametrize(
    ("demanded", "result", "said", "busy"),
    [
        ("pass", "inconclusive", MACHINE_WAS_BUSY, True),
        ("fail or pass", "inconclusive", MACHINE_WAS_BUSY, True),
        ("fail", "inconclusive", MACHINE_WAS_BUSY, False),
        ("pass", "fail", MACHINE_WAS_BUSY, False),
        ("pass", "inconclusive", "no space", False),
    ],
)
def test_a_busy_machine_excuses_a_sound_storage_only(
    demanded: str, result: str, said: str, busy: bool
) -> None:
    """A bad storage that gets away because others were running is a mistake all the same."""
    rogue = Rogue("n", "p", demanded)
    assert was_busy(rogue, replace(CONCLUDED, result=result, text=said)) == busy
    full = replace(CONCLUDED, result=result, text=said, cpu_busy=0.99)
    assert was_busy(rogue, full) == (busy or (demanded, result) == ("pass", "fail"))


def test_a_wrong_conclusion_stands_on_the_page() -> None:
    """Whether it is known or new.

    Nothing is hidden that a user would want to know before trusting a pass.
    """
    known = Rogue("known", "p", "pass", wrong="nothing sees it")
    rows = [
        Row(known, CONCLUDED, (), ""),
        Row(Rogue("new", "p", "fail"), CONCLUDED, ("result pass, not fail",), ""),
        Row(Rogue("left out", "p", "fail"), None, (), "needs root"),
    ]
    page = page_of(rows)
    assert "2 of 3 carried out, 2 wrong" in page
    assert "- known: nothing sees it" in page
    assert "- new: result pass, not fail" in page
    assert "not carried out: needs root" in page


def test_a_row_that_is_left_out_keeps_what_the_page_says_of_it() -> None:
    """Some rows take minutes; carrying out one of them again must not empty the page, nor forgive
    it.
    """
    known = Rogue("known", "p", "pass", wrong="nothing sees it")
    page = page_of([Row(known, CONCLUDED, (), "")])
    again = Row(known, None, (), "left out", kept_lines(page, known))
    assert page_of([again]) == page
    left_out = page_of([Row(known, None, (), "left out")])
    assert kept_lines(left_out, known) == ()
