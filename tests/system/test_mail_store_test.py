"""`plimsoll test mail PATH`: users of a mail store on the engine, on real files and on a modelled
array.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll

#: A day pressed into 36 seconds, and small mails: 10 users have about 17 tasks a second.
PRESSED = [
    *("--users", "10", "--day-h", "0.01", "--sizes", "loadsim-light", "--mailbox-mib", "0.3"),
    *("--cache-mib", "4", "--yes", "--verbose"),
]


def read(run: Path, name: str):
    return json.loads((run / name).read_text(encoding="utf-8"))


def test_LG_05_LG_10_users_of_a_store_on_real_files(tmp_path: Path) -> None:
    """Prepared, loaded, audited, checked page by page and shown.

    The second run goes on with the mail of the first, and another store is refused.
    """
    home, run = tmp_path / "array", tmp_path / "run"
    home.mkdir()
    done = plimsoll(
        *("test", "mail", str(home), *PRESSED, "--minutes", "0.2", "--out", str(run)), cwd=tmp_path
    )
    # A test as short as this one ends with tasks under way; the storage of a test is no matter.
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    found = read(run, folder.SUMMARY)
    figures, audit = found["mail"][0], found["mail_audits"][0]
    assert figures["refused_count"] == 0
    assert figures["done_count"] >= 0.95 * figures["planned_count"] > 100
    assert figures["left_out"] == [] and figures["score"]["weight_total"] == 60
    assert figures["counters"]["mail_bodies_wrong"] == 0
    assert figures["delivery"]["count"] > 10 and figures["store"]["mailboxes"] == 10
    assert figures["store"]["io"]["writes"] > 0 and figures["volume"]["latency_ms_mean"] > 0
    counts = audit["counts"]
    assert audit["findings"] == []
    assert counts["recipients_accepted"] == counts["delivered"] + counts["queued"] > 0
    assert counts["messages"] == counts["received"] - counts["deleted"]
    assert [item["bad"] for item in found["checksums"]] == [0, 0], "both databases"
    page = (run / folder.REPORT).read_text(encoding="utf-8")
    for text in ("Tasks: mail", "Score: mail", "Steps: mail", "Store: mail", "Audit: mail"):
        assert text in page, text
    assert "I/O next to published figures" in page and "Mail servers" not in page
    assert "IOPS a user on the mailboxes" in done.stdout and "as they must be" in done.stdout
    files = {path.name for path in (home / "mail").iterdir()}
    assert {"database001.edb", "database002.edb", "E00.log", "E01.log"} <= files

    again = tmp_path / "again"
    second = plimsoll(
        *("test", "mail", str(home), *PRESSED, "--client", "online", "--minutes", "0.1"),
        *("--out", str(again)),
        cwd=tmp_path,
    )
    assert second.returncode in (0, 1, 3), second.stdout + second.stderr
    counts_again = read(again, folder.SUMMARY)["mail_audits"][0]["counts"]
    assert counts_again["recipients_accepted"] > counts["recipients_accepted"], "it went on"
    other = plimsoll(
        *("test", "mail", str(home), *PRESSED, "--edition", "2007", "--minutes", "0.1"),
        cwd=tmp_path,
    )
    assert other.returncode not in (0, 1, 3), other.stdout + other.stderr


def test_LG_03_users_of_a_store_on_a_modelled_array(tmp_path: Path) -> None:
    """The same in virtual time, twice with the same figures; cached users read less than online."""
    found = []
    for client, name in (("online", "a"), ("online", "b"), ("cached", "c")):
        run = tmp_path / name
        done = plimsoll(
            *("test", "mail", "--modelled", "dell-md3000i", *PRESSED, "--client", client),
            *("--minutes", "0.5", "--out", str(run)),
            cwd=tmp_path,
        )
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        summary = read(run, folder.SUMMARY)
        assert summary["mail_audits"][0]["findings"] == []
        found.append(summary["mail"][0])
    assert found[0] == found[1]
    assert found[2]["store"]["io"]["reads"] < found[0]["store"]["io"]["reads"]


def test_ENG_24_mailboxes_are_moved_while_users_work(tmp_path: Path) -> None:
    """On real files: at the rate that was asked for, and every message is there once afterwards.

    The databases, logs and their pages are sound, and the report has the factors of the log.
    """
    home, run = tmp_path / "array", tmp_path / "run"
    home.mkdir()
    moving = (*("test", "mail", str(home), *PRESSED), "--moves-percent", "200")
    done = plimsoll(*moving, "--minutes", "0.3", "--out", str(run), cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    found = read(run, folder.SUMMARY)
    moves, audit = found["mail"][0]["moves"], found["mail_audits"][0]
    # 20 mailboxes a day of 36 s: ten in 18 s.
    assert moves["asked_percent_per_day"] == 200 and 9 <= moves["planned_count"] <= 11
    assert moves["planned_count"] - 1 <= moves["moved_count"] <= moves["planned_count"]
    assert moves["log_bytes"] > moves["written_bytes"] > moves["moved_count"] * 100_000
    assert moves["closed"]["ms_max"] < moves["moved"]["ms_max"]
    assert audit["findings"] == [] and audit["counts"]["moved"] > 0
    assert found["mail"][0]["counters"]["mail_bodies_wrong"] == 0
    assert [item["bad"] for item in found["checksums"]] == [0, 0, 0], "all databases"
    page = (run / folder.REPORT).read_text(encoding="utf-8")
    assert "Mailbox moves: mail" in page and "as sizing counts it" in page
    names = {path.name for path in (home / "mail").iterdir()}
    assert {"database003.edb", "E02.log"} <= names
    again = tmp_path / "again"
    second = plimsoll(*moving, "--minutes", "0.1", "--out", str(again), cwd=tmp_path)
    assert second.returncode in (0, 1, 3), second.stdout + second.stderr
    assert read(again, folder.SUMMARY)["mail_audits"][0]["findings"] == []
    assert "mailbox moves" in plimsoll(*moving, "--dry-run", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["imap://h:1", "/mnt/x"], "several targets"),
        (["/mnt/x", "--modelled", "dell-md3000i"], "several targets"),
        (["/mnt/x", "--deliver", "lmtp://h:24"], "means something only for a mail server"),
        (["/mnt/x", "--init"], "means something only for a mail server"),
        (["imap://h:1", "--deliver", "lmtp://h:1", "--edition", "2007"], "edition"),
        (["imap://h:1", "--deliver", "lmtp://h:1", "--background-reads", "1"], "a mail server"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path: Path, options: list[str], told: str) -> None:
    done = plimsoll("test", "mail", *options, "--yes", cwd=tmp_path)
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
