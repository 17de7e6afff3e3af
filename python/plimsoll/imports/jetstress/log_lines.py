"""The test log of a report.

Lines with a time and a sentence, as events with values, and written as lines again.

The sentences are a fixed vocabulary that the published logs agree on. A line that is none of them
stays as it is, as the event `other`, so that nothing is lost. Limit: paths lose their folders,
because printed papers break them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from plimsoll.documents.reported import LogEvent

LINE_LETTERS_MAX = 4000
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_FORMATS = (
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
)
TIME = re.compile(
    r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}(?: [AP]M)?|\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}:\d{2}|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}"  # noqa: E501
)


def read_time(text: str) -> str | None:
    """A time in one of the forms that reports have, as ISO text; None when it is none.

    >>> read_time("4/21/2011 3:43:49 AM"), read_time("21.04.2011 03:43:49"), read_time("today")
    ('2011-04-21T03:43:49', '2011-04-21T03:43:49', None)
    """
    for form in _FORMATS:
        try:
            return datetime.strptime(" ".join(text.split()), form).isoformat()
        except ValueError:
            continue
    return None


def write_time(text: str) -> str:
    """A time as American reports have it.

    >>> write_time("2011-04-21T00:43:49")
    '4/21/2011 12:43:49 AM'
    """
    time = datetime.fromisoformat(text)
    return (
        f"{time.month}/{time.day}/{time.year} {time.hour % 12 or 12}:{time:%M:%S} "
        f"{'AM' if time.hour < 12 else 'PM'}"
    )


def number(text: str) -> int | float:
    """A number as whole as it is written.

    >>> number("15000"), number("5.1")
    (15000, 5.1)
    """
    return float(text) if "." in text else int(text)


def base_name(path: str) -> str:
    r"""The last part of a path; papers lose the separators before it.

    >>> base_name(r"C:\\Program Files\\Exchange Jetstress\\Stress_1.blg")
    'Stress_1.blg'
    """
    return re.split(r"[\\/ ]", path.strip())[-1]


@dataclass(frozen=True)
class Sentence:
    """One sentence of the vocabulary: how it is read and written."""

    event: str
    pattern: re.Pattern[str]
    written: str
    #: Names of the groups with their readers.
    values: tuple[tuple[str, Callable[[str], object]], ...] = ()


def _plain(event: str, pattern: str, written: str) -> Sentence:
    return Sentence(event, re.compile(pattern, re.IGNORECASE), written)


def _upper(text: str) -> float | None:
    return None if text.lower() == "none" else float(text)


def _all(unit: str) -> Callable[[str], list[int | float]]:
    return lambda text: [number(found) for found in re.findall(rf"\(?(\d+(?:\.\d+)?){unit}", text)]


def _same_percent(text: str) -> int | float:
    return min(number(found) for found in re.findall(r"\((\d+(?:\.\d+)?)%", text))


_ANY_FILE = r"(\S.*?\.(?:blg|xml|html?))"
SENTENCES = (
    _plain("testing_begins", r"Jetstress testing begins", "Jetstress testing begins ..."),
    _plain("prepare_begins", r"Prepar\w+ testing begins", "Preparing for testing begins ..."),
    _plain("prepare_begins", r"Preparing for testing begins", "Preparing for testing begins ..."),
    _plain("attach_databases", r"Attaching databases", "Attaching databases ..."),
    _plain(
        "prepare_ends",
        r"(?:Prepar\w+ testing|Preparations for testing) ends?",
        "Preparations for testing end.",
    ),
    _plain(
        "dispatch_begins", r"Dispatching transactions begins", "Dispatching transactions begins ..."
    ),
    Sentence(
        "cache_settings",
        re.compile(
            rf"Database cache settings:\s*\(minimum:\s*{_NUMBER} MB, maximum:\s*{_NUMBER} MB\)",
            re.I,
        ),
        "Database cache settings: (minimum: {min_mb} MB, maximum: {max_mb} MB)",
        (("min_mb", float), ("max_mb", float)),
    ),
    Sentence(
        "flush_thresholds",
        re.compile(
            rf"Database flush thresholds:\s*\(start:\s*{_NUMBER} MB, stop:\s*{_NUMBER} MB\)", re.I
        ),
        "Database flush thresholds: (start: {start_mb} MB, stop: {stop_mb} MB)",
        (("start_mb", float), ("stop_mb", float)),
    ),
    Sentence(
        "db_read_latency_thresholds",
        re.compile(
            rf"Database read latency thresholds:\s*\(average:\s*{_NUMBER} msec/read, maximum:\s*{_NUMBER} msec/read\)",  # noqa: E501
            re.I,
        ),
        "Database read latency thresholds: (average: {average_ms} msec/read, maximum: {maximum_ms} "
        "msec/read).",
        (("average_ms", number), ("maximum_ms", number)),
    ),
    Sentence(
        "log_write_latency_thresholds",
        re.compile(
            rf"Log write latency thresholds:\s*\(average:\s*{_NUMBER} msec/write, maximum:\s*{_NUMBER} msec/write\)",  # noqa: E501
            re.I,
        ),
        "Log write latency thresholds: (average: {average_ms} msec/write, maximum: {maximum_ms} "
        "msec/write).",
        (("average_ms", number), ("maximum_ms", number)),
    ),
    Sentence(
        "operation_mix",
        re.compile(
            r"Operation mix:\s*Sessions (\d+), Inserts (\d+)%, Deletes (\d+)%, Replaces (\d+)%, Reads (\d+)%, Lazy Commits (\d+)%",  # noqa: E501
            re.I,
        ),
        "Operation mix: Sessions {sessions}, Inserts {insert_pct}%, Deletes {delete_pct}%, "
        "Replaces {replace_pct}%, Reads {read_pct}%, Lazy Commits {lazy_commit_pct}%.",
        (
            ("sessions", int),
            ("insert_pct", int),
            ("delete_pct", int),
            ("replace_pct", int),
            ("read_pct", int),
            ("lazy_commit_pct", int),
        ),
    ),
    Sentence(
        "perf_logging_begins",
        re.compile(r"Performance logging (?:begins|started) \(interval:\s*(\d+) ms\)", re.I),
        "Performance logging begins (interval: {interval_ms} ms).",
        (("interval_ms", int),),
    ),
    _plain(
        "perf_logging_ends", r"Performance logging (?:ends|has ended)", "Performance logging ends."
    ),
    _plain("attaining_prerequisites", r"Attaining prerequisites", "Attaining prerequisites:"),
    _plain("generate_log_files", r"Generating log files", "Generating log files ..."),
    Sentence(
        "prerequisite_met",
        re.compile(
            rf"\\?MSExchange Database ?\([^)]*\)\\?(.*?), Last:\s*{_NUMBER} \(lower bound:\s*{_NUMBER}, upper bound:\s*(\S+?)\)",  # noqa: E501
            re.I,
        ),
        "\\MSExchange Database(JetstressWin)\\{counter}, Last: {last_bytes} (lower bound: "
        "{lower_bound_bytes}, upper bound: {upper_bound})",
        (
            ("counter", str),
            ("last_bytes", float),
            ("lower_bound_bytes", float),
            ("upper_bound", _upper),
        ),
    ),
    Sentence(
        "log_files_generated",
        re.compile(r"((?:\S+ \(\d+(?:\.\d+)?% generated\)[, and]*)+)", re.I),
        "",
        (("pct", _all("%")),),
    ),
    Sentence(
        "batch_transaction_stats",
        re.compile(r"JetInterop batch transaction stats:\s*(\d[\d, and]*\d|\d)", re.I),
        "",
        (("per_instance", lambda text: [int(found) for found in re.findall(r"\d+", text)]),),
    ),
    _plain("dispatch_ends", r"Dispatching transactions ends", "Dispatching transactions ends."),
    _plain("shutdown_databases", r"Shutting down databases", "Shutting down databases ..."),
    _plain("instances_complete", r"(?:\S+ \(complete\)[, and]*)+", ""),
    Sentence(
        "perf_log_samples",
        re.compile(rf"{_ANY_FILE} has (\d+) samples?\.?$", re.I),
        "{file} has {samples} samples.",
        (("file", base_name), ("samples", int)),
    ),
    Sentence(
        "samples_queried",
        re.compile(rf"{_ANY_FILE} has (\d+) samples queried", re.I),
        "{file} has {samples} samples queried.",
        (("file", base_name), ("samples", int)),
    ),
    _plain("create_report", r"Creating test report", "Creating test report ..."),
    Sentence(
        "instance_result",
        re.compile(rf"(\S+) has {_NUMBER} for (I/O .*?)\.?$", re.I),
        "{instance} has {value_ms} for {metric}.",
        (("instance", str), ("value_ms", float), ("metric", str)),
    ),
    Sentence(
        "max_page_fault_stalls_per_sec",
        re.compile(rf"Test has {_NUMBER} Maximum Database Page Fault Stalls/sec", re.I),
        "Test has {value} Maximum Database Page Fault Stalls/sec.",
        (("value", number),),
    ),
    Sentence(
        "page_fault_stall_samples_above_zero",
        re.compile(
            rf"Test has {_NUMBER} Database Page Fault Stalls/sec samples higher than 0", re.I
        ),
        "Test has {value} Database Page Fault Stalls/sec samples higher than 0.",
        (("value", number),),
    ),
    Sentence(
        "html_report_saved",
        re.compile(rf"{_ANY_FILE} (?:was|is|has been) saved", re.I),
        "{file} was saved.",
        (("file", base_name),),
    ),
    _plain("verify_checksums", r"Verifying (?:database )?checksums", "Verifying checksums ..."),
    _plain("backup_databases", r"Backing up databases", "Backing up databases ..."),
    _plain("recover_databases", r"Recovering databases", "Recovering databases ..."),
    Sentence(
        "volumes_processed",
        re.compile(r"((?:[A-Z]:\S* \(\d+(?:\.\d+)?% processed\)[, and]*)+)", re.I),
        "",
        (("pct", _same_percent),),
    ),
    Sentence(
        "instances_processed",
        re.compile(r"((?:Instance\S+ \(\d+(?:\.\d+)?% processed\)[, and]*)+)", re.I),
        "",
        (("pct", _same_percent),),
    ),
    Sentence(
        "instances_recovered",
        re.compile(r"((?:Instance\S+ \(\d+\.\d+\)[, and]*)+)", re.I),
        "",
        (("elapsed_s", _all(r"\)")),),
    ),
)


def read_event(time: str, text: str) -> LogEvent:
    """A line of the log as an event."""
    text = " ".join(text.split())
    # No sentence of the tool is so long; a hostile one would keep the patterns busy.
    for sentence in SENTENCES if len(text) <= LINE_LETTERS_MAX else ():
        # A sentence about files ends the line; all others begin it, and volumes come before
        # instances.
        match = sentence.pattern.match(text)
        if match is None:
            continue
        try:
            values = {
                name: read(match.group(place))
                for place, (name, read) in enumerate(sentence.values, 1)
            }
        except ValueError:
            # Numbers that no log has: the line is kept as it stands.
            break
        return cast(LogEvent, {"t": time, "event": sentence.event, **values})
    return {"t": time, "event": "other", "text": text}


def read_log(lines: list[tuple[int, str]]) -> list[LogEvent]:
    """The events of a log; a line without a time belongs to the one before it."""
    events: list[tuple[str, str]] = []
    for _, line in lines:
        match = TIME.match(line.strip())
        time = read_time(match.group()) if match else None
        if match and time:
            events.append((time, line.strip()[match.end() :].strip(" -–\t")))
        elif events and line.strip():
            events[-1] = (events[-1][0], f"{events[-1][1]} {line.strip()}")
    return [read_event(time, text) for time, text in events]


def shares_of(event: LogEvent) -> list[float]:
    """The percentages of an event, one for each instance."""
    shares = event["pct"]
    return shares if isinstance(shares, list) else [shares]


def write_event(event: LogEvent, instances: list[str], volumes: list[str]) -> str:
    """An event as a line of the log."""
    return f"{write_time(event['t'])} -- {_sentence(event, instances, volumes)}"


def _sentence(event: LogEvent, instances: list[str], volumes: list[str]) -> str:
    match event["event"]:
        case "other":
            return str(event["text"])
        case "instances_complete":
            return _list([f"{name} (complete)" for name in instances])
        case "log_files_generated":
            return _list(
                [
                    f"{name} ({share}% generated)"
                    for name, share in zip(instances, shares_of(event), strict=False)
                ]
            )
        case "batch_transaction_stats":
            return (
                f"JetInterop batch transaction stats: "
                f"{_list([str(count) for count in event['per_instance']])}."
            )
        case "volumes_processed":
            return _list([f"{name} ({event['pct']}% processed)" for name in volumes])
        case "instances_processed":
            return _list([f"{name} ({event['pct']}% processed)" for name in instances])
        case "instances_recovered":
            return _list(
                [
                    f"{name} ({seconds:.7f})"
                    for name, seconds in zip(instances, event["elapsed_s"], strict=False)
                ]
            )
    sentence = next(sentence for sentence in SENTENCES if sentence.event == event["event"])
    values = {name: "none" if value is None else value for name, value in event.items()}
    return sentence.written.format(**values)


def _list(texts: list[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
