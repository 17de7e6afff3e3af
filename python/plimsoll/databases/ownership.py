"""The marker of an instance: whose a directory is, and which databases are in it.

A marker may come from anybody, with a disk or in an archive. Only one of the form that everything
here relies on is read at all, and what it names elsewhere has to name it in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.document import ABSENT
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.files.folder import FolderError, read_json, write_json
from plimsoll.files.paths import StrPath
from plimsoll.workloads.families import identity_keys

MARKER = "plimsoll-instance.json"
MARKER_KIND = "plimsoll_instance"
#: In a directory of logs that is not that of the databases: says whose logs they are.
LOGS_KIND = "plimsoll_logs"
SCHEMA_VERSION = 1
CLOSED, IN_USE = "closed", "in_use"
#: While databases are copied back or deleted: what is there looks like databases, and is none.
PARTIAL = "partial"


@dataclass(frozen=True)
class Identity:
    """What must agree before databases are used again, as a file says it or as a plan wants it.

    Attributes:
        instance: of the instance as a whole.
        databases: of each of its databases, with its `file_name`.
    """

    instance: Mapping[str, object]
    databases: Sequence[Mapping[str, object]]

    def plain(self) -> dict[str, object]:
        """As it stands in files."""
        return {"databases": self.databases, **self.instance}

    def with_logs_in(self, directory: str) -> Identity:
        """The same with the logs elsewhere."""
        return Identity({**self.instance, "log_directory": directory}, self.databases)


def identity_of(instance: InstanceSpec) -> Identity:
    """What a plan wants of the databases of an instance."""
    same = ("name", "backend", "log_directory", *identity_keys(instance.backend))
    databases = [
        database.replace(existing_records=ABSENT).plain() for database in instance.databases
    ]
    return Identity({key: getattr(instance, key) for key in same}, databases)


def identity_from(content: object) -> Identity | None:
    """What a file says; None where it is not of the form that everything here relies on."""
    databases = content.get("databases") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(databases, list):
        return None
    if not all(
        isinstance(item, dict) and isinstance(item.get("file_name"), str) for item in databases
    ):
        return None
    return Identity({key: value for key, value in content.items() if key != "databases"}, databases)


@dataclass(frozen=True)
class Marker:
    """What the marker of a directory says.

    Attributes:
        directory: where it is.
        state: CLOSED when the last run closed its databases, PARTIAL while they are restored or
            deleted, else IN_USE.
        records: how many each database has ever held; None unless a run has closed them.
        identity: what must agree before the databases are used again.
    """

    directory: Path
    state: str
    records: Sequence[int] | None
    identity: Identity

    @property
    def is_closed(self) -> bool:
        """Whether the databases can be used again at once."""
        return self.state == CLOSED and self.records is not None

    @property
    def file_names(self) -> list[str]:
        """The files of its databases; absolute ones are block devices."""
        return [str(item["file_name"]) for item in self.identity.databases]

    @property
    def devices(self) -> list[str]:
        """The block devices that hold databases."""
        return [name for name in self.file_names if Path(name).is_absolute()]

    def logs(self) -> Path | None:
        """Where the logs are; None where nothing says there that they belong to these databases."""
        logs = self.directory / str(self.identity.instance.get("log_directory"))
        if logs == self.directory:
            return logs
        if logs.is_symlink() or (logs / MARKER).is_symlink() or not (logs / MARKER).is_file():
            return None
        whose = read_json(logs / MARKER)
        ours = isinstance(whose, dict) and whose.get("kind") == LOGS_KIND
        return logs if ours and whose.get("directory") == str(self.directory.resolve()) else None

    def deleted_in_words(self) -> list[str]:
        """What goes when the databases are deleted, and what of theirs stays, a line each."""
        logs = self.logs()
        goes = (
            str(self.directory)
            + (f" and its logs in {logs}" if logs not in (None, self.directory) else "")
            + (f" and the database on {', '.join(self.devices)}" if self.devices else "")
        )
        stays = self._why_logs_stay() if logs is None else None
        return [goes] if stays is None else [goes, f"its logs stay: {stays}"]

    def _why_logs_stay(self) -> str | None:
        """What keeps logs that are not deleted; None where there are none but in the directory."""
        logs = self.directory / str(self.identity.instance.get("log_directory"))
        if logs.resolve() == self.directory.resolve():
            return None
        if logs.is_symlink():
            return (
                f"{logs} is a symbolic link to {logs.resolve()}, and links are not followed when "
                f"deleting"
            )
        if not logs.is_dir() or not any(logs.iterdir()):
            return None
        return f"nothing in {logs} says that they belong to these databases"

    def require_no_link(self) -> None:
        """Refuse a directory that a symbolic link has led to, for what is to be deleted in it.

        Raises:
            FolderError: it is one, or its marker is.
        """
        for path in (self.directory, self.directory / MARKER):
            if path.is_symlink():
                raise FolderError(
                    f"{path} is a symbolic link to {path.resolve()}; links are not followed when "
                    f"deleting, name the directory itself if it is meant; nothing was deleted"
                )

    def require_whole(self) -> None:
        """Refuse databases of which only a part is there.

        Raises:
            FolderError: restoring or deleting them was cut off.
        """
        if self.state == PARTIAL:
            raise FolderError(
                f"{self.directory} holds only a part of its databases, because restoring or "
                f"deleting them was cut off; restore them again, or delete the rest with "
                f"`plimsoll clean {self.directory}`"
            )

    def content(self) -> dict[str, object]:
        """What stands in the file."""
        said = {"state": self.state, "records": self.records, "instance": self.identity.plain()}
        return {"kind": MARKER_KIND, "schema_version": SCHEMA_VERSION, **said}

    def write(self) -> None:
        """Write it into its directory, which is there."""
        write_json(self.directory / MARKER, self.content())


def read(directory: Path) -> Marker | None:
    """The marker of a directory; None where there is none of ours."""
    if not (directory / MARKER).is_file():
        return None
    try:
        content = read_json(directory / MARKER)
    except FolderError:
        return None
    if not isinstance(content, dict) or content.get("kind") != MARKER_KIND:
        return None
    identity, state, records = (
        identity_from(content.get("instance")),
        content.get("state"),
        content.get("records"),
    )
    if identity is None or state not in (CLOSED, IN_USE, PARTIAL):
        return None
    if records is not None and not (
        isinstance(records, list) and len(records) == len(identity.databases)
    ):
        return None
    return Marker(directory, state, records, identity)


def find_databases(path: StrPath) -> list[Marker]:
    """Our markers directly in `path`, or in the directories there."""
    path = Path(path)
    candidates = (
        [path, *sorted(child for child in path.iterdir() if child.is_dir())]
        if path.is_dir()
        else []
    )
    return [marker for directory in candidates if (marker := read(directory)) is not None]


def require_no_links_in(directory: Path) -> None:
    """Refuse a directory of an instance that is not all its own.

    Raises:
        FolderError: symbolic links are in it.
    """
    links = sorted(path.name for path in directory.iterdir() if path.is_symlink())
    if links:
        raise FolderError(
            f"{directory} holds symbolic links ({', '.join(links)}); put the files there, links "
            f"are not followed"
        )


def write_for_logs(logs: Path, directory: Path) -> None:
    """Note in a directory of logs, which is there, whose they are."""
    whose = {
        "kind": LOGS_KIND,
        "schema_version": SCHEMA_VERSION,
        "directory": str(directory.resolve()),
    }
    write_json(logs / MARKER, whose)


def differences(there: Identity, wanted: Identity) -> list[str]:
    """What an instance on disk and in the plan do not have in common, each with both values."""
    different = [
        f"{key} ({there.instance.get(key)} there, {value} in the plan)"
        for key, value in wanted.instance.items()
        if there.instance.get(key) != value
    ]
    if len(there.databases) != len(wanted.databases):
        counts = f"({len(there.databases)} there, {len(wanted.databases)} in the plan)"
        different.append(f"the number of databases {counts}")
    for old, new in zip(there.databases, wanted.databases, strict=False):
        keys = [key for key in new if old.get(key) != new[key]]
        different += [
            f"{key} of {new['file_name']} ({old.get(key)} there, {new[key]} in the plan)"
            for key in keys
        ]
    return different


def way_out(there: Identity, wanted: Identity) -> str:
    """What lets an instance on disk be used as it is, where a plan wants another."""
    verified = there.instance.get("verify")
    if wanted.instance.get("verify") == verified:
        return "change the plan"
    as_there = "write verify = true" if verified else "remove verify"
    return f"files are verified from when they are made: {as_there} to use these"
