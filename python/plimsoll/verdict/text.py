"""A verdict as lines of text.

Result and reasons first, then every check, the bottlenecks, and what keeps it from qualifying.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.verdict import Bottleneck, CheckBottleneck, StallBottleneck, Verdict
from plimsoll.results.digits import shown

WORDS = {"pass": "pass", "fail": "FAIL", "not_evaluated": "not evaluated"}
STALLS_SHOWN_MAX = 3


REHEARSAL_PASSED = "Rehearsal passed"
NO_QUALIFICATION = " (rehearsal, not a qualification)"


def named(result: str, *, rehearsal: bool) -> str:
    """A result in the words of a headline.

    What passes in minutes is no pass of the published kind, and what fails has failed.

    >>> named("pass", rehearsal=True), named("pass", rehearsal=False), named("fail", rehearsal=True)
    ('Rehearsal passed', 'Pass', 'Fail')
    """
    return REHEARSAL_PASSED if rehearsal and result == "pass" else result.capitalize()


def colour_of(found: Verdict) -> str:
    """What a page shows a verdict as: a rehearsal that passed is no pass of the published kind."""
    is_rehearsal = (
        found.result == "pass"
        and not found.qualifying
        and not found.prediction
        and not found.imported
    )
    return "rehearsal" if is_rehearsal else found.result


def lines_of(found: Verdict) -> list[str]:
    """What is printed of a verdict."""
    lines = [found.headline, *(f"  {reason}" for reason in found.reasons)]
    if found.throughput not in " ".join(found.reasons):
        lines.append(f"  {found.throughput}")
    lines.append("")
    for check in found.checks:
        doubted = " (in doubt)" if check.doubts else ""
        word = check.predicted or WORDS[check.status]
        band = f", band {check.band_percent:.0f} %" if check.band_percent else ""
        lines.append(f"  {word:<15}{check.title} ({check.scope}): {check.reason}{band}{doubted}")
    lines += _bottlenecks(found.bottlenecks)
    if found.cautions:
        lines += [
            "",
            "the rate may not be what the storage makes",
            *(f"  - {text}" for text in found.cautions),
        ]
    if found.warnings:
        lines += ["", "warnings", *(f"  - {text}" for text in found.warnings)]
    if found.not_tested:
        lines += ["", *(f"note: {text}" for text in found.not_tested)]
    if found.not_qualifying_because:
        lines += ["", "not a qualification, because"]
        lines += [f"  - {obstacle}" for obstacle in found.not_qualifying_because]
    return lines


def _bottlenecks(entries: Sequence[Bottleneck]) -> list[str]:
    """The bottlenecks, failed checks first; of the stalls only the longest."""
    lines: list[str] = []
    checks = [entry for entry in entries if isinstance(entry, CheckBottleneck)]
    if checks:
        lines += ["", "bottlenecks"]
        lines += [f"  {entry.title} ({entry.scope}): {entry.text}" for entry in checks]
        lines += [
            f"    {sentence}"
            for sentence in dict.fromkeys(line for entry in checks for line in entry.evidence)
        ]
    stalls = [entry for entry in entries if isinstance(entry, StallBottleneck)]
    if stalls:
        lines += ["", f"the longest transactions ({len(stalls)} in verdict.json)"]
        for entry in stalls[:STALLS_SHOWN_MAX]:
            lines.append(
                f"  {shown(entry.length_ms, 'ms')} {entry.operation} ({entry.scope}, "
                f"{entry.begun_utc}): "
                f"{entry.text}; {entry.evidence[0]}"
            )
    return lines
