"""The command line: a table of commands, each loaded only when it is asked for.

A command is one row of `COMMANDS`: its name, where its function lives and the line `plimsoll
--help` shows for it. Nothing below `plimsoll.cli` is imported to print the help, so that stays
quick however heavy a command is. To add a command, add a row; the target is a function for Typer,
or a `typer.Typer` for a command with verbs of its own.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from plimsoll import __version__, exit_codes
from plimsoll.files.sanitize import printable


class Row(NamedTuple):
    """Where a command lives and what the help says of it."""

    target: str
    help: str


COMMANDS: dict[str, Row] = {
    "demo": Row(
        "plimsoll.cli.demo:demo", "Two minutes of the main job on the storage under a directory."
    ),
    "test": Row(
        "plimsoll.cli.test:test",
        "Run a named test: performance, mailbox, throughput, stress, max, backup, recovery, "
        "checksum, io, files, mail, store.",
    ),
    "capacity": Row(
        "plimsoll.cli.capacity:capacity", "How many users the storage carries, in a few minutes."
    ),
    "run": Row(
        "plimsoll.cli.run:run", "Carry out a plan, judge what was measured and write the report."
    ),
    "prepare": Row(
        "plimsoll.cli.prepare:prepare", "Make the databases of a plan without any load on them."
    ),
    "resume": Row("plimsoll.cli.resume:resume", "Go on with a run that a crash has cut off."),
    "report": Row(
        "plimsoll.cli.report:report",
        "Judge a run again and write its report again, from its folder.",
    ),
    "compare": Row(
        "plimsoll.cli.compare:compare", "Compare runs, with the confidence of each difference."
    ),
    "combine": Row(
        "plimsoll.cli.combine:combine", "Add up the runs of several hosts against one storage."
    ),
    "runs": Row("plimsoll.cli.runs:runs", "List the runs below a directory, also broken ones."),
    "export": Row("plimsoll.cli.export:export", "Write the counters of a run as CSV."),
    "study": Row("plimsoll.cli.study:study", "Carry out variants of one base and rank them."),
    "pack": Row(
        "plimsoll.cli.pack:pack",
        "Pack a run folder into one archive with a manifest; --redact takes names out.",
    ),
    "unpack": Row(
        "plimsoll.cli.pack:unpack", "Check such an archive against its manifest and unpack it."
    ),
    "status": Row("plimsoll.cli.status:status", "Say how a run in the background does."),
    "watch": Row("plimsoll.cli.status:watch", "Follow a run in the background until it ends."),
    "verify": Row(
        "plimsoll.cli.verify:verify", "Check every page of database files. Never writes."
    ),
    "powercut": Row(
        "plimsoll.cli.powercut:powercut",
        "Commit durably and tell a witness, until the power is cut.",
    ),
    "witness": Row(
        "plimsoll.cli.powercut:witness", "Remember on this machine what another says is durable."
    ),
    "audit": Row("plimsoll.cli.audit:audit", "Say what a power cut has lost, torn or reordered."),
    "edb": Row(
        "plimsoll.cli.edb:edb",
        "List or export the tables of any ESE database; repair pages on request.",
    ),
    "probe": Row("plimsoll.cli.probe:probe", "Name what is under a path. Never writes."),
    "clean": Row(
        "plimsoll.cli.clean:clean", "Delete databases that Plimsoll made, and nothing else."
    ),
    "plan": Row("plimsoll.cli.plan:plan", "Begin a plan file, print its schema, or export it."),
    "import": Row(
        "plimsoll.cli.import_:import_files", "Bring files of Jetstress, Iometer or DVD Store along."
    ),
    "esrp": Row("plimsoll.cli.esrp:esrp", "Write the document of a tested solution from its runs."),
    "explain": Row(
        "plimsoll.cli.explain:explain", "Say what a check means and where its limit comes from."
    ),
    "size": Row(
        "plimsoll.cli.size:size", "Size storage from users or transactions, every step shown."
    ),
    "select": Row(
        "plimsoll.cli.select:select", "Choose an array for a capacity and IOPS need, in six steps."
    ),
    "cost": Row("plimsoll.cli.cost:cost", "Compare what storage options cost to buy and run."),
    "model": Row("plimsoll.cli.model:model", "What an array would carry, simulated in seconds."),
    "calibrate": Row(
        "plimsoll.cli.calibrate:calibrate",
        "Measure storage and write a preset that behaves like it.",
    ),
    "papers": Row(
        "plimsoll.cli.papers:papers", "Run the published results on the modelled arrays."
    ),
    "advise": Row(
        "plimsoll.cli.advise:advise", "Check a design, plan or run against best practice."
    ),
}


def load(name: str) -> Any:
    """Import the command called `name` and make it ready to run.

    Args:
        name: A key of `COMMANDS`.

    Returns:
        The command object that Typer runs.

    Raises:
        KeyError: There is no such row.
    """
    row = COMMANDS[name]
    module, _, attribute = row.target.partition(":")
    target = getattr(import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        function = target
        target = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        target.command(name, context_settings={"help_option_names": ["-h", "--help"]})(function)
    command = typer.main.get_command(target)
    command.name = name
    return command


class LazyGroup(TyperGroup):
    """A group whose commands come from `COMMANDS` and are imported on first use."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # the names alone, for "did you mean"

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, row.help) for name, row in COMMANDS.items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    """Print the version and stop, when `--version` was given."""
    if wanted:
        typer.echo(f"plimsoll {__version__}")
        raise typer.Exit()


@app.callback()
def plimsoll(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Qualify storage for transactional work: size it, test it, judge it, report it."""


CTRL_C = 130
#: What the system says where what is printed can go nowhere.
OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
#: The family of errors in what was typed; Typer exports only its members.
USAGE_ERROR: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def main() -> None:
    """Run the command line; the entry point of the `plimsoll` program."""
    _open_standard_streams()
    _end_as_by_ctrl_c()
    sys.exit(run_program(sys.argv[1:]))


def _open_standard_streams() -> None:
    """Gives the program standard streams where it was started without.

    The next file that is opened would be what messages are written to.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            lowest = os.open(os.devnull, os.O_RDWR)
            assert lowest == descriptor, "those before it are open"
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def _end_as_by_ctrl_c() -> None:
    """SIGTERM, SIGQUIT, and SIGHUP of a terminal that goes away, end what goes on in good order.

    `nohup` has the latter ignored, and so it stays.
    """
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def _with_default_address(arguments: Sequence[str]) -> list[str]:
    """The words of the command line, with the address that `--metrics` alone stands for."""
    if "--metrics" not in arguments:
        return list(arguments)
    from plimsoll import METRICS_ADDRESS, looks_like_address

    words = list(arguments)
    place = words.index("--metrics") + 1
    # Whoever writes something like an address that is none is told so by its reader.
    if place == len(words) or not (looks_like_address(words[place]) or ":" in words[place]):
        words.insert(place, METRICS_ADDRESS)
    return words


def run_program(arguments: Sequence[str]) -> int:
    """Run a command and answer its exit code.

    Whatever happens inside, scripts can tell how it ended.
    """
    try:
        code = app(_with_default_address(arguments), prog_name="plimsoll", standalone_mode=False)
    except typer.Exit as leave:
        code = leave.exit_code
    except USAGE_ERROR as error:
        error.show()
        return exit_codes.USAGE
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        return _nobody_reads()
    except SystemExit as leave:
        # So the library ends where nobody reads what it prints; 1 would say that storage failed.
        if not isinstance(leave.__context__, BrokenPipeError):
            raise
        return _nobody_reads()
    except Exception as error:
        return _interrupted() if _is_interrupted_query(error) else _told(error)
    # The library answers Ctrl-C with the shell's number for it.
    return _interrupted() if code == CTRL_C else code if isinstance(code, int) else 0


def _is_interrupted_query(error: Exception) -> bool:
    """Whether a signal arrived while DuckDB worked: it tells of it by an error of its own."""
    return type(error) is RuntimeError and str(error) == "Query interrupted"


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return exit_codes.INTERRUPTED


def _nobody_reads() -> int:
    """Whoever read our output has seen enough."""
    _write_no_more()
    return exit_codes.INTERRUPTED


def _write_no_more() -> None:
    """Has nothing go to the output any more, not even what the interpreter still holds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _told(error: Exception) -> int:
    """Says how a command failed that has not said so itself.

    What a user can change, and a file that the system refuses, is no fault of ours.
    """
    from plimsoll import EngineError, PlimsollError

    if isinstance(error, PlimsollError) and not isinstance(error, EngineError):
        from plimsoll.cli.terminal import problems_of, say

        for problem in problems_of(error):
            say(f"error: {problem}")
        return exit_codes.USAGE
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        name = error.filename if isinstance(error.filename, (str, bytes)) else str(error.filename)
        print(
            f"error: {printable(Path(os.fsdecode(name)))}: {error.strerror.lower()}",
            file=sys.stderr,
        )
        return exit_codes.USAGE
    if isinstance(error, OSError) and error.errno in OUTPUT_LOST:
        print(
            f"error: the output cannot be written: {str(error.strerror).lower()}", file=sys.stderr
        )
        _write_no_more()
        return exit_codes.USAGE
    traceback.print_exception(error)
    print(
        f"internal error: {type(error).__name__}: {error}\nThis is a fault of Plimsoll and says "
        f"nothing about the "
        "storage. What is above helps to repair it; databases that were open are recovered by the "
        "next run.",
        file=sys.stderr,
    )
    return exit_codes.INTERNAL
