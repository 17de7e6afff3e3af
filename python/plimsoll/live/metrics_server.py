"""The endpoint that a running test offers to scrapers.

`/metrics` over plain HTTP, on the loopback unless told otherwise.

It listens from before the run until its end, and goes with it: open connections are dropped, never
waited for. A scrape only reads what the last samples said; the thread that measures knows nothing
of it.

The default port: exporters for Prometheus keep a list of the ports they take, the page "Default
port allocations" of that project's wiki. It gives out 9100 to 9999, of which nothing is left, and
names some others above. 17611 lies outside that range, was in no copy of the list that could be
read when it was chosen, and is below the ports that Linux hands out to outgoing connections (from
32768). Who meets somebody there names another one.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from plimsoll.errors import InvalidValueError
from plimsoll.errors.system_errors import system_reason
from plimsoll.live.openmetrics import CONTENT_TYPE

HOST, PORT = "127.0.0.1", 17611
METRICS_ADDRESS = f"{HOST}:{PORT}"
PATH = "/metrics"
#: A client that says nothing for so long is dropped.
PATIENCE_S = 5.0
#: How long the end of a run may wait for the listener to notice.
POLL_S = 0.05
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):)?(?P<port>[0-9]{1,5})")


class AddressError(InvalidValueError):
    """An address at which nothing can be offered; the message says why and what to write."""


def looks_like_address(text: str) -> bool:
    """Whether a word of the command line can be meant as an address.

    >>> looks_like_address("0.0.0.0:9000"), looks_like_address("plan.toml"), looks_like_address("9000")
    (True, False, True)
    """  # noqa: E501
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str) -> tuple[str, int]:
    """Host and port; the loopback where no host is named.

    Raises:
        AddressError: it is none.

    >>> parse_address(":9000"), parse_address("[::1]:9000")
    (('127.0.0.1', 9000), ('::1', 9000))
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 <= int(found["port"]) <= 65535:
        raise AddressError(
            f'--metrics: "{text}" is no address; write ADDRESS:PORT such as {METRICS_ADDRESS}'
        )
    return (found["host"] or HOST).strip("[]"), int(found["port"])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server_version = "plimsoll"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        server = self.server
        assert isinstance(server, MetricsServer)
        if self.path.partition("?")[0] != PATH:
            self.send_error(404, f"only {PATH} is here")
            return
        body = server.exposition().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Scrapes are no news."""


class MetricsServer(ThreadingHTTPServer):
    """Listens from its construction on; answers while it is `serving`."""

    daemon_threads = True
    block_on_close = False
    #: A fresh run takes over the port of the one before at once.
    allow_reuse_address = True

    def __init__(self, address: str) -> None:
        """Take an address.

        Raises:
            AddressError: it is none, or it is taken.
        """
        host, port = parse_address(address)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._text: Callable[[], str] = lambda: "# EOF\n"
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            reason = system_reason(error)
            raise AddressError(
                f"--metrics: {host}:{port}: {reason}; name another ADDRESS:PORT"
            ) from error
        self.place = f"{host}:{self.server_address[1]}"
        self.is_private = is_loopback(host)

    def exposition(self) -> str:
        """What a scrape is answered now."""
        return self._text()

    def server_bind(self) -> None:
        # The inherited one asks the network for the host's name, which can take long and is of no
        # use here.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = (
            str(self.server_address[0]),
            int(self.server_address[1]),
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of the run."""

    @contextmanager
    def serving(self, text: Callable[[], str]) -> Iterator[None]:
        """Answer with `text` until the end of the block, then close at once."""
        self._text = text
        thread = threading.Thread(
            target=self.serve_forever, args=(POLL_S,), name="plimsoll-metrics", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
