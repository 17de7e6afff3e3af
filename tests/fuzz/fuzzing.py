"""`make fuzz`: gives damaged inputs to every reader in Python for as long as told, in bounded
memory; each reader gets as much time as the others.

    python -m tests.fuzz.fuzzing SECONDS SEED

A failure prints the reader and the seed of the input: `survives(NAME, SEED)` makes it anew. At the
end the processor time is printed."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter

from plimsoll.pages.chart_script import script_bundle
from tests.fuzz.decoders import NAMES, survives

MEMORY_BYTES_MAX = 3 << 30


def main() -> None:
    """Go round the readers until the time is over."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) * 1_000_000_000
    # Joining the libraries of the charts reserves more address space than that, once.
    script_bundle()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    began, spent_s, inputs = time.monotonic(), dict.fromkeys(NAMES, 0.0), Counter[str]()
    while (now := time.monotonic()) - began < seconds:
        name = min(NAMES, key=lambda name: spent_s[name])
        number = seed + inputs[name]
        try:
            survives(name, number)
        except BaseException:
            print(f"failed: survives({name!r}, {number})", file=sys.stderr)
            raise
        inputs[name] += 1
        spent_s[name] += time.monotonic() - now
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"{inputs.total()} inputs to {len(NAMES)} readers, {min(inputs.values())} or more to each; "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time, {used.ru_maxrss >> 10} MiB"
    )


if __name__ == "__main__":
    main()
