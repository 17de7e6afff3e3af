"""One archive of a run folder, with a manifest of SHA-256 sums as its first member; and the check of a receiver.

The archive is a gzipped tar. `MANIFEST.sha256` has the form of `sha256sum`, so that it can be checked without Plimsoll:
`tar xf FILE && cd NAME && sha256sum -c MANIFEST.sha256`. The same folder makes the same bytes: members are sorted, and times, owners and
permissions are not the sender's.

What comes in is not trusted: only plain files with relative names below one folder are unpacked, into an empty place.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MANIFEST = "MANIFEST.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
#: Larger than any run folder; what claims to be more is not unpacked.
UNPACKED_BYTES_MAX = 64 * 1024**3
MEMBERS_MAX = 100_000
_CHUNK = 1 << 20


class PackError(Exception):
    """A folder that cannot be packed, or an archive that cannot be trusted; one line for each problem."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Packed:
    """What an archive is.

    Attributes:
        path: the archive.
        sha256: of the whole archive.
        files: names of its files, without the manifest.
    """

    path: Path
    sha256: str
    files: list[str]


def files_below(home: Path) -> list[Path]:
    """The plain files below a folder, in order; links are not followed, as they may lead out of it."""
    return sorted(path for path in home.rglob("*") if path.is_file() and not path.is_symlink())


def pack(home: Path, name: str, target: Path) -> Packed:
    """Write the archive of a folder whole or not at all.

    Raises:
        PackError: there is nothing to pack.
    """
    files = [path for path in files_below(home) if path.name != MANIFEST or path.parent != home]
    if not files:
        raise PackError([f"{home} holds no files; expected the folder of a run"])
    relative = [path.relative_to(home).as_posix() for path in files]
    sums = {short: _sum_of(path) for short, path in zip(relative, files, strict=True)}
    manifest = "".join(f"{digest}  {short}\n" for short, digest in sums.items()).encode()
    unfinished = target.with_name(target.name + ".part")
    with (
        unfinished.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.addfile(_member(f"{name}/{MANIFEST}", len(manifest)), io.BytesIO(manifest))
        for short, path in zip(relative, files, strict=True):
            with path.open("rb") as content:
                archive.addfile(_member(f"{name}/{short}", path.stat().st_size), content)
    unfinished.replace(target)
    return Packed(target, _sum_of(target), relative)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o644, 0
    return member


def _sum_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def unpack(source: Path, into: Path | None) -> Packed:
    """Check an archive against its manifest, and write its files where they are wanted.

    Args:
        source: the archive.
        into: an empty or new folder; None only to check.

    Raises:
        PackError: it is no such archive, or its files are not those of the manifest. Nothing is left behind then.
    """
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise PackError([f"{into} is not an empty folder; nothing is overwritten"])
    scratch = into.with_name(f"{into.name}.part") if into is not None else None
    try:
        sums = _checked(source, scratch)
        if into is not None and scratch is not None:
            if into.exists():
                into.rmdir()
            scratch.replace(into)
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    return Packed(source, _sum_of(source), sorted(sums))


def _checked(source: Path, scratch: Path | None) -> dict[str, str]:
    """Read an archive, writing its files into a new folder where one is named; answers the sums of files that are right."""
    sums: dict[str, str] = {}
    try:
        with tarfile.open(source, mode="r:gz") as archive:
            manifest = _read_members(archive, sums, scratch)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise PackError([f"{source} is no whole archive of `plimsoll pack`: {error}"]) from error
    if manifest is None:
        raise PackError([f"{source} holds no {MANIFEST}; expected an archive of `plimsoll pack`"])
    problems = _differences(manifest, sums)
    if problems:
        raise PackError([f"{source}: {problem}" for problem in problems])
    return sums


def _read_members(archive: tarfile.TarFile, sums: dict[str, str], scratch: Path | None) -> dict[str, str] | None:
    """Fill in the sums of all files, writing them where that is wanted; answers the manifest."""
    manifest: dict[str, str] | None = None
    total, top = 0, ""
    for count, member in enumerate(archive, 1):
        # What a small archive unpacks to is counted before it is read.
        total += member.size
        if count > MEMBERS_MAX or total > UNPACKED_BYTES_MAX:
            raise PackError(["the archive unpacks to more than any run folder holds; it is refused"])
        first, *rest = PurePosixPath(member.name).parts
        if not member.isfile() or not rest or ".." in rest or first == "/" or (top and first != top):
            raise PackError([f"the member {member.name!r} is no plain file below one folder; the archive is refused"])
        top = first
        name = "/".join(rest)
        if name in sums:
            raise PackError([f"the member {member.name!r} is there twice; the archive is refused"])
        file = archive.extractfile(member)
        assert file is not None, "a plain file has content"
        place = scratch / name if scratch is not None else Path(os.devnull)
        place.parent.mkdir(parents=True, exist_ok=True)
        digest, text = hashlib.sha256(), b""
        with place.open("wb") as written:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                written.write(chunk)
                text += chunk if name == MANIFEST else b""
        if name == MANIFEST:
            manifest = _manifest(text.decode("utf-8"))
        else:
            sums[name] = digest.hexdigest()
    return manifest


def _manifest(text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if not match:
            raise PackError(
                [f"{MANIFEST}, line {number}: {line[:80]!r}; expected a SHA-256 sum, two blanks and a name"]
            )
        found[match.group(2)] = match.group(1)
    return found


def _differences(manifest: dict[str, str], sums: dict[str, str]) -> list[str]:
    problems = [f"{name} is in the manifest, but not in the archive" for name in manifest if name not in sums]
    problems += [f"{name} is not in the manifest" for name in sums if name not in manifest]
    problems += [
        f"{name} was changed: its SHA-256 is {sums[name]}, the manifest says {digest}"
        for name, digest in manifest.items()
        if name in sums and sums[name] != digest
    ]
    return sorted(problems)
