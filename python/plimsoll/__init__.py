"""Plimsoll qualifies storage for transactional work.

    >>> import plimsoll
    >>> plan = plimsoll.build_plan({
    ...     "name": "first look",
    ...     "target": [{"name": "array", "modelled": "emc-vnxe3300"}],
    ...     "instance": [{"name": "one", "database_size_mib": 64}],
    ... })
    >>> plimsoll.forecast(plan).lines()[0]
    'plan first look'

The public API is what `__init__.pyi` beside this file lists, and nothing else; `docs/api.md` shows
how it is used. A name is loaded when it is asked for the first time, so that `import plimsoll`
takes no time however much a part of it needs.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_LISTED = re.compile(r"^from (plimsoll\.[\w.]+) import (\w+) as \2$", re.MULTILINE)


@cache
def _homes() -> dict[str, str]:
    """For each public name its module, as the stub lists them."""
    text = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    return {name: module for module, name in _LISTED.findall(text)}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    home = None if name.startswith("_") else _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'plimsoll' has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
