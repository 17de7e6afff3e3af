"""What storage of today would hold a sizing.

A module of its own, because every sizing asks for it: the model and the rules are not loaded.
"""

from __future__ import annotations

from plimsoll.sizing.catalogue import read_catalogue, read_drive_classes
from plimsoll.sizing.design import Sizing
from plimsoll.sizing.need import need_of
from plimsoll.sizing.selection import Candidate, select_arrays

#: Classes of storage that a sizing is shown beside its figures.
OFFERS_MAX = 3


def storage_offers(sizing: Sizing) -> list[Candidate]:
    """What of the built-in catalogue would hold a sizing: the best of each kind of drive, best
    first, at most three. Empty where nothing does.
    """
    found = select_arrays(need_of(sizing), read_catalogue().rows, read_drive_classes())
    best: dict[str, Candidate] = {}
    for candidate in found.candidates:
        if candidate.status != "rejected":
            best.setdefault(candidate.row.drive_class, candidate)
    return list(best.values())[:OFFERS_MAX]
