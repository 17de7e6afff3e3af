"""Endpoints as plans get them wrong, and as networks do: silent, dead, back again, or of another
server.
"""

import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.forwarder import HOST, Forwarder, silent_port
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import free_port
from tests.support.endpoint_plans import check_of, read, run, store_plan, when_measured


@pytest.mark.parametrize("is_first", [True, False])
def test_an_endpoint_that_answers_nobody_costs_time_and_no_order(
    tmp_path: Path, is_first: bool
) -> None:
    """From the begin on, also where the run itself tries it first."""
    with at_hand(PostgreSQL) as server, silent_port() as silent:
        ports = (silent, server.port) if is_first else (server.port, silent)
        done = run(tmp_path, store_plan(tmp_path, ports, seconds=5, of_instance="timeout_s = 1"))
    assert done.returncode in (0, 1, 3), done.stderr
    assert read(tmp_path, folder.OUTCOME)["ending"] == "complete"
    summary = read(tmp_path, folder.SUMMARY)
    found = {item["endpoint"]: item for item in summary["endpoints"][0]["endpoints"]}
    assert found[f"{HOST}:{server.port}"]["sessions"] == 4
    assert found[f"{HOST}:{silent}"]["connections"] == 0
    assert found[f"{HOST}:{silent}"]["refused"] >= 1
    assert f"{HOST}:{silent} takes nobody" in check_of(tmp_path, "endpoint_spread")["reason"]
    assert summary["store_audits"][0]["findings"] == []


def test_a_server_none_of_whose_endpoints_is_there_ends_the_run_with_their_place(
    tmp_path: Path,
) -> None:
    ports = (free_port(), free_port())
    begun = time.monotonic()
    done = run(tmp_path, store_plan(tmp_path, ports))
    assert time.monotonic() - begun < 30
    assert done.returncode == 3, done.stderr
    error = read(tmp_path, folder.OUTCOME)["error"]
    assert error["family"] == "service" and f"{HOST}:{ports[1]}" in error["text"]


@pytest.mark.parametrize("distribution", ["round robin", "single affinity"])
def test_endpoints_that_are_all_gone_for_a_while_lose_nothing(
    tmp_path: Path, distribution: str
) -> None:
    """Sessions are refused meanwhile, and order again when the endpoints are back."""
    with at_hand(PostgreSQL) as server:
        both = [Forwarder(server.port), Forwarder(server.port)]
        back: list[Forwarder] = []

        def go_and_return() -> None:
            for each in both:
                each.shut()
            time.sleep(4)
            back.extend(Forwarder(server.port, each.port) for each in both)

        waiting = when_measured(tmp_path, 2, go_and_return)
        ports = (both[0].port, both[1].port)
        done = run(tmp_path, store_plan(tmp_path, ports, distribution, seconds=12))
        waiting.join()
    assert done.returncode in (0, 1, 3), done.stderr
    assert read(tmp_path, folder.OUTCOME)["ending"] == "complete"
    summary = read(tmp_path, folder.SUMMARY)
    each = summary["endpoints"][0]["endpoints"]
    assert all(item["refused"] >= 1 for item in each)
    assert sum(item["sessions"] for item in each) == 4
    assert sum(item.taken for item in back) >= 4
    if distribution == "single affinity":
        assert [item["sessions"] for item in each] == [2, 2]
    assert summary["store_audits"][0]["findings"] == []
    events = (tmp_path / "run" / folder.EVENTS).read_text(encoding="utf-8")
    assert events.count('"store_claim_lost"') == 2, "it is told, and that it is there again"


def test_an_endpoint_of_another_server_is_found_and_named(tmp_path: Path) -> None:
    """A store of ours tells by its marker."""
    with at_hand(PostgreSQL) as server, at_hand(PostgreSQL) as other:
        ports = (server.port, other.port)
        (tmp_path / "ours").mkdir()
        done = run(tmp_path / "ours", store_plan(tmp_path, ports, seconds=3))
        assert done.returncode == 3, done.stdout + done.stderr
        wanted = f"@{HOST}:{other.port}/shop is another database than "
        assert wanted in read(tmp_path / "ours", folder.OUTCOME)["error"]["text"]
