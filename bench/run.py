"""Measures everything the project promises about its own speed and writes docs/benchmarks.md with
the record beside it.

    python3 bench/run.py [--directory DIR] [--quick] [--built] [--only SECTION ...] [--seconds N]

The long form takes about an hour on two processors and wants root for the memory cgroup of the
contest. `--only` measures some sections and keeps the record of the others, so that a long
measurement can be made in pieces when the machine is quiet. `--quick` tries every program on tiny
inputs in seconds, checks that its figures make sense, and writes nothing. Only the standard library
is used, so that it runs before anything is installed.
"""

import argparse
import functools
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import calibrated
import contest
import engine_cost
import environment
import file_loads
import loads
import modelled_arrays
import report
import sequential
import startup
import stores
import together
import virtual_time
from figure import Figure
from programs import ROOT, ProgramError, build

RECORD = ROOT / "docs" / "benchmarks.json"
#: Processes wanting to run beside us before a warning is due.
LOAD_MAX = 1.0


def sections(arguments: argparse.Namespace) -> dict[str, Callable[[], list[Figure]]]:
    """What can be measured, by name, in the order of the document."""
    directory, quick = arguments.directory, arguments.quick
    chosen: dict[str, Callable[[], list[Figure]]] = {
        "engine": lambda: engine_cost.engine(directory, quick),
        "checksum": lambda: engine_cost.checksum(quick),
        "durable_writes": lambda: engine_cost.durable_writes(directory, quick),
        "verify": lambda: sequential.verify(directory, quick),
        "backup": lambda: sequential.backup(directory, quick),
        "prepare": lambda: sequential.prepare(directory, quick),
        "power_cuts": lambda: virtual_time.power_cuts(arguments.wall_seconds),
        "sparse": lambda: virtual_time.sparse_day(quick, arguments.wall_seconds),
        "redo": lambda: virtual_time.redo(quick),
        "modelled_light": lambda: modelled_arrays.light(quick),
        "modelled_engine": lambda: modelled_arrays.engine(quick),
        "modelled_toy": lambda: modelled_arrays.toy(quick),
        "calibrated": lambda: calibrated.calibrated(directory, quick),
        "reads_against_fio": lambda: loads.reads(directory, quick),
        "mix_beside_fio": lambda: loads.mix(directory, quick),
        "arrivals": lambda: loads.arrivals(quick),
        "startup": lambda: startup.startup(quick),
        "store_postgresql": lambda: stores.postgresql(directory, quick),
        "store_embedded": lambda: stores.embedded(directory, quick),
        "files_beside_fio": lambda: file_loads.beside_fio(directory, quick),
        "files_at_a_rate": lambda: file_loads.at_a_rate(directory, quick),
        "store_formula": lambda: stores.formula(directory, quick),
        "loads_together": lambda: together.cost(directory, quick),
        "combined_modelled": lambda: together.modelled(directory, quick),
    }
    if quick:
        return chosen_when_quick(chosen, directory)
    chosen["modelled_day"] = lambda: modelled_arrays.engine(quick, 24)
    for inside in (False, True):
        for durable in (True, False):
            name = f"contest_{'inside' if inside else 'outside'}_{'durable' if durable else 'lazy'}"
            chosen[name] = functools.partial(
                contest.figures, directory, arguments.seconds, inside, durable
            )
    return chosen


def chosen_when_quick(
    chosen: dict[str, Callable[[], list[Figure]]], directory: Path
) -> dict[str, Callable[[], list[Figure]]]:
    """`make slow` runs the power cuts themselves; the other stores are not built."""
    left = {name: section for name, section in chosen.items() if name != "power_cuts"}
    return {**left, "contest": lambda: contest.quick(directory)}


def sane(figure: Figure) -> bool:
    """Whether the first number of a figure is one a working program could have printed."""
    found = re.search(r"-?[\d.]+|nan|inf", figure.value.replace(",", ""))
    return found is not None and math.isfinite(float(found[0])) and float(found[0]) > 0


def main() -> int:
    """The whole program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--built", action="store_true", help="the programs are built already")
    parser.add_argument("--only", nargs="+", metavar="SECTION")
    parser.add_argument("--seconds", type=float, default=5, help="of each run of the contest")
    parser.add_argument(
        "--wall-seconds",
        type=float,
        default=1800,
        help="of the power cuts and of the sparse day, each at most",
    )
    arguments = parser.parse_args()
    known = sections(arguments)
    if unknown := set(arguments.only or ()) - set(known):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    arguments.directory.mkdir(parents=True, exist_ok=True)
    if environment.load_average() > LOAD_MAX and not arguments.quick:
        print(
            f"warning: this machine is busy (load {environment.load_average():.1f}); the figures "
            f"will say so",
            file=sys.stderr,
        )
    try:
        return measure(arguments, {name: known[name] for name in arguments.only or known})
    except ProgramError as error:
        print(error, file=sys.stderr)
        return 1


def measure(arguments: argparse.Namespace, chosen: dict[str, Callable[[], list[Figure]]]) -> int:
    """Builds, measures section by section, and records each as soon as it is there."""
    if not arguments.built:
        build(*([] if arguments.quick else ["peers"]))
    strange = []
    for name, section in chosen.items():
        before = environment.record(arguments.directory)
        figures = section()
        for figure in figures:
            print(f"{figure.section}: {figure.name}: {figure.value} [{figure.bar}]", flush=True)
        strange += [figure.name for figure in figures if not sane(figure)]
        if not arguments.quick:
            keep(name, figures, before)
    if strange:
        print(f"no sane figure: {', '.join(strange)}", file=sys.stderr)
    return 1 if strange else 0


def keep(name: str, figures: list[Figure], before: dict[str, object]) -> None:
    """Replaces one section of the record and writes the document anew."""
    recorded = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    recorded[name] = {
        "environment": {**before, "load_average_after": environment.load_averages()},
        "figures": [figure.plain() for figure in figures],
    }
    # Where this checkout lies is nobody's business.
    text = json.dumps(recorded, indent=1, ensure_ascii=False).replace(f"{ROOT}/", "")
    RECORD.write_text(text + "\n")
    report.write(json.loads(text), ROOT / "docs" / "benchmarks.md")


if __name__ == "__main__":
    sys.exit(main())
