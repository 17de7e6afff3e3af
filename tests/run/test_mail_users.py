"""Mail users against a real Dovecot.

What they did adds up, strangers' accounts stay as they were, and a crash is a result.
"""

from __future__ import annotations

import imaplib
import json
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll import _native
from tests.servers.at_hand import at_hand
from tests.servers.dovecot import DOMAIN, PASSWORD, Dovecot
from tests.servers.server import HOST

USERS = 8
#: A user does a task every 1.6 seconds.
TASKS_PER_DAY = {
    "ReadAndProcessMessages": 30.0,
    "SendMail": 12.0,
    "RequestMeeting": 2.0,
    "MoveMail": 2.0,
    "DeleteMail": 2.0,
    "ExportMail": 3.0,
    "CreateFolder": 1.0,
    "SynchronizeFolders": 3.0,
    "Search": 2.0,
    "Logon": 2.0,
    "Logoff": 1.0,
}


def spec_of(
    server: Dovecot, *, measure_s: float = 6.0, seed: int = 1, **changes: Any
) -> dict[str, Any]:
    """A run spec; `changes` go to the instance or the workload, whichever knows them."""
    instance = {
        "name": "mail",
        "target": "t",
        "backend": "imap",
        "directory": "/proc",
        "unfinished": False,
        "log_directory": "/proc",
        "weight": None,
        "databases": [
            {
                "file_name": f"endpoint-{number}",
                "size_bytes": 0,
                "seed": seed,
                "existing_records": None,
                "imap": f"{HOST}:{server.port}",
                "deliver": f"{HOST}:{server.lmtp_port}",
            }
            for number in (1, 2)
        ],
        "imap_tls": "none",
        "deliver_protocol": "lmtp",
        "deliver_tls": "none",
        "deliver_login": False,
        "tls_name": None,
        "ca_file": None,
        "login": "u{n}",
        "address": "u{n}@" + DOMAIN,
        "first_account": 1,
        "accounts": USERS,
        "password_file": str(server.password_file),
        "marker": "plimsoll-test-mailbox",
        "init": {"folders": 2, "messages_per_folder": 3, "inbox": 4},
        "messages": {
            "sizes": [
                {"weight": 3.0, "body_bytes": 1024, "attachment_bytes": 0},
                {"weight": 1.0, "body_bytes": 2048, "attachment_bytes": 12000},
            ],
            "entropy_percent": 60,
            "duplicate_percent": 20,
        },
        "connect_timeout_s": 5.0,
        "command_timeout_s": 5.0,
        "lost_after_s": 30.0,
        "literal_max_bytes": 1 << 24,
    }
    workload = {
        "name": "mail",
        "instances": ["mail"],
        "family": "mail",
        "load": {"sessions": USERS, "shared": True},
        "tasks": [{"task": name, "per_day": count} for name, count in TASKS_PER_DAY.items()],
        "client": "online",
        "day_h": sum(TASKS_PER_DAY.values()) * 1.6 / 3600 / 4,
        "dispatch": "even",
        "recipients": [{"weight": 1.0, "count": 1}, {"weight": 1.0, "count": 3}],
        "on_read": {
            "reply": 0.1,
            "reply_all": 0.02,
            "forward": 0.05,
            "move": 0.2,
            "delete": 0.4,
            "attachment": 0.5,
        },
        "inbox_limit": 10,
        "page_rows": 10,
        "read_max": 10,
        "idle": True,
        "probes_per_minute": 120.0,
        "probe_poll_ms": 20,
        "probe_timeout_s": 5.0,
        "unfinished_max_per_user": 10.0,
    }
    for key, value in changes.items():
        (instance if key in instance else workload)[key] = value
    actions: list[tuple[str, dict[str, Any], list[str]]] = [
        ("prepare", {"kind": "prepare"}, []),
        ("measure", {"kind": "measure", "duration_s": measure_s}, ["mail"]),
        ("audit", {"kind": "audit"}, []),
        ("stop", {"kind": "stop"}, []),
    ]
    return {
        "schema_version": 1,
        "seed": seed,
        "sample_interval_ms": 500,
        "hung_after_ms": 30000,
        "io_method": "threads",
        "durable_writes": None,
        "max_iops": None,
        "max_mib_per_s": None,
        "destroy_serials": [],
        "modelled": None,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "t", "host": "local", "path": "/proc"}],
        "instances": [instance],
        "workloads": [workload],
        "phases": [
            {"name": name, "action": action, "workloads": loads} for name, action, loads in actions
        ],
    }


class Ran:
    """What a run came to."""

    def __init__(
        self, spec: dict[str, Any], while_measuring: Callable[[threading.Event], None] | None = None
    ) -> None:
        run = _native.Run(json.dumps(spec))
        self.events: list[dict[str, Any]] = []
        meanwhile: threading.Thread | None = None
        over = threading.Event()
        while run.next_samples(0.2) is not None:
            self.events += [json.loads(line) for line in run.next_events()]
            measuring = any(event["kind"] == "load_started" for event in self.events)
            if measuring and while_measuring and meanwhile is None:
                meanwhile = threading.Thread(target=while_measuring, args=(over,))
                meanwhile.start()
        over.set()
        if meanwhile is not None:
            meanwhile.join()
        self.events += [json.loads(line) for line in run.next_events()]
        self.outcome = json.loads(run.outcome())
        self.counts: Counter[str] = Counter()
        for figures in self.outcome["figures"]:
            self.counts[figures["metric"]] += figures["count"]

    @property
    def error(self) -> str:
        return "" if self.outcome["error"] is None else self.outcome["error"]["text"]

    @property
    def audit(self) -> dict[str, Any]:
        phase = next(phase for phase in self.outcome["phases"] if phase["kind"] == "audit")
        found: dict[str, Any] = phase["audits"][0]
        return found


@pytest.mark.parametrize(
    ("client", "security"),
    [("online", "none"), ("cached", "none"), ("online", "tls"), ("cached", "starttls")],
)
def test_what_users_did_adds_up_message_by_message(client: str, security: str) -> None:
    with at_hand(Dovecot) as server:
        changes: dict[str, Any] = {"client": client, "imap_tls": security}
        spec = spec_of(server, **changes, ca_file=str(server.certificate), tls_name=DOMAIN)
        if security == "tls":
            for endpoint in spec["instances"][0]["databases"]:
                endpoint["imap"] = f"{HOST}:{server.imaps_port}"
        ran = Ran(spec)
    assert ran.outcome["ending"] == "complete", (ran.error, ran.events[-5:])
    counts, audited = ran.audit["counts"], ran.audit["findings"]
    assert not audited
    assert counts["recipients_accepted"] == counts["received"] + counts["deleted"] > 20
    assert (
        counts["doubled"]
        == counts["missing"]
        == counts["astray"]
        == counts["recipients_refused"]
        == 0
    )
    assert (
        counts["messages_sent"] == ran.counts["mail_messages_sent"] + ran.counts["mail_probes_sent"]
    )
    assert ran.counts["mail_probes_sent"] == ran.counts["mail_delivery"] > 2
    assert ran.counts["mail_probes_lost"] == 0
    for name in (
        "bodies_wrong",
        "unparsed",
        "bad_commands",
        "refused_commands",
        "timed_out",
        "connection_lost",
    ):
        assert ran.counts[f"mail_{name}"] == 0, name
    assert ran.counts["mail_messages_read"] > 10
    read = [each for each in ran.outcome["figures"] if each["metric"] == "mail_body"]
    assert sum(each["bytes"] for each in read) > 10_000
    planned = sum(ran.counts[f"{metric}_planned"] for metric in metrics_of_tasks())
    done = sum(ran.counts[metric] for metric in metrics_of_tasks())
    assert USERS * 12 < planned <= USERS * 17
    # Users of a busy machine lag behind; what each has in hand at the end is not done.
    assert planned - 3 * USERS <= done <= planned
    assert {each["database"] for each in read} == {1, 2}, "each endpoint has its share"
    kinds = [event["kind"] for event in ran.events]
    assert "mail_server" in kinds
    assert "mail_initialised" in kinds


def metrics_of_tasks() -> list[str]:
    """`mail_send_mail` and the others."""
    words = [
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        for name in TASKS_PER_DAY
    ]
    return [f"mail{word}" for word in words]


def test_accounts_without_our_marker_are_never_touched() -> None:
    with at_hand(Dovecot) as server:
        with smtplib.LMTP(HOST, server.lmtp_port) as client:
            client.sendmail(
                f"x@{DOMAIN}", [f"u3@{DOMAIN}"], "Subject: private\r\n\r\ndo not touch\r\n"
            )
        refused = Ran(spec_of(server))
        assert refused.outcome["error"]["family"] == "config"
        assert "1 accounts are not touched, such as u3" in refused.error
        with imaplib.IMAP4(HOST, server.port) as session:
            session.login("u3", PASSWORD)
            assert "Plimsoll" not in str(session.list())
            assert session.select("INBOX") == ("OK", [b"1"])
            session.store("1", "+FLAGS", "\\Deleted")
            session.expunge()
        # The others were filled before: that is finished, not done again. Without init nothing is.
        again = Ran(spec_of(server, measure_s=0.5))
        assert again.outcome["ending"] == "complete", again.error
        third = Ran(spec_of(server, measure_s=0.5, init=None))
        assert third.outcome["ending"] == "complete", third.error
        told = next(event["text"] for event in third.events if event["kind"] == "mail_initialised")
        assert "0 of them new; 0 messages" in told
        fresh = Ran(spec_of(server, init=None, first_account=100))
        assert "8 accounts are not touched" in fresh.error
        assert "--init" in fresh.error


def test_a_server_that_is_killed_and_started_again_is_counted_and_gone_back_to() -> None:
    with at_hand(Dovecot) as server:

        def crash(over: threading.Event) -> None:
            time.sleep(2.0)
            server.kill()
            time.sleep(1.0)
            server.start()
            # A server dies with the thread that started it.
            over.wait()

        ran = Ran(spec_of(server, measure_s=9.0), crash)
    assert ran.outcome["ending"] == "complete", ran.error
    assert ran.counts["mail_connection_lost"] > 0
    assert sum(ran.counts[f"{metric}_refused"] for metric in metrics_of_tasks()) > 0
    assert ran.counts["mail_connect"] > USERS, "they came back"
    counts = ran.audit["counts"]
    assert counts["accounts_unread"] == counts["astray"] == 0


def test_a_server_that_is_gone_for_good_ends_the_run_with_a_result() -> None:
    with at_hand(Dovecot) as server:
        ran = Ran(spec_of(server, measure_s=60.0, lost_after_s=3.0), lambda _: server.kill())
    assert ran.outcome["error"]["family"] == "service", ran.error
    assert "no user could finish a task for" in ran.error
    assert ran.counts["mail_read_and_process_messages"] >= 0


def test_what_cannot_work_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    with at_hand(Dovecot) as server:
        empty = tmp_path / "passwords"
        empty.write_text("u1:x\n")
        wrong = Ran(spec_of(server, password_file=str(empty)))
        assert "no line for 7 accounts, such as u2, u3" in wrong.error
        bad = tmp_path / "bad"
        bad.write_text("*:not the password\n")
        refused = Ran(spec_of(server, password_file=str(bad)))
        assert refused.outcome["error"]["family"] == "service"
        assert "refused LOGIN" in refused.error
        assert "not the password" not in json.dumps(refused.outcome)
        stranger = Ran(
            spec_of(
                server,
                imap_tls="starttls",
                ca_file=str(server.certificate),
                tls_name="other.example",
            )
        )
        assert "TLS with" in stranger.error
    changed = spec_of(server)
    changed["workloads"][0]["tasks"] = [
        {"task": "PostFreeBusy", "per_day": 2.0},
        {"task": "Nap", "per_day": 1.0},
    ]
    changed["workloads"][0]["day_h"] = 0.0
    with pytest.raises(_native.ConfigError) as told:
        _native.Run(json.dumps(changed))
    for part in ("PostFreeBusy cannot be done", "there is no task Nap", "day_h is 0"):
        assert part in str(told.value)
