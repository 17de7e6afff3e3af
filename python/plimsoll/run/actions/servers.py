"""`server killed`: a server and all its processes are killed, and started again later.

What it had not made durable is lost, which is the point; its own recovery is a part of the event.
The command that starts it is the user's: it may start another copy on another machine, behind the
same port of this one. The event is undone only when somebody answers on its port, or its pid file
names a process that lives; a server that is up is not started again.
"""

from __future__ import annotations

import os

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.host import processes
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings


def server_killed(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that kill a server and start it again.

    Raises:
        ActionError: there is no such server, or it is ours or an ancestor of ours.
    """
    leader = here.server(action.port, action.pid_file)
    members = processes.family(leader, here.proc)
    if any(process.number in (os.getpid(), 1) for process in members):
        raise ActionError(
            f"process {leader} is this run, or what started it; it will not be killed"
        )
    began_ticks = members[0].began_ticks
    port = [] if action.port is None else [Step(kind="silent", port=action.port)]
    output = str(here.run_folder / f"event-{here.slug}.log")
    start = Step(
        kind="start",
        argv=action.start or (),
        path=output,
        port=action.port,
        pid_file=action.pid_file,
        process=leader,
        began_ticks=began_ticks,
    )
    back = start.replace(kind="runs" if action.port is None else "answers", argv=())
    return Prepared(
        apply=[Step(kind="kill", process=leader, began_ticks=began_ticks)],
        prove=[Step(kind="gone", process=leader, began_ticks=began_ticks), *port],
        undo=[start, back],
        ends_with_boot=False,
        remark=f"what the server writes once it is started again lies in {output}",
    )
