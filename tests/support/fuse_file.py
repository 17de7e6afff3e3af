"""One file in a FUSE file system, served by this process.

Enough of the kernel's protocol for a loop device to be put on it.

The protocol is that of linux/fuse.h, version 7.31, spoken over /dev/fuse without any library.
Requests are carried out one after the other, so everything between two of them is a consistent
instant. Needs root, for mounting."""

from __future__ import annotations

import ctypes
import errno
import heapq
import os
import struct
import time
from pathlib import Path
from typing import Protocol

FILE_NAME = "disk"
ROOT_NODE, FILE_NODE = 1, 2
WRITE_BYTES_MAX = 1 << 20
REQUEST_BYTES_MAX = WRITE_BYTES_MAX + 4096
HEADER = struct.Struct("<IIQQIIII")
ANSWER = struct.Struct("<IiQ")
TRANSFER = struct.Struct("<QQIIQII")
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS = 1, 2, 3, 4, 14, 15, 16, 17
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = (
    18,
    20,
    25,
    26,
    27,
    28,
    29,
    36,
    38,
    42,
)
#: Many reads at once, large writes, many pages, asynchronous direct I/O.
INIT_FLAGS = 1 << 0 | 1 << 5 | 1 << 22 | 1 << 15
#: No page cache in between, and several writes at once.
OPEN_FLAGS = 1 << 0 | 1 << 6
MS_NOSUID, MS_NODEV = 2, 4


class Content(Protocol):
    """What the file holds, and what happens to it."""

    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Bytes as they are now; OSError is handed to the kernel."""

    def write(self, offset: int, data: bytes) -> None:
        """A write that is acknowledged when this returns."""

    def flush(self) -> None:
        """What was written before is to be made durable."""

    def hold_s(self) -> float:
        """By how many seconds the answer to the last request is held back.

        Others go on meanwhile.
        """


class FuseFile:
    """A mounted file system with one file."""

    def __init__(self, point: Path, content: Content) -> None:
        self._content = content
        self._buffer = bytearray(REQUEST_BYTES_MAX)
        self._held: list[tuple[float, int, int, bytes]] = []
        self.descriptor = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.descriptor},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        mounted = libc.mount(
            b"volatile", os.fsencode(point), b"fuse", MS_NOSUID | MS_NODEV, options.encode()
        )
        if mounted != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(point))

    def serve_one(self) -> bool:
        """Carry out the next request; false when the file system was unmounted."""
        try:
            length = os.readv(self.descriptor, [self._buffer])
        except OSError as error:
            return error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN)
        _, code, unique, node, *_ = HEADER.unpack_from(self._buffer)
        if code in (FORGET, BATCH_FORGET, INTERRUPT):
            return True
        body = memoryview(self._buffer)[HEADER.size : length]
        try:
            answer, failure = self._answer(code, node, body), 0
        except OSError as error:
            answer, failure = b"", -(error.errno or errno.EIO)
        hold_s = self._content.hold_s() if code in (READ, WRITE, FSYNC) else 0.0
        if hold_s > 0:
            heapq.heappush(self._held, (time.monotonic() + hold_s, unique, failure, answer))
        else:
            self._send(unique, failure, answer)
        return code != DESTROY

    def send_due(self) -> float | None:
        """Send the answers whose time has come; seconds until the next of them, if there is one."""
        while self._held and self._held[0][0] <= time.monotonic():
            self._send(*heapq.heappop(self._held)[1:])
        return max(0.0, self._held[0][0] - time.monotonic()) if self._held else None

    def send_all(self) -> None:
        """Send what is held back at once: no request may outlive the disk's end."""
        while self._held:
            self._send(*heapq.heappop(self._held)[1:])

    def _send(self, unique: int, failure: int, answer: bytes) -> None:
        try:
            os.writev(
                self.descriptor, [ANSWER.pack(ANSWER.size + len(answer), failure, unique), answer]
            )
        except OSError as error:
            # Who asked has gone.
            if error.errno != errno.ENOENT:
                raise

    def _answer(self, code: int, node: int, body: memoryview) -> bytes:
        if code == READ:
            _, offset, length, *_ = TRANSFER.unpack_from(body)
            return self._content.read(offset, length)
        if code == WRITE:
            _, offset, length, *_ = TRANSFER.unpack_from(body)
            self._content.write(offset, bytes(body[TRANSFER.size : TRANSFER.size + length]))
            return struct.pack("<II", length, 0)
        if code == FSYNC:
            self._content.flush()
            return b""
        if code in (FLUSH, RELEASE, RELEASEDIR, READDIR, DESTROY):
            return b""
        if code == INIT:
            return _init(body)
        if code == LOOKUP:
            return self._lookup(bytes(body).rstrip(b"\0"))
        if code in (GETATTR, SETATTR):
            return struct.pack("<QII", 3600, 0, 0) + self._attributes(node)
        if code in (OPEN, OPENDIR):
            return struct.pack("<QIi", 0, OPEN_FLAGS if code == OPEN else 0, 0)
        if code == STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 2, 0, 4096, 255, 4096, 0)
        raise OSError(errno.ENOSYS, "not spoken here")

    def _lookup(self, name: bytes) -> bytes:
        if name != FILE_NAME.encode():
            raise OSError(errno.ENOENT, "no such file")
        return struct.pack("<QQQQII", FILE_NODE, 0, 3600, 3600, 0, 0) + self._attributes(FILE_NODE)

    def _attributes(self, node: int) -> bytes:
        size = self._content.size if node == FILE_NODE else 0
        mode = 0o100600 if node == FILE_NODE else 0o040700
        return struct.pack(
            "<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
        )


def _init(body: memoryview) -> bytes:
    major, _ = struct.unpack_from("<II", body)
    if major != 7:
        raise OSError(errno.EPROTO, "another protocol")
    head = struct.pack(
        "<4I2H2I2H",
        7,
        31,
        1 << 20,
        INIT_FLAGS,
        64,
        48,
        WRITE_BYTES_MAX,
        1,
        WRITE_BYTES_MAX // 4096,
        0,
    )
    return head + bytes(64 - len(head))
