"""What a planted bug is."""

from typing import NamedTuple


class Bug(NamedTuple):
    """One bug: in `file` of the sources of `crate`, `sound` is replaced by `broken`, where
    `PLANTED` stands for "this bug is planted".
    """

    name: str
    file: str
    sound: str
    broken: str
    program: str
    test: str
    # Why a test that does not end counts as one that finds the bug; empty where it does not count.
    hangs: str = ""
    crate: str = "plimsoll-engine"
