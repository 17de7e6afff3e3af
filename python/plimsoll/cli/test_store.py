"""`plimsoll test store`: an online store under orders, with the loop of DVD Store 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll.cli.named_tests import Options, phase, stated, storage_options

Storage = Annotated[
    str | None,
    typer.Argument(
        help="A directory on the storage to be tested, sqlite:FILE, "
        "postgresql://user@host:port/database or mysql://... "
        "(MariaDB, too). SQL Server is not supported: no server was at hand.",
        metavar="PATH|ADDRESS",
    ),
]


def store_test(
    path: Storage = None,
    scale: Annotated[
        str, typer.Option(help="Nominal size: S, M, L, or such as 500MB or 2GB.")
    ] = "S",
    mode: Annotated[
        str, typer.Option(help="ds2, or ds3 with members and reviews, which make a store large.")
    ] = "ds2",
    sessions: Annotated[
        int | None, typer.Option(help="Sessions that order one after the other.")
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Users instead: ten of them are one session.")
    ] = None,
    orders_per_s: Annotated[
        float | None, typer.Option(help="Let so many customers arrive per second instead.")
    ] = None,
    think_s: Annotated[
        float, typer.Option(min=0, help="Mean think time between two orders of a session.")
    ] = 0.0,
    minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")
    ] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    password_file: Annotated[
        Path | None, typer.Option(help="A file whose first line is the password for the address.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificates to trust: talk to PostgreSQL in TLS.")
    ] = None,
    data_path: Annotated[
        Path | None,
        typer.Option(
            help="Where the server's data lie on this machine: the device whose counters are "
            "watched."
        ),
    ] = None,
    existing: Annotated[
        bool,
        typer.Option(
            "--existing", help="Drive a DVD Store schema that is there; nothing is loaded."
        ),
    ] = False,
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of the engine.")] = None,
    edition: Annotated[
        str, typer.Option(help="Whose page size, cache and log the engine has.")
    ] = "2010",
    modelled: Annotated[
        str | None,
        typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY"),
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option(help="A figure of the modelled array.", metavar="KEY=VALUE")
    ] = None,
    log_path: Annotated[
        Path | None, typer.Option(help="A directory for the log, if it lies elsewhere.")
    ] = None,
    checksum: Annotated[bool, typer.Option(help="Read and verify every page afterwards.")] = True,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A limit: 'order_response_ms_p95<500'. May be repeated."),
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides rows and orders.")] = 1,
) -> Options:
    """Let customers log in, search and order in a store, on this engine or in a database.

    Count orders per minute and audit every unit sold.

    The loop is that of DVD Store 2: 20 threads that think 1.5 s make 800 orders per minute at most.
    The store stays for the next test.

    Example: plimsoll test store /mnt/array --scale 1GB --users 200 --think-s 1.5 --minutes 30 --yes
    """
    address = path if path is not None and plimsoll.is_store_address(path) else None
    load = stated(sessions=sessions, users=users, transactions_per_s=orders_per_s)
    of_address = {"password_file": _text(password_file), "ca_file": _text(ca_file)}
    of_engine = {"edition": edition, "cache_mib_max": cache_mib, "backend": "store"}
    instance = stated(
        store_size=scale,
        store_mode=mode,
        store_address=address,
        **of_address,
        **({} if address else of_engine),
    )
    return {
        "name": "store",
        "test": "store",
        "target": [
            storage_options(
                Path(path) if path else None,
                modelled,
                change,
                log_path,
                "a directory or an address",
            )
            if address is None
            else _target_of(address, data_path)
        ],
        **({"source": "existing"} if existing else {}),
        "instance": [{"name": "store", **instance}],
        "workload": [{"name": "orders", "think_s": think_s, **stated(load=load or None)}],
        "phase": _phases(
            minutes, ramp_s, checksum=checksum and modelled is None and address is None
        ),
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=stated_limits or None),
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _target_of(address: str, data_path: Path | None) -> Options:
    """A server, with what is stated of its storage; or the directory of a file."""
    if not address.lower().startswith("sqlite:"):
        return {"name": "target", **stated(data_path=_text(data_path))}
    return {
        "name": "target",
        "path": str(Path(address.partition(":")[2]).expanduser().absolute().parent),
    }


def _phases(minutes: float, ramp_s: float, *, checksum: bool) -> list[Options]:
    ramp = (
        [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["orders"])] if ramp_s else []
    )
    checking = [phase("checksum")] if checksum else []
    measuring = phase("measure", duration_s=minutes * 60)
    return [phase("prepare"), *ramp, measuring, phase("audit"), phase("stop"), *checking]
