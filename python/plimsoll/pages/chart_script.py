"""The libraries that draw the charts, as one script that needs no network.

They come out of the installed `vl-convert` package. Joining them takes seconds, so the result is
kept in the user's cache folder under the package's version; where that folder cannot be used, they
are joined again each time. It is done in a process of its own: the package reserves more address
space than there is memory, and where that is limited it ends its process.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.files import folder

JOINING = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


class ScriptError(PlimsollError, OSError):
    """The libraries cannot be joined here."""


@cache
def script_bundle() -> str:
    """The script, fit to stand in a page.

    Raises:
        ScriptError: they cannot be joined here, and were not before.
    """
    kept = _cache_folder() / f"charts-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        pass
    script = _joined()
    try:
        _keep(script, kept)
    except OSError:
        return script
    return script


def _joined() -> str:
    ended = subprocess.run([sys.executable, "-c", JOINING], capture_output=True, check=False)
    if ended.returncode != 0:
        reason = (
            "the libraries that draw charts could not be joined; they want address space without a "
            "limit (ulimit -v)"
        )
        raise ScriptError(errno.ENOMEM, reason, "vl-convert")
    return ended.stdout.decode().replace("</script", "<\\/script")


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "plimsoll"


def _keep(script: str, path: Path) -> None:
    """Write it whole or not at all: two reports may be written at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.write_text(path, script)
