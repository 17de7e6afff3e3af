"""The witness: what it writes is on the disk before it says so, and a stranger can neither
overwrite nor fill anything.
"""

import json
import socket
import threading
from pathlib import Path

import pytest

from plimsoll.powercut.client import Link
from plimsoll.powercut.witness import (
    WITNESS_ADDRESS,
    Listener,
    WitnessError,
    WitnessLog,
    is_loopback,
)
from plimsoll.powercut.witness_log import Statement, read_statement

RUN = {"run": "00000000000000aa", "path": "/mnt/x", "work": {"rows": 8, "slots": 8}}
GREETING = f"plimsoll-witness 1 {json.dumps(RUN)}\n".encode()


def hear(
    log: WitnessLog, said: list[bytes], *, silence_s: float = 5.0
) -> tuple[list[str], dict[str, object]]:
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


def known_of(path: Path, run: object = RUN["run"]) -> Statement:
    """What a log says of a run; of the last one if none is named."""
    return read_statement(
        path, lambda described: run is None or described["run"] == run, f"run {run}"
    )


def test_what_is_said_is_in_the_log(tmp_path: Path) -> None:
    """Every acknowledgement in its order, however the bytes were cut on their way."""
    log = WitnessLog(tmp_path / "log")
    answers, ending = hear(
        log, [GREETING + b"c 0 1 1 0\nm 0 1 ", b"2 1\n", b"tick\nc 0 2 3 2\nend\n"]
    )
    log.close()
    assert answers[0] == "ready"
    assert answers[-1] == "3"
    assert ending["why"] == "stopped"
    known = known_of(tmp_path / "log")
    lines = sorted(known.newest.values(), key=lambda line: line.number)
    assert [(line.number, line.kind) for line in lines] == [
        (1, "commit"),
        (2, "mark"),
        (3, "commit"),
    ]
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
    assert known_of(tmp_path / "log").counts.total() == 1
    assert known_of(tmp_path / "log", None).counts.total() == 2


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
        known = known_of(tmp_path / "log")
        assert [line.sequence for line in known.newest.values()] == [1]
        assert known.unreadable_lines == 1
        again = WitnessLog(tmp_path / "log")
        again.note({"event": "begun", "run": {"run": "another"}})
        again.close()


def test_only_this_machine_reaches_it_unless_told_otherwise() -> None:
    """Nothing listens to a network by default."""
    assert is_loopback(WITNESS_ADDRESS.rpartition(":")[0])


def test_an_address_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    """The error says which address, why, and what to do about it."""
    log = WitnessLog(tmp_path / "log")
    first = Listener("127.0.0.1:0", log)
    with pytest.raises(
        WitnessError, match=f"--listen: another process listens at {first.place}; name another"
    ):
        Listener(first.place, log)
    with pytest.raises(WitnessError, match=r"not an address of this machine; name another"):
        Listener("192.0.2.1:17613", log)
    first.close()
    log.close()


def test_whoever_is_no_witness_is_told_apart() -> None:
    """Nobody, somebody else, and somebody who says nothing want different things done."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(
            WitnessError, match=f"no process listens at {address}; start `plimsoll witness` there"
        ):
            Link(address, RUN, patience_s=5)
        other.listen()
        with pytest.raises(WitnessError, match=f"{address} does not answer; is it a witness"):
            Link(address, RUN, patience_s=0.3)
        answers = threading.Thread(target=lambda: _answer(other, b"220 mail.example ESMTP\r\n"))
        answers.start()
        with pytest.raises(WitnessError, match=r"answered '220 mail\.example ESMTP'; is it"):
            Link(address, RUN, patience_s=5)
        answers.join()


def _answer(listening: socket.socket, text: bytes) -> None:
    """Answer to whoever comes; the first has given up already."""
    for _ in range(2):
        link, _ = listening.accept()
        with link:
            link.sendall(text)
            link.settimeout(5)
            while link.recv(4096):
                pass


def test_a_run_is_told_to_its_witness_and_says_goodbye(tmp_path: Path) -> None:
    """Both sides as the commands use them, over the loopback."""
    log = WitnessLog(tmp_path / "log")
    listener = Listener("127.0.0.1:0", log)
    endings: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda: endings.append(listener.hear_one()))
    thread.start()
    link = Link(listener.place, RUN)
    assert link.is_here
    for number in range(1, 101):
        link.tell([("commit", 0, number, number, number - 1)])
    link.tell([])
    link.end()
    assert link.confirmed == 100
    thread.join(timeout=20)
    listener.close()
    log.close()
    assert (endings[0]["why"], endings[0]["lines"]) == ("stopped", 100)
    assert known_of(tmp_path / "log").last_number == 100


def test_the_log_of_another_run_is_refused(tmp_path: Path) -> None:
    """Holding one run against another's log would accuse any storage."""
    log = WitnessLog(tmp_path / "log")
    hear(log, [GREETING])
    log.close()
    with pytest.raises(WitnessError, match="not run 00ff"):
        known_of(tmp_path / "log", "00ff")


def test_days_of_acknowledgements_take_little_memory(tmp_path: Path) -> None:
    """Of each place of a ring only the newest is looked for.

    A number that was passed over is noticed.
    """
    log = WitnessLog(tmp_path / "log")
    lines = [b"c 0 %d %d 0\n" % (number, number) for number in range(1, 3000) if number != 1000]
    hear(log, [GREETING, *lines])
    log.close()
    known = known_of(tmp_path / "log")
    assert (known.counts["commit"], known.last_number, known.missing_count) == (2998, 2999, 1)
    assert sorted(line.number for line in known.newest.values()) == list(range(2992, 3000))


def test_the_last_second_is_counted_by_the_notes_of_the_time(tmp_path: Path) -> None:
    """They come once a second; a clock that was set meanwhile changes nothing."""
    begun = json.dumps({"event": "begun", "run": RUN})
    first = "".join(f"c 0 {number} {number} 0\n" for number in range(1, 101))
    second = "".join(f"c 0 {number} {number} 0\n" for number in range(101, 131))
    third = "".join(f"c 0 {number} {number} 0\n" for number in range(131, 136))
    head = '{"kind": "plimsoll_witness_log", "schema_version": 1}'
    (tmp_path / "log").write_text(
        f"{head}\n{begun}\nt 5000\n{first}t 6000\n{second}t 2000\n{third}"
    )
    assert known_of(tmp_path / "log").last_count == 35


def test_a_run_that_said_nothing_does_not_hide_the_one_before(tmp_path: Path) -> None:
    """Work that never began, in the same place, was heard last."""
    log = WitnessLog(tmp_path / "log")
    hear(log, [GREETING + b"c 0 1 1 0\n"])
    hear(log, [GREETING.replace(b"aa", b"bb")])
    log.close()
    assert known_of(tmp_path / "log", None).run["run"] == RUN["run"]


@pytest.mark.parametrize("place", ["/dev/full", "/dev/null"])
def test_a_witness_whose_storage_takes_no_more_says_so(place: str) -> None:
    """What it cannot keep it must not answer for, and it is no fault of its own."""
    with pytest.raises(WitnessError, match=place):
        WitnessLog(Path(place))
