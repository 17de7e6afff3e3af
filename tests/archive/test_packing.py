"""`plimsoll pack` and `unpack`.

What a receiver can check, and what must not be found in what he gets.
"""

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll.archive.archive import MANIFEST
from plimsoll.archive.pseudonyms import Names
from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.run.pending_undo import pending_of

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
SECRETS = {
    "host": "mailstore7.corp.example.org",
    "short host": "mailstore7",
    "serial": "S4EVNX0N123456",
    "user": "jdoe",
    "directory": "projekt-aurora",
    "address": "10.20.30.41",
    "second address": "2001:db8:77::12",
    "adapter": "52:54:00:ab:cd:ef",
    "filer": "filer-basel",
}


def planted(home: Path) -> Path:
    """The golden run as a customer's machine would have left it.

    Names in every file, also in sentences.
    """
    shutil.copytree(GOLDEN, home)
    (home / "report-without-scripts.html").unlink()
    place = f"/home/{SECRETS['user']}/{SECRETS['directory']}/array"
    for path in home.iterdir():
        if path.suffix in (".json", ".log"):
            path.write_text(
                path.read_text()
                .replace("/srv/array", place)
                .replace('"example"', f'"{SECRETS["serial"]}"')
            )
    environment = folder.read_json(home / folder.ENVIRONMENT)
    environment["machine"]["host_name"] = SECRETS["host"]
    environment["network"] = [{"name": "eth0", "driver": f"virtio {SECRETS['adapter']}"}]
    environment["targets"][0]["file_system"]["source"] = (
        f"{SECRETS['filer']}:/export/{SECRETS['directory']}"
    )
    environment["warnings"].append(
        f"{SECRETS['filer']} at {SECRETS['address']} answers for {SECRETS['short host'].upper()}"
    )
    folder.write_json(home / folder.ENVIRONMENT, environment)
    with (home / folder.EVENTS).open("a") as log:
        event = {"time_ns": 1, "utc_ns": 1, "level": "warning", "kind": "note", "phase": None}
        text = (
            f"{place}/x on {SECRETS['host']} ({SECRETS['second address']}), adapter "
            f"{SECRETS['adapter'].upper()}"
        )
        log.write(json.dumps(event | {"text": text}) + "\n")
    (home / "notes.toml").write_text(
        f'array = "disk {SECRETS["serial"]} in {SECRETS["short host"]}, {SECRETS["address"]}"\n'
    )
    (home / folder.TERMINAL).write_text(f"run folder: {place}/runs/{SECRETS['user']}\n")
    samples = home / folder.SAMPLES
    with duckdb.connect() as database:
        database.execute(
            f"CREATE TABLE t AS SELECT * REPLACE ('{SECRETS['host']}' AS host) FROM "
            f"read_parquet('{samples}')"
        )
        database.execute(f"COPY t TO '{samples}' (FORMAT parquet)")
    assert run_program(["report", str(home)]) in (0, 1, 3)
    return home


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}  # type: ignore[union-attr]


def texts(archive: Path) -> dict[str, str]:
    """Everything in an archive as text, tables too; in pages, breaks inside names are taken out."""
    found = {}
    for name, content in members(archive).items():
        if name.endswith(".parquet"):
            path = archive.parent / "table.parquet"
            path.write_bytes(content)
            with duckdb.connect() as database:
                columns = [
                    row[0]
                    for row in database.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
                    if row[1] == "VARCHAR"
                ]
                rows = [
                    database.execute(f"SELECT DISTINCT \"{column}\" FROM '{path}'").fetchall()
                    for column in columns
                ]
            found[name] = str(rows) + content.decode("latin-1")
        else:
            found[name] = re.sub(r"<wbr>", "", content.decode("utf-8"))
    return found


@pytest.fixture(scope="module")
def redacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("redacted")
    planted(home / SECRETS["short host"])
    archive = home / "sent.tar.gz"
    assert (
        run_program(["pack", str(home / SECRETS["short host"]), "--redact", "--out", str(archive)])
        == 0
    )
    return archive


@pytest.mark.parametrize("name", list(SECRETS.values()))
def test_no_original_is_found_anywhere(redacted: Path, name: str) -> None:
    """In no file, in no case of letters, in no table, not even in the names of the members."""
    found = texts(redacted)
    assert not any(name.lower() in member.lower() for member in found)
    assert [member for member, text in found.items() if name.lower() in text.lower()] == []


def test_the_originals_were_there_and_everything_still_is(redacted: Path) -> None:
    """The search above can find something, and redaction loses no file."""
    home = redacted.parent / SECRETS["short host"]
    archive = redacted.parent / "plain.tar.gz"
    assert run_program(["pack", str(home), "--out", str(archive)]) == 0
    plain = "".join(texts(archive).values())
    assert all(name.lower() in plain.lower() for name in SECRETS.values())
    assert {name.partition("/")[2] for name in members(archive)} == {
        name.partition("/")[2] for name in members(redacted)
    }


def test_the_same_name_has_the_same_pseudonym(redacted: Path) -> None:
    """A reader must still see that two lines speak of the same host, disk and directory."""
    found = {name.partition("/")[2]: text for name, text in texts(redacted).items()}
    environment = json.loads(found[folder.ENVIRONMENT])
    host, serial = (
        environment["machine"]["host_name"],
        environment["targets"][0]["device"]["serial"],
    )
    assert host in found[folder.EVENTS]
    assert host in found[folder.SAMPLES]
    assert serial in found["notes.toml"]
    assert environment["network"][0]["driver"].removeprefix("virtio ") in found[folder.EVENTS]
    path = json.loads(found[folder.PLAN])["run"]["targets"][0]["path"]
    assert path in found[folder.REPORT]
    assert path == environment["targets"][0]["path"]


def test_a_redacted_run_is_still_a_run(redacted: Path, tmp_path: Path) -> None:
    """Figures are what it is sent for: report and comparison work, and no figure has changed."""
    assert run_program(["unpack", str(redacted), "--to", str(tmp_path / "got")]) == 0
    before = folder.read_json(redacted.parent / SECRETS["short host"] / folder.SUMMARY)["total"]
    assert folder.read_json(tmp_path / "got" / folder.SUMMARY)["total"] == before
    code = run_program(["report", str(tmp_path / "got")])
    assert code in (0, 1, 3)
    assert folder.read_json(tmp_path / "got" / folder.SUMMARY)["total"] == before


def test_names_by_their_form() -> None:
    """What is an address or a path, and what only looks like one."""
    names = Names()
    untouched = (
        "12:30:45 UTC, 1.5 reads/s and/or I/O, version 14.01.0180.003, 127.0.0.1, a/b, </td>"
    )
    assert names.redacted(untouched) == untouched
    assert names.redacted("at 192.168.1.1 and fe80::1") == "at ip-1 and ip-2"
    assert (
        names.redacted("/srv/kunde/db1 and /srv/kunde/db2")
        == "/srv/dir-1/dir-2 and /srv/dir-1/dir-3"
    )
    assert names.redacted("/dev/nvme0n1, /dev/sda1") == "/dev/nvme0n1, /dev/sda1"
    assert names.redacted("std::fs failed, engine::run") == "std::fs failed, engine::run"
    assert names.redacted(r"E:\Kunde\DB.edb") == r"E:\dir-4\dir-5"


def test_words_of_the_plan_stay_unless_they_are_names() -> None:
    """Figures hang on the names of instances.

    An instance called like its host would give the host away.
    """
    names = Names()
    names.learn({"host_name": "mailstore7"})
    names.kept = {"instance1", "mailstore7"}
    assert names.redacted("instance1") == "instance1"
    assert names.redacted("/srv/mailstore7/instance1/x") == "/srv/host-1/instance1/dir-1"
    assert names.redacted("mailstore7") == "host-1"


def test_what_is_pending_names_no_machine() -> None:
    """A run folder that is still degraded says on which machine it is undone."""
    pending = pending_of("path", ["true"], 9, (), None).replace(
        machine_id="0a1b2c3d4e5f60718293a4b5c6d7e8f9", host_name="array-test-2"
    )
    names = Names()
    names.learn(pending.plain())
    told = names.redacted(json.dumps(pending.plain()))
    for secret in (pending.machine_id, pending.host_name, pending.boot_id):
        assert secret and secret not in told


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "run")
    assert run_program(["pack", str(tmp_path / "run")]) == 0
    return tmp_path / "run.plimsoll.tar.gz"


def test_any_receiver_can_check_it(archive: Path, tmp_path: Path) -> None:
    """ORC-09: With two programs that every system has, and with ours.

    The same folder gives the same bytes.
    """
    (tmp_path / "theirs").mkdir()
    subprocess.run(["tar", "xf", archive], cwd=tmp_path / "theirs", check=True)
    subprocess.run(
        ["sha256sum", "--quiet", "-c", MANIFEST], cwd=tmp_path / "theirs" / "run", check=True
    )
    assert run_program(["unpack", str(archive), "--check"]) == 0
    again = tmp_path / "again.tar.gz"
    assert run_program(["pack", str(tmp_path / "run"), "--out", str(again)]) == 0
    assert again.read_bytes() == archive.read_bytes()


def rewritten(archive: Path, change: Any) -> Path:
    """An archive with members changed by hand.

    `change` takes and returns a list of (TarInfo, bytes).
    """
    with tarfile.open(archive) as opened:
        content = [(member, opened.extractfile(member).read()) for member in opened]  # type: ignore[union-attr]
    target = archive.with_name("changed.tar.gz")
    with tarfile.open(target, "w:gz") as written:
        for member, data in change(content):
            member.size = len(data)
            written.addfile(member, io.BytesIO(data))
    return target


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            lambda all_: [(m, d + b" " if m.name.endswith("summary.json") else d) for m, d in all_],
            1,
            "summary.json was changed",
        ),
        (
            lambda all_: [pair for pair in all_ if not pair[0].name.endswith("plan.json")],
            1,
            "plan.json is in the manifest, but not",
        ),
        (lambda all_: [*all_, (member("run/extra"), b"x")], 1, "extra is not in the manifest"),
        (
            lambda all_: [*all_, (member("run/../../evil"), b"x")],
            2,
            "is no plain file below one folder",
        ),
        (lambda all_: [*all_, (member("/etc/evil"), b"x")], 2, "is no plain file below one folder"),
        (
            lambda all_: [*all_, (member("run/link", tarfile.SYMTYPE, "/etc/passwd"), b"")],
            2,
            "is no plain file below one folder",
        ),
        (lambda all_: [*all_, all_[-1]], 2, "is there twice"),
        (lambda all_: all_[1:], 2, f"holds no {MANIFEST}"),
        (
            lambda all_: [(m, b"nonsense" if m.name.endswith(MANIFEST) else d) for m, d in all_],
            2,
            "expected a SHA-256 sum",
        ),
    ],
)
def test_what_was_changed_is_named_and_nothing_is_left(
    archive: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Any,
    code: int,
    message: str,
) -> None:
    """A changed archive is no evidence, and a hostile one must not write anywhere."""
    bad = rewritten(archive, change)
    before = {path.name for path in tmp_path.iterdir()}
    assert run_program(["unpack", str(bad), "--to", str(tmp_path / "got")]) == code
    assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == before


def test_damaged_archives_are_refused(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut off, or something else altogether."""
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    (tmp_path / "text.tar.gz").write_text("hello")
    for name in ("cut.tar.gz", "text.tar.gz"):
        assert run_program(["unpack", str(tmp_path / name), "--check"]) == 2
        assert "is no whole archive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pack", "gone"], "does not exist"),
        (["pack", "file"], "is a file"),
        (["pack", "empty"], "holds no run"),
        (["unpack", "gone"], "does not exist"),
        (["unpack", "empty"], "is a folder"),
    ],
)
def test_wrong_places_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """A sentence and exit code 2."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    Path("empty").mkdir()
    assert run_program(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_file_is_not_redacted_blindly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody can read may hold any name, so the archive is not written."""
    shutil.copytree(GOLDEN, tmp_path / "run")
    (tmp_path / "run" / folder.SUMMARY).write_text('{"host')
    assert run_program(["pack", str(tmp_path / "run"), "--redact"]) == 2
    assert "cannot be redacted" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_manifest_is_of_what_is_there(archive: Path) -> None:
    """Every file once, with its own sum."""
    found = members(archive)
    manifest = dict(
        line.split("  ")[::-1] for line in found[f"run/{MANIFEST}"].decode().splitlines()
    )
    assert manifest == {
        name.removeprefix("run/"): hashlib.sha256(data).hexdigest()
        for name, data in found.items()
        if not name.endswith(MANIFEST)
    }
