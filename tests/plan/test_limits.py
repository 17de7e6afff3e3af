"""Limits that people state.

On any field of the summary, refused with a hint when there is no such field.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.limits import LimitError, known_fields, parse_limit, unit_of
from plimsoll.verdict.explain import UnknownNameError, explain, explained_names
from plimsoll.workloads.families import OPERATIONS
from tests.support.plain_stages import every_field, summarize
from tests.support.planted_run import MS, judged, run_folder

ROOT = Path(__file__).parents[2]


def test_the_catalogue_lists_what_a_summary_holds(tmp_path: Path) -> None:
    """A limit is checked against the catalogue before the run and against the summary after it.

    They must not part.
    """
    operations = {(kind, 1): {"count": 5, "each_ns": MS} for kind in OPERATIONS}
    summary = summarize(run_folder(tmp_path / "run", operations))
    found = {name for name, _, _ in every_field(summary)}
    assert found == set(known_fields())


@pytest.mark.parametrize(
    ("text", "field", "comparison", "limit"),
    [
        ("log_write_latency_ms_p99<5", "log_write_latency_ms_p99", "<", 5.0),
        (" db_read_latency_ms_mean <= 20 ", "database_read_latency_ms_mean", "<=", 20.0),
        ("total_db_read_latency_ms_max>=1e3", "total_database_read_latency_ms_max", ">=", 1000.0),
        ("database_iops>240", "database_iops", ">", 240.0),
    ],
)
def test_limits_are_read(text: str, field: str, comparison: str, limit: float) -> None:
    found = parse_limit(text)
    assert (found.field, found.comparison, found.limit) == (field, comparison, limit)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("log_write_latency_ms_p98<5", "log_write_latency_ms_p99"),
        ("log_write_latncy_ms_max<5", "log_write_latency_ms_max"),
        ("log_write_latency_ms_p99", "a number"),
        ("log_write_latency_ms_p99=5", "< <= > or >="),
        ("log_write_latency_ms_p99<5ms", "plain number"),
        ("log_write_latency_ms_p99<nan", "finite"),
        ("<5", "a number"),
    ],
)
def test_what_is_no_limit_gets_a_hint(text: str, hint: str) -> None:
    """A misspelt limit that is silently never checked would be worse than none."""
    with pytest.raises(LimitError) as caught:
        parse_limit(text)
    assert hint in caught.value.hint


def test_a_plan_with_a_bad_limit_is_refused_before_anything_runs() -> None:
    """With every other mistake of the plan, and the nearest name."""
    options: dict[str, Any] = {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one"}],
        "stated_limits": ["log_write_latency_ms_p98<5", "database_iops>10"],
        "surprise": 1,
    }
    with pytest.raises(InputError) as caught:
        plan_of_options(options)
    assert "log_write_latency_ms_p99" in str(caught.value)
    assert len(caught.value.mistakes) == 2


@pytest.mark.parametrize(
    ("limit", "result"),
    [
        ("database_read_latency_ms_mean<5", "fail"),
        ("database_read_latency_ms_mean<=5", "pass"),
        ("database_read_latency_ms_mean<5.1", "pass"),
        ("database_iops>=150", "pass"),
        ("database_iops>150", "fail"),
        ("executor_busy_mean<0.05", "fail"),
        ("cpu_busy_max<0.5", "pass"),
        ("log_read_latency_ms_mean<5", "inconclusive"),
        ("insert_response_ms_p99<5", "inconclusive"),
    ],
)
def test_a_stated_limit_is_a_check_like_any_other(tmp_path: Path, limit: str, result: str) -> None:
    """It fails on its side of the line, and where nothing was measured it does not pass."""
    found = judged(tmp_path / "run", {}, stated_limits=[limit])
    assert found["result"] == result
    checks = [check for check in found["checks"] if check["name"] == limit]
    assert [check["scope"] for check in checks] in (["one/database001"], ["one"], ["run"])
    assert all(check["statistic"] == "stated" and check["reason"] for check in checks)


def test_units_come_from_names() -> None:
    """Every field has a unit, and latencies are milliseconds."""
    units = {field: unit_of(field) for field in known_fields()}
    assert set(units.values()) == {"ms", "s", "1/s", "MiB/s", "bytes", "ratio", "count"}
    assert all(
        unit == "ms" for field, unit in units.items() if "latency" in field or "response" in field
    )
    assert units["backup_mib_per_s"] == "MiB/s"
    assert units["recovery_seconds_per_log"] == "s"
    assert units["page_fault_stalls_per_s"] == "1/s"
    assert units["cache_used_bytes_mean"] == "bytes"
    assert units["database_read_count"] == "count"


def test_every_check_that_a_verdict_makes_can_be_explained() -> None:
    """The name of a check that failed is typed next."""
    named = {
        argument.value
        for path in sorted((ROOT / "python/plimsoll/verdict").glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute)
        if ast.unparse(call.func).rsplit(".")[-1] in ("Check", "_check", "single_rule")
        for argument in [
            *call.args[:1],
            *(word.value for word in call.keywords if word.arg == "name"),
        ]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert {"event_degraded", "load_overlap"} <= named
    assert named <= set(explained_names())


def test_everything_that_is_judged_can_be_explained() -> None:
    """A check without an explanation leaves its reader with a number."""
    texts = {
        name
        for name, row in settings.limits().items()
        if isinstance(row, dict) and "explanation" in row
    }
    assert texts <= set(explained_names())
    for name in explained_names():
        text = explain(name)
        assert "Source:" in text
        assert "If it fails:" in text
    rows = [*settings.limits()["check"], *settings.doubts()]
    assert all(row["explanation"].strip() and row["if_it_fails"].strip() for row in rows)
    assert "in ms" in explain("log_write_latency_ms_p99<5")
    with pytest.raises(UnknownNameError, match="bad_pages"):
        explain("bad_page")
