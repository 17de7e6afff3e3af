"""`plimsoll test store` on databases that are not ours, as a user runs it.

SQLite, PostgreSQL, MariaDB, and what can become of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PASSWORD, DurablePostgreSQL, PostgreSQL
from tests.support.harm import wait_for, wait_until
from tests.support.places import PLIMSOLL, file_system, plimsoll

SHORT = ["--scale", "1MB", "--yes", "--quiet"]
#: Passed, failed, or nothing concluded: a run of some seconds qualifies nothing, but it came to its
#: end.
ENDED = (0, 1, 3)
SCHEMES = {PostgreSQL: "postgresql", DurablePostgreSQL: "postgresql", MariaDB: "mysql"}


def password_file(home: Path, word: str = PASSWORD) -> Path:
    path = home / "password"
    path.write_text(f"{word}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def store_test(
    home: Path, address: str, *arguments: str | Path, out: str = "run"
) -> subprocess.CompletedProcess[str]:
    return plimsoll("test", "store", address, *SHORT, *arguments, "--out", home / out, cwd=home)


def address_of(server: PostgreSQL | MariaDB) -> str:
    return f"{SCHEMES[type(server)]}://shop@127.0.0.1:{server.port}/shop"


def summary_of(run: Path):
    return json.loads((run / folder.SUMMARY).read_text(encoding="utf-8"))


def events_of(run: Path) -> str:
    return (run / folder.EVENTS).read_text(encoding="utf-8")


def page_of(run: Path) -> str:
    """The report, without the places where long names may be broken."""
    return (run / folder.REPORT).read_text(encoding="utf-8").replace("<wbr>", "")


def check_counted(run: Path, orders_min: int = 20) -> None:
    """Orders were made and the audit adds up."""
    found = summary_of(run)
    figures, audit = found["store"][0], found["store_audits"][0]
    assert figures["orders_count"] >= orders_min
    assert [step["step"] for step in figures["steps"]] == [
        "order",
        "login",
        "new customer",
        "search",
        "prices",
        "purchase",
    ]
    assert (
        audit["findings"] == []
        and audit["counts"]["units_sold"] == audit["counts"]["units_ordered"] > 0
    )


def test_a_store_in_sqlite_is_made_driven_and_used_again(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    for number, seconds in ((1, "0.05"), (2, "0.03")):
        done = store_test(
            tmp_path, f"sqlite:{file}", "--minutes", seconds, "--sessions", "4", out=f"run{number}"
        )
        assert done.returncode in ENDED, done.stderr
        check_counted(tmp_path / f"run{number}")
    first, second = (
        summary_of(tmp_path / f"run{number}")["store_audits"][0]["counts"] for number in (1, 2)
    )
    assert second["orders"] > first["orders"]
    page = page_of(tmp_path / "run1")
    assert f"sqlite:{file}" in page and "page cache" in page
    other = store_test(tmp_path, f"sqlite:{file}", "--minutes", "0.03", "--seed", "9", out="other")
    assert other.returncode == 2 and "made with seed" in other.stderr, other.stderr


def test_a_file_of_sqlite_that_a_run_works_with_is_refused(tmp_path: Path) -> None:
    """Both ran, and each failed by the orders of the other."""
    address = f"sqlite:{tmp_path / 'store.db'}"
    (tmp_path / "other-name.db").symlink_to(tmp_path / "store.db")
    lasting = ["test", "store", address, *SHORT, "--sessions", "2", "--minutes", "5"]
    first = [*PLIMSOLL, *lasting, "--out", str(tmp_path / "first")]
    with subprocess.Popen(first, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        wait_for(tmp_path / "first" / folder.EVENTS, "measure started")
        other = f"sqlite:{tmp_path / 'other-name.db'}"
        second = store_test(tmp_path, other, "--minutes", "0.03", out="second")
        assert running.poll() is None
        running.kill()
    third = store_test(tmp_path, address, "--minutes", "0.03", out="third")
    assert second.returncode not in ENDED, second.stdout + second.stderr
    assert "is in use; stop the run that works with it first" in second.stderr
    assert third.returncode in ENDED, third.stderr
    assert summary_of(tmp_path / "third")["store_audits"][0]["findings"] == []


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "letters.txt"
    file.write_text("dear diary\n" * 1000, encoding="utf-8")
    done = store_test(tmp_path, f"sqlite:{file}", "--minutes", "0.03")
    assert done.returncode == 2 and "name another file" in done.stderr, done.stderr
    assert file.read_text(encoding="utf-8") == "dear diary\n" * 1000


@pytest.mark.parametrize("kind", [PostgreSQL, pytest.param(MariaDB, marks=pytest.mark.slow)])
def test_a_store_on_a_server_is_made_driven_and_shown_without_the_password(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB]
) -> None:
    with at_hand(kind) as server:
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.05"]
        done = store_test(tmp_path, address_of(server), *named, "--sessions", "4")
        assert done.returncode in ENDED, done.stderr
        check_counted(tmp_path / "run")
        arriving = store_test(
            tmp_path, address_of(server), *named, "--orders-per-s", "20", out="arriving"
        )
        assert arriving.returncode in ENDED, arriving.stderr
        check_counted(tmp_path / "arriving")
    said = done.stdout + done.stderr
    for path in (tmp_path / "run").iterdir():
        assert PASSWORD.encode() not in path.read_bytes(), path
    assert PASSWORD not in said and "orders per minute" in said, said
    page = page_of(tmp_path / "run")
    assert address_of(server).replace("shop@", "") in page.split("Store test of ")[1][:60]
    assert "Orders per minute" in page.split('id="checks"')[0]
    assert "database I/O per second" not in page, "its server did, and no one here counted it"
    listed = plimsoll("runs", tmp_path, cwd=tmp_path).stdout
    assert address_of(server).replace("shop@", "") in listed and "/proc" not in listed, listed


@pytest.mark.parametrize("kind", [PostgreSQL, pytest.param(MariaDB, marks=pytest.mark.slow)])
def test_who_is_not_let_in_and_what_is_not_ours_ends_before_anything_is_done(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB]
) -> None:
    with at_hand(kind) as server:
        wrong = password_file(tmp_path, "wrong-word")
        done = store_test(
            tmp_path, address_of(server), "--password-file", wrong, "--minutes", "0.03"
        )
        assert (
            done.returncode == 2
            and "password_file" in done.stderr
            and "wrong-word" not in done.stderr
        ), done.stderr
        if kind is PostgreSQL:
            server.sql("CREATE DATABASE of_others")
            others = address_of(server).removesuffix("shop") + "of_others"
            named = [(address_of(server), [], "first line", "none")]
            named += [(others, ["--password-file", password_file(tmp_path)], "grant it", "others")]
            for address, password, hint, out in named:
                done = store_test(tmp_path, address, *password, "--minutes", "0.03", out=out)
                assert done.returncode == 2 and hint in done.stderr, done.stderr
        right = password_file(tmp_path)
        right.chmod(0o644)
        done = store_test(
            tmp_path, address_of(server), "--password-file", right, "--minutes", "0.03", out="open"
        )
        assert done.returncode == 2 and "chmod 600" in done.stderr, done.stderr
        right.chmod(0o600)
        server.sql("CREATE TABLE precious (id INTEGER)")
        done = store_test(
            tmp_path,
            address_of(server),
            "--password-file",
            right,
            "--minutes",
            "0.03",
            out="theirs",
        )
        assert done.returncode == 2 and "precious" in done.stderr, done.stderr
        count = (
            "SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('public', "
            "'shop')"
        )
        assert server.sql(count) == "1"


@pytest.mark.parametrize("kind", [PostgreSQL, pytest.param(MariaDB, marks=pytest.mark.slow)])
def test_a_server_killed_and_started_again_is_counted_and_loses_nothing(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB]
) -> None:
    """Orders without a connection are no result of the storage.

    Nothing is concluded, and the audit still adds up.
    """
    with at_hand(kind) as server:
        address = address_of(server)
        made = store_test(
            tmp_path,
            address,
            "--password-file",
            password_file(tmp_path),
            "--minutes",
            "0.02",
            out="made",
        )
        assert made.returncode in ENDED, made.stderr

        # The server ends with the thread that starts it, so that is this one.
        with ThreadPoolExecutor(1) as beside:
            named = (
                "--password-file",
                tmp_path / "password",
                "--minutes",
                "0.2",
                "--sessions",
                "4",
            )
            running = beside.submit(store_test, tmp_path, address, *named)
            wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
            time.sleep(2)
            server.kill()
            server.start()
            done = running.result()
        assert done.returncode == 3, done.stderr
        check_counted(tmp_path / "run")
        assert summary_of(tmp_path / "run")["store"][0]["connections_lost_count"] >= 1
        assert "store_connection_lost" in events_of(tmp_path / "run")


@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_database_that_a_run_works_with_is_refused_until_that_run_has_ended(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB]
) -> None:
    """Two runs at once would each find the other's orders in its audit.

    A run that is killed lets go of its database, and the next one begins at once.
    """
    with at_hand(kind) as server:
        address = address_of(server)
        named = ["--password-file", password_file(tmp_path), "--sessions", "2"]
        lasting = ["test", "store", address, *SHORT, *named, "--minutes", "5"]
        first = [*PLIMSOLL, *map(str, lasting), "--out", str(tmp_path / "first")]
        with subprocess.Popen(first, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
            wait_for(tmp_path / "first" / folder.EVENTS, "measure started")
            second = store_test(tmp_path, address, *named, "--minutes", "0.03", out="second")
            assert running.poll() is None
            running.kill()
        third = store_test(tmp_path, address, *named, "--minutes", "0.03", out="third")
    assert second.returncode == 2, second.stdout + second.stderr
    assert f"{address} is in use by " in second.stderr
    assert "; stop the run that works with it first" in second.stderr
    assert third.returncode in ENDED, third.stderr
    assert summary_of(tmp_path / "third")["store_audits"][0]["findings"] == []


#: The connection that has claimed a database for a run.
CLAIMING = "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
#: Takes the same claim as soon as it is free: asked for before the connection that has it ends, it
#: comes before any that asks later.
OTHER_CLAIM = "SELECT pg_advisory_lock(5064277810247); SELECT pg_sleep(4)"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_a_claim_that_the_server_ended_is_taken_again_or_ends_the_run(tmp_path: Path) -> None:
    """Another run is kept away as before. One that came in between is not worked beside."""
    with at_hand(PostgreSQL) as server:
        address = address_of(server)
        named = ["--password-file", password_file(tmp_path), "--sessions", "2"]
        lasting = ["test", "store", address, *SHORT, *named, "--minutes", "5"]
        command = [*PLIMSOLL, *map(str, lasting), "--out", str(tmp_path / "first")]
        events = tmp_path / "first" / folder.EVENTS
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
            wait_for(events, "measure started")
            server.sql(f"SELECT pg_terminate_backend(pid) FROM ({CLAIMING}) AS claiming")
            wait_for(events, "that keeps other runs away was lost, and is there again")
            second = store_test(tmp_path, address, *named, "--minutes", "0.03", out="second")
            assert second.returncode == 2 and "is in use" in second.stderr, second.stderr
            assert running.poll() is None
            with ThreadPoolExecutor(1) as other:
                taken = other.submit(server.sql, OTHER_CLAIM)
                wait_until(lambda: server.sql(WAITING) == "1")
                server.sql(f"SELECT pg_terminate_backend(pid) FROM ({CLAIMING}) AS claiming")
                taken.result()
            assert running.wait(30) == 3
    error = json.loads((tmp_path / "first" / folder.OUTCOME).read_text())["error"]
    assert error["family"] == "service" and "another run works with it since" in error["text"]


def test_a_connection_that_the_server_closed_between_two_orders_is_told_and_made_again(
    tmp_path: Path,
) -> None:
    """No order comes to nothing because of it, and yet it is counted, and an event says why."""
    idle = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'shop'"
        f" AND state = 'idle' AND pid NOT IN ({CLAIMING})"
    )
    with at_hand(PostgreSQL) as server:
        address = address_of(server)
        named = ["--password-file", password_file(tmp_path), "--sessions", "3", "--think-s", "1"]
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(store_test, tmp_path, address, *named, "--minutes", "0.15")
            wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
            time.sleep(2)
            ended = int(server.sql(idle))
            done = running.result()
    assert done.returncode in ENDED, done.stderr
    assert ended >= 1
    check_counted(tmp_path / "run", 10)
    figures = summary_of(tmp_path / "run")["store"][0]
    assert figures["connections_lost_count"] == ended
    assert events_of(tmp_path / "run").count("closed a connection between two orders") == 1


def test_a_server_that_stays_away_ends_the_run_and_blames_no_disk(tmp_path: Path) -> None:
    plan = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
instance = [{{ name = "shop", store_address = "{address}", password_file = "{password}", store_size = "1MB", lost_after_s = 2 }}]
workload = [{{ name = "orders", load = {{ sessions = 2 }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 40 }}, {{ kind = "audit" }}, {{ kind = "stop" }}]
"""  # noqa: E501
    with at_hand(PostgreSQL) as server:
        path = tmp_path / "plan.toml"
        text = plan.format(address=address_of(server), password=password_file(tmp_path))
        path.write_text(text, encoding="utf-8")
        timer = threading.Timer(6, server.kill)
        timer.start()
        done = plimsoll("run", path, "--yes", "--quiet", "--out", tmp_path / "run", cwd=tmp_path)
        timer.join()
    assert done.returncode == 3, done.stderr
    outcome = json.loads((tmp_path / "run" / folder.OUTCOME).read_text(encoding="utf-8"))
    assert (
        outcome["error"]["family"] == "service"
        and "no order has come to an end" in outcome["error"]["text"]
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system needs root")
def test_orders_without_room_are_counted_and_fail(tmp_path: Path) -> None:
    """The store itself stays whole: what had no room was taken back.

    SQLite shares memory through a mapped file. Where blocks are smaller than pages, a full file
    system may end the process there."""
    with file_system(tmp_path, 24, block_bytes=4096) as disk:
        address = f"sqlite:{disk / 'store.db'}"
        made = store_test(tmp_path, address, "--minutes", "0.02", out="made")
        assert made.returncode in ENDED, made.stderr
        free = os.statvfs(disk)
        with (disk / "ballast").open("wb") as ballast:
            ballast.write(bytes(max(0, free.f_bavail * free.f_frsize - 2 * 1024 * 1024)))
        done = store_test(tmp_path, address, "--minutes", "0.1", "--sessions", "2")
        assert done.returncode == 1, done.stdout + done.stderr
        found = summary_of(tmp_path / "run")
        assert found["store"][0]["no_space_count"] >= 1
        assert found["store_audits"][0]["findings"] == []


def test_a_dvd_store_that_is_there_is_driven_as_it_is(tmp_path: Path) -> None:
    with at_hand(PostgreSQL) as server:
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.04"]
        empty = store_test(tmp_path, address_of(server), *named, "--existing", out="empty")
        assert empty.returncode == 2 and "has no table customers" in empty.stderr, empty.stderr
        made = store_test(tmp_path, address_of(server), *named, out="made")
        assert made.returncode in ENDED, made.stderr
        server.sql("DROP TABLE plimsoll_marker")
        done = store_test(tmp_path, address_of(server), *named, "--existing")
        assert done.returncode in ENDED, done.stderr
        check_counted(tmp_path / "run")
        assert "as it was found" in page_of(tmp_path / "run")


WITH_MAIL = """kind = "plan"
schema_version = 1
[[target]]
name = "array"
path = "{place}/array"
[[target]]
name = "server"
data_path = "{data}"
[[instance]]
name = "mail"
target = "array"
database_size_mib = 64
cache_mib_min = 4
cache_mib_max = 8
[[instance]]
name = "shop"
target = "server"
store_address = "{address}"
password_file = "{password}"
store_size = "1MB"
[[workload]]
name = "mail"
instances = ["mail"]
load = {{ transactions_per_s = 5 }}
[[workload]]
name = "orders"
instances = ["shop"]
load = {{ sessions = 2 }}
think_s = 0.05
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "audit"
[[phase]]
kind = "stop"
[[phase]]
kind = "checksum"
"""


@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_database_in_use_is_refused_before_anything_is_prepared_for_it(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB]
) -> None:
    """A terabyte of other instances was prepared first, and then the run was "described wrongly".

    Next to a server, databases of ours are read back.
    """

    def plan(name: str, seconds: float) -> list[str]:
        place = tmp_path / name
        place.mkdir()
        text = WITH_MAIL.format(
            place=place,
            data=server.folder,
            address=address,
            password=password_file(tmp_path),
            seconds=seconds,
        )
        (place / "plan.toml").write_text(text)
        agreed = ("--yes", "--create", "--allow-system-disk", "--quiet")
        return ["run", str(place / "plan.toml"), *agreed, "--out", str(place / "run")]

    with at_hand(kind) as server:
        address = address_of(server)
        first = [*PLIMSOLL, *plan("first", 300)]
        with subprocess.Popen(first, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
            wait_for(tmp_path / "first" / "run" / folder.EVENTS, "measure started")
            second = plimsoll(*plan("second", 5), cwd=tmp_path)
            assert running.poll() is None
            running.kill()
        third = plimsoll(*plan("third", 5), cwd=tmp_path)
    said = second.stdout + second.stderr
    assert second.returncode == 2, said
    assert "described wrongly" not in said
    holder = f"plimsoll, process {running.pid} at 127.0.0.1"
    if kind is MariaDB:
        holder = r"connection \d+ of the server, from (localhost|127\.0\.0\.1:\d+)"
    assert re.search(f"{re.escape(address)} is in use by {holder}; stop the run", said), said
    assert [path for path in (tmp_path / "second").rglob("*") if path.suffix == ".edb"] == []
    assert third.returncode in ENDED, third.stderr
    outcome = json.loads((tmp_path / "third" / "run" / folder.OUTCOME).read_text())
    read_back = [
        item["instance"] for phase in outcome["phases"] for item in phase.get("checksums", [])
    ]
    assert (outcome["ending"], read_back) == ("complete", [0])


def checks_of(run: Path, name: str) -> list[str]:
    """What the checks of a name say."""
    verdict = json.loads((run / folder.VERDICT).read_text(encoding="utf-8"))
    return [item["reason"] for item in verdict["checks"] if item["name"] == name]


def test_a_server_that_answers_before_commits_are_durable_is_told_and_never_passes(
    tmp_path: Path,
) -> None:
    """It made many times the orders of a sound one, and was a pass like any other."""
    with at_hand(DurablePostgreSQL) as server:
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.04"]
        sound = store_test(tmp_path, address_of(server), *named, out="sound")
        server.sql("ALTER ROLE shop SET synchronous_commit = off")
        server.sql("ALTER TABLE orderlines SET UNLOGGED")
        quick = store_test(tmp_path, address_of(server), *named)
    assert sound.returncode in ENDED, sound.stderr
    assert checks_of(tmp_path / "sound", "store_durable") == []
    assert quick.returncode == 3, quick.stderr
    (said,) = checks_of(tmp_path / "run", "store_durable")
    assert said.startswith("synchronous_commit is off; table orderlines is unlogged: "), said
    for text in (page_of(tmp_path / "run"), events_of(tmp_path / "run"), quick.stdout):
        assert "synchronous_commit is off; table orderlines is unlogged" in text


def test_a_server_of_mariadb_that_answers_too_early_is_told(tmp_path: Path) -> None:
    """The servers of these tests flush nothing, and say so."""
    with at_hand(MariaDB) as server:
        server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.04"]
        done = store_test(tmp_path, address_of(server), *named)
    assert done.returncode == 3, done.stderr
    (said,) = checks_of(tmp_path / "run", "store_durable")
    told = "innodb_flush_log_at_trx_commit is 2; innodb_flush_method is nosync: "
    assert said.startswith(told), said


@pytest.mark.parametrize("kind", [PostgreSQL, pytest.param(MariaDB, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("gap", "said"),
    [
        ("DELETE FROM CUSTOMERS WHERE CUSTOMERID IN (5, 6)", "1998 customers called user1 to 2000"),
        ("DELETE FROM PRODUCTS WHERE PROD_ID = 17", "9999 products numbered 1 to 10000"),
    ],
)
def test_a_dvd_store_with_gaps_is_no_damaged_storage(
    tmp_path: Path, kind: type[PostgreSQL | MariaDB], gap: str, said: str
) -> None:
    """Whoever was deleted long ago could not log in, and the storage failed by corruption."""
    with at_hand(kind) as server:
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.04"]
        made = store_test(tmp_path, address_of(server), *named, out="made")
        assert made.returncode in ENDED, made.stderr
        server.sql("DROP TABLE plimsoll_marker")
        server.sql(gap)
        done = store_test(tmp_path, address_of(server), *named, "--existing")
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr and "name a store that has them all" in done.stderr


def test_a_server_away_for_less_than_may_be_ends_no_run_of_rare_orders(tmp_path: Path) -> None:
    """Orders came every five seconds and the server went for six: the first that found none ended
    the run, because the last one was longer ago than `lost_after_s`.
    """
    plan = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
instance = [{{ name = "shop", store_address = "{address}", password_file = "{password}", store_size = "1MB", lost_after_s = 4 }}]
workload = [{{ name = "orders", load = {{ transactions_per_s = 0.2, spacing = "regular" }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 24 }}, {{ kind = "audit" }}, {{ kind = "stop" }}]
"""  # noqa: E501
    with at_hand(PostgreSQL) as server:
        path = tmp_path / "plan.toml"
        text = plan.format(address=address_of(server), password=password_file(tmp_path))
        path.write_text(text, encoding="utf-8")
        with ThreadPoolExecutor(1) as beside:
            out = ("--out", tmp_path / "run")
            running = beside.submit(plimsoll, "run", path, "--yes", "--quiet", *out, cwd=tmp_path)
            wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
            ordered = "SELECT count(*) FROM orders"
            before = server.sql(ordered)
            wait_until(lambda: server.sql(ordered) != before)
            server.kill()
            time.sleep(6.3)
            server.start()
            done = running.result()
    assert done.returncode == 3, done.stderr
    outcome = json.loads((tmp_path / "run" / folder.OUTCOME).read_text(encoding="utf-8"))
    assert (outcome["ending"], outcome["error"]) == ("complete", None)
    assert summary_of(tmp_path / "run")["store"][0]["connections_lost_count"] >= 1


def test_an_audit_takes_as_long_as_a_store_is_large(tmp_path: Path) -> None:
    """A run of half an hour ended without a result: its audit took longer than an order may."""
    plan = """kind = "plan"
schema_version = 1
target = [{{ name = "server" }}]
instance = [{{ name = "shop", store_address = "{address}", password_file = "{password}", store_size = "1MB", timeout_s = 1 }}]
workload = [{{ name = "orders", think_s = 0.05, load = {{ sessions = 1 }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 3 }}, {{ kind = "audit" }}, {{ kind = "stop" }}]
"""  # noqa: E501
    with at_hand(MariaDB) as server:
        path = tmp_path / "plan.toml"
        made = store_test(
            tmp_path,
            address_of(server),
            *("--password-file", password_file(tmp_path), "--minutes", "0.02"),
            out="made",
        )
        assert made.returncode in ENDED, made.stderr
        text = plan.format(address=address_of(server), password=tmp_path / "password")
        path.write_text(text, encoding="utf-8")
        with ThreadPoolExecutor(1) as beside:
            out = ("--out", tmp_path / "run")
            running = beside.submit(plimsoll, "run", path, "--yes", "--quiet", *out, cwd=tmp_path)
            wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
            server.sql("LOCK TABLES CUST_HIST WRITE; SELECT SLEEP(9)")
            done = running.result()
    assert done.returncode in ENDED, done.stderr
    audit = summary_of(tmp_path / "run")["store_audits"][0]
    assert audit["findings"] == [] and audit["seconds"] > 2


def test_a_server_that_commits_only_when_told_loses_no_customer(tmp_path: Path) -> None:
    """With `autocommit` off, the number of the run was taken back, and its names came twice."""
    with at_hand(MariaDB) as server:
        server.sql("SET GLOBAL autocommit = 0")
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.04"]
        for out in ("first", "second"):
            done = store_test(tmp_path, address_of(server), *named, "--sessions", "2", out=out)
            assert done.returncode in ENDED, done.stderr
            check_counted(tmp_path / out)


def test_whatever_another_session_is_in_the_way_of_is_tried_again(tmp_path: Path) -> None:
    """Logins and sign-ups wait for locks, too: only purchases were tried again, and orders were
    given up at once that had ten seconds.
    """
    with at_hand(PostgreSQL) as server:
        server.sql("ALTER ROLE shop SET lock_timeout = 200")
        named = ["--password-file", password_file(tmp_path), "--minutes", "0.12"]
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(
                store_test, tmp_path, address_of(server), *named, "--sessions", "4"
            )
            wait_for(tmp_path / "run" / folder.EVENTS, "measure started")
            time.sleep(1.5)
            server.sql("BEGIN; LOCK TABLE customers; SELECT pg_sleep(2); ROLLBACK")
            done = running.result()
    assert done.returncode in ENDED, done.stderr
    figures = summary_of(tmp_path / "run")["store"][0]
    assert figures["retries_count"] > 0 and figures["given_up_count"] == 0, figures
    check_counted(tmp_path / "run")
