"""The modelled rate of a catalogue's array, where a preset stands for it.

What stands beside the formula in `select`.

The figures are those of the papers' runs (`data/papers_results.json`): database IOPS of one array
at reads of 18.5 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.arrays.papers.error_band import band_percent, paper_results

#: The point that was run for a model of the catalogue at a RAID level.
_POINTS = {
    ("PS6000XV", "RAID 10"): "ps6000xv-raid10",
    ("PS6000XV", "RAID 50"): "ps6000xv-raid50",
    ("PS6000X", "RAID 10"): "ps6000x-raid10",
    ("PS6000X", "RAID 50"): "ps6000x-raid50",
    ("PS6500E", "RAID 10"): "ps6500e-raid10",
    ("PS6500E", "RAID 50"): "ps6500e-raid50",
}


@dataclass(frozen=True)
class ModelledRate:
    """Database IOPS of one array by the model, the point they come from, and the band of the
    model.
    """

    iops: float
    point: str
    band_percent: float


def modelled_rate(model: str, raid: str) -> ModelledRate | None:
    """The modelled rate of one array; None where no preset stands for it.

    Example:
        >>> modelled_rate("PS6000S", "RAID 10") is None
        True
    """
    point = _POINTS.get((model, raid))
    if point is None:
        return None
    row = next(row for row in paper_results() if row.id == point and row.metric == "iops")
    return ModelledRate(row.modelled, point, band_percent("database_iops"))
