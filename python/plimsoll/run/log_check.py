"""Reads the logs, checkpoints and flush maps of a run whole after its databases were, and says what
is wrong with them.

The native side judges each file, and whether the generations of a stream follow one another; here
it is known which files must be there. A raw file has no such log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from plimsoll import _native
from plimsoll.databases import ownership
from plimsoll.documents.document import Document, hints_of
from plimsoll.documents.log_check import LogCheckFigures, LogCheckFile
from plimsoll.documents.run_spec import InstanceSpec, RunSpec
from plimsoll.host.block_devices import is_device

#: A generation: the current one, `E00.log`, or a closed one. `E00tmp.log` is a generation that was
#: made ahead and is empty.
GENERATION = re.compile(r"E\d\d([0-9A-F]{8})?\.log")
PREPARED = re.compile(r"E\d\dtmp\.log")
CHECKPOINT = re.compile(r"E\d\d\.chk")
FLUSH_MAP_SUFFIX = ".jfm"
#: The log streams of an instance by its backend: each database of a mail store has its own.
LOG_BASES = {"engine": ("E00",), "store": ("E00",), "mail_store": ("E00", "E01", "E02")}
SOUND = "sound"


class FileVerified(Document):
    """What is used of the native side's report on a file."""

    path: str
    kind: str
    verdict: str
    error: str | None
    file_bytes: int
    pages_seen: int
    bad: int
    correctable: int
    unreadable: int
    left_over: bool
    reasons: Sequence[str]

    def finding(self) -> str | None:
        """What is wrong with it, in a sentence; None when nothing is."""
        if self.verdict == SOUND:
            return None
        counts = {"bad": self.bad, "correctable": self.correctable, "unreadable": self.unreadable}
        pages = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        why = [
            *([self.error] if self.error else []),
            *self.reasons,
            *([f"of its pages {pages}"] if pages else []),
        ]
        return f"{self.path} is {self.verdict}: {'; '.join(why) or 'nothing more is known'}"


def check_logs(run: RunSpec) -> LogCheckFile:
    """Read the files beside the databases of every instance of a run that came to its end.

    Never writes.

    A run that opened its databases has closed them; of others, only those that their last run
    closed must have every file.
    """
    engines = [instance for instance in run.instances if instance.backend in LOG_BASES]
    closed = any(phase.action.kind == "prepare" for phase in run.phases)
    return LogCheckFile(
        schema_version=1, instances=[_check(instance, closed=closed) for instance in engines]
    )


def _check(instance: InstanceSpec, *, closed: bool) -> LogCheckFigures:
    directory, logs = Path(instance.directory), Path(instance.log_directory)
    try:
        files = _files_of(directory, logs)
        found = [
            FileVerified.from_plain(
                {name: report[name] for name in hints_of(FileVerified)}, report["path"]
            )
            for report in json.loads(_native.verify([str(path) for path in files], "pages"))[
                "files"
            ]
        ]
    except (OSError, _native.DiskError, _native.ConfigError) as error:
        return _figures(instance, [], [], unread=str(error))
    return _figures(
        instance, found, _missing(instance, files) if closed or _was_closed(directory) else []
    )


def _was_closed(directory: Path) -> bool:
    marker = ownership.read(directory)
    return marker is not None and marker.is_closed


def _files_of(directory: Path, logs: Path) -> list[Path]:
    """The files of an instance beside its databases, the oldest generation first.

    A log of other logs is not ours.
    """
    in_logs = [path for path in logs.iterdir() if _is_of_log(path.name)]
    maps = [
        path
        for place in {directory, logs}
        for path in place.iterdir()
        if path.suffix == FLUSH_MAP_SUFFIX
    ]
    return [*sorted(in_logs, key=_in_stream), *sorted(maps)]


def _in_stream(path: Path) -> tuple[str, bool, str]:
    """Where a file stands: the current generation is the newest and has the shortest name."""
    base = path.name[:3]
    return (base, path.name == f"{base}.log", path.name)


def _is_of_log(name: str) -> bool:
    return any(kind.fullmatch(name) for kind in (GENERATION, PREPARED, CHECKPOINT))


def _missing(instance: InstanceSpec, files: Sequence[Path]) -> list[str]:
    """What every instance has that was closed, and this one has not."""
    there = {path.name for path in files}
    flush_maps = [
        Path(database.file_name).stem + FLUSH_MAP_SUFFIX
        for database in instance.databases
        if not is_device(Path(database.file_name))
    ]
    bases = LOG_BASES[instance.backend][: len(instance.databases)]
    of_logs = [f"{base}{end}" for base in bases for end in (".log", ".chk")]
    places = [(instance.log_directory, name) for name in of_logs]
    places += [(instance.directory, name) for name in flush_maps]
    return [f"{Path(place) / name} is missing" for place, name in places if name not in there]


def _gaps(generations: Sequence[FileVerified]) -> list[str]:
    """Where generations are missing that no recovery needs.

    After a power cut that is no fault: what was deleted comes back in part. A run that came to its
    end has deleted all of that again.
    """
    return [
        f"{following.path} is not sound: the generation before it is missing"
        for before, following in pairwise(generations)
        if before.left_over and not following.left_over and _base(before) == _base(following)
    ]


def _base(generation: FileVerified) -> str:
    return Path(generation.path).name[:3]


def _figures(
    instance: InstanceSpec,
    files: Sequence[FileVerified],
    missing: Sequence[str],
    unread: str | None = None,
) -> LogCheckFigures:
    generations = [item for item in files if GENERATION.fullmatch(Path(item.path).name)]
    maps = [item for item in files if item.path.endswith(FLUSH_MAP_SUFFIX)]
    return LogCheckFigures(
        instance=instance.name,
        logs_count=len(generations),
        log_bytes=sum(item.file_bytes for item in generations),
        first_log=Path(generations[0].path).name if generations else None,
        last_log=Path(generations[-1].path).name if generations else None,
        checkpoints_count=sum(
            CHECKPOINT.fullmatch(Path(item.path).name) is not None for item in files
        ),
        flush_maps_count=len(maps),
        flush_map_pages=sum(item.pages_seen for item in maps),
        findings=[
            *(text for item in files if (text := item.finding()) is not None),
            *_gaps(generations),
            *missing,
        ],
        unread=unread,
    )
