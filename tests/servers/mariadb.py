"""MariaDB: a server with a user `shop` that may log in by password, and a database `shop` that is
its own.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.server import HOST, Server

USER = DATABASE = "shop"
PASSWORD = "a-word-of-tests"
_ADMINISTRATOR = "root"


class MariaDB(Server):
    """See the text of this file.

    The administrator comes in by the socket in the folder, without a password.
    """

    KIND = "mariadb"
    PACKAGES = "mariadb-server"
    CONNECTIONS_MAX: ClassVar[int] = 60

    @classmethod
    def program(cls) -> Path | None:
        found = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        return Path(found) if found and shutil.which("mariadb-install-db") else None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def prepare(self) -> None:
        self.run(
            *(
                "mariadb-install-db",
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ),
            *(f"--datadir={self.data}", f"--tmpdir={self.folder}", "--innodb-log-file-size=16M"),
        )

    def command(self) -> Sequence[str | Path]:
        program = self.program()
        assert program is not None
        return [
            program,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--max-connections={self.CONNECTIONS_MAX}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=16M",
            # A killed process loses nothing of what the system has; machines are not switched off
            # in these tests.
            "--innodb-flush-method=nosync",
        ]

    def is_ready(self) -> bool:
        return (
            subprocess.run(
                self._client("-e", "SELECT 1"), check=False, capture_output=True
            ).returncode
            == 0
        )

    def _client(self, *words: str) -> list[str]:
        named = [f"--socket={self.socket}", f"--user={_ADMINISTRATOR}", "--connect-timeout=2"]
        return ["mariadb", "--no-defaults", *named, "--batch", "--skip-column-names", *words]

    def populate(self) -> None:
        self.sql(f"CREATE USER {USER}@'{HOST}' IDENTIFIED BY '{PASSWORD}'", database="mysql")
        self.make_database(DATABASE)

    def make_database(self, name: str) -> None:
        """An empty database that belongs to the user."""
        self.sql(
            f"CREATE DATABASE {name}; GRANT ALL ON {name}.* TO {USER}@'{HOST}'", database="mysql"
        )

    def sql(self, text: str, *, database: str = DATABASE) -> str:
        """What the administrator says and is told: rows as lines, columns between tabs."""
        return self.run(*self._client(database), stdin=text).strip()

    def facts(self) -> dict[str, str | int]:
        return {**super().facts(), "user": USER, "password": PASSWORD, "database": DATABASE}
