"""Where the targets of a plan lie, and what a block device can hold."""

from __future__ import annotations

from pathlib import Path

from plimsoll.files.folder import Content
from plimsoll.host.block_devices import is_device
from plimsoll.inputs.schema import Collector, Given
from plimsoll.workloads.mail import fields as mail
from plimsoll.workloads.store import fields as store

#: Where modelled storage seems to lie; nothing is ever written there.
MODELLED_ROOT = Path("/modelled")


def path_of(target: Given) -> Path:
    """The directory or device of a target; of a server, where its storage is mounted here."""
    if target.get("modelled"):
        return MODELLED_ROOT / str(target.get("name"))
    if target.get("is_server"):
        return Path(target.get("data_path") or mail.NO_STORAGE).expanduser().absolute()
    return Path(target.get("path") or ".").expanduser().absolute()


def tested_in_words(run: Content) -> list[str]:
    """What each target of a run is: its path, or the addresses of servers whose storage is unknown.

    Args:
        run: what was carried out, as in the file of a plan.
    """
    found: list[object] = []
    for target in run["targets"]:
        path = target.get("path") or target.get("name")
        if path == str(mail.NO_STORAGE):
            on_it = [item for item in run["instances"] if item["target"] == target["name"]]
            found += [address for item in on_it for address in _addresses(item)]
        else:
            found.append(path)
    return list(dict.fromkeys(map(str, found)))


def _addresses(instance: Content) -> list[str]:
    """Where a server is that an instance speaks to; none of what lies in directories of ours."""
    if instance["backend"] in mail.SERVER_BACKENDS:
        return [f"imap://{endpoint['imap']}" for endpoint in instance["databases"]]
    server = instance.get("server")
    if not server:
        return []
    return [f"{instance['backend']}://{server['host']}:{server['port']}/{server['database']}"]


#: Backends of which nothing lies in a directory of ours.
SERVERS = (*mail.SERVER_BACKENDS, *store.SERVER_BACKENDS)


def note_servers(plan: Given, collector: Collector) -> None:
    """Targets that hold nothing but servers have no directory of ours."""
    first = next((target["name"] for target in plan["target"] or []), None)
    for number, target in enumerate(plan["target"] or []):
        on_it = [
            item for item in plan["instance"] or [] if (item["target"] or first) == target["name"]
        ]
        servers = [item for item in on_it if item["backend"] in SERVERS]
        target["is_server"] = bool(servers) and len(servers) == len(on_it)
        is_mail = any(item["backend"] in mail.SERVER_BACKENDS for item in servers)
        what = "a mail server" if is_mail else "the server of a store"
        if target["is_server"]:
            for key in ("path", "log_path", "modelled"):
                if target[key] is not None:
                    collector.add(
                        ("target", number, key),
                        f"means nothing for {what}",
                        "remove it, or write data_path",
                    )
        elif servers:
            hint = f'add [[target]] name = "server", and target = "server" in {servers[0]["name"]}'
            collector.add(("target", number), f"holds {what} and databases", hint)
        elif target["data_path"] is not None:
            message, hint = (
                "means something only for a mail server or a store on a server",
                "write path",
            )
            if not on_it:
                hint = f'write target = "{target["name"]}" in the instance of the server'
            collector.add(("target", number, "data_path"), message, hint)


#: What is said of a backend that makes several files, where the target has room for one.
NEEDS_DIRECTORY = (
    "needs a directory, but the target is a block device",
    "name a directory of a file system on it",
)


def check_devices(plan: Given, collector: Collector) -> None:
    """A whole block device holds one database of the engine and nothing else."""
    first_target = next((target["name"] for target in plan["target"] or []), None)
    for number, target in enumerate(plan["target"] or []):
        if target["modelled"] or not is_device(path_of(target)):
            continue
        if target["log_path"] is None:
            hint = "name a directory on a file system for what is known of it, and for a log"
            collector.add(
                ("target", number, "log_path"), "is missing, but `path` is a block device", hint
            )
        on_it = [
            (index, instance)
            for index, instance in enumerate(plan["instance"] or [])
            if (instance["target"] or first_target) == target["name"]
        ]
        for index, _ in on_it[1:]:
            collector.add(
                ("instance", index, "target"),
                f'is "{target["name"]}", a device that is taken',
                "add a target",
            )
        for index, instance in on_it:
            for key in ("databases", "files"):
                if (instance[key] or 1) > 1:
                    collector.add(
                        ("instance", index, key),
                        "is above 1, but the target is a block device",
                        "write 1",
                    )
            if instance["backend"] == "raw_files":
                collector.add(("instance", index, "backend"), *NEEDS_DIRECTORY)
