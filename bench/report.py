"""docs/benchmarks.md from the record. Written by the program so that no figure is ever retyped."""

from pathlib import Path
from typing import Any

from figure import Figure

_WHOLE = (
    "A file of 1 GiB with direct I/O on both sides, the same block size and depth, pairs in turns. "
    "The figure that counts is the one-sided lower "
    "90 % bound of the median of the pairs' ratios."
)
_CONTEST = (
    "The same operations on the same records. SQLite: write-ahead log, `synchronous` FULL for "
    "durable commits and NORMAL for lazy ones, one "
    "connection per session; redb: immediate durability or none, and then every 256th commit "
    "durable, because it holds lazy ones in memory without "
    "a limit. Every store has 64 MiB of cache and its process lives in a memory cgroup of 128 MiB, "
    "page cache of the kernel included. The time "
    "until everything is synced and closed counts. Sessions of this engine are tasks of one "
    "thread, those of the others threads."
)

#: Order of the sections in the document and what a reader must know of each.
ORDER = {
    "engine": "Everything the process does while the 2010 mix runs on a memory disk that answers "
    "at once, with a prepared database 32 times the "
    "cache of 64 MiB: transactions and the load that draws them, log, write-back, checksums both "
    "ways, and the copying that stands for the "
    "device. Processor time is that of the whole process as the kernel counts it; neighbours "
    "written together are one I/O.",
    "checksum": "Pages in the processor's cache, 21 interleaved repeats, medians. The loop it is "
    "compared with counts the bits of every 32-bit "
    "word; the kernel chooses its instructions at run time, the loop is compiled for the level "
    "named.",
    "durable_writes": "One durable write at a time onto blocks that were written before, as the "
    "log does it, the two ways in turns; the time "
    "of every write. The engine times its first durable writes to a device both ways and stays "
    "with the faster one (plan key `durable_writes`).",
    "verify": _WHOLE,
    "backup": _WHOLE,
    "prepare": _WHOLE + " Both sides begin with a new file and end when it is on stable storage.",
    "power_cuts": "Ten thousand power cuts of `tests/power_cut`: every cut is followed by "
    "recovery, and every round by a comparison of the whole content.",
    "sparse": "Pages are made from their numbers when read; only differences are kept. Reads and "
    "writes of pages take 12 ms, log writes 1 ms.",
    "redo": "The mix runs with the checkpoint held behind; then the power fails, everything "
    "unsynced is lost, and the databases are recovered. "
    "All page reads take 12 ms, before the cut and after.",
    "modelled_light": "The light workload on modelled arrays of hard drives, one processor: how "
    "many I/Os of the host are modelled in a second.",
    "modelled_engine": "The whole engine on a modelled array, in virtual time: two hours of the "
    "performance test on the EMC VNXe3300, from the "
    "start of the process to its result. A second thread codes the pages that are written.",
    "modelled_day": "The same for 24 hours, on one machine with other work at the same time where "
    "the load average says so.",
    "modelled_toy": "A closed queue with one server, the same in this model and in SimPy, in the "
    "same run.",
    "calibrated": "A device model is fitted to a sweep of the storage at hand, the performance "
    "test is predicted from it, and then run. All of it "
    "one right after the other. An error of the fit itself of tens of percent says that the "
    "storage, or the machine it is shared with, did not hold still. "
    "With one database the engine leaves one of two processors to the kernel; with two it competes "
    "with it, and there what a durable write waits for "
    "is known only roughly.",
    "reads_against_fio": "A prepared database of 2 GiB behind a cache of 32 MiB; sessions at full "
    "speed that each read one record, that is one page, "
    "against fio reading pages of the same file at random: with as many outstanding as there are "
    "sessions and, where a row says so, with the "
    "engine's own mean outstanding I/O, between the two depths of fio next to it (powers of two). "
    "Runs of 1 s in turns, both sides on the processor that "
    "gets the disk's interrupts. Latency is from submission to seeing the completion. Both sides "
    "sleep while they wait.",
    "mix_beside_fio": "The 2010 mix at full speed. fio has the same share of reads, the mean "
    "outstanding I/O of the run before, and a second job that "
    "writes as many bytes at a time as a log flush and waits for each. fio has no transactions, no "
    "cache and no order of log before pages.",
    "arrivals": "Poisson arrivals of the 2010 mix, everything on one processor. The generator's "
    "own delay is the time between an arrival's due time and "
    "the moment it is noticed, where no full pool held it up.",
    "store_postgresql": "The loop of DVD Store 2 without think time on a store of 10 MB, durable "
    "commits, the server on the same machine. Processor time is that of the driver alone. The "
    "peer, bench/peers/libpq_orders.c, has a thread for each connection and the same statements; "
    "both sides take turns on one database.",
    "store_embedded": "The same loop on a store of 10 MB, both on the same disk: SQLite with a "
    "write-ahead log and `synchronous` FULL, the engine with direct I/O and durable commits.",
    "store_formula": "Sessions that think 1.5 s make 60 x sessions / (think time + response) "
    "orders per minute, in real time on the engine.",
    "files_beside_fio": "The published access specification of a file server on a file of 5 GiB, "
    "direct I/O, runs of 20 s in turns with fio's bssplit. Latency is from submission to seeing "
    "the completion.",
    "files_at_a_rate": "200 users on each of two servers at 0.70 I/O per second each, evenly.",
    "loads_together": "Records, an online store, files and a mail store, each on instances of its "
    "own, in runs of 12 s in turns: each alone, and all four in one process. The figure that "
    "counts is the one-sided upper 90 % bound of the median over the rounds.",
    "combined_modelled": "The loads of the MD3000i paper in virtual time, three runs one after the "
    "other; the slowest counts.",
    "startup": "Whole processes with a warm page cache, from start to exit, output thrown away.",
    "contest_outside_durable": _CONTEST,
    "contest_outside_lazy": _CONTEST,
    "contest_inside_durable": _CONTEST,
    "contest_inside_lazy": _CONTEST,
}

HEAD = """# Benchmarks

What Plimsoll's own machinery costs, measured by `make bench`, against the bars the project set itself before measuring. This page is
written by `bench/report.py` from [benchmarks.json](benchmarks.json), which holds every single run and the environment of each section.
Figures that fall short stand as they are. Values are medians with the least and the most in brackets unless a row says otherwise;
"load" is the machine's load average over the minute before the row was measured.
"""  # noqa: E501


def write(recorded: dict[str, Any], path: Path) -> None:
    """Writes the document.

    Raises:
        KeyError: something was measured that has no place in it.
    """
    if left_out := recorded.keys() - ORDER.keys():
        raise KeyError(f"no place in the document for {', '.join(sorted(left_out))}")
    parts = [HEAD]
    for name, text in ORDER.items():
        if name not in recorded:
            continue
        section = recorded[name]
        figures = [Figure(**figure) for figure in section["figures"]]
        parts.append(f"\n## {figures[0].section}: {name.replace('_', ' ')}\n\n{text}\n")
        parts.append("\n| figure | value | bar | | load |\n|---|---|---|---|---|\n")
        parts += [figure.row() + "\n" for figure in figures]
        commands = dict.fromkeys(figure.command for figure in figures)
        parts.append("\nProduced by `make bench`, which runs:\n\n")
        parts += [f"- `{command}`\n" for command in commands]
        parts += [f"\n{figure.remark}\n" for figure in figures if figure.remark]
        parts.append(f"\n{_environment(section['environment'])}\n")
    path.write_text("".join(parts))


def _environment(told: dict[str, Any]) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in told["device_facts"].items())
    return (
        f"Measured {told['measured_at']} at commit {told['commit']} ({told['build']}; "
        f"{told['rustc']}) on {told['processor']}, "
        f"{told['processors']} processors, {told['memory_kib'] // 1048576} GiB, Linux "
        f"{told['kernel']}, {told['file_system']} on "
        f"{told['device']} ({facts}), {told['fio']}; "
        f"load average before {_loads(told['load_average_before'])}, after "
        f"{_loads(told.get('load_average_after', []))}."
    )


def _loads(averages: list[float]) -> str:
    return "/".join(f"{value:.1f}" for value in averages) or "not noted"
