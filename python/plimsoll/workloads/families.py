"""The families that this version knows.

A further one is a room or a module here, and a line in each of these.
"""

from __future__ import annotations

from plimsoll.inputs.schema import Collector, Given
from plimsoll.workloads import records
from plimsoll.workloads.files import fields as files
from plimsoll.workloads.homes import fields as homes
from plimsoll.workloads.mail import fields as mail
from plimsoll.workloads.store import fields as store

_ALL = (records, files, homes, store, mail)
BACKENDS = tuple(backend for family in _ALL for backend in family.BACKENDS)
OPERATIONS = tuple(operation for family in _ALL for operation in family.OPERATIONS)
_WORKLOAD_KEYS = {
    "records": records.WORKLOAD_FIELDS,
    "files": files.WORKLOAD_FIELDS,
    "home_folders": homes.WORKLOAD_FIELDS,
    "store": store.WORKLOAD_FIELDS,
    "mail": mail.WORKLOAD_FIELDS,
}
#: What `window` of a load may be about, and how long a window is where nothing is said.
WINDOWS = {
    "records": records.WINDOWS,
    "files": files.WINDOWS,
    "home_folders": homes.WINDOWS,
    "store": store.WINDOWS,
    "mail": mail.WINDOWS,
}
WINDOW_S = {
    "records": records.WINDOW_S,
    "files": files.WINDOW_S,
    "home_folders": homes.WINDOW_S,
    "store": store.WINDOW_S,
    "mail": mail.WINDOW_S,
}


def family_of(backend: str | None) -> str:
    """The name of the family that opens instances of a backend.

    >>> family_of("files"), family_of("store"), family_of("sqlite"), family_of("imap"), family_of("mail_store"), family_of("engine"), family_of(None)
    ('files', 'store', 'store', 'mail', 'mail', 'records', 'records')
    """  # noqa: E501
    if backend in mail.BACKENDS:
        return "mail"
    if backend in homes.BACKENDS:
        return "home_folders"
    if backend in store.BACKENDS:
        return "store"
    return "files" if backend in files.BACKENDS else "records"


def identity_keys(backend: str) -> tuple[str, ...]:
    """The keys of an instance that must agree before its databases are used again, besides those
    that all have.

    >>> identity_keys("files"), identity_keys("engine")
    (('verify', 'data_pattern'), ('page_bytes', 'log_framing'))
    """
    of_family = {"files": ("verify", "data_pattern"), "home_folders": ()}
    return of_family.get(family_of(backend), ("page_bytes", "log_framing"))


def foreign_keys(
    given: Given,
    family: str,
    own: tuple[str, ...],
    path: tuple[str | int, ...],
    collector: Collector,
) -> None:
    """Report stated keys that mean nothing in a family."""
    for key, value in given.items():
        if value is not None and key not in own:
            collector.add((*path, key), f"means nothing for {family}", "remove it")


def check_workload_keys(given: Given, family: str, index: int, collector: Collector) -> None:
    """Report stated keys of a workload that belong to another family."""
    own = ("name", "instances", "load", "start_after_s", "window", *_WORKLOAD_KEYS[family])
    foreign_keys(given, family, own, ("workload", index), collector)
