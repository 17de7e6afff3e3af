"""A folder of runs as one archive that its receiver can check, and back."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.archive.archive import Packed, PackError
from plimsoll.archive.archive import pack as write_archive
from plimsoll.archive.archive import unpack as read_archive
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.damage import may_be_the_folder, reading
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener

SUFFIX = ".plimsoll.tar.gz"


@dataclass(frozen=True)
class PackedFolder:
    """An archive that was written.

    Attributes:
        packed: the archive, its sum and its files.
        replaced: how many names of each kind were taken out.
        left_out: files that are not in it, because names could not be taken out of them.
    """

    packed: Packed
    replaced: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def pack_folder(
    directory: StrPath,
    out: StrPath | None = None,
    *,
    redact: bool = False,
    listener: Listener | None = None,
) -> PackedFolder:
    """Pack a folder into one archive with a manifest of SHA-256 sums.

    Args:
        directory: the folder of a run, a repeated run, several hosts or a study.
        out: the archive; beside the folder if left out.
        redact: take out names of hosts, users, disks, paths and addresses.
        listener: warned when a page cannot be made again.

    Raises:
        PackError: it holds no run, or the archive cannot be written there.
    """
    directory = Path(directory)
    out = None if out is None else Path(out)
    home = directory.absolute()
    target = (out or home.with_name(("run" if redact else home.name) + SUFFIX)).absolute()
    _must_be_possible(directory, home, target)
    try:
        if not redact:
            return PackedFolder(write_archive(home, home.name, target))
        from plimsoll.archive.redaction import redacted_copy

        with reading(home), tempfile.TemporaryDirectory(prefix="plimsoll-pack-") as scratch:
            copy = Path(scratch) / "run"
            copy.mkdir()
            names, left_out = redacted_copy(home, copy)
            left_out += _pages_again(home, copy, listener or Listener())
            return PackedFolder(
                write_archive(copy, "run", target), names.counts(), sorted(left_out)
            )
    except OSError as error:
        raise PackError([f"{error.filename or target}: {system_reason(error)}"]) from error


def unpack_folder(
    archive: StrPath, to: StrPath | None = None, *, only_check: bool = False
) -> tuple[Packed, Path | None]:
    """Check an archive against its manifest and unpack it.

    Nothing is left behind when it was changed.

    Args:
        archive: of `pack_folder`.
        to: where to; a folder of its name here if left out.
        only_check: write nothing.

    Returns:
        What the archive is, and the folder.

    Raises:
        PackError: it is no such archive, was changed, or the place is taken.
    """
    archive = Path(archive)
    to = None if to is None else Path(to)
    if not archive.is_file():
        what = "is a folder" if archive.is_dir() else "does not exist"
        raise PackError([f"{archive} {what}; name an archive of `plimsoll pack`"])
    name = (
        archive.name.removesuffix(".tgz")
        .removesuffix(".gz")
        .removesuffix(".tar")
        .removesuffix(".plimsoll")
    )
    # A name without such an ending would be that of the archive itself.
    into = None if only_check else to or Path(name if name != archive.name else f"{name}.unpacked")
    try:
        return read_archive(archive, into), into
    except OSError as error:
        raise PackError([f"{error.filename or archive}: {system_reason(error)}"]) from error


def _must_be_possible(directory: Path, home: Path, target: Path) -> None:
    """Refuse what is no run, and a place that is taken.

    Raises:
        PackError: one of these.
    """
    problem = folder.why_no_run(home)
    if problem is not None and not (home / "study.json").exists():
        raise PackError([f"{directory} {problem}"])
    if target.exists():
        raise PackError([f"{target} exists; name another file with --out, nothing is overwritten"])
    if target.is_relative_to(home):
        raise PackError(
            [f"{target} lies in the folder that is packed; name another place with --out"]
        )


def _pages_again(home: Path, copy: Path, listener: Listener) -> list[str]:
    """Make the reports of runs and repeated runs again from redacted files.

    Answers the pages that cannot be.
    """
    left_out = []
    for page in sorted(home.rglob("*.html")):
        place = copy / page.relative_to(home)
        if page.name != folder.REPORT or not _page_again(place.parent, listener):
            left_out.append(page.relative_to(home).as_posix())
    return left_out


def _page_again(run_folder: Path, listener: Listener) -> bool:
    from plimsoll.multihost import CombineError, page, read
    from plimsoll.pipeline import repeat

    try:
        if (run_folder / folder.REPEATS).exists():
            folder.write_text(
                run_folder / folder.REPORT, repeat.render(run_folder, repeat.read(run_folder))
            )
            return True
        if (run_folder / folder.HOSTS).exists():
            folder.write_text(
                run_folder / folder.REPORT, page.render(run_folder, *read(run_folder))
            )
            return True
        if not (run_folder / folder.VERDICT).exists():
            return False
        from plimsoll.report import write_report

        write_report(run_folder)
    except Exception as error:
        if not (
            isinstance(error, (folder.FolderError, CombineError, ModuleNotFoundError))
            or may_be_the_folder(error)
        ):
            raise
        listener.warning(f"{run_folder.name}/{folder.REPORT} could not be made again: {error}")
        return False
    return True
