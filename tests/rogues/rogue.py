"""What a row of the rogues' gallery says.

What is planted, what is run, and what must be concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.disk_rules import Rule

#: Where a database of the gallery lies, relative to the storage: the program makes it.
PLACE = "here"
#: What a verdict says where others had the processor.
MACHINE_WAS_BUSY = "others were running on this machine"
#: Where so much of the processors is in use, a disk that needs one is no sound disk.
CPU_BUSY = 0.95
#: Larger than the cache, so that reads reach the storage; one session, so that no cache is short.
LOAD = ("--databases", "1", "--size-mib", "64", "--cache-mib", "24", "--sessions", "2", "--yes")


@dataclass(frozen=True)
class Rogue:
    """One storage or host, bad or sound."""

    name: str
    #: What is planted, for the table in docs/honesty.md.
    plant: str
    #: pass, fail or inconclusive; refused: the program does not begin. Where "or" stands between
    #: two, either is right: a stall fails or only keeps a run from qualifying, as the load falls.
    result: str
    #: How the storage is made: a key of `plants.STORAGES`.
    storage: str = "fuse"
    rules: tuple[Rule, ...] = ()
    #: The event after which the rules hold; empty: before the program starts.
    armed_at: str = "measure started"
    #: The test and its options, after `plimsoll test`; `PLACE` is put behind the name of the test.
    test: str = "performance"
    options: tuple[str, ...] = LOAD
    seconds: float = 3
    #: Each must be said in the verdict or on the error stream.
    words: tuple[str, ...] = ()
    #: None may be said there.
    never: tuple[str, ...] = ()
    #: Names of checks that must fail.
    failed: tuple[str, ...] = ()
    #: Each must be said as a warning and as a reason why the run would not qualify, however long it
    #: was and however large its databases were.
    hinders: tuple[str, ...] = ()
    #: What befalls the process or the file system: a key of `plants.MISHAPS`.
    mishap: str = ""
    #: Whether `plimsoll verify` of what lies there is judged, after the run.
    is_verified: bool = False
    #: Among the fast ones in `make test`.
    is_fast: bool = False
    #: Why what is concluded today is wrong; it stands in docs/honesty.md, and the gallery fails
    #: once it is right.
    wrong: str = ""


@dataclass(frozen=True)
class Concluded:
    """What the program said."""

    result: str
    headline: str
    reasons: tuple[str, ...]
    failed: tuple[str, ...]
    bottlenecks: tuple[str, ...]
    #: Why the run is no qualification, and what its measurements warn of.
    hindrances: tuple[str, ...]
    warnings: tuple[str, ...]
    #: Everything that a user could read, to look for words.
    text: str
    exit_code: int | None
    seconds: float
    #: How often each rule was applied.
    applied: tuple[int, ...] = ()
    #: The share of the processors in use while it was measured.
    cpu_busy: float | None = None


def was_busy(rogue: Rogue, concluded: Concluded) -> bool:
    """Whether others on this machine are why a sound storage did not pass.

    The disk of the gallery is a process: where no processor is free, it is slow indeed.
    """
    if concluded.result == "fail":
        return rogue.result == "pass" and (concluded.cpu_busy or 0.0) > CPU_BUSY
    return (
        "pass" in rogue.result.split(" or ")
        and concluded.result == "inconclusive"
        and MACHINE_WAS_BUSY in concluded.text
    )


def mistakes(rogue: Rogue, concluded: Concluded) -> list[str]:
    """Everything about a conclusion that is not what a row demands."""
    said = concluded.text.lower()
    found = []
    if concluded.result not in rogue.result.split(" or "):
        found.append(f"result {concluded.result}, not {rogue.result}")
    found += [f"never said: {words}" for words in rogue.words if words.lower() not in said]
    found += [f"said: {words}" for words in rogue.never if words.lower() in said]
    if rogue.rules and not any(concluded.applied):
        found.append("nothing was planted: no rule was ever applied")
    said_as = (("qualifies", concluded.hindrances), ("no warning", concluded.warnings))
    found += [
        f"{where}: never said there: {words}"
        for words in rogue.hinders
        for where, texts in said_as
        if not any(words.lower() in text.lower() for text in texts)
    ]
    missing = set(rogue.failed) - set(concluded.failed)
    found += [f"check {name} did not fail" for name in sorted(missing)]
    return found
