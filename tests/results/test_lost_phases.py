"""Events whose phase the outcome of a run does not have."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plimsoll.documents.staged_events import EventLimits, StagedEventsFile
from plimsoll.files import folder
from plimsoll.results.events import event_figures
from plimsoll.verdict.events import checks_of
from tests.results.test_several_events import Planted, staged


def test_an_event_whose_phase_was_never_noted_passes_nothing(tmp_path: Path) -> None:
    """A run that came to a stand tells of no phase; no error was seen, and no one has looked."""
    event = staged(1, Planted(100, 20), EventLimits(pause_s_max=5, errors_max=0))
    file = StagedEventsFile(schema_version=1, events=[event])
    file.write(tmp_path / folder.STAGED_EVENTS)
    (tmp_path / folder.EVENTS).write_text("", encoding="utf-8")
    planned = SimpleNamespace(name=event.name, node=None)
    run = SimpleNamespace(workloads=[], phases=[])
    plan: Any = SimpleNamespace(events=[planned], run=run)
    outcome: Any = SimpleNamespace(phases=[], error=None, ending="failed")
    (found,) = event_figures(tmp_path, plan, outcome, lambda text, values=None: [])
    checks = checks_of(found)
    assert [(check.name, check.status) for check in checks] == [("event_staged", "not_evaluated")]
    assert "its phase is not in the outcome" in checks[0].reason
