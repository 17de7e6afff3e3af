"""Choosing an array for a capacity and an IOPS need.

What the catalogues offer, and what the model says of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Required, TypedDict

from plimsoll.advice.requirement_facts import sized
from plimsoll.arrays.catalogue_match import modelled_rate
from plimsoll.errors import RefusedError
from plimsoll.files.paths import StrPath, paths_of
from plimsoll.inputs.mistakes import InputError, Mistake, SeveralInputsError, nearest_names
from plimsoll.sizing.catalogue import (
    CATALOGUES,
    ArrayRow,
    read_catalogue,
    read_drive_classes,
)
from plimsoll.sizing.design import size
from plimsoll.sizing.need import need_of
from plimsoll.sizing.raid import RAID_LEVELS
from plimsoll.sizing.requirements import Requirements
from plimsoll.sizing.selection import (
    RANKINGS,
    SOURCE,
    Candidate,
    Need,
    Selection,
    select_arrays,
)

SHIPPED = "shipped"
#: From where to where each number of a need may lie; whole ones are counts.
LIMITS: dict[str, tuple[float, float]] = {
    "volumes_gb": (1e-3, 1e9),
    "database_iops": (0.0, 1e8),
    "snapshot_gb": (0.0, 1e9),
    "clone_gb": (0.0, 1e9),
    "replication_gb": (0.0, 1e9),
    "extra_iops": (0.0, 1e8),
    "log_iops": (0.0, 1e8),
    "copies": (1, 16),
    "databases": (1, 100_000),
    "hot_spares_minimum": (0, 100),
    "arrays_per_copy_maximum": (1, 10_000),
}
SELECTION_SOURCE = SOURCE


def select(need: Need, rows: Sequence[ArrayRow] | None = None) -> Selection:
    """Choose an array in six steps; every other one comes with the reason why not.

    >>> found = select(Need(volumes_gb=16_000.0, database_iops=900.0))
    >>> found.chosen is not None, len(found.steps)
    (True, 6)

    Args:
        need: capacity and IOPS of one copy, copies, and what is allowed.
        rows: of catalogues, as from `read_catalogues`; those of the built-in one of today's storage
            if left out.

    Raises:
        RefusedError: what was given is no need.
        InputError: with everything in the need that no array could be asked for.
    """
    if not isinstance(need, Need):
        raise RefusedError(
            [f"a {type(need).__name__} is no need; make one with Need or need_of_requirements"]
        )
    catalogue = read_catalogue().rows if rows is None else list(rows)
    check_need(need, catalogue)
    return select_arrays(need, catalogue, read_drive_classes())


def check_need(need: Need, rows: Sequence[ArrayRow] = ()) -> None:
    """Check what is asked for, as `select` does.

    Args:
        need: what is asked for.
        rows: the catalogue whose drive classes may be asked for; where it is empty, any may.

    Raises:
        InputError: with everything in the need that no array could be asked for.
    """
    mistakes = [*_numbers_beyond(need), *_unknown_words(need, rows)]
    if mistakes:
        raise InputError("need", mistakes)


def _numbers_beyond(need: Need) -> Iterator[Mistake]:
    for name, (low, high) in LIMITS.items():
        value = getattr(need, name)
        if value is None and name in ("databases", "arrays_per_copy_maximum"):
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            said = f"is {value!r}, but must lie between {low:g} and {high:g}"
            yield Mistake(0, name, said, "check sign and unit")
        elif isinstance(low, int) and value != int(value):
            yield Mistake(0, name, f"is {value!r}, but must be a whole number")


def _unknown_words(need: Need, rows: Sequence[ArrayRow]) -> Iterator[Mistake]:
    for name, words, known in (
        ("ranking", [need.ranking], RANKINGS),
        ("raid_levels", need.raid_levels, RAID_LEVELS),
        ("drive_classes", need.drive_classes, sorted({row.drive_class for row in rows})),
    ):
        if isinstance(words, str):
            yield Mistake(0, name, f"is {words!r}, but must be a tuple of texts")
            continue
        for word in words:
            if known and word not in known:
                hint = nearest_names(str(word), known)
                yield Mistake(0, name, f'is "{word}", which is unknown', hint)


def need_of_requirements(given: StrPath | Requirements) -> Need:
    """The need that follows from requirements.

    Args:
        given: a requirements file, or requirements as from `stated_requirements`.

    Raises:
        RefusedError: what was given is neither.
        InputError: with every mistake in the file.
    """
    return need_of(sized(Path(given)) if isinstance(given, (str, PathLike)) else size(given))


def read_catalogues(names: StrPath | Sequence[StrPath]) -> list[ArrayRow]:
    """The arrays of catalogue files.

    `shipped` is the built-in one of today's storage, `equallogic_2010` that of the Dell paper.

    Raises:
        SeveralInputsError: with every mistake of every file.
    """
    rows: list[ArrayRow] = []
    errors: list[InputError] = []
    for path in paths_of(names):
        try:
            rows += read_catalogue(CATALOGUES.get(str(path), path)).rows
        except InputError as error:
            errors.append(error)
    if errors:
        raise SeveralInputsError(errors)
    return rows


def selection_json(selection: Selection) -> dict[str, object]:
    """The result as plain data; keys carry their units."""
    return {
        "kind": "selection",
        "schema_version": 1,
        "required_capacity_gb": selection.required_gb,
        "required_iops": selection.required_iops,
        "need": asdict(selection.need),
        "chosen": _candidate_json(selection.chosen) if selection.chosen else None,
        "candidates": [_candidate_json(candidate) for candidate in selection.candidates],
        "steps": [asdict(step) for step in selection.steps],
        "caveats": list(selection.caveats),
        "source": SOURCE,
    }


def _candidate_json(candidate: Candidate) -> dict[str, object]:
    row = asdict(candidate.row)
    row.pop("conditions")
    figures = {
        key: value
        for key, value in asdict(candidate).items()
        if key not in ("row", "model_absence")
    }
    return row | figures | {"modelled": {**modelled_of(candidate)}}


class ModelledRate(TypedDict, total=False):
    """What the model says of the arrays of one copy, or why it says nothing."""

    iops_per_copy: Required[float | None]
    status: Required[str]
    reason: Required[str]
    band_percent: float


def modelled_of(candidate: Candidate) -> ModelledRate:
    """What the model says of the arrays of one copy, or why it says nothing."""
    rate = modelled_rate(candidate.row.model, candidate.row.raid)
    if rate is None:
        return {"iops_per_copy": None, "status": "not_evaluated", "reason": candidate.model_absence}
    iops = rate.iops * candidate.arrays_per_copy
    reason = f"point {rate.point} of `plimsoll papers`, for each array, reads at 18.5 ms"
    return {
        "iops_per_copy": iops,
        "status": "modelled",
        "reason": reason,
        "band_percent": rate.band_percent,
    }
