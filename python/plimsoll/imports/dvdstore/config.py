"""A configuration of the driver of DVD Store (2.0 to 3.5) as a plan.

Lines are `name=value`; a name that comes twice counts as it stands last, as in the original. Names,
defaults and meanings are those of the drivers of 2.1, 3 and 3.5: minutes of warm-up come before the
minutes of the run, threads are for each target, a size is S, M, L or a number of MB or GB. Lines
that are none and names that are not known are warned of with their line, where the original stops.

Limits: the file names machines and not kinds of databases, because each kind has a driver of its
own. Without an address the plan drives the engine of Plimsoll. Accounts for the counters of other
machines, which the file may hold with their passwords, are neither carried over nor shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from plimsoll.imports.imported import Imported
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.workloads.store.address import StoreAddressError, parse
from plimsoll.workloads.store.sizes import HINT as HINT_OF_SIZE
from plimsoll.workloads.store.sizes import megabytes_of, rows_of, shown

#: Where the name of each target goes in an address.
TARGET = "{target}"
#: A run without an end measures for so long.
UNSTATED_MINUTES = 30
#: Longer values are no numbers, and are not repeated.
SHOWN_MAX = 20
#: Targets of one plan at most.
TARGETS_MAX = 64
#: What tells such a file from others: names that no other tool's file has at the beginning of a
#: line. Two of them are enough.
MARKS = (
    "n_threads",
    "ramp_rate",
    "warmup_time",
    "db_size",
    "db_size_str",
    "pct_newcustomers",
    "n_searches",
    "search_batch_size",
    "n_line_items",
    "pct_newmember",
    "n_reviews",
    "think_time",
)
#: What is not said is as in the driver.
DEFAULTS = {
    "target": "localhost",
    "n_threads": "1",
    "run_time": "0",
    "db_size": "10MB",
    "warmup_time": "1",
    "think_time": "0",
    "pct_newcustomers": "20",
    "n_searches": "3",
    "search_batch_size": "5",
    "n_line_items": "5",
}
#: Names without an effect here, and why.
KEPT = {
    "config_file": "names this file",
    "ramp_rate": "paces how fast the driver connects; sessions here think before their first order",
    "virt_dir": "belongs to the web tier, which is not there",
    "page_type": "belongs to the web tier, which is not there",
    "windows_perf_host": "counters of other machines are not read; see data_path",
    "linux_perf_host": "counters of other machines are not read, and its password is not kept",
    "detailed_view": "the report shows every target by itself",
    "out_filename": "`plimsoll export RUN --dvdstore` writes the same table",
    "log_freq": "the exported table has a line for each 10 s",
    "log_timestamp": "the exported table has its times in UTC",
    "search_depth": "searches end at the rows that are wanted",
    "ds2_mode": "decides store_mode",
}
#: What only DVD Store 3 does, and the key that each becomes.
OF_VERSION_3 = {
    "pct_newmember": "new_members_percent",
    "n_reviews": "reviews_mean",
    "pct_newreviews": "new_reviews_percent",
    "pct_newhelpfulness": "new_ratings_percent",
}
#: What else no earlier driver knows.
ONLY_IN_VERSION_3 = ("ds2_mode", "search_depth", "n_stores")
#: Numbers as the driver reads them.
_PLAIN = re.compile(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?")
_LINE = re.compile(r"\s*(?:--)?([A-Za-z0-9_]+)\s*=(.*)")
_MARK = re.compile(rf"^[ \t]*(?:--)?({'|'.join(MARKS)})[ \t]*=".encode(), re.MULTILINE)

Value = TypeVar("Value", int, float)


def is_dvdstore(start: bytes) -> bool:
    r"""Whether a file begins as a configuration of DVD Store does.

    >>> is_dvdstore(b"target=db1\nn_threads=20\nramp_rate=10\n"), is_dvdstore(b"n_threads = 20")
    (True, False)
    """
    return len({found[1] for found in _MARK.finditer(start)}) > 1


@dataclass
class _Reading:
    """What the lines say, and what was found so far."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.values.get(name, DEFAULTS.get(name, ""))

    def wrong(self, name: str, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(self.lines.get(name, 0), name, message, hint))

    def number(self, name: str, kind: Callable[[str], Value], low: float, high: float) -> Value:
        """A number within bounds; the least one where there is a mistake."""
        text = self.text(name)
        try:
            value = kind(text if _PLAIN.fullmatch(text) else "")
        except ValueError:
            value = kind("-1")
        if not low <= value <= high:
            what = "a whole number" if kind is int else "a number"
            # A line that was joined to the next one may hold what is nobody's business.
            said = f'is "{text}"' if len(text) <= SHOWN_MAX else f"is {len(text)} characters"
            self.wrong(name, said, f"write {what} from {low:g} to {high:g}")
            return kind(str(low if kind is float else int(low)))
        return value


def plan_of_dvdstore(
    name: str, text: str, root: str = "/mnt", address: str | None = None
) -> Imported:
    """The plan of a configuration.

    Args:
        name: of the file, for mistakes.
        text: its content.
        root: the directory below which each target is mounted here by its name, where there is no
            address.
        address: where the store of a target lies, such as `postgresql://ds2user@{target}/ds2`.

    Raises:
        InputError: with everything that cannot mean anything.
    """
    reading = _read(text)
    sessions = reading.number("n_threads", int, 1, 100_000)
    warm_up = reading.number("warmup_time", int, 0, 100_000)
    minutes = reading.number("run_time", int, 0, 1_000_000)
    habits: dict[str, float] = {
        "think_s": reading.number("think_time", float, 0, 86_400),
        "new_customers_percent": reading.number("pct_newcustomers", int, 0, 100),
        "searches_mean": reading.number("n_searches", int, 1, 1000),
        "search_rows_mean": reading.number("search_batch_size", int, 1, 1000),
        "lines_mean": reading.number("n_line_items", int, 1, 1000),
    }
    is_third = _is_of_version_3(reading)
    if is_third:
        habits |= {
            key: reading.number(
                name, int, 1 if name == "n_reviews" else 0, 1000 if name == "n_reviews" else 100
            )
            for name, key in OF_VERSION_3.items()
            if name in reading.values
        }
    megabytes = _size(reading)
    targets = _targets(reading)
    stores = _addresses(reading, targets, address)
    if reading.mistakes:
        raise InputError(name, reading.mistakes)
    if minutes == 0:
        reading.remarks.append(
            f"the file runs until it is stopped; the plan measures for {UNSTATED_MINUTES} min: "
            f"change duration_s"
        )
    _remark_on_stores(reading, address)
    _remark_on_size(reading, megabytes)
    plan = [
        "# Made from a configuration of DVD Store by `plimsoll import`; look at the targets before "
        "running it.",
        'kind = "plan"',
        "schema_version = 1",
        'name = "dvd store"',
        *([] if address is None else ['# source = "existing"']),
        *_stores(targets, stores, root, shown(megabytes).replace(" ", ""), is_third=is_third),
        *_workloads(targets, sessions, habits),
        *_phases(targets, warm_up, minutes or UNSTATED_MINUTES, of_engine=address is None),
    ]
    return Imported(
        "\n".join(plan) + "\n", _mapped(reading, address), _kept(reading), reading.remarks
    )


def _read(text: str) -> _Reading:
    reading = _Reading()
    known = {*DEFAULTS, *KEPT, *OF_VERSION_3, "db_size_str", "n_stores"}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            reading.remarks.append(f"line {number}: is no name=value; it is passed over")
            continue
        name, value = found[1].lower(), found[2].strip()
        if name not in known:
            reading.remarks.append(
                f'line {number}: "{name[:40]}" is no name of the driver; it is passed over'
            )
            continue
        if name in reading.values:
            reading.remarks.append(
                f"line {number}: {name} stands a second time; the last one counts"
            )
        reading.values[name], reading.lines[name] = value, number
    stores = reading.text("n_stores")
    if stores not in ("", "1"):
        hint = "write one configuration for each store"
        reading.wrong("n_stores", f'is "{stores}", but a plan has one store a target', hint)
    return reading


def _size(reading: _Reading) -> int:
    """Nominal megabytes; version 2.0 had another name for the size."""
    name = "db_size" if "db_size" in reading.values else "db_size_str"
    text = reading.text(name) or DEFAULTS["db_size"]
    megabytes = megabytes_of(text)
    if megabytes is None:
        reading.wrong(name, f'is "{text}", which is no size of a store', HINT_OF_SIZE)
    return megabytes or 10


def _targets(reading: _Reading) -> dict[str, int]:
    """The targets, and how often each is named: threads are for each time."""
    named = [part.strip() for part in reading.text("target").split(";") if part.strip()]
    if not 1 <= len(set(named)) <= TARGETS_MAX:
        hint = f"write 1 to {TARGETS_MAX}, parted by semicolons"
        reading.wrong("target", f"names {len(set(named))} targets", hint)
    return dict(Counter(named))


def _addresses(
    reading: _Reading, targets: dict[str, int], address: str | None
) -> dict[str, str] | None:
    """The address of the store of every target."""
    if address is None:
        return None
    if len(targets) > 1 and TARGET not in address:
        reading.mistakes.append(
            Mistake(
                0,
                "--store",
                f"is one address, but the file has {len(targets)} targets",
                f"write {TARGET} where the name of each goes",
            )
        )
    stores = {target: address.replace(TARGET, target) for target in targets}
    for target, store in stores.items():
        try:
            parse(store)
        except StoreAddressError as error:
            reading.mistakes.append(Mistake(0, f"--store, {target}", str(error), error.hint))
    return stores


def _remark_on_stores(reading: _Reading, address: str | None) -> None:
    if address is None:
        reading.remarks.append(
            "the file does not say which database its targets have; the plan makes a store on the "
            "engine of Plimsoll: name another one by --store, such as "
            f"--store postgresql://ds2user@{TARGET}/ds2"
        )
    else:
        reading.remarks.append(
            'an empty database is filled; write source = "existing" to drive the DVD Store that '
            "is there"
        )
        if not address.lower().startswith("sqlite:"):
            reading.remarks.append(
                "the driver knew its password; write password_file for every instance"
            )


def _is_of_version_3(reading: _Reading) -> bool:
    """Whether members and reviews are asked for: version 3 has them unless told otherwise.

    Names that only its driver knows tell that it is that version.
    """
    names_it = any(name in reading.values for name in (*OF_VERSION_3, *ONLY_IN_VERSION_3))
    return names_it and reading.text("ds2_mode").upper() != "Y"


def _remark_on_size(reading: _Reading, megabytes: int) -> None:
    theirs, ours = _products_of_dvdstore(megabytes), rows_of(megabytes)["products"]
    if theirs != ours:
        reading.remarks.append(
            f"a store of {shown(megabytes)} has {ours:,} products here and {theirs:,} there: one "
            f"rule that never falls makes every size"
        )


def _products_of_dvdstore(megabytes: int) -> int:
    """The original's three rules.

    >>> [_products_of_dvdstore(megabytes) for megabytes in (10, 999, 1000, 2000, 100_000)]
    [10000, 999000, 100000, 20000, 1000000]
    """
    if megabytes < 1000:
        return 1000 * megabytes
    return 100_000 if megabytes == 1000 else 10 * megabytes


def _name_of(target: str, number: int) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", target).strip("-.")[:40]
    return f"{cleaned or 'target'}" if number == 1 else f"{cleaned or 'target'}-{number}"


def _names(targets: dict[str, int]) -> dict[str, str]:
    """A name of its own for every target."""
    names: dict[str, str] = {}
    for target in targets:
        number = 1
        while _name_of(target, number) in names.values():
            number += 1
        names[target] = _name_of(target, number)
    return names


def _stores(
    targets: dict[str, int],
    stores: dict[str, str] | None,
    root: str,
    size: str,
    *,
    is_third: bool,
) -> list[str]:
    lines: list[str] = []
    names = _names(targets)
    for target in targets:
        name = _value(names[target])
        own = None if stores is None else stores[target]
        place = "" if own is not None else f"{root}/{names[target]}"
        if own is not None and own.lower().startswith("sqlite:"):
            place = own.partition(":")[2].rpartition("/")[0] or "."
        lines += ["", "[[target]]", f"name = {name}"]
        lines += [f"path = {_value(place)}"] if place else []
        lines += ["", "[[instance]]", f"name = {name}", f"target = {name}"]
        lines.append('backend = "store"' if own is None else f"store_address = {_value(own)}")
        lines.append(f'store_size = "{size}"')
        lines += ['store_mode = "ds3"'] if is_third else []
    return lines


def _workloads(targets: dict[str, int], sessions: int, habits: dict[str, float]) -> list[str]:
    lines: list[str] = []
    for (target, name), number in zip(
        _names(targets).items(), range(1, len(targets) + 1), strict=True
    ):
        lines += ["", "[[workload]]", f'name = "orders {number}"', f"instances = [{_value(name)}]"]
        lines += [f"{key} = {value:g}" for key, value in habits.items()]
        lines.append(f"load = {{ sessions = {sessions * targets[target]} }}")
    return lines


def _phases(targets: dict[str, int], warm_up: int, minutes: int, *, of_engine: bool) -> list[str]:
    names = ", ".join(f'"orders {number}"' for number in range(1, len(targets) + 1))
    lines = ["", "[[phase]]", 'kind = "prepare"']
    if warm_up:
        lines += ["", "[[phase]]", 'name = "warm up"', 'kind = "soak"']
        lines += [f"duration_s = {60 * warm_up}", f"workloads = [{names}]"]
    lines += ["", "[[phase]]", 'kind = "measure"', f"duration_s = {60 * minutes}"]
    lines.append(f"workloads = [{names}]")
    for kind in ("audit", "stop", *(["checksum"] if of_engine else [])):
        lines += ["", "[[phase]]", f'kind = "{kind}"']
    return lines


def _mapped(reading: _Reading, address: str | None) -> dict[str, str]:
    became = {
        "target": "target.path" if address is None else "instance.store_address",
        "n_threads": "workload.load.sessions",
        "run_time": "phase.duration_s",
        "warmup_time": "phase.duration_s of the warm-up",
        "db_size": "instance.store_size",
        "db_size_str": "instance.store_size",
        "think_time": "workload.think_s",
        "pct_newcustomers": "workload.new_customers_percent",
        "n_searches": "workload.searches_mean",
        "search_batch_size": "workload.search_rows_mean",
        "n_line_items": "workload.lines_mean",
    }
    if _is_of_version_3(reading):
        became |= {name: f"workload.{key}" for name, key in OF_VERSION_3.items()}
    return {name: became[name] for name in reading.values if name in became}


def _kept(reading: _Reading) -> dict[str, str]:
    reasons = dict(KEPT)
    if not _is_of_version_3(reading):
        reasons |= dict.fromkeys(OF_VERSION_3, "ds2_mode leaves members and reviews out")
    return {name: reasons[name] for name in reading.values if name in reasons}


def _value(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
