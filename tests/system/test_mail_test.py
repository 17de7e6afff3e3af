"""`plimsoll test mail` as a mail administrator runs it, against a Dovecot of its own."""

from __future__ import annotations

import imaplib
import json
import os
import smtplib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.dovecot import DOMAIN, PASSWORD, Dovecot
from tests.servers.server import HOST
from tests.support.chart_schema import hold_charts
from tests.support.harm import wait_for
from tests.support.places import PLIMSOLL, plimsoll

USERS = 12
#: A day pressed into some seconds: 12 users have about 20 tasks a second.
PRESSED = ["--weights", "mail-only", "--day-h", "0.01", "--sizes", "loadsim-light"]


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with at_hand(Dovecot) as made:
        yield made


def options(server: Dovecot, first_account: int, *further: str) -> list[str]:
    """The command for the users of some accounts of their own."""
    return [
        *("test", "mail", server.imap, "--deliver", server.lmtp, "--address", f"u{{n}}@{DOMAIN}"),
        *("--password-file", str(server.password_file), "--users", str(USERS)),
        *("--first-account", str(first_account), *PRESSED, "--yes", *further),
    ]


def read(run: Path, name: str):
    return json.loads((run / name).read_text(encoding="utf-8"))


def test_LG_01_LG_15_users_work_are_judged_audited_and_shown(
    tmp_path: Path, server: Dovecot
) -> None:
    """The first run fills the accounts, the second one finds them.

    Tasks are due as planned and every accepted mail is there.
    """
    run = tmp_path / "run"
    done = plimsoll(
        *options(server, 1, "--init", "--minutes", "0.1", "--out", str(run)), cwd=tmp_path
    )
    # Of so few tasks one that is under way at the end is more than one in a hundred.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = read(run, folder.SUMMARY)
    figures, audit = found["mail"][0], found["mail_audits"][0]
    rows = {row["task"]: row for row in figures["tasks"]}
    # 6 s of a day of 36 s, 54 tasks a day: 108 are due, by chance within a third of it.
    assert 72 <= figures["planned_count"] <= 144
    assert (
        figures["refused_count"] == 0 and figures["done_count"] >= 0.95 * figures["planned_count"]
    )
    # SendMail has too few results, and says so; a mean of one task is that task but for rounding.
    assert figures["score"]["ms"] == pytest.approx(rows["ReadAndProcessMessages"]["ms_p95"])
    assert figures["score"]["missing"][0].startswith("SendMail (weight 1) has ")
    assert all(
        row["ms_p50"] <= row["ms_p95"] <= row["ms_max"] * 1.11
        for row in rows.values()
        if row["done_count"]
    )
    assert {command["name"] for command in figures["commands"]} >= {
        "LOGIN",
        "FETCH of a body",
        "STORE",
        "hand-over of a mail",
    }
    counts = audit["counts"]
    assert audit["findings"] == [] and counts["accounts"] == USERS
    assert counts["recipients_accepted"] == counts["received"] + counts["deleted"] > 0
    page = (run / folder.REPORT).read_text(encoding="utf-8")
    assert {"mail-1", "mail-levels"} <= hold_charts(page)
    for text in (
        "Tasks: mail",
        "Score: mail",
        "Published scores",
        "Commands: mail",
        "Audit: mail",
        "unsupported, left out",
    ):
        assert text in page, text
    assert "score" in done.stdout
    everything = "".join(
        path.read_text(errors="replace")
        for path in run.iterdir()
        if path.suffix in (".json", ".html", ".log")
    )
    assert PASSWORD not in everything + done.stdout + done.stderr, "a password is written nowhere"

    again = tmp_path / "again"
    second = plimsoll(
        *options(server, 1, "--client", "online", "--minutes", "0.05", "--out", str(again)),
        cwd=tmp_path,
    )
    assert second.returncode in (0, 1, 3), second.stdout + second.stderr
    assert (
        "0 of them new" in second.stderr
        and read(again, folder.SUMMARY)["mail_audits"][0]["findings"] == []
    )


def test_TLS_by_both_ways_with_a_certificate_of_its_own(tmp_path: Path, server: Dovecot) -> None:
    """An unknown certificate ends the run before anything is sent."""
    secure = options(server, 101, "--init", "--minutes", "0.05", "--out", str(tmp_path / "run"))
    secure[2] = server.imaps
    refused = plimsoll(*secure, cwd=tmp_path)
    assert refused.returncode not in (0, 1), refused.stdout
    assert "certificate" in (refused.stdout + refused.stderr).lower()
    secure[-1] = str(tmp_path / "trusted")
    done = plimsoll(*secure, "--ca-file", str(server.certificate), cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert read(tmp_path / "trusted", folder.SUMMARY)["mail"][0]["done_count"] > 0


def test_accounts_that_are_not_ours_are_never_touched(tmp_path: Path, server: Dovecot) -> None:
    """Neither without --init, nor with it where mail of others lies.

    The mail is there as before, unread.
    """
    without = plimsoll(
        *options(server, 201, "--minutes", "0.05", "--out", str(tmp_path / "a")), cwd=tmp_path
    )
    assert without.returncode == 2 and "--init" in without.stdout, without.stdout + without.stderr
    with smtplib.LMTP(HOST, server.lmtp_port) as client:
        client.sendmail(f"u1@{DOMAIN}", [f"u203@{DOMAIN}"], "Subject: of others\r\n\r\ntext\r\n")
    refused = plimsoll(
        *options(server, 201, "--init", "--minutes", "0.05", "--out", str(tmp_path / "b")),
        cwd=tmp_path,
    )
    assert refused.returncode == 2 and "u203" in refused.stdout, refused.stdout + refused.stderr
    with imaplib.IMAP4(HOST, server.port) as client:
        client.login("u203", PASSWORD)
        assert client.select("INBOX", readonly=True) == ("OK", [b"1"])
        assert client.search(None, "UNSEEN")[1] == [b"1"]
        assert b"Plimsoll" not in b"".join(
            line for line in client.list()[1] if isinstance(line, bytes)
        )


def test_a_wrong_password_says_whose_it_is_and_not_what_it_is(
    tmp_path: Path, server: Dovecot
) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text(f"u302:wrong-secret\n*:{PASSWORD}\n", encoding="utf-8")
    command = options(server, 301, "--init", "--minutes", "0.05", "--out", str(tmp_path / "run"))
    command[command.index("--password-file") + 1] = str(passwords)
    done = plimsoll(*command, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode in (2, 3) and "u302" in said and "refused LOGIN" in said, said
    assert "wrong-secret" not in said


def test_a_server_that_is_killed_in_the_middle_is_no_pass(tmp_path: Path, server: Dovecot) -> None:
    """What was lost is counted, users come back when it does, and mail that it accepted before is
    there.
    """
    run = tmp_path / "run"
    command = options(server, 401, "--init", "--minutes", "0.2", "--out", str(run))
    # Slow enough that a second without a server leaves no more unfinished than a run bears.
    command[command.index("--day-h") + 1] = "0.05"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "plimsoll.cli", *command],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr and process.stdout
        guard = threading.Timer(120, process.kill)
        guard.start()
        said = []
        for line in process.stderr:
            said.append(line)
            if "done" in line and " 0 tasks done" not in line:
                server.kill()
                server.start()
                break
        rest, errors = process.communicate()
        guard.cancel()
    told = "".join(said) + errors + rest
    assert process.returncode in (1, 3), told
    figures = read(run, folder.SUMMARY)["mail"][0]
    assert figures["counters"]["mail_connection_lost"] > 0, told
    assert figures["refused_count"] > 0 or figures["errors_share"] > 0
    audits = read(run, folder.SUMMARY).get("mail_audits", [])
    assert audits and audits[0]["counts"]["missing"] == 0, told


def test_accounts_that_a_run_works_with_are_refused_until_that_run_has_ended(
    tmp_path: Path, server: Dovecot
) -> None:
    """Two runs at once would each find the other's mail in its audit.

    Other accounts of the server are free, and those of a run that was killed are so at once.
    """

    def command(first_account: int, minutes: str, out: str) -> list[str]:
        further = ["--minutes", minutes, "--init", "--out", str(tmp_path / out)]
        return options(server, first_account, *further)

    first = [*PLIMSOLL, *command(501, "5", "first")]
    with subprocess.Popen(first, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        wait_for(tmp_path / "first" / folder.EVENTS, "measure started")
        second = plimsoll(*command(501 + USERS - 1, "0.03", "second"), cwd=tmp_path)
        beside = plimsoll(*command(501 + USERS, "0.03", "beside"), cwd=tmp_path)
        assert running.poll() is None
        running.kill()
    third = plimsoll(*command(501, "0.03", "third"), cwd=tmp_path)
    assert second.returncode == 2, second.stdout + second.stderr
    assert "another run works with accounts of mail at " in second.stderr, second.stderr
    for done in (beside, third):
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
