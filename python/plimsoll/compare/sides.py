"""What is compared: run folders, and the folders of repeated runs, read and checked before anything
is computed.

Every folder that cannot be compared is named at once, with the file and what was expected in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import duckdb

from plimsoll.compare.blocks import Moment
from plimsoll.documents.document import DocumentError
from plimsoll.documents.summary import AnySummary, summary_of
from plimsoll.documents.verdict import Verdict, verdict_of
from plimsoll.errors import RefusedError
from plimsoll.files import folder, parquet

_EXPECTED = {
    folder.SUMMARY: "a summary as `plimsoll report` writes it",
    folder.PLAN: "a completed plan as `plimsoll run` writes it",
    folder.ENVIRONMENT: "an environment as `plimsoll run` writes it",
}


#: Seconds, count, bytes and nanoseconds of latency.
Sums = tuple[float, int, int, int]


class ComparisonError(RefusedError):
    """Sides that cannot be compared; one line for each thing that is wrong."""


@dataclass(frozen=True)
class RunRead:
    """One run as its folder has it.

    Attributes:
        path: its folder.
        plan: the completed plan.
        summary: its figures.
        environment: machine and storage; empty where the run was imported without one.
        outcome: how it ended; empty where it was imported.
        verdict: the result; None where it was not judged.
        stated: of a published result its figures by name, in place of everything that files hold;
            None of a run.
        origin: of a published result where it comes from, in a sentence.
    """

    path: Path
    plan: folder.Content
    summary: AnySummary
    environment: folder.Content
    outcome: folder.Content
    verdict: Verdict | None
    stated: Mapping[str, float] | None = None
    origin: str = ""

    def moments(self, metrics: Sequence[str]) -> list[Sums]:
        """Seconds, count, bytes and summed latency of some metrics together, for each moment of the
        measured time.

        Raises:
            ComparisonError: the samples are damaged.
        """
        found = []
        for seconds, by_metric in self._samples:
            sums = [by_metric[metric] for metric in metrics if metric in by_metric]
            count, size, latency_ns = (
                (sum(values) for values in zip(*sums, strict=True)) if sums else (0, 0, 0)
            )
            found.append((seconds, count, size, latency_ns))
        return found

    @property
    def _measured_phases(self) -> list[str]:
        return [
            phase["name"] for phase in self.outcome.get("phases", []) if phase["kind"] == "measure"
        ]

    @cached_property
    def _samples(self) -> list[tuple[float, dict[str, tuple[int, int, int]]]]:
        """Length, and count, bytes and summed latency of each metric, of every moment in order.

        Read once.
        """
        path = self.path / folder.SAMPLES
        if not path.is_file():
            return []
        try:
            with parquet.database() as database:
                rows = database.execute(
                    "SELECT end_ns, max(interval_ns) / 1e9, metric, sum(count)::BIGINT, "
                    "sum(bytes)::BIGINT,"
                    f" sum(latency_ns_sum)::BIGINT FROM {parquet.rows_of(path)} WHERE "
                    f"list_contains($names, phase)"
                    " GROUP BY end_ns, metric ORDER BY end_ns",
                    {"names": self._measured_phases},
                ).fetchall()
        except duckdb.Error as error:
            raise ComparisonError([_damaged(path, error)]) from error
        found: dict[int, tuple[float, dict[str, tuple[int, int, int]]]] = {}
        for end_ns, seconds, metric, count, size, latency_ns in rows:
            length, by_metric = found.get(end_ns, (0.0, {}))
            by_metric[metric] = (count, size, latency_ns)
            found[end_ns] = (max(length, seconds), by_metric)
        return list(found.values())

    def buckets(self, metric: str) -> list[tuple[float, int]]:
        """Upper bound in ms and count of each bucket of a metric's distribution, all places
        together.
        """
        path = self.path / folder.HISTOGRAMS
        if not path.is_file():
            return []
        try:
            with parquet.database() as database:
                rows = database.execute(
                    f"SELECT upper_ns, sum(count)::BIGINT FROM {parquet.rows_of(path)} WHERE "
                    f"metric = $metric AND count > 0"
                    " AND list_contains($names, phase) GROUP BY upper_ns ORDER BY upper_ns",
                    {"metric": metric, "names": self._measured_phases},
                ).fetchall()
        except duckdb.Error as error:
            raise ComparisonError([_damaged(path, error)]) from error
        return [(upper / 1e6, count) for upper, count in rows]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, or several runs of the same thing.

    Attributes:
        name: how it is called in tables and charts.
        path: as the user named it.
        runs: at least one.
        left_out: runs of a repeated run that say nothing, with the reason.
    """

    name: str
    path: Path
    runs: list[RunRead]
    left_out: list[str] = field(default_factory=list)

    @property
    def first(self) -> RunRead:
        """The run whose plan and environment stand for the side."""
        return self.runs[0]


def moments_of(rows: Sequence[Sums], figure: str) -> list[Moment]:
    """Samples as quotients: a rate per second, bytes per second, or a latency in ms for each
    operation.
    """
    match figure:
        case "per_s":
            return [Moment(seconds, count, seconds) for seconds, count, _, _ in rows]
        case "bytes_per_s":
            return [Moment(seconds, size, seconds) for seconds, _, size, _ in rows]
    return [Moment(seconds, latency_ns / 1e6, count) for seconds, count, _, latency_ns in rows]


def read_sides(
    paths: Sequence[Path], others: Callable[[Path], Side | None] = lambda _: None
) -> list[Side]:
    """Read every side.

    Args:
        paths: as the user named them.
        others: makes a side of what is no folder; None for a folder.

    Raises:
        ComparisonError: one line for each folder that cannot be compared.
    """
    problems: list[str] = []
    sides = []
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        try:
            sides.append(others(path) or _side(path, name))
        except ComparisonError as error:
            problems += error.problems
    if problems:
        raise ComparisonError(problems)
    return sides


def _names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path; as much more as tells them apart.

    A number where that does not help either.
    """
    absolute = [path.absolute() for path in paths]
    for length in range(1, 6):
        names = ["/".join(path.parts[-length:]) for path in absolute]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({number})" for number, path in enumerate(absolute, 1)]


def _side(path: Path, name: str) -> Side:
    if (path / folder.REPEATS).exists():
        return _repeated(path, name)
    return Side(name, path, [read_run(path)])


def _repeated(path: Path, name: str) -> Side:
    """The runs of a repeated run that came to their end."""
    try:
        content = folder.read_json(path / folder.REPEATS)
        listed = [
            (folder.inner(path, entry["folder"]), entry["ending"]) for entry in content["runs"]
        ]
    except (folder.FolderError, KeyError, TypeError) as error:
        raise ComparisonError(
            [f"{path / folder.REPEATS}: {error}; expected what `--repeat` writes: a list `runs`"]
        ) from error
    runs = [read_run(entry) for entry, ending in listed if ending == "complete"]
    left_out = [f"{entry.name} ended {ending}" for entry, ending in listed if ending != "complete"]
    if not runs:
        raise ComparisonError(
            [
                f"{path}: none of its {len(listed)} runs came to its end, so there is nothing to "
                f"compare"
            ]
        )
    return Side(name, path, runs, left_out)


def read_run(path: Path) -> RunRead:
    """Read one run folder.

    Raises:
        ComparisonError: files are missing, damaged or not what they should be.
    """
    problem = folder.why_no_run(path)
    if problem is not None:
        raise ComparisonError([f"{path} {problem}"])
    problems: list[str] = []
    if not (path / folder.SUMMARY).exists():
        if (prepared := folder.prepared_in_words(path)) is not None:
            problems.append(prepared)
        elif (path / folder.SAMPLES).exists() and (path / folder.OUTCOME).exists():
            problems.append(
                f"{path / folder.SUMMARY} is missing; `plimsoll report {path}` computes it from "
                f"the samples"
            )
        elif (path / folder.PLAN).exists():
            problems.append(
                f"{path} goes on" if folder.goes_on(path) else folder.killed_in_words(path)
            )
        else:
            problems.append(
                f"{path} holds no run: expected {folder.PLAN} and {folder.SUMMARY} in it"
            )
        raise ComparisonError(problems)
    found = {
        name: _read(path / name, required=name in (folder.PLAN, folder.SUMMARY), problems=problems)
        for name in (
            folder.PLAN,
            folder.SUMMARY,
            folder.ENVIRONMENT,
            folder.OUTCOME,
            folder.VERDICT,
        )
    }
    if not problems:
        problems += _shape(path, found[folder.PLAN])
    summary = None if problems else _summary(path / folder.SUMMARY, found[folder.SUMMARY], problems)
    if summary is not None:
        problems += _missing_measurements(path, summary)
    verdict = _verdict(path / folder.VERDICT, found[folder.VERDICT], problems)
    if problems or summary is None:
        raise ComparisonError(problems)
    return RunRead(
        path, found[folder.PLAN], summary, found[folder.ENVIRONMENT], found[folder.OUTCOME], verdict
    )


def _missing_measurements(path: Path, summary: AnySummary) -> list[str]:
    """A run of ours that measured something has what it measured beside its summary, and says how
    it ended.
    """
    if summary.imported or not summary.window.seconds or (path / folder.HOSTS).exists():
        return []
    return [
        f"{path / name} is missing, so this run is damaged; copy the whole run folder again"
        for name in (folder.SAMPLES, folder.OUTCOME)
        if not (path / name).is_file()
    ]


def _summary(path: Path, content: folder.Content, problems: list[str]) -> AnySummary | None:
    """The figures of a run: those of our own are complete, those of an imported run are what was
    reported.
    """
    try:
        return summary_of(content, str(path))
    except DocumentError as error:
        problems.append(f"{error}; expected {_EXPECTED[folder.SUMMARY]}")
        return None


def _verdict(path: Path, content: folder.Content, problems: list[str]) -> Verdict | None:
    try:
        return verdict_of(content, str(path)) if content else None
    except DocumentError as error:
        problems.append(str(error))
        return None


def _read(path: Path, *, required: bool, problems: list[str]) -> folder.Content:
    if not required and not path.exists():
        return {}
    try:
        content = folder.read_json(path)
    except folder.FolderError as error:
        expected = _EXPECTED.get(path.name)
        problems.append(f"{error}; expected {expected}" if expected else str(error))
        return {}
    if not isinstance(content, dict):
        problems.append(f"{path} holds a {type(content).__name__}; expected a JSON object")
        return {}
    return content


def _shape(path: Path, plan: folder.Content) -> list[str]:
    """What is missing in a plan that is JSON but not what it should be."""
    problems = []
    run = plan.get("run")
    if not isinstance(run, dict) or not isinstance(run.get("instances"), list):
        problems.append(
            f"{path / folder.PLAN}: `run.instances` is missing; expected {_EXPECTED[folder.PLAN]}"
        )
    return problems


def _damaged(path: Path, error: Exception) -> str:
    first = str(error).strip().splitlines()[0]
    return f"{path} cannot be read: {first}; expected a Parquet file as the run wrote it"
