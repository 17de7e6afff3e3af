"""Links by name, so that a plan says `link = "fc-8g"` and not a rate and a latency.

What is stated of an array itself stands: a link gives only what is not written beside it.
"""

from __future__ import annotations

from functools import cache
from typing import TypedDict

from plimsoll.arrays.sources import DATA_FOLDER, read_sourced
from plimsoll.inputs.schema import Field, Number, Text

SHIPPED_LINKS = DATA_FOLDER / "modelled_links.toml"

LINK = {
    "name": Field(Text(), required=True, meaning="the name arrays use"),
    "link_mb_per_s": Field(
        Number(0.001, 1e6), required=True, meaning="payload of a link in each direction"
    ),
    "link_latency_ms": Field(Number(0, 10_000), required=True, meaning="latency one way"),
}


class LinkSheet(TypedDict):
    """A link and where its figures are from."""

    name: str
    link_mb_per_s: float
    link_latency_ms: float
    sources: dict[str, str]


@cache
def shipped_links() -> dict[str, LinkSheet]:
    """The shipped links, by name.

    >>> shipped_links()["fc-8g"]["link_mb_per_s"]
    800
    """
    return {
        row["name"]: row
        for row in read_sourced(SHIPPED_LINKS, "modelled_links", {"links": LINK})["links"]
    }
