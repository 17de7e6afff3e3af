"""`python -m plimsoll.study.worker DIR`: one variant of a study in a process of its own.

`variant.json` in the directory says what to do. Runs that are finished are not done again, so a study that was killed goes on
where it stopped. What a terminal would have shown is added to `terminal.log` in the directory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from plimsoll import exit_codes
from plimsoll.databases import preflight
from plimsoll.errors import ConfigError, DiskError, RefusedError
from plimsoll.files import folder
from plimsoll.live.listener import Listener
from plimsoll.live.plain_display import event_line
from plimsoll.pipeline import qualify, repeat
from plimsoll.study.description import ANEW
from plimsoll.study.results import run_is_done

VARIANT = "variant.json"


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

    def event(self, event: dict[str, Any]) -> None:
        if event["level"] != "info":
            self.say(event_line(event))


def carry_out(home: Path, log: Listener) -> int:
    """Every run of the variant that is not finished; answers an exit code that says whether all came to their end."""
    wanted = folder.read_json(home / VARIANT)
    for number in range(1, wanted["repeat"] + 1):
        plan = repeat.another_run(wanted["plan"], number)
        run_folder = home / f"run-{number}"
        if run_is_done(run_folder, plan):
            log.say(f"run {number} is finished")
            continue
        log.say(f"run {number} of {wanted['repeat']}")
        folder.clear_unfinished(run_folder)
        result = qualify.qualify(plan, run_folder, listener=log)
        log.say(f"run {number}: {result.headline}")
        if result.ending != "complete":
            return result.exit_code
    if wanted["databases"] == ANEW and not wanted["plan"]["run"].get("modelled"):
        for instance in wanted["plan"]["run"]["instances"]:
            preflight.delete_databases(Path(instance["directory"]))
    return exit_codes.PASS


def main() -> None:
    """Carry out the variant named on the command line."""
    home = Path(sys.argv[1])
    log = LogFile(home)
    try:
        sys.exit(carry_out(home, log))
    except (folder.FolderError, RefusedError, ConfigError, DiskError) as error:
        for problem in error.problems if isinstance(error, RefusedError) else [error]:
            log.say(f"error: {problem}")
        sys.exit(exit_codes.USAGE)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    main()
