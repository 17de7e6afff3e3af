"""A run in virtual time on a cloud volume that bursts from 300 to 900 requests a second while it
has saved credit.
"""

import json
from pathlib import Path
from typing import Any

from plimsoll import _native
from plimsoll.documents.document import ABSENT
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.files import folder
from plimsoll.run.execute import SampleStore, _write_histograms
from tests.support.plain_stages import summarize


def run_on_cloud_volume(path: Path, plan: dict[str, Any], saved: float) -> dict[str, Any]:
    """Makes the run folder `path` of a plan with one such volume, `saved` requests in credit, and
    gives its summary.
    """
    caps = _caps_in(plan["run"])
    assert len(caps) == 1
    caps[0].update(
        operations_per_second=300.0,
        burst_operations_per_second=900.0,
        credit_count_max=saved,
        bytes_per_second=1e9,
    )
    path.mkdir()
    completed = Plan.from_plain(plan)
    run = _native.Run(json.dumps(plan["run"]))
    store = SampleStore(path, completed.run)
    while (buffers := run.next_samples(1.0)) is not None:
        run.next_events()
        if buffers:
            store.add(buffers)
    outcome = Outcome.from_plain(json.loads(run.outcome()))
    assert outcome.error is None
    store.finish()
    _write_histograms(path, completed.run, outcome)
    completed.write(path / folder.PLAN)
    outcome.replace(figures=ABSENT).write(path / folder.OUTCOME)
    return summarize(path)


def _caps_in(value: Any) -> list[dict[str, Any]]:
    """Every cap of the modelled storage of a spec."""
    if isinstance(value, list):
        return [found for item in value for found in _caps_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value["cap"]] if isinstance(value.get("cap"), dict) else []
    return own + [found for item in value.values() for found in _caps_in(item)]
