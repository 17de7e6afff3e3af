"""Operations on records, the first family.

What a plan says of them, and which operations there are.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.inputs.schema import Collector, Field, Flag, Given, Number
from plimsoll.workloads.window_figures import USUAL_S, WindowFigure

BACKENDS = ("engine", "raw_files")
OPERATIONS = ("insert", "delete", "replace", "read")
SHARES = tuple(f"{kind}_percent" for kind in OPERATIONS)

#: What a plan says of the databases of records, which means nothing for instances of other
#: families.
DATABASE_KEYS = (
    "databases",
    "database_size_mib",
    "record_bytes",
    "vacancy_percent",
    "compressible_percent",
)

WINDOW_S = USUAL_S
WINDOWS = {
    "transactions_per_s": WindowFigure("transactions per second", "of records: what completes"),
    "iops": WindowFigure(
        "database I/O per second", "of records: database reads and writes", "database_io"
    ),
    "iops_per_user": WindowFigure(
        "database I/O per second and user",
        "of records: database reads and writes of one user",
        "database_io",
        of_user=True,
    ),
}

INSTANCE_FIELDS = {
    "databases": Field(
        Number(1, 250, whole=True), meaning="databases that share its log and cache"
    ),
    "database_size_mib": Field(
        Number(64, 64 * 1024 * 1024, whole=True), meaning="size of each database when prepared"
    ),
}

WORKLOAD_FIELDS = {
    "sluggish": Field(Number(0, 1000), meaning="think time as a multiple of service time"),
    "insert_percent": Field(Number(0, 100, whole=True), meaning="share of new records"),
    "delete_percent": Field(Number(0, 100, whole=True), meaning="share of removed records"),
    "replace_percent": Field(Number(0, 100, whole=True), meaning="share of rewritten records"),
    "read_percent": Field(Number(0, 100, whole=True), meaning="share of read records"),
    "lazy_commit_percent": Field(
        Number(0, 100, whole=True), meaning="share of commits that do not wait for the log"
    ),
    "folder_records": Field(
        Number(0, 1_000_000_000, whole=True),
        meaning="records of the folder a session works in; 0 for the whole database",
    ),
    "batch_operations": Field(
        Number(1, 1_000_000, whole=True),
        meaning="operations before a session goes to another folder",
    ),
    "hot_percent": Field(
        Number(1, 99, whole=True), meaning="share of the records that are hot; none if left out"
    ),
    "hot_access_percent": Field(
        Number(1, 100, whole=True),
        meaning="share of the operations on records that go to the hot ones",
    ),
    "replies": Field(
        Flag(), meaning="whether new records go next to records just read, where there is room"
    ),
}


def workload(
    common: Given, given: Given, edition: settings.Edition, index: int, collector: Collector
) -> spec.RecordsWorkload:
    """A workload of this family, completed from an edition.

    Args:
        common: what workloads of all families have, the load among it.
        given: the checked table, absent keys None.
        edition: whose defaults fill in what is absent.
        index: its position in the plan, for mistakes.
        collector: takes the mistakes.
    """
    value = {**edition, **{key: value for key, value in given.items() if value is not None}}
    total = sum(value[share] for share in SHARES)
    if total != 100:
        collector.add(
            ("workload", index),
            f"has shares that add up to {total} %",
            "insert, delete, replace and read make 100",
        )
    return spec.RecordsWorkload(
        name=common["name"],
        instances=common["instances"],
        mix=spec.MixSpec(**{share: value[share] for share in (*SHARES, "lazy_commit_percent")}),
        locality=spec.LocalitySpec(
            folder_records=value["folder_records"],
            batch_operations=value["batch_operations"],
            replies=value["replies"],
            **_hot_set(given, index, collector),
        ),
        load=common["load"],
        sluggish=value["sluggish"],
    )


def _hot_set(given: Given, index: int, collector: Collector) -> dict[str, int]:
    """The hot set of a workload; both of its keys or none."""
    keys = ("hot_percent", "hot_access_percent")
    stated = {key: given[key] for key in keys if given.get(key) is not None}
    if len(stated) == 1:
        missing = next(key for key in keys if key not in stated)
        collector.add(
            ("workload", index, missing),
            "is missing",
            "say how many records are hot and how much goes to them",
        )
        return {}
    if stated and stated["hot_access_percent"] < stated["hot_percent"]:
        hint = "hot records get more than their share; exchange the two"
        collector.add(("workload", index, "hot_access_percent"), "is below hot_percent", hint)
    return stated
