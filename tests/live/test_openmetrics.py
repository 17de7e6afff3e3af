"""The endpoint of a running test: what it says is OpenMetrics, and it goes when the run goes."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll import _native
from plimsoll.cli import _with_default_address
from plimsoll.documents.event import Event
from plimsoll.live.metrics_server import PORT, AddressError, MetricsServer, parse_address
from plimsoll.live.openmetrics import ADDED_UP, CONTENT_TYPE, Exposition
from plimsoll.plan.complete import plan_of_options
from tests.support.openmetrics_grammar import GrammarError, read_openmetrics

METRICS = _native.metrics()
CODES = {name: code for code, (name, _, _, _) in enumerate(METRICS)}


def exposition(name: str = "tonight") -> Exposition:
    plan = plan_of_options(
        {
            "name": name,
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [{"name": "one", "database_size_mib": 64}],
            "workload": [{"name": name, "load": {"sessions": 1}}],
        }
    )
    return Exposition(plan, METRICS, "0")


def sample(*rows: dict[str, Any]) -> dict[str, Any]:
    names = (
        "metric",
        "instance",
        "database",
        "workload",
        "count",
        "errors",
        "bytes",
        "latency_ns_sum",
        "value",
    )
    return {name: np.array([row.get(name, 0) for row in rows]) for name in names}


def test_every_metric_of_the_dictionary_keeps_to_the_grammar() -> None:
    """MON-01: a scraper drops a whole exposition for one bad line, so every metric is written once
    with every label.
    """
    found = exposition()
    rows = [
        {
            "metric": code,
            "database": database,
            "workload": workload,
            "count": 3,
            "errors": 1,
            "bytes": 4096,
            "latency_ns_sum": 5_000_000,
            "value": 0.25,
        }
        for code in CODES.values()
        for database in (0, 1)
        for workload in (0, 1)
    ]
    found.sample(sample(*rows))
    found.event(
        Event(time_ns=0, utc_ns=0, level="info", kind="phase_started", phase="measure", text="")
    )
    families = read_openmetrics(found.text())
    levels = [name for name, kind, _, _ in METRICS if kind == "level"]
    assert all(any(family.startswith(f"plimsoll_{name}") for family in families) for name in levels)
    assert families["plimsoll_phase"].samples["", (("plimsoll_phase", "measure"),)] == 1
    latency = families["plimsoll_transfer_latency_seconds"]
    labels = (("database", "1"), ("instance", "one"), ("purpose", "database_read"))
    assert (latency.type, latency.unit) == ("summary", "seconds")
    assert latency.samples["_count", labels] == 3
    assert latency.samples["_sum", labels] == pytest.approx(0.005)


def test_what_samples_count_grows_and_levels_do_not() -> None:
    """A counter that falls is a restart to every scraper, and a level that is added up is
    nonsense.
    """
    found = exposition()
    rows = [
        {"metric": CODES["database_read"], "database": 1, "count": 2, "bytes": 10},
        {"metric": CODES["device_reads"], "database": 1, "value": 7.0},
        {"metric": CODES["cache_used"], "value": 100.0},
    ]
    for _ in range(3):
        found.sample(sample(*rows))
    families = read_openmetrics(found.text())
    values = {name: list(family.samples.values()) for name, family in families.items()}
    assert values["plimsoll_transfers"] == [6]
    assert values["plimsoll_device_reads"] == [21]
    assert families["plimsoll_device_reads"].type == "counter"
    assert values["plimsoll_cache_used_bytes"] == [100]


def test_what_is_added_up_is_what_the_dictionary_says_of_an_interval() -> None:
    """A level of a new metric that counts by interval must not be offered as a gauge by mistake."""
    said = {
        name
        for name, kind, unit, meaning in METRICS
        if kind == "level"
        and unit != "ratio"
        and "averaged" not in meaning
        and re.search(r"in the interval|over the interval|added up|sent likewise", meaning)
    }
    assert said == set(ADDED_UP)


def test_names_from_a_plan_cannot_break_the_exposition() -> None:
    """A plan's words are text in somebody else's monitoring."""
    found = exposition('a "quoted"\\ name\nof two lines')
    found.sample(sample({"metric": CODES["read"], "database": 1, "workload": 1, "count": 1}))
    read_openmetrics(found.text())


@pytest.mark.parametrize(
    "text",
    [
        "a 1\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE a gauge\na{b=1} 1\n# EOF\n",
        "# TYPE a gauge\na 1\na 1\n# EOF\n",
        "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n",
        "# TYPE a gauge\na  1\n# EOF\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n",
    ],
)
def test_the_reader_of_the_grammar_refuses(text: str) -> None:
    """A reader that takes everything proves nothing."""
    with pytest.raises(GrammarError):
        read_openmetrics(text)


@pytest.mark.parametrize(
    "text", ["", "here", "127.0.0.1:", "127.0.0.1:70000", "a b:80", "::1:9000:x", "http://a:80"]
)
def test_what_is_no_address_is_said(text: str) -> None:
    """A misread address would open a port somewhere else."""
    with pytest.raises(AddressError, match="write ADDRESS:PORT"):
        parse_address(text)


def test_without_a_host_only_this_machine_can_ask() -> None:
    """Who does not say that others may read gets the loopback."""
    assert parse_address("9000")[0] == parse_address(":9000")[0] == "127.0.0.1"
    assert parse_address("0.0.0.0:9000") == ("0.0.0.0", 9000)


def test_the_default_port_is_none_of_the_exporters() -> None:
    """The list of ports that exporters take gives out 9100 to 9999.

    Linux hands out 32768 and above.
    """
    assert not 9090 <= PORT <= 9999 and PORT < 32768
    services = Path("/etc/services")
    if services.exists():
        assert f"\t{PORT}/tcp" not in services.read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "p.toml", "--metrics"], ["run", "p.toml", "--metrics", f"127.0.0.1:{PORT}"]),
        (["run", "--metrics", "p.toml"], ["run", "--metrics", f"127.0.0.1:{PORT}", "p.toml"]),
        (
            ["run", "--metrics", "--yes", "p.toml"],
            ["run", "--metrics", f"127.0.0.1:{PORT}", "--yes", "p.toml"],
        ),
        (
            ["run", "--metrics", "0.0.0.0:80", "p.toml"],
            ["run", "--metrics", "0.0.0.0:80", "p.toml"],
        ),
        (
            ["run", "--metrics", "nonsense:port", "p.toml"],
            ["run", "--metrics", "nonsense:port", "p.toml"],
        ),
        (["run", "p.toml"], ["run", "p.toml"]),
    ],
)
def test_the_option_alone_means_the_default_address(words: list[str], expected: list[str]) -> None:
    """`--metrics` before the plan's name must not take the plan for an address."""
    assert _with_default_address(words) == expected


def test_a_taken_port_is_said_before_anything_is_written() -> None:
    """A run that fails after two hours because its port was taken would be a bad joke."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AddressError, match="name another ADDRESS:PORT"):
            MetricsServer(f"127.0.0.1:{taken.getsockname()[1]}")


def test_it_answers_what_it_has_and_nothing_else() -> None:
    """One path, with the content type of the format; no version of anything is given away."""
    server = MetricsServer("127.0.0.1:0")
    with server.serving(exposition().text):
        client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
        client.request("GET", "/metrics")
        answer = client.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
        read_openmetrics(answer.read().decode())
        client.request("GET", "/etc/passwd")
        assert client.getresponse().status == 404
        client.close()
        client.request("POST", "/metrics", body="x")
        assert client.getresponse().status == 501


def test_it_ends_at_once_whoever_is_connected() -> None:
    """A scraper that connects and says nothing must not hold a run back."""
    server = MetricsServer("127.0.0.1:0")
    with socket.socket() as silent:
        with server.serving(exposition().text):
            silent.connect(("127.0.0.1", server.server_port))
            time.sleep(0.1)
            began = time.monotonic()
        assert time.monotonic() - began < 5.0
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.server_port), timeout=1)


def test_a_run_is_scraped_and_takes_its_endpoint_with_it(tmp_path: Path) -> None:
    """From the option to the socket.

    The counters of a real run, and no listener once it is stopped.
    """
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'kind = "plan"\nschema_version = 1\nsample_interval_ms = 200\n'
        f'[[target]]\nname = "disk"\npath = "{tmp_path / "db"}"\n'
        '[[instance]]\nname = "one"\nbackend = "raw_files"\ndatabase_size_mib = 64\n'
        '[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "measure"\nduration_s = '
        '60\n[[phase]]\nkind = "stop"\n'
    )
    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "run",
        str(plan),
        "--yes",
        "--metrics",
        "127.0.0.1:0",
        "--out",
        "out",
    ]
    run = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert run.stderr is not None
        port = next(
            int(found[1])
            for line in run.stderr
            if (found := re.search(r"127\.0\.0\.1:(\d+)/metrics", line))
        )
        families: dict[str, Any] = {}
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not _reads(families):
            time.sleep(0.2)
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            client.request("GET", "/metrics")
            families = read_openmetrics(client.getresponse().read().decode())
        assert _reads(families) > 0
    finally:
        run.send_signal(signal.SIGTERM)
        run.wait(30)
        run.stderr.close()
    assert json.loads((tmp_path / "out" / "outcome.json").read_text())["ending"] == "interrupted"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def _reads(families: dict[str, Any]) -> float:
    family = families.get("plimsoll_transfers")
    return (
        sum(
            value
            for (_, labels), value in family.samples.items()
            if ("purpose", "database_read") in labels
        )
        if family
        else 0
    )
