"""What a comparison says: published improvements, a run beside itself, and what must not be
compared.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.compare import ComparisonError, compare, read_sides
from plimsoll.compare.text import confidence_note, factor_text
from plimsoll.documents.comparison import Comparison, Difference
from plimsoll.files import folder
from tests.support.judged_runs import judged
from tests.support.synthetic import make_folder

#: SanDisk's Table 1: latency ms, rate per s and bytes. Sizes were not printed; they do not matter
#: here.
HARD_DRIVES = {
    "database_read": (18.30, 322.59, 33_600),
    "database_write": (0.28, 172.56, 37_500),
    "log_replication": (9.14, 0.185, 65_536),
    "log_write": (0.23, 86.74, 5_300),
}
FLASH = {
    "database_read": (0.67, 6120.98, 33_600),
    "database_write": (0.34, 2788.78, 37_500),
    "log_replication": (4.42, 2.032, 65_536),
    "log_write": (0.26, 988.774, 5_300),
}


def compared(*paths: Path, **options: bool) -> dict[str, Any]:
    found = compare(read_sides(paths), **options)
    printed = json.loads(json.dumps(found.plain()))
    assert Comparison.from_plain(printed) == found, "what is printed can be read again"
    return found.plain()


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in found["figures"] if row["name"] == name)


@pytest.fixture(scope="module")
def sandisk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("sandisk")
    for name, rates in (("hdd", HARD_DRIVES), ("ssd", FLASH)):
        judged(make_folder(home / name, rates=[rates]))
    return compared(home / "hdd", home / "ssd")


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("database_iops", "18.0\xa0x"),
        ("total_database_read_per_s", "19.0\xa0x"),
        ("total_database_write_per_s", "16.2\xa0x"),
        ("total_log_read_with_replication_per_s", "11.0\xa0x"),
        ("total_log_write_per_s", "11.4\xa0x"),
        ("total_database_read_latency_ms_mean", "27.3\xa0x"),
        ("total_log_read_with_replication_latency_ms_mean", "2.07\xa0x"),
    ],
)
def test_RPT_25_STU_11_the_published_improvements_of_flash(
    sandisk: dict[str, Any], name: str, printed: str
) -> None:
    """RPT-25, STU-11: the factors that follow from the published table (its own text says 25 where
    27.3 follows).
    """
    against = row(sandisk, name)["against_first"][0]
    assert factor_text(Difference.from_plain(against)) == printed
    assert against["word"] == "better"


def test_the_rule_for_the_same(sandisk: dict[str, Any]) -> None:
    """The paper calls 0.28 and 0.34 ms the same.

    So do imported means; with samples, the direction is known.
    """
    against = row(sandisk, "total_database_write_latency_ms_mean")["against_first"][0]
    assert against["factor"] == pytest.approx(0.28 / 0.34)
    assert against["word"] == "worse"


def imported(source: Path, target: Path) -> Path:
    """A run as an importer leaves it: plain means of samples, and nothing behind them."""
    shutil.copytree(source, target)
    for name in (folder.SAMPLES, folder.HISTOGRAMS, folder.OUTCOME, folder.ENVIRONMENT):
        (target / name).unlink()
    summary = folder.read_json(target / folder.SUMMARY) | {"imported": {"tool": "Jetstress 2010"}}
    for figures in summary["total"].values():
        if isinstance(figures, dict):
            figures.update(
                {
                    key: None
                    for key in figures
                    if key.startswith("latency_ms") and "of_samples" not in key
                }
            )
    folder.write_json(target / folder.SUMMARY, summary)
    return target


def test_imported_runs_are_compared_by_what_they_print(
    fast: Path, slow: Path, tmp_path: Path
) -> None:
    """Other tools print plain means of samples only, so both sides show those.

    Nobody knows how sure the factor is.
    """
    found = compared(imported(fast, tmp_path / "old"), slow)
    against = row(found, "total_database_read_latency_ms_mean_of_samples")["against_first"][0]
    assert (against["word"], against["low"]) == ("worse", None)
    assert (
        row(found, "total_log_write_latency_ms_mean_of_samples")["against_first"][0]["word"]
        == "same"
    )
    said = "Without a confidence, same means: at most 5 % or 0.1 ms apart."
    assert said in confidence_note(Comparison.from_plain(found))
    assert "total_database_read_latency_ms_mean" not in {row["name"] for row in found["figures"]}
    assert any(
        "old: imported from another tool's report" in warning for warning in found["warnings"]
    )


def test_RPT_28_a_run_differs_from_itself_in_nothing(fast: Path) -> None:
    """RPT-28: every change is zero, and the reader is told that both sides are one folder."""
    found = compared(fast, fast)
    assert {row["against_first"][0]["change_percent"] for row in found["figures"]} == {0.0}
    assert not any(row["differs"] for row in [*found["plan"], *found["environment"]])
    assert any("same folder" in warning for warning in found["warnings"])


def test_a_planted_difference_is_found_and_no_other(fast: Path, slow: Path) -> None:
    """Reads of 25 ms instead of 12.8 are worse; nothing else differs."""
    found = compared(fast, slow)
    worse = {row["name"] for row in found["figures"] if row["against_first"][0]["word"] == "worse"}
    assert worse == {"total_database_read_latency_ms_mean"}
    percentile = row(found, "total_database_read_latency_ms_p99")["against_first"][0]
    assert (percentile["word"], percentile["low"]) == ("without confidence", None)
    assert percentile["why"] == "samples hold no distributions"
    against = row(found, "total_database_read_latency_ms_mean")["against_first"][0]
    assert against["basis"] == "blocks"
    assert against["low"] <= against["factor"] <= against["high"] < 0.6


def test_STU_18_memory_used_and_available_stand_side_by_side(fast: Path, slow: Path) -> None:
    """STU-18: what the host's memory did, for both; neither more nor less of it is better."""
    found = compared(fast, slow)
    used, available = row(found, "memory_used_bytes"), row(found, "memory_available_mean")
    memory_kib = folder.read_json(fast / folder.ENVIRONMENT)["machine"]["memory_kib"]
    assert used["sides"][0]["value"] + available["sides"][0]["value"] == pytest.approx(
        memory_kib / 1024
    )
    assert used["better"] == "neither"


def changed(source: Path, target: Path, name: str, change: Any) -> Path:
    shutil.copytree(source, target)
    content = folder.read_json(target / name)
    change(content)
    folder.write_json(target / name, content)
    return target


def test_different_page_sizes_are_refused(fast: Path, tmp_path: Path) -> None:
    """An I/O of 4 KiB is not an I/O of 32 KiB; who wants it all the same says so and is warned."""

    def change(plan: dict[str, Any]) -> None:
        for instance in plan["run"]["instances"]:
            instance["page_bytes"] = 4096

    small = changed(fast, tmp_path / "small", folder.PLAN, change)
    with pytest.raises(
        ComparisonError, match=r"different page sizes \(fast: 32 KiB, small: 4 KiB\)"
    ):
        compared(fast, small)
    found = compared(fast, small, across_page_sizes=True)
    assert any("different page sizes" in warning for warning in found["warnings"])


def test_other_differences_are_said(fast: Path, tmp_path: Path) -> None:
    """Editions and sizes change figures by themselves; the comparison goes on and says so."""

    def change(plan: dict[str, Any]) -> None:
        plan["judgement"]["editions"] = ["2013", "2013"]
        plan["run"]["instances"][0]["databases"][0]["size_bytes"] //= 2

    other = changed(fast, tmp_path / "other", folder.PLAN, change)
    found = compared(fast, other)
    assert any(
        "different editions (fast: 2010, other: 2013)" in warning for warning in found["warnings"]
    )
    assert any("different database sizes" in warning for warning in found["warnings"])
    differing = {row["key"] for row in found["plan"] if row["differs"]}
    assert "run.instances[instance1].databases[1].size_bytes".removeprefix("run.") in differing


def test_environments_stand_side_by_side(fast: Path, tmp_path: Path) -> None:
    """Another kernel or controller may be all the difference.

    What always differs (free space, load) is left out.
    """

    def change(environment: dict[str, Any]) -> None:
        environment["operating_system"]["kernel"] = "6.2.0-other"
        environment["operating_system"]["load_average"] = [9.0, 9.0, 9.0]

    other = changed(fast, tmp_path / "other", folder.ENVIRONMENT, change)
    differing = [row for row in compared(fast, other)["environment"] if row["differs"]]
    assert [(row["key"], row["values"][1]) for row in differing] == [
        ("operating_system.kernel", "6.2.0-other")
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            folder.SUMMARY,
            "{",
            r"summary.json cannot be read: .*expected a summary as `plimsoll report` writes it",
        ),
        (folder.SUMMARY, "[]", r"summary.json holds a list; expected a JSON object"),
        (
            folder.SUMMARY,
            '{"total": {}}',
            r"summary.json is not valid: .*`window` is missing.*`total.database_iops` is missing.*; expected a summary",  # noqa: E501
        ),
        (folder.PLAN, "{}", r"plan.json: `run.instances` is missing; expected a completed plan"),
        (
            folder.SAMPLES,
            "PAR1 but not really",
            r"samples.parquet cannot be read: .*expected a Parquet file",
        ),
    ],
)
def test_damaged_files_are_named(
    fast: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    """Which file, and what was expected in it."""
    shutil.copytree(fast, tmp_path / "damaged")
    (tmp_path / "damaged" / name).write_text(text)
    with pytest.raises(ComparisonError, match=message):
        compared(fast, tmp_path / "damaged")


@pytest.mark.parametrize("name", [folder.SAMPLES, folder.OUTCOME])
def test_a_run_without_what_it_measured_is_damaged(fast: Path, tmp_path: Path, name: str) -> None:
    """Half a copy was compared in silence.

    Its confidence intervals were missing, and nobody was told why.
    """
    shutil.copytree(fast, tmp_path / "half")
    (tmp_path / "half" / name).unlink()
    with pytest.raises(ComparisonError, match=rf"half/{name} is missing, so this run is damaged"):
        compared(fast, tmp_path / "half")


def test_runs_of_unlike_tests_are_refused(fast: Path, tmp_path: Path) -> None:
    """A backup beside a load: an empty table with an exit code of success says that nothing
    differs.
    """

    def change(plan: dict[str, Any]) -> None:
        plan["judgement"]["test"] = "backup"

    other = changed(fast, tmp_path / "other", folder.PLAN, change)
    with pytest.raises(
        ComparisonError, match=r"different things \(fast: a load on databases, other: backup\)"
    ):
        compared(fast, other)


def test_every_folder_that_is_none_is_named_at_once(fast: Path, tmp_path: Path) -> None:
    """A missing run, a file, an empty folder and a run that was cut off.

    Four lines, not the first of them.
    """
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut").mkdir()
    shutil.copy(fast / folder.PLAN, tmp_path / "cut")
    with pytest.raises(ComparisonError) as raised:
        read_sides([fast, *(tmp_path / name for name in ("missing", "file", "empty", "cut"))])
    words = ("does not exist", "is a file", "holds no run", "was killed")
    assert len(raised.value.problems) == 4
    assert all(word in problem for word, problem in zip(words, raised.value.problems, strict=True))


def test_a_repeated_run_is_one_side_of_whole_runs(fast: Path, slow: Path, tmp_path: Path) -> None:
    """Three runs against three: the confidence is that of whole runs, percentiles included."""
    for home, source in (("before", fast), ("after", slow)):
        for number in (1, 2, 3):

            def change(summary: dict[str, Any], factor: float = 1 + 0.01 * number) -> None:
                for key in ("latency_ms_mean", "latency_ms_p99"):
                    summary["total"]["database_read"][key] *= factor

            changed(source, tmp_path / home / f"run-{number}", folder.SUMMARY, change)
        runs = [{"folder": f"run-{number}", "ending": "complete"} for number in (1, 2, 3)]
        runs.append({"folder": "run-4", "ending": "interrupted"})
        (tmp_path / home / folder.REPEATS).write_text(json.dumps({"runs": runs}))
    found = compared(tmp_path / "before", tmp_path / "after")
    for name in ("mean", "p99"):
        against = row(found, f"total_database_read_latency_ms_{name}")["against_first"][0]
        assert (against["basis"], against["word"]) == ("runs", "worse")
        assert against["high"] < 1
    assert any(
        "run-4 ended interrupted, so it was left out" in warning for warning in found["warnings"]
    )


def test_what_a_run_says_against_itself_is_said_of_its_figures_too(
    fast: Path, slow: Path, tmp_path: Path
) -> None:
    """Ten times as fast, said a comparison of a page cache with the disk below it."""
    cached = tmp_path / "cached"
    shutil.copytree(fast, cached)
    outcome = folder.read_json(cached / folder.OUTCOME)
    outcome["io_remarks"] = ["buffered I/O in /srv/array: direct I/O is not supported"]
    folder.write_json(cached / folder.OUTCOME, outcome)
    gap = {
        "phase": "measure",
        "completed": [],
        "cut_off_utc": "",
        "resumed_utc": "",
        "seconds": 1.0,
        "phase_seconds_before": 60.0,
        "errors_before": 0,
    }
    folder.write_json(cached / folder.GAPS, {"schema_version": 1, "gaps": [gap]})
    judged(cached)
    verdict = folder.read_json(cached / folder.VERDICT)
    verdict["warnings"] = ["measured while bursting: 900 database IOPS for 60 s"]
    folder.write_json(cached / folder.VERDICT, verdict)
    said = compared(cached, slow)["warnings"]
    for words in ("through the page cache", "was cut off and went on", "measured while bursting"):
        assert any(text.startswith("cached: ") and words in text for text in said), words
        assert not any(text.startswith("slow: ") and words in text for text in said), words
