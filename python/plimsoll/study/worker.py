"""`python -m plimsoll.study.worker DIR`: one variant of a study in a process of its own.

`variant.json` in the directory says what to do. Runs that are finished are not done again, so a study that was killed goes on
where it stopped. What a terminal would have shown is left to whoever started the process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer

from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.live.plain_display import plainly
from plimsoll.pipeline import qualify
from plimsoll.study.description import ANEW
from plimsoll.study.results import run_is_done

VARIANT = "variant.json"


def plan_of_run(plan: dict[str, Any], number: int) -> dict[str, Any]:
    """The plan of a variant's run: simulated ones differ in their seed, real ones in nothing."""
    each: dict[str, Any] = json.loads(json.dumps(plan))
    if plan["run"].get("modelled"):
        each["run"]["seed"] += number - 1
    return each


def carry_out(home: Path) -> int:
    """Every run of the variant that is not finished; answers an exit code that says whether all came to their end."""
    wanted = folder.read_json(home / VARIANT)
    for number in range(1, wanted["repeat"] + 1):
        plan = plan_of_run(wanted["plan"], number)
        run_folder = home / f"run-{number}"
        if run_is_done(run_folder, plan):
            qualify.say(f"run {number} is finished")
            continue
        qualify.say(f"run {number} of {wanted['repeat']}")
        expected = qualify.forecast(plan)
        outcome = qualify.measure(plan, qualify.make_folder(plan, run_folder), plainly, quiet=True, expected=expected)
        found = qualify.judge_and_report(run_folder)
        qualify.say(f"run {number}: {found['headline']}")
        if outcome["ending"] != "complete":
            return qualify.exit_code(run_folder, found)
    if wanted["databases"] == ANEW and not wanted["plan"]["run"].get("modelled"):
        for instance in wanted["plan"]["run"]["instances"]:
            preflight.remove(Path(instance["directory"]))
    return qualify.EXIT_PASS


def main() -> None:
    """Carry out the variant named on the command line."""
    try:
        sys.exit(carry_out(Path(sys.argv[1])))
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except folder.FolderError as error:
        qualify.say(f"error: {error}")
        sys.exit(qualify.EXIT_USAGE)
    except KeyboardInterrupt:
        sys.exit(qualify.EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
