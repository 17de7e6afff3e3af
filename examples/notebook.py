# %% [markdown]
# # A qualification, cell by cell
#
# Prepares two databases of 64 MiB below a directory, loads them, judges the storage by the
# published limits, and draws the latencies. It is a rehearsal: a qualification takes two hours and
# databases that no cache can hold. Open it as a notebook (VS Code, Jupyter with jupytext) or run it
# as a program.

# %%
import os
from pathlib import Path

import duckdb
import vl_convert

import plimsoll

directory = Path(os.environ.get("PLIMSOLL_NOTEBOOK_DIRECTORY", "notebook-storage"))
seconds = float(os.environ.get("PLIMSOLL_NOTEBOOK_SECONDS", "30"))

# %% [markdown]
# ## The plan
#
# The tables are those of a plan file; what is left out comes from the edition.

# %%
instance = {"edition": "2010", "database_size_mib": 64, "cache_mib_max": 8, "cache_mib_min": 1}
plan = plimsoll.build_plan(
    {
        "name": "notebook",
        "target": [{"name": "storage", "path": str(directory.absolute())}],
        "instance": [{"name": f"instance{number}", **instance} for number in (1, 2)],
        "phase": [
            {"kind": "prepare"},
            {"kind": "warm_up"},
            {"kind": "measure", "duration_s": seconds},
            {"kind": "stop"},
            {"kind": "checksum"},
        ],
        "sample_interval_ms": 500,
    }
)
# The directory may be new and on the system disk: this is a rehearsal.
allowed = {"create": True, "allow_system_disk": True}
found = plimsoll.check(plan, **allowed)
print("\n".join(plimsoll.forecast(plan, found).lines()))

# %% [markdown]
# ## The run
#
# A listener shows how it goes; here, one line for each phase.


# %%
class Phases(plimsoll.Listener):
    """Shows when a phase begins, and every warning."""

    def warning(self, text: str) -> None:
        print(f"warning: {text}")

    def event(self, event: plimsoll.Event) -> None:
        if event.kind == "phase_started":
            print(plimsoll.event_line(event))


# Into a new folder below `runs/`, however often this cell is run. Each run looks again at what is
# there: the first one prepares the databases, later ones use them.
result = plimsoll.qualify(plan, found=plimsoll.check(plan, **allowed), listener=Phases())
print("\n".join(result.lines()))

# %% [markdown]
# ## Latency over time
#
# Every sample is a row of `samples.parquet` in the run folder. The chart is a Vega-Lite spec.

# %%
titles = {
    "database_read": "database reads",
    "database_write": "database writes",
    "log_write": "log writes",
}
rows = duckdb.execute(
    """
    SELECT end_ns / 1e9, metric, sum(latency_ns_sum) / sum(count) / 1e6
    FROM read_parquet(?) WHERE count > 0 AND phase = 'measure' AND list_contains(?, metric)
    GROUP BY ALL ORDER BY ALL
    """,
    [str(result.folder / "samples.parquet"), list(titles)],
).fetchall()
points = [
    {"second": second, "metric": titles[metric], "latency_ms": latency}
    for second, metric, latency in rows
]
chart = {
    "title": result.headline,
    "data": {"values": points},
    "mark": {"type": "line", "point": True},
    "encoding": {
        "x": {"field": "second", "type": "quantitative", "title": "seconds since the begin"},
        "y": {"field": "latency_ms", "type": "quantitative", "title": "mean latency (ms)"},
        "color": {"field": "metric", "type": "nominal", "title": None},
    },
}
(result.folder / "latency.svg").write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
print(f"chart: {result.folder / 'latency.svg'}")

# %% [markdown]
# ## Afterwards
#
# The databases would stay for the next run; a rehearsal deletes them.

# %%
plimsoll.delete_prepared(found)
