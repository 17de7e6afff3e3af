"""Twenty users of everything at once in real time: mail of a Dovecot, orders of a PostgreSQL, and
home folders on the disk below both, which is throttled and whose database server dies.

Slow, since the clock is that of the wall. A minute is measured; `SECONDS=1800` in the environment
carries out the half hour of the published test.
"""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.report.together import together_tables
from tests.servers.at_hand import at_hand
from tests.servers.dovecot import DOMAIN, Dovecot
from tests.servers.postgresql import PASSWORD, DurablePostgreSQL
from tests.servers.server import own_folder
from tests.support.endpoint_plans import secret
from tests.support.loop_disk import loop_disk, skip_without_throttle
from tests.support.places import plimsoll

pytestmark = pytest.mark.slow

USERS = 20
SECONDS = max(60, int(os.environ.get("SECONDS", "60")))
# Longer, and what waits for the disk counts as hung, and the store as lost.
EVENT_AT_S, EVENT_FOR_S = SECONDS // 3, 15
PLAN = """kind = "plan"
schema_version = 1
name = "twenty users, {state}"
watch = [{{ name = "store", port = {store} }}, {{ name = "mail", port = {mail} }}]

[[target]]
name = "disk"
path = "{disk}/homes"

[[target]]
name = "servers"
data_path = "{disk}"

[[instance]]
name = "mail"
target = "servers"
backend = "imap"
endpoints = ["imap://127.0.0.1:{mail}"]
deliver = ["{deliver}"]
address = "u{{n}}@{domain}"
password_file = "{mail_password}"
init = true
sizes = "loadsim-light"

[[instance]]
name = "shop"
target = "servers"
store_address = "postgresql://shop@127.0.0.1:{store}/shop"
password_file = "{store_password}"
store_size = "10MB"
lost_after_s = 30

[[instance]]
name = "homes"
target = "disk"
backend = "files"
files = 1
file_mib = 512

[[workload]]
name = "mail"
instances = ["mail"]
weights = "mail-only"
day_h = {day_h}
load = {{ users = {users} }}

[[workload]]
name = "orders"
instances = ["shop"]
think_s = 1.5
load = {{ users = {users} }}
start_after_s = 2

[[workload]]
name = "files"
instances = ["homes"]
pattern = "file-server"
load = {{ users = {users}, iops_per_user = 0.70 }}
start_after_s = 4

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
EVENTS = """
[[event]]
name = "slow disk"
after_s = {at}
undo_after_s = {until}
action = "throttle"
target = "disk"
iops = 3

[[event]]
name = "database server dies"
after_s = {later}
undo_after_s = {again}
action = "server killed"
port = {store}
start = {start}
"""


def started_again(server: DurablePostgreSQL) -> list[str]:
    """What starts a killed cluster as whom it belongs to, and comes back when it answers."""
    options = " ".join(str(word) for word in server.command()[3:])
    tool = server.command()[0].with_name("pg_ctl")
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(tool)]
    return [
        *words,
        "-D",
        str(server.data),
        "-l",
        str(server.data / "again.log"),
        "-w",
        "-o",
        options,
        "start",
    ]


@pytest.mark.parametrize("state", ["optimized", "degraded"])
def test_ORC_10_twenty_users_of_mail_store_and_files_in_real_time(
    tmp_path: Path, state: str
) -> None:
    skip_without_throttle()
    with (
        own_folder("disk") as place,
        loop_disk(place, 4096) as disk,
        at_hand(DurablePostgreSQL, disk) as store,
        at_hand(Dovecot, disk) as mail,
    ):
        text = PLAN.format(
            state=state,
            disk=disk,
            store=store.port,
            mail=mail.port,
            deliver=mail.lmtp,
            domain=DOMAIN,
            mail_password=mail.password_file,
            store_password=secret(tmp_path, PASSWORD),
            users=USERS,
            day_h=8 * SECONDS / 1800,
            seconds=SECONDS,
        )
        if state == "degraded":
            assert store.process is not None
            # Until somebody takes notice of its death it counts as running, and no other starts.
            threading.Thread(target=store.process.wait, daemon=True).start()
            text += EVENTS.format(
                at=EVENT_AT_S,
                until=EVENT_AT_S + EVENT_FOR_S,
                later=SECONDS - 2 * EVENT_FOR_S // 3 - 4,
                again=SECONDS - EVENT_FOR_S // 3 - 4,
                store=store.port,
                start=json.dumps(started_again(store)),
            )
        plan = tmp_path / "plan.toml"
        plan.write_text(text, encoding="utf-8")
        run = tmp_path / "run"
        agreed = ("--yes", "--create", "--allow-system-disk", "--allow-commands")
        try:
            done = plimsoll("run", plan, *agreed, "--out", run, cwd=tmp_path, timeout=SECONDS + 240)
        finally:
            if state == "degraded":
                stop = [*started_again(store)[:5], str(store.command()[0].with_name("pg_ctl"))]
                stop += ["-D", str(store.data), "-m", "fast", "stop"]
                subprocess.run(stop, check=False, capture_output=True)
    print(done.stdout)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert json.loads((run / folder.OUTCOME).read_text())["ending"] == "complete", done.stderr
    summary = Summary.read(run / folder.SUMMARY)
    assert set(summary.overlaps) == {"mail", "orders", "files"}
    assert all(share >= 0.95 for share in summary.overlaps.values()), summary.overlaps
    assert [figures.findings for figures in summary.store_audits] == [()]
    assert [figures.findings for figures in summary.mail_audits] == [()]
    tables = {
        table.title: table for table in together_tables(Plan.read(run / folder.PLAN), summary)
    }
    for table in tables.values():
        print(table.title, *table.rows, sep="\n  ")
    if state == "optimized":
        assert summary.events == ()
        return
    slow, died = summary.events
    assert slow.is_proved and died.is_proved, (slow.problem, died.problem)
    files, orders = (
        next(load for load in event.loads if load.workload == name)
        for event, name in ((slow, "files"), (died, "orders"))
    )
    assert files.detected_s is not None and files.dip_percent > 30
    assert orders.pause_s > 1
