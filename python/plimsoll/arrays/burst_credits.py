"""Volumes that carry more than their rate for as long as saved-up credits last.

A burst that ends is never quoted as the rate.
"""

from __future__ import annotations

from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.outcome import ArrayReport

#: Requests above the base rate by less than this are none that credits paid for.
TOLERANCE = 1.02


def bursts(array: ArraySheet) -> bool:
    """Whether an array carries more for a while than in the long run."""
    base = array.get("cap_iops")
    return bool(
        base
        and (array.get("cap_burst_iops") or base) > base
        and (array.get("cap_credits") or 0) > 0
    )


def without_credits(array: ArraySheet) -> ArraySheet:
    """The array as it is when its credits are used up: what it carries in the long run."""
    return array | {"cap_credits": 0.0}


def burst_s(array: ArraySheet) -> float:
    """How long full credits last at the highest rate.

    >>> burst_s({"cap_iops": 1500.0, "cap_burst_iops": 3000.0, "cap_credits": 5_400_000.0})
    3600.0
    """
    saved_up, base = array.get("cap_credits") or 0.0, array.get("cap_iops") or 0.0
    return saved_up / ((array.get("cap_burst_iops") or base) - base)


def lived_on_credits(report: ArrayReport | None) -> str | None:
    """A sentence where a measured rate was paid for with credits.

    None where the volume carries it for ever.

    Args:
        report: what the array counted while it was measured.
    """
    cap = report.cap if report is not None else None
    if report is None or cap is None:
        return None
    requests = sum(volume.read_count + volume.write_count for volume in report.volumes)
    per_second, base = requests / (report.interval_ns / 1e9), cap.base_per_second
    if per_second <= TOLERANCE * base:
        return None
    left_s = cap.credit_count / (per_second - base)
    lasting = f"last {left_s / 60:,.0f} more minutes" if left_s >= 60 else "are used up"
    return (
        f"the volume lived on burst credits: {per_second:,.0f} requests a second against "
        f"{base:,.0f} in the long run; the "
        f"credits {lasting}"
    )
