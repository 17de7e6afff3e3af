"""Other applications on the same array.

The load they put on volumes of theirs, as people write it and as the native side is told.

    [[arrays.volumes]]
    name = "erp"
    capacity_gb = 300

    [[arrays.neighbours]]
    name = "erp"             # on the volume of that name, unless `volume` names another
    iops = 200
    read_percent = 70
    block_kib = 8

A neighbour makes its requests from beginning to end, whatever becomes of them, but has no more than
`outstanding_count` on their way; what it left out is counted and said. Where nothing else is
written it shares the links of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.array_spec import NeighbourSpec
from plimsoll.documents.outcome import ArrayReport, HostReport
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import Field, Flag, Number, Text
from plimsoll.inputs.toml_lines import KeyPath

PATTERNS = ("random", "sequential")
KIB, GB = 1024, 1_000_000_000
#: More requests left out than this share, and the array does not carry the neighbour.
LEFT_OUT_SHARE = 0.02

NEIGHBOUR = {
    "name": Field(Text(), required=True, meaning="what it is called"),
    "volume": Field(Text(), meaning="one of `volumes`; that of its own name if left out"),
    "iops": Field(
        Number(0, 1e7),
        required=True,
        meaning="requests per second, from beginning to end; 0 for none",
    ),
    "read_percent": Field(
        Number(0, 100), required=True, meaning="how many of a hundred requests read"
    ),
    "block_kib": Field(Number(1, 16_384, whole=True), required=True, meaning="size of a request"),
    "pattern": Field(Text(PATTERNS), default="random", meaning="random or sequential"),
    "outstanding_count": Field(
        Number(1, 4096, whole=True),
        default=32,
        meaning="requests on their way at most; more are not made, and counted",
    ),
    "shares_links": Field(
        Flag(), default=True, meaning="whether they come over the links of the host"
    ),
}


def native_neighbours(array: ArraySheet, volume_numbers: Mapping[str, int]) -> list[NeighbourSpec]:
    """Neighbours as the native side is told them.

    Args:
        array: a preset or an array of the same fields.
        volume_numbers: the numbers of the volumes of others, by name.
    """
    return [
        NeighbourSpec(
            name=row["name"],
            volume=volume_numbers[row["volume"] or row["name"]],
            per_second=float(row["iops"]),
            read_share=row["read_percent"] / 100,
            request_bytes=int(row["block_kib"]) * KIB,
            pattern=row["pattern"],
            outstanding_max=int(row["outstanding_count"]),
            shares_links=row["shares_links"],
        )
        for row in array.get("neighbours") or []
        if row["iops"]
    ]


def impossible_neighbours(array: ArraySheet) -> Iterator[tuple[KeyPath, str, str]]:
    """Key, message and hint of each neighbour that cannot do what it is to do."""
    if "volumes" not in array:
        return
    sizes = {row["name"]: row["capacity_gb"] for row in array["volumes"] or [] if row["name"]}
    for number, row in enumerate(array.get("neighbours") or []):
        wanted = row["volume"] or row["name"]
        if wanted is None:
            continue
        if wanted not in sizes:
            own = f'volumes = [{{ name = "{wanted}", capacity_gb = 100 }}]'
            hint = (
                nearest_names(wanted, sizes) if row["volume"] and sizes else f"describe it: {own}"
            )
            yield ("neighbours", number, "volume"), f'is "{wanted}", no volume of `volumes`', hint
        elif row["block_kib"] and sizes[wanted] and row["block_kib"] * KIB > sizes[wanted] * GB:
            message = f"is {row['block_kib']} KiB, more than its volume holds"
            yield ("neighbours", number, "block_kib"), message, "use a larger volume"


def neighbour_words(array: ArraySheet) -> list[str]:
    """Each neighbour in words.

    >>> row = {"name": "erp", "iops": 200, "block_kib": 8, "read_percent": 70, "pattern": "random"}
    >>> neighbour_words({"neighbours": [row]})
    ['erp: 200 IOPS, random, 8 KiB, 70 % reads']
    """
    return [
        f"{row['name']}: {row['iops']:,g} IOPS, {row['pattern']}, {row['block_kib']} KiB, "
        f"{row['read_percent']:g} % reads"
        for row in array.get("neighbours") or []
    ]


@dataclass(frozen=True)
class NeighbourUse:
    """What a neighbour made of what it wanted; latencies are None without such requests.

    Attributes:
        request_percent: its share of all requests of the array.
    """

    name: str
    volume: str
    wanted_iops: float
    iops: float
    left_out_count: int
    request_percent: float
    read_count: int
    write_count: int
    read_latency_ms: float | None
    write_latency_ms: float | None


def neighbour_rows(report: ArrayReport) -> list[NeighbourUse]:
    """What each neighbour made of what it wanted, by the array's counters.

    Args:
        report: what the array counted.
    """
    rows = []
    seconds = report.interval_ns / 1e9
    total = sum(_requests(row) for row in (*report.volumes, *report.neighbours))
    for row in report.neighbours:
        count = _requests(row)
        rows.append(
            NeighbourUse(
                name=row.name,
                volume=row.volume,
                wanted_iops=row.wanted_per_second,
                iops=count / seconds,
                left_out_count=row.left_out_count,
                request_percent=100 * count / total if total else 0.0,
                read_count=row.read_count,
                write_count=row.write_count,
                read_latency_ms=row.read_latency_ms if row.read_count else None,
                write_latency_ms=row.write_latency_ms if row.write_count else None,
            )
        )
    return rows


def neighbour_sentences(report: ArrayReport) -> list[str]:
    """What neighbours made, and what part of the busiest stage was theirs."""
    rows = neighbour_rows(report)
    sentences = []
    for row in rows:
        sentences.append(
            f"neighbour {row.name} made {row.iops:,.0f} IOPS, {row.request_percent:.0f} % "
            f"of the array's requests"
        )
        wanted = row.read_count + row.write_count + row.left_out_count
        if wanted and row.left_out_count / wanted > LEFT_OUT_SHARE:
            sentences[-1] += (
                f"; it wanted {row.wanted_iops:,.0f} and left the rest out, as the array does "
                f"not carry them"
            )
    if rows:
        first = report.stages[0]
        share = first.neighbour_utilisation
        sentences.append(
            f"of the time of the busiest stage, {first.stage}, {share:.0%} went to neighbours; "
            f"no published result had any, so "
            "that the error band says nothing of them"
        )
    return sentences


def _requests(row: HostReport) -> int:
    return row.read_count + row.write_count
