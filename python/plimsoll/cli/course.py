"""From a completed plan to a printed result: what `test`, `run` and `demo` have in common.

Progress goes to the error stream, the result to the output. The exit code says how it ended.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from plimsoll import folder, load_figures, measurements, premises, verdict
from plimsoll.sizing.mistakes import InputError
from plimsoll.verdict.text import lines_of

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_INTERNAL = range(6)
EXIT_BY_RESULT = {verdict.PASS: EXIT_PASS, verdict.FAIL: EXIT_FAIL, verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE}
PROGRESS_EVERY_S = 5.0

#: Consent to overwrite a whole block device; an option of every command that writes.
Destroy = Annotated[
    list[str] | None,
    typer.Option(
        "--destroy",
        metavar="SERIAL",
        help="Agree that everything on the block device with this serial is lost. Once for each device.",
    ),
]
LARGE_WRITE_S = 600
#: Only for the forecast of how long preparing takes; a measured rate replaces it as soon as there is one.
ASSUMED_PREPARE_MIB_PER_S = 150
LARGE_WRITE_SHARE = 0.1


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def stop_with(code: int, *lines: str) -> NoReturn:
    """Print why on the error stream and leave."""
    for line in lines:
        say(f"error: {line}")
    raise typer.Exit(code)


def read_or_refuse(read: Any, *arguments: Any) -> dict[str, Any]:
    """Call a plan reader; print its mistakes and leave when there are any."""
    try:
        plan: dict[str, Any] = read(*arguments)
    except InputError as error:
        count = len(error.mistakes)
        stop_with(EXIT_USAGE, f"{count} mistake{'s' if count > 1 else ''} in the plan\n{error}")
    return plan


def forecast(plan: dict[str, Any], destroy_serials: list[str] | None = None) -> premises.Forecast:
    """Look at the premises, say what will be written, and leave when the run cannot be."""
    plan["run"]["destroy_serials"] = destroy_serials or []
    try:
        expected = premises.inspect(plan["run"])
    except premises.PremisesError as error:
        stop_with(EXIT_USAGE, *error.problems)
    seconds = sum(phase["action"].get("duration_s", 0.0) for phase in plan["run"]["phases"])
    say(
        f"plan {plan['name']}: {expected.bytes_to_prepare >> 20} MiB of databases to prepare"
        + (f", {', '.join(expected.reused)} reused" if expected.reused else "")
        + f"; {seconds:.0f} s to measure"
    )
    for name in expected.recovered:
        say(f"note: instance {name} was not closed by its last run; it will be recovered from its log")
    for path in expected.prepared_anew:
        say(f"note: {path} was begun by an earlier run and not finished; it will be prepared anew")
    for warning in expected.warnings:
        say(f"warning: {warning}")
    return expected


def ask_before_much(plan: dict[str, Any], expected: premises.Forecast, *, agreed: bool) -> None:
    """A run that writes a lot or takes long needs a yes."""
    seconds = sum(phase["action"].get("duration_s", 0.0) for phase in plan["run"]["phases"])
    seconds += expected.bytes_to_prepare / (ASSUMED_PREPARE_MIB_PER_S << 20)
    if agreed or seconds <= LARGE_WRITE_S:
        return
    question = f"this takes about {seconds / 60:.0f} minutes and writes to {plan['run']['targets'][0]['path']}; go on?"
    if not sys.stdin.isatty():
        stop_with(EXIT_USAGE, question.replace("; go on?", "; give --yes to agree"))
    if not typer.confirm(question, err=True):
        raise typer.Exit(EXIT_INTERRUPTED)


class Progress:
    """Plain lines about what goes on, at most one every few seconds besides the events."""

    def __init__(self, metrics: list[str], *, quiet: bool) -> None:
        self._code = {name: code for code, name in enumerate(metrics)}
        self._quiet = quiet
        self._said = time.monotonic()
        self._counts = dict.fromkeys(("database_read", "database_write", "log_write"), (0, 0))
        self._since_ns = 0

    def event(self, event: dict[str, Any]) -> None:
        """Print an event."""
        if self._quiet and event["level"] == "info":
            return
        mark = "" if event["level"] == "info" else f"{event['level']}: "
        say(f"  {event['time_ns'] / 1e9:8.1f} s  {mark}{event['text']}")

    def sample(self, table: dict[str, Any]) -> None:
        """Add a batch of samples, and print the rates when it is time."""
        for name, (count, total) in self._counts.items():
            chosen = table["metric"] == self._code[name]
            added = int(table["count"][chosen].sum()), int(table["latency_ns_sum"][chosen].sum())
            self._counts[name] = count + added[0], total + added[1]
        now_ns = int(table["end_ns"][-1])
        if self._quiet or time.monotonic() - self._said < PROGRESS_EVERY_S or now_ns == self._since_ns:
            return
        seconds = (now_ns - self._since_ns) / 1e9
        shown = [
            f"{name.replace('_', ' ')} {count / seconds:.0f}/s {total / count / 1e6:.2f} ms"
            for name, (count, total) in self._counts.items()
            if count
        ]
        if shown:
            say(f"  {now_ns / 1e9:8.1f} s  " + ", ".join(shown))
        self._said, self._since_ns = time.monotonic(), now_ns
        self._counts = dict.fromkeys(self._counts, (0, 0))


def carry_out(plan: dict[str, Any], wanted_folder: Path | None, *, quiet: bool) -> tuple[Path, dict[str, Any]]:
    """Run a plan whose premises were inspected, then judge and report; returns the run folder and the verdict."""
    from plimsoll import _native
    from plimsoll.run import run_plan

    try:
        run_folder = folder.new_folder(plan["name"], wanted_folder)
    except (folder.FolderError, OSError) as error:
        stop_with(EXIT_USAGE, str(error))
    progress = Progress([name for name, _, _, _ in _native.metrics()], quiet=quiet)
    try:
        premises.take(plan["run"])
        outcome = run_plan(plan, run_folder, progress.event, progress.sample)
    except (_native.ConfigError, _native.DiskError) as error:
        stop_with(EXIT_USAGE, str(error))
    except OSError as error:
        stop_with(EXIT_USAGE, f"{error.filename or run_folder}: {error.strerror}; check space and permissions")
    premises.give_back(plan["run"], outcome)
    return run_folder, judge_and_report(run_folder)


def judge_and_report(run_folder: Path) -> dict[str, Any]:
    """Compute summary, verdict and report from the files of a run folder."""
    plan = folder.read_json(run_folder / folder.PLAN)
    environment = folder.read_json(run_folder / folder.ENVIRONMENT)
    summary = measurements.summarize(run_folder)
    folder.write_json(run_folder / folder.SUMMARY, summary)
    found = verdict.judge(plan, summary, environment)
    folder.write_json(run_folder / folder.VERDICT, found)
    write_report(run_folder)
    return found


def write_report(run_folder: Path) -> None:
    """Write the report, or say what is missing to write it."""
    try:
        from plimsoll.report import write_report as write
    except ModuleNotFoundError as error:
        say(
            f"warning: no report.html was written, because {error.name} is not installed (pip install 'plimsoll[report]')"
        )
        return
    write(run_folder)


def print_result(run_folder: Path, found: dict[str, Any]) -> None:
    """The verdict with one reason for every check, and where the rest is."""
    print("\n" + "\n".join(lines_of(found)))
    lines = load_figures.in_words(folder.read_json(run_folder / folder.SUMMARY)["load"])
    if lines:
        print("\n" + "\n".join(lines))
    print(f"\nrun folder: {run_folder}")
    report = run_folder / folder.REPORT
    if report.exists():
        print(f"report:     {report}")


def exit_code(run_folder: Path, found: dict[str, Any]) -> int:
    """How a run ended, for scripts."""
    outcome = folder.read_json(run_folder / folder.OUTCOME)
    if outcome["ending"] == "interrupted":
        return EXIT_INTERRUPTED
    if outcome["error"] and outcome["error"]["family"] == "config":
        return EXIT_USAGE
    return EXIT_BY_RESULT[found["result"]]
