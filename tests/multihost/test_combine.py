"""Several hosts against one storage.

What they make together is their sum, in the time that all of them measured.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll import exit_codes
from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.multihost import CombineError, combine, read
from plimsoll.multihost.overlap import monotonic_ns_of, utc_ns_of
from plimsoll.multihost.page import warnings_of
from plimsoll.multihost.totals import merged
from plimsoll.results.distributions import quantile_ms
from plimsoll.units import NS_PER_S
from tests.support.judged_runs import judged

Host = Callable[..., Path]
FIGURES = (
    "database_read",
    "database_write",
    "maintenance",
    "log_write",
    "log_read_with_replication",
)


def combined(*paths: Path, out: Path, **choices: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summary and verdict of some run folders."""
    home, found = combine([(None, path) for path in paths], out, **choices)
    verdict = found.plain()
    return folder.read_json(home / folder.SUMMARY), verdict


def refusal(*paths: Path, out: Path, **choices: Any) -> str:
    with pytest.raises(CombineError) as caught:
        combined(*paths, out=out, **choices)
    assert not out.exists(), "what was refused leaves nothing behind"
    return str(caught.value)


def transferred(home: Path, metric: str, first_s: float, last_s: float) -> tuple[int, int]:
    """Transfers and bytes in the samples within some seconds of a run, counted by hand."""
    row = duckdb.execute(
        "SELECT sum(count)::BIGINT, sum(bytes)::BIGINT FROM read_parquet(?) WHERE metric = ? AND "
        "phase = 'measure'"
        " AND end_ns - interval_ns >= ? AND end_ns <= ?",
        [str(home / folder.SAMPLES), metric, int(first_s * NS_PER_S), int(last_s * NS_PER_S)],
    ).fetchall()[0]
    return int(row[0]), int(row[1])


def test_JST_20_the_sum_over_hosts_is_the_total(host: Host, tmp_path: Path) -> None:
    """JST-20: all servers listed separately and summed.

    A total that is not the sum of what stands above it is worth nothing.
    """
    paths = [host("alpha"), host("beta", 30.0), host("gamma", 45.0, machine="other")]
    summary, verdict = combined(*paths, out=tmp_path / "all")
    rows, total = summary["hosts"], summary["total"]
    assert [row["host"] for row in rows] == ["alpha", "beta", "gamma"]
    for key in ("database_iops", "transactions_per_s", "errors_in_run", "hung_in_run"):
        assert total[key] == sum(row[key] for row in rows), key
    for figure in FIGURES:
        for key in ("count", "errors", "per_s", "bytes_per_s"):
            assert total[figure][key] == sum(row[figure][key] for row in rows), (figure, key)
    assert total["transactions"]["count"] == sum(row["transactions"]["count"] for row in rows)
    assert total["final_bytes"] == sum(row["final_bytes"] for row in rows)
    # The databases of all hosts make the same: three hosts of two databases.
    assert (
        sum(item["database_read"]["count"] for item in summary["databases"])
        == total["database_read"]["count"]
    )
    assert (
        sum(item["log_write"]["count"] for item in summary["instances"])
        == total["log_write"]["count"]
    )
    assert {check["host"] for check in verdict["checks"]} == {"alpha", "beta", "gamma"}
    assert all(check["scope"].startswith(f"{check['host']}/") for check in verdict["checks"])


def test_JST_20_only_the_common_time_is_counted(host: Host, tmp_path: Path) -> None:
    """A host that began 60 s later was alone at its end.

    What it did then says nothing of the storage under both.
    """
    alpha, beta = host("alpha"), host("beta", 60.0)
    summary, verdict = combined(alpha, beta, out=tmp_path / "all")
    assert summary["window"]["seconds"] == pytest.approx(1140)
    assert summary["overlap"]["share"] == pytest.approx(0.95)
    # On its own clock a run measures from 120 s to 1320 s; the first has its last 1140 s in common,
    # the second its first.
    expected = [
        transferred(alpha, "database_read", 180, 1320),
        transferred(beta, "database_read", 120, 1260),
    ]
    assert [row["database_read"]["count"] for row in summary["hosts"]] == [
        count for count, _ in expected
    ]
    assert summary["total"]["database_read"]["count"] == sum(count for count, _ in expected)
    size = (
        summary["total"]["database_read"]["bytes_mean"] * summary["total"]["database_read"]["count"]
    )
    assert size == pytest.approx(sum(size for _, size in expected))
    assert summary["total"]["database_iops"] == pytest.approx(
        sum(row["database_iops"] for row in summary["hosts"])
    )
    assert summary["hosts"][0]["database_iops"] == pytest.approx(329.489, rel=0.01)
    assert "only 95%" in " ".join(verdict["not_qualifying_because"])


def test_JST_20_percentiles_of_all_come_from_all_transfers(host: Host, tmp_path: Path) -> None:
    """The mean of two percentiles is no percentile.

    With one slow host of two, the p50 of all lies between and the p99 is the slow one's.
    """
    fast, slow = host("fast", of="slow"), host("slow", of="slow")
    halved = {"latency_ns": 0.5}
    duckdb.execute(
        f"COPY (SELECT * REPLACE ((upper_ns * {halved['latency_ns']} * 0.2)::UBIGINT AS upper_ns) "
        f"FROM read_parquet('{fast}/histograms.parquet'))"
        f" TO '{fast}/other.parquet' (FORMAT parquet)"
    )
    (fast / "other.parquet").replace(fast / folder.HISTOGRAMS)
    summary, _ = combined(fast, slow, out=tmp_path / "all")
    quick, late = (row["database_read"] for row in summary["hosts"])
    total = summary["total"]["database_read"]
    assert quick["latency_ms_p50"] == pytest.approx(late["latency_ms_p50"] / 10, rel=1e-3)
    assert total["latency_ms_p99"] > 0.9 * (quick["latency_ms_p99"] + late["latency_ms_p99"]) / 2
    by_hand = duckdb.execute(
        "SELECT upper_ns::BIGINT, sum(count)::BIGINT FROM read_parquet(?) WHERE metric = "
        "'database_read' AND phase = 'measure'"
        " GROUP BY upper_ns ORDER BY upper_ns",
        [[str(home / folder.HISTOGRAMS) for home in (fast, slow)]],
    ).fetchall()
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        assert total[f"latency_ms_{name}"] == quantile_ms(by_hand, share)
    assert merged([[(1, 2)], [(1, 3), (4, 5)]]) == [(1, 5), (4, 5)]


def test_JST_20_the_worst_host_decides(host: Host, tmp_path: Path) -> None:
    """One host that waits 25 ms for a read fails all of them, and the reason names it."""
    _, verdict = combined(host("alpha", of="slow"), host("beta", of="slow"), out=tmp_path / "both")
    assert verdict["result"] == "fail"
    alpha = host("good")
    _, verdict = combined(alpha, host("bad", of="slow"), out=tmp_path / "all")
    assert verdict["result"] == "fail"
    assert [row["result"] for row in verdict["hosts"]] == ["pass", "fail"]
    assert all(reason.startswith("bad: ") for reason in verdict["reasons"])
    assert "(by themselves 1 fail, 1 pass" in verdict["headline"]


@pytest.mark.parametrize(("required", "result"), [(600.0, "pass"), (10_000.0, "fail")])
def test_JST_20_all_must_make_together_what_their_plan_requires(
    host: Host, tmp_path: Path, required: float, result: str
) -> None:
    """Two hosts of 329 a second each are within every limit.

    Whether that is enough for 10,000 only their sum can tell.
    """
    paths = [host("alpha"), host("beta")]
    for path in paths:
        plan = folder.read_json(path / folder.PLAN)
        plan["judgement"]["hosts"] = {"all": ["alpha", "beta"], "required_iops": required}
        folder.write_json(path / folder.PLAN, plan)
    _, verdict = combined(*paths, out=tmp_path / "all")
    assert verdict["result"] == result
    assert [row["result"] for row in verdict["hosts"]] == ["pass", "pass"]
    assert verdict["required_iops"] == required
    assert verdict["headroom"] == pytest.approx(2 * 329.489 / required, rel=0.01)
    assert "margin" not in verdict["headline"]
    if result == "fail":
        assert verdict["reasons"][0].startswith(
            "Database IOPS that the plan requires (all hosts): 65"
        )
        for path in paths:
            plan = folder.read_json(path / folder.PLAN)
            plan["judgement"]["margin_percent"] = 95
            folder.write_json(path / folder.PLAN, plan)
        _, granted = combined(*paths, out=tmp_path / "granted")
        assert granted["headline"].startswith(
            "Rehearsal passed with a margin of 95 % on 2 hosts together"
        )
    gamma = host("gamma")
    folder.write_json(
        gamma / folder.PLAN,
        {
            **folder.read_json(paths[0] / folder.PLAN),
            "run": folder.read_json(gamma / folder.PLAN)["run"],
        },
    )
    assert "host beta of the plan is missing" in refusal(paths[0], gamma, out=tmp_path / "other")


@pytest.mark.parametrize("later_s", [400.0, 5000.0])
def test_hosts_that_measured_one_after_the_other_are_refused(
    host: Host, tmp_path: Path, later_s: float
) -> None:
    """Two half loads one after the other are not one whole load, however good they look."""
    words = refusal(host("alpha"), host("beta", later_s), out=tmp_path / "all")
    assert ("at no time" in words) == (later_s > 1200)
    assert "--start-at" in words
    if later_s < 1200:
        assert "--overlap-percent 66" in words
        _, verdict = combined(
            tmp_path / "alpha", tmp_path / "beta", out=tmp_path / "all", overlap_percent=60
        )
        assert not verdict["qualifying"]


def test_the_same_run_or_host_twice_is_refused(host: Host, tmp_path: Path) -> None:
    """Counted twice it would be twice the storage."""
    alpha = host("alpha")
    shutil.copytree(alpha, tmp_path / "copy")
    assert "are the same run" in refusal(alpha, tmp_path / "copy", out=tmp_path / "all")
    again = host("again", 1.0, machine="alpha.example.org")
    assert "one machine is one host" in refusal(alpha, again, out=tmp_path / "all")
    plan = folder.read_json(again / folder.PLAN)
    plan["run"]["hosts"] = [{"name": "alpha"}]
    folder.write_json(again / folder.PLAN, plan)
    assert "are both of host alpha" in refusal(alpha, again, out=tmp_path / "all")
    # Who knows better says so, and it is kept in mind.
    home, _ = combine([("one", alpha), ("two", again)], tmp_path / "named")
    assert "one and two are one machine" in said_of(home)


def said_of(home: Path) -> str:
    """What a reader of the result is told first."""
    return " ".join(warnings_of(*read(home)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plan: plan["run"]["instances"][0].update(page_bytes=8192), "different page sizes"),
        (lambda plan: plan["judgement"].update(editions=["2007"]), "different editions"),
        (lambda plan: plan["judgement"].update(test="stress"), "different kinds of test"),
        (lambda plan: plan["judgement"].update(limits="lenient"), "different limit sets"),
    ],
)
def test_different_plans_are_refused_unless_told(
    host: Host, tmp_path: Path, change: Any, words: str
) -> None:
    """An I/O of 8 KiB and one of 32 KiB do not add up to two of anything."""
    alpha, beta = host("alpha"), host("beta")
    plan = folder.read_json(beta / folder.PLAN)
    change(plan)
    folder.write_json(beta / folder.PLAN, plan)
    said = refusal(alpha, beta, out=tmp_path / "all")
    assert words in said
    assert "--different-plans" in said
    combined(alpha, beta, out=tmp_path / "all", different_plans=True)


def test_what_was_not_measured_is_refused(host: Host, tmp_path: Path) -> None:
    """A prediction, an imported report, a run without a load or nothing at all.

    Each by its name, all at once.
    """
    alpha, modelled, idle = host("alpha"), host("modelled"), host("idle")
    summary = folder.read_json(modelled / folder.SUMMARY)
    folder.write_json(modelled / folder.SUMMARY, {**summary, "virtual_time": True})
    outcome = folder.read_json(idle / folder.OUTCOME)
    outcome["phases"] = [phase for phase in outcome["phases"] if phase["kind"] != "measure"]
    folder.write_json(idle / folder.OUTCOME, outcome)
    words = refusal(alpha, modelled, idle, tmp_path / "nowhere", out=tmp_path / "all")
    assert f"{modelled} is MODELLED" in words
    assert f"{idle}: nothing was measured under load" in words
    assert "nowhere" in words
    assert "two hosts or more" in refusal(alpha, out=tmp_path / "all")


def test_copies_of_one_database_are_warned_of(host: Host, tmp_path: Path) -> None:
    """The same plan on two hosts makes the same records, and an array that deduplicates keeps them
    once.
    """
    alpha, beta = host("alpha"), host("beta")
    for home in (alpha, beta):
        plan = folder.read_json(home / folder.PLAN)
        for instance in plan["run"]["instances"]:
            instance["databases"][0]["seed"] = 7
        folder.write_json(home / folder.PLAN, plan)
    home, _ = combine([(None, alpha), (None, beta)], tmp_path / "all")
    assert "were made from the same seed" in said_of(home)


def test_the_command_says_it_all(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder like that of a run.

    Listed, compared, packed without names, judged again from itself.
    """
    alpha, beta = host("alpha"), host("beta", 5.0)
    out = tmp_path / "both"
    assert run_program(["combine", str(alpha), f"second={beta}", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Rehearsal passed on 2 hosts together" in said
    assert "All hosts" in said
    assert "clocks that are a second apart" in said
    page = (out / folder.REPORT).read_text()
    assert "second/<wbr>instance1/<wbr>database001" in page
    assert "Share that is common" in page
    assert "Not a qualification, because" in page
    shutil.rmtree(alpha)
    before = folder.read_json(out / folder.SUMMARY)
    assert run_program(["report", str(out)]) == 0
    assert folder.read_json(out / folder.SUMMARY) == before, "judged from the copies"
    assert run_program(["combine", str(beta), str(out / "host-1"), "--out", str(out)]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    for verb in ("watch", "export", "resume"):
        assert run_program([verb, str(out)]) == 2
        assert f"{verb} one of them: {out / 'host-1'}" in capsys.readouterr().err
    assert run_program(["combine", str(out), str(beta)]) == 2
    assert "combined already" in capsys.readouterr().err
    assert run_program(["compare", str(beta), str(out)]) == 0
    assert "Database IOPS" in capsys.readouterr().out
    assert run_program(["runs", str(out), "--json"]) == 0
    listed = {entry["folder"]: entry for entry in json.loads(capsys.readouterr().out)["runs"]}
    assert listed["both"]["result"] == "pass"
    assert listed["both"]["database_iops"] == pytest.approx(2 * 329.489, rel=0.01)


def test_nothing_is_left_where_combining_was_stopped(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the copies would be taken for the result of all hosts."""
    runs, out = [host("alpha"), host("beta")], tmp_path / "both"
    copy, copied = shutil.copytree, []

    def stopped(*places: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(copy(*places))

    monkeypatch.setattr(shutil, "copytree", stopped)
    assert run_program(["combine", *map(str, runs), "--out", str(out)]) == exit_codes.INTERRUPTED
    assert copied
    assert not out.exists()


def test_no_host_is_left_in_a_redacted_archive(host: Host, tmp_path: Path) -> None:
    """Names of hosts stand before every database of a combined run.

    None of them may leave the house.
    """
    out = tmp_path / "both"
    assert (
        run_program(["combine", str(host("alphahost")), str(host("betahost")), "--out", str(out)])
        == 0
    )
    archive = tmp_path / "sent.tar.gz"
    assert run_program(["pack", str(out), "--redact", "--out", str(archive)]) == 0
    assert run_program(["unpack", str(archive), "--to", str(tmp_path / "got")]) == 0
    for path in sorted((tmp_path / "got").rglob("*")):
        assert "alphahost" not in path.name
        if path.is_file():
            content = path.read_bytes()
            assert b"alphahost" not in content and b"betahost" not in content, path.name
    assert (tmp_path / "got" / folder.REPORT).exists()


def test_a_wall_clock_that_was_set_shows(tmp_path: Path) -> None:
    """Times go there and back over a jump of the wall clock."""
    anchors = [{"monotonic_ns": 0, "utc_ns": 1000}, {"monotonic_ns": 50, "utc_ns": 2050}]
    assert [utc_ns_of(time, anchors) for time in (10, 49, 50, 60)] == [1010, 1049, 2050, 2060]
    assert [monotonic_ns_of(utc, anchors) for utc in (1010, 2060, 0)] == [10, 60, 0]


def common_plan(homes: list[Path], required: float) -> None:
    """Make runs those of one plan that requires a rate of all hosts together."""
    for home in homes:
        plan = folder.read_json(home / folder.PLAN)
        plan["judgement"]["hosts"] = {"all": ["alpha", "beta"], "required_iops": required}
        folder.write_json(home / folder.PLAN, plan)


def test_a_burst_of_all_hosts_carries_no_requirement(host: Host, tmp_path: Path) -> None:
    """Each host alone was held to what it sustained.

    All of them together were held to the mean over their burst.
    """
    homes = [host("alpha"), host("beta")]
    for home in homes:
        samples = home / folder.SAMPLES
        late = (
            "phase = 'measure' AND end_ns > 420000000000 AND metric IN ('database_read', "
            "'database_write')"
        )
        duckdb.sql(
            f"COPY (SELECT * REPLACE (CASE WHEN {late} THEN count // 10 ELSE count END::UBIGINT AS "
            f"count)"
            f" FROM '{samples}') TO '{home / 'changed'}' (FORMAT parquet)"
        )
        (home / "changed").replace(samples)
    common_plan(homes, 150.0)
    summary, verdict = combined(*homes, out=tmp_path / "all")
    assert summary["total"]["database_iops"] > 180
    assert summary["sustained"]["database_iops"] == pytest.approx(66, rel=0.05)
    assert summary["plateaus"]["kind"] == "burst"
    check = next(check for check in verdict["checks"] if check["scope"] == "all hosts")
    assert (check["status"], verdict["result"]) == ("fail", "fail")
    assert any("all hosts: measured while bursting" in text for text in verdict["warnings"])
    assert "sustained" in verdict["throughput"]


def test_errors_of_a_host_from_before_its_gap_count(host: Host, tmp_path: Path) -> None:
    """An error does not go away with the process that saw it, nor by adding another host."""
    homes = [host("alpha"), host("beta")]
    gap = {
        "phase": "measure",
        "completed": ["prepare"],
        "cut_off_utc": "",
        "resumed_utc": "",
        "seconds": 60.0,
        "phase_seconds_before": 60.0,
        "errors_before": 2,
    }
    folder.write_json(homes[0] / folder.GAPS, {"schema_version": 1, "gaps": [gap]})
    judged(homes[0])
    summary, verdict = combined(*homes, out=tmp_path / "all")
    assert [row["errors_in_run"] for row in summary["hosts"]] == [2, 0]
    assert summary["total"]["errors_in_run"] == 2
    assert verdict["result"] == "fail"


def test_a_host_without_a_processor_is_no_fault_of_the_storage_of_all(
    host: Host, tmp_path: Path
) -> None:
    """All hosts together failed by a rate that a starved load generator did not ask for."""
    homes = [host("alpha"), host("beta")]
    common_plan(homes, 700.0)
    _, quiet = combined(*homes, out=tmp_path / "quiet")
    assert quiet["result"] == "fail"
    summary = folder.read_json(homes[0] / folder.SUMMARY)
    summary["machine"]["executor_wait"] = {"mean": 0.25, "min": 0.25, "max": 0.25}
    folder.write_json(homes[0] / folder.SUMMARY, summary)
    _, verdict = combined(*homes, out=tmp_path / "all")
    assert verdict["result"] == "inconclusive"
    assert verdict["doubts"][0].startswith("alpha: the load generator's thread was ready")
    common_plan(homes, 900.0)
    _, verdict = combined(*homes, out=tmp_path / "more")
    assert verdict["result"] == "fail", "a quarter of one host's time is no third of all"


def test_the_headline_of_all_says_what_that_of_one_does(host: Host, tmp_path: Path) -> None:
    """Through the page cache, said the headline of a host, and nothing of it that of all."""
    homes = [host("alpha"), host("beta")]
    outcome = folder.read_json(homes[0] / folder.OUTCOME)
    outcome["io_remarks"] = ["buffered I/O in /srv/array: direct I/O is not supported"]
    folder.write_json(homes[0] / folder.OUTCOME, outcome)
    judged(homes[0])
    _, verdict = combined(*homes, out=tmp_path / "cached")
    assert "through the page cache on 2 hosts" in verdict["headline"]
    gap = {
        "phase": "measure",
        "completed": [],
        "cut_off_utc": "",
        "resumed_utc": "",
        "seconds": 1.0,
        "phase_seconds_before": 1.0,
        "errors_before": 1,
    }
    folder.write_json(homes[1] / folder.GAPS, {"schema_version": 1, "gaps": [gap]})
    judged(homes[1])
    _, verdict = combined(*homes, out=tmp_path / "failed")
    assert verdict["headline"].startswith("Fail by I/O errors")
