"""Dovecot: IMAP plain, with STARTTLS and with TLS, and LMTP, each on a free port.

Accounts `u1`, `u2` and so on, all with one password.

The certificate is made for the test by `openssl` and thrown away with the folder. Settings are
those of Dovecot 2.3. Every process runs as one user without rights: the login processes need no
chroot, and no port is below 1024."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from tests.servers.server import HOST, Server, free_port

PASSWORD = "a-word-of-tests"
DOMAIN = "mail.example.org"
#: Accounts that exist: `u` and a number; any other name is unknown to the server.
_ACCOUNTS_MAX = 2000

_SETTINGS = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap lmtp
listen = {host}
hostname = {domain}
ssl = yes
ssl_cert = <{folder}/certificate.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
mail_uid = {user}
mail_gid = {group}
first_valid_uid = 1
first_valid_gid = 1
mail_max_userip_connections = 3000
default_process_limit = 400
default_client_limit = 4000
default_vsz_limit = 0
mail_location = {layout}:~/mail
mail_fsync = optimized
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%n {folder}/accounts
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/home/%n
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
  mailbox Trash {{
    auto = create
    special_use = \\Trash
  }}
}}
service imap-login {{
  chroot =
  service_count = 0
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = {host}
    port = {lmtp}
  }}
}}
service imap {{
  service_count = 100
  process_limit = 400
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service imap-urlauth-login {{
  chroot =
}}
service auth {{
  user = {user}
}}
service auth-worker {{
  user = {user}
}}
service doveadm {{
  user = {user}
}}
"""


class Dovecot(Server):
    """See the text of this file.

    `port` is that of IMAP; mail lies in `folder / "home" / ACCOUNT`.
    """

    KIND = "dovecot"
    PACKAGES = "dovecot-imapd dovecot-lmtpd"
    LAYOUT: ClassVar[str] = "mdbox"
    STILL_THERE: ClassVar[bytes] = b"Socket already exists"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.imaps_port, self.lmtp_port = free_port(), free_port()

    @classmethod
    def program(cls) -> Path | None:
        parts = [
            Path("/usr/sbin/dovecot"),
            Path("/usr/lib/dovecot/imap"),
            Path("/usr/lib/dovecot/lmtp"),
        ]
        return parts[0] if all(part.exists() for part in parts) else None

    @property
    def certificate(self) -> Path:
        """The certificate, which signs itself: what clients have to trust."""
        return self.folder / "certificate.pem"

    @property
    def password_file(self) -> Path:
        """The password of every account, as Plimsoll reads it."""
        return self.folder / "passwords"

    @property
    def imap(self) -> str:
        return f"imap://{HOST}:{self.port}"

    @property
    def imaps(self) -> str:
        return f"imaps://{HOST}:{self.imaps_port}"

    @property
    def lmtp(self) -> str:
        return f"lmtp://{HOST}:{self.lmtp_port}"

    def prepare(self) -> None:
        for name in ("run", "state", "home"):
            self.run("mkdir", self.folder / name)
        self.run(
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={DOMAIN}",
            ),
            *(
                "-addext",
                f"subjectAltName=DNS:{DOMAIN},IP:{HOST}",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ),
            *("-keyout", self.folder / "key.pem", "-out", self.certificate),
        )
        accounts = "".join(
            f"u{number}:{{PLAIN}}{PASSWORD}\n" for number in range(1, _ACCOUNTS_MAX + 1)
        )
        self._write("accounts", accounts)
        self._write("passwords", f"*:{PASSWORD}\n")
        self.run("chmod", "600", self.password_file)
        user, group = self._names()
        text = _SETTINGS.format(
            folder=self.folder,
            host=HOST,
            domain=DOMAIN,
            user=user,
            group=group,
            layout=self.LAYOUT,
            imap=self.port,
            imaps=self.imaps_port,
            lmtp=self.lmtp_port,
        )
        self._write("dovecot.conf", text)

    def _write(self, name: str, text: str) -> None:
        self.run("tee", self.folder / name, stdin=text)

    def _names(self) -> tuple[str, str]:
        """User and group that the server runs as."""
        return self.run("id", "-un").strip(), self.run("id", "-gn").strip()

    def command(self) -> Sequence[str | Path]:
        return ["/usr/sbin/dovecot", "-F", "-c", self.folder / "dovecot.conf"]

    def is_ready(self) -> bool:
        """Whether IMAP greets and LMTP does."""
        return all(
            self._greets(port, word)
            for port, word in ((self.port, b"* OK"), (self.lmtp_port, b"220 "))
        )

    @staticmethod
    def _greets(port: int, word: bytes) -> bool:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=5) as asked:
            return asked.recv(512).startswith(word)
        return False

    def _end(self, number: signal.Signals) -> None:
        """A killed master leaves processes that go on with the sessions they have.

        A crash of the machine takes them, too.
        """
        below = self._children() if number == signal.SIGKILL else []
        super()._end(number)
        for process in below:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _children(self) -> list[int]:
        if self.process is None:
            return []
        number = self.process.pid
        with suppress(OSError):
            return [
                int(word)
                for word in Path(f"/proc/{number}/task/{number}/children").read_text().split()
            ]
        return []

    def facts(self) -> dict[str, str | int]:
        return {
            **super().facts(),
            "imaps_port": self.imaps_port,
            "lmtp_port": self.lmtp_port,
            "ca_file": str(self.certificate),
            "password_file": str(self.password_file),
            "password": PASSWORD,
            "domain": DOMAIN,
        }
