"""A power cut in memory: what an audit says of storage that keeps its promises, and of storage that
breaks one.

The engine, the marks, the survey and the judgement are those of a real cut; the disk is simulated,
in virtual time, and the witness hears everything at once. Nothing is written anywhere.
"""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.documents.powercut import PowercutAudit
from plimsoll.powercut import workspace
from plimsoll.powercut.judge import judge
from plimsoll.powercut.witness_log import Line, Statement, rings_of

REHEARSED_BEHAVIOURS = ("honest", "drops_flushes", "tears", "reorders")
#: Small rings in little memory; the content of a whole second of real work.
SIZE_BYTES, PAGE_BYTES, SESSIONS, LANES, SLOTS, CACHE_BYTES = 1 << 20, 4096, 4, 4, 64, 512 << 10
MILLISECONDS = 60
#: The simulated disk says that it has sectors of 4 KiB.
PHYSICAL_BYTES = 4096


def rehearse_powercut(behaviour: str, seed: int = 1) -> PowercutAudit:
    """Cut the power of a simulated disk and audit what is left.

    >>> rehearse_powercut("honest")["result"]
    'pass'
    """
    from plimsoll import _native

    wanted = workspace.PowercutWanted(Path("/"), SIZE_BYTES, PAGE_BYTES, SESSIONS)
    work = workspace.work_of(wanted)
    work.update({"run": seed, "lanes": LANES, "slots": SLOTS, "cache_bytes": CACHE_BYTES})
    spec = {"behaviour": behaviour, "seed": seed, "milliseconds": MILLISECONDS, "work": work}
    found = json.loads(_native.rehearse(json.dumps(spec)))
    statement = Statement({"run": workspace.run_name(work)}, rings_of(work), ended="silent")
    for line in found["acknowledged"]:
        statement.add(Line(**line))
    judgement = judge(
        statement,
        found["survey"],
        physical_bytes=PHYSICAL_BYTES,
        unwitnessed_max=work["unwitnessed_max"],
    )
    return PowercutAudit(
        kind="power_cut_audit",
        rehearsed=behaviour,
        result=judgement["result"],
        reasons=judgement["reasons"],
        findings=judgement["findings"],
        figures=judgement["figures"],
        recovery=found["survey"]["recovery"],
    )
