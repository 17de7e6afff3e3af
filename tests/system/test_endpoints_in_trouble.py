"""Endpoints as plans get them wrong, and as networks do: silent, or dead from the begin
on.
"""

import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.servers.at_hand import at_hand
from tests.servers.forwarder import HOST, silent_port
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import free_port
from tests.support.endpoint_plans import check_of, read, run, store_plan


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
