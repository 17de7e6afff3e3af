"""Every exception that this package raises to its users, as one tree.

Catch `PlimsollError`, or the branch you can do something about.

An error stands in the room that raises it and is exported from `plimsoll` by its name; the branches
stand here. Messages say what happened, what was given and what to do. Anything else that comes out
of a call is a fault of Plimsoll, or an `OSError` that names its file. How a program ends stands in
`exit_codes`.

    PlimsollError
      ActionError               a ready action of an event that cannot be carried out here
      InputError                an input file or a table of options, with every mistake and its line
      SeveralInputsError        several of them
      InvalidValueError         one value that was given
        AddressError            of the server of figures: HOST:PORT
        ConditionError          that stops a run
        ExpressionError         over facts
          UnknownFactError      a fact that an expression names and nobody knows
        LimitError              on a figure of the summary
        MomentError             at which several hosts start to measure
        OversizedDesignError    a sizing of more databases than anybody has
        StoreAddressError       text that names no store in a database
        UnknownNameError        of a check or a field
        UnitError               a quantity without a known unit
      RefusedError              something that cannot be done; `problems` holds every reason
        CombineError            runs of several hosts that cannot be added up
        ComparisonError         runs that cannot be compared
        PackError               a folder that cannot be packed, an archive that cannot be trusted
        PercentileError         words that name no percentiles
        PreflightError          a run that cannot start
      FolderError               a run folder, or databases on disk, that cannot be used
        DocumentError           a file that is not what it should be, with every mistake
        RunFolderLostError      it could not be written any more, and the run was stopped
        ResumeError             a run that cannot be resumed
      StorageError              a path whose storage cannot be described
      EngineError               below Python
        ConfigError             what was asked for is wrong
        CorruptionError         what is on the storage is not what was written
        DiskError               the storage reported an error
      LightError                a light load that cannot be simulated
      PowercutError             work until a power cut, and what is made of it
        AuditError              an audit that cannot be made
        PlaceError              a place that is not fit for the work
        StorageFailedError      the storage failed while the work went on
        WitnessError            a witness that does not work or cannot be reached
          WitnessLostError      it went away while the work went on
      MissingLibraryError       an extra that is not installed
      PrintError                a page that cannot be printed
      ProcessError              a process to be watched that cannot be found
      ScriptError               the script of charts, which cannot be made here
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plimsoll.errors import exit_codes as exit_codes


class PlimsollError(Exception):
    """The root: whatever this package cannot do for a reason that its user can change."""


class InvalidValueError(PlimsollError, ValueError):
    """A value that was given and cannot be used; the message says what to write."""


class RefusedError(PlimsollError):
    """Something that cannot be done.

    Attributes:
        problems: every reason, one sentence each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(problems))


class PowercutError(PlimsollError):
    """Work until a power cut, or what is made of it, that cannot go on; the message says why."""


class EngineError(PlimsollError):
    """Anything that went wrong below Python."""


class ConfigError(EngineError):
    """What was asked for is wrong."""


class DiskError(EngineError):
    """The storage reported an error."""


class CorruptionError(EngineError):
    """What is on the storage is not what was written."""


class MissingLibraryError(PlimsollError):
    """A library that this needs is not installed.

    Attributes:
        name: of the library.
    """

    def __init__(self, what: str, name: str | None) -> None:
        self.name = name
        super().__init__(
            f"{what} needs {name}, which is not installed (pip install 'plimsoll[report]')"
        )


@contextmanager
def of_the_engine() -> Iterator[None]:
    """Errors of the native part as those of this tree; it cannot derive its own from them.

    Raises:
        EngineError: or the one of it that says what was wrong.
    """
    from plimsoll import _native

    try:
        yield
    except _native.ConfigError as error:
        raise ConfigError(str(error)) from error
    except _native.DiskError as error:
        raise DiskError(str(error)) from error
    except _native.CorruptionError as error:
        raise CorruptionError(str(error)) from error
    except _native.PlimsollError as error:
        raise EngineError(str(error)) from error
