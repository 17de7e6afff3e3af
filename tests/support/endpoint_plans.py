"""Plans of a store and of mail users over two endpoints of a server, and what their runs left."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plimsoll.files import folder
from tests.servers.dovecot import DOMAIN
from tests.servers.dovecot import PASSWORD as MAIL_PASSWORD
from tests.servers.postgresql import PASSWORD
from tests.support.places import plimsoll

_STORE = """kind = "plan"
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
_MAIL = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
[[instance]]
name = "mail"
backend = "imap"
endpoints = ["imap://127.0.0.1:{first}", "imap://127.0.0.1:{second}"]
deliver = [{deliver}]
address = "u{{n}}@{domain}"
password_file = "{password}"
init = true
sizes = "loadsim-light"
distribution = "{distribution}"
[[workload]]
name = "mail"
weights = "mail-only"
day_h = 0.01
load = {{ users = 12 }}
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


def store_plan(
    place: Path,
    ports: tuple[int, int],
    distribution: str = "round robin",
    *,
    seconds: int = 10,
    of_plan: str = "",
    of_instance: str = "",
) -> str:
    """Four sessions of a store at two ports; further keys of the plan and of its instance."""
    return _STORE.format(
        first=ports[0],
        second=ports[1],
        distribution=distribution,
        password=secret(place, PASSWORD),
        nodes=of_plan,
        node=of_instance,
        seconds=seconds,
    )


def mail_plan(
    place: Path,
    ports: tuple[int, int],
    delivery_ports: Sequence[int],
    distribution: str = "round robin",
    *,
    seconds: int = 10,
) -> str:
    """Twelve users who read at two ports, and where their mail is handed in."""
    return _MAIL.format(
        first=ports[0],
        second=ports[1],
        deliver=", ".join(f'"lmtp://127.0.0.1:{port}"' for port in delivery_ports),
        distribution=distribution,
        domain=DOMAIN,
        password=secret(place, f"*:{MAIL_PASSWORD}"),
        seconds=seconds,
    )


def secret(place: Path, text: str) -> Path:
    """A file of passwords."""
    path = place / "password"
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def run(place: Path, text: str, *further: str) -> subprocess.CompletedProcess[str]:
    """Carries a plan out, to its end."""
    plan = place / "plan.toml"
    plan.write_text(text, encoding="utf-8")
    out = ("--yes", "--quiet", "--out", str(place / "run"))
    return plimsoll("run", str(plan), *out, *further, cwd=place)


def read(place: Path, name: str) -> Any:
    """A file of the run."""
    return json.loads((place / "run" / name).read_text(encoding="utf-8"))


def when_measured(place: Path, after_s: float, act: Callable[[], object]) -> threading.Thread:
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


def check_of(place: Path, name: str) -> Any:
    """A check of its verdict."""
    return next(item for item in read(place, folder.VERDICT)["checks"] if item["name"] == name)
