"""Mistakes in what a person wrote: all of them at once, each with its line and a hint.

A reader of an input file collects `Mistake`s and raises one `InputError` at the end, so that a file
with five slips is corrected in one go. The message says what is wrong; the hint says what to write
instead. Lines count from 1; line 0 means the mistake is in an option of the command line or in the
file as a whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.errors import PlimsollError

#: Longer sentences repeat what was written, and nobody reads it twice.
CHARACTERS_MAX = 600


@dataclass(frozen=True, order=True)
class Mistake:
    """One thing wrong with an input.

    Attributes:
        line: line of the file, counted from 1; 0 when no line applies.
        where: the key, row or option concerned, as the reader of the file would name it.
        message: what is wrong, in a sentence without a full stop.
        hint: what to do about it.
        meant: of a key that is not known, where those stand that may be meant by it.
    """

    line: int
    where: str
    message: str
    hint: str = ""
    meant: tuple[str, ...] = ()

    def render(self, file_name: str) -> str:
        """The mistake as the one or two lines shown in a terminal."""
        place = f"{file_name}:{self.line}" if self.line else file_name
        subject = f"`{shown(self.where)}` " if self.where else ""
        text = f"{place}: {subject}{shown(self.message)}"
        return f"{text}\n    hint: {shown(self.hint)}" if self.hint else text


def shown(text: str) -> str:
    r"""Text that may hold what a stranger wrote, fit for a terminal.

    Nothing that steers one, and nothing without end.

    >>> shown("a name \x1b[2J that clears")
    'a name \\x1b[2J that clears'
    """
    if len(text) > CHARACTERS_MAX:
        text = f"{text[:CHARACTERS_MAX]}... ({len(text)} characters)"
    is_plain = (character.isprintable() or character == "\n" for character in text)
    return "".join(
        character if plain else character.encode("unicode_escape").decode()
        for character, plain in zip(text, is_plain, strict=True)
    )


class InputError(PlimsollError, ValueError):
    """Every mistake found in one input.

    Attributes:
        file_name: the file as the user named it, or a word such as "options".
        mistakes: sorted by line; never empty.
    """

    def __init__(self, file_name: str, mistakes: Iterable[Mistake]) -> None:
        self.file_name = file_name
        # Those of one place stay in the order they were found in: that of another file's lines,
        # where they are told for it.
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.where)))
        assert self.mistakes, "an InputError without a mistake says nothing"
        super().__init__("\n".join(mistake.render(file_name) for mistake in self.mistakes))


class SeveralInputsError(PlimsollError):
    """The mistakes of several inputs.

    Attributes:
        errors: one for each input that has any.
    """

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(map(str, self.errors)))


def nearest_names(name: str, known: Iterable[str | None]) -> str:
    """A hint listing the known names closest to a misspelt one, or all of them when few.

    >>> nearest_names("drive_slot", ["drive_slots", "hot_spares"])
    'did you mean `drive_slots`?'
    """
    # What has no name, by another mistake, is none that could be meant.
    names = sorted(other for other in known if other is not None)
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    if not close and name:
        begun = [other for other in names if other.startswith(name)]
        close = begun if len(begun) <= 2 else []
    if close:
        return "did you mean " + " or ".join(f"`{candidate}`" for candidate in close) + "?"
    if not names:
        return ""
    shown = names if len(names) <= 12 else [*names[:12], "..."]
    return "known here: " + ", ".join(shown)
