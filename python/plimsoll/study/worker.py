"""`python -m plimsoll.study.worker DIR [--create] [--allow-system-disk]`.

One variant of a study in a process of its own.

`variant.json` in the directory says what to do. Runs that are finished are not done again, so a
study that was killed goes on where it stopped. What a terminal would have shown is added to
`terminal.log` in the directory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from plimsoll.databases.deleting import delete_databases
from plimsoll.documents.document import Document
from plimsoll.documents.event import Event
from plimsoll.documents.plan import Plan
from plimsoll.errors import ConfigError, DiskError, RefusedError, exit_codes
from plimsoll.files import folder
from plimsoll.live.listener import Listener
from plimsoll.live.plain_display import event_line
from plimsoll.pipeline import forecast, qualify, repeat
from plimsoll.study.description import ANEW
from plimsoll.study.results import run_is_done

VARIANT = "variant.json"
#: What the user agreed to, as options of the process: consent is never read from a file.
CREATE, ALLOW_SYSTEM_DISK = "--create", "--allow-system-disk"


class VariantTask(Document):
    """What `variant.json` asks for."""

    schema_version: Literal[1]
    name: str
    plan: Plan
    repeat: int
    databases: str


class LogFile(Listener):
    """Adds to the log of the variant what a terminal would show; of a run only what is wrong."""

    def __init__(self, home: Path) -> None:
        self._path = home / folder.TERMINAL

    def say(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")

    def note(self, text: str) -> None:
        self.say(f"note: {text}")

    def warning(self, text: str) -> None:
        self.say(f"warning: {text}")

    def event(self, event: Event) -> None:
        if event.level != "info":
            self.say(event_line(event))


def carry_out(home: Path, log: Listener, agreed: Sequence[str] = ()) -> int:
    """Every run of the variant that is not finished.

    Answers an exit code that says whether all came to their end.
    """
    wanted = VariantTask.read(home / VARIANT)
    for number in range(1, wanted.repeat + 1):
        plan = repeat.another_run(wanted.plan, number)
        run_folder = home / f"run-{number}"
        if run_is_done(run_folder, plan):
            log.say(f"run {number} is finished")
            continue
        log.say(f"run {number} of {wanted.repeat}")
        folder.clear_unfinished(run_folder)
        found = forecast.check(
            plan,
            create=CREATE in agreed,
            allow_system_disk=ALLOW_SYSTEM_DISK in agreed,
            listener=log,
        )
        result = qualify.qualify(plan, run_folder, found=found, listener=log)
        log.say(f"run {number}: {result.headline}")
        if result.ending != "complete":
            return result.exit_code
    if wanted.databases == ANEW and not wanted.plan.run.modelled:
        for instance in wanted.plan.run.instances:
            delete_databases(Path(instance.directory))
    return exit_codes.PASS


def main() -> None:
    """Carry out the variant named on the command line."""
    home = Path(sys.argv[1])
    log = LogFile(home)
    try:
        sys.exit(carry_out(home, log, sys.argv[2:]))
    except (folder.FolderError, RefusedError, ConfigError, DiskError) as error:
        for problem in error.problems if isinstance(error, RefusedError) else [error]:
            log.say(f"error: {problem}")
        sys.exit(exit_codes.USAGE)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    main()
