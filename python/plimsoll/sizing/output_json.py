"""A sizing as plain data for JSON.

One key for each figure, each with its value and the chain that leads to it.
"""

from dataclasses import asdict

from plimsoll import __version__
from plimsoll.sizing.design import Sizing
from plimsoll.sizing.guidance import cite, read_data
from plimsoll.sizing.requirements import plain
from plimsoll.sizing.traced import as_json
from plimsoll.units import SIZE_NOTE

SCHEMA_VERSION = 1


def sizing_data(sizing: Sizing) -> dict[str, object]:
    """Turn a sizing into plain data.

    Args:
        sizing: What `size` returned.

    Returns:
        Top-level keys are the figures (`mailbox_size_mb`, `database_count` and so on), each with
        `value`, `unit`, `formula`, `source` and `steps`; beside them stand `kind`, `schema_version`
        and the lists.
    """
    figures = {name: as_json(step) for name, step in sizing.results.items()}
    return {
        "kind": "sizing",
        "schema_version": SCHEMA_VERSION,
        "plimsoll_version": __version__,
        "reading": sizing.reading,
        "units": SIZE_NOTE,
        **figures,
        "requirements": plain(sizing.requirements),
        "placement": [
            {
                "database": placement.database + 1,
                "servers": [server + 1 for server in placement.servers],
            }
            for placement in sizing.placements
        ],
        "failover": _failover(sizing),
        "drive_proposal": asdict(sizing.proposal),
        "volumes": [asdict(volume) for volume in sizing.volumes],
        "users_by_mailbox_size": asdict(sizing.users_table) if sizing.users_table else None,
        "editions": [asdict(row) for row in sizing.editions],
        "published_differences": [asdict(difference) for difference in sizing.differences],
        "network_rules": [asdict(rule) for rule in sizing.network_rules],
        "hosts": [
            {
                **asdict(fit),
                "memory_fits": fit.memory_fits,
                "processors_overcommitted": fit.processors_overcommitted,
            }
            for fit in sizing.hosts
        ],
        "findings": [asdict(finding) for finding in sizing.findings],
        "sources": cited_sources(sizing),
    }


def _failover(sizing: Sizing) -> dict[str, object]:
    """Servers count from 1, as everywhere a reader meets them."""
    failed = sizing.failover.worst_failed_server
    return asdict(sizing.failover) | {"worst_failed_server": None if failed is None else failed + 1}


def cited_sources(sizing: Sizing) -> dict[str, str]:
    """The documents that the steps and findings name, by the key they use."""
    sources: dict[str, str] = read_data("guidance.toml")["sources"]
    named = [step.source for step in sizing.steps] + [finding.source for finding in sizing.findings]
    text = "; ".join(named)
    return {
        key: document
        for key, document in sources.items()
        if key in text and cite(key, sources) == document
    }
