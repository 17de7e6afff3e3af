"""The names that are taken out of a run folder, and what stands for them.

The same name always by the same pseudonym.

Known names come from the places where a run writes them: the host, serial numbers and other
identities of disks, users out of home directories, hosts of a plan, file systems of a network.
Paths, IP and MAC addresses are found by their form wherever they stand. A path keeps its shape:
each of its parts has a pseudonym of its own, so that what lay in one directory still does; names
that Plimsoll gave, and those of the kernel for disks, stay.

Limit: a serial number that somebody wrote into a note, under no such label and nowhere else, is a
word like any other.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

HOST, USER, SERIAL, DIRECTORY, IP, MAC = "host", "user", "serial", "dir", "ip", "mac"
#: Keys under which somebody's identity stands, by what it is.
_KEYS = {
    "host_name": HOST,
    "machine_name": HOST,
    "machine_id": HOST,
    "boot_id": HOST,
    "host": HOST,
    "serial": SERIAL,
    "wwn": SERIAL,
    "wwid": SERIAL,
    "uuid": SERIAL,
    "eui": SERIAL,
    "nguid": SERIAL,
    "by_id": SERIAL,
    "consent_token": SERIAL,
    "destroy_serials": SERIAL,
    "label": SERIAL,
    "file_system_uuid": SERIAL,
    "serial_number": SERIAL,
    "user": USER,
    "user_name": USER,
    "login": USER,
    "mac": MAC,
    "mac_address": MAC,
    "hardware_address": MAC,
}
#: Words that stand under those keys and name nobody.
_NOBODY = {"", "local", "localhost", "unknown", "none", "root", "example"}
_HOME = re.compile(r"/(?:home|Users|export/home)/([^/\s\"']+)")
_MAC = re.compile(
    r"(?<![0-9A-Fa-f:-])(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:-])"
)
_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%\w+)?(?![\w:])")
_NETWORK_SOURCE = re.compile(r"^(?://([^/\s]+)/|([A-Za-z0-9][A-Za-z0-9._-]*):/)")
#: An absolute path: not a quotient such as reads/s, not the end tag of an element.
_PATH = re.compile(r"(?<![\w.<)\]>/])/(?:[\w.@+~#%=:-]+/)*[\w.@+~#%=:-]*[\w@+~#%=-]/?")
_WINDOWS_PATH = re.compile(r"(?<![\w])[A-Za-z]:\\(?:[^\\\s\"']+\\)*[^\\\s\"',;]*")
#: Parts of a path that say nothing about anybody.
_PLAIN_PARTS = re.compile(
    r"dev|disk|by-id|by-uuid|by-path|mapper|proc|sys|mnt|srv|var|tmp|opt|usr|etc|home|Users|data|run|runs|media|"
    r"(?:sd|vd|xvd|hd)[a-z]+\d*|nvme\d+n\d+(?:p\d+)?|dm-\d+|md\d+|loop\d+|"
    r"(?:database|device)\d+\.(?:edb|jfm|stm)|E\d\d[0-9A-Fa-f]*\.(?:log|chk)|plimsoll-instance\.json|run-\d+|seed-\d+\.json"
)


class Names:
    """The names found so far and their pseudonyms.

    Attributes:
        kept: words that are never replaced, such as the instances of a plan: Plimsoll's own names
            hang on them.
    """

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self._known: dict[str, tuple[str, str]] = {}
        self._counts: dict[str, int] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, tree: Any) -> None:
        """Take every name out of one JSON file: by its key, and users by their home directories."""
        for key, value in _leaves(tree):
            kind = _KEYS.get(key)
            if kind and value.lower() not in _NOBODY:
                self.pseudonym(kind, value)
                if kind == HOST and "." in value:
                    self.pseudonym(HOST, value.partition(".")[0])
            for match in _HOME.finditer(value):
                if match.group(1) not in _NOBODY:
                    self.pseudonym(USER, match.group(1))
            source = _NETWORK_SOURCE.match(value) if key == "source" else None
            if source:
                self.pseudonym(HOST, source.group(1) or source.group(2))

    def pseudonym(self, kind: str, name: str) -> str:
        """What stands for a name; letters' cases do not matter for hosts and addresses."""
        key = name.lower() if kind in (HOST, MAC, IP) else name
        if key not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[key] = (kind, f"{kind}-{self._counts[kind]}")
            self._pattern = None
        return self._known[key][1]

    def counts(self) -> dict[str, int]:
        """How many names of each kind were replaced."""
        return dict(sorted(self._counts.items()))

    def redacted(self, text: str) -> str:
        """A text without any of the names."""
        if not text or self._is_kept(text):
            return text
        text = _MAC.sub(lambda match: self.pseudonym(MAC, match.group().replace("-", ":")), text)
        text = _IPV4.sub(self._address, text)
        text = _IPV6.sub(self._address, text)
        text = self._without_known(text)
        text = _PATH.sub(lambda match: self._path(match.group(), "/"), text)
        return _WINDOWS_PATH.sub(lambda match: self._path(match.group(), "\\"), text)

    def _is_kept(self, word: str) -> bool:
        """Whether a word stays: one of the plan's, unless it is also somebody's name."""
        known = self._known.get(word) or self._known.get(word.lower())
        return word in self.kept and (known is None or known[0] == DIRECTORY)

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match.group().partition("%")[0])
        except ValueError:
            return match.group()
        if address.is_loopback or address.is_unspecified:
            return match.group()
        return self.pseudonym(IP, str(address))

    def _without_known(self, text: str) -> str:
        """Known names as whole words; hosts also where their case differs."""
        if self._pattern is None:
            names = sorted(
                (name for name, (kind, _) in self._known.items() if kind != DIRECTORY),
                key=len,
                reverse=True,
            )
            joined = "|".join(re.escape(name) for name in names)
            self._pattern = (
                re.compile(rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])", re.IGNORECASE)
                if names
                else None
            )
        if self._pattern is None:
            return text
        return self._pattern.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        found = match.group()
        for key in (found, found.lower()):
            if key in self._known:
                return self._known[key][1]
        return next(
            (
                pseudonym
                for name, (_, pseudonym) in self._known.items()
                if name.lower() == found.lower()
            ),
            found,
        )

    def _path(self, path: str, separator: str) -> str:
        return separator.join(self._part(part) for part in path.split(separator))

    def _part(self, part: str) -> str:
        is_drive = len(part) == 2 and part[1] == ":"
        if not part or is_drive or self._is_kept(part) or _PLAIN_PARTS.fullmatch(part):
            return part
        if re.fullmatch(r"(?:host|user|serial|dir|ip|mac)-\d+", part):
            return part
        return self.pseudonym(DIRECTORY, part)


def _leaves(tree: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON file with the key it stands under."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _leaves(value, name)
    elif isinstance(tree, list):
        for value in tree:
            yield from _leaves(value, key)
    elif isinstance(tree, str):
        yield key, tree
