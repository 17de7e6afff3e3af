"""Directories that are not ours are never touched, and databases are only used again when they are
the ones wanted.
"""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.databases import handover, ownership, preflight
from plimsoll.databases.deleting import delete_databases
from plimsoll.databases.preflight import PreflightError
from plimsoll.documents.run_spec import RunSpec
from plimsoll.files.folder import FolderError, new_folder
from plimsoll.plan.complete import plan_of_options
from tests.support.plain_stages import outcome_of


def run_of(path: Path, **instance: Any) -> RunSpec:
    return plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": str(path)}],
            "instance": [
                {"name": "one", "backend": "raw_files", "database_size_mib": 64, **instance}
            ],
        }
    ).run


def closed(run: RunSpec, records: int) -> None:
    """What a run leaves behind."""
    handover.take(run)
    for database in run.instances[0].databases:
        (Path(run.instances[0].directory) / database.file_name).write_bytes(b"content")
    stop = {"kind": "stop", "complete": True, "databases": [[{"records_ever": records}]]}
    handover.give_back(run, outcome_of({"phases": [stop]}))


def test_storage_that_is_read_only_at_the_end_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that failed is what the run was made for; what was measured is judged."""
    run = run_of(tmp_path / "new")
    handover.take(run)
    stop = {"kind": "stop", "complete": True, "databases": [[{"records_ever": 7}]]}

    def refuse(_marker: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(handover.Marker, "write", refuse)
    (told,) = handover.give_back(run, outcome_of({"phases": [stop]}))
    assert told.startswith(run.instances[0].directory) and "read-only file system" in told.lower()


def problems(run: RunSpec) -> str:
    with pytest.raises(PreflightError) as caught:
        preflight.inspect(run)
    return "\n".join(caught.value.problems)


def test_a_new_place_is_forecast_and_nothing_is_written(tmp_path: Path) -> None:
    """Looking must not leave traces: --dry-run promises that."""
    expected = preflight.inspect(run_of(tmp_path / "new"))
    assert expected.bytes_to_prepare == 64 << 20
    assert list(tmp_path.iterdir()) == []


def test_a_warning_about_a_storage_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many databases and logs lie on it: what is said three times is read no more."""
    inspected = preflight.describe(tmp_path)
    monkeypatch.setattr(
        preflight, "describe", lambda path: replace(inspected, warnings=("it is slow",))
    )
    run = run_of(tmp_path / "new")
    two = run.instances[0].replace(name="two", log_directory=str(tmp_path / "new" / "logs"))
    found = preflight.inspect(run.replace(instances=[*run.instances, two])).warnings
    # Other tests run on the same storage meanwhile.
    assert [said for said in found if not said.startswith("another run")] == ["it is slow"]


def test_a_storage_is_looked_at_once_however_many_databases_lie_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand databases took a minute, and a hundred thousand for ever.

    Each asked the same device again.
    """
    looked_at: list[Path] = []
    describe = preflight.describe
    monkeypatch.setattr(
        preflight,
        "describe",
        lambda path: looked_at.append(path) or replace(describe(path), free_bytes=1 << 50),
    )
    run = run_of(tmp_path / "new", databases=200)
    places = {f"i{number}": str(tmp_path / f"i{number}") for number in range(5)}
    instances = [
        run.instances[0].replace(name=name, directory=place, log_directory=place)
        for name, place in places.items()
    ]
    assert preflight.inspect(run.replace(instances=instances)).bytes_to_prepare == 1000 * (64 << 20)
    assert looked_at == [tmp_path]


def test_more_files_than_may_be_open_are_told_before_any_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts come first: what is looked at one by one must be few enough to be looked at."""
    monkeypatch.setattr(preflight.open_file_limit, "too_few", lambda run: ["take fewer databases"])
    monkeypatch.setattr(preflight, "describe", lambda path: pytest.fail(f"{path} was looked at"))
    assert problems(run_of(tmp_path / "new")) == "take fewer databases"


def test_databases_that_fit_are_used_again(tmp_path: Path) -> None:
    """Preparing a terabyte takes hours; doing it twice for nothing is not acceptable."""
    closed(run_of(tmp_path), 4711)
    run = run_of(tmp_path)
    found = preflight.inspect(run)
    assert found.reused == ["one"]
    assert run == run_of(tmp_path), "the plan stays as it was"
    assert found.run.instances[0].databases[0].existing_records == 4711


def test_a_closed_marker_without_records_is_one_of_a_run_that_did_not_end(tmp_path: Path) -> None:
    """No run writes such a marker; what it names is looked at, and not taken for closed."""
    closed(run_of(tmp_path), 4711)
    replace(ownership.find_databases(tmp_path)[0], records=None).write()
    run = run_of(tmp_path)
    run = preflight.inspect(run).run
    assert run.instances[0].databases[0].existing_records is None
    assert run.instances[0].unfinished


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"page_kib": 8}, "page_bytes (32768 there, 8192 in the plan)"),
        (
            {"database_size_mib": 65},
            "size_bytes of database001.dat (67108864 there, 68157440 in the plan)",
        ),
        (
            {"log_framing": "segment_4096"},
            "log_framing (sector_512 there, segment_4096 in the plan)",
        ),
        ({"databases": 2}, "the number of databases (1 there, 2 in the plan)"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, change: dict[str, int], phrase: str) -> None:
    """Running on a database of another page size would measure something nobody asked for."""
    closed(run_of(tmp_path), 1)
    assert phrase in problems(run_of(tmp_path, **change))


def test_raw_files_left_open_are_made_anew(tmp_path: Path) -> None:
    """After a crash nobody knows what raw files hold.

    They carry our marker, so they are simply made again.
    """
    handover.take(run_of(tmp_path))
    (tmp_path / "one" / "database001.dat").write_bytes(b"half")
    run = run_of(tmp_path)
    expected = preflight.inspect(run)
    assert expected.run.instances[0].unfinished
    assert expected.prepared_anew == [str(tmp_path / "one" / "database001.dat")]
    assert (expected.bytes_to_prepare, expected.reused) == (64 << 20, [])


def test_a_database_left_open_is_recovered(tmp_path: Path) -> None:
    """What an engine left has a log, so it is used again.

    Only what has no header yet is made anew.
    """
    handover.take(run_of(tmp_path, backend="engine", databases=2))
    header = bytes(4) + bytes.fromhex("efcdab89") + bytes(64)
    (tmp_path / "one" / "database001.edb").write_bytes(header)
    (tmp_path / "one" / "database002.edb").write_bytes(bytes(4096))
    run = run_of(tmp_path, backend="engine", databases=2)
    expected = preflight.inspect(run)
    assert (expected.reused, expected.recovered) == (["one"], ["one"])
    assert expected.prepared_anew == [str(tmp_path / "one" / "database002.edb")]
    assert expected.bytes_to_prepare == 64 << 20
    assert all(
        database.existing_records is None for database in expected.run.instances[0].databases
    )


def test_a_database_that_vanished_is_named(tmp_path: Path) -> None:
    """Somebody deleted the file and left the marker: preparing in silence would hide that."""
    closed(run_of(tmp_path), 4711)
    (tmp_path / "one" / "database001.dat").unlink()
    assert "should be there and is gone" in problems(run_of(tmp_path))


def test_what_is_not_ours_is_refused_and_never_deleted(tmp_path: Path) -> None:
    """Somebody's files lie where the plan points: the one mistake that must be impossible."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "thesis.txt").write_text("years of work")
    assert "was not made by Plimsoll" in problems(run_of(tmp_path))
    with pytest.raises(FolderError, match="not deleted"):
        delete_databases(tmp_path / "one")
    assert ownership.find_databases(tmp_path) == []
    (tmp_path / "one" / ownership.MARKER).write_text(json.dumps({"kind": "something else"}))
    assert ownership.find_databases(tmp_path) == []


def test_too_little_space_is_seen_before_writing(tmp_path: Path) -> None:
    """Filling somebody's file system to the brim helps nobody."""
    assert "MiB free" in problems(run_of(tmp_path, database_size_mib=64 * 1024 * 1024))
    assert list(tmp_path.iterdir()) == []


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    """A file where a directory should be, and no space: one round of correction."""
    (tmp_path / "file").write_text("")
    text = problems(run_of(tmp_path / "file", database_size_mib=64 * 1024 * 1024))
    assert "is a file" in text
    assert "MiB free" in text


def test_clean_removes_what_is_ours(tmp_path: Path) -> None:
    """And the log directory with it, when it lies elsewhere."""
    run = run_of(tmp_path)
    closed(run, 1)
    (marker,) = ownership.find_databases(tmp_path)
    assert delete_databases(marker.directory) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_is_never_overwritten_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of last week must survive this week's run."""
    monkeypatch.chdir(tmp_path)
    assert new_folder("demo", None) != new_folder("demo", None)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="nothing is overwritten"):
        new_folder("demo", foreign)
    named = new_folder("demo", tmp_path / "named")
    (named / "plan.json").write_text('{"schema_version": 1, "run": {}}')
    (named / "verdict.json").write_text("{}")
    (named / "gaps.json").write_text("{}")
    with pytest.raises(FolderError, match="holds an earlier run"):
        new_folder("demo", tmp_path / "named")
    assert sorted(path.name for path in named.iterdir()) == [
        "gaps.json",
        "plan.json",
        "verdict.json",
    ]


def test_of_two_runs_that_make_the_same_databases_one_is_refused(tmp_path: Path) -> None:
    """Both found nothing there; the second said that the storage had failed: a file existed."""
    first, second = (preflight.inspect(run_of(tmp_path)) for _ in range(2))
    with (
        preflight.kept(first),
        pytest.raises(FolderError, match="belongs to another run"),
        preflight.kept(second),
    ):
        pass
    with preflight.kept(first):
        closed(first.run, 7)
    with pytest.raises(FolderError, match="was changed by another run"), preflight.kept(second):
        pass
    with preflight.kept(preflight.inspect(run_of(tmp_path))):
        pass


def test_every_place_that_may_not_be_looked_into_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's words came out of the API as they are, and the path "did not exist"."""
    locked = tmp_path / "locked"
    real = os.stat

    def stat(path: Any, *more: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(str(locked)):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *more, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "lstat", stat)
    monkeypatch.delenv("PLIMSOLL_CREATE", raising=False)
    with pytest.raises(preflight.PreflightError) as raised:
        preflight.inspect(run_of(locked))
    assert "may not be looked into by this user" in str(raised.value)
    assert "does not exist" not in str(raised.value)


def test_files_that_were_made_without_verification_are_used_by_leaving_it_out(
    tmp_path: Path,
) -> None:
    """A user adds `verify` for a checksum phase, and must not be sent to delete a terabyte."""
    for there, wanted, way in (
        (False, True, "remove verify"),
        (True, False, "write verify = true"),
    ):
        place = tmp_path / str(there)
        files = [
            plan_of_options(
                {
                    "target": [{"name": "disk", "path": str(place)}],
                    "instance": [{"name": "share", "backend": "files", "verify": verify}],
                }
            ).run
            for verify in (there, wanted)
        ]
        closed(files[0], 1)
        found = problems(files[1])
        assert f"files are verified from when they are made: {way} to use these" in found


def files_of(path: Path, **instance: Any) -> RunSpec:
    return plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": str(path)}],
            "instance": [{"name": "one", "backend": "files", "file_mib": 1, **instance}],
        }
    ).run


def test_files_of_another_content_are_not_used_again(tmp_path: Path) -> None:
    """Why: files of one repeated byte, which storage that compresses reads for nothing, were
    measured as random ones.
    """
    closed(files_of(tmp_path, data_pattern=0), 2048)
    assert "data_pattern (0 there, 2 in the plan)" in problems(files_of(tmp_path))
    assert preflight.inspect(files_of(tmp_path, data_pattern=0)).reused == ["one"]


def test_files_with_holes_are_not_used_again(tmp_path: Path) -> None:
    """Whoever copies files or frees space can leave some; no read of a hole reaches the storage."""
    run = files_of(tmp_path)
    closed(run, 2048)
    file = Path(run.instances[0].directory) / "file001.dat"
    file.write_bytes(b"x" * (1 << 20))
    assert preflight.inspect(files_of(tmp_path)).reused == ["one"]
    with file.open("r+b") as open_file:
        open_file.truncate(1 << 18)
        open_file.truncate(1 << 20)
    assert f"{file} has a hole at byte 262144" in problems(files_of(tmp_path))


def test_files_that_users_hold_open_are_counted() -> None:
    """Why: a thousand users whom the storage let wait ended the run with too many open files."""
    run = plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "homes", "backend": "home_folders"}],
            "workload": [{"name": "users", "load": {"users": 3000}}],
        }
    ).run
    assert preflight.open_file_limit.needed_count(run) > 6000
