"""What the operating system says of an error, as it stands in the messages of this package."""

from __future__ import annotations


def system_reason(error: Exception) -> str:
    """The reason, to stand behind a path and a colon.

    >>> system_reason(FileNotFoundError(2, "No such file or directory", "/nowhere"))
    'no such file or directory'
    >>> system_reason(OSError("unsupported archive"))
    'unsupported archive'
    """
    # Words of a library may hold a path, which is as it is.
    told = getattr(error, "strerror", None)
    return told.lower() if told else str(error)
