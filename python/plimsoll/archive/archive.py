"""One archive of a run folder, with a manifest of SHA-256 sums as its first member.

And the check of a receiver.

The archive is a gzipped tar. `MANIFEST.sha256` has the form of `sha256sum`, so that it can be
checked without Plimsoll: `tar xf FILE && cd NAME && sha256sum -c MANIFEST.sha256`. The same folder
makes the same bytes: members are sorted, and times, owners and permissions are not the sender's.

What comes in is not trusted: only plain files with relative names below one folder are unpacked,
into an empty place.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import secrets
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.errors import RefusedError
from plimsoll.files.folder import replacing

MANIFEST = "MANIFEST.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
#: Larger than any run folder; what claims to be more is not unpacked.
UNPACKED_BYTES_MAX = 64 * 1024**3
MEMBERS_MAX = 100_000
#: What one member says of itself before its content, and what the manifest says of all: both are
#: kept in memory.
HEADERS_BYTES_MAX, MANIFEST_BYTES_MAX = 4 << 20, 64 << 20
_CHUNK = 1 << 20


class PackError(RefusedError):
    """A folder that cannot be packed, or an archive that cannot be trusted.

    One line for each problem.
    """


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
    """The plain files below a folder, in order.

    Links are not followed, as they may lead out of it.
    """
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
    with (
        replacing(target) as unfinished,
        unfinished.open("xb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.addfile(_member(f"{name}/{MANIFEST}", len(manifest)), io.BytesIO(manifest))
        for short, path in zip(relative, files, strict=True):
            with path.open("rb") as content:
                archive.addfile(_member(f"{name}/{short}", path.stat().st_size), content)
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
        PackError: it is no such archive, or its files are not those of the manifest. Nothing is
            left behind then.
    """
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise PackError([f"{into} is not an empty folder; nothing is overwritten"])
    # A name that nobody else has: what is there is never written over, nor deleted afterwards.
    scratch = into.with_name(f".{secrets.token_hex(8)}.part") if into is not None else None
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
    """Read an archive, writing its files into a new folder where one is named.

    Answers the sums of files that are right.
    """
    sums: dict[str, str] = {}
    try:
        with _Headers(source) as zipped, tarfile.open(fileobj=zipped, mode="r:") as archive:
            manifest = _read_members(zipped, archive, sums, scratch)
    except (
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        IndexError,
        ValueError,
    ) as error:
        raise PackError([f"{source} is no whole archive of `plimsoll pack`: {error}"]) from error
    if manifest is None:
        raise PackError([f"{source} holds no {MANIFEST}; expected an archive of `plimsoll pack`"])
    problems = _differences(manifest, sums)
    if problems:
        raise PackError([f"{source}: {problem}" for problem in problems])
    return sums


class _Headers(gzip.GzipFile):
    """An archive of which the library keeps only so much in memory.

    Headers may claim any size, and this is read at once.

    Attributes:
        bytes_left: how much may still be read.
    """

    def __init__(self, source: Path) -> None:
        super().__init__(source, "rb")
        self.bytes_left = HEADERS_BYTES_MAX

    def read(self, size: int | None = -1) -> bytes:
        """As of any file, within the bounds."""
        if size is None or not 0 <= size <= self.bytes_left:
            raise PackError(
                [
                    "a member of the archive says more of itself than any file of a run; it is "
                    "refused"
                ]
            )
        self.bytes_left -= size
        return super().read(size)


def _read_members(
    zipped: _Headers, archive: tarfile.TarFile, sums: dict[str, str], scratch: Path | None
) -> dict[str, str] | None:
    """Fill in the sums of all files, writing them where that is wanted; answers the manifest."""
    manifest: dict[str, str] | None = None
    total, top = 0, ""
    for count, member in enumerate(archive, 1):
        # What a small archive unpacks to is counted before it is read.
        total += member.size
        if count > MEMBERS_MAX or total > UNPACKED_BYTES_MAX:
            raise PackError(
                ["the archive unpacks to more than any run folder holds; it is refused"]
            )
        first, *rest = PurePosixPath(member.name).parts or ("",)
        is_plain = member.isfile() and not member.issparse() and member.size >= 0
        if not is_plain or not rest or ".." in rest or first == "/" or (top and first != top):
            raise PackError(
                [
                    f"the member {member.name!r} is no plain file below one folder; the archive is "
                    f"refused"
                ]
            )
        top = first
        name = "/".join(rest)
        if name in sums or (name == MANIFEST and manifest is not None):
            raise PackError([f"the member {member.name!r} is there twice; the archive is refused"])
        if name == MANIFEST and member.size > MANIFEST_BYTES_MAX:
            raise PackError([f"its {MANIFEST} is larger than any; the archive is refused"])
        file = archive.extractfile(member)
        assert file is not None, "a plain file has content"
        zipped.bytes_left = member.size + HEADERS_BYTES_MAX
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
        zipped.bytes_left = HEADERS_BYTES_MAX
    return manifest


def _manifest(text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if not match:
            raise PackError(
                [
                    f"{MANIFEST}, line {number}: {line[:80]!r}; expected a SHA-256 sum, two blanks "
                    f"and a name"
                ]
            )
        found[match.group(2)] = match.group(1)
    return found


def _differences(manifest: dict[str, str], sums: dict[str, str]) -> list[str]:
    problems = [
        f"{name} is in the manifest, but not in the archive"
        for name in manifest
        if name not in sums
    ]
    problems += [f"{name} is not in the manifest" for name in sums if name not in manifest]
    problems += [
        f"{name} was changed: its SHA-256 is {sums[name]}, the manifest says {digest}"
        for name, digest in manifest.items()
        if name in sums and sums[name] != digest
    ]
    return sorted(problems)
