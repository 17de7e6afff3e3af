"""Programs written by others read what the engine leaves, after it has changed a database at random
and stopped cleanly.

A prepared database is regular; one that was worked on has split and merged pages, removed nodes,
moved extents and values of every length. The rows it must hold are told by the program that changed
it, from its own account; readers are those of `test_prepared_databases.py`."""

import csv
import json
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import prepared_content as content
from tests.support.rust_examples import example

ROOT = Path(__file__).parents[2]
SEED = 11
DATABASE = 2
RECORD_COLUMNS = ("Number", "Scatter", "Version", "Size", "Check", "ShortPad", "LongPad")

#: Page size and number of changes; the many are what is promised, the few show a mistake at once.
CHANGED = [
    *(pytest.param((size, 1_200), id=f"{size // 1024}k") for size in (4096, 8192, 16384, 32768)),
    *(
        pytest.param((size, 100_000), id=f"{size // 1024}k-many", marks=pytest.mark.slow)
        for size in (4096, 8192, 16384, 32768)
    ),
]


@dataclass(frozen=True)
class Changed:
    path: Path
    versions: dict[int, int]
    messages: list[dict[str, Any]]


@pytest.fixture(scope="module", params=CHANGED)
def changed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Changed]:
    page_bytes, changes = request.param
    folder = tmp_path_factory.mktemp("changed")
    # Without optimization the many take ten minutes.
    program = example("changed_file", *(["--release"] if changes > 10_000 else []))
    command = [program, folder / "changed.edb", str(page_bytes)]
    command += [f"changes={changes}", f"seed={SEED}"]
    done = subprocess.run(
        [*command, f"database={DATABASE}"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    told = json.loads(done.stdout)
    versions = {int(number): version for number, version in told["versions"].items()}
    assert any(versions.values()), "some records were replaced"
    yield Changed(
        folder / "changed.edb",
        versions,
        sorted(told["messages"], key=lambda message: int(message["id"])),
    )
    shutil.rmtree(folder)


def check_records(rows: Iterator[tuple[Any, ...]], changed: Changed) -> None:
    """Every record is there in its last version, with the content that follows from seed, number
    and version.
    """
    found = {}
    for number, _, version, size, check, short_pad, long_pad in rows:
        found[number] = version
        assert size == len(short_pad) + len(long_pad)
        assert check == content.check_sum(short_pad, long_pad), f"record {number}"
        assert long_pad == content.long_pad(SEED, DATABASE, number, version, len(long_pad)), (
            f"record {number}"
        )
    assert found == changed.versions


def message(number: int, folder: int, name: str, body: bytes) -> dict[str, Any]:
    return {
        "id": number,
        "folder": folder,
        "name": name,
        "bytes": len(body),
        "crc": zlib.crc32(body),
    }


def test_dissect_reads_what_the_engine_left(changed: Changed) -> None:
    esedb = pytest.importorskip("dissect.esedb", reason="dissect.esedb is not installed")
    with changed.path.open("rb") as file:
        database = esedb.EseDB(file)
        records = database.table("PlimsollMail").records()
        check_records(
            (tuple(record.get(name) for name in RECORD_COLUMNS) for record in records), changed
        )
        columns = ("Id", "Folder", "Name", "Body")
        rows = [
            tuple(record.get(name) for name in columns)
            for record in database.table("Messages").records()
        ]
    found = [message(number, folder, name, body or b"") for number, folder, name, body in rows]
    assert found == changed.messages


def test_dissect_finds_messages_by_their_names(changed: Changed) -> None:
    esedb = pytest.importorskip("dissect.esedb", reason="dissect.esedb is not installed")
    with changed.path.open("rb") as file:
        index = esedb.EseDB(file).table("Messages").index("ByName")
        for expected in changed.messages[:: max(1, len(changed.messages) // 50)]:
            assert index.search(Name=expected["name"]).get("Id") == expected["id"]


def test_libesedb_reads_what_the_engine_left(changed: Changed) -> None:
    pyesedb = pytest.importorskip("pyesedb", reason="libesedb-python is not installed")
    file = pyesedb.file()
    file.open(str(changed.path))
    try:
        tables = [file.get_table_by_name(name) for name in ("PlimsollMail", "Messages")]
        records, rows = (
            [table.get_record(at) for at in range(table.number_of_records)] for table in tables
        )
        numbers = [tuple(number_of(record, column) for column in range(5)) for record in records]
        pads = [(data_of(record, 5) or b"", data_of(record, 6) or b"") for record in records]
        check_records((left + right for left, right in zip(numbers, pads, strict=True)), changed)
        found = [
            message(
                number_of(row, 0),
                number_of(row, 1),
                (data_of(row, 2) or b"").decode(),
                data_of(row, 3) or b"",
            )
            for row in rows
        ]
        assert found == changed.messages
    finally:
        file.close()


def number_of(record: Any, column: int) -> int:
    return int.from_bytes(record.get_value_data(column), "little", signed=True)


def data_of(record: Any, column: int) -> bytes | None:
    if record.is_long_value(column):
        value: bytes = record.get_value_data_as_long_value(column).get_data()
        return value
    plain: bytes | None = record.get_value_data(column)
    return plain


def test_esedbexport_reads_what_the_engine_left(changed: Changed, tmp_path: Path) -> None:
    export = shutil.which("esedbexport")
    if export is None:
        pytest.skip("esedbexport (Debian package libesedb-utils) is not installed")
    command = [export, "-v", "-t", str(tmp_path / "out"), str(changed.path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "mismatch" not in done.stdout + done.stderr, "a checksum was found wrong"
    records = exported(tmp_path / "out.export", "PlimsollMail")
    pads = [[bytes.fromhex(row[name]) for name in ("ShortPad", "LongPad")] for row in records]
    # This reader prints the signed type without its sign.
    checks = [int(row["Check"]) - (1 << 64 if int(row["Check"]) >> 63 else 0) for row in records]
    rows = zip(records, checks, pads, strict=True)
    numbers = ("Number", "Scatter", "Version", "Size")
    check_records(
        ((*(int(row[name]) for name in numbers), check, *pad) for row, check, pad in rows), changed
    )
    found = [
        message(int(row["Id"]), int(row["Folder"]), row["Name"], bytes.fromhex(row["Body"]))
        for row in exported(tmp_path / "out.export", "Messages")
    ]
    # It prints values that lie in the record and leaves those out that lie apart, so they count as
    # empty here.
    in_record = [message if message["bytes"] else {"bytes": 0, "crc": 0} for message in found]
    assert found == [
        expected | seen for expected, seen in zip(changed.messages, in_record, strict=True)
    ]
    assert sum(1 for seen in found if seen["bytes"]) > len(found) // 3


def exported(folder: Path, table: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 20)
    (file,) = folder.glob(f"{table}.*")
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def test_esedbinfo_accepts_what_the_engine_left(changed: Changed) -> None:
    info = shutil.which("esedbinfo")
    if info is None:
        pytest.skip("esedbinfo (Debian package libesedb-utils) is not installed")
    done = subprocess.run([info, str(changed.path)], check=True, capture_output=True, text=True)
    assert "ByFolder" in done.stdout and "Messages" in done.stdout
    assert "mismatch" not in done.stdout + done.stderr
