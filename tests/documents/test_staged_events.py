"""The document of staged events keeps what it was given and names every mistake."""

import pytest

from plimsoll.documents.document import DocumentError
from plimsoll.documents.staged_events import EventLimits, StagedEvent, StagedEventsFile
from plimsoll.files import folder

EVENT = StagedEvent(
    name="controller A",
    phase="measure",
    kind="command",
    planned_s=600.0,
    begun_s=672.25,
    applied_s=672.5,
    undo_begun_s=None,
    undone_s=None,
    proved=None,
    exit_code=0,
    output="done\n",
    undo_exit_code=None,
    undo_output=None,
    error=None,
    judge=EventLimits(pause_s_max=30.0),
)


def test_a_file_of_staged_events_is_read_as_it_was_written(tmp_path):
    written = StagedEventsFile(schema_version=1, events=[EVENT])
    written.write(tmp_path / folder.STAGED_EVENTS)
    assert StagedEventsFile.read(tmp_path / folder.STAGED_EVENTS) == written
    assert written.events[0].judge.errors_max is None


def test_every_mistake_of_such_a_file_is_named():
    wrong = EVENT.plain() | {"kind": "wish", "begun_s": "soon", "judge": {"pause": 3}}
    with pytest.raises(DocumentError) as found:
        StagedEventsFile.from_plain({"schema_version": 1, "events": [wrong]})
    assert len(found.value.mistakes) == 3
