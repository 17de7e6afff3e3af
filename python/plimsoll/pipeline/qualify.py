"""From a completed plan to a printed result: what `test`, `run` and `demo` have in common.

Progress goes to the error stream, the result to the output. The exit code says how it ended.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

import typer

from plimsoll import __version__, verdict
from plimsoll.arrays import text as words
from plimsoll.databases import preflight
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import read_summary
from plimsoll.documents.verdict import verdict_of
from plimsoll.files import folder
from plimsoll.files.sanitize import plain
from plimsoll.host.probe import describe
from plimsoll.imports.to_run_folder import is_imported, rebuild
from plimsoll.inputs.mistakes import InputError
from plimsoll.live.metrics_server import AddressError, MetricsServer
from plimsoll.live.openmetrics import Exposition
from plimsoll.live.progress import Figures, in_words
from plimsoll.pipeline import forecast as outlook
from plimsoll.plan import stop_conditions
from plimsoll.plan.fill_level import far_below_design
from plimsoll.results import backup_recovery, counters, load
from plimsoll.results import summary as measurements
from plimsoll.verdict.text import lines_of

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_INTERNAL = range(6)
EXIT_BY_RESULT = {verdict.PASS: EXIT_PASS, verdict.FAIL: EXIT_FAIL, verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE}

#: Consent to overwrite a whole block device; an option of every command that writes.
Destroy = Annotated[
    list[str] | None,
    typer.Option(
        "--destroy",
        metavar="SERIAL",
        help="Agree that everything on the block device with this serial is lost. Once for each device.",
    ),
]


class Display(Protocol):
    """Takes what a run tells while it goes on."""

    def event(self, event: dict[str, Any]) -> None:
        """Take an event."""

    def sample(self, table: dict[str, Any]) -> None:
        """Take a batch of samples."""


class Showing(Protocol):
    """Makes the display of one run; the figures, the run folder and whether to be quiet in, the display out."""

    def __call__(self, figures: Figures, run_folder: Path | None, *, quiet: bool) -> AbstractContextManager[Display]:
        """The display, for as long as the run lasts."""


def say(text: str) -> None:
    """A line of progress."""
    print(plain(text), file=sys.stderr, flush=True)


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


def forecast(
    plan: dict[str, Any], destroy_serials: list[str] | None = None, *, dry_run: bool = False
) -> preflight.Forecast:
    """Look at the premises, say what will be written, and leave when the run cannot be; a dry run tells first what it would take."""
    plan["run"]["destroy_serials"] = destroy_serials or []
    try:
        expected = preflight.inspect(plan["run"], plan.get("source"))
    except preflight.PreflightError as error:
        if dry_run and error.forecast is not None:
            print("\n".join(outlook.as_lines(plan, error.forecast)), flush=True)
        stop_with(EXIT_USAGE, *error.problems)
    if plan["run"].get("modelled"):
        say(f"plan {plan['name']}: {words.WARNING}: {words.array_title(plan['judgement']['modelled'])}")
        return expected
    reused = f", {', '.join(expected.reused)} reused" if expected.reused else ""
    say(
        f"plan {plan['name']}: {expected.bytes_to_prepare >> 20} MiB of databases to prepare{reused}; "
        f"about {in_words(outlook.total_s(plan, expected))} in all"
    )
    for name in expected.recovered:
        say(f"note: instance {name} was not closed by its last run; it will be recovered from its log")
    for directory in expected.deleted:
        say(
            f"note: the databases in {directory} will be deleted first, because the source of databases is {plan['source']['kind']}"
        )
    for name in expected.restored:
        say(f"note: {name} will be restored from {plan['source']['from']}")
    for path in expected.prepared_anew:
        say(f"note: {path} was begun by an earlier run and not finished; it will be prepared anew")
    for warning in [*expected.warnings, *_far_below_design(plan)]:
        say(f"warning: {warning}")
    return expected


def _far_below_design(plan: dict[str, Any]) -> list[str]:
    """What would make the storage look better than in use, said while the plan can still be changed."""
    if plan["run"].get("modelled"):
        return []
    return far_below_design(
        Plan.from_plain(plan), [describe(Path(target["path"])).facts for target in plan["run"]["targets"]]
    )


def ask_before_much(
    plan: dict[str, Any], expected: preflight.Forecast, *, agreed: bool, times: int = 1, time_agreed: bool = False
) -> None:
    """A run that takes long or much space needs a yes, and so does one that is repeated until it takes long."""
    refusal = outlook.ask(plan, expected, agreed=agreed, times=times, time_agreed=time_agreed)
    if refusal:
        stop_with(EXIT_USAGE, refusal)
    if refusal is not None:
        raise typer.Exit(EXIT_INTERRUPTED)


def read_conditions(plan: dict[str, Any]) -> list[stop_conditions.Condition]:
    """The conditions that stop the run; leaves when one says nothing."""
    found, problems = [], []
    for text in plan["stop_if"]:
        try:
            found.append(stop_conditions.parse(text))
        except stop_conditions.ConditionError as error:
            problems.append(f"--stop-if: {error}\n    hint: {error.hint}")
    if problems:
        stop_with(EXIT_USAGE, *problems)
    return found


def make_folder(plan: dict[str, Any], wanted: Path | None) -> Path:
    """The folder for a run, or leave."""
    try:
        return folder.new_folder(plan["name"], wanted)
    except folder.FolderError as error:
        stop_with(EXIT_USAGE, str(error))
    except OSError as error:
        stop_with(
            EXIT_USAGE, f"{error.filename}: {(error.strerror or str(error)).lower()}; name another folder with --out"
        )


def carry_out(
    plan: dict[str, Any],
    wanted_folder: Path | None,
    showing: Showing,
    *,
    quiet: bool,
    expected: preflight.Forecast | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Run a plan whose premises were inspected, then judge and report; returns the run folder and the verdict."""
    run_folder = make_folder(plan, wanted_folder)
    measure(plan, run_folder, showing, quiet=quiet, expected=expected)
    return run_folder, judge_and_report(run_folder)


def listen(address: str | None) -> MetricsServer | None:
    """Take the address that `--metrics` names, before anything is written; leave when it cannot be had."""
    if address is None:
        return None
    try:
        server = MetricsServer(address)
    except AddressError as error:
        stop_with(EXIT_USAGE, str(error))
    open_to = "" if server.is_private else ", open to everybody who reaches this address"
    say(f"metrics: http://{server.place}/metrics while the run goes on{open_to}")
    return server


def measure(
    plan: dict[str, Any],
    run_folder: Path,
    showing: Showing,
    *,
    quiet: bool,
    expected: preflight.Forecast | None = None,
    first_events: list[dict[str, Any]] | None = None,
    metrics: MetricsServer | None = None,
) -> dict[str, Any]:
    """Run a plan into its folder, showing how it goes; returns the outcome."""
    from plimsoll import _native
    from plimsoll.run.execute import RunFolderLostError, run_plan

    names = [name for name, _, _, _ in _native.metrics()]
    conditions = [(condition, names.index(condition.metric)) for condition in read_conditions(plan)]
    later_s = outlook.later_s(plan, expected) if expected else None
    figures = Figures(plan, names, expected.bytes_to_prepare if expected else 0, later_s)
    exposition = Exposition(plan, _native.metrics(), __version__)
    serving = metrics.serving(exposition.text) if metrics else nullcontext()
    with serving, showing(figures, run_folder, quiet=quiet) as progress:

        def tell(event: dict[str, Any]) -> None:
            progress.event(event)
            exposition.event(event)

        def sample(table: dict[str, Any]) -> str | None:
            progress.sample(table)
            if metrics:
                exposition.sample(table)
            reasons = [condition.look(table, code) for condition, code in conditions]
            return next((reason for reason in reasons if reason is not None), None)

        try:
            if expected is not None:
                preflight.begin_with(plan["run"], plan.get("source"), expected, say)
            preflight.take(plan["run"])
            outcome = run_plan(plan, run_folder, tell, sample, first_events or [])
        except (_native.ConfigError, _native.DiskError) as error:
            stop_with(EXIT_USAGE, str(error))
        except RunFolderLostError as error:
            preflight.give_back(plan["run"], error.outcome)
            stop_with(EXIT_USAGE, str(error))
        except folder.FolderError as error:
            stop_with(EXIT_USAGE, str(error))
        except OSError as error:
            place = error.filename or run_folder
            stop_with(EXIT_USAGE, f"{place}: {(error.strerror or str(error)).lower()}; check space and permissions")
    preflight.give_back(plan["run"], outcome)
    return outcome


def judge_and_report(run_folder: Path) -> dict[str, Any]:
    """Compute summary, verdict and report from the files of a run folder, or leave; an imported run keeps its own verdict."""
    import duckdb

    try:
        return _judge_and_report(run_folder)
    except (OSError, duckdb.IOException) as error:
        why = getattr(error, "strerror", None) or str(error)
        stop_with(
            EXIT_USAGE,
            f"{run_folder} cannot be written: {why.lower()}; free space, then `plimsoll report {run_folder}` judges what was measured",
        )


def _judge_and_report(run_folder: Path) -> dict[str, Any]:
    if is_imported(run_folder):
        said = rebuild(run_folder)
        write_report(run_folder)
        return said
    plan = Plan.read(run_folder / folder.PLAN)
    environment = folder.read_json(run_folder / folder.ENVIRONMENT)
    counters.write_counters(run_folder)
    summary = measurements.summarize(run_folder)
    folder.write_json(run_folder / folder.SUMMARY, summary.plain())
    found = verdict.judge(plan, summary, environment).plain()
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
    from plimsoll.pages.chart_script import ScriptError

    try:
        write(run_folder)
    except ScriptError as error:
        say(
            f"warning: no report.html was written: {error.strerror}. `plimsoll report {run_folder}` writes it without that"
        )


def print_result(run_folder: Path, found: dict[str, Any]) -> None:
    """The verdict with one reason for every check, and where the rest is."""
    print("\n" + "\n".join(lines_of(verdict_of(found))))
    summary = read_summary(run_folder / folder.SUMMARY)
    if found.get("prediction"):
        judgement = folder.read_json(run_folder / folder.PLAN)["judgement"]
        print("\n" + "\n".join(words.lines_of(judgement, summary.plain(), found["prediction"])))
    said = " ".join(found["reasons"])
    others = [line for line in backup_recovery.in_words(summary) if line not in said]
    lines = [*load.in_words(summary.load), *others]
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
