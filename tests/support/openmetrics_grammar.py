"""A strict reader of the OpenMetrics 1.0 text format, written from its grammar.

Whatever it does not know is an error.

Checked beyond the grammar: families stand together, metadata comes before samples, suffixes fit the
type, a unit is the end of the family's name, label names are unique, a labelset occurs once, and
the exposition ends with `# EOF` and a line feed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TYPES = {
    "counter": {"_total", "_created"},
    "gauge": {""},
    "histogram": {"_bucket", "_count", "_sum", "_created"},
    "gaugehistogram": {"_bucket", "_gcount", "_gsum"},
    "stateset": {""},
    "info": {"_info"},
    "summary": {"", "_count", "_sum", "_created"},
    "unknown": {""},
}
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.+)")
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?Inf|NaN"
_SAMPLE = re.compile(rf"({NAME})(\{{.*\}})? ({_NUMBER})(?: ({_NUMBER}))?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
_HELP = re.compile(r'(?:[^\\\n]|\\[\\n"])*')


@dataclass
class Family:
    """A metric family as it was read."""

    name: str
    type: str = "unknown"
    unit: str = ""
    help: str = ""
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)


class GrammarError(AssertionError):
    """A line that no exposition has."""


def read_openmetrics(text: str) -> dict[str, Family]:
    """The families of an exposition by name."""
    if not text.endswith("# EOF\n"):
        raise GrammarError("it does not end with # EOF")
    families: dict[str, Family] = {}
    current: Family | None = None
    for number, line in enumerate(text.split("\n")[:-2], 1):
        where = f"line {number}: {line}"
        if meta := _META.fullmatch(line):
            word, name, value = meta.groups()
            if current is None or current.name != name:
                _finish(current)
                if name in families:
                    raise GrammarError(f"{where}: the family stood before")
                current = families[name] = Family(name)
            elif current.samples:
                raise GrammarError(f"{where}: metadata after samples")
            if word == "TYPE" and value not in TYPES:
                raise GrammarError(f"{where}: no such type")
            if word == "HELP" and not _HELP.fullmatch(value):
                raise GrammarError(f"{where}: a bad escape")
            setattr(current, word.lower(), value)
            continue
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            raise GrammarError(where)
        if current is None or sample[1].removeprefix(current.name) not in TYPES[current.type]:
            raise GrammarError(f"{where}: belongs to no family that stands above")
        if not sample[1].startswith(current.name):
            raise GrammarError(f"{where}: of another family")
        labels = _labels(sample[2] or "{}", where)
        key = (sample[1].removeprefix(current.name), labels)
        if key in current.samples:
            raise GrammarError(f"{where}: twice")
        current.samples[key] = float(sample[3])
    _finish(current)
    return families


def _labels(text: str, where: str) -> tuple[tuple[str, str], ...]:
    found, rest = [], text[1:-1]
    while rest:
        label = _LABEL.match(rest)
        if label is None:
            raise GrammarError(f"{where}: labels")
        found.append((label[1], label[2]))
        rest = rest[label.end() :]
        if rest and not rest.startswith(","):
            raise GrammarError(f"{where}: labels")
        rest = rest[1:]
    if len({name for name, _ in found}) != len(found):
        raise GrammarError(f"{where}: a label twice")
    return tuple(sorted(found))


def _finish(family: Family | None) -> None:
    if family is None:
        return
    if family.unit and not family.name.endswith(f"_{family.unit}"):
        raise GrammarError(f"{family.name} does not end with its unit {family.unit}")
    for (suffix, labels), value in family.samples.items():
        if family.type == "counter" and not value >= 0:
            raise GrammarError(f"{family.name} is negative")
        if family.type == "stateset" and (family.name not in dict(labels) or value not in (0, 1)):
            raise GrammarError(f"{family.name} is no state")
        if family.type == "info" and value != 1:
            raise GrammarError(f"{family.name}{suffix} is not 1")
