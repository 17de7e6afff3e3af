"""Hundreds of I/Os that hang at once are few lines, and none is left untold."""

import pytest

from plimsoll import Event
from plimsoll.cli.hung_lines import HungLines
from plimsoll.cli.live import PlainListener


def hung(at_s: float, path: str = "/mnt/array/mail/database001.edb") -> Event:
    text = f"a read of {path} at offset 4096 (transaction) has not completed for more than 30 s"
    return Event(
        time_ns=int(at_s * 1e9), utc_ns=0, level="error", kind="hung_io", phase="measure", text=text
    )


def test_the_first_is_shown_and_the_rest_is_counted_every_ten_seconds() -> None:
    lines = HungLines(["/mnt/array", "/mnt/array/nested", "/mnt/other"], 30.0)
    first = lines.line(hung(40))
    assert first is not None and "mail/database001.edb at offset 4096" in first
    assert [lines.line(hung(40 + number / 100)) for number in range(1, 300)] == [None] * 299
    later = lines.line(hung(50.5))
    assert later is not None
    assert "301 I/Os on /mnt/array have not completed for more than 30 s" in later
    assert "the first since 40 s" in later
    assert lines.rest(51_000_000_000) == []
    # Each storage has lines of its own; a run may end within ten seconds.
    assert "/mnt/other/x" in str(lines.line(hung(51, "/mnt/other/x")))
    assert lines.line(hung(52, "/mnt/other/x")) is None
    assert lines.line(hung(53, "/mnt/array/nested/y")) is not None
    (rest,) = lines.rest(54_000_000_000)
    assert "2 I/Os on /mnt/other have not completed" in rest


def test_a_terminal_shows_two_lines_of_two_hundred(capsys: pytest.CaptureFixture[str]) -> None:
    listener = PlainListener(quiet=True)
    for number in range(200):
        listener.event(hung(40 + number / 1000))
    listener.ends()
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 2, shown
    assert "200 I/Os on /mnt/array/mail have not completed" in shown[1]
