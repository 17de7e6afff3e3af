"""Runs one server for a test in another language, which speaks to it in lines.

    python3 -m tests.servers postgresql

The first line of the output is JSON: the facts of the server, or `{"missing": ..., "required":
...}`. From then on each line of the input is obeyed and answered by a line of JSON: `kill`,
`start`, `stop`, and `sql DATABASE TEXT` for what the administrator of a database server says. At
the end of the input the server is stopped and its folder removed."""

from __future__ import annotations

import json
import sys

from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import DurablePostgreSQL, PostgreSQL
from tests.servers.server import NotInstalledError, Server, is_required, running

KINDS: dict[str, type[Server]] = {
    server.KIND: server for server in (PostgreSQL, DurablePostgreSQL, MariaDB, Dovecot)
}


def obey(server: Server, line: str) -> object:
    """Do what a line says."""
    match line.rstrip("\n").split(" ", 2):
        case ["kill"]:
            return server.kill()
        case ["stop"]:
            return server.stop()
        case ["start"]:
            server.start()
            return None
        case ["sql", database, text] if isinstance(server, PostgreSQL | MariaDB):
            return server.sql(text, database=database)
    raise ValueError(f"{line!r} is nothing that a server does")


def say(what: object) -> None:
    """Answer by a line."""
    print(json.dumps(what), flush=True)


def main() -> None:
    """See the text of this file."""
    kind = KINDS[sys.argv[1]]
    try:
        with running(kind) as server:
            say(server.facts())
            for line in sys.stdin:
                try:
                    say({"told": obey(server, line)})
                except (AssertionError, ValueError) as error:
                    say({"error": str(error)})
    except NotInstalledError as missing:
        say({"missing": str(missing), "required": is_required(kind.KIND)})


if __name__ == "__main__":
    main()
