"""What the run and its stage say is told in the order in which it happened."""

import io
import json
import threading
from pathlib import Path
from unittest.mock import Mock

import plimsoll
from plimsoll.documents.event import Event
from plimsoll.run.execute import _follow


def event(at_s: float, text: str) -> Event:
    return Event(
        time_ns=int(at_s * 1e9), utc_ns=0, level="info", kind="said", phase="measure", text=text
    )


class Stage:
    """One that undoes its event while the run closes its databases."""

    waits_for_person = False
    is_hurried = False

    def __init__(self) -> None:
        self._news: list[Event] = []

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def end(self) -> None:
        self._news.append(event(66.2, "undone"))

    def is_undoing(self) -> bool:
        return False

    def hear(self, heard: Event) -> None:
        if heard.text == "measure started":
            self._news.append(event(6.5, "applied"))

    def reach(self, at_s: float) -> None:
        pass

    def now_s(self) -> float:
        return 0.0

    def news(self) -> list[Event]:
        news, self._news = self._news, []
        return news


class Run:
    """Two looks: while it measures, and when it is over."""

    def __init__(self) -> None:
        self._looks = [
            ([], [event(6.0, "measure started"), event(7.0, "half")]),
            (None, [event(66.0, "measure ended"), event(66.3, "closed"), event(66.4, "ended")]),
        ]

    def next_samples(self, _: float) -> list[bytes] | None:
        self._buffers, self._events = self._looks.pop(0)
        return self._buffers

    def next_events(self) -> list[str]:
        return [json.dumps(item.plain()) for item in self._events]


def test_what_a_stage_undid_is_told_before_what_came_after(tmp_path: Path) -> None:
    """The terminal said "undone" below the end of the run, with an earlier time."""
    told = io.StringIO()
    plan = Mock(watch=(), run=Mock(sample_interval_ms=1000, instances=(), workloads=()))
    _follow(
        plan,
        Run(),
        tmp_path,
        Mock(),
        lambda heard: told.write(f"{heard.text}\n") and None,
        Mock(),
        [],
        threading.Event(),
        Stage(),
        Mock(),
    )
    expected = ["measure started", "applied", "half", "measure ended", "undone", "closed", "ended"]
    assert told.getvalue().splitlines() == expected
    lines = (tmp_path / "events.log").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == expected


MODELLED = """kind = "plan"
schema_version = 1
target = [{ name = "array", modelled = "dell-md3000i" }]
instance = [{ name = "one", database_size_mib = 64 }]
workload = [{ name = "load", load = { sessions = 1 } }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 9 }, { kind = "stop" }]
[[event]]
name = "path 2"
after_s = 3
undo_after_s = 6
do = "path fails"
number = 2
"""


def test_a_modelled_event_is_told_when_the_run_has_come_so_far(tmp_path: Path) -> None:
    """It was told at the end of its phase, below later figures and the end itself."""
    told: list[tuple[float, str]] = []

    class Hears(plimsoll.Listener):
        def event(self, event: Event) -> None:
            told.append((event.time_ns / 1e9, event.kind))

        def sample(self, table: plimsoll.Columns) -> None:
            told.append((float(table["end_ns"][-1]) / 1e9, "figures"))

    plan = plimsoll.parse_plan(MODELLED)
    plimsoll.qualify(plan, tmp_path / "run", listener=Hears())
    for kind in ("event_applied", "event_undone"):
        ((place, at_s),) = [(place, at) for place, (at, what) in enumerate(told) if what == kind]
        assert max(time for time, _ in told[:place]) <= at_s
        assert min(time for time, _ in told[place:]) >= at_s
