"""Whether frames of a size reach a storage portal whole: echo requests that may not be fragmented.

A switch between that knows no jumbo frames drops them without a word, so that only an answer proves
the way. Each request is as long as the packet that a frame of the size carries: 20 bytes of IP and
8 of ICMP (RFC 791, RFC 792); the flag against fragments is IP_MTU_DISCOVER (ip(7)).

Limits: IPv4. It takes root, or a group in net.ipv4.ping_group_range; a portal that answers no echo
proves nothing, and one that answers short ones only is told apart from that.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from dataclasses import dataclass

IP_HEADER_BYTES, ICMP_HEADER_BYTES = 20, 8
#: What every network carries (RFC 791 demands 576 of hosts).
SMALLEST_BYTES = 576
#: The usual sizes of a packet on Ethernet.
USUAL_BYTES = (1500, 9000)
#: How long an answer is waited for, and how often it is asked.
PATIENCE_S, TRIES = 1.0, 3
_IP_MTU_DISCOVER, _PROBE = 10, 3


@dataclass(frozen=True)
class PathMtu:
    """What is known of the way to a portal.

    Attributes:
        portal: its address.
        asked_bytes: the size of packet that was asked for.
        largest_bytes: the largest that came through of those tried; None where nothing did.
        reason: why it is not known, or what stopped larger ones; None where all came through.
    """

    portal: str
    asked_bytes: int
    largest_bytes: int | None
    reason: str | None

    @property
    def is_whole(self) -> bool:
        """Whether packets of that size come through."""
        return self.largest_bytes is not None and self.largest_bytes >= self.asked_bytes

    def in_words(self) -> str:
        """One sentence.

        >>> PathMtu("10.0.0.5", 9000, 1500, "no answer").in_words()
        'packets of 9000 bytes do not reach 10.0.0.5: no answer; 1500 bytes do'
        """
        if self.is_whole:
            return f"packets of {self.asked_bytes} bytes reach {self.portal} in one piece"
        if self.largest_bytes is None:
            return f"nothing is known of the way to {self.portal}: {self.reason}"
        return (
            f"packets of {self.asked_bytes} bytes do not reach {self.portal}: {self.reason}; "
            f"{self.largest_bytes} bytes do"
        )


def path_mtu(portal: str, packet_bytes: int, patience_s: float = PATIENCE_S) -> PathMtu:
    """Ask a portal for an echo of packets of a size, and of smaller ones where none comes.

    Args:
        portal: a name or an IPv4 address, with or without a port.
        packet_bytes: bytes of the packet, as an MTU counts them.
        patience_s: how long an answer is waited for, each of three times.
    """
    address = portal.partition(":")[0]
    smaller = [size for size in (*USUAL_BYTES, SMALLEST_BYTES) if size < packet_bytes]
    sizes = [packet_bytes, *sorted(smaller, reverse=True)]
    first_reason = None
    for size in sizes:
        reason = _refused(address, size, patience_s)
        if reason is None:
            return PathMtu(portal, packet_bytes, size, first_reason)
        first_reason = first_reason or reason
    return PathMtu(portal, packet_bytes, None, first_reason)


def _refused(address: str, size: int, patience_s: float) -> str | None:
    """Why a packet of this size got no echo; None where it did."""
    asking = _echo_socket()
    if asking is None:
        return "this user may send no echo requests (net.ipv4.ping_group_range, or root)"
    with asking:
        asking.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PROBE)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * size)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
        content = os.urandom(size - IP_HEADER_BYTES - ICMP_HEADER_BYTES)
        for number in range(TRIES):
            request = _request(number, content)
            try:
                asking.sendto(request, (address, 0))
            except socket.gaierror:
                return "it is no known name or address"
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    return "the interface of this host takes smaller packets only"
                return (error.strerror or str(error)).lower()
            if _answered(asking, number, content, patience_s):
                return None
    return f"no answer within {patience_s:g} s, {TRIES} times"


def _echo_socket() -> socket.socket | None:
    """A socket for echo requests: the kind for everybody, or the raw one, which takes root."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP)
        except OSError:
            continue
    return None


def _request(number: int, content: bytes) -> bytes:
    """An echo request with its checksum; the kernel puts its own identifier in where it wants."""
    identifier = os.getpid() & 0xFFFF
    blank = struct.pack("!BBHHH", 8, 0, 0, identifier, number) + content
    padded = blank + b"\0" * (len(blank) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, identifier, number) + content


def _answered(asking: socket.socket, number: int, content: bytes, patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while (left := until - time.monotonic()) > 0:
        if not select.select([asking], [], [], left)[0]:
            return False
        try:
            answer = asking.recv(65_536)
        except OSError:
            return False
        if asking.type == socket.SOCK_RAW:
            # A raw socket is given the header of the packet, too.
            answer = answer[4 * (answer[0] & 0x0F) :]
        kind, _, _, _, sequence = struct.unpack_from("!BBHHH", answer)
        if (kind, sequence) == (0, number) and answer[ICMP_HEADER_BYTES:] == content:
            return True
    return False
