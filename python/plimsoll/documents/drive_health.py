"""What a run did to its drives: `drive-health.json`.

Warmth, minutes slowed down by it, what was written, and the life it took. Only drives that tell of
themselves are in it; null is what they did not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class DriveHealth(Document):
    """One drive over a run.

    Attributes:
        disk: its name.
        life_used_percent_before: of its rated endurance, as it says itself.
        life_used_percent_after: the same after the run.
        spare_percent_after: spare blocks that are left.
        written_bytes: what the host wrote to it meanwhile, others included.
        temperature_c_max: the highest that was seen.
        warm_minutes: minutes above its own warning temperature.
        critical_minutes: minutes above its own critical temperature.
        throttled_count: how often it went down to a slower state because of its temperature.
    """

    disk: str
    life_used_percent_before: int | None
    life_used_percent_after: int | None
    spare_percent_after: int | None
    written_bytes: int | None
    temperature_c_max: float | None
    warm_minutes: int | None
    critical_minutes: int | None
    throttled_count: int | None

    @property
    def was_throttled(self) -> bool:
        """Whether it was so warm that its figures are not those of a cool drive."""
        return bool(self.warm_minutes or self.critical_minutes or self.throttled_count)


class DriveHealthFile(Document):
    """`drive-health.json`."""

    schema_version: Literal[1]
    drives: Sequence[DriveHealth]
