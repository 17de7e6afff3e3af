"""Clients over two addresses of one real server, of which one goes away, and a server that dies
with its node and is started elsewhere.
"""

import json
import threading
import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.dovecot import DOMAIN, PASSWORD, Dovecot
from tests.servers.forwarder import HOST, Forwarder
from tests.servers.postgresql import PASSWORD as DATABASE_PASSWORD
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import free_port
from tests.support.places import plimsoll

STORE = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
{nodes}
[[instance]]
name = "shop"
store_address = "postgresql://shop@127.0.0.1:{first}/shop"
endpoints = ["127.0.0.1:{second}"]
distribution = "{distribution}"
password_file = "{password}"
store_size = "1MB"
lost_after_s = 30
{node}
[[workload]]
name = "orders"
load = {{ sessions = 4 }}
think_s = 0.02
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "audit"
[[phase]]
kind = "stop"
"""
MAIL = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
[[instance]]
name = "mail"
backend = "imap"
endpoints = ["imap://127.0.0.1:{first}", "imap://127.0.0.1:{second}"]
deliver = ["lmtp://127.0.0.1:{lmtp}"]
address = "u{{n}}@{domain}"
password_file = "{password}"
init = true
sizes = "loadsim-light"
distribution = "round robin"
[[workload]]
name = "mail"
weights = "mail-only"
day_h = 0.01
load = {{ users = 12 }}
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = 10
[[phase]]
kind = "audit"
[[phase]]
kind = "stop"
"""
NODES = """
node = [
  { name = "left", memory_mib = 64, processors = 2 },
  { name = "right", memory_mib = 64, processors = 2 },
]
"""
DEATH = """
[[event]]
name = "left dies"
phase = "measure"
after_s = 8
do = "node killed"
node = "left"
to = "right"
command = ["{place}/elsewhere"]
prove = ["test", "-e", "{place}/started"]
timeout_s = 60
judge = {{ recover_s_max = 30 }}
"""


def secret(place: Path, text: str) -> Path:
    path = place / "password"
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def run(place: Path, text: str, *further: str):
    plan = place / "plan.toml"
    plan.write_text(text, encoding="utf-8")
    out = ("--yes", "--quiet", "--out", str(place / "run"))
    return plimsoll("run", str(plan), *out, *further, cwd=place)


def read(place: Path, name: str):
    return json.loads((place / "run" / name).read_text(encoding="utf-8"))


def when_measured(place: Path, after_s: float, act) -> threading.Thread:
    """Acts so long after the load began to be measured."""

    def wait() -> None:
        events = place / "run" / folder.EVENTS
        for _ in range(1200):
            if events.exists() and "measure started" in events.read_text():
                time.sleep(after_s)
                act()
                return
            time.sleep(0.1)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def check_of(place: Path, name: str):
    return next(item for item in read(place, folder.VERDICT)["checks"] if item["name"] == name)


@pytest.mark.parametrize("distribution", ["round robin", "single affinity"])
def test_HA_06_sessions_of_a_store_meet_an_endpoint_that_goes_away(
    tmp_path: Path, distribution: str
) -> None:
    """Under round robin they go on at the other one, under single affinity they stay refused; of
    what was acknowledged nothing is lost either way.
    """
    with at_hand(PostgreSQL) as server:
        second = Forwarder(server.port)
        text = STORE.format(
            first=server.port,
            second=second.port,
            distribution=distribution,
            password=secret(tmp_path, DATABASE_PASSWORD),
            nodes="",
            node="",
            seconds=10,
        )
        waiting = when_measured(tmp_path, 4, second.shut)
        done = run(tmp_path, text)
        waiting.join()
    assert done.returncode in (0, 1, 3), done.stderr
    assert read(tmp_path, folder.OUTCOME)["ending"] == "complete"
    summary = read(tmp_path, folder.SUMMARY)
    (figures,) = summary["endpoints"]
    here, gone = figures["endpoints"]
    assert (here["endpoint"], gone["endpoint"]) == (
        f"{HOST}:{server.port}",
        f"{HOST}:{second.port}",
    )
    assert here["operations"] > gone["operations"] > 20
    assert gone["refused"] >= 1 and gone["ms_p95"] > 0
    moved, sessions = (2, 4) if distribution == "round robin" else (0, 2)
    assert (here["moved"], here["sessions"]) == (moved, sessions)
    check = check_of(tmp_path, "endpoint_spread")
    assert check["status"] == "pass" and "came to nothing" in check["reason"]
    assert summary["store_audits"][0]["findings"] == []
    assert "Endpoints: orders on shop" in (tmp_path / "run" / folder.REPORT).read_text()


def test_HA_06_users_of_a_mail_server_go_on_at_its_other_endpoint(tmp_path: Path) -> None:
    with at_hand(Dovecot) as server:
        second = Forwarder(server.port)
        text = MAIL.format(
            first=server.port,
            second=second.port,
            lmtp=server.lmtp.rpartition(":")[2],
            domain=DOMAIN,
            password=secret(tmp_path, f"*:{PASSWORD}"),
        )
        waiting = when_measured(tmp_path, 4, second.shut)
        done = run(tmp_path, text)
        waiting.join()
    assert done.returncode in (0, 1, 3), done.stderr
    summary = read(tmp_path, folder.SUMMARY)
    (figures,) = summary["endpoints"]
    here, gone = figures["endpoints"]
    assert (here["moved"], here["sessions"], gone["sessions"]) == (6, 12, 0)
    assert here["operations"] > gone["operations"] > 10
    assert summary["mail_audits"][0]["findings"] == []


def test_HA_02_a_server_dies_with_its_node_and_is_started_elsewhere(tmp_path: Path) -> None:
    """The command of the event kills it here and starts it there; its clients find it there, and
    what it acknowledged is there.
    """
    script = tmp_path / "elsewhere"
    script.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/asked\nuntil test -e {tmp_path}/started; do sleep 0.1; done\n"
    )
    script.chmod(0o755)
    with at_hand(PostgreSQL) as server:
        here, there = Forwarder(server.port), free_port()
        is_over = threading.Event()

        def elsewhere() -> None:
            while not (tmp_path / "asked").exists():
                time.sleep(0.05)
            here.shut()
            server.kill()
            server.start()
            Forwarder(server.port, there)
            (tmp_path / "started").touch()
            # A server ends with the thread that has started it.
            is_over.wait()

        waiting = threading.Thread(target=elsewhere, daemon=True)
        waiting.start()
        text = STORE.format(
            first=here.port,
            second=there,
            distribution="round robin",
            password=secret(tmp_path, DATABASE_PASSWORD),
            nodes=NODES,
            node='node = "left"\nmemory_mib = 32',
            seconds=30,
        )
        text += DEATH.format(place=tmp_path)
        refused = run(tmp_path, text)
        assert refused.returncode == 2 and "--allow-commands" in refused.stderr
        done = run(tmp_path, text, "--allow-commands")
        is_over.set()
        waiting.join(timeout=10)
    assert done.returncode in (0, 1, 3), done.stderr
    assert read(tmp_path, folder.OUTCOME)["ending"] == "complete", done.stderr
    summary = read(tmp_path, folder.SUMMARY)
    (event,) = summary["events"]
    assert event["is_proved"]
    assert event["loads"][0]["recovered_s"] is not None, event
    assert any("right needs 32 (shop 32)" in text for text in event["fit"])
    (figures,) = summary["endpoints"]
    assert [item["sessions"] for item in figures["endpoints"]] == [0, 4]
    assert summary["store_audits"][0]["findings"] == []
