"""What crosses a file or the door is read with every mistake reported, and written with the keys it
has.
"""

from collections.abc import Sequence
from typing import Literal

import pytest

from plimsoll.documents.document import ABSENT, Document, DocumentError


class Sessions(Document):
    """One way to load."""

    sessions: int
    shared: bool


class Rate(Document):
    """Another, told apart by its keys."""

    per_s: float
    spacing: Literal["poisson", "regular"]


class Job(Document):
    """A document with one of everything."""

    name: str
    load: Sessions | Rate
    share: float | None = None
    buckets: Sequence[tuple[int, int]] = ()


GOOD = {"name": "mix", "load": {"per_s": 3, "spacing": "poisson"}, "buckets": [[1, 2]]}


def mistakes(content: object) -> tuple[str, ...]:
    with pytest.raises(DocumentError) as caught:
        Job.from_plain(content)
    return caught.value.mistakes


def test_what_is_read_is_written_again_key_by_key():
    job = Job.from_plain(GOOD)
    assert isinstance(job.load, Rate)
    assert job.share is None
    assert job.plain() == GOOD


def test_every_mistake_is_reported_at_once_with_its_path():
    wrong = {
        "nam": "mix",
        "load": {"sessions": True, "shared": 1},
        "share": "3",
        "buckets": [[1], [1, 2.5]],
    }
    assert mistakes(wrong) == (
        "`nam` is not a known key",
        "`name` is missing",
        "`load.sessions` is true, but must be a whole number",
        "`load.shared` is 1, but must be true or false",
        '`share` is "3", but must be a number or null',
        "`buckets[0]` is a list, but must be a list of 2",
        "`buckets[1][1]` is 2.5, but must be a whole number",
    )


@pytest.mark.parametrize("content", [None, [], "text", 3])
def test_what_is_no_object_is_said(content):
    assert mistakes(content)[0].startswith("the content is ")


def test_a_choice_lists_what_it_may_be():
    assert mistakes(GOOD | {"load": {"per_s": 1, "spacing": "odd"}}) == (
        '`load.spacing` is "odd", but must be "poisson" or "regular"',
    )


def test_a_document_is_never_changed_only_replaced():
    job = Job.from_plain(GOOD)
    with pytest.raises(AttributeError, match="replace"):
        job.name = "other"
    assert job.replace(name="other").name == "other"
    assert job.name == "mix"
    assert "buckets" not in job.replace(buckets=ABSENT).plain()


def test_making_one_with_a_wrong_name_is_our_own_mistake():
    with pytest.raises(TypeError, match="nam"):
        Sessions(nam="x")
    with pytest.raises(TypeError, match="lacks shared"):
        Sessions(sessions=3)
