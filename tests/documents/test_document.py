"""What crosses a file or the door is read with every mistake reported, and written with the keys it
has.
"""

import copy
import pickle
from collections.abc import Mapping, Sequence
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


class Origin(Document):
    """A key that is a word of Python."""

    from_: str | None
    jobs: Sequence[Job] = ()
    by_name: Mapping[str, Job] = {}


def test_the_key_of_a_word_of_python_has_no_underscore():
    """Schema and reader would disagree, and a file would hold one key twice."""
    assert Origin.from_plain({"from": "here"}).plain() == {"from": "here"}
    with pytest.raises(DocumentError) as caught:
        Origin.from_plain({"from_": "here"})
    assert caught.value.mistakes == ("`from_` is not a known key", "`from` is missing")


def test_a_whole_number_may_be_written_with_a_point_as_its_schema_says():
    """JSON has one kind of number, and other programs write 64.0."""
    assert Job.from_plain(GOOD | {"buckets": [[1.0, 2]]}).buckets == ((1, 2),)
    assert mistakes(GOOD | {"buckets": [[1.5, 2]]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_of_json_is_refused(value):
    """Every comparison with it is false, so a limit of it would hold whatever happens."""
    assert mistakes(GOOD | {"share": value})[0].endswith("but must be a number or null")
    with pytest.raises(DocumentError, match="`share`"):
        Job.from_plain(GOOD).replace(share=value)


@pytest.mark.parametrize(
    "wrong", [{"jobs": [5]}, {"jobs": "one"}, {"jobs": [Sessions(sessions=1, shared=True)]},
              {"by_name": {"one": 3}}, {"by_name": Job.from_plain(GOOD)}],
)  # fmt: skip
def test_what_is_put_in_place_is_checked_within_lists_and_tables(wrong):
    """Otherwise it is found when the document is written, after the night."""
    origin, job = Origin(from_=None), Job.from_plain(GOOD)
    with pytest.raises(DocumentError, match=f"`{next(iter(wrong))}"):
        origin.replace(**wrong)
    assert origin.replace(jobs=(job, job), by_name={"one": job}).jobs == (job, job)
    assert job.replace(load=Sessions(sessions=1, shared=False)).load.shared is False
    with pytest.raises(DocumentError, match="`load` is a Job"):
        job.replace(load=job)


def test_no_attribute_is_deleted():
    job = Job.from_plain(GOOD)
    with pytest.raises(AttributeError, match="never changed"):
        del job.name
    assert job.name == "mix"


def test_the_default_of_one_document_is_not_that_of_all():
    """A rating that is written into one plan must not judge the drives of the next."""
    first, second = Origin(from_=None), Origin(from_=None)
    with pytest.raises(TypeError):
        first.by_name["one"] = Job.from_plain(GOOD)
    assert second.by_name == {}
    for third in (Origin(from_=None, by_name=first.by_name), first.replace(by_name={})):
        assert copy.deepcopy(third).plain() == {"from": None, "by_name": {}}
        assert pickle.loads(pickle.dumps(third)) == third
    assert second.replace(by_name=first.by_name).plain()["by_name"] == {}
