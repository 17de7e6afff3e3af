"""Programs written by others read prepared databases of every page size fully.

The format is only real if somebody else's reader agrees, row by row and byte by byte. Each reader
runs in a process of its own where it is a program, and is skipped with a message where it is not
installed."""

import csv
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import prepared_content as content
from tests.support.rust_examples import example

ROOT = Path(__file__).parents[2]
RECORDS = 400
SEED = 42
DATABASE = 3
EVERY = 50
VALUE_BYTES = 40_000
SYSTEM_TABLES = {"MSysObjects", "MSysObjectsShadow", "MSysObjids", "MSysLocales"}


@dataclass(frozen=True)
class Prepared:
    path: Path
    page_bytes: int


@dataclass(frozen=True)
class Row:
    """One row as a reader sees it."""

    number: int
    scatter: int
    version: int
    size: int
    check: int
    short_pad: bytes
    long_pad: bytes
    body: bytes | None


@pytest.fixture(scope="module", params=[4096, 8192, 16384, 32768])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    page_bytes: int = request.param
    path = tmp_path_factory.mktemp("prepared") / "prepared.edb"
    # A small fan-out makes trees of several levels without large files.
    wishes = [f"records={RECORDS}", f"seed={SEED}", f"database={DATABASE}", "branch_fill=2"]
    wishes += [f"every={EVERY}", f"value_bytes={VALUE_BYTES}"]
    done = subprocess.run(
        [example("prepare_file"), path, str(page_bytes), *wishes],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    facts = json.loads(done.stdout)
    assert facts["bytes"] == path.stat().st_size
    return Prepared(path, page_bytes)


def check_rows(rows: Iterator[Row], page_bytes: int) -> None:
    """Every row agrees with itself, and a sample with the content computed from the seed."""
    numbers, scatters = [], set()
    for row in rows:
        numbers.append(row.number)
        scatters.add(row.scatter)
        assert row.version == 0
        assert row.size == len(row.short_pad) + len(row.long_pad)
        assert row.check == content.check_sum(row.short_pad, row.long_pad), f"record {row.number}"
        assert (row.body is not None) == (row.number % EVERY == 0)
        if row.number % 10 == 0:
            assert row.long_pad == content.long_pad(
                SEED, DATABASE, row.number, 0, len(row.long_pad)
            )
        if row.body is not None:
            expected = content.long_value(SEED, DATABASE, row.number, 0, VALUE_BYTES, page_bytes)
            assert hashlib.sha256(row.body).digest() == hashlib.sha256(expected).digest(), (
                f"value of {row.number}"
            )
    assert numbers == list(range(RECORDS))
    assert scatters == set(range(RECORDS)), "the secondary key is a permutation"


def test_dissect_reads_every_row(prepared: Prepared) -> None:
    esedb = pytest.importorskip("dissect.esedb", reason="dissect.esedb is not installed")
    with prepared.path.open("rb") as file:
        database = esedb.EseDB(file)
        tables = {table.name for table in database.tables()}
        assert tables == SYSTEM_TABLES | {"PlimsollMail"}
        catalog = [
            sum(1 for _ in database.table(name).records())
            for name in ("MSysObjects", "MSysObjectsShadow")
        ]
        assert catalog[0] == catalog[1] > 0
        columns = ("Number", "Scatter", "Version", "Size", "Check", "ShortPad", "LongPad", "Body")
        records = database.table("PlimsollMail").records()
        check_rows(
            (Row(*(record.get(name) for name in columns)) for record in records),
            prepared.page_bytes,
        )


def test_dissect_finds_records_by_both_indexes(prepared: Prepared) -> None:
    esedb = pytest.importorskip("dissect.esedb", reason="dissect.esedb is not installed")
    with prepared.path.open("rb") as file:
        table = esedb.EseDB(file).table("PlimsollMail")
        for number in (0, 1, 255, 256, RECORDS - 1):
            found = table.search(Number=number)
            assert found.get("Number") == number
            assert (
                table.index("ByScatter").search(Scatter=found.get("Scatter")).get("Number")
                == number
            )


def test_libesedb_reads_every_row(prepared: Prepared) -> None:
    pyesedb = pytest.importorskip("pyesedb", reason="libesedb-python is not installed")
    file = pyesedb.file()
    file.open(str(prepared.path))
    try:
        table = file.get_table_by_name("PlimsollMail")
        assert {table.name for table in file.tables} == SYSTEM_TABLES | {"PlimsollMail"}
        check_rows(
            (libesedb_row(table.get_record(at)) for at in range(table.number_of_records)),
            prepared.page_bytes,
        )
    finally:
        file.close()


def libesedb_row(record: object) -> Row:
    def number(column: int) -> int:
        return int.from_bytes(record.get_value_data(column), "little", signed=True)  # type: ignore[attr-defined]

    def data(column: int) -> bytes | None:
        if record.is_long_value(column):  # type: ignore[attr-defined]
            value: bytes = record.get_value_data_as_long_value(column).get_data()  # type: ignore[attr-defined]
            return value
        plain: bytes | None = record.get_value_data(column)  # type: ignore[attr-defined]
        return plain

    return Row(*(number(column) for column in range(5)), data(5) or b"", data(6) or b"", data(7))


def test_esedbexport_reads_every_row(prepared: Prepared, tmp_path: Path) -> None:
    export = shutil.which("esedbexport")
    if export is None:
        pytest.skip("esedbexport (Debian package libesedb-utils) is not installed")
    command = [export, "-v", "-t", str(tmp_path / "out"), str(prepared.path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "mismatch" not in done.stdout + done.stderr, "a checksum was found wrong"
    (exported,) = (tmp_path / "out.export").glob("PlimsollMail.*")
    with exported.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert [int(row["Number"]) for row in rows] == list(range(RECORDS))
    for row in rows:
        short_pad, long_pad = (bytes.fromhex(row[name]) for name in ("ShortPad", "LongPad"))
        # This reader prints the signed type without its sign.
        assert int(row["Check"]) == content.check_sum(short_pad, long_pad) % (1 << 64)


def test_esedbinfo_accepts_the_file(prepared: Prepared) -> None:
    info = shutil.which("esedbinfo")
    if info is None:
        pytest.skip("esedbinfo (Debian package libesedb-utils) is not installed")
    done = subprocess.run([info, str(prepared.path)], check=True, capture_output=True, text=True)
    assert "ByScatter" in done.stdout
    assert "mismatch" not in done.stdout + done.stderr
