"""Options that several named tests have, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from plimsoll import settings
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option

CacheMib = Annotated[int | None, Option("Most cache of each instance.")]
Change = Annotated[
    list[str] | None, Option("A figure of the modelled array.", placeholder="KEY=VALUE")
]
Databases = Annotated[
    int,
    Option(
        "Databases, each an instance with its own log and cache.",
        minimum=1,
        maximum=settings.INSTANCES_MAX,
    ),
]
DeviceLogPath = Annotated[
    Path | None, Option("For a block device: where what is known of it is kept.")
]
Edition = Annotated[
    str,
    Option(
        "Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, or as derived from "
        "it 2016 and 2019."
    ),
]
FileLimit = Annotated[
    list[str] | None, Option("A limit: 'file_read_response_ms_p95<20'. May be repeated.")
]
IoMethod = Annotated[str, Option("auto, io_uring, libaio or threads.")]
Limit = Annotated[
    list[str] | None, Option("A further limit: 'log_write_latency_ms_p99<5'. May be repeated.")
]
LogPath = Annotated[Path | None, Option("A directory for the logs, if they lie elsewhere.")]
Minutes = Annotated[float, Option("How long to measure; a qualification takes 30.", minimum=0.02)]
Modelled = Annotated[
    str | None,
    Option("Simulate this array instead: a preset or FILE.toml.", placeholder="ARRAY"),
]
PlaceSeed = Annotated[int, Option("Decides places and content.")]
RampS = Annotated[float, Option("Seconds of load before measuring.", minimum=0)]
RestoreFrom = Annotated[
    Path | None, Option("A saved set to restore before the run.", placeholder="DIR")
]
Seed = Annotated[int, Option("Decides keys and content.")]
