"""Where a mail server listens.

`imap://HOST:PORT`, `imaps://...`, `lmtp://...`, `smtp://...`, `smtps://...`.

An address holds neither account nor password: accounts follow a pattern, passwords stand in a file.
`imap+starttls://`, `lmtp+starttls://` and `smtp+starttls://` begin in plain text and go over to
TLS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Tls = Literal["none", "starttls", "tls"]

#: Protocol, TLS and usual port of each scheme. RFC 8314, RFC 2033, RFC 6409.
_SCHEMES: dict[str, tuple[str, Tls, int]] = {
    "imap": ("imap", "none", 143),
    "imaps": ("imap", "tls", 993),
    "imap+starttls": ("imap", "starttls", 143),
    "lmtp": ("lmtp", "none", 24),
    "lmtp+starttls": ("lmtp", "starttls", 24),
    "smtp": ("smtp", "none", 587),
    "smtps": ("smtp", "tls", 465),
    "smtp+starttls": ("smtp", "starttls", 587),
}
READ, DELIVER = (
    ("imap", "imaps", "imap+starttls"),
    tuple(name for name in _SCHEMES if not name.startswith("imap")),
)


@dataclass(frozen=True)
class Endpoint:
    """One address of a server.

    Attributes:
        protocol: imap, lmtp or smtp.
        tls: none, by STARTTLS, or from the first byte.
        place: `HOST:PORT`.
        host: the name or address alone.
    """

    protocol: str
    tls: Tls
    place: str
    host: str


@dataclass(frozen=True)
class NoEndpoint:
    """A text that is no address: what is wrong with it, and what to write."""

    message: str
    hint: str


def endpoint(text: str, schemes: tuple[str, ...]) -> Endpoint | NoEndpoint:
    """Read an address.

    Args:
        text: as a person wrote it.
        schemes: which are allowed: `READ` or `DELIVER`.

    Returns:
        The address, or why it is none.

    >>> endpoint("imaps://[::1]", READ)
    Endpoint(protocol='imap', tls='tls', place='[::1]:993', host='::1')
    """
    example = f"write {' or '.join(f'{name}://HOST:PORT' for name in schemes[:2])}"
    scheme, separator, _ = text.partition("://")
    if not separator:
        return NoEndpoint(f'"{text}" is no address of a mail server', example)
    if scheme == "jmap":
        return NoEndpoint('"jmap" is not supported in this version', example)
    if scheme not in schemes:
        return NoEndpoint(f'"{scheme}" is not a protocol for this', example)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return NoEndpoint(f'"{text.rpartition("@")[2]}" is no address of a mail server', example)
    if parts.username is not None or parts.password is not None:
        hint = "take them out: accounts follow `accounts`, passwords stand in `password_file`"
        return NoEndpoint("holds an account or a password", hint)
    if not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        return NoEndpoint(f'"{text}" is no address of a mail server', example)
    if port == 0:
        return NoEndpoint("has port 0", "write the port that the server listens on")
    protocol, tls, usual = _SCHEMES[scheme]
    shown = f"[{host}]" if ":" in host else host
    return Endpoint(protocol, tls, f"{shown}:{port or usual}", host)
