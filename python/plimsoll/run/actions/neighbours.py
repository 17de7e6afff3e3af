"""`neighbour`: a second run of Plimsoll with a plan of its own, as a load of others.

It is a process of its own with a run folder below that of this run, and is told to stop when the
event is undone: then it closes its databases. Prepare its databases before (`plimsoll prepare`), or
its preparation is a part of the event.
"""

from __future__ import annotations

import sys
from pathlib import Path

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.errors import PlimsollError
from plimsoll.files import folder
from plimsoll.plan.complete import read_plan
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings
from plimsoll.settings import MEASURED_KINDS


def neighbour(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that start another run and stop it.

    Raises:
        ActionError: its plan cannot be read, measures nothing, stages events itself, or is
        modelled.
    """
    path = Path(action.plan or "").absolute()
    try:
        plan = read_plan(path)
    except PlimsollError as error:
        raise ActionError(f"the plan of the neighbour cannot be read: {error}") from error
    measured = [phase.name for phase in plan.run.phases if phase.action.kind in MEASURED_KINDS]
    if not measured or plan.run.modelled or plan.events:
        raise ActionError(f"{path} measures nothing, is modelled, or has events of its own")
    place = str(here.run_folder / f"neighbour-{here.slug}")
    argv = [sys.executable, "-m", "plimsoll.cli", "run", str(path), "--out", place, "--yes"]
    return Prepared(
        apply=[
            Step(
                kind="start",
                argv=[*argv, "--quiet", *(action.options or ())],
                path=f"{place}.log",
                inherits=True,
            ),
            # Its first measured phase has begun.
            Step(
                kind="contains", path=f"{place}/{folder.EVENTS}", text=f'"phase": "{measured[0]}"'
            ),
        ],
        prove=[Step(kind="contains", path=f"{place}/{folder.EVENTS}", text="phase_started")],
        undo=[Step(kind="stop", text=place)],
        remark=f"its run folder is {place}",
    )
