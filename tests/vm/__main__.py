"""Runs a command in a virtual machine with Debian's kernel: `python -m tests.vm COMMAND ...`.

The machine sees the files of this one, read-only below a layer in memory. It has eight scratch
disks, an initiator and a target for iSCSI, udev and device mapper. Its kernel and tools lie in
`.vm`; nothing is installed on this machine.
"""

from __future__ import annotations

import signal
import sys

from tests.vm.machine import MissingError, run

#: As for the scripts of `deploy`: something is missing here.
LACKS = 77


def main(argv: list[str]) -> int:
    """Run a command; its exit code, 77 where this machine lacks something.

    Args:
        argv: the command.
    """
    if not argv:
        print("usage: python -m tests.vm COMMAND ...", file=sys.stderr)
        return 2
    try:
        return run(argv, timeout_s=5400)
    except MissingError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return LACKS


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
