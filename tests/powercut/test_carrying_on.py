"""The machine under test between storage and witness.

What it says to whom when one of them is silent.
"""

import pytest

from plimsoll.powercut import client
from plimsoll.powercut.witness import WitnessError


class Storage:
    """Work that makes durable what it is told, and then nothing for as many looks as wanted."""

    def __init__(self, batches: list[list[tuple[str, int, int, int, int]] | None]) -> None:
        self.batches, self.confirmed, self.was_stopped = batches, 0, False

    def next_acknowledged(self, _: float) -> list[tuple[str, int, int, int, int]] | None:
        return self.batches.pop(0)

    def confirm(self, count: int) -> None:
        self.confirmed = count

    def stop(self) -> None:
        self.was_stopped = True


class Witness:
    """Confirms everything, until it is gone."""

    def __init__(self, lines_max: int = 100) -> None:
        self.confirmed, self._lines_max = 0, lines_max

    def tell(self, lines: list[tuple[str, int, int, int, int]]) -> None:
        self.confirmed += len(lines)
        if self.confirmed > self._lines_max:
            raise WitnessError("gone")


LINE = ("commit", 0, 1, 1, 0)
MARK = ("mark", 0, 1, 2, 0)


def test_everything_is_told_and_counted() -> None:
    """What the witness confirmed is what lets the work go on."""
    storage, said = Storage([[LINE, MARK], [LINE], None]), []
    done = client.carry_on(storage, Witness(), lambda _: None, said.append)  # type: ignore[arg-type]
    assert (done.commits, done.marks, done.confirmed, storage.confirmed) == (2, 1, 3, 3)
    assert said == []


def test_storage_that_does_not_answer_is_spoken_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the right moment to cut must know that nothing is going on."""
    storage, said = Storage([[LINE], [], [], [], [LINE], [], None]), []
    monkeypatch.setattr(client, "STALL_S", 0.0)
    client.carry_on(storage, Witness(), lambda _: None, said.append)  # type: ignore[arg-type]
    assert len(said) == 2, "once for each silence"
    assert "does not answer" in said[0]


def test_work_is_stopped_when_the_witness_is_gone() -> None:
    """Commits that nobody remembers are no evidence."""
    storage = Storage([[LINE], [LINE], None])
    with pytest.raises(WitnessError):
        client.carry_on(storage, Witness(1), lambda _: None, lambda _: None)  # type: ignore[arg-type]
    assert storage.was_stopped
