"""Servers of tests are ours alone.

Unprivileged, killed and started again, gone afterwards, and skipped aloud where they are not
installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.at_hand import at_hand
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import REQUIRE_VARIABLE, Server

ROOT = Path(__file__).parents[2]
DATABASES = [PostgreSQL, MariaDB]


@pytest.mark.parametrize("kind", DATABASES)
def test_a_server_outlives_a_crash_with_what_was_committed_and_leaves_nothing(
    kind: type[PostgreSQL | MariaDB],
) -> None:
    with at_hand(kind) as server:
        folder = server.folder
        assert server.process is not None
        owner = Path(f"/proc/{server.process.pid}").stat().st_uid
        assert owner != 0, "a server never runs as root"
        server.sql("CREATE TABLE kept (number INTEGER); INSERT INTO kept VALUES (7);")
        server.kill()
        assert not server.is_ready()
        server.start()
        assert server.sql("SELECT number FROM kept") == "7"
    assert not folder.exists() and server.process is None


class Absent(Server):
    KIND = "absent"
    PACKAGES = "absent-server"

    @classmethod
    def program(cls) -> Path | None:
        return None


def test_what_is_not_installed_is_skipped_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REQUIRE_VARIABLE, "postgresql,other")
    with pytest.raises(pytest.skip.Exception, match="apt install absent-server"), at_hand(Absent):
        pass


def test_what_is_required_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRE_VARIABLE, "postgresql,absent")
    with pytest.raises(pytest.fail.Exception, match="apt install absent-server"), at_hand(Absent):
        pass


def test_tests_in_another_language_speak_to_a_server_in_lines() -> None:
    """Also when they end without a word: the server ends with its input."""
    with at_hand(PostgreSQL):
        pass
    command = [sys.executable, "-m", "tests.servers", "postgresql"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        facts = json.loads(process.stdout.readline())
        answers = []
        for line in (
            "sql shop SELECT 6 * 7",
            "sql shop SELECT nothing FROM nowhere",
            "kill",
            "start",
            "dance",
        ):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(60) == 0
    assert answers[0] == {"told": "42"} and "nowhere" in answers[1]["error"], answers
    assert answers[2:4] == [{"told": None}] * 2 and "dance" in answers[4]["error"], answers
    assert facts["user"] == "shop" and not Path(facts["folder"]).exists()
