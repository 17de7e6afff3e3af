"""The verdict of several hosts: the worst of theirs, with every check under the name of its host.

Each host was judged by itself, over all that it measured. What is judged here is what no host can
know: whether all of them together made what their common plan requires, and whether they measured
at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import SCHEMA_VERSION, HostVerdict, Result, Verdict
from plimsoll.multihost.overlap import Overlap
from plimsoll.multihost.reading import HostRun
from plimsoll.verdict import FAIL, INCONCLUSIVE, PASS
from plimsoll.verdict.checks import required_iops
from plimsoll.verdict.digits import rates_apart
from plimsoll.verdict.text import named

WORST_FIRST: tuple[Result, ...] = (FAIL, INCONCLUSIVE, PASS)
#: Less of the longest window than this is said; and nothing with less is a qualification of all
#: together.
TOGETHER_SHARE = 0.98
ALL = "all hosts"


def judge(hosts: Sequence[HostRun], summary: Summary, overlap: Overlap) -> Verdict:
    """The verdict, in the shape of a run's."""
    verdicts = [(host.name, host.verdict) for host in hosts]
    required = _required(hosts)
    common = (hosts[0].run.plan["judgement"].get("hosts") or {}).get("required_iops")
    margin_percent = (
        float(hosts[0].run.plan["judgement"].get("margin_percent") or 0) if required else 0.0
    )
    checks = [
        check.replace(host=name, scope=f"{name}/{check.scope}")
        for name, verdict in verdicts
        for check in verdict.checks
    ]
    if common is not None:
        checks.append(
            required_iops(common, summary, margin_percent).replace(host=None, scope=ALL, doubts=())
        )
    short = checks[-1] if common is not None and checks[-1].status == FAIL else None
    result = next(
        word for word in WORST_FIRST if word in (*(verdict.result for _, verdict in verdicts), PASS)
    )
    bursting = [f"{ALL}: {summary.plateaus.text}"] if summary.plateaus.kind != "none" else []
    hindrances = [
        *(
            f"{name}: {text}"
            for name, verdict in verdicts
            for text in verdict.not_qualifying_because
        ),
        *_apart(overlap),
        *bursting,
    ]
    result = FAIL if short else result
    achieved = summary.total.database_iops
    sustained = summary.sustained_iops or 0.0
    throughput = _throughput(sustained, achieved, required, len(hosts))
    reasons = [
        *([f"{short.title} ({ALL}): {short.reason}"] if short else []),
        *(
            f"{name}: {reason}"
            for name, verdict in verdicts
            if verdict.result != PASS
            for reason in verdict.reasons
        ),
    ]
    return Verdict(
        schema_version=SCHEMA_VERSION,
        combined=True,
        result=result,
        headline=_headline(
            result,
            [verdict.result for _, verdict in verdicts],
            margin_percent,
            rehearsal=bool(hindrances),
        ),
        limits=verdicts[0][1].limits,
        limits_meaning=verdicts[0][1].limits_meaning,
        reasons=reasons or [f"within limits on every host at {throughput}"],
        throughput=throughput,
        checks=checks,
        bottlenecks=[
            entry.replace(scope=f"{name}/{entry.scope}")
            for name, verdict in verdicts
            for entry in verdict.bottlenecks
        ],
        qualifying=not hindrances,
        not_qualifying_because=hindrances,
        warnings=[
            *(f"{name}: {text}" for name, verdict in verdicts for text in verdict.warnings),
            *bursting,
        ],
        not_tested=list(
            dict.fromkeys(text for _, verdict in verdicts for text in verdict.not_tested)
        ),
        doubts=[f"{name}: {text}" for name, verdict in verdicts for text in verdict.doubts],
        cautions=[f"{name}: {text}" for name, verdict in verdicts for text in verdict.cautions],
        generator_limited=[
            f"{name}: {text}" for name, verdict in verdicts for text in verdict.generator_limited
        ],
        required_iops=required,
        achieved_iops=achieved,
        sustained_iops=sustained,
        headroom=sustained / required if required else None,
        user_equivalents=[],
        hosts=[
            HostVerdict(
                host=name, result=verdict.result, headline=verdict.headline, reasons=verdict.reasons
            )
            for name, verdict in verdicts
        ],
    )


def _required(hosts: Sequence[HostRun]) -> float | None:
    """What is required of all: by their common plan, or the sum where every host has a rate of its
    own.
    """
    common = (hosts[0].run.plan["judgement"].get("hosts") or {}).get("required_iops")
    each = [host.run.plan["judgement"].get("required_iops") for host in hosts]
    known = [value for value in each if value is not None]
    if common is not None:
        return float(common)
    return float(sum(known)) if len(known) == len(each) else None


def _apart(overlap: Overlap) -> list[str]:
    if overlap.share >= TOGETHER_SHARE:
        return []
    return [
        f"the hosts measured together for only {overlap.share:.0%} of the longest measured time"
    ]


def _throughput(sustained: float, mean: float, required: float | None, hosts_count: int) -> str:
    how = f" sustained ({mean:.0f} on average)" if round(sustained) < round(mean) else ""
    if required:
        told, bound = rates_apart(sustained, required)
        room = rates_apart(sustained / required, 1, 2)[0]
        return (
            f"{told} database IOPS{how} of {bound} required, headroom {room}, "
            f"on {hosts_count} hosts"
        )
    return f"{sustained:.0f} database IOPS{how} on {hosts_count} hosts, no requirement stated"


def _headline(
    result: str, results: Sequence[str], margin_percent: float, *, rehearsal: bool
) -> str:
    counted = ", ".join(f"{results.count(word)} {word}" for word in WORST_FIRST if word in results)
    margin = f" with a margin of {margin_percent:g} %" if margin_percent else ""
    word = named(result, rehearsal=rehearsal)
    tail = ", a rehearsal and not a qualification" if rehearsal and result != PASS else ""
    return f"{word}{margin} on {len(results)} hosts together (by themselves {counted}{tail})"
