"""Which start of this machine it is: what the kernel was told ends with it."""

from __future__ import annotations

from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """A name that the kernel gives each start of the machine; None where it says none."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None
