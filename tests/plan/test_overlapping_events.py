"""Events that would undo each other are refused before anything is degraded, each pair by name."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plimsoll
from plimsoll.inputs.mistakes import InputError

HEAD = """kind = "plan"
schema_version = 1
target = [{ name = "disk", path = "/data" }, { name = "other", path = "/other" }]
instance = [{ name = "one", backend = "files", files = 1, file_mib = 8 }]
workload = [{ name = "load", pattern = "file-server", outstanding = 1 }]
phase = [
    { kind = "prepare" },
    { kind = "measure", name = "early", duration_s = 60 },
    { kind = "measure", name = "late", duration_s = 60 },
]
"""


def event(name: str, begin: float, undo: float | None, what: str, phase: str = "early") -> str:
    end = "" if undo is None else f"undo_after_s = {undo}\n"
    return f'[[event]]\nname = "{name}"\nphase = "{phase}"\nafter_s = {begin}\n{end}{what}\n'


def refusal(*events: str) -> str:
    with pytest.raises(InputError) as refused:
        plimsoll.parse_plan(HEAD + "".join(events))
    return str(refused.value)


THROTTLE = 'action = "throttle"\niops = 9'
DM, DM_PATH = (f'action = "disk fails"\ndevice = "{name}"' for name in ("slow", "/dev/mapper/slow"))
SERVER = 'action = "server killed"\nport = 5432\nstart = ["true"]'
BY_FILE = 'action = "server killed"\npid_file = "/run/pg.pid"\nstart = ["true"]'
LINK = 'action = "link down"\nlink = "eth1"'
MD = 'action = "md drive fails"\ndevice = "/dev/md0"\nmember = "/dev/sd{}"'
ISCSI = 'action = "iscsi logout"\niqn = "iqn.2001-04.org:disk"'
AT = f'{ISCSI}\nportal = "{{}}"'
NEIGHBOUR = 'action = "neighbour"\nplan = "/plans/{}.toml"'
PATH = 'action = "path fails"\ndevice = "{}"'


@pytest.mark.parametrize(
    ("first", "second", "thing"),
    [
        (THROTTLE, THROTTLE, "target disk and the I/O of this run"),
        (THROTTLE, f'{THROTTLE}\ntarget = "other"', "the I/O of this run"),
        (f'{THROTTLE}\ntarget = "disk"', f"{THROTTLE}\nport = 5432", "target disk"),
        (f"{THROTTLE}\nport = 5432", SERVER, "the server on port 5432"),
        (BY_FILE, BY_FILE, "the server of /run/pg.pid"),
        (DM, DM_PATH, "device slow"),
        (MD.format("b"), MD.format("c"), "device md0"),
        (PATH.format("sdb"), PATH.format("/dev/sdb"), "device sdb"),
        (LINK, LINK, "link eth1"),
        (ISCSI, ISCSI, "iSCSI target iqn.2001-04.org:disk"),
        (NEIGHBOUR.format("a"), NEIGHBOUR.format("a"), "the databases of /plans/a.toml"),
        (ISCSI, AT.format("10.0.0.1"), "iSCSI target iqn.2001-04.org:disk"),
        (AT.format("10.0.0.1"), AT.format("10.0.0.1:3260"), "iSCSI target iqn.2001-04.org:disk"),
    ],
)
def test_two_events_on_one_thing_at_one_time_are_refused(first, second, thing):
    """The second would take what the first has degraded for what was there before."""
    text = refusal(event("A", 10, 30, first), event("B", 20, 40, second))
    assert f'is 20, but event "A" changes {thing} until 30 s' in text, text
    assert "`event[2].after_s`" in text and 'let "B" begin after "A" is undone' in text


def test_every_pair_is_reported_and_an_open_end_is_that_of_the_phase():
    text = refusal(
        event("A", 20, None, THROTTLE), event("B", 5, 30, THROTTLE), event("C", 40, None, THROTTLE)
    )
    assert 'is 20, but event "B" changes' in text
    assert 'is 40, but event "A" changes' in text and "until the end of the phase" in text
    assert text.count("each would put back") == 2, text
    assert "each would" in refusal(event("A", 5, 20, THROTTLE), event("B", 20, 30, THROTTLE))


@pytest.mark.parametrize(
    "events",
    [
        (event("A", 5, 20, THROTTLE), event("B", 21, 30, THROTTLE)),
        (event("A", 5, None, THROTTLE), event("B", 5, None, THROTTLE, "late")),
        (event("A", 5, None, DM), event("B", 5, None, 'action = "disk fails"\ndevice = "b"')),
        (event("A", 5, None, LINK), event("B", 5, None, f'{LINK}\nnamespace = "peer"')),
        (event("A", 5, None, PATH.format("sdb")), event("B", 5, None, PATH.format("sdc"))),
        (event("A", 5, None, AT.format("10.0.0.1")), event("B", 9, None, AT.format("10.0.0.10"))),
        (event("A", 5, None, NEIGHBOUR.format("a")), event("B", 5, None, NEIGHBOUR.format("b"))),
        (event("A", 5, None, SERVER), event("B", 5, None, THROTTLE)),
    ],
)
def test_events_apart_in_time_or_on_other_things_are_taken(events):
    assert len(plimsoll.parse_plan(HEAD + "".join(events)).events) == 2


def test_two_names_that_share_their_files_are_refused():
    """Control group, log, confirm-file and folder of a neighbour are called by the event."""
    text = refusal(event("drive 3", 5, 20, DM), event("drive-3", 30, 40, DM))
    assert 'whose files are called as those of event "drive 3"' in text
    assert "`event[2].name`" in text


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 59), st.none() | st.integers(1, 59)).filter(
            lambda times: times[1] is None or times[0] < times[1]
        ),
        min_size=2,
        max_size=5,
    )
)
def test_a_plan_is_taken_only_where_no_two_throttles_are_on_at_one_time(times):
    """Next to a plain sweep over the times."""
    spans = sorted((begin, 60 if end is None else end) for begin, end in times)
    apart = all(one[1] < other[0] for one, other in pairwise(spans))
    text = HEAD + "".join(
        event(f"event {number}", begin, end, THROTTLE)
        for number, (begin, end) in enumerate(times, 1)
    )
    if apart:
        plimsoll.parse_plan(text)
    else:
        with pytest.raises(InputError, match="each would put back"):
            plimsoll.parse_plan(text)
