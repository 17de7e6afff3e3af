"""JetstressConfig.xml to a plan.

What means the same is translated, the rest is kept word for word and listed.

Source of the meanings: two published files of the 2013 tool and the descriptions of 2005 to 2015
that `docs/reference/import.md` sums up. A plan holds the fields without a meaning here in
`jetstress_fields`, so that `plimsoll plan export` writes a file with every field again. Limits: a
volume that is filled by a percentage has no size that the file knows; Windows paths become
directories below a root, one for each drive letter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from plimsoll import settings
from plimsoll.imports.imported import Imported
from plimsoll.imports.jetstress.config_fields import Fields, field_lines, fields_of
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.safe_xml import parse_xml
from plimsoll.inputs.toml_lines import parse_located
from plimsoll.plan.complete import complete_plan

#: The first number of the tool's version, and the edition whose habits it has.
EDITION_OF_VERSION = {"6": "2003", "08": "2007", "8": "2007", "14": "2010", "15": "2013"}
#: A table of a plan file: keys with values as TOML has them.
TomlTable = dict[str, str | float | bool | list[str] | None]
DESIGN, PROFILE, JET = "TestDesignInfo", "ExchangeProfile", "JetSystemParams"
#: Kinds of test whose load is measured for a time.
LOADED = ("performance", "stress")
#: Kinds of test of the tool and the kind of plan that is made of each.
TESTS = {
    "performance": "performance",
    "stress": "stress",
    "databasebackup": "backup",
    "softrecovery": "recovery",
}
_DURATION = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
MIX = {
    "insert_percent": "@InsertOps",
    "delete_percent": "@DeleteOps",
    "replace_percent": "@ReplaceOps",
    "lazy_commit_percent": "@LazyCommits",
}

#: Thresholds of the tool and the figures they bound here.
THRESHOLDS = {
    "AverageDatabaseReadLatency": ("database_read_latency_ms_mean", 20, 20),
    "MaximumDatabaseReadLatency": ("database_read_latency_ms_sample_mean_max", 100, 200),
    "AverageLogWriteLatency": ("log_write_latency_ms_mean", 10, 10),
    "MaximumLogWriteLatency": ("log_write_latency_ms_sample_mean_max", 100, 200),
}

#: Fields that are kept because they mean nothing here, with the reason where it is not obvious.
REASONS = {
    "LogInterval": "samples are taken more often here and put together to the published 15 s",
    "LogInterval2": "its meaning was never published",
    "MaximumLatencyErrors": "its meaning was never published; the highest sample is judged here",
    "MaximumChecksumBuffers": "reads in flight bound the memory of a checksum here",
    "MaximumChecksumThreads": "reads in flight are set in the checksum phase",
    "UseEseCounters": "latency is measured where a request leaves, never by counters",
    "BinaryPerfLog": "samples are always written as columns",
    "LockOps": "the mix is never changed by a search here",
    "LogFileSize": "logs have 1 MiB here",
    "MaxVerPages": "the version store has its size here",
    "LongPadLength": "the edition's records were fitted on published runs",
    "ShortPadLength": "the edition's records were fitted on published runs",
    "DatabaseSource": "databases are used again here when they are the ones wanted, and made "
    "otherwise; `source` says it otherwise",
    "MultiHostBreak": "hosts start together with `plimsoll run --start-at` and are added up by "
    "`plimsoll combine`",
    "RestoreBackupPath": "`restore_from` names a saved set",
    "DatabaseSpaceReserved": "databases grow as they must; free space is checked before a run",
    "OutputPath": "a run has a folder of its own",
    "IopsBias": "the weight of the instance was made of it; 1 is the weight without any",
    "JetstressVersionGenerated": "it tells the edition",
    "EseVersionGenerated": "the engine is another one",
    "Path": "the target of the plan was made of it",
    "LogPath": "the target of the plan was made of it",
    "MailboxCount": "the required IOPS and the size of databases were made of it",
    "MailboxIops": "the required IOPS were made of it",
    "MarginIops": "the margin of the required IOPS was made of it",
    "MailboxQuota": "the size of databases was made of it",
    **dict.fromkeys(
        ("Name", "TestRunTypes", *THRESHOLDS), "the limits of the plan were made of it"
    ),
    "TransPerSec": "its unit was never published; write `transactions_per_s` by hand",
}


@dataclass(frozen=True)
class _Instance:
    """An instance of the plan: where its target lies, and everything else it has."""

    path: str
    log_path: str | None
    databases: int
    fields: TomlTable


@dataclass(frozen=True)
class _Workload:
    """The workload of the plan and its load."""

    fields: TomlTable
    load: TomlTable


@dataclass
class _Reading:
    """Fields that wait to be translated, and what was found so far."""

    name: str
    fields: Fields
    lines: dict[str, int]
    mapped: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)

    def take(self, path: str, key: str) -> str | None:
        """A field's text, noted as translated; None when it is absent or empty."""
        value = self.fields.get(path)
        if value:
            self.mapped[path] = key
        return value or None

    def look(self, path: str) -> str | None:
        """A field's text that stays kept all the same."""
        return self.fields.get(path) or None

    def wrong(self, path: str, message: str, hint: str) -> None:
        self.mistakes.append(Mistake(self.lines.get(path, 0), path, message, hint))

    def number(
        self, path: str, low: float, high: float, key: str = "", *, whole: bool = False
    ) -> float | None:
        """A field as a number; with a key it counts as translated."""
        text = self.take(path, key) if key else self.look(path)
        if text is None:
            return None
        if not re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,18})?", text):
            self.wrong(
                path,
                f'is "{text[:40]}", but a number was expected',
                "write digits, with a point if need be",
            )
            return None
        value = float(text)
        if not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            self.wrong(
                path,
                f"is {text}, but {kind} from {low:g} to {high:g} was expected",
                "correct the file",
            )
            return None
        return int(value) if whole else value

    def flag(self, path: str, key: str = "") -> bool | None:
        """A field as true or false."""
        text = self.take(path, key) if key else self.look(path)
        if text is None:
            return None
        if text.lower() not in ("true", "false", "1", "0"):
            self.wrong(
                path, f'is "{text[:40]}", but true or false was expected', "correct the file"
            )
        return text.lower() in ("true", "1")


def import_config(name: str, content: bytes, root: str = "/mnt") -> Imported:
    """Translate a configuration file.

    Args:
        name: the file as the user named it.
        content: its bytes.
        root: the directory below which drive letters are mounted on the machine that will run the
            plan.

    Raises:
        InputError: it is damaged, or is no configuration of the tool.
    """
    element = parse_xml(name, content)
    if element.name != "configuration" or element.find(DESIGN) is None:
        hint = f"a JetstressConfig.xml has <configuration> with <{DESIGN}> inside"
        raise InputError(
            name,
            [Mistake(element.line, element.name[:40], "is not the configuration of a test", hint)],
        )
    fields, lines = fields_of(element)
    reading = _Reading(name, fields, lines)
    edition = _edition(reading)
    test = _test(reading)
    head = _head(reading, test)
    instances = _instances(reading, edition, root)
    workload = _workload(reading, edition, test)
    phases = _phases(reading, test, searches="search" in workload.load)
    if reading.mistakes:
        raise InputError(name, reading.mistakes)
    rest = {path: value for path, value in fields.items() if path not in reading.mapped}
    text = _toml(head, rest, instances, workload, phases)
    try:
        complete_plan(parse_located(name, text))
    except InputError as error:
        raise InputError(
            name, [Mistake(0, item.where, item.message, item.hint) for item in error.mistakes]
        ) from error
    kept = {
        path: REASONS.get(
            path.rpartition("/")[2].lstrip("@").partition("[")[0], "means nothing here"
        )
        for path in rest
    }
    return Imported(text, reading.mapped, kept, reading.remarks)


def _edition(reading: _Reading) -> str:
    version = reading.look("JetstressVersionGenerated") or ""
    found = EDITION_OF_VERSION.get(version.partition(".")[0])
    if found is None:
        reading.remarks.append(
            f'version "{version[:40]}" is not known; the plan takes edition 2013'
        )
    return found or "2013"


def _test(reading: _Reading) -> str:
    """The kind of test of the plan."""
    kind = (reading.look(f"{DESIGN}/Type") or "Performance").lower()
    if kind in TESTS:
        reading.take(f"{DESIGN}/Type", "test")
    else:
        reading.remarks.append(
            f'Type "{kind[:40]}" has no plan of its own here; the load of its test is planned'
        )
    return TESTS.get(kind, "performance")


def _head(reading: _Reading, test: str) -> TomlTable:
    """What the plan says of itself, and its limits."""
    head: TomlTable = {"name": "jetstress", "test": test}
    description = reading.take(f"{DESIGN}/Description", "description")
    if description:
        head["description"] = " ".join(description.split())
    head["limits"], head["stated_limits"] = _limits(reading, test)
    count, rate = (
        reading.number(f"{PROFILE}/{name}", 0, 1e7) for name in ("MailboxCount", "MailboxIops")
    )
    if count and rate:
        head["required_iops"] = round(count * rate, 6)
        margin = reading.number(f"{PROFILE}/MarginIops", 0, 0.5)
        if margin:
            head["margin_percent"] = round(100 * margin, 6)
    return head


def _limits(reading: _Reading, test: str) -> tuple[str, list[str]]:
    """The limit set of a kind of test, and thresholds that are narrower than it."""
    lenient = test == "stress"
    wanted = "Lenient" if lenient else "Strict"
    stated = []
    for number in range(1, 9):
        base = f"{DESIGN}/Thresholds[{number}]"
        if reading.look(f"{base}/@Name") != wanted:
            continue
        for name, (figure, strict, loose) in THRESHOLDS.items():
            value, usual = reading.number(f"{base}/{name}", 0, 1e6), loose if lenient else strict
            if value is not None and value < usual:
                stated.append(f"{figure}<={value:g}")
            elif value is not None and value > usual:
                reading.remarks.append(
                    f"{base}/{name} is {value:g} ms; {usual} ms are judged here all the same"
                )
    return ("lenient" if lenient else "strict"), stated


def _instances(reading: _Reading, edition: str, root: str) -> list[_Instance]:
    """One entry for each log stream: target, paths and everything the instance has."""
    shared: TomlTable = {"edition": edition}
    page = reading.number(f"{JET}/DatabasePageSize", 4096, 32768, "page_kib", whole=True)
    if page is not None and page not in (4096, 8192, 16384, 32768):
        reading.wrong(
            f"{JET}/DatabasePageSize", f"is {page}", "4096, 8192, 16384 or 32768 was expected"
        )
    if page is not None:
        shared["page_kib"] = int(page) // 1024
    copies = reading.number(f"{PROFILE}/DatabaseCopyCount", 1, 16, "copies", whole=True)
    circular = reading.flag(f"{JET}/CircularLog", "circular_log")
    maintenance = reading.flag(f"{DESIGN}/RunDatabaseMaintenancePerformance", "maintenance")
    throttle = reading.number(
        f"{JET}/DBMThrottling", 0, 60_000, "maintenance_throttle_ms", whole=True
    )
    for key, value in (
        ("copies", copies),
        ("circular_log", circular),
        ("maintenance", maintenance),
        ("maintenance_throttle_ms", throttle),
    ):
        if value is not None:
            shared[key] = value
    found = _paths(reading, root) or [_Instance(f"{root}/databases", None, 1, {"databases": 1})]
    size = _database_size_mib(reading, sum(item.databases for item in found))
    if size:
        shared["database_size_mib"] = size
    return [replace(item, fields={**item.fields, **shared}) for item in found]


def _paths(reading: _Reading, root: str) -> list[_Instance]:
    found = []
    numbers = sorted(
        {
            int(match.group(1))
            for path in reading.fields
            if (match := re.search(r"EseInstance\[(\d{1,4})\]", path))
        }
    )
    for number in numbers:
        base = f"{PROFILE}/EseInstances/EseInstance[{number}]"
        paths = [
            value
            for path, value in reading.fields.items()
            if path.startswith(f"{base}/DatabasePaths/Path") and value
        ]
        if not paths:
            reading.wrong(
                base,
                "has no database path",
                "write <DatabasePaths><Path>E:\\db1</Path></DatabasePaths>",
            )
            continue
        log = reading.look(f"{base}/LogPath")
        path, log_path = linux_path(paths[0], root), linux_path(log, root) if log else None
        values: TomlTable = {"databases": len(paths)}
        bias = reading.number(f"{base}/@IopsBias", 0.001, 1000)
        if bias not in (None, 1):
            values["weight"] = bias
        if len({linux_path(path, root) for path in paths}) > 1:
            reading.remarks.append(
                f"EseInstance {number} has databases in several places; here they lie together in "
                f"the first"
            )
        found.append(_Instance(path, log_path if log_path != path else None, len(paths), values))
    if not found and not reading.mistakes:
        reading.remarks.append(
            "the file names no databases; correct the path of the target in the plan"
        )
    elif found:
        reading.remarks.append(
            f"drive letters became directories below {root}; correct the paths of the targets, or "
            f"import with --root"
        )
    return found


def linux_path(path: str, root: str) -> str:
    r"""Where a Windows path lies when its drive is mounted below a root.

    >>> linux_path("E:\\db1\\db", "/mnt")
    '/mnt/e/db1/db'
    """
    parts = [
        part
        for part in re.split(r"[\\/]+", path.replace(":", "").strip())
        if part not in ("", ".", "..")
    ]
    if re.match(r"[A-Za-z]:", path.strip()) and parts:
        parts[0] = parts[0].lower()
    return "/".join([root.rstrip("/"), *parts])


def _database_size_mib(reading: _Reading, databases: int) -> int | None:
    """Mailboxes times their quota, divided among the databases.

    None where the file fills volumes by a percentage.
    """
    count = reading.number(f"{PROFILE}/MailboxCount", 0, 1e8, whole=True)
    quota = reading.number(f"{PROFILE}/MailboxQuota", 0, 1e8)
    if count and quota:
        return max(64, round(count * quota / databases))
    reading.remarks.append(
        "the file does not say how large databases are; write database_size_mib into the plan"
    )
    return None


def _workload(reading: _Reading, edition: str, test: str) -> _Workload:
    load = _load(reading, edition, test)
    workload: TomlTable = {"name": "mix"}
    sluggish = reading.number(f"{DESIGN}/SluggishSessions", 0, 1000, "sluggish", whole=True)
    updates = reading.number(f"{DESIGN}/BatchUpdates", 1, 1e6, "batch_operations", whole=True)
    mix = {
        key: reading.number(f"{DESIGN}/OperationMix/{name}", 0, 100, key, whole=True)
        for key, name in MIX.items()
    }
    changes = [mix[key] for key in ("insert_percent", "delete_percent", "replace_percent")]
    workload |= {key: value for key, value in mix.items() if value is not None}
    known = [value for value in changes if value is not None]
    if len(known) == 3:
        if sum(known) > 100:
            reading.wrong(
                f"{DESIGN}/OperationMix/@InsertOps",
                f"and the others add up to {sum(known):g} %",
                "inserts, deletes and replaces make 100 at most",
            )
        workload["read_percent"] = int(100 - sum(known))
    elif known:
        reading.wrong(
            f"{DESIGN}/OperationMix/@InsertOps",
            "or another share is missing",
            "InsertOps, DeleteOps and ReplaceOps were expected",
        )
    for key, value in (("sluggish", sluggish), ("batch_operations", updates)):
        if value is not None:
            workload[key] = value
    return _Workload(workload, load)


def _load(reading: _Reading, edition: str, test: str) -> TomlTable:
    """Sessions where tuning is off.

    Users at their rate, or a search, where the tool would have tuned.
    """
    fixed = reading.flag(f"{DESIGN}/SuppressTuning", "load" if test in LOADED else "")
    profile = (reading.look(f"{PROFILE}/DatabaseSizing") or "").lower() == "profile"
    users = reading.number(f"{PROFILE}/MailboxCount", 0, 1e9, whole=True)
    rate = reading.number(f"{PROFILE}/MailboxIops", 0, 1000)
    if fixed is False and test in LOADED and profile and users and rate:
        reading.remarks.append(
            "the tool would have tuned its threads; the plan lets users arrive at their rate "
            "instead"
        )
        for name in ("MailboxCount", "MailboxIops"):
            reading.take(f"{PROFILE}/{name}", "load")
        share = reading.number(f"{PROFILE}/ThroughputPercentage", 0.1, 1000, "throughput_percent")
        load: TomlTable = {"users": users, "iops_per_user": rate}
        if share and share != 100:
            load["throughput_percent"] = share
        return load
    threads = reading.number(f"{PROFILE}/ThreadCount", 1, 100_000, "sessions", whole=True)
    sessions: TomlTable = {"sessions": threads, "shared": edition == "2013"} if threads else {}
    if fixed is False and test in LOADED:
        reading.remarks.append(
            "the tool would have tuned its threads; the plan searches the highest rate within the "
            "limits"
        )
        return {"search": "max", **sessions}
    if not sessions:
        reading.remarks.append(
            "the file has no thread count; the plan takes the edition's sessions"
        )
    return sessions


def seconds_of(duration: str) -> int | None:
    """The seconds of a duration as the tool writes it; None when it is none.

    >>> seconds_of("P0Y0M0DT2H0M0S"), seconds_of("P0Y0M1DT0H0M0S"), seconds_of("2 h")
    (7200, 86400, None)
    """
    match = _DURATION.fullmatch(duration.strip()) if len(duration) < 60 else None
    if match is None or not any(match.groups()):
        return None
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((years * 365 + months * 30 + days) * 24 + hours) * 3600 + minutes * 60 + seconds


def _phases(reading: _Reading, test: str, *, searches: bool) -> list[TomlTable]:
    """The phases of the kind of test, as the tool goes through them."""
    share = reading.number(
        f"{DESIGN}/PreloadJetCache", 0, 1, "cache_percent" if test in LOADED else ""
    )
    wants_checksum = (
        reading.flag(f"{DESIGN}/VerifyChecksum", "checksum phase" if test in LOADED else "")
        is not False
    )
    seconds = _duration_s(reading, "duration_s" if test in LOADED else "")
    if test == "backup":
        return [{"kind": "prepare"}, {"kind": "backup"}, {"kind": "stop"}]
    if test == "recovery":
        logs = reading.number(f"{DESIGN}/LogFilesToReplay", 1, 100_000, "logs", whole=True)
        generate: TomlTable = {"kind": "generate_logs", **({"logs": logs} if logs else {})}
        return [{"kind": "prepare"}, generate, {"kind": "recover"}, {"kind": "stop"}]
    warm: TomlTable = {"kind": "warm_up"}
    if share is not None:
        warm["cache_percent"] = round(share * 100)
    search: list[TomlTable] = (
        [{"kind": "search", "duration_s": settings.SEARCH["duration_s"]}] if searches else []
    )
    phases: list[TomlTable] = [
        {"kind": "prepare"},
        warm,
        *search,
        {"kind": "measure", "duration_s": seconds},
        {"kind": "stop"},
    ]
    return [*phases, {"kind": "checksum"}] if wants_checksum else phases


def _duration_s(reading: _Reading, key: str) -> int:
    """How long a load test runs; a test that runs until it is done keeps its duration as it is."""
    path = f"{DESIGN}/Duration"
    text = reading.take(path, key) if key else reading.look(path)
    seconds = seconds_of(text) if text else 7200
    if seconds is None or not 1 <= seconds <= 30 * 86400:
        reading.wrong(path, f'is "{str(text)[:40]}"', "P0Y0M0DT2H0M0S was expected, up to 30 days")
        return 7200
    return seconds


def _toml(
    head: TomlTable,
    kept: Fields,
    instances: list[_Instance],
    workload: _Workload,
    phases: list[TomlTable],
) -> str:
    lines = [
        "# Made from a JetstressConfig.xml by `plimsoll import`; look at the paths before running "
        "it.",
        'kind = "plan"',
        "schema_version = 1",
    ]
    lines += [f"{key} = {_value(value)}" for key, value in head.items() if value not in (None, [])]
    lines += [
        "",
        "# Fields that mean nothing here; `plimsoll plan export` writes them again.",
        "jetstress_fields = [",
    ]
    lines += [f"    {_value(text)}," for text in field_lines(kept)] + ["]"]
    for number, instance in enumerate(instances, 1):
        lines += [
            "",
            "[[target]]",
            f'name = "volume{number}"',
            f"path = {_value(instance.path)}",
        ]
        if instance.log_path:
            lines.append(f"log_path = {_value(instance.log_path)}")
    for number, instance in enumerate(instances, 1):
        lines += ["", "[[instance]]", f'name = "instance{number}"', f'target = "volume{number}"']
        lines += [f"{key} = {_value(value)}" for key, value in instance.fields.items()]
    lines += ["", "[[workload]]"]
    lines += [f"{key} = {_value(value)}" for key, value in workload.fields.items()]
    if workload.load:
        load = ", ".join(f"{key} = {_value(value)}" for key, value in workload.load.items())
        lines.append(f"load = {{ {load} }}")
    for phase in phases:
        lines += ["", "[[phase]]", *(f"{key} = {_value(value)}" for key, value in phase.items())]
    return "\n".join(lines) + "\n"


def _value(value: str | float | bool | list[str] | None) -> str:
    """A value as TOML; texts of JSON are texts of TOML but for the one character that TOML wants
    escaped.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
