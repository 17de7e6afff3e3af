"""The verdict of several hosts: the worst of theirs, with every check under the name of its host.

Each host was judged by itself, over all that it measured. What is judged here is what no host can
know: whether all of them together made what their common plan requires, and whether they measured
at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import SCHEMA_VERSION, Check, HostVerdict, Result, Verdict
from plimsoll.multihost.overlap import Overlap
from plimsoll.multihost.reading import HostRun
from plimsoll.results.digits import rates_apart
from plimsoll.verdict import FAIL, INCONCLUSIVE, PASS, hung_ending
from plimsoll.verdict.checks import faults_of, least_iops, required_iops
from plimsoll.verdict.confounders import withheld
from plimsoll.verdict.qualification import through_page_cache
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
            _of_all(required_iops(common, summary, margin_percent), hosts, summary, margin_percent)
        )
    short = checks[-1] if common is not None and checks[-1].status == FAIL else None
    of_all: Result = PASS if short is None else INCONCLUSIVE if short.doubts else FAIL
    results = (*(verdict.result for _, verdict in verdicts), of_all)
    result = next(word for word in WORST_FIRST if word in results)
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
    achieved = summary.total.database_iops
    sustained = summary.sustained_iops or 0.0
    throughput = _throughput(sustained, achieved, required, len(hosts))
    reasons = [
        *([doubt.text for doubt in short.doubts] if short else []),
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
            _faults(hosts, checks),
            margin_percent,
            rehearsal=bool(hindrances),
            cached=any(through_page_cache(host.summary) for host in hosts),
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
        doubts=[
            *(doubt.text for doubt in (short.doubts if short else ())),
            *(f"{name}: {text}" for name, verdict in verdicts for text in verdict.doubts),
        ],
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


def _of_all(
    check: Check, hosts: Sequence[HostRun], summary: Summary, margin_percent: float
) -> Check:
    """The check of the rate of all hosts, with what kept their load generators from making it.

    A host that was kept from its work for a share of the time may have made so much more of its
    part in the rest. Only where all of these parts together reach the rate is it in doubt.
    """
    check = check.replace(host=None, scope=ALL, doubts=())
    if check.status != FAIL or not check.measured:
        return check
    found = [withheld(host.summary) for host in hosts]
    rates = [total.database_iops for total in summary.hosts or ()]
    shares = [max((share for _, share in item), default=0.0) for item in found]
    least = least_iops(check.limit, margin_percent)
    if not sum(rates) or max(shares) <= 0:
        return check
    best = sum(
        rate / max(1 - share, 1e-9) for rate, share in zip(rates, shares, strict=True)
    ) / sum(rates)
    if check.measured * best < least:
        return check
    return check.replace(
        doubts=[
            doubt.replace(text=f"{host.name}: {doubt.text}")
            for host, item in zip(hosts, found, strict=True)
            for doubt, _ in item
        ]
    )


def _faults(hosts: Sequence[HostRun], checks: Sequence[Check]) -> list[str]:
    """What is wrong with the storage of any host besides being slow."""
    hung = [word for host in hosts for word in hung_ending(host.summary)]
    return [*hung[:1], *faults_of(checks)]


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
    result: str,
    results: Sequence[str],
    faults: Sequence[str],
    margin_percent: float,
    *,
    rehearsal: bool,
    cached: bool,
) -> str:
    counted = ", ".join(f"{results.count(word)} {word}" for word in WORST_FIRST if word in results)
    margin = f" with a margin of {margin_percent:g} %" if margin_percent else ""
    word = named(result, rehearsal=rehearsal)
    tail = ", a rehearsal and not a qualification" if rehearsal and result != PASS else ""
    by = f" by {faults[0]}" if result == FAIL and faults else ""
    through = " through the page cache" if cached else ""
    where = f"on {len(results)} hosts together"
    return f"{word}{by}{margin}{through} {where} (by themselves {counted}{tail})"
