"""`plimsoll test store` as a user runs it, on a real disk for some seconds."""

import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.chart_schema import hold_charts
from tests.support.places import plimsoll

SHORT = ["--scale", "1MB", "--minutes", "0.05", "--yes", "--quiet"]


def store_test(home: Path, *arguments: str, out: str = "run"):
    return plimsoll(
        "test", "store", home / "disk", *SHORT, *arguments, "--out", home / out, cwd=home
    )


def summary_of(run: Path):
    return json.loads((run / folder.SUMMARY).read_text(encoding="utf-8"))


def test_DS_01_orders_are_counted_audited_and_shown(tmp_path: Path):
    """Every step has its percentiles, the audit adds up, and the next run goes on with the store
    that is there.
    """
    done = store_test(tmp_path, "--sessions", "4", "--think-s", "0.01", "--verbose")
    assert done.returncode in (0, 1, 3), done.stderr
    found = summary_of(tmp_path / "run")
    figures, audit = found["store"][0], found["store_audits"][0]
    assert figures["opm"] == int(60 * figures["orders_count"] / found["window"]["seconds"]) > 100
    assert [step["step"] for step in figures["steps"]] == [
        "order",
        "login",
        "new customer",
        "search",
        "prices",
        "purchase",
    ]
    assert all(step["ms_p50"] <= step["ms_p95"] <= step["ms_max"] for step in figures["steps"])
    assert figures["ceiling_opm"] <= figures["think_bound_opm"] == 60 * 4 / 0.01
    assert (
        audit["findings"] == []
        and audit["counts"]["units_sold"] == audit["counts"]["units_ordered"]
    )
    # A store has a cache as databases of records have one, and is held back by it as they are.
    assert found["instances"][0]["cache_limit_bytes"] > 0
    verdict = json.loads((tmp_path / "run" / folder.VERDICT).read_text(encoding="utf-8"))
    assert "times its cache" in "; ".join(verdict["not_qualifying_because"])
    page = (tmp_path / "run" / folder.REPORT).read_text(encoding="utf-8")
    assert "store-1" in hold_charts(page)
    for text in ("Orders: orders", "Steps: orders", "Audit: store", "as DVD Store counts them"):
        assert text in page, text
    assert "orders per minute" in done.stdout and "as they must be" in done.stdout

    again = store_test(tmp_path, "--sessions", "2", out="again")
    assert again.returncode in (0, 1, 3), again.stderr
    counts = summary_of(tmp_path / "again")["store_audits"][0]["counts"]
    assert counts["orders"] > audit["counts"]["orders"]
    other = store_test(tmp_path, "--seed", "9", out="other")
    assert other.returncode == 2, other.stdout
    cleaned = plimsoll("clean", tmp_path / "disk", "--yes", cwd=tmp_path)
    assert cleaned.returncode == 0 and not list((tmp_path / "disk").iterdir())


@pytest.mark.slow
def test_DS_06_sessions_that_think_follow_the_formula_in_real_time(tmp_path: Path):
    """Twenty sessions for two minutes.

    The standard error of 1,600 cycles that are uniform is 1.4 %."""
    think = ["--sessions", "20", "--think-s", "1.5", "--ramp-s", "10"]
    place = [tmp_path / "disk", "--scale", "1MB", "--minutes", "2", "--yes", "--quiet"]
    done = plimsoll("test", "store", *place, *think, "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    figures = summary_of(tmp_path / "run")["store"][0]
    assert figures["think_bound_opm"] == 800
    assert figures["opm"] == pytest.approx(figures["ceiling_opm"], rel=0.035)


def test_the_options_name_one_storage_and_a_size(tmp_path: Path):
    done = plimsoll("test", "store", cwd=tmp_path)
    assert done.returncode == 2 and "name either a directory" in done.stderr
    wrong = plimsoll("test", "store", tmp_path, "--scale", "XL", cwd=tmp_path)
    assert wrong.returncode == 2 and "no size of a store" in wrong.stderr


OF_ARRIVALS = """kind = "plan"
schema_version = 1
sessions_max = 1
target = [{{ name = "array", modelled = "nearline-raid6" }}]
instance = [{{ name = "shop", target = "array", backend = "store", store_size = "1MB" }}]
workload = [{{ name = "orders", load = {{ transactions_per_s = {rate} }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 2 }}, {{ kind = "audit" }}, {{ kind = "stop" }}]
"""  # noqa: E501


def test_customers_that_arrive_faster_than_they_are_served_fail(tmp_path: Path):
    """A part of them was served, each after a long wait, and the storage passed."""
    for rate, expected in ((20, None), (9000, "predicted fail")):
        plan, run = tmp_path / f"{rate}.toml", tmp_path / str(rate)
        plan.write_text(OF_ARRIVALS.format(rate=rate), encoding="utf-8")
        done = plimsoll("run", plan, "--yes", "--quiet", "--out", run, cwd=tmp_path)
        assert done.returncode in (0, 1, 3), done.stderr
        verdict = json.loads((run / folder.VERDICT).read_text(encoding="utf-8"))
        (found,) = [item for item in verdict["checks"] if item["name"] == "store_carried"]
        assert found.get("predicted") == expected, found
        if expected:
            assert verdict["prediction"]["result"] == expected
            assert "orders that were due came to an end" in " ".join(verdict["reasons"])
