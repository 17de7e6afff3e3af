"""The witness: what it writes is on the disk before it says so, and a stranger can neither overwrite nor fill anything."""

import json
import socket
import threading
from pathlib import Path

import pytest

from plimsoll.powercuts.statement import read_statement
from plimsoll.powercuts.witness import DEFAULT_ADDRESS, Listener, WitnessError, WitnessLog, is_loopback

RUN = {"run": "00000000000000aa", "path": "/mnt/x", "work": {}}
GREETING = f"plimsoll-witness 1 {json.dumps(RUN)}\n".encode()


def hear(log: WitnessLog, said: list[bytes], *, silence_s: float = 5.0) -> tuple[list[str], dict[str, object]]:
    """Say something to a listener and close; its answers and how it noted the end."""
    listener = Listener("127.0.0.1:0", log, silence_s=silence_s)
    endings: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda: endings.append(listener.hear_one()))
    thread.start()
    host, _, port = listener.place.rpartition(":")
    answers = b""
    with socket.create_connection((host, int(port)), timeout=10) as link:
        try:
            for part in said:
                link.sendall(part)
            link.shutdown(socket.SHUT_WR)
            while received := link.recv(4096):
                answers += received
        except OSError:
            pass
    thread.join(timeout=20)
    listener.close()
    return answers.decode().split(), endings[0]


def test_what_is_said_is_in_the_log(tmp_path: Path) -> None:
    """Every acknowledgement in its order, however the bytes were cut on their way."""
    log = WitnessLog(tmp_path / "log")
    answers, ending = hear(log, [GREETING + b"c 0 1 1 0\nm 0 1 ", b"2 1\n", b"tick\nc 0 2 3 2\nend\n"])
    log.close()
    assert answers[0] == "ready"
    assert answers[-1] == "3"
    assert ending["why"] == "stopped"
    known = read_statement(tmp_path / "log", RUN["run"])
    assert [line.number for line in known.lines] == [1, 2, 3]
    assert [line.kind for line in known.lines] == ["commit", "mark", "commit"]
    assert (known.ended, known.unreadable_lines) == ("stopped", 0)


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\n",
        b"plimsoll-witness 1 []\n",
        b'plimsoll-witness 1 {"run": 1}\n',
        b'plimsoll-witness 1 {"run": 1, "path": "/", "work": {}}\n',
        b"plimsoll-witness 1 " + b"[" * 100_000 + b"\n",
        b"x" * 3_000_000,
        GREETING + b"c 0 1 1 0\nrm -rf /\n",
        GREETING + b"c 0 1 1 0 9\n",
        GREETING + "c 0 ١ 1 0\n".encode(),
    ],
)
def test_a_stranger_is_shown_out(tmp_path: Path, said: bytes) -> None:
    """The port may be open to a network; what is no acknowledgement never reaches the log."""
    log = WitnessLog(tmp_path / "log")
    _, ending = hear(log, [said])
    log.close()
    assert ending["why"] in (
        "it was no machine under test",
        "something else was said",
        "a line without end was sent",
        "closed",
    )
    text = (tmp_path / "log").read_text()
    assert "rm -rf" not in text
    assert "GET" not in text
    assert len(text) < 2000


def test_a_machine_without_power_is_not_waited_for(tmp_path: Path) -> None:
    """It sends no farewell; the next run must find the witness free."""
    log = WitnessLog(tmp_path / "log")
    listener = Listener("127.0.0.1:0", log, silence_s=0.2)
    host, _, port = listener.place.rpartition(":")
    with socket.create_connection((host, int(port))) as link:
        link.sendall(GREETING + b"c 0 1 1 0\n")
        assert listener.hear_one()["why"] == "silent"
    listener.close()
    log.close()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A log is evidence, and any other file is somebody's."""
    other = tmp_path / "thesis.txt"
    other.write_text("precious")
    with pytest.raises(WitnessError, match="nothing is overwritten"):
        WitnessLog(other)
    assert other.read_text() == "precious"
    first = WitnessLog(tmp_path / "log")
    hear(first, [GREETING + b"c 0 1 1 0\n"])
    with pytest.raises(WitnessError, match="another witness"):
        WitnessLog(tmp_path / "log")
    first.close()
    again = WitnessLog(tmp_path / "log")
    hear(again, [GREETING.replace(b"aa", b"bb") + b"c 0 1 1 0\nc 0 2 2 1\n"])
    again.close()
    assert len(read_statement(tmp_path / "log", RUN["run"]).lines) == 1
    assert len(read_statement(tmp_path / "log", None).lines) == 2


def test_a_log_does_not_outgrow_its_size(tmp_path: Path) -> None:
    """Whoever reaches the port must not be able to fill the disk."""
    log = WitnessLog(tmp_path / "log", bytes_max=4000)
    lines = b"".join(b"c 0 %d %d 0\n" % (number, number) for number in range(1, 1000))
    _, ending = hear(log, [GREETING + lines])
    log.close()
    assert "has reached" in str(ending["why"]) or ending["why"] == "closed"
    assert (tmp_path / "log").stat().st_size <= 4000


def test_a_log_that_was_cut_off_itself_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    """The witness may lose its power too; half a number would be another number."""
    log = WitnessLog(tmp_path / "log")
    hear(log, [GREETING + b"c 0 1 1 0\n"])
    log.append(b"c 0 2 2 1")
    log.close()
    for _ in range(2):
        known = read_statement(tmp_path / "log", RUN["run"])
        assert [line.sequence for line in known.lines] == [1]
        assert known.unreadable_lines == 1
        again = WitnessLog(tmp_path / "log")
        again.note({"event": "begun", "run": {"run": "another"}})
        again.close()


def test_only_this_machine_reaches_it_unless_told_otherwise() -> None:
    """Nothing listens to a network by default."""
    assert is_loopback(DEFAULT_ADDRESS.rpartition(":")[0])


def test_the_log_of_another_run_is_refused(tmp_path: Path) -> None:
    """Holding one run against another's log would accuse any storage."""
    log = WitnessLog(tmp_path / "log")
    hear(log, [GREETING])
    log.close()
    with pytest.raises(WitnessError, match="not run 00ff"):
        read_statement(tmp_path / "log", "00ff")
