"""Whether frames reach a portal whole, on the loopback interface of this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from plimsoll.host import path_mtu as under_test
from plimsoll.host.path_mtu import path_mtu


def may_ask() -> bool:
    """Whether this user may send echo requests, and the loopback answers."""
    return path_mtu("127.0.0.1", 576, 0.5).is_whole


needs_echo = pytest.mark.skipif(not may_ask(), reason="echo requests are not allowed here")


@needs_echo
def test_packets_that_fit_come_through() -> None:
    """The loopback carries 65,536 bytes, so jumbo packets arrive in one piece."""
    found = path_mtu("127.0.0.1:3260", 9000)
    assert found.is_whole
    assert found.in_words() == "packets of 9000 bytes reach 127.0.0.1:3260 in one piece"


@needs_echo
def test_packets_that_do_not_fit_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that drops jumbo frames answers short requests: the two must be told apart."""
    answered = under_test._answered

    def drops(asking: socket.socket, number: int, content: bytes, patience_s: float) -> bool:
        return len(content) < 8000 and answered(asking, number, content, patience_s)

    monkeypatch.setattr(under_test, "_answered", drops)
    found = path_mtu("127.0.0.1", 9000, 0.1)
    assert not found.is_whole
    assert found.largest_bytes == 1500
    assert "do not reach 127.0.0.1: no answer" in found.in_words()


@needs_echo
def test_the_own_interface_may_be_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet that this host does not even send is no fault of the switch."""
    mtu = int(Path("/sys/class/net/lo/mtu").read_text())
    if mtu > 65_000:
        pytest.skip("the loopback takes all that a packet can be")
    assert "interface of this host" in str(path_mtu("127.0.0.1", mtu + 1).reason)


@needs_echo
def test_a_portal_that_answers_nothing_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer at all proves nothing of frame sizes."""
    monkeypatch.setattr(under_test, "_answered", lambda *_: False)
    found = path_mtu("127.0.0.1", 9000, 0.05)
    assert found.largest_bytes is None
    assert found.in_words().startswith("nothing is known of the way to 127.0.0.1: no answer")


def test_a_name_that_means_nothing_is_said() -> None:
    """A mistyped portal must not look like a broken network."""
    assert path_mtu("no such name", 1500, 0.05).largest_bytes is None
