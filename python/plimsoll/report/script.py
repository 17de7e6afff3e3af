"""The libraries that draw the charts, as one script that needs no network.

They come out of the installed `vl-convert` package. Joining them takes seconds, so the result is kept in the user's cache
folder under the package's version; where that folder cannot be used, they are joined again each time.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from plimsoll import folder


@cache
def script_bundle() -> str:
    """The script, fit to stand in a page."""
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
    import vl_convert

    # The snippet has a default that the type stub does not know.
    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return script.replace("</script", "<\\/script")


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "plimsoll"


def _keep(script: str, path: Path) -> None:
    """Write it whole or not at all: two reports may be written at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.write_text(path, script)
