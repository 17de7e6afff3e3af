"""Records behave as frozen dataclasses of the standard library; only defining them is cheaper."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from plimsoll.inputs import records


@records.dataclass(frozen=True)
class Ours:
    """One of everything."""

    name: str
    size_mb: float = 2.0
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="", repr=False)

    @cached_property
    def upper(self) -> str:
        return self.name.upper()


@dataclasses.dataclass(frozen=True)
class Theirs:
    """The same."""

    name: str
    size_mb: float = 2.0
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="", repr=False)

    @cached_property
    def upper(self) -> str:
        return self.name.upper()


@records.dataclass(frozen=True, eq=False)
class Node:
    """Equal to itself alone."""

    value: float


@records.dataclass(frozen=True, eq=False)
class Leaf(Node):
    """A node with more."""

    title: str = ""


@pytest.mark.parametrize(
    "seen",
    [
        lambda kind: repr(kind("a", 3)).partition("(")[2],
        lambda kind: kind("a") == kind("a", 2.0, ["other"]),
        lambda kind: kind("a") == kind("a", 3.0),
        lambda kind: kind("a") == 5,
        lambda kind: hash(kind("a", 2.0)) == hash(kind(name="a")),
        lambda kind: dataclasses.asdict(kind("a", secret="s")),
        lambda kind: dataclasses.replace(kind("a"), name="b").upper,
        lambda kind: [each.name for each in dataclasses.fields(kind)],
        lambda kind: kind("a").tags is kind("a").tags,
        lambda kind: pickle.loads(pickle.dumps(kind("a"))) == copy.deepcopy(kind("a")) == kind("a"),
        lambda kind: kind.__match_args__,
    ],
)
def test_what_can_be_seen_of_one_is_what_the_standard_library_shows(
    seen: Callable[[Any], object],
) -> None:
    """Whoever reads the class expects nothing else."""
    assert seen(Ours) == seen(Theirs)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda kind: kind(),
        lambda kind: kind("a", 1, [], "", 5),
        lambda kind: kind("a", name="b"),
        lambda kind: kind("a", colour="red"),
        lambda kind: setattr(kind("a"), "name", "b"),
        lambda kind: delattr(kind("a"), "name"),
    ],
)
def test_what_is_refused_is_what_the_standard_library_refuses(
    wrong: Callable[[Any], object],
) -> None:
    """A field that was misspelt must not become an attribute that nobody reads."""
    raised = []
    for kind in (Ours, Theirs):
        with pytest.raises((TypeError, dataclasses.FrozenInstanceError)) as error:
            wrong(kind)
        raised.append(error.type)
    assert raised[0] is raised[1]


def test_without_eq_each_object_equals_itself_alone() -> None:
    """Steps of one value are different steps."""
    leaf = Leaf(1.0, "one")
    assert (leaf.value, leaf.title, isinstance(leaf, Node)) == (1.0, "one", True)
    assert leaf != Leaf(1.0, "one") and len({leaf, Leaf(1.0, "one")}) == 2
