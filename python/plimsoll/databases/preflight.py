"""The places a run works in: are they fit for it, and whose are they?

Each instance has a directory of its own with an owner marker. A directory without marker that is
not empty belongs to somebody else and is refused. Databases are reused when marker and plan agree:
at once when the last run closed them, after recovery when it did not; one whose preparation was
interrupted is made anew. They are deleted only by `plimsoll clean` (and by the demo, which made
them). What a whole block device must fulfil besides is in `plimsoll.host.block_devices`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.databases import consent as consents
from plimsoll.databases import handover, holds, idle, kept_backups, ownership, saved_sets
from plimsoll.databases.consent import Consent
from plimsoll.databases.deleting import delete_databases
from plimsoll.databases.other_runs import OtherRuns
from plimsoll.databases.ownership import (
    CLOSED,
    PARTIAL,
    Marker,
    differences,
    identity_of,
)
from plimsoll.documents.plan import Source
from plimsoll.documents.run_spec import (
    EngineInstance,
    FileSpec,
    HomesInstance,
    InstanceSpec,
    MailInstance,
    RunSpec,
    StoreClientInstance,
)
from plimsoll.errors import RefusedError
from plimsoll.files import folder
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath
from plimsoll.host import block_devices, open_file_limit
from plimsoll.host.probe import Storage, StorageError, describe, nearest_existing
from plimsoll.workloads.mail.moves import forecast_moves

#: Room for growth while measuring: the published test reserved a quarter of each database. A fast
#: disk can outgrow it.
GROWTH_SHARE = 0.25
#: Log generations, flush map and checkpoint.
LOG_RESERVE_BYTES = 256 * 1024 * 1024
#: One log generation.
LOG_BYTES = 1024 * 1024
#: Backends whose files were written to their last byte before the load.
WRITTEN_THROUGH = ("files", "raw_files")
#: Directories of the device file system lie in memory and go with the next start.
DEVICE_FILE_SYSTEM = "devtmpfs"


class PreflightError(RefusedError):
    """A run that cannot start.

    Attributes:
        problems: every reason, one sentence each.
        forecast: what the run would take, where nothing but space is missing.
    """

    def __init__(self, problems: list[str], forecast: Preflight | None = None) -> None:
        super().__init__(problems)
        self.forecast = forecast


@dataclass
class Preflight:
    """What a run will find and write, known before anything is written.

    Attributes:
        run: the run spec: the plan's `run` with what is there already, lasting names of devices,
            and consent to overwrite them.
        asked: the plan's `run` as it was when looked at.
        bytes_to_prepare: databases that do not exist yet.
        bytes_needed: the same with room for growth and logs, by mount point.
        bytes_free: what may still be written there, by mount point.
        reused: instances whose databases exist already.
        recovered: those of them that their last run did not close.
        prepared_anew: databases whose preparation was interrupted.
        deleted: directories of ours that are deleted first, because new or restored databases were
            asked for.
        held: who needs log that is deleted with them, by directory of logs.
        restored: instances that are copied from a saved set.
        bytes_to_restore: their files.
        warnings: what a reader of the result must know.
        consent: what the user agreed to.
        markers: what stood in each directory's marker; nothing where there was none.
        commands_allowed: whether the user agreed to the commands that the plan stages.
    """

    run: RunSpec
    asked: RunSpec
    bytes_to_prepare: int = 0
    bytes_needed: dict[str, int] = field(default_factory=dict)
    bytes_free: dict[str, int] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)
    prepared_anew: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    held: dict[str, list[str]] = field(default_factory=dict)
    restored: list[str] = field(default_factory=list)
    bytes_to_restore: int = 0
    warnings: list[str] = field(default_factory=list)
    consent: Consent = field(default_factory=Consent)
    #: What was found below each directory, looked at once.
    storages: dict[Path, Storage] = field(default_factory=dict, repr=False)
    markers: dict[str, Marker | None] = field(default_factory=dict, repr=False)
    commands_allowed: bool = False

    def storage_of(self, path: StrPath) -> Storage:
        """What is known about the storage under a path.

        A plan names the same place for every one of its databases.
        """
        place = nearest_existing(Path(path))
        if place not in self.storages:
            self.storages[place] = describe(place)
        return self.storages[place]


def inspect(
    run: RunSpec, source: Source | None = None, consent: Consent | None = None
) -> Preflight:
    """Check the places of a run and find out which databases exist already.

    Writes nothing to disk, and nothing into the plan.

    Args:
        run: the `run` part of a plan. The answer has one of its own, with `existing_records` and
            `unfinished` filled in where a database can be reused, and block devices called by their
            lasting names.
        source: where databases come from; those that are there or new ones if left out.
        consent: what the user has agreed to; nothing if left out.

    Raises:
        PreflightError: with everything that stands in the way.
    """
    consent = consent or Consent()
    asked = run
    run = run.replace(destroy_serials=consent.destroy_serials)
    if run.modelled:
        return Preflight(run, asked=asked, consent=consent)  # nothing of it is real
    if problems := open_file_limit.too_few(run):
        raise PreflightError(problems)  # so many files are not looked at one by one
    for target in run.targets:
        if block_devices.is_device(Path(target.path)):
            run, obstacles = block_devices.settle(target, run)
            problems += obstacles
    problems += consents.refusals(_places(run), consent)
    forecast = Preflight(run, asked=asked, consent=consent)
    instances: list[InstanceSpec] = []
    for instance in run.instances:
        if not instance.is_ours:
            problems += _look_at_foreign(instance, forecast)
            instances.append(instance)
            continue
        problems += _unfit(Path(instance.directory), forecast)
        forecast.markers[instance.directory] = _marker(instance)
        if instance.log_directory != instance.directory:
            problems += _unfit(Path(instance.log_directory), forecast)
        try:
            instances.append(_look_at(instance, forecast, source or Source(kind="any", from_=None)))
        except FolderError as error:
            problems.append(str(error))
        except PermissionError as error:
            problems.append(
                f"{error.filename} may not be read by this user; change its owner or name another "
                f"path"
            )
    if forecast.bytes_to_prepare and not handover.opens(run):
        problems.append(
            "this plan opens no databases and makes none, but some of those it names are missing; "
            "prepare them first"
        )
    if not handover.opens(run):
        forecast.warnings += [
            f"instance {name} was not closed by its last run: pages that its log would repair "
            f"count as damaged"
            for name in forecast.recovered
        ]
        forecast.recovered = []
    _count_logs(run, forecast)
    problems += kept_backups.obstacles(run)
    _count_backup(run, forecast)
    lacking = _too_little_space(run, forecast)
    others = OtherRuns(_places(run))
    others.look()
    forecast.warnings = list(dict.fromkeys([*forecast.warnings, *others.sentences]))
    forecast.run = run.replace(instances=instances)
    if problems or lacking:
        raise PreflightError(
            list(dict.fromkeys([*problems, *lacking])), None if problems else forecast
        )
    return forecast


def _places(run: RunSpec) -> list[Path]:
    """The directories and devices that the user has named."""
    logs = [Path(instance.log_directory).parent for instance in run.our_instances]
    servers = _servers(run)
    return [Path(target.path) for target in run.targets if target.name not in servers] + logs


def _servers(run: RunSpec) -> set[str]:
    """The targets that are servers: nothing of theirs lies in a directory of ours."""
    return {instance.target for instance in run.instances if _is_server(instance)}


def _is_server(instance: InstanceSpec) -> bool:
    return isinstance(instance, MailInstance) or (
        isinstance(instance, StoreClientInstance) and instance.server is not None
    )


def _not_there(server: InstanceSpec) -> list[str]:
    """What is wrong with where the storage of a server is said to be mounted."""
    if Path(server.directory).is_dir():
        return []
    return [
        f"{server.directory} is not a directory; name where the storage of {server.name} is "
        f"mounted here, or leave it out"
    ]


def _look_at(instance: InstanceSpec, forecast: Preflight, source: Source) -> InstanceSpec:
    """Find out what of an instance exists, and count what has to be made.

    Answers it with what is there.

    Raises:
        FolderError: there is something else.
    """
    if isinstance(instance, HomesInstance):
        # A run changes them, so each makes its own.
        source = Source(kind="new", from_=None)
    if source.kind in ("new", "restored"):
        instance = _make_room(instance, forecast)
    if source.kind == "restored":
        return _look_at_saved(instance, forecast, Path(str(source.from_)))
    found = None if source.kind == "new" else _existing(instance)
    if found is not None:
        idle.must_be_idle(found)
    missing = instance.databases
    if found is not None and found.is_closed:
        missing = ()
        forecast.reused.append(instance.name)
        instance = _with_records(instance, found.records or ())
    elif found is not None:
        instance = instance.replace(unfinished=True)
        missing = [item for item in instance.databases if not _is_whole(instance, item)]
        if len(missing) < len(instance.databases):
            forecast.reused.append(instance.name)
            forecast.recovered.append(instance.name)
        begun_before = [
            path for item in missing if (path := database_path(instance, item)).exists()
        ]
        forecast.prepared_anew += [str(path) for path in begun_before]
    if missing and source.kind == "existing":
        paths = ", ".join(str(database_path(instance, item)) for item in missing)
        raise FolderError(
            f"{paths} should exist and does not; make it first, or leave the source of databases "
            f"open"
        )
    forecast.bytes_to_prepare += sum(item.size_bytes for item in missing)
    for database in missing:
        path = database_path(instance, database)
        if block_devices.is_device(path):
            continue
        # What was begun is deleted first, so its space counts as free.
        begun = path.stat().st_blocks * 512 if path.is_file() else 0
        _need(
            forecast, path.parent, int(database.size_bytes * (1 + _growth_share(instance))) - begun
        )
    if missing and isinstance(instance, EngineInstance):
        _need(forecast, Path(instance.log_directory), LOG_RESERVE_BYTES)
    return instance


def _look_at_foreign(instance: InstanceSpec, forecast: Preflight) -> list[str]:
    """What stands in the way of a database that its own program keeps.

    Whose it is, only that program can say.
    """
    if not isinstance(instance, StoreClientInstance):
        return _not_there(instance)
    forecast.warnings.append(
        f"{instance.place} goes through the page cache of its host: where its data are smaller "
        f"than the memory there, "
        "reads say little of the storage"
    )
    if instance.server is None:
        file = Path(instance.directory) / instance.databases[0].file_name
        if not file.parent.is_dir():
            return [f"{file.parent} is not there; make it, or name another file"]
        if not file.exists():
            _need(forecast, file.parent, int(instance.databases[0].size_bytes * (1 + GROWTH_SHARE)))
        return _unfit(file.parent, forecast)
    files = [name for name in (instance.server.password_file, instance.server.ca_file) if name]
    return (
        _not_there(instance)
        + [
            f"{name} cannot be read; name the file that holds what the address needs"
            for name in files
            if not os.access(name, os.R_OK)
        ]
        + [
            f"{name} may be read by others than its owner: chmod 600 {name}"
            for name in files[:1]
            if name == instance.server.password_file
            and os.access(name, os.R_OK)
            and Path(name).stat().st_mode & 0o077
        ]
    )


def _growth_share(instance: InstanceSpec) -> float:
    """Files keep the size they were made with."""
    return GROWTH_SHARE if isinstance(instance, EngineInstance) else 0.0


def _with_records(instance: InstanceSpec, records: Sequence[int | None]) -> InstanceSpec:
    """An instance whose databases hold so many records; None for one that is not there."""
    each = zip(instance.databases, records, strict=True)
    return instance.replace(
        databases=[database.replace(existing_records=count) for database, count in each]
    )


def _make_room(instance: InstanceSpec, forecast: Preflight) -> InstanceSpec:
    """Note what of ours has to go before new or restored databases come.

    Nothing of anybody else ever goes.

    Returns:
        The instance with nothing in it.

    Raises:
        FolderError: it is not ours, or a device.
    """
    if any(
        block_devices.is_device(database_path(instance, database))
        for database in instance.databases
    ):
        raise FolderError(
            "a block device can be neither restored nor made again; `plimsoll clean --destroy "
            "SERIAL` clears it"
        )
    directory = Path(instance.directory)
    if ownership.read(directory) is not None:
        ownership.require_no_links_in(directory)
        forecast.deleted.append(str(directory))
        _note_holders(Path(instance.log_directory), forecast)
        freed = sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())
        _need(forecast, directory, -freed)
    elif directory.is_dir() and any(directory.iterdir()):
        raise FolderError(
            f"{directory} is not empty and was not made by Plimsoll; name another path, nothing is "
            f"overwritten"
        )
    return _with_records(instance.replace(unfinished=False), [None] * len(instance.databases))


def _note_holders(logs: Path, forecast: Preflight) -> None:
    """Note who needs log that is to be deleted."""
    found = holds.holders(logs)
    if found:
        forecast.held[str(logs)] = found


def _look_at_saved(instance: InstanceSpec, forecast: Preflight, directory: Path) -> InstanceSpec:
    """Compare an instance with that of a saved set; answers it with the records of the set.

    Raises:
        FolderError: there is no such set, it lacks a file, or other databases are in it.
    """
    saved, name = saved_sets.read_set(directory).instances, instance.name
    if directory.resolve().is_relative_to(Path(instance.directory).resolve()):
        raise FolderError(
            f"{directory} lies in {instance.directory}, which is made again; move the saved set "
            f"elsewhere"
        )
    if name not in saved:
        raise FolderError(
            f"{directory} holds {', '.join(saved)}, but no {name}; save the set from this plan"
        )
    # A set may be restored to another place.
    there = saved_sets.identity_of(saved[name]).with_logs_in(instance.log_directory)
    different = differences(there, identity_of(instance))
    if different:
        raise FolderError(
            f"{name} in {directory} differs from the plan in {', '.join(different)}; save the set "
            f"from this plan"
        )
    saved_sets.require_whole(directory, name)
    size = sum(file.bytes for file in saved[name].files)
    forecast.restored.append(name)
    forecast.bytes_to_restore += size
    _need(forecast, Path(instance.directory), int(size * (1 + GROWTH_SHARE)))
    return _with_records(instance, saved[name].records)


@contextmanager
def kept(expected: Preflight) -> Iterator[None]:
    """Keep other runs from the databases of a run, which must be as they were when looked at.

    Raises:
        PreflightError: a target is not there any more, or another file system is.
        FolderError: another run has them, or has changed them since.
    """
    instances = () if expected.run.modelled else expected.run.our_instances
    if instances and (gone := consents.refusals(_places(expected.run), expected.consent)):
        raise PreflightError(gone)
    with folder.kept(Path(instance.directory) for instance in instances):
        for instance in instances:
            if _marker(instance) != expected.markers[instance.directory]:
                raise FolderError(
                    f"{instance.directory} was changed by another run since this one looked at "
                    f"it; check the plan and start again, nothing was changed"
                )
        yield


def _marker(instance: InstanceSpec) -> Marker | None:
    """The marker of an instance; one that cannot be read is judged elsewhere."""
    try:
        return ownership.read(Path(instance.directory))
    except (FolderError, OSError):
        return None


def begin_with(expected: Preflight, source: Source | None, say: saved_sets.Say) -> None:
    """Delete and restore what `inspect` has foreseen.

    Raises:
        FolderError: the saved set is damaged; nothing was deleted.
    """
    if expected.deleted and expected.restored and source is not None:
        saved_sets.require_sound(Path(str(source.from_)), expected.restored, say)
    for directory in expected.deleted:
        delete_databases(Path(directory))
    for instance in expected.run.instances:
        if instance.name in expected.restored and source is not None:
            handover.make_directories(instance)
            # Should the copy break off, the next run finds whose the files are, and what they are.
            handover.mark(instance, PARTIAL, None)
            records = saved_sets.restore(instance, Path(str(source.from_)), say)
            handover.mark(instance, CLOSED, records)


def save_set(run: RunSpec, directory: StrPath, say: saved_sets.Say) -> None:
    """Copy the closed databases of a run into a new saved set.

    Raises:
        FolderError: they are not closed, or the folder is not empty.
    """
    directory = Path(directory)
    closed = []
    for instance in run.instances:
        if not instance.is_ours:
            raise FolderError(
                f"{instance.name} is a database of others, which is saved by its own program"
            )
        marker = ownership.read(Path(instance.directory))
        if marker is None or not marker.is_closed:
            raise FolderError(
                f"the databases of {instance.name} are not closed; run or prepare them to the end "
                f"first"
            )
        for database in instance.databases:
            if block_devices.is_device(database_path(instance, database)):
                raise FolderError("a database on a block device cannot be saved into a set")
        closed.append(marker)
    saved_sets.save(run.instances, closed, directory, say)


def _count_logs(run: RunSpec, forecast: Preflight) -> None:
    """Logs that must all be kept need room.

    Those that the load writes before they are counted come on top.
    """
    logs = run.logs_count()
    for instance in run.our_instances if logs else ():
        _need(forecast, Path(instance.log_directory), int(logs * LOG_BYTES * (1 + GROWTH_SHARE)))
    for engine in run.engine_instances:
        # A lag in time keeps what the load writes in it, which only the run tells.
        lagged = max((copy.lag_logs or 0 for copy in engine.lagged_copies), default=0)
        if lagged:
            _need(forecast, Path(engine.log_directory), lagged * LOG_BYTES)
    # Mailboxes that are moved need room where they come to; where all log is kept, also theirs.
    for moves in forecast_moves(run):
        _need(forecast, Path(moves.store.directory), int(moves.kept_bytes * (1 + GROWTH_SHARE)))
        if not moves.store.circular_log:
            _need(forecast, Path(moves.store.log_directory), moves.log_bytes)


def _count_backup(run: RunSpec, forecast: Preflight) -> None:
    """A backup that is kept needs as much room again as its databases, grown, and their log."""
    directory = kept_backups.folder_of(run)
    if directory is None:
        return
    for instance in run.our_instances:
        size = sum(item.size_bytes for item in instance.databases)
        _need(forecast, directory, int(size * (1 + _growth_share(instance))) + LOG_RESERVE_BYTES)
    ours = {forecast.storage_of(Path(target.path)).mount_point for target in run.targets}
    if forecast.storage_of(directory).mount_point in ours:
        forecast.warnings.append(
            f"the backup is written to {directory}, on the storage that is tested: its writes "
            f"slow the reads down, and it is lost with the databases"
        )


def _need(forecast: Preflight, directory: Path, size: int) -> None:
    storage = forecast.storage_of(directory)
    mount = storage.mount_point
    forecast.bytes_needed[mount] = forecast.bytes_needed.get(mount, 0) + size
    forecast.bytes_free[mount] = storage.free_bytes


def _too_little_space(run: RunSpec, forecast: Preflight) -> list[str]:
    servers = _servers(run)
    targets = [target.path for target in run.targets if target.name not in servers]
    for path in targets + [item.log_directory for item in run.our_instances]:
        try:
            forecast.warnings += forecast.storage_of(Path(path)).warnings
        except PermissionError:
            continue  # told by `_unfit`
        except StorageError as error:
            return [str(error)]
    return [
        f"{mount} has {forecast.bytes_free[mount] >> 20} MiB free, but the run needs about "
        f"{needed >> 20} MiB; "
        "free space or take smaller databases"
        for mount, needed in forecast.bytes_needed.items()
        if needed > forecast.bytes_free[mount]
    ]


def database_path(instance: InstanceSpec, database: FileSpec) -> Path:
    """Where a database lies: in its instance's directory, or a whole block device."""
    return Path(instance.directory) / database.file_name


def _is_whole(instance: InstanceSpec, database: FileSpec) -> bool:
    """Whether a database was prepared to its end: its header is written last.

    Stores are filled afterwards, through their log. Raw files and files have none and are made
    anew.
    """
    has_header = isinstance(instance, EngineInstance) and instance.backend != "raw_files"
    return has_header and block_devices.holds_database(database_path(instance, database))


def delete_prepared(found: Preflight) -> None:
    """Delete the databases that a run has made; those that were there before stay.

    Raises:
        FolderError: somebody works with them.
    """
    for instance in found.run.our_instances:
        if instance.name not in found.reused:
            delete_databases(Path(instance.directory))


def _unfit(directory: Path, forecast: Preflight) -> list[str]:
    try:
        if directory.is_symlink():
            return [
                f"{directory} is a symbolic link; name the directory it leads to, links are not "
                f"followed when writing"
            ]
        existing = nearest_existing(directory)
        storage = forecast.storage_of(existing)
    except PermissionError as error:
        return [
            f"{error.filename} may not be looked into by this user; change its permissions or name "
            f"another path"
        ]
    if not existing.is_dir():
        return [f"{existing} is a file; name a directory on the storage to be tested"]
    if (storage.facts["file_system"] or {}).get("kind") == DEVICE_FILE_SYSTEM:
        return [
            f"{directory} names no device, and directories below /dev lie in memory; check the name"
        ]
    if storage.read_only:
        return [
            f"{existing} is on a file system mounted read-only; remount it or name another path"
        ]
    if not os.access(existing, os.W_OK | os.X_OK):
        return [
            f"{existing} may not be written by this user; change its owner or name another path"
        ]
    return []


def _existing(instance: InstanceSpec) -> Marker | None:
    """The marker of the databases that exist and fit, None when there are none.

    Raises:
        FolderError: there is something else.
    """
    directory = Path(instance.directory)
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        for database in instance.databases:
            path = database_path(instance, database)
            if block_devices.is_device(path) and block_devices.holds_database(path):
                raise FolderError(
                    f"{path} holds a database whose logs are not in {directory}; name the log_path "
                    f"it was made with, or "
                    f"another device"
                )
        return None
    if not directory.is_dir():
        return None  # `_unfit` speaks of it
    marker = ownership.read(directory)
    if marker is None:
        raise FolderError(
            f"{directory} is not empty and was not made by Plimsoll; name another path, nothing is "
            f"overwritten"
        )
    ownership.require_no_links_in(directory)
    marker.require_whole()
    different = differences(marker.identity, identity_of(instance))
    if different:
        raise FolderError(
            f"the databases in {directory} differ from the plan in {', '.join(different)}; "
            f"{ownership.way_out(marker.identity, identity_of(instance))}, name another path, or "
            f"delete them with `plimsoll clean {directory}`"
        )
    if marker.is_closed:
        lost = [
            str(path)
            for item in instance.databases
            if not (path := database_path(instance, item)).exists()
        ]
        if lost:
            raise FolderError(
                f"{', '.join(lost)} should be there and is gone; delete the rest with `plimsoll "
                f"clean {directory}`"
            )
        _require_no_holes(instance)
    return marker


def _require_no_holes(instance: InstanceSpec) -> None:
    """Refuse files that are read as they lie and hold nothing in places.

    Raises:
        FolderError: reads there would never reach the storage.
    """
    if instance.backend not in WRITTEN_THROUGH:
        return
    for database in instance.databases:
        path = database_path(instance, database)
        if path.is_file() and (hole := _first_hole(path)) is not None:
            raise FolderError(
                f"{path} has a hole at byte {hole}, as a copy can have: reads of it would never "
                f"reach the storage; delete it with `plimsoll clean {instance.directory}`, and it "
                f"is made again"
            )


def _first_hole(path: Path) -> int | None:
    """Where a file begins to hold nothing; None where it does not, or nobody knows."""
    try:
        with path.open("rb") as file:
            hole = file.seek(0, os.SEEK_HOLE)
            return hole if hole < file.seek(0, os.SEEK_END) else None
    except OSError:
        return None
