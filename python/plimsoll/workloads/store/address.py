"""Where a store lies that is not on our engine.

`sqlite:FILE`, `postgresql://user@host:port/database`, `mysql://...`.

A password never stands in an address, because addresses stand in plans, reports and lists of
processes: it is the first line of a file.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from plimsoll.errors import InvalidValueError

#: The schemes, the backend that each means, and the port where none is written.
SCHEMES = {
    "postgresql": ("postgresql", 5432),
    "postgres": ("postgresql", 5432),
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
}
SQLITE = "sqlite:"
HINT = "write sqlite:FILE, postgresql://user@host:port/database or mysql://user@host:port/database"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


class Address(NamedTuple):
    """Where a store lies.

    Attributes:
        backend: sqlite, postgresql or mysql.
        file: the file of SQLite, empty for a server.
        host: name or address of the server.
        port: its port.
        user: who logs in.
        database: what is used there.
    """

    backend: str
    file: str = ""
    host: str = ""
    port: int = 0
    user: str = ""
    database: str = ""


class StoreAddressError(InvalidValueError):
    """Text that names no store, and what to write."""

    def __init__(self, message: str, hint: str = HINT) -> None:
        super().__init__(message)
        self.hint = hint


def is_store_address(text: str) -> bool:
    """Whether text is meant as an address and not as a directory.

    >>> is_store_address("sqlite:/mnt/x/store.db"), is_store_address("postgresql://u@h/d"), is_store_address("/mnt/array"), is_store_address("c:d")
    (True, True, False, False)
    """  # noqa: E501
    found = _SCHEME.match(text)
    return found is not None and (found[1].lower() == "sqlite" or found[2] is not None)


def parse(text: str) -> Address:
    """The address that text writes.

    >>> parse("postgresql://shop@[::1]:5433/ds2")
    Address(backend='postgresql', file='', host='::1', port=5433, user='shop', database='ds2')
    >>> parse("sqlite:/mnt/array/store.db").file
    '/mnt/array/store.db'

    Raises:
        StoreAddressError: it is none, or holds a password.
    """
    if text.lower().startswith(SQLITE):
        file = text[len(SQLITE) :]
        if not file or file.endswith("/"):
            raise StoreAddressError(
                f'"{text}" names no file',
                "write sqlite: and the file, such as sqlite:/mnt/array/store.db",
            )
        return Address("sqlite", file=file)
    scheme, _, rest = text.partition("://")
    scheme = scheme.lower()
    # The password first, whatever else is wrong: what is said of an address repeats it. One that
    # holds / ? or # ends the part of the address where it belongs.
    user, is_named, _ = rest.partition("@")
    if is_named and ":" in user:
        raise StoreAddressError(
            "the address holds a password, which plans and reports would show",
            "leave it out and name a file whose first line it is: password_file, on the command "
            "line --password-file",
        )
    if scheme in ("mssql", "sqlserver"):
        raise StoreAddressError(
            "SQL Server is not a target of this version: no server was at hand to test it against",
            "take sqlite:, postgresql:// or mysql://",
        )
    if scheme not in SCHEMES:
        raise StoreAddressError(f'"{text}" is not the address of a store')
    return _server(text, *SCHEMES[scheme])


def _server(text: str, backend: str, usual_port: int) -> Address:
    try:
        parts = urlsplit(text)
        port = parts.port or usual_port
    except ValueError as error:
        raise StoreAddressError(f"the address cannot be read: {error}") from error
    if parts.query or parts.fragment:
        raise StoreAddressError(
            f'"{parts.query or parts.fragment}" at the end of the address means nothing',
            "leave it out",
        )
    database = unquote(parts.path.removeprefix("/"))
    missing = _missing(parts, database)
    if missing:
        raise StoreAddressError(f'"{text}" names no {" and no ".join(missing)}')
    return Address(
        backend,
        host=str(parts.hostname),
        port=port,
        user=unquote(str(parts.username)),
        database=database,
    )


def _missing(parts: SplitResult, database: str) -> list[str]:
    named = {"user": parts.username, "host": parts.hostname, "database": database}
    return [name for name, value in named.items() if not value]
