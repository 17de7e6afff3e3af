"""A configuration of Iometer (ICF) in memory, and reading one.

Lenient, with a warning at the line of whatever is unusual.

Lines that begin with `'` are keys, the lines below them their values. Keys are read in any case,
with any blanks, and `Ramp Up Time` and `Bar chart` by their beginnings, as the original does. What
cannot mean anything is a mistake; all of them are reported at once. Source of the form: Iometer's
`ICF_ifstream.cpp`, `AccessSpecList.cpp`, `Worker.cpp`, and files of its versions 1998 to 1.1.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.workloads.files.patterns import LINES_MAX, AccessLine

SECTOR_BYTES = 512
#: Versions with a year before this wrote access specifications as six numbers without a name.
NAMED_SPECIFICATIONS = (1998, 5, 21)
LINEAR, EXPONENTIAL = "LINEAR", "EXPONENTIAL"
TEST_TYPES = (
    "NORMAL",
    "CYCLE_TARGETS",
    "CYCLE_WORKERS",
    "INCREMENT_TARGETS_PARALLEL",
    "INCREMENT_TARGETS_SERIAL",
    "CYCLE_WORKERS_AND_TARGETS",
    "CYCLE_OUTSTANDING_IOS",
    "CYCLE_OUTSTANDING_IOS_AND_TARGETS",
)


@dataclass
class AccessSpecification:
    """A named access specification: its lines, and to whom it is given when workers are made."""

    name: str
    default: str
    lines: list[AccessLine] = field(default_factory=list)
    line_number: int = 0


@dataclass
class Target:
    """A target of a worker: a drive letter, a disk, a network address."""

    name: str
    kind: str = "DISK"


@dataclass
class Worker:
    """One worker of a manager; sectors are of 512 bytes, a maximum of 0 is all of the disk."""

    name: str
    kind: str = "DISK"
    outstanding: int = 1
    test_connection_rate: bool = False
    transactions_per_connection: int = 1
    fixed_seed: int | None = None
    maximum_sectors: int = 0
    starting_sector: int = 0
    data_pattern: int = 0
    specifications: list[str] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    line_number: int = 0


@dataclass
class Manager:
    """A machine that drives load."""

    number: str
    name: str
    address: str = ""
    workers: list[Worker] = field(default_factory=list)


@dataclass
class Cycling:
    """How a number grows from test to test.

    Without an end it grows as far as there are workers or targets.
    """

    start: int = 1
    end: int | None = None
    step: int = 1
    how: str = LINEAR


@dataclass
class Icf:
    """A whole configuration."""

    version: str | None = None
    description: str = ""
    run_time_s: int = 0
    ramp_up_s: int = 0
    disk_workers: str = "NUMBER_OF_CPUS"
    network_workers: str = "0"
    record_results: str = "ALL"
    worker_cycling: Cycling = field(default_factory=Cycling)
    disk_cycling: Cycling = field(default_factory=Cycling)
    depth_cycling: Cycling = field(default_factory=lambda: Cycling(end=32, step=2, how=EXPONENTIAL))
    test_type: str = "NORMAL"
    #: Keys of the display of results, word for word.
    display: list[tuple[str, list[str]]] = field(default_factory=list)
    specifications: list[AccessSpecification] = field(default_factory=list)
    managers: list[Manager] = field(default_factory=list)

    def specification(self, name: str) -> AccessSpecification | None:
        """A specification by its name, in any case, as the original compares names."""
        wanted = name.casefold()
        return next((item for item in self.specifications if item.name.casefold() == wanted), None)

    @property
    def workers(self) -> list[Worker]:
        """The workers of all managers."""
        return [worker for manager in self.managers for worker in manager.workers]


@dataclass
class IcfRead:
    """What was read, and what was unusual in it."""

    icf: Icf
    warnings: list[Mistake]


def read_icf(name: str, text: str) -> IcfRead:
    """Read a configuration.

    Args:
        name: of the file, for mistakes.
        text: its content.

    Raises:
        InputError: with everything that cannot mean anything.
    """
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(name, [Mistake(line, "", "contains a NUL byte", "save the file as text")])
    reader = _Reader(text)
    reader.read()
    if reader.mistakes:
        raise InputError(name, reader.mistakes)
    return IcfRead(reader.icf, reader.warnings)


def has_unnamed_specifications(version: str | None) -> bool:
    """Whether a version is of a time when access specifications had no names.

    Later ones than 1900 are dates, others are newer.

    >>> has_unnamed_specifications("1998.02.01"), has_unnamed_specifications("1.1.0"), has_unnamed_specifications("2006.07.27")
    (True, False, False)
    """  # noqa: E501
    found = re.fullmatch(r"(\d{4})\.(\d+)\.(\d+).*", version or "")
    date = tuple(int(part) for part in found.groups()) if found else None
    return date is not None and date[0] > 1900 and date < NAMED_SPECIFICATIONS


#: Longer ones are no numbers of anything; digits of other scripts are none either.
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def _is_count(text: str) -> bool:
    """Whether a text is a whole number from 0 on."""
    return _NUMBER.fullmatch(text) is not None and not text.startswith("-")


class _Reader:
    """Walks over the lines with what was opened last."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.icf = Icf()
        self.warnings: list[Mistake] = []
        self.mistakes: list[Mistake] = []
        self.key, self.key_line, self.section = "", 0, ""
        self.values: list[tuple[int, str]] = []
        self.open_target: Target | None = None
        self.versions = 0

    def warn(self, line: int, message: str, hint: str = "") -> None:
        self.warnings.append(Mistake(line, "", message, hint))

    def wrong(self, line: int, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(line, "", message, hint))

    def read(self) -> None:
        for number, line in enumerate(self.lines, 1):
            stripped = line.strip()
            if not stripped:
                continue
            if stripped.startswith("'"):
                self._key(number, stripped[1:])
            elif stripped.lower().startswith("version ") and not line.startswith("\t"):
                self._close()
                self._version(stripped)
            else:
                if not line.startswith("\t") and self.key not in _OLD_LINES:
                    self.warn(
                        number,
                        f'"{_short(stripped)}" begins without a tab',
                        "it is read all the same",
                    )
                self.values.append((number, stripped))
        self._close()
        if self.versions == 0:
            self.warn(1, "names no version", "the form of version 1.1.0 is expected")
        self._warn_if_cut_off()
        self._check()

    def _warn_if_cut_off(self) -> None:
        """The original ends a file with its version, and each section with its end."""
        lines = [(number, line.strip()) for number, line in enumerate(self.lines, 1)]
        number, last = next((item for item in reversed(lines) if item[1]), (1, ""))
        key = re.sub(r"\s+", " ", last.removeprefix("'").lower())
        if not key.startswith("version") and key not in _SECTION_ENDS:
            self.warn(
                number,
                "ends in the middle of a section",
                "what followed is missing: look for a whole copy of the file",
            )

    def _version(self, line: str) -> None:
        self.versions += 1
        self.icf.version = self.icf.version or line.split(None, 1)[1].strip()

    def _key(self, number: int, text: str) -> None:
        if text[:1].isspace():
            return  # Names of columns.
        self._close()
        key = re.sub(r"\s+", " ", text.strip().rstrip("=").strip())
        self.key, self.key_line = key.lower(), number
        if self.key in _SECTIONS:
            self.section = self.key
        elif self.key.startswith("end "):
            self._end(number)

    def _end(self, number: int) -> None:
        if self.key not in _ENDS:
            self.warn(number, f'"{self.key}" ends nothing that is known', "it is passed over")
        elif self.key == "end target":
            if self.open_target is None:
                self.warn(number, "ends a target that was not begun", "it is passed over")
            self.open_target = None

    def _close(self) -> None:
        """Hands the values of the last key to whoever knows it."""
        key, values, self.values = self.key, self.values, []
        self.key = ""
        if not key or key in _SECTIONS or key.startswith("end "):
            if values:
                self.warn(
                    values[0][0], f'"{_short(values[0][1])}" belongs to no key', "it is passed over"
                )
            return
        found = _KEYS.get(key) or next(
            (act for start, act in _STARTS.items() if key.startswith(start)), None
        )
        if found is not None:
            found(self, values)
        elif self.section == "results display":
            self.icf.display.append(
                (self.lines[self.key_line - 1].strip()[1:], [text for _, text in values])
            )
        else:
            self.warn(self.key_line, f'the key "{_short(key)}" is not known', "it is passed over")

    # What each key means.

    def description(self, values: list[tuple[int, str]]) -> None:
        self.icf.description = " ".join(text for _, text in values)

    def _whole(self, values: list[tuple[int, str]], count: int) -> list[int]:
        """So many whole numbers of the first line, however they are parted."""
        if not values:
            self.wrong(self.key_line, f"is followed by nothing, but {count} numbers were expected")
            return [0] * count
        line, text = values[0]
        parts = re.split(r"[\s,]+", text)[:count]
        if len(parts) < count or not all(map(_is_count, parts)):
            self.wrong(line, f'is "{_short(text)}", but {count} numbers from 0 on were expected')
            return [0] * count
        return [int(part) for part in parts]

    def run_time(self, values: list[tuple[int, str]]) -> None:
        hours, minutes, seconds = self._whole(values, 3)
        self.icf.run_time_s = 3600 * hours + 60 * minutes + seconds

    def ramp_up(self, values: list[tuple[int, str]]) -> None:
        self.icf.ramp_up_s = self._whole(values, 1)[0]

    def disk_workers(self, values: list[tuple[int, str]]) -> None:
        self.icf.disk_workers = values[0][1] if values else "0"

    def network_workers(self, values: list[tuple[int, str]]) -> None:
        self.icf.network_workers = values[0][1] if values else "0"

    def record_results(self, values: list[tuple[int, str]]) -> None:
        self.icf.record_results = values[0][1] if values else "ALL"

    def _cycling(self, values: list[tuple[int, str]], *, has_end: bool) -> Cycling:
        numbers = self._whole(values, 3 if has_end else 2)
        how = EXPONENTIAL if values and EXPONENTIAL in values[0][1].upper() else LINEAR
        return Cycling(numbers[0], numbers[1] if has_end else None, numbers[-1], how)

    def worker_cycling(self, values: list[tuple[int, str]]) -> None:
        self.icf.worker_cycling = self._cycling(values, has_end=False)

    def disk_cycling(self, values: list[tuple[int, str]]) -> None:
        self.icf.disk_cycling = self._cycling(values, has_end=False)

    def depth_cycling(self, values: list[tuple[int, str]]) -> None:
        self.icf.depth_cycling = self._cycling(values, has_end=True)

    def test_type(self, values: list[tuple[int, str]]) -> None:
        found = values[0][1].upper() if values else "NORMAL"
        if found not in TEST_TYPES:
            line = values[0][0] if values else self.key_line
            self.wrong(
                line, f'is the test type "{_short(found)}"', f"write one of {', '.join(TEST_TYPES)}"
            )
        else:
            self.icf.test_type = found

    def specification(self, values: list[tuple[int, str]]) -> None:
        for line, text in values[:1]:
            name, _, default = text.rpartition(",")
            if not name:
                name, default = text, "NONE"
                self.warn(line, f'"{_short(text)}" has no default assignment', "NONE is taken")
            self.icf.specifications.append(
                AccessSpecification(name.strip(), default.strip().upper(), [], line)
            )

    def access_lines(self, values: list[tuple[int, str]]) -> None:
        if has_unnamed_specifications(self.icf.version):
            self._old_lines(values)
            return
        if not self.icf.specifications:
            self.wrong(self.key_line, "stands before any access specification")
            return
        specification = self.icf.specifications[-1]
        for line, text in values:
            parts = [part.strip() for part in text.split(",") if part.strip()]
            if len(parts) != 8 or not all(map(_is_count, parts)):
                self.wrong(
                    line, f'is "{_short(text)}", but eight numbers with commas were expected'
                )
                continue
            specification.lines.append(AccessLine(*(int(part) for part in parts)))

    def _old_lines(self, values: list[tuple[int, str]]) -> None:
        """Six numbers a line; a specification is as many lines as make 100 %.

        Transfers were aligned to their size.
        """
        lines: list[AccessLine] = []
        for line, text in values:
            parts = text.split()
            if len(parts) != 6 or not all(map(_is_count, parts)):
                self.wrong(line, f'is "{_short(text)}", but six numbers were expected')
                continue
            size, share, reads, random, delay, burst = (int(part) for part in parts)
            lines.append(AccessLine(size, share, reads, random, delay, burst, size, 0))
            if sum(item.share_percent for item in lines) >= 100:
                number = len(self.icf.specifications) + 1
                name = _old_name(lines[0]) if len(lines) == 1 else f"Untitled {number}"
                self.icf.specifications.append(AccessSpecification(name, "ALL", lines, line))
                lines = []
        if lines:
            self.wrong(self.key_line, "ends with access lines that do not make 100 %")

    def manager(self, values: list[tuple[int, str]]) -> None:
        for _, text in values[:1]:
            number, _, name = text.partition(",")
            self.icf.managers.append(Manager(number.strip(), name.strip()))

    def address(self, values: list[tuple[int, str]]) -> None:
        if self.icf.managers and values:
            self.icf.managers[-1].address = values[0][1]

    def worker(self, values: list[tuple[int, str]]) -> None:
        if not self.icf.managers:
            self.warn(self.key_line, "begins a worker without a manager", "one is made up")
            self.icf.managers.append(Manager("1", "LOCALHOST"))
        name = values[0][1] if values else f"Worker {len(self.icf.workers) + 1}"
        self.icf.managers[-1].workers.append(Worker(name, line_number=self.key_line))

    def _worker(self) -> Worker | None:
        workers = self.icf.workers
        if not workers:
            self.warn(self.key_line, "stands outside of any worker", "it is passed over")
        return workers[-1] if workers else None

    def worker_type(self, values: list[tuple[int, str]]) -> None:
        if (worker := self._worker()) and values:
            worker.kind = values[0][1].upper()

    def settings(self, values: list[tuple[int, str]]) -> None:
        worker = self._worker()
        if worker is None or not values:
            return
        line, text = values[0]
        parts = [part.strip() for part in text.split(",")]
        if not _is_count(parts[0]) or int(parts[0]) == 0:
            self.wrong(line, f'is "{_short(text)}", but outstanding I/Os from 1 on were expected')
            return
        worker.outstanding = int(parts[0])
        worker.test_connection_rate = len(parts) > 1 and parts[1].upper() == "ENABLED"
        if len(parts) > 2 and _is_count(parts[2]):
            worker.transactions_per_connection = int(parts[2])
        if len(parts) > 4 and parts[3].upper() == "ENABLED" and _is_count(parts[4]):
            worker.fixed_seed = int(parts[4])

    def geometry(self, values: list[tuple[int, str]]) -> None:
        worker = self._worker()
        if worker is None or not values:
            return
        worker.maximum_sectors, worker.starting_sector = self._whole(values, 2)
        parts = values[0][1].split(",")
        if len(parts) > 2 and _is_count(parts[2].strip()):
            worker.data_pattern = int(parts[2])
            if worker.data_pattern > 2:
                self.wrong(
                    values[0][0],
                    f"has the data pattern {worker.data_pattern}",
                    "0, 1 and 2 are known",
                )

    def assigned(self, values: list[tuple[int, str]]) -> None:
        if worker := self._worker():
            worker.specifications += [text for _, text in values]

    def target(self, values: list[tuple[int, str]]) -> None:
        if (worker := self._worker()) and values:
            self.open_target = Target(values[0][1])
            worker.targets.append(self.open_target)

    def target_type(self, values: list[tuple[int, str]]) -> None:
        if (worker := self._worker()) and values and worker.targets:
            worker.targets[-1].kind = values[0][1].upper()

    def nothing(self, values: list[tuple[int, str]]) -> None:
        """A heading without values of its own."""

    def _check(self) -> None:
        for item in self.icf.specifications:
            total = sum(line.share_percent for line in item.lines)
            if total != 100:
                hint = "the shares of an access specification make 100"
                self.wrong(
                    item.line_number, f'"{_short(item.name)}" has shares that make {total} %', hint
                )
            if len(item.lines) > LINES_MAX:
                self.wrong(
                    item.line_number, f"has {len(item.lines)} lines", f"{LINES_MAX} are the most"
                )
            for line in item.lines:
                if (
                    line.size_bytes == 0
                    or line.burst == 0
                    or max(line.read_percent, line.random_percent) > 100
                ):
                    self.wrong(
                        item.line_number,
                        f'"{_short(item.name)}" has a line that nothing can do: {line}',
                    )


def _old_name(line: AccessLine) -> str:
    """What the original calls a specification without a name: "2 KiB random 67% reads"."""
    size = (
        f"{line.size_bytes // 1024} KiB" if line.size_bytes % 1024 == 0 else f"{line.size_bytes} B"
    )
    place = {100: "random", 0: "sequential"}.get(
        line.random_percent, f"{line.random_percent}% random"
    )
    return f"{size} {place} {line.read_percent}% reads"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


_SECTIONS = ("test setup", "results display", "access specifications", "manager list")
_SECTION_ENDS = tuple(f"end {section}" for section in _SECTIONS)
_ENDS = (
    *_SECTION_ENDS,
    "end manager",
    "end worker",
    "end default target settings for worker",
    "end assigned access specs",
    "end target assignments",
    "end target",
)
_OLD_LINES = ("size, % of size, % reads, % random, delay, burst",)
_Act = Callable[[_Reader, list[tuple[int, str]]], None]
_KEYS: dict[str, _Act] = {
    "test description": _Reader.description,
    "run time": _Reader.run_time,
    "default disk workers to spawn": _Reader.disk_workers,
    "default workers to spawn": _Reader.disk_workers,
    "default network workers to spawn": _Reader.network_workers,
    "record results": _Reader.record_results,
    "worker cycling": _Reader.worker_cycling,
    "disk cycling": _Reader.disk_cycling,
    "target cycling": _Reader.disk_cycling,
    "queue depth cycling": _Reader.depth_cycling,
    "test type": _Reader.test_type,
    "manager id, manager name": _Reader.manager,
    "manager network address": _Reader.address,
    "worker": _Reader.worker,
    "worker type": _Reader.worker_type,
    "default target settings for worker": _Reader.nothing,
    "assigned access specs": _Reader.assigned,
    "target assignments": _Reader.nothing,
    "target": _Reader.target,
    "target type": _Reader.target_type,
}
_STARTS: dict[str, _Act] = {
    "ramp up time": _Reader.ramp_up,
    "access specification name": _Reader.specification,
    "size,": _Reader.access_lines,
    "number of outstanding ios": _Reader.settings,
    "disk maximum size": _Reader.geometry,
}
