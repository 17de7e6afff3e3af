"""Clients over two addresses of one real server, of which one goes away, and a server that dies
with its node and is started elsewhere.
"""

import threading
import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.dovecot import Dovecot
from tests.servers.forwarder import HOST, Forwarder
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import free_port
from tests.support.endpoint_plans import (
    check_of,
    mail_plan,
    read,
    run,
    store_plan,
    when_measured,
)

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


@pytest.mark.parametrize("distribution", ["round robin", "single affinity"])
def test_HA_06_sessions_of_a_store_meet_an_endpoint_that_goes_away(
    tmp_path: Path, distribution: str
) -> None:
    """Under round robin they go on at the other one, under single affinity they stay refused; of
    what was acknowledged nothing is lost either way.
    """
    with at_hand(PostgreSQL) as server:
        second = Forwarder(server.port)
        text = store_plan(tmp_path, (server.port, second.port), distribution)
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
        text = mail_plan(tmp_path, (server.port, second.port), [server.lmtp_port])
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


@pytest.mark.parametrize("distribution", ["round robin", "single affinity"])
def test_HA_06_mail_of_senders_whose_port_for_delivery_goes_away_is_not_lost(
    tmp_path: Path, distribution: str
) -> None:
    """Under round robin it goes by the other port, under single affinity senders are refused until
    theirs is back. Readers notice neither.
    """
    with at_hand(Dovecot) as server:
        reading, dying = Forwarder(server.port), Forwarder(server.lmtp_port)
        back: list[Forwarder] = []

        def die_and_return() -> None:
            dying.shut()
            time.sleep(4)
            back.append(Forwarder(server.lmtp_port, dying.port))

        ports, delivery_ports = (server.port, reading.port), (server.lmtp_port, dying.port)
        text = mail_plan(tmp_path, ports, delivery_ports, distribution, seconds=12)
        waiting = when_measured(tmp_path, 3, die_and_return)
        done = run(tmp_path, text)
        waiting.join()
    assert done.returncode in (0, 1, 3), done.stderr
    assert read(tmp_path, folder.OUTCOME)["ending"] == "complete"
    summary = read(tmp_path, folder.SUMMARY)
    ((here, there),) = (figures["endpoints"] for figures in summary["endpoints"])
    # Connections that deliver take turns with those of readers, whenever they are opened.
    assert here["sessions"] + there["sessions"] == 12, "readers stay where they are"
    assert abs(here["sessions"] - there["sessions"]) <= 2
    audit = summary["mail_audits"][0]
    assert audit["findings"] == []
    counts = audit["counts"]
    accepted, unknown = counts["recipients_accepted"], counts["recipients_unknown"]
    found = counts["received"] + counts["deleted"]
    assert 10 < accepted <= found <= accepted + unknown + counts["recipients_refused"]
    assert dying.taken > 0
    lost = summary["mail"][0]["counters"].get("mail_connection_lost", 0)
    if distribution == "round robin":
        assert here["refused"] == 0
        # What was under way when it died is the only mail whose end nobody knows.
        assert lost <= 2
        # A turn that comes while the port is dead is refused, and all mail goes on by the other.
        assert not there["refused"] or back[0].taken == 0, "it stays where it was taken"
    else:
        assert there["refused"] == 0 and lost >= 1
        assert back[0].taken > 0, "its senders hand in there again"


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
        text = store_plan(
            tmp_path,
            (here.port, there),
            seconds=30,
            of_plan=NODES,
            of_instance='node = "left"\nmemory_mib = 32',
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
