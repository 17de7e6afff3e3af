"""The run plan that would qualify a sizing.

One server's databases at the load of the worst failure planned for.

The plan is an ordinary plan file for `plimsoll run`: a host, a target for each database and log
volume, an instance for each database, the load, and the phases of a two-hour performance test. Its
paths are where the provisioning plan mounts the volumes on Linux; whoever runs it elsewhere edits
them.

Limits: one server is tested, with as many databases active as it would have after another one is
lost. The array that serves several servers at once must be tested from all of them. Background
scans run at the pace of the engine's edition, which is near the rate the sizing counts with but
does not follow it.
"""

import json
import math
from collections.abc import Iterator

from plimsoll.sizing.design import Sizing

PLAN_SCHEMA_VERSION = 1
DURATION_S = 7200
CACHE_MIB = 256  # as in the published tests: dell_eql, section 2
# The engine's editions.
ENGINE_EDITIONS = {
    "exchange_2010": "2010",
    "exchange_2013": "2013",
    "exchange_2016": "2016",
    "exchange_2019": "2019",
    "transactional": "2013",
}


def sizing_plan(sizing: Sizing) -> str:
    """Write the plan as TOML.

    Args:
        sizing: What `size` returned.

    Returns:
        The text of a plan file.
    """
    return "\n".join(_lines(sizing)) + "\n"


def _lines(sizing: Sizing) -> Iterator[str]:
    figures, requirements = sizing.results, sizing.requirements
    databases = int(figures["databases_per_server_worst_count"].value)
    iops = figures["server_database_iops"].value
    size_mib = math.ceil(figures["database_size_gb"].value * 1024)
    sessions = int(figures["sessions_per_database_count"].value)
    title = requirements.title or requirements.name
    yield (
        "# Made by `plimsoll size`. It tests one server with the databases it has active after "
        "another one is lost."
    )
    yield (
        f"# Each database volume needs {math.ceil(figures['database_volume_size_gb'].value):,} GB, "
        f"each log volume"
    )
    yield (
        f"# {math.ceil(figures['log_volume_size_gb'].value):,} GB (1024-based). Change the paths "
        f"to where yours are mounted."
    )
    yield (
        "# Sessions are a beginning: raise them until required_iops is reached, or the limits are."
    )
    yield ""
    yield 'kind = "plan"'
    yield f"schema_version = {PLAN_SCHEMA_VERSION}"
    yield 'name = "qualify"'
    yield f"description = {_text(f'Qualifies the sizing: {title}')}"
    yield 'test = "performance"'
    yield 'limits = "strict"'
    yield f"required_iops = {iops:.6g}"
    yield ""
    yield "[[host]]"
    yield 'name = "server 1"'
    for number in range(1, databases + 1):
        yield ""
        yield "[[target]]"
        yield f'name = "volume {number:03d}"'
        yield 'host = "server 1"'
        yield f'path = "/srv/volumes/db{number:03d}"'
        yield f'log_path = "/srv/volumes/log{number:03d}"'
    for number in range(1, databases + 1):
        yield ""
        yield "[[instance]]"
        yield f'name = "db{number:03d}"'
        yield f'target = "volume {number:03d}"'
        yield f"edition = {_text(ENGINE_EDITIONS.get(requirements.edition, '2010'))}"
        yield "databases = 1"
        yield f"database_size_mib = {max(size_mib, 64)}"
        yield f"page_kib = {requirements.guidance.number('page_kb'):g}"
        yield f"cache_mib_max = {CACHE_MIB}"
        yield f"copies = {requirements.copies.count}"
        yield (
            f"maintenance = "
            f"{'true' if requirements.guidance.number('maintenance_mb_per_s') else 'false'}"
        )
    yield ""
    yield "[[workload]]"
    yield 'name = "mix"'
    yield f"load = {{ sessions = {sessions} }}"
    for kind, more in (
        ("prepare", ""),
        ("warm_up", ""),
        ("measure", f"duration_s = {DURATION_S}"),
        ("stop", ""),
    ):
        yield from _phase(kind, more)
    yield from _phase("checksum", "")


def _phase(kind: str, more: str) -> Iterator[str]:
    yield ""
    yield "[[phase]]"
    yield f'kind = "{kind}"'
    if more:
        yield more


def _text(value: str) -> str:
    """A TOML basic string; its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
