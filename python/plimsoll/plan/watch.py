"""What a plan says of servers whose processes are watched while it runs.

watch = [{ name = "postgres", port = 5432 }]
"""

from __future__ import annotations

from plimsoll.documents.document import ABSENT
from plimsoll.documents.server_usage import WatchedServer
from plimsoll.files.paths import whole_path
from plimsoll.inputs.schema import Collector, Field, Given, Number, Text

#: All of them are looked at in each sample.
SERVERS_MAX = 32

WATCH_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the server"),
    "port": Field(
        Number(1, 65535, whole=True), meaning="the TCP port of this machine on which it listens"
    ),
    "pid_file": Field(Text(), meaning="the file that names its first process"),
}


def completed(plan: Given, collector: Collector) -> list[WatchedServer]:
    """The servers of a checked plan; every mistake goes to the collector."""
    found = []
    for index, given in enumerate(plan["watch"]):
        if (given["port"] is None) == (given["pid_file"] is None):
            collector.add(
                ("watch", index, "port"),
                "is missing" if given["port"] is None else "cannot be combined with pid_file",
                "write port, or pid_file",
            )
        if given["name"] is None:
            continue
        path = given["pid_file"]
        found.append(
            WatchedServer(
                name=given["name"],
                port=ABSENT if given["port"] is None else given["port"],
                pid_file=ABSENT if path is None else whole_path(path),
            )
        )
    return found
