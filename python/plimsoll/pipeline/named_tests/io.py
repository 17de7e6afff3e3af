"""The named test of I/O: the curve of I/O per second against latency, as users of fio think of it.

Each of its points has a plan of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from plimsoll.pipeline.named_tests.declared import DeviceLogPath, FileLimit, IoMethod, PlaceSeed
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option
from plimsoll.pipeline.named_tests.options import refuse
from plimsoll.pipeline.named_tests.tables import stated, storage, worked

PATTERNS = ("random", "sequential")


def io(
    path: Annotated[Path, Option("A directory on the storage to be tested, or a block device.")],
    block: Annotated[str, Option("Sizes of a transfer: 4k,32k.")] = "4k",
    read: Annotated[
        int, Option("How many of a hundred transfers read.", minimum=0, maximum=100)
    ] = 70,
    depth: Annotated[
        str, Option("Transfers under way: 1..64 doubles each time, 1,4,16 names them.")
    ] = "1..64",
    pattern: Annotated[str, Option("random or sequential.")] = "random",
    size_mib: Annotated[int, Option("Size of the file, or what is used of a device.")] = 1024,
    seconds: Annotated[float, Option("How long each point is measured.", minimum=1)] = 30.0,
    ramp_s: Annotated[
        float, Option("Seconds of load before each point is measured.", minimum=0)
    ] = 3.0,
    percentiles: Annotated[str, Option("Of latency, up to 99.999.")] = "50,99,99.9",
    limit: FileLimit = None,
    log_path: DeviceLogPath = None,
    io_method: IoMethod = "auto",
    seed: PlaceSeed = 1,
) -> Any:
    """Measure I/O per second against latency.

    Every block size at every depth, with a chart, a table and a folder for each point.

    There is no verdict but of limits that you state, and of I/O that failed. The file stays for the
    next test; `plimsoll clean` deletes it.

    Example: plimsoll test io /mnt/array --block 4k,32k --read 70 --depth 1..64 --pattern random
    --yes
    """
    from plimsoll.pipeline.io_curve import asked_of, planned_curve

    problems = []
    if pattern not in PATTERNS:
        problems.append(f"--pattern {pattern!r} is neither random nor sequential")
    asked = asked_of(block, depth, percentiles, problems)
    refuse(problems)
    tables = {
        "test": "files",
        "target": [storage(path, None, None, log_path)],
        "instance": [{"name": "files", "backend": "files", "file_mib": size_mib}],
        "phase": worked(seconds, "files", ramp_s),
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=limit or None),
    }
    title = f"{pattern}, {read} % reads on {path}"
    return planned_curve(tables, asked, title, read_percent=read, is_random=pattern == "random")
