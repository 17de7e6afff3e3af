"""The named test of stores: an online store under orders, with the loop of DVD Store 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from plimsoll.pipeline.named_tests.declared import (
    Change,
    IoMethod,
    Minutes,
    Modelled,
    RampS,
)
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option
from plimsoll.pipeline.named_tests.options import refuse
from plimsoll.pipeline.named_tests.tables import (
    Tables,
    stated,
    storage,
    storage_problems,
    worked,
)


def store(
    path: Annotated[
        str | None,
        Option(
            "A directory on the storage to be tested, sqlite:FILE, "
            "postgresql://user@host:port/database or mysql://... (MariaDB, too). SQL Server is not "
            "supported: no server was at hand.",
            placeholder="PATH|ADDRESS",
        ),
    ] = None,
    scale: Annotated[str, Option("Nominal size: S, M, L, or such as 500MB or 2GB.")] = "S",
    mode: Annotated[
        str, Option("ds2, or ds3 with members and reviews, which make a store large.")
    ] = "ds2",
    sessions: Annotated[int | None, Option("Sessions that order one after the other.")] = None,
    users: Annotated[int | None, Option("Users instead: ten of them are one session.")] = None,
    orders_per_s: Annotated[
        float | None, Option("Let so many customers arrive per second instead.")
    ] = None,
    think_s: Annotated[
        float, Option("Mean think time between two orders of a session.", minimum=0)
    ] = 0.0,
    minutes: Minutes = 30.0,
    ramp_s: RampS = 0.0,
    password_file: Annotated[
        Path | None, Option("A file whose first line is the password for the address.")
    ] = None,
    ca_file: Annotated[
        Path | None, Option("Certificates to trust: talk to PostgreSQL in TLS.")
    ] = None,
    data_path: Annotated[
        Path | None,
        Option(
            "Where the server's data lie on this machine: the device whose counters are watched."
        ),
    ] = None,
    existing: Annotated[
        bool,
        Option("Drive a DVD Store schema that is there; nothing is loaded."),
    ] = False,
    cache_mib: Annotated[int | None, Option("Most cache of the engine.")] = None,
    edition: Annotated[str, Option("Whose page size, cache and log the engine has.")] = "2010",
    modelled: Modelled = None,
    change: Change = None,
    log_path: Annotated[
        Path | None, Option("A directory for the log, if it lies elsewhere.")
    ] = None,
    checksum: Annotated[bool, Option("Read and verify every page afterwards.")] = True,
    limit: Annotated[
        list[str] | None,
        Option("A limit: 'order_response_ms_p95<500'. May be repeated."),
    ] = None,
    io_method: IoMethod = "auto",
    seed: Annotated[int, Option("Decides rows and orders.")] = 1,
) -> Tables:
    """Let customers log in, search and order in a store, on this engine or in a database.

    Count orders per minute and audit every unit sold.

    The loop is that of DVD Store 2: 20 threads that think 1.5 s make 800 orders per minute at most.
    The store stays for the next test.

    Example: plimsoll test store /mnt/array --scale 1GB --users 200 --think-s 1.5 --minutes 30 --yes
    """
    from plimsoll.workloads.store.address import is_store_address

    address = path if path is not None and is_store_address(path) else None
    place = Path(path) if path and address is None else None
    if address is None:
        refuse(storage_problems(place, modelled, change, "a directory or an address"))
    load = stated(sessions=sessions, users=users, transactions_per_s=orders_per_s)
    of_engine = {"edition": edition, "cache_mib_max": cache_mib, "backend": "store"}
    instance = stated(
        store_size=scale,
        store_mode=mode,
        store_address=address,
        password_file=password_file,
        ca_file=ca_file,
        **({} if address else of_engine),
    )
    checking = checksum and modelled is None and address is None
    return {
        "name": "store",
        "test": "store",
        "target": [
            storage(place, modelled, change, log_path)
            if address is None
            else _target_of(address, data_path)
        ],
        **({"source": "existing"} if existing else {}),
        "instance": [{"name": "store", **instance}],
        "workload": [{"name": "orders", "think_s": think_s, **stated(load=load or None)}],
        "phase": worked(minutes * 60, "orders", ramp_s, audit=True, checksum=checking),
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=limit or None),
    }


def _target_of(address: str, data_path: Path | None) -> Tables:
    """A server, with what is stated of its storage; or the directory of a file."""
    if not address.lower().startswith("sqlite:"):
        return {"name": "target", **stated(data_path=data_path)}
    directory = Path(address.partition(":")[2]).expanduser().absolute().parent
    return {"name": "target", "path": str(directory)}
