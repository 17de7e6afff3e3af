"""`make fuzz`: gives damaged inputs to every reader in Python for as long as told, in bounded memory.

    python tests/fuzz/fuzzing.py SECONDS SEED

A failure prints the reader and the seed of the input: `survives(NAME, SEED)` makes it anew. At the end the processor time is printed.
"""

from __future__ import annotations

import resource
import sys
import time

from decoders import NAMES, survives

MEMORY_BYTES_MAX = 3 << 30


def main() -> None:
    """Go round the readers until the time is over."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) * 1_000_000_000
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    began, inputs = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for name in NAMES:
            try:
                survives(name, seed)
            except BaseException:
                print(f"failed: survives({name!r}, {seed})", file=sys.stderr)
                raise
            inputs += 1
        seed += 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"{inputs} inputs to {len(NAMES)} readers; {used.ru_utime + used.ru_stime:.0f} s of processor time, {used.ru_maxrss >> 10} MiB"
    )


if __name__ == "__main__":
    main()
