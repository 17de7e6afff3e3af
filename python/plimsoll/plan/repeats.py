"""How a plan is repeated: how often, and what is done before each run.

    [repeat]
    runs = 3
    before = [["ssh", "-oBatchMode=yes", "mail1", "restore-mail"], ["ssh", "mail1", "reboot"]]
    ready = ["ssh", "-oBatchMode=yes", "mail1", "systemctl is-active dovecot"]
    settle_s = 600

The MD3000i paper restores, reboots and waits before each of its runs, and takes the median. On a
modelled array nothing is restored, rebooted or waited for: only `runs` is heeded.
"""

from __future__ import annotations

from plimsoll.documents.plan import RepeatPlan
from plimsoll.inputs.schema import Field, Given, ListOf, Number, Text

TIMEOUT_S = 3600.0
READY_TIMEOUT_S = 600.0
RUNS_MAX = 1000

REPEAT_FIELDS = {
    "runs": Field(
        Number(1, RUNS_MAX, whole=True),
        required=True,
        meaning="how often it is carried out; `--repeat` says otherwise",
    ),
    "before": Field(
        ListOf(ListOf(Text(), 1)),
        default=[],
        meaning="commands before each run, each a program and its arguments; no shell reads them",
    ),
    "timeout_s": Field(
        Number(0.1, 86400),
        default=TIMEOUT_S,
        meaning="how long each of them may take",
    ),
    "ready": Field(
        ListOf(Text(), 1),
        meaning="program and arguments, asked again and again until it ends with 0, as a server "
        "does that boots",
    ),
    "ready_timeout_s": Field(
        Number(0.1, 86400), default=READY_TIMEOUT_S, meaning="for how long it is asked"
    ),
    "settle_s": Field(
        Number(0, 86400), default=0, meaning="how long nothing is done then, before each run"
    ),
}


def completed(given: Given | None, *, modelled: bool) -> RepeatPlan | None:
    """What a checked plan says of its repetition; None where it says nothing."""
    if given is None or given["runs"] is None:
        return None
    return RepeatPlan(
        runs=given["runs"],
        before=() if modelled else given["before"] or (),
        timeout_s=float(given["timeout_s"]),
        ready=() if modelled else given["ready"] or (),
        ready_timeout_s=float(given["ready_timeout_s"]),
        settle_s=0.0 if modelled else float(given["settle_s"]),
    )
