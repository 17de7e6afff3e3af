"""Further addresses of a server: a port that hands every connection on, until it is shut, and one
that answers nobody.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

HOST = "127.0.0.1"


class Forwarder:
    """Hands connections on to a port of this machine.

    Args:
        to: that port.
        at: the port to listen on; any free one if 0.
    """

    def __init__(self, to: int, at: int = 0) -> None:
        self._to = to
        #: Connections that were handed on.
        self.taken = 0
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_shut = False
        self._listener = socket.create_server((HOST, at))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((HOST, self._to))
            except OSError:
                near.close()
                continue
            with self._lock:
                self.taken += 1
                self._open += [near, far]
                shut = self._is_shut
            if shut:
                self.shut()
                return
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()

    def shut(self) -> None:
        """Take no one any more, and break off with whoever is there."""
        with self._lock:
            self._is_shut = True
            sockets = [self._listener, *self._open]
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def silent_port() -> Iterator[int]:
    """A port whose connections never come about: whoever tries is not answered at all."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        # Once its queue is full, the kernel drops what comes.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
