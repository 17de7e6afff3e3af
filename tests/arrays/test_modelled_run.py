"""A run on a modelled array as a user makes it.

The same folder, verdict and report as a real one, MODELLED throughout.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.documents.verdict import Check, Doubt
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options, read_plan
from plimsoll.verdict.homes import _achieved as achieved
from plimsoll.verdict.prediction import (
    NOT_ALL_EVALUATED,
    NOTHING_PREDICTED,
    PREDICTED_FAIL,
    PREDICTED_PASS,
    TOO_CLOSE,
    predict,
    predicted_checks,
)
from plimsoll.verdict.store import _refused as refused

SHORT = ["--sessions", "3", "--cache-mib", "16", "--minutes", "0.25", "--quiet", "--json"]


def modelled(out: Path, *arguments: str) -> dict[str, Any]:
    """A short performance test on a modelled array; its verdict."""
    done = CliRunner().invoke(
        app, ["test", "performance", "--modelled", *arguments, *SHORT, "--out", str(out)]
    )
    assert done.exit_code in (0, 1, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def emc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of the EMC array."""
    folder = tmp_path_factory.mktemp("emc") / "run"
    verdict = modelled(folder, "emc-vnxe3300")
    assert verdict["prediction"]["result"] == PREDICTED_PASS
    return folder


def test_a_modelled_run_says_where_a_cache_may_hold_its_databases(tmp_path: Path) -> None:
    """Cached databases flatter a simulated array, too."""
    verdict = modelled(tmp_path / "run", "nearline-raid6", "--size-mib", "64")
    reasons = verdict["not_qualifying_because"]
    assert "MODELLED" in reasons[0]
    assert "times its cache" in reasons[1]


def test_a_modelled_run_says_so_everywhere(emc: Path) -> None:
    """A modelled figure that passed for a measured one would sell the wrong array."""
    page = (emc / "report.html").read_text(encoding="utf-8")
    assert "<title>MODELLED" in page and 'class="modelled"' in page
    # Fixed on paper, so that the mark is on every printed page.
    assert re.search(r"@media print \{[^@]*\.modelled \{ position: fixed", page)
    verdict = json.loads((emc / "verdict.json").read_text(encoding="utf-8"))
    assert "MODELLED" in verdict["headline"] and not verdict["qualifying"]
    assert json.loads((emc / "outcome.json").read_text(encoding="utf-8"))["virtual_time"]
    for text in (
        "Nearest validated point",
        "planner&#39;s formula",
        "First to give way",
        "emc-3-threads",
    ):
        assert text in page, text


def test_the_checks_of_a_modelled_run_predict(emc: Path) -> None:
    """`pass` beside a figure headed `Measured` is what a reader remembers of a page, whatever its
    banner says.
    """
    page = (emc / "report.html").read_text(encoding="utf-8")
    checks = page[page.index('id="checks"') : page.index('id="modelled"')]
    assert "✓ predicted pass" in checks and "Modelled" in checks and "% either way" in checks
    assert "✓ pass" not in checks and ">Measured<" not in checks
    assert "✓ predicted within its limit" in page and "✓ within its limit" not in page
    assert "simulated for 15" in page
    # Every figure of the drive stands there with its source too.
    assert "drive: read seek ms" in page and "Seagate manuals list access" in page


def test_MON_02_the_array_counts_what_the_host_counts(emc: Path) -> None:
    """Volumes and members of the array add up to the host's transfers.

    Nothing is lost or counted twice between them.
    """
    outcome = json.loads((emc / "outcome.json").read_text(encoding="utf-8"))
    report = next(phase["array"] for phase in outcome["phases"] if phase["kind"] == "measure")
    by_volume = sum(row["read_count"] + row["write_count"] for row in report["volumes"])
    by_member = sum(row["read_count"] + row["write_count"] for row in report["members"])
    assert by_volume == by_member
    summary = json.loads((emc / "summary.json").read_text(encoding="utf-8"))
    total = summary["total"]
    names = (
        "database_read",
        "database_write",
        "maintenance",
        "log_write",
        "log_read",
        "log_replication",
    )
    host = sum(total[name]["count"] for name in names)
    assert host > 1000
    assert by_volume == pytest.approx(host, rel=0.02)


def test_MON_02_the_report_says_who_waits_at_which_stage(emc: Path) -> None:
    """A busy stage tells where to look, a long stay what it costs.

    Little's law ties both to the rate in every row of the table.
    """
    report = json.loads((emc / "summary.json").read_text(encoding="utf-8"))["array"]
    for stage in report["stages"]:
        by_stays = stage["per_second"] * stage["stay_ms_mean"] / 1000
        assert stage["per_second"] > 1
        assert stage["present_mean"] == pytest.approx(by_stays, rel=0.02), stage["stage"]
    dirty = report["members"][0]["dirty"]
    assert dirty["present_mean"] > 0 and dirty["stay_ms_mean"] > 1
    page = (emc / "report.html").read_text(encoding="utf-8")
    assert "Stay, mean (ms)" in page and "Dirty for, mean (ms)" in page


def test_the_same_seed_gives_the_same_figures(emc: Path, tmp_path: Path) -> None:
    """A prediction that changes when it is repeated is none."""
    modelled(tmp_path / "again", "emc-vnxe3300")
    first, again = ((folder / "summary.json").read_bytes() for folder in (emc, tmp_path / "again"))
    assert first == again


def test_HA_04_a_failed_drive_slows_the_engine(emc: Path, tmp_path: Path) -> None:
    """A degraded RAID 5 reads its lost pages from all its other drives.

    The test of a failure is a change of one figure.
    """
    modelled(tmp_path / "degraded", "emc-vnxe3300", "--change", "failed_drive_count=1")
    healthy, degraded = (
        json.loads((folder / "summary.json").read_text(encoding="utf-8"))["total"]["database_read"][
            "latency_ms_mean"
        ]
        for folder in (emc, tmp_path / "degraded")
    )
    assert degraded > 1.2 * healthy


def prediction_of(measured: float, limit: float = 20.0) -> str:
    """What a mean read latency predicts on the EMC array."""
    check = Check(
        name="database_read_latency_mean",
        title="reads",
        scope="db",
        metric="database_read",
        statistic="mean",
        measured=measured,
        limit=limit,
        unit="ms",
        reason="",
        source="",
        status="pass" if measured <= limit else "fail",
    )
    plan = plan_of_options(
        {"target": [{"name": "t", "modelled": "emc-vnxe3300"}], "instance": [{"name": "i"}]}
    )
    return predict(plan, predicted_checks(plan, [check])).result


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(10.0, PREDICTED_PASS), (19.5, TOO_CLOSE), (20.5, TOO_CLOSE), (30.0, PREDICTED_FAIL)],
)
def test_a_band_across_the_limit_is_too_close_to_call(measured: float, expected: str) -> None:
    """A model that is off by a tenth cannot tell 19.5 from 20.5 ms, and must not pretend to."""
    assert prediction_of(measured) == expected


def test_what_was_not_evaluated_predicts_no_pass() -> None:
    """A cache held the whole database, nothing was read, and its read latency "passed"."""
    plan = plan_of_options(
        {"target": [{"name": "a", "modelled": "emc-vnxe3300"}], "instance": [{"name": "one"}]}
    )
    check = Check(
        name="database_read_latency_mean",
        title="Average database read latency",
        scope="db",
        metric="database_read",
        statistic="mean",
        measured=None,
        limit=20.0,
        unit="ms",
        status="not_evaluated",
        reason="nothing of the kind was measured",
        source="",
    )
    found = predict(plan, predicted_checks(plan, [check]))
    assert found.result == NOTHING_PREDICTED
    assert list(found.reasons) == [f"{check.title} (db): {check.reason}"]
    # Next to a figure that is known, what is not known leaves it open, and is called so.
    known = check.replace(measured=5.0, status="pass", reason="5 ms is within the limit")
    both = predict(plan, predicted_checks(plan, [check, known]))
    assert both.result == NOT_ALL_EVALUATED
    near = check.replace(measured=19.5, status="pass")
    assert predict(plan, predicted_checks(plan, [check, near])).result == TOO_CLOSE


@pytest.mark.parametrize("name", ["load_window", "store_refused", "load_overlap"])
def test_a_load_that_was_not_as_planned_is_not_evaluated_and_not_too_close(name: str) -> None:
    """Outside of its window no band of a model lies about a limit."""
    plan = plan_of_options(
        {"target": [{"name": "a", "modelled": "emc-vnxe3300"}], "instance": [{"name": "one"}]}
    )
    check = Check(
        name=name,
        scope="orders",
        metric="operations",
        statistic="overlap" if name == "load_overlap" else "window",
        measured=12.0,
        limit=10.0,
        unit="%",
        status="not_evaluated",
        reason="the load was not as planned",
    )
    (found,) = predicted_checks(plan, [check])
    assert found.predicted is None
    prediction = predict(plan, [found])
    assert prediction.result == NOTHING_PREDICTED
    assert [text.count("not as planned") for text in prediction.reasons] == [1]
    (passed,) = predicted_checks(plan, [check.replace(status="pass")])
    assert passed.predicted == PREDICTED_PASS


def test_what_failed_by_a_count_is_never_too_close_to_call() -> None:
    """Orders without room failed, and next to it stood that a band about the limit hid it."""
    plan = plan_of_options(
        {"target": [{"name": "a", "modelled": "emc-vnxe3300"}], "instance": [{"name": "one"}]}
    )
    figures: Any = SimpleNamespace(
        workload="orders",
        orders_count=9000,
        connections_lost_count=0,
        answers_lost_count=0,
        answers_refused_count=0,
        connections_refused_count=0,
        given_up_count=0,
        no_space_count=7,
        sessions=20,
    )
    (found,) = predicted_checks(plan, [refused(figures)])
    assert (found.status, found.predicted) == ("fail", PREDICTED_FAIL)


@pytest.mark.parametrize(
    ("percent", "expected"), [(94.0, TOO_CLOSE), (40.0, PREDICTED_FAIL), (99.0, None)]
)
def test_scenarios_that_did_not_end_are_predicted_with_the_band_of_a_rate(
    percent: float, expected: str | None
) -> None:
    """A fifth of the planned rate was "too close to call" next to "Fail"."""
    plan = plan_of_options(
        {"target": [{"name": "a", "modelled": "emc-vnxe3300"}], "instance": [{"name": "one"}]}
    )
    figures: Any = SimpleNamespace(
        workload="users", achieved_percent=percent, is_overloaded=percent < 95
    )
    (found,) = predicted_checks(plan, [achieved(figures, 95)])
    assert (found.status, found.predicted) == ("pass" if percent > 95 else "fail", expected)


def test_stalls_of_a_small_cache_predict_no_failure_of_the_array() -> None:
    """The array answered in 0.05 ms at forty times the required rate, and was predicted to fail."""
    plan = plan_of_options(
        {"target": [{"name": "a", "modelled": "emc-vnxe3300"}], "instance": [{"name": "one"}]}
    )
    check = Check(
        name="page_fault_stalls",
        title="Page faults that found no free buffer",
        scope="one",
        metric="page_fault_stall",
        statistic="per_s",
        measured=112,
        limit=0,
        unit="1/s",
        status="fail",
        reason="112 per second is above the limit of 0 per second",
        source="",
        doubts=(Doubt(name="page_fault_stalls", text="the cache, not the storage, was the limit"),),
    )
    found = predict(plan, predicted_checks(plan, [check]))
    assert found.result == TOO_CLOSE
    assert "the cache, not the storage, was the limit" in found.reasons[0]
    sure = predict(plan, predicted_checks(plan, [check.replace(doubts=())]))
    assert sure.result == PREDICTED_FAIL


def test_every_mistake_of_an_array_is_told_with_its_line(tmp_path: Path) -> None:
    """RAID 5 of two drives, too few slots, a dead link, a missing unit, an unknown drive.

    Corrected in one go.
    """
    shipped = Path(__file__).parents[2] / "python/plimsoll/data/modelled_arrays.toml"
    text = shipped.read_text(encoding="utf-8").split("[[arrays]]")
    array = "[[arrays]]" + text[1]
    for old, new in (
        ("sets = [7]", "sets = [2]"),
        ("slot_count = 120", "slot_count = 1"),
        ("link_mb_per_s = 85", "link_mb_per_s = 0"),
        ("read_latency_ms = 1.2", "read_latency = 1.2"),
        ('drive = "cheetah-15k7-600gb"', 'drive = "cheetah-15k7-600"'),
    ):
        assert old in array
        array = array.replace(old, new, 1)
    path = tmp_path / "array.toml"
    path.write_text(text[0] + array, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'kind = "plan"\nschema_version = 1\n[[target]]\nname = "t"\nmodelled = '
        f'"{path}"\n[[instance]]\nname = "i"\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError) as refusal:
        read_plan(plan)
    told = str(refusal.value)
    for words in (
        "no RAID 5 can be made",
        "is 1, but 2 drives",
        "link_mb_per_s",
        "write `read_latency_ms`",
        "did you mean",
    ):
        assert words in told, told
    assert len(re.findall(rf"{re.escape(str(path))}:\d+ ", told)) >= 5


def test_more_than_an_array_holds_is_refused() -> None:
    """The commonest impossible wish: databases larger than the drives."""
    wanted = {
        "target": [{"name": "t", "modelled": "dell-md3000i"}],
        "instance": [{"name": "i", "database_size_mib": 4_000_000, "backend": "raw_files"}],
    }
    with pytest.raises(InputError) as refusal:
        plan_of_options(wanted)
    assert "the array holds 600 GB" in str(refusal.value)
    assert "raw_files" in str(refusal.value)


def test_an_unknown_drive_among_the_changes_is_a_mistake_with_the_nearest_names() -> None:
    """Naming a drive is the commonest what-if question, and misspelling one must not end in a
    traceback.
    """
    for command in (
        ["model", "nearline-raid6"],
        ["test", "performance", "--modelled", "nearline-raid6", "--dry-run"],
    ):
        done = CliRunner().invoke(app, [*command, "--change", "drive='nearline-7k2'"])
        assert done.exit_code == 2, done.output
        assert "`target[1].changes.drive`" in done.stderr
        assert "did you mean `nearline-7k2-6tb`" in done.stderr


def test_a_file_of_arrays_that_is_not_there_is_named() -> None:
    """`cannot be read` without a name leaves a user guessing which of two files it was."""
    done = CliRunner().invoke(app, ["model", "no-such-file.toml"])
    assert done.exit_code == 2
    assert "no-such-file.toml cannot be read" in done.stderr


def test_HA_04_a_drive_that_fails_while_measured_is_rebuilt_and_told(
    emc: Path, tmp_path: Path
) -> None:
    """The failure comes after the warm-up, the spare is filled meanwhile, and terminal and report
    say how far it is.
    """
    change = ["spare_count=1", "faults=[{what='drive fails', number=2, after_s=5}]"]
    modelled(
        tmp_path / "run", "emc-vnxe3300", *(word for item in change for word in ("--change", item))
    )
    outcome = json.loads((tmp_path / "run/outcome.json").read_text(encoding="utf-8"))
    by_kind = {phase["kind"]: phase["array"] for phase in outcome["phases"]}
    assert by_kind["warm_up"]["rebuilds"] == []
    rebuild = by_kind["measure"]["rebuilds"][0]
    assert rebuild["duration_s"] == pytest.approx(15 - 5, abs=0.1)
    assert 0 < rebuild["share"] < 0.01
    # Databases that did not fill the array as those of the healthy one do would be short-stroked
    # and faster.
    sizes = [
        json.loads((folder / "plan.json").read_text(encoding="utf-8"))["run"]["instances"][0][
            "databases"
        ][0]["size_bytes"]
        for folder in (tmp_path / "run", emc)
    ]
    assert sizes[0] == sizes[1]
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "drive 2 fails 5 s into the measurement" in page
    assert "A spare was filled to" in page


def test_a_pass_on_burst_credits_is_too_close_to_call(tmp_path: Path) -> None:
    """A volume that lives on credits passes for an hour and fails from then on.

    A prediction of a pass would sell it.
    """
    verdict = modelled(tmp_path / "run", "cloud-volume")
    assert verdict["prediction"]["result"] == TOO_CLOSE
    assert any("lived on burst credits" in reason for reason in verdict["prediction"]["reasons"])


def test_MON_02_the_report_shows_the_hosts_counts_below_the_arrays(emc: Path) -> None:
    """An administrator compares the two by eye.

    They stand one below the other, and every figure has its source beside it.
    """
    page = (emc / "report.html").read_text(encoding="utf-8")
    row_of = {
        name: [float(text.replace(",", "")) for text in re.findall(r"<td[^>]*>([\d,.]+)</td>", row)]
        for name in ("Together", "Host")
        for row in re.findall(rf"<tr[^>]*><t[dh][^>]*>{name}</t[dh]>(.*?)</tr>", page, re.DOTALL)
    }
    array, host = row_of["Together"], row_of["Host"]
    assert array[0] == pytest.approx(host[0], rel=0.02)
    # File headers and log generations written in advance are in the array's sum alone.
    assert host[1] < array[1] < 1.08 * host[1]
    assert "EMC VNXe3300 ESRP report, Tables 2 to 4" in page
