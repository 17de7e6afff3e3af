"""The door to the Rust side: plain data in, column buffers and JSON out."""

from os import PathLike
from typing import final

__version__: str
is_release_build: bool

class PlimsollError(Exception):
    """Anything that went wrong below the door."""

class ConfigError(PlimsollError):
    """What was asked for is wrong."""

class DiskError(PlimsollError):
    """The storage reported an error."""

class CorruptionError(PlimsollError):
    """What is on the storage is not what was written."""

@final
class Run:
    """A run: started by its construction, then asked for samples, events and at last its
    outcome.
    """

    def __new__(cls, spec_json: str) -> Run: ...
    def next_samples(self, timeout_s: float) -> list[bytes] | None:
        """One buffer per column; empty when none closed in time, None when the run is over."""

    def next_events(self) -> list[str]:
        """What has happened since the last call, each event as JSON; never waits."""

    def stop(self) -> None:
        """Ask for a clean stop; returns at once."""

    def hold_writes(self, longest_s: float) -> None:
        """Hold all writes of a run that can, at most so long; returns at once."""

    def holds_writes(self) -> bool:
        """Whether all writes are held and none is under way."""

    def release_writes(self) -> bool:
        """Let the writes go on; whether they were held up to now."""

    def outcome(self) -> str:
        """How the run ended, as JSON; waits for the end."""

@final
class Powercut:
    """Durable work until the power is cut.

    Started by its construction, asked for acknowledgements, stopped.
    """

    def __new__(cls, spec_json: str) -> Powercut: ...
    def next_acknowledged(self, timeout_s: float) -> list[tuple[str, int, int, int, int]] | None:
        """Kind, lane, sequence, number, started of each.

        Empty when none came in time, None when the work is over.
        """

    def confirm(self, count: int) -> None:
        """Tell how many acknowledgements the witness has.

        The work waits when it is too far behind.
        """

    def stop(self) -> None:
        """Ask for a clean stop; returns at once."""

    def is_over(self) -> bool:
        """Whether the work has ended."""

    def outcome(self) -> str:
        """How the work ended, as JSON; waits for the end. To be asked once."""

@final
class Witness:
    """A witness that listens; it hears one connection each time it is told to.

    OSError when it cannot listen there.
    """

    def __new__(cls, address: str, silence_s: float) -> Witness: ...
    @property
    def place(self) -> str:
        """Where it listens, with the port that was found."""

    def hear(self) -> None:
        """Hear one connection; what comes of it is among the events, until it has ended."""

    def next_event(self) -> tuple[str, str, bytes, int]:
        """Of kind "begin" (host, first line) or "append" (lines), to be answered, or "ended" (host,
        why, how many lines).
        """

    def logged(self, failure: str | None, is_ours: bool) -> None:
        """Answer a beginning or an append.

        Why it failed, and otherwise whether it was one of ours.
        """

    def close(self) -> None:
        """Listen no more."""

@final
class WitnessLink:
    """A machine under test's connection to its witness.

    TimeoutError, ConnectionError or ValueError with a wrong answer.
    """

    def __new__(cls, address: str, greeting: str, patience_s: float) -> WitnessLink: ...
    @property
    def is_local(self) -> bool:
        """Whether the witness is on this machine."""

    @property
    def confirmed(self) -> int:
        """How many acknowledgements lie on the witness's disk."""

    @property
    def lost(self) -> str | None:
        """Why the witness is gone, or None."""

    def tell(self, lines: str) -> None:
        """Send whole lines; returns at once."""

    def end(self) -> None:
        """Leave of one's own will; returns when the witness knows, or a few seconds later."""

def survey(spec_json: str) -> str:
    """Recover the databases of such work and list what is there, as JSON.

    Recovery writes to them.
    """

def rehearse(spec_json: str) -> str:
    """Work on a disk in memory that keeps or breaks its promises, cut its power and list what is
    left. Touches no disk.
    """

def probe(path: str | PathLike[str]) -> str:
    """Everything that is known about a path, as JSON. Never writes."""

def erase_device(device: str, destroy_serials: list[str]) -> None:
    """Blank the start of a block device that holds a database of ours.

    Refused without the device's serial.
    """

def verify(paths: list[str], depth: str) -> str:
    """Check files, by "pages" or "deep", and return a report as JSON. Never writes."""

@final
class TableText:
    """A table as text, taken piece by piece; reading begins with its construction."""

    def __new__(
        cls, path: str | PathLike[str], table: str, form: str, reads_dirty: bool
    ) -> TableText: ...
    def next_piece(self) -> bytes | None:
        """The next piece, None after the last."""

    def counts(self) -> tuple[int, int]:
        """Rows, and values that are encrypted; of everything once `next_piece` has said None."""

def edb_tables(path: str | PathLike[str], reads_dirty: bool, counts_rows: bool) -> str:
    """What a database of any origin holds, as JSON; `counts_rows` reads every row. Never writes."""

def edb_repair(path: str | PathLike[str]) -> str:
    """Rewrite, in place, the pages in which flipped bits can be put right.

    As JSON what was done.
    """

def raid_levels() -> list[str]:
    """The names of all RAID levels."""

def raid_group(level: str, sets: list[int]) -> tuple[int | None, list[tuple[str, str]]]:
    """Drives' worth of data in a group with these sets, None where it cannot be built, and every
    reason with a hint.
    """

def simulate(spec_json: str) -> str:
    """Simulate a workload on a modelled array, both described in JSON; the outcome is JSON too.

    Touches no disk.
    """

def sweep(point_json: str) -> str:
    """Measure one point of a sweep described in JSON on real storage; figures as JSON.

    Writes to the file it names.
    """

def run_spec_schema() -> str:
    """The JSON Schema of a run spec, as JSON: what `Run` takes."""

def columns() -> list[tuple[str, str, str, str]]:
    """The columns of a sample table: name, numpy type, unit, meaning."""

def metrics() -> list[tuple[str, str, str, str]]:
    """What is measured: name, kind, unit, meaning; a row's metric is its position in this list."""
