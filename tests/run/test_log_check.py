"""A crash needs the log: where databases are read back, so are the logs, the checkpoint and the
flush maps beside them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll
from tests.support.report_page import Page

SHORT = (
    "--databases",
    "1",
    "--size-mib",
    "64",
    "--cache-mib",
    "8",
    "--minutes",
    "0.1",
    "--limit",
    "database_iops>0",
)


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the databases and the run folder of a short performance test, which ends
    with a checksum.
    """
    for _ in range(12):
        home = tmp_path_factory.mktemp("tested")
        answer = plimsoll(
            "test",
            "performance",
            home / "disk",
            *SHORT,
            "--yes",
            "--quiet",
            "--out",
            home / "run",
            cwd=home,
        )
        assert (home / "run" / folder.OUTCOME).exists(), answer.stderr
        # How many are left depends on how far the checkpoint was behind when the load ended.
        if len(closed_generations(home / "disk" / "instance1")) >= 4:
            break
    return home


def closed_generations(instance: Path) -> list[Path]:
    return sorted(path for path in instance.glob("E0*.log") if len(path.stem) == 11)


@pytest.fixture
def instance(tested: Path) -> Iterator[Path]:
    """The directory of the instance, which is put right again afterwards."""
    found = tested / "disk" / "instance1"
    before = {
        path: path.read_bytes()
        for path in found.iterdir()
        if path.suffix in (".log", ".chk", ".jfm", ".json")
    }
    yield found
    for path, content in before.items():
        path.write_bytes(content)


def check_of(verdict: Any) -> Any:
    return next(check for check in verdict["checks"] if check["name"] == "log_files")


def checksum(instance: Path, out: Path) -> tuple[int, Any]:
    answer = plimsoll(
        "test",
        "checksum",
        instance.parent,
        "--quiet",
        "--json",
        "--out",
        out,
        "--yes",
        cwd=out.parent,
    )
    assert answer.stdout, answer.stderr
    return answer.returncode, json.loads(answer.stdout)


def spoil(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0xFF]))


def test_a_test_that_ends_with_a_checksum_verifies_the_log_as_well(tested: Path) -> None:
    """Published reliability tests claim it of both; the report gives the evidence."""
    run = tested / "run"
    (found,) = folder.read_json(run / folder.LOG_CHECK)["instances"]
    assert found["logs_count"] >= 1 and found["log_bytes"] == found["logs_count"] << 20
    assert (found["last_log"], found["checkpoints_count"], found["flush_maps_count"]) == (
        "E00.log",
        1,
        1,
    )
    assert (found["findings"], found["unread"]) == ([], None)
    check = check_of(folder.read_json(run / folder.VERDICT))
    assert (check["status"], check["scope"]) == ("pass", "instance1")
    assert (
        check["reason"].startswith("no errors in the log checksum: ")
        and "E00.log" in check["reason"]
    )
    table = Page(run / folder.REPORT).tables["Integrity"]
    assert table.row("Database and log checksum")[0] == "no errors"
    assert (
        "pages of 1 database were read and verified; instance1: "
        in table.row("Database and log checksum")[1]
    )
    assert table.row("System log")[0] in ("no errors", "not read")


def test_damaged_logs_and_a_missing_generation_fail_the_checksum_test(
    instance: Path, tmp_path: Path
) -> None:
    """Two corrupt logs and a missing generation lay beside a database, and it passed."""
    generations = closed_generations(instance)
    # The first and the last but one go bad, with a sound one between.
    assert len(generations) >= 4
    spoil(generations[0], 5000)
    spoil(instance / "E00.log", 100)
    generations[-2].unlink()
    code, verdict = checksum(instance, tmp_path / "run")
    assert (code, verdict["result"]) == (1, "fail")
    check = check_of(verdict)
    assert (check["status"], check["measured"]) == ("fail", 3)
    findings = folder.read_json(tmp_path / "run" / folder.LOG_CHECK)["instances"][0]["findings"]
    assert generations[0].name in findings[0]
    assert "E00.log is unusable" in findings[1] or "E00.log is damaged" in findings[1]
    assert (
        f"{generations[-1].name} is not sound: the generation before it is missing" in findings[2]
    )
    table = Page(tmp_path / "run" / folder.REPORT).tables["Integrity"]
    assert table.row("Database and log checksum")[0] == "3 errors"


def test_a_damaged_checkpoint_and_flush_map_fail_it_too(instance: Path, tmp_path: Path) -> None:
    """One finds the log that a crash needs, the other the pages that were never written."""
    spoil(instance / "E00.chk", 30)
    spoil(instance / "database001.jfm", 8192 + 40)
    code, verdict = checksum(instance, tmp_path / "run")
    assert code == 1
    assert "E00.chk is damaged" in check_of(verdict)["reason"]
    assert "database001.jfm is damaged" in check_of(verdict)["reason"]


def test_files_that_every_closed_instance_has_are_missed(instance: Path, tmp_path: Path) -> None:
    """The newest log has no later one that would miss it."""
    for name in ("E00.log", "E00.chk", "database001.jfm"):
        (instance / name).unlink()
    code, verdict = checksum(instance, tmp_path / "run")
    assert code == 1
    assert check_of(verdict)["measured"] == 3
    assert "E00.log is missing" in check_of(verdict)["reason"]


def test_logs_that_cannot_be_read_are_no_pass(tested: Path) -> None:
    """What was not evaluated is never a pass."""
    from plimsoll.documents.log_check import LogCheckFigures
    from plimsoll.documents.plan import Plan
    from plimsoll.documents.summary import Summary
    from plimsoll.report.integrity import integrity_sentences
    from plimsoll.verdict import judge

    plan, summary = (
        Plan.read(tested / "run" / folder.PLAN),
        Summary.read(tested / "run" / folder.SUMMARY),
    )
    nothing = {
        "logs_count": 0,
        "log_bytes": 0,
        "checkpoints_count": 0,
        "flush_maps_count": 0,
        "flush_map_pages": 0,
    }
    unread = LogCheckFigures(
        instance="instance1",
        first_log=None,
        last_log=None,
        findings=[],
        unread="permission denied",
        **nothing,
    )
    summary = summary.replace(log_check=[unread])
    verdict = judge(plan, summary, folder.read_json(tested / "run" / folder.ENVIRONMENT))
    check = next(check for check in verdict.checks if check.name == "log_files")
    assert (check.status, check.reason) == (
        "not_evaluated",
        "they could not be read: permission denied",
    )
    assert verdict.result != "pass"
    assert integrity_sentences(summary)[0].startswith(
        "Not everything was read in the database and log checksum"
    )
