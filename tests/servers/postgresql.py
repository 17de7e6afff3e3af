"""PostgreSQL: a cluster with a user `shop` that may log in by password, and a database `shop` that
is its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.server import HOST, Server

USER = DATABASE = "shop"
PASSWORD = "a-word-of-tests"
_ADMINISTRATOR = "postgres"
#: A certificate for localhost that is its own authority, made for tests of TLS.
CERTIFICATES = Path(__file__).parents[2] / "crates/plimsoll-io/tests/net/tls"


class PostgreSQL(Server):
    """See the text of this file.

    The administrator comes in by the socket in the folder, without a password.
    """

    KIND = "postgresql"
    PACKAGES = "postgresql"
    #: Ends sessions; the usual signal waits for them.
    STOP_SIGNAL = signal.SIGINT
    STILL_THERE: ClassVar[bytes] = b"pre-existing shared memory block"
    CONNECTIONS_MAX: ClassVar[int] = 60
    #: A killed process loses nothing of what the system has; machines are not switched off in these
    #: tests.
    DURABILITY: ClassVar[dict[str, str]] = {"fsync": "off", "shared_buffers": "64MB"}

    @classmethod
    def program(cls) -> Path | None:
        found = sorted(
            Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4])
        )
        return found[-1] if found else None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _tool(self, name: str) -> Path:
        program = self.program()
        assert program is not None
        return program.with_name(name)

    def prepare(self) -> None:
        self.run(
            self._tool("initdb"),
            "-D",
            self.data,
            "-U",
            _ADMINISTRATOR,
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        rules = (
            "local all postgres trust\nlocal all all scram-sha-256\nhost all all 127.0.0.1/32 "
            "scram-sha-256\n"
        )
        self.run("tee", self.data / "pg_hba.conf", stdin=rules)
        for name in ("server.pem", "server.key"):
            text = (CERTIFICATES / name).read_text()
            self.run("sh", "-c", 'umask 077; cat > "$0"', self.data / name, stdin=text)

    def command(self) -> Sequence[str | Path]:
        settings = {
            "listen_addresses": HOST,
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": self.CONNECTIONS_MAX,
            "ssl": "on",
            "ssl_cert_file": "server.pem",
            "ssl_key_file": "server.key",
            **self.DURABILITY,
        }
        return [
            self._tool("postgres"),
            "-D",
            self.data,
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    def is_ready(self) -> bool:
        asked = [str(self._tool("pg_isready")), "-q", "-h", HOST, "-p", str(self.port)]
        return (
            subprocess.run(
                asked, check=False, env={**os.environ, "PGCONNECT_TIMEOUT": "2"}
            ).returncode
            == 0
        )

    def populate(self) -> None:
        self.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'", database="postgres")
        self.make_database(DATABASE)

    def make_database(self, name: str) -> None:
        """An empty database that belongs to the user."""
        self.sql(f"CREATE DATABASE {name} OWNER {USER}", database="postgres")

    def sql(self, text: str, *, database: str = DATABASE) -> str:
        """What the administrator says and is told: rows as lines, columns between bars."""
        told = self.run(
            self._tool("psql"),
            *(
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                self.folder,
                "-p",
                str(self.port),
            ),
            *("-U", _ADMINISTRATOR, "-d", database),
            stdin=text,
        )
        return told.strip()

    def facts(self) -> dict[str, str | int]:
        return {
            **super().facts(),
            "user": USER,
            "password": PASSWORD,
            "database": DATABASE,
            "ca_file": str(CERTIFICATES / "server.pem"),
        }


class DurablePostgreSQL(PostgreSQL):
    """The same for measurements: commits are durable, as without any setting."""

    KIND = "postgresql-durable"
    DURABILITY: ClassVar[dict[str, str]] = {"shared_buffers": "1GB"}
