"""Archives that somebody has made to harm who unpacks them, and what lies beside the place where
one is unpacked.
"""

import gzip
import io
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from plimsoll.archive.archive import HEADERS_BYTES_MAX, MANIFEST, MANIFEST_BYTES_MAX, pack
from plimsoll.cli import run_program

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
MEMORY_BYTES_MAX, SECONDS_MAX = 1 << 30, 30
LARGE_BYTES = 2 << 30


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that claims this size."""
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def swelling(path: Path, *parts: bytes, more: bytes = b"\0\0") -> None:
    """An archive that begins so and goes on with the same over and over, few bytes of it on the
    disk.
    """
    block = gzip.compress(more * (8 << 20), 1)
    path.write_bytes(gzip.compress(b"".join(parts)) + block * (LARGE_BYTES // (16 << 20)))


def _sparse() -> bytes:
    """A member whose list of holes has no end: the library reads on behind the end of the file."""
    records = "".join(
        f"{len(text) + 4} {text}\n"
        for text in ("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=run/x")
    ).encode()
    return (
        header("run/pax", len(records), tarfile.XHDTYPE)
        + records.ljust(512, b"\0")
        + header("run/x", 1024)
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: swelling(path, header("run/x", LARGE_BYTES, tarfile.XHDTYPE)),
            "says more of itself",
        ),
        (
            lambda path: swelling(path, header("run/x", LARGE_BYTES, tarfile.GNUTYPE_LONGNAME)),
            "says more of itself",
        ),
        (lambda path: swelling(path, header(f"run/{MANIFEST}", LARGE_BYTES)), "is larger than any"),
        (
            lambda path: swelling(path, _sparse(), b"999999999\n", more=b"0\n"),
            "says more of itself",
        ),
        (
            lambda path: swelling(path, header("run/x", -(1 << 40)), header("run/y", 1 << 40)),
            "is no plain file",
        ),
    ],
    ids=["extended header", "long name", "manifest", "sparse", "negative"],
)
def test_a_small_archive_that_swells_is_refused(
    make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    """What the library keeps in memory is bounded, and so is the time."""
    path = tmp_path / "bomb.tar.gz"
    make(path)
    assert path.stat().st_size < LARGE_BYTES // 100

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))

    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "unpack",
        str(path),
        "--to",
        str(tmp_path / "got"),
    ]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
        preexec_fn=limit,
        cwd=tmp_path,
    )
    assert (found.returncode, message in found.stderr) == (2, True), found.stderr
    assert [child.name for child in tmp_path.iterdir()] == ["bomb.tar.gz"]


def test_the_bounds_are_far_from_what_a_run_needs(tmp_path: Path) -> None:
    """The longest names a file system takes, in the deepest folder, still pass."""
    run = tmp_path / "run"
    deep = run.joinpath(*("d" * 200 for _ in range(15)))
    deep.mkdir(parents=True)
    for number in range(20):
        (deep / f"{number:03}{'é' * 100}").write_text("x")
    pack(run, "run", tmp_path / "run.tar.gz")
    assert run_program(["unpack", str(tmp_path / "run.tar.gz"), "--to", str(tmp_path / "got")]) == 0
    assert HEADERS_BYTES_MAX + MANIFEST_BYTES_MAX < MEMORY_BYTES_MAX


@pytest.mark.parametrize("name", ["run/a\0b", "run/../x", "run/\x1b[2J", "run", "", "run//x"])
def test_odd_names_are_refused_or_harmless(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written elsewhere, and nothing of the name steers the terminal of who reads
    why.
    """
    with tarfile.open(tmp_path / "odd.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("run/plain")
        member.pax_headers = {"path": name}
        archive.addfile(member, io.BytesIO())
    assert run_program(["unpack", str(tmp_path / "odd.tar.gz"), "--to", str(tmp_path / "got")]) == 2
    assert [child.name for child in tmp_path.iterdir()] == ["odd.tar.gz"]
    assert "\x1b" not in capsys.readouterr().err


def test_what_lies_beside_the_place_stays(tmp_path: Path) -> None:
    """Files that are not finished have names that nobody else has.

    A folder of the user's own was deleted.
    """
    shutil.copytree(GOLDEN, tmp_path / "run")
    for name in ("run.tar.gz.part", "got.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    assert run_program(["pack", str(tmp_path / "run"), "--out", str(tmp_path / "run.tar.gz")]) == 0
    assert run_program(["unpack", str(tmp_path / "run.tar.gz"), "--to", str(tmp_path / "got")]) == 0
    assert [(tmp_path / name / "mine").read_text() for name in ("run.tar.gz.part", "got.part")] == [
        "mine",
        "mine",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["run", "run.tar.gz", "run.tar.gz.part", "got", "got.part"]
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            'SELECT \'secret-host\' AS "a"" FROM rows; COPY (SELECT 1) TO \'{victim}\'; SELECT """',
            None,
        ),
        (
            "SELECT ['secret-host'] AS names",
            "no rule says what column 'names' of kind VARCHAR[] holds",
        ),
        ("SELECT 'secret-host'::BLOB AS name", "of kind BLOB holds"),
    ],
)
def test_tables_of_strangers_are_redacted_or_refused(
    query: str, message: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a column is no command, and no name leaves in a column that cannot be looked
    into.
    """
    shutil.copytree(GOLDEN, tmp_path / "run")
    victim = tmp_path / "victim.csv"
    duckdb.execute(
        f"COPY ({query.format(victim=victim)}) TO '{tmp_path}/run/more.parquet' (FORMAT parquet)"
    )
    out = tmp_path / "out.tar.gz"
    code = run_program(["pack", str(tmp_path / "run"), "--redact", "--out", str(out)])
    assert (code, out.exists()) == ((0, True) if message is None else (2, False))
    assert message is None or message in capsys.readouterr().err
    assert not victim.exists()
