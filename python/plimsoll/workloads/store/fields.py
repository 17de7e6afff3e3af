"""What a plan says of an online store.

`backend = "store"` of an instance, and the keys of a workload that visits it.

    [[instance]]
    name = "shop"
    backend = "store"
    store_size = "1GB"

    [[workload]]
    name = "orders"
    think_s = 1.5
    load = { users = 200 }

Sessions are customers one after the other. Ten users are one session, as in the published tests.
Without a load one session orders as fast as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT
from plimsoll.files.paths import whole_path
from plimsoll.inputs.schema import Collector, Field, Given, Number, Text
from plimsoll.workloads import distribution
from plimsoll.workloads.records import DATABASE_KEYS
from plimsoll.workloads.stages import STAGE_KEYS, stages_of
from plimsoll.workloads.store.address import HINT as HINT_OF_ADDRESS
from plimsoll.workloads.store.address import Address, StoreAddressError, parse
from plimsoll.workloads.store.rate import sessions_of
from plimsoll.workloads.store.sizes import HINT, bytes_of, megabytes_of
from plimsoll.workloads.window_figures import USUAL_S, WindowFigure

#: On our engine, and in databases that are not ours.
ENGINE_BACKENDS, CLIENT_BACKENDS = ("store",), ("sqlite", "postgresql", "mysql")
#: Those of them that are on a server.
SERVER_BACKENDS = ("postgresql", "mysql")
BACKENDS = (*ENGINE_BACKENDS, *CLIENT_BACKENDS)
#: Which loop is gone through.
MODES = ("ds2", "ds3")
OPERATIONS = ("order",)
#: Metrics of the steps of an order and how they are called; `crates/plimsoll-run/src/store` counts
#: them.
STEPS = {
    "store_login": "login",
    "store_new_customer": "new customer",
    "store_search": "search",
    "store_new_member": "new member",
    "store_review_search": "review search",
    "store_reviews": "reviews",
    "store_new_review": "new review",
    "store_new_rating": "new rating",
    "store_price": "prices",
    "store_purchase": "purchase",
}

WINDOW_S = USUAL_S
WINDOWS = {
    "orders_per_min": WindowFigure(
        "orders per minute", "of a store: rolled back ones included", per="min"
    ),
    "orders_per_user_per_min": WindowFigure(
        "orders per minute and user",
        "of a store: those of one user; a session is ten users",
        per="min",
        of_user=True,
    ),
}

INSTANCE_FIELDS = {
    "store_size": Field(
        Text(), meaning="of a store: nominal size, S, M, L or such as 500MB or 2GB; S if left out"
    ),
    "store_mode": Field(
        Text(MODES),
        meaning="of a store: ds2, the loop of DVD Store 2, or ds3 with members and reviews; ds2 if "
        "left out",
    ),
    "reviews_per_product": Field(
        Number(1, 200, whole=True),
        meaning="of a store with reviews: how many a product has on average; 20 if left out",
    ),
    "store_address": Field(
        Text(),
        meaning=f"of a store that is not on the engine, in the place of backend: {HINT_OF_ADDRESS}",
    ),
    "timeout_s": Field(
        Number(0.1, 86400),
        meaning="a server that does not answer for so long is lost; 60 if left out",
    ),
    "lost_after_s": Field(
        Number(0.1, 86400),
        meaning="a run in which all orders have come to nothing for so long ends; 60 if left out",
    ),
}

WORKLOAD_FIELDS = {
    "think_s": Field(
        Number(0, 86400),
        meaning="mean think time between the orders of a session of a store; none if left out",
    ),
    "new_customers_percent": Field(
        Number(0, 100), meaning="share of the customers of a store that sign up; 20 if left out"
    ),
    "searches_mean": Field(
        Number(1, 1000, whole=True), meaning="mean searches before an order; 3 if left out"
    ),
    "search_rows_mean": Field(
        Number(1, 1000, whole=True), meaning="mean rows that a search wants; 5 if left out"
    ),
    "lines_mean": Field(
        Number(1, 1000, whole=True),
        meaning="mean lines of an order, of which ten at most; 5 if left out",
    ),
    "new_members_percent": Field(
        Number(0, 100),
        meaning="share of the visits to a store with reviews in which a customer becomes a member; "
        "1 if left out",
    ),
    "reviews_mean": Field(
        Number(1, 1000, whole=True),
        meaning="mean searches for reviews, and as often again reviews of a product are read; 3 if "
        "left out",
    ),
    "new_reviews_percent": Field(
        Number(0, 100), meaning="share of the visits in which a review is written; 5 if left out"
    ),
    "new_ratings_percent": Field(
        Number(0, 100), meaning="share of the visits in which a review is rated; 10 if left out"
    ),
}
#: Those that mean something only where there are reviews.
REVIEW_FIELDS = (
    "new_members_percent",
    "reviews_mean",
    "new_reviews_percent",
    "new_ratings_percent",
)

#: What may be said of a store in a database that is not ours.
CLIENT_KEYS = (
    *("name", "target", "backend", "weight", "node", "processors", "memory_mib"),
    *("password_file", "ca_file", "endpoints", *distribution.FIELDS),
    *INSTANCE_FIELDS,
)
#: What may be said of a load on a store.
LOAD_KEYS = ("sessions", "shared", "users", "transactions_per_s", "spacing", *STAGE_KEYS)


def megabytes(given: Given, index: int, collector: Collector) -> int:
    """The nominal megabytes of an instance, 10 where its size cannot be read."""
    text = given["store_size"]
    found = megabytes_of(text) if text else int(settings.STORE["megabytes"])
    if found is None:
        collector.add(
            ("instance", index, "store_size"), f'is "{text}", which is no size of a store', HINT
        )
    return found or int(settings.STORE["megabytes"])


def database(
    given: Given, seed: int, index: int, file_name: str, collector: Collector
) -> spec.StoreDatabase:
    """The one database of an instance."""
    size = megabytes(given, index, collector)
    for key in DATABASE_KEYS:
        if given.get(key) is not None:
            collector.add(("instance", index, key), "means nothing for a store", "write store_size")
    reviews = _reviews(given, index, collector)
    return spec.StoreDatabase(
        file_name=file_name,
        size_bytes=bytes_of(size, reviews or 0),
        reviews_per_product=reviews,
        seed=seed * 1_000_003 + index * 1009 + 1,
        store_mb=size,
        existing_records=None,
    )


def _reviews(given: Given, index: int, collector: Collector) -> int | None:
    """Reviews of a product; none in the loop of DVD Store 2."""
    stated = given["reviews_per_product"]
    if given["store_mode"] == "ds3":
        return int(settings.STORE["reviews_per_product"] if stated is None else stated)
    if stated is not None:
        collector.add(
            ("instance", index, "reviews_per_product"),
            "means nothing without reviews",
            'write store_mode = "ds3", or remove it',
        )
    return None


def take_address(given: Given, index: int, collector: Collector) -> Given:
    """An instance whose address, if it has one, says which backend it is."""
    text = given["store_address"]
    if text is None:
        for key in ("timeout_s", "lost_after_s"):
            if given[key] is not None:
                hint = "write store_address, or remove it"
                collector.add(
                    ("instance", index, key), "means nothing without the address of a store", hint
                )
        if given["backend"] in CLIENT_BACKENDS:
            collector.add(
                ("instance", index, "store_address"),
                f"is missing for backend {given['backend']}",
                HINT_OF_ADDRESS,
            )
        return given
    try:
        backend = parse(text).backend
    except StoreAddressError as error:
        collector.add(("instance", index, "store_address"), str(error), error.hint)
        # What was meant is a store all the same: nothing else in the plan is wrong because of it.
        return given | {"backend": "sqlite" if text.lower().startswith("sqlite:") else "postgresql"}
    if given["backend"] not in (None, backend):
        hint = "leave backend out: the address says it"
        collector.add(
            ("instance", index, "backend"),
            f"is {given['backend']}, but the address is {backend}",
            hint,
        )
    return given | {"backend": backend}


def client_instance(
    common: Given, given: Given, seed: int, index: int, source: str | None, collector: Collector
) -> spec.StoreClientInstance:
    """A store in a database that is not ours."""
    try:
        address = parse(given["store_address"] or "")
    except StoreAddressError:
        address = Address(given["backend"], file="unknown")  # said before
    file = Path(address.file).expanduser().absolute()
    is_file = address.backend == "sqlite"
    for key in ("password_file", "ca_file", "endpoints", *distribution.FIELDS):
        if is_file and given[key] is not None:
            collector.add(
                ("instance", index, key), "means nothing for a file of SQLite", "remove it"
            )
    if address.backend == "mysql" and given["ca_file"] is not None:
        collector.add(
            ("instance", index, "ca_file"),
            "means nothing for mysql, which is not talked to in TLS here",
            "remove it",
        )
    if source == "existing" and is_file:
        hint = "leave source out: a store of ours that is there is used again"
        collector.add(
            ("source",), f"is existing, but a DVD Store on {address.backend} is not driven", hint
        )
    if source in ("new", "restored"):
        collector.add(
            ("source",),
            f"is {source}, but nothing is deleted from a database that is not ours",
            "leave it out",
        )
    only = database(given, seed, index, file.name if is_file else address.database, collector)
    place = {"directory": str(file.parent), "log_directory": str(file.parent)} if is_file else {}
    return spec.StoreClientInstance(
        **(common | place | {"backend": address.backend}),
        databases=[only],
        server=None if is_file else _server(address, given, index, collector),
        rows=_rows_of(given, source),
        timeout_s=float(given["timeout_s"] or settings.STORE["timeout_s"]),
        lost_after_s=float(given["lost_after_s"] or settings.STORE["lost_after_s"]),
    )


def _rows_of(given: Given, source: str | None) -> Literal["seed", "dvd_store", "dvd_store_3"]:
    if source != "existing":
        return "seed"
    return "dvd_store_3" if given["store_mode"] == "ds3" else "dvd_store"


def _server(address: Address, given: Given, index: int, collector: Collector) -> spec.ServerSpec:
    path = ("instance", index)
    endpoints = _endpoints(address, given["endpoints"], (*path, "endpoints"), collector)

    def named(key: str) -> str | None:
        return None if given[key] is None else whole_path(given[key])

    return spec.ServerSpec(
        host=address.host,
        port=address.port,
        user=address.user,
        database=address.database,
        password_file=named("password_file"),
        ca_file=named("ca_file"),
        endpoints=endpoints or ABSENT,
        distribution=distribution.completed(given, 1 + len(endpoints), path, collector),
    )


def _endpoints(
    address: Address,
    texts: Sequence[str] | None,
    path: tuple[str | int, ...],
    collector: Collector,
) -> list[spec.EndpointSpec]:
    """Where a server is reached besides its address."""
    found: list[spec.EndpointSpec] = []
    known = {(address.host, address.port)}
    for position, text in enumerate(texts or ()):
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or not port or text != parts.netloc or "@" in text:
            hint = "write HOST:PORT; user and database are those of store_address"
            collector.add((*path, position), f'is "{text}", which is no endpoint', hint)
        elif (host, port) in known:
            collector.add((*path, position), f"names {text} a second time", "write each once")
        else:
            known.add((host, port))
            found.append(spec.EndpointSpec(host=host, port=port))
    return found


def workload(
    common: Given, given: Given, plan: Given, index: int, collector: Collector
) -> spec.StoreWorkload:
    """The keys of a workload that only this family has, its load among them."""
    value = {
        key: settings.STORE[key] if given.get(key) is None else given[key]
        for key in WORKLOAD_FIELDS
        if key not in REVIEW_FIELDS
    }
    return spec.StoreWorkload(
        **common,
        family="store",
        load=_load(given["load"], plan, ("workload", index, "load"), collector),
        think_s=float(value["think_s"]),
        new_customers_percent=float(value["new_customers_percent"]),
        searches_mean=int(value["searches_mean"]),
        search_rows_mean=int(value["search_rows_mean"]),
        lines_mean=int(value["lines_mean"]),
        **{key: given[key] for key in REVIEW_FIELDS if given.get(key) is not None},
    )


def _load(
    given: Given | None, plan: Given, path: tuple[str | int, ...], collector: Collector
) -> spec.SessionsLoad | spec.RateLoad:
    """Sessions, users that stand for sessions, or arrivals."""
    load = {key: value for key, value in (given or {}).items() if value is not None}
    for key in load:
        if key not in LOAD_KEYS:
            collector.add(
                (*path, key), "means nothing for a store", f"write {', '.join(LOAD_KEYS)}"
            )
    ways = [key for key in ("sessions", "users", "transactions_per_s") if key in load]
    if len(ways) > 1:
        collector.add(path, f"says {' and '.join(ways)} of what may be loaded", "write one of them")
    if "transactions_per_s" in load:
        spacing = load.get("spacing", settings.ARRIVALS["spacing"])
        rate = float(load["transactions_per_s"])
        return spec.RateLoad(
            transactions_per_s=rate,
            spacing=spacing,
            sessions_max=plan["sessions_max"],
            stages=stages_of(load, plan["sample_interval_ms"], path, collector) or ABSENT,
        )
    for key in STAGE_KEYS:
        if key in load:
            collector.add(
                (*path, key), "means nothing for sessions", "write transactions_per_s, or remove it"
            )
    sessions = sessions_of(int(load["users"])) if "users" in load else int(load.get("sessions", 1))
    return spec.SessionsLoad(sessions=sessions, shared=True)
