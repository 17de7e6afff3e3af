"""The rogues' gallery: storages and hosts, bad and sound, and what must be concluded of each.

Every row was measured when it was written. A row with `wrong` says what is concluded today although
it should not be: it stands in docs/honesty.md like all others, and once the conclusion is right the
row must be changed."""

from __future__ import annotations

from dataclasses import replace

from tests.rogues.rogue import LOAD, Rogue
from tests.support.disk_rules import Rule

RAW = (*(item for item in LOAD if item not in ("--cache-mib", "24")), "--backend", "raw_files")
READ_MEAN, LOG_MEAN = ("database_read_latency_mean",), ("log_write_latency_mean",)
IO_ERRORS, BAD_PAGES = ("io_errors",), ("bad_pages",)


TWO = ("--databases", "2", *LOAD[2:])


def reads(do: str, one_in: float = 1, **more: float) -> tuple[Rule, ...]:
    """A rule for reads of databases."""
    return (Rule("read", do, "database", one_in, **more),)  # type: ignore[arg-type]


def writes(do: str, one_in: float = 1, **more: float) -> tuple[Rule, ...]:
    """A rule for writes to databases."""
    return (Rule("write", do, "database", one_in, **more),)  # type: ignore[arg-type]


def logs(do: str, one_in: float = 1, **more: float) -> tuple[Rule, ...]:
    """A rule for writes to logs."""
    return (Rule("write", do, "log", one_in, **more),)  # type: ignore[arg-type]


def slow_log(ms: float) -> tuple[Rule, ...]:
    """Logs come and go too fast to be found for each write; all that is not database is slow."""
    return (Rule("write", "delay", "elsewhere", ms=ms),)


def failing(on: str, where: str, error: str, one_in: float = 1, times: int = 0) -> tuple[Rule, ...]:
    """A rule that answers with an error."""
    return (Rule(on, "error", where, one_in, error=error, times=times),)


FILES = (
    "--size-mib",
    "32",
    "--workers",
    "1",
    "--depth",
    "4",
    "--verify",
    "--ramp-s",
    "0",
    "--yes",
    "--below-block",
    "round",
)
MODELLED = (
    "--modelled",
    "sandisk-server-hdd",
    "--sessions",
    "2",
    "--minutes",
    "0.2",
    "--databases",
    "1",
)


def of_files(name: str, plant: str, rules: tuple[Rule, ...]) -> Rogue:
    """A row of the test of files, whose transfers are verified."""
    placed = tuple(replace(rule, where="files") for rule in rules)
    return Rogue(
        name, plant, "fail", test="files", options=FILES, rules=placed, words=("damaged data",)
    )


def of_raw_files(name: str, plant: str, rules: tuple[Rule, ...]) -> Rogue:
    """A row of the backend raw_files, whose pages carry a checksum, their place and their
    version.
    """
    return Rogue(name, plant, "fail", options=RAW, rules=rules, words=("damaged",))


SOUND = (
    Rogue("sound FUSE disk", "nothing", "pass", is_fast=True),
    Rogue("sound loop device", "nothing: ext4 on a loop device", "pass", "loop"),
    Rogue("sound disk, raw files", "nothing; the backend raw_files", "pass", options=RAW),
    Rogue("sound memory, raw files", "nothing; raw_files on tmpfs", "pass", "tmpfs", options=RAW),
    Rogue(
        "reads of 10 ms",
        "each read is held back by 10 ms: within the limit of 20 ms",
        "pass",
        rules=reads("delay", ms=10),
    ),
    Rogue(
        "log of 4 ms",
        "each write that is not to the database is held back by 4 ms: within 10 ms",
        "pass",
        rules=slow_log(4),
    ),
    Rogue(
        "sectors of 4 KiB",
        "ext4 on a loop device whose smallest transfer is 4 KiB",
        "pass",
        "loop, 4 KiB sectors",
    ),
    Rogue(
        "slow before the load",
        "reads and writes of 30 ms until the load begins, none after",
        "pass",
        armed_at="",
        rules=(
            Rule("read", "delay", "", ms=30, times=100),
            Rule("write", "delay", "", ms=30, times=100),
        ),
    ),
    Rogue(
        "rare reads of 60 ms",
        "one read of 50 takes 60 ms: the mean stays far within the limit",
        "pass",
        seconds=6,
        rules=reads("delay", 50, ms=60),
        never=("stalled",),
    ),
)
UNEVEN = (
    Rogue(
        "one slow database of two",
        "reads of the second database only are held back by 90 ms",
        "fail",
        options=TWO,
        seconds=6,
        rules=(Rule("read", "delay", "second", ms=90),),
        failed=READ_MEAN,
        words=("(instance2/database001)",),
        never=("(instance1/database001)",),
    ),
    Rogue(
        "slow in the first tenth",
        "reads of 300 ms in the first 3 s of 30",
        "fail or pass",
        seconds=30,
        rules=reads("delay", ms=300, until_s=3),
        hinders=("stalled",),
    ),
    Rogue(
        "slow in the last tenth",
        "reads of 300 ms in the last 3 s of 30",
        "fail or pass",
        seconds=30,
        rules=reads("delay", ms=300, after_s=27),
        hinders=("stalled",),
    ),
    Rogue(
        "slower and slower",
        "reads take 0.9 ms more with each second of 30: 14 on average, 24 in the last fifth",
        "pass",
        seconds=30,
        rules=reads("delay", ms=0.1, ms_per_s=0.9),
        hinders=("slower and slower",),
    ),
    Rogue(
        "slow database writes",
        "each write to the database is held back by 400 ms",
        "fail",
        seconds=6,
        rules=writes("delay", ms=400),
        failed=("page_fault_stalls",),
    ),
)
SLOW = (
    Rogue(
        "slow reads",
        "each read is held back by 100 ms",
        "fail",
        seconds=10,
        rules=reads("delay", ms=100),
        failed=READ_MEAN,
    ),
    Rogue(
        "slow log",
        "each write that is not to the database is held back by 25 ms",
        "fail",
        rules=slow_log(25),
        failed=LOG_MEAN,
        is_fast=True,
    ),
    Rogue(
        "slow flush",
        "each flush is held back by 60 ms",
        "fail",
        rules=(Rule("flush", "delay", ms=60),),
        failed=LOG_MEAN,
    ),
    Rogue(
        "burst, then slow",
        "fast for 3 s, then each read is held back by 90 ms",
        "fail",
        seconds=46,
        rules=reads("delay", ms=90, after_s=3),
        failed=READ_MEAN,
    ),
    Rogue(
        "burst within one sample",
        "fast for 2 s, then reads of 90 ms; all in one sample of 15 s",
        "fail",
        seconds=10,
        rules=reads("delay", ms=90, after_s=2),
        failed=READ_MEAN,
        words=("all moments of the time alike",),
    ),
    Rogue(
        "burst in each sample",
        "reads of 60 ms but for half a second of each five",
        "fail",
        seconds=46,
        rules=reads("delay", ms=60, cycle_s=5, spoilt_s=4.5),
        failed=READ_MEAN,
    ),
    Rogue(
        "stalls",
        "no read or write of the database is answered in 3 s of each 6",
        "fail or pass",
        seconds=12,
        rules=(
            *reads("delay", cycle_s=6, spoilt_s=3),
            *writes("delay", cycle_s=6, spoilt_s=3),
            Rule("write", "delay", "elsewhere", cycle_s=6, spoilt_s=3),
        ),
        words=("although I/O was waiting",),
        hinders=("no I/O was completed in",),
    ),
    Rogue(
        "long tail",
        "one read of 100 takes 500 ms",
        "fail or pass",
        seconds=6,
        rules=reads("delay", 100, ms=500),
        hinders=("stalled: one in a thousand",),
    ),
    Rogue(
        "a single long read",
        "a single read of the whole run takes 2 s",
        "pass",
        seconds=6,
        rules=reads("delay", 20, ms=2000, times=1),
        hinders=("stalled",),
    ),
    Rogue(
        "stall at the end",
        "two reads that begin shortly before the end of the load take 8 s",
        "fail or pass",
        seconds=6,
        rules=reads("delay", ms=8000, after_s=5.3, times=2),
        hinders=("stalled when the measured time ended",),
    ),
    Rogue(
        "throttled",
        "a cgroup lets 30 reads and writes through per second",
        "fail",
        "throttled",
        seconds=5,
    ),
)
SPOILT_READS = (
    Rogue(
        "flipped bits in reads",
        "one bit is flipped in one read of 20",
        "fail",
        rules=reads("flip", 20),
        failed=BAD_PAGES,
        words=("correct",),
        is_fast=True,
    ),
    Rogue(
        "zeroed reads",
        "one read of 20 returns zeros",
        "fail",
        rules=reads("zero", 20),
        words=("damaged data",),
        is_fast=True,
    ),
    Rogue(
        "misdirected reads",
        "one read of 20 returns what lies 1 MiB further",
        "fail",
        rules=reads("misdirect", 20),
        words=("damaged data",),
    ),
    Rogue(
        "stale reads",
        "one read of 5 returns what was there before the load",
        "fail",
        seconds=6,
        rules=reads("stale", 5),
    ),
    Rogue(
        "reads from the other database",
        "one read of 5 returns the same place of another database",
        "fail",
        options=TWO,
        rules=(Rule("read", "misdirect", "crosswise", 5),),
    ),
)
SPOILT_WRITES = (
    Rogue(
        "lost writes",
        "one write of 5 is acknowledged and dropped",
        "fail",
        rules=writes("lose", 5),
        is_fast=True,
    ),
    Rogue(
        "lost writes at the end",
        "one write of 3 is dropped from shortly before the end of the load on",
        "fail",
        seconds=4,
        rules=writes("lose", 3, after_s=2.8),
        words=("(-1119)",),
    ),
    Rogue(
        "misdirected writes",
        "one write of 5 lands behind its place",
        "fail",
        rules=writes("misdirect", 5),
        is_fast=True,
    ),
    Rogue(
        "writes into the other database",
        "one write of 5 lands in the same place of another database",
        "fail",
        options=TWO,
        rules=(Rule("write", "misdirect", "crosswise", 5),),
    ),
    Rogue(
        "late writes",
        "each write is acknowledged at once and carried out within 3 s, in any order",
        "fail",
        seconds=6,
        rules=writes("late", ms=3000),
    ),
    Rogue("zeroed writes", "one write of 5 writes zeros", "fail", rules=writes("zero", 5)),
    Rogue(
        "torn writes",
        "of one write of 5 only the first half is written",
        "fail",
        rules=writes("tear", 5),
    ),
    Rogue(
        "flipped bits in writes",
        "one bit is flipped in one write of 5",
        "fail",
        rules=writes("flip", 5),
    ),
    Rogue(
        "lost writes, raw files",
        "one write of 5 is dropped; raw_files",
        "fail",
        rules=writes("lose", 5),
        options=RAW,
        words=("a lost or stale write",),
    ),
    of_raw_files(
        "flipped bits in reads, raw files",
        "one bit in one read of 20; raw_files",
        reads("flip", 20),
    ),
    of_raw_files(
        "zeroed reads, raw files", "one read of 20 returns zeros; raw_files", reads("zero", 20)
    ),
    of_raw_files(
        "misdirected reads, raw files",
        "one read of 20 returns what lies further; raw_files",
        reads("misdirect", 20),
    ),
    of_raw_files(
        "torn writes, raw files",
        "of one write of 5 only half is written; raw_files",
        writes("tear", 5),
    ),
    of_raw_files(
        "misdirected writes, raw files",
        "one write of 5 lands behind its place; raw_files",
        writes("misdirect", 5),
    ),
)
SPOILT_LOGS = (
    Rogue(
        "lost log writes",
        "one log write of 5 is acknowledged and dropped",
        "fail",
        rules=logs("lose", 5),
        failed=("log_files",),
        is_fast=True,
    ),
    Rogue(
        "flipped log writes",
        "one bit is flipped in one log write of 5",
        "fail",
        rules=logs("flip", 5),
        failed=("log_files",),
    ),
    Rogue(
        "torn log writes",
        "of one log write of 5 only the first half is written",
        "fail",
        rules=logs("tear", 5),
        failed=("log_files",),
    ),
    Rogue(
        "zeroed log writes",
        "one log write of 5 writes zeros",
        "fail",
        rules=logs("zero", 5),
        failed=("log_files",),
    ),
    Rogue(
        "lost log writes, stress",
        "one log write of 50 is acknowledged and dropped; the stress test",
        "fail",
        test="stress",
        seconds=6,
        rules=logs("lose", 50),
        failed=("log_files",),
    ),
    Rogue(
        "flipped log writes, stress",
        "one bit is flipped in one log write of 20; the stress test",
        "fail",
        test="stress",
        seconds=6,
        rules=logs("flip", 20),
        failed=("log_files",),
    ),
    Rogue(
        "misdirected log writes",
        "one log write of 5 lands behind its place",
        "fail",
        rules=logs("misdirect", 5),
        failed=("log_files",),
    ),
)
ERRORS = (
    Rogue(
        "EIO at a read",
        "one read of 50 fails",
        "fail",
        rules=failing("read", "database", "EIO", 50),
        failed=IO_ERRORS,
        is_fast=True,
    ),
    Rogue(
        "EIO at a write",
        "one write of 20 fails",
        "fail",
        rules=failing("write", "database", "EIO", 20),
        failed=IO_ERRORS,
    ),
    Rogue(
        "EIO at a log write",
        "one log write of 20 fails",
        "fail",
        rules=failing("write", "log", "EIO", 20),
        failed=IO_ERRORS,
        is_fast=True,
    ),
    Rogue(
        "EIO at a flush",
        "one flush of 20 fails",
        "fail",
        rules=failing("flush", "", "EIO", 20),
        failed=IO_ERRORS,
    ),
    Rogue(
        "a single EIO",
        "a single read fails in the whole run",
        "fail",
        rules=failing("read", "database", "EIO", 20, 1),
        failed=IO_ERRORS,
    ),
    Rogue(
        "EIO while preparing",
        "one write of 100 fails before the load",
        "fail",
        armed_at="",
        rules=failing("write", "", "EIO", 100),
    ),
    Rogue(
        "thin pool that is full",
        "each write to the allocated database fails for want of space",
        "fail",
        rules=failing("write", "database", "ENOSPC"),
        words=("no space left", "extend the thin pool"),
    ),
    Rogue(
        "full file system",
        "a neighbour takes all space",
        "inconclusive",
        "loop",
        mishap="filled",
        seconds=40,
        words=("no space",),
        never=("faulty",),
    ),
    Rogue(
        "pulled drive",
        "what backs the loop device is truncated to nothing",
        "fail",
        "loop",
        mishap="pulled",
        seconds=6,
    ),
    Rogue(
        "file system turns read-only",
        "the kernel aborts the journal and takes no more writes",
        "fail",
        "loop",
        mishap="read-only",
        seconds=20,
    ),
    Rogue(
        "hung read",
        "a read never returns",
        "fail",
        rules=(Rule("read", "hang", "database", 20, times=1),),
        words=("hung I/O",),
    ),
    Rogue(
        "hung log write",
        "a log write never returns",
        "fail",
        rules=(Rule("write", "hang", "log", 20, times=1),),
        words=("hung I/O",),
    ),
)
NOT_TESTED = (
    Rogue(
        "flushes dropped",
        "each flush is acknowledged and dropped",
        "pass",
        "fuse that drops flushes",
        words=("whether a flush reaches stable storage was not tested", "plimsoll powercut"),
    ),
    Rogue(
        "cache lost after the run",
        "one write of 5 is read back as written, and is gone after the run; plimsoll verify",
        "fail",
        rules=(Rule("write", "forget", "pages", 5),),
        is_verified=True,
    ),
    Rogue(
        "sound disk, verified after the run",
        "nothing; plimsoll verify of the databases and logs",
        "pass",
        is_verified=True,
    ),
    Rogue(
        "memory", "a tmpfs", "pass", "tmpfs", words=("memory", '"qualifying": false'), is_fast=True
    ),
    Rogue(
        "rate out of reach",
        "a tmpfs, of which 1,000,000 I/O a second are required",
        "inconclusive",
        "tmpfs",
        options=(*LOAD, "--required-iops", "1000000"),
        never=("the device: ",),
    ),
    Rogue(
        "small cache over memory",
        "a tmpfs under a cache of 16 MiB",
        "pass or inconclusive",
        "tmpfs",
        options=(*LOAD[:4], "--cache-mib", "16", *LOAD[6:]),
    ),
    Rogue(
        "compressed memory",
        "ext4 on a zram disk",
        "pass",
        "zram",
        words=('"qualifying": false', "memory"),
    ),
    Rogue(
        "page cache",
        "ext4 with data=journal: direct I/O goes through the page cache",
        "pass",
        "loop, journalled",
        words=("through the page cache", '"qualifying": false'),
    ),
)
HOSTS = (
    Rogue(
        "stopped process",
        "the program is stopped for 4 s (SIGSTOP), as in a paused machine",
        "pass",
        mishap="stopped",
        seconds=12,
        words=("stood still",),
    ),
    Rogue(
        "terminated run",
        "SIGTERM in the middle of the load",
        "inconclusive",
        mishap="terminated",
        seconds=30,
    ),
)
OTHER_TESTS = (
    Rogue(
        "sound disk, files",
        "nothing; the test of files with verification",
        "pass",
        test="files",
        options=FILES,
    ),
    of_files("flipped bits, files", "one bit is flipped in one read of 50", reads("flip", 50)),
    of_files(
        "lost writes, files", "one write of 50 is acknowledged and dropped", writes("lose", 50)
    ),
    of_files(
        "stale reads, files",
        "one read of 5 returns what was there before the load",
        reads("stale", 5),
    ),
    of_files("zeroed reads, files", "one read of 50 returns zeros", reads("zero", 50)),
    of_files(
        "torn writes, files",
        "of one write of 50 only the first half is written",
        writes("tear", 50),
    ),
    of_files(
        "misdirected writes, files",
        "one write of 50 lands behind its place",
        writes("misdirect", 50),
    ),
)
ARRAYS = (
    Rogue(
        "modelled array, one drive lost",
        "RAID 5 without one of its drives",
        "pass",
        "modelled",
        options=(*MODELLED, "--change", "failed_drive_count=1"),
    ),
    Rogue(
        "modelled array that lost its data",
        "RAID 5 without two of its drives",
        "refused",
        "modelled",
        words=("would have lost its data before anything begins",),
        options=(*MODELLED, "--change", "failed_drive_count=2"),
    ),
)

GALLERY = (
    *SOUND,
    *UNEVEN,
    *SLOW,
    *SPOILT_READS,
    *SPOILT_WRITES,
    *SPOILT_LOGS,
    *ERRORS,
    *NOT_TESTED,
    *HOSTS,
    *OTHER_TESTS,
    *ARRAYS,
)
