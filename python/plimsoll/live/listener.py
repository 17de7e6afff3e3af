"""Who is told how a run goes: the terminal, a notebook, a page.

Whatever takes long takes a `Listener` and prints nothing itself. Every method does nothing here, so
a listener overrides what it wants to hear. All are called from the thread that carries out the run;
what they raise ends it cleanly, and
is raised again when what was measured is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from plimsoll.documents.event import Event
from plimsoll.documents.outcome import Outcome
from plimsoll.files.parquet import Columns
from plimsoll.live.progress import Figures

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Listener:
    """Hears everything and does nothing about it."""

    def say(self, text: str) -> None:
        """A line of progress outside of a run: what is done next, what came of it."""

    def note(self, text: str) -> None:
        """Something that will happen and that the user may not expect."""

    def warning(self, text: str) -> None:
        """Something that a reader of the result must know, or that could not be done."""

    def begins(self, figures: Figures) -> None:
        """A run begins; `figures` are what is known of it, brought up to date before each event and
        sample is told.
        """

    def event(self, event: Event) -> None:
        """An event: `level`, `kind`, `phase`, `text`, and `time_ns` since the begin."""

    def sample(self, table: Columns) -> None:
        """A batch of samples: a numpy array for each column, with codes in place of names."""

    @property
    def can_confirm(self) -> bool:
        """Whether somebody is there who can be asked to do something by hand."""
        return False

    def confirmed(self) -> bool:
        """Whether that person has said, since this was last asked, that it is done."""
        return False

    def ends(self) -> None:
        """The run is over, however it ended."""


class RaisedError(BaseException):
    """What a listener raised, on its way around all who would take it for an error of theirs.

    Attributes:
        error: what it raised.
        outcome: how the run that it ended came out, where there is one.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error
        self.outcome: Outcome | None = None


def told(hear: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
    """What a listener answers.

    Raises:
        RaisedError: it raised something.
    """
    try:
        return hear(*args, **kwargs)
    except BaseException as error:
        raise RaisedError(error) from error
