"""Which machine this is, for files in folders that several machines see.

Containers often have no machine id, or an empty one, and a host name of their own.
"""

from __future__ import annotations

import platform
from pathlib import Path

MACHINE_ID = Path("/etc/machine-id")


def machine_id() -> str | None:
    """The name that an installation has for as long as it lives; None where it has none yet."""
    try:
        found = MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return found if found not in ("", "uninitialized") else None


def host_name() -> str | None:
    """What the machine is called; None where it has no name."""
    return platform.node() or None
