"""`--start-at`: several hosts begin to measure at one moment, whatever each of them takes to
prepare and to warm up.

Before the first phase that is measured under load, a phase is put that lets the same workloads run
until the moment. The databases are prepared and warmed up as soon as the command is given; give it
early enough. A host that is late measures at once and says so.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from plimsoll.documents.phase_actions import PhaseSpec, Soak
from plimsoll.documents.plan import Plan
from plimsoll.errors import InvalidValueError

PHASE_NAME = "start together"
MEASURED_UNDER_LOAD = ("search", "measure", "generate_logs")
#: Further ahead than this is a slip of the pen.
AHEAD_MAX = timedelta(days=7)
EXAMPLE = (
    "write a moment in UTC like 2026-01-31T18:30:00Z, or 18:30 for the next time it is half past "
    "six"
)


class MomentError(InvalidValueError):
    """A moment that nobody can wait for; the message says why and what to write."""


def parse_moment(text: str, now: datetime) -> datetime:
    """A moment in UTC.

    >>> now = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)
    >>> parse_moment("18:30", now).isoformat(), parse_moment("17:30:15", now).isoformat()
    ('2026-01-31T18:30:00+00:00', '2026-02-01T17:30:15+00:00')
    >>> parse_moment("2026-01-31 20:00+01:00", now).isoformat()
    '2026-01-31T19:00:00+00:00'

    Raises:
        MomentError: it is none, it has passed, or it is days away.
    """
    if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text.strip()):
        try:
            clock = datetime.strptime(
                text.strip(), "%H:%M:%S" if text.count(":") == 2 else "%H:%M"
            ).time()
        except ValueError as error:
            raise MomentError(f"{text} is no time of day; {EXAMPLE}") from error
        moment = datetime.combine(now.date(), clock, UTC)
        return moment if moment > now else moment + timedelta(days=1)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise MomentError(f"{text} is no moment; {EXAMPLE}") from error
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if moment <= now:
        raise MomentError(
            f"{text} has passed: it is {now:%Y-%m-%d %H:%M:%S} UTC; name a moment that is to come"
        )
    if moment - now > AHEAD_MAX:
        raise MomentError(f"{text} is more than {AHEAD_MAX.days} days away; name a nearer one")
    return moment


def wait_until(plan: Plan, moment: datetime) -> Plan:
    """A completed plan whose first measured phase begins at a moment.

    Raises:
        MomentError: the plan measures nothing under load, or not in real time.
    """
    if plan.run.modelled:
        raise MomentError(
            "time is simulated on modelled storage, so nothing there starts at a moment"
        )
    phases = plan.run.phases
    first = next(
        (index for index, phase in enumerate(phases) if phase.action.kind in MEASURED_UNDER_LOAD),
        None,
    )
    if first is None:
        raise MomentError(
            "this plan measures nothing under load, so there is nothing to start together"
        )
    action = Soak(kind="soak", duration_s=0.0, until_utc_s=moment.timestamp())
    waiting = PhaseSpec(name=PHASE_NAME, action=action, workloads=phases[first].workloads)
    return plan.replace(run=plan.run.replace(phases=[*phases[:first], waiting, *phases[first:]]))
