"""Ready actions that this kernel or this machine cannot carry out, by tools that stand for its own.

Programs of our own keep a state, as device mapper, md, multipath and iSCSI do; a tree of files
stands for `/sys`.
"""

import os
from pathlib import Path

import pytest

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions import ActionError, prepared
from tests.support.ready_actions import done, here, tool


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tools"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


def calls(tools: Path) -> list[str]:
    return (tools / "calls").read_text().splitlines()


def test_a_device_mapper_disk_gets_slow_and_its_old_table_back(tmp_path, tools):
    table = tools / "table"
    table.write_text("0 2048 linear 8:16 384\n")
    tool(
        tools,
        "dmsetup",
        f'case "$1" in table) [ "$2" = lv ] || exit 1; cat {table};; '
        f'load) printf "%s\\n" "$4" > {table}.new;; resume) mv {table}.new {table};; esac',
    )
    steps = prepared(
        ReadyAction(what="disk slow", device="/dev/mapper/lv", delay_ms=50.0),
        here(tmp_path, user=0),
    )
    assert done(steps.apply, tmp_path) is None
    assert table.read_text() == "0 2048 delay 8:16 384 50\n"
    assert done(steps.prove, tmp_path) is None
    assert done(steps.undo, tmp_path) is None
    assert table.read_text() == "0 2048 linear 8:16 384\n"
    assert "does not show" in str(done(steps.prove, tmp_path, 0.2))
    fails = prepared(ReadyAction(what="disk fails", device="lv"), here(tmp_path, user=0))
    assert done(fails.apply, tmp_path) is None
    assert table.read_text() == "0 2048 error\n"
    # A second event would take what the first has made for what was there before.
    with pytest.raises(ActionError, match="degraded already"):
        prepared(ReadyAction(what="disk fails", device="lv"), here(tmp_path, user=0))
    table.write_text("0 8 linear 8:16 0\n8 8 linear 8:32 0\n")
    with pytest.raises(ActionError, match="not one linear piece"):
        prepared(ReadyAction(what="disk slow", device="lv", delay_ms=5.0), here(tmp_path, user=0))
    with pytest.raises(ActionError, match="no device mapper disk other"):
        prepared(ReadyAction(what="disk fails", device="other"), here(tmp_path, user=0))


def md_tree(tmp_path: Path, level: str = "raid1", degraded: str = "0") -> Path:
    place = tmp_path / "sys/block/md0/md"
    (place / "dev-sdb").mkdir(parents=True, exist_ok=True)
    for name, text in (("level", level), ("degraded", degraded), ("dev-sdb/state", "in_sync")):
        (place / name).write_text(text + "\n")
    return tmp_path / "sys"


def test_a_drive_of_md_fails_and_is_added_again_only_where_data_stay(tmp_path, tools):
    sys_tree = md_tree(tmp_path)
    state = sys_tree / "block/md0/md/dev-sdb/state"
    tool(
        tools,
        "mdadm",
        f'case "$1 $3" in *--fail) echo faulty > {state};; --detail*) echo /dev/sdb;; '
        f"*--remove) grep -q faulty {state};; *--add) grep -q faulty {state} && "
        f"echo in_sync > {state};; esac",
    )
    action = ReadyAction(what="md drive fails", device="/dev/md0", member="/dev/sdb")
    steps = prepared(action, here(tmp_path, sys=sys_tree, user=0))
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    assert done(steps.undo, tmp_path) is None
    assert state.read_text() == "in_sync\n"
    manage = [call.split()[3] for call in calls(tools) if "--manage" in call]
    assert manage == ["--fail", "--remove", "--add"]
    # A drive that is back can be neither removed nor added, which is no mistake.
    assert done(steps.undo, tmp_path, to_the_end=True) is None
    md_tree(tmp_path, degraded="1")
    with pytest.raises(ActionError, match="lacks drives already"):
        prepared(action, here(tmp_path, sys=sys_tree, user=0))
    md_tree(tmp_path, level="raid0", degraded="")
    with pytest.raises(ActionError, match="is raid0"):
        prepared(action, here(tmp_path, sys=sys_tree, user=0))


def test_a_tool_that_fails_proves_nothing_gone(tmp_path, tools):
    """Without a code of its own for "there is none", a tool that prints nothing proves nothing."""
    tool(tools, "lists", "exit 3")
    hides = Step(kind="hides", argv=["lists"], text="sda")
    assert "`lists` ended with exit code 3" in str(done([hides], tmp_path, 0.2))
    assert done([hides.replace(none_code=3)], tmp_path, 0.2) is None
    tool(tools, "lists", "echo /dev/sdb")
    assert done([hides], tmp_path, 0.2) is None


def test_what_a_tool_shows_is_compared_by_whole_words(tmp_path, tools):
    tool(tools, "mdadm", "echo '0 8 16 0 active sync /dev/sdaa'")
    shows = Step(kind="shows", argv=["mdadm"], text="/dev/sda")
    assert "does not show '/dev/sda'" in str(done([shows], tmp_path, 0.2))
    assert done([shows.replace(kind="hides")], tmp_path, 0.2) is None
    assert done([shows.replace(text="sync /dev/sdaa")], tmp_path, 0.2) is None


def test_a_path_goes_away_only_where_another_one_runs(tmp_path, tools):
    told = '[ "$1" != show ] || printf "sdb active\\nsdc active\\n"'
    tool(tools, "multipathd", told)
    block = tmp_path / "sys/block"
    for disk in ("sdb", "sdc"):
        (block / disk / "device").mkdir(parents=True)
        (block / disk / "device/state").write_text("running\n")
        (block / disk / "holders/dm-0").mkdir(parents=True)
        (block / "dm-0/slaves" / disk).mkdir(parents=True)
    action = ReadyAction(what="path fails", device="sdb")
    steps = prepared(action, here(tmp_path, sys=tmp_path / "sys", user=0))
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    # The kernel refuses the word without the end of its line.
    assert [step.text for step in (steps.apply[0], steps.undo[0])] == ["offline\n", "running\n"]
    assert (block / "sdb/device/state").read_text().startswith("offline")
    assert done(steps.undo, tmp_path) is None
    assert (block / "sdb/device/state").read_text().startswith("running")
    done_calls = [call for call in calls(tools) if "show" not in call]
    assert done_calls == ["multipathd fail path sdb", "multipathd reinstate path sdb"]
    tool(tools, "multipathd", "echo sdb active; echo sdc failed")
    with pytest.raises(ActionError, match="last path"):
        prepared(action, here(tmp_path, sys=tmp_path / "sys", user=0))
    # Whether another path carries anything is not known.
    for silent in ("exit 1", "exit 0", "echo timeout; exit 1"):
        tool(tools, "multipathd", silent)
        with pytest.raises(ActionError, match="multipathd does not say which paths are active"):
            prepared(action, here(tmp_path, sys=tmp_path / "sys", user=0))
    tool(tools, "multipathd", told)
    (block / "sdb/device/state").write_text("offline\n")
    with pytest.raises(ActionError, match="sdb is offline already"):
        prepared(action, here(tmp_path, sys=tmp_path / "sys", user=0))
    (block / "sdb/device/state").write_text("running\n")
    (block / "sdc/device/state").write_text("offline\n")
    with pytest.raises(ActionError, match="last path"):
        prepared(action, here(tmp_path, sys=tmp_path / "sys", user=0))


def test_an_iscsi_session_ends_and_begins_again(tmp_path, tools):
    sessions = tools / "sessions"
    line = "tcp: [1] 10.0.0.1:3260,1 iqn.2001-04.org:disk (non-flash)"
    sessions.write_text(line + "\n")
    tool(
        tools,
        "iscsiadm",
        f'case "$*" in *--logout) : > {sessions};; *--login) [ ! -s {sessions} ] || exit 15; '
        f'echo "{line}" > {sessions};; '
        f"*session) cat {sessions};; esac",
    )
    action = ReadyAction(what="iscsi logout", iqn="iqn.2001-04.org:disk", portal="10.0.0.1:3260")
    steps = prepared(action, here(tmp_path, user=0))
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    with pytest.raises(ActionError, match="there is no iSCSI session"):
        prepared(action, here(tmp_path, user=0))
    for _ in range(2):
        assert done(steps.undo, tmp_path) is None
        assert sessions.read_text() == line + "\n"
    with pytest.raises(ActionError, match=r"no session with iqn\.other"):
        prepared(ReadyAction(what="iscsi logout", iqn="iqn.other"), here(tmp_path, user=0))


def test_sessions_of_other_targets_and_portals_prove_nothing(tmp_path, tools):
    """A portal without its port, and a target whose name begins like ours."""
    sessions = tools / "sessions"
    ours = "tcp: [1] 10.0.0.1:3260,1 iqn.2001-04.org:disk1 (non-flash)"
    other = "tcp: [2] 10.0.0.1:3260,1 iqn.2001-04.org:disk10 (non-flash)"
    sessions.write_text(f"{ours}\n{other}\n")
    ends = f'echo "{other}" > {sessions}'
    tool(tools, "iscsiadm", f'case "$*" in *--logout) {ends};; *session) cat {sessions};; esac')
    action = ReadyAction(what="iscsi logout", iqn="iqn.2001-04.org:disk1", portal="10.0.0.1")
    steps = prepared(action, here(tmp_path, user=0))
    assert done(steps.prove, tmp_path, 0.2) is not None
    assert done([*steps.apply, *steps.prove], tmp_path) is None
    # The login brought nothing back, and the other session is no sign of it.
    assert done(steps.undo, tmp_path, 0.2) is not None


def test_only_the_sessions_that_there_were_are_logged_in_again(tmp_path, tools):
    """A target with four portals known and a session with two of them."""
    sessions = tools / "sessions"
    lines = [f"tcp: [{n}] 10.0.0.{n}:3260,1 iqn.2001-04.org:disk (non-flash)" for n in (1, 2)]
    sessions.write_text("\n".join(lines) + "\n")
    tool(
        tools,
        "iscsiadm",
        f'case "$*" in *session) [ -s {sessions} ] || exit 21; cat {sessions};; '
        f'*"-p "*--logout) grep -v "$6,1" {sessions} > {sessions}.new; mv {sessions}.new '
        f'{sessions};; *"-p "*--login) echo "tcp: [9] $6,1 iqn.2001-04.org:disk (non-flash)" '
        f">> {sessions};; *) exit 7;; esac",
    )
    action = ReadyAction(what="iscsi logout", iqn="iqn.2001-04.org:disk")
    steps = prepared(action, here(tmp_path, user=0))
    assert done([*steps.apply, *steps.prove], tmp_path, 1) is None
    assert sessions.read_text() == ""
    assert done(steps.undo, tmp_path, 1) is None
    logins = [call for call in calls(tools) if "--login" in call]
    assert [call.split()[6] for call in logins] == ["10.0.0.1:3260", "10.0.0.2:3260"]


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for what, package in (
        ("disk fails", "dmsetup"),
        ("md drive fails", "mdadm"),
        ("path fails", "multipath-tools"),
        ("iscsi logout", "open-iscsi"),
        ("link down", "iproute2"),
    ):
        action = ReadyAction(what=what, device="x", member="y", link="z")  # type: ignore[arg-type]
        with pytest.raises(ActionError, match=package):
            prepared(action, here(tmp_path, user=0))
        with pytest.raises(ActionError, match="only root"):
            prepared(action, here(tmp_path, user=1000))


def test_a_link_below_the_default_route_is_refused(tmp_path, tools):
    """A VLAN on a bridge on a bond has the route; the link is a part of the bond."""
    tool(
        tools,
        "ip",
        'case "$*" in *"link show"*) echo "2: eth0: <BROADCAST,UP> state UP";; '
        '*"-4 route show dev br0.5"*) echo "default via 10.0.0.1";; esac',
    )
    net = tmp_path / "sys/class/net"
    for name, upper in (("eth0", "bond0"), ("bond0", "br0"), ("br0", "br0.5"), ("br0.5", "")):
        (net / name).mkdir(parents=True)
        if upper:
            (net / name / f"upper_{upper}").symlink_to(net / upper)
    (net / "br0.5/upper_eth0").symlink_to(net / "eth0")
    action = ReadyAction(what="link down", link="eth0")
    place = here(tmp_path, user=0, sys=tmp_path / "sys")
    with pytest.raises(
        ActionError, match=r"br0\.5, which lies on link eth0, has the default route"
    ):
        prepared(action, place)
    (net / "br0/upper_br0.5").unlink()
    assert prepared(action, place).apply
    # In a namespace nobody is cut off.
    (net / "br0/upper_br0.5").symlink_to(net / "br0.5")
    assert prepared(action.replace(namespace="peer"), place).apply
