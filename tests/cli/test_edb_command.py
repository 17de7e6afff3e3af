"""`plimsoll edb ls` and `export`.

Every table of every database, whoever made it, and clear words where there is none.
"""

import csv
import fcntl
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll import _native
from tests.support import edb_databases as databases
from tests.support.edb_databases import edb, golden, manifest_of, real, refused
from tests.support.warm_program import run_warm

PAGE = 4096
PIECE_BYTES_MAX = 160 * 1024


def test_tables_of_windows_databases_have_the_rows_of_the_manifest(tmp_path: Path) -> None:
    """Two other readers agree on these numbers."""
    for path, entry in real(tmp_path):
        dirty = [] if entry["dbstate"] == "CleanShutdown" else ["--dirty"]
        found = json.loads(edb("ls", path, "--count", "--json", *dirty).stdout)
        assert {table["name"]: table["rows"] for table in found["tables"]} == entry[
            "dissect_record_counts"
        ]
        assert found["page_bytes"] == entry["page_size"]


def test_every_table_of_windows_databases_is_exported_whole(tmp_path: Path) -> None:
    """Counting rows reads no values; exporting reads every one, the long and the compressed too."""
    for path, entry in real(tmp_path):
        dirty = entry["dbstate"] != "CleanShutdown"
        for table, rows in entry["pyesedb_record_counts"].items():
            lines = b"".join(pieces(path, table, "json", dirty)).decode().splitlines()
            assert len([json.loads(line) for line in lines]) == rows
            cells = list(
                csv.reader(io.StringIO(b"".join(pieces(path, table, "csv", dirty)).decode()))
            )
            assert len(cells) == rows + 1
            assert {len(row) for row in cells} == {len(cells[0])}


def test_page_classes_of_windows_databases_are_those_of_the_manifest(tmp_path: Path) -> None:
    """The page counts of the checksum pass, as the user sees them."""
    for path, entry in real(tmp_path):
        result = run_warm(["verify", str(path), "--json"], tmp_path)
        (file,) = json.loads(result.stdout)["files"]
        sound = entry["pages"]["ok"] + entry["pages"]["uninitialized"]
        assert (file["pages_seen"], file["uninitialized"]) == (
            sound,
            entry["pages"]["uninitialized"],
        )
        assert (file["bad"], file["correctable"], file["wrong_page_number"]) == (0, 0, 0)


def pieces(path: Path, table: str, form: str, dirty: bool = False) -> list[bytes]:
    text = _native.TableText(path, table, form, dirty)
    taken = []
    while (piece := text.next_piece()) is not None:
        taken.append(piece)
    return taken


@pytest.mark.parametrize("name", ["syn4k.edb", "syn8k.edb", "syn16k.edb", "syn32k.edb"])
def test_every_body_of_every_page_size_fits_its_digest(name: str, tmp_path: Path) -> None:
    """Each row carries the SHA-1 of its body, so that a byte lost on the way would show."""
    path = golden(name, tmp_path)
    result = edb("export", path, "--table", "PlimsollMail", "--format", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == manifest_of(name)["rows"]
    for row in rows:
        assert hashlib.sha1(bytes.fromhex(row["body"] or "")).hexdigest() == row["digest"]
        assert row["subject"] == f"Message {row['id']} é中"
    assert f"{len(rows):,} rows of PlimsollMail" in result.stderr


def test_csv_says_the_same_as_json(tmp_path: Path) -> None:
    """Quotation marks, commas and nulls must survive both."""
    path = golden("syn4k.edb", tmp_path)
    out = tmp_path / "mail.csv"
    assert edb("export", path, "-t", "PlimsollMail", "--out", out).returncode == 0
    with out.open(newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    lines = [
        json.loads(line)
        for line in b"".join(pieces(path, "PlimsollMail", "json")).decode().splitlines()
    ]
    assert len(cells) == len(lines)
    assert cells == [{name: in_a_cell(value) for name, value in line.items()} for line in lines]


def in_a_cell(value: object) -> str:
    """A JSON value as CSV spells it."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def test_long_values_leave_in_small_pieces(tmp_path: Path) -> None:
    """A value may be 2 GiB long: what is held at a time must not depend on it."""
    path = golden("syn32k_bigLV.edb", tmp_path)
    taken = pieces(path, "PlimsollMail", "json")
    rows = [json.loads(line) for line in b"".join(taken).decode().splitlines()]
    assert max(len(row["body"] or "") for row in rows) > 128 * 1024, "or this test shows nothing"
    assert max(map(len, taken)) < PIECE_BYTES_MAX
    for row in rows:
        assert hashlib.sha1(bytes.fromhex(row["body"] or "")).hexdigest() == row["digest"]


def test_all_tables_are_exported_in_one_call(tmp_path: Path) -> None:
    """Fourteen tables took half a minute in fourteen processes, and a script to find their
    names.
    """
    path = golden("syn4k.edb", tmp_path)
    out = tmp_path / "tables"
    result = edb("export", path, "--all", "--out", out)
    assert result.returncode == 0, result.stderr
    names = [table["name"] for table in json.loads(edb("ls", path, "--json").stdout)["tables"]]
    assert sorted(file.name for file in out.iterdir()) == sorted(f"{name}.csv" for name in names)
    one = edb("export", path, "-t", "PlimsollMail")
    assert (out / "PlimsollMail.csv").read_text() == one.stdout
    refused(edb("export", path, "--all", "--out", out), "nothing is overwritten")
    refused(edb("export", path, "--all"), "name a directory")
    refused(edb("export", path), "name one table with --table, or all of them with --all")
    refused(
        edb("export", path, "--all", "-t", "PlimsollMail"),
        "name one table with --table, or all of them",
    )


def test_a_damaged_table_does_not_keep_the_others_from_being_exported(tmp_path: Path) -> None:
    """Who exports a damaged database wants what is left of it."""
    path = golden("syn4k.edb", tmp_path)
    whole = edb("export", path, "-t", "PlimsollMail").stdout
    content = bytearray(path.read_bytes())
    place = content.find(b"user00", 40 * PAGE)
    content[place : place + 600] = bytes(600)
    path.write_bytes(content)
    out = tmp_path / "tables"
    result = edb("export", path, "--all", "--format", "json", "--out", out)
    assert result.returncode == 1, result.stderr
    assert "1 of 5 tables could not be written whole" in result.stderr
    assert (out / "MSysObjects.json").stat().st_size > 1000
    assert (out / "PlimsollMail.json").stat().st_size < len(whole) * 3


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """Each mistake has its own words, nothing is left behind, and no mistake is a crash."""
    path = golden("syn4k.edb", tmp_path)
    out = tmp_path / "out.csv"
    refused(edb("export", path, "-t", "Nothing", "--out", out), 'no table "Nothing"')
    assert not out.exists()
    out.write_text("mine")
    refused(edb("export", path, "-t", "PlimsollMail", "--out", out), "nothing is overwritten")
    assert out.read_text() == "mine"
    refused(edb("export", path, "-t", "No//thing/"), 'no table "No//thing/"')
    refused(edb("export", path, "-t", os.fsdecode(b"\xff\xfe")), r"has no table \xff\xfe")
    refused(edb("ls", tmp_path / "missing.edb"), "no such file")
    refused(edb("ls", tmp_path), "neither a file nor a block device")
    (tmp_path / "notes").write_text("notes " * 5000)
    refused(edb("ls", tmp_path / "notes"), "does not begin like an ESE database")
    (tmp_path / "empty").write_bytes(b"")
    refused(edb("ls", tmp_path / "empty"), "ends inside its header")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes to would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    refused(edb("ls", tmp_path / "pipe"), "neither a file nor a block device")


def test_a_damaged_page_ends_the_export_and_is_named(tmp_path: Path) -> None:
    """What was read before it is given, what is behind it is not made up, and scripts can tell by
    the exit code.
    """
    path = golden("syn4k_deep.edb", tmp_path)
    whole = edb("export", path, "-t", "PlimsollMail").stdout
    with path.open("r+b") as file:
        for page in range(100, 2000):
            file.seek((page + 1) * PAGE + 200)
            file.write(b"destroyed")
    result = edb("export", path, "-t", "PlimsollMail")
    refused(result, "is damaged", code=1)
    assert whole.startswith(result.stdout)
    assert len(result.stdout) < len(whole)
    # The other tables are still there for whoever looks what is left.
    listed = edb("ls", path, "--count")
    assert listed.returncode == 1
    lines = {line.split(":")[0].strip(): line for line in listed.stdout.splitlines()[1:]}
    assert "not counted" in lines["PlimsollMail"] and "is damaged" in lines["PlimsollMail"]
    assert " rows, " in lines["MSysObjects"]


def test_closed_streams_are_none_to_write_into(tmp_path: Path) -> None:
    """The next file that is opened would get the number of the closed stream, and with it every
    message.
    """
    path = golden("syn4k.edb", tmp_path)
    before = path.read_bytes()
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"):
        command = (
            f"exec {sys.executable} -m plimsoll.cli edb export {path} -t PlimsollMail {closed}"
        )
        result = subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False, timeout=60
        )
        assert result.returncode == 0, (closed, result.stderr)
        assert "Traceback" not in result.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("length", [1, 4096, 8192, 8193, 20_000, 130_000])
def test_a_cut_off_database_is_an_error(length: int, tmp_path: Path) -> None:
    """Copies break off; wherever they do, it is said."""
    path = golden("syn4k.edb", tmp_path)
    os.truncate(path, length)
    result = edb("export", path, "-t", "PlimsollMail")
    assert result.returncode in (1, 2), result.stdout
    assert "error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_database_in_use_is_read_only_on_request(tmp_path: Path) -> None:
    """Its pages may be from different moments; whoever reads it all the same has to say so."""
    path = golden("syn4k.edb", tmp_path)
    for offset in (0, PAGE):
        set_state(path, offset, 2)
    refused(edb("ls", path), "was not shut down cleanly (-550)")
    assert edb("ls", path, "--dirty").returncode == 0
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for command in (("ls",), ("export", "--all", "--out", tmp_path / "all")):
            refused(edb(command[0], path, *command[1:]), "another process has it open")


def set_state(path: Path, offset: int, state: int) -> None:
    """Change the state in a copy of the header, with the checksum that belongs to it."""
    with path.open("r+b") as file:
        file.seek(offset)
        header = bytearray(file.read(PAGE))
        header[52] = state
        checksum = 0x89ABCDEF
        for place in range(4, PAGE, 4):
            checksum ^= int.from_bytes(header[place : place + 4], "little")
        header[:4] = checksum.to_bytes(4, "little")
        file.seek(offset)
        file.write(header)


def test_a_reader_that_goes_away_ends_the_export(tmp_path: Path) -> None:
    """`| head` is how people look at a table first."""
    path = golden("syn32k_deep.edb", tmp_path)
    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "edb",
        "export",
        str(path),
        "-t",
        "PlimsollMail",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=60)
        assert b"Traceback" not in process.stderr.read()


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """The only copy of somebody's mail may be what is read here."""
    path = golden("syn16k.edb", tmp_path)
    before = path.read_bytes()
    path.chmod(0o444)
    assert edb("ls", path, "--count", "--columns").returncode == 0
    assert edb("export", path, "-t", "PlimsollMail").returncode == 0
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_the_words_of_the_listing(tmp_path: Path) -> None:
    """What a person looks for first.

    Names, rows, columns, and what belongs to the format itself.
    """
    shown = edb("ls", golden("syn4k.edb", tmp_path), "--count", "--columns").stdout
    assert "format 0x620,0x14" in shown
    assert f"PlimsollMail: {databases.manifest_of('syn4k.edb')['rows']:,} rows" in shown
    assert "MSysObjects: " in shown
    assert ", system" in shown
    assert "long binary" in shown
