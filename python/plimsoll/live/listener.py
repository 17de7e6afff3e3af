"""Who is told how a run goes: the terminal, a notebook, a page.

Whatever takes long takes a `Listener` and prints nothing itself. Every method does nothing here, so
a listener overrides what it wants to hear. All are called from the thread that carries out the run;
what they raise ends it.
"""

from __future__ import annotations

from plimsoll.documents.event import Event
from plimsoll.files.parquet import Columns
from plimsoll.live.progress import Figures


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
