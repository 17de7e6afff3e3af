"""What the published performance report does not hold.

Backup and recovery, the host's inventory, guilt, searches, limits of size.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.documents.outcome import SearchResult
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.host import hardware
from plimsoll.host.environment import collect
from plimsoll.pages.chart_script import script_bundle
from plimsoll.report import engine_ratios, write_report
from plimsoll.report.page import render
from tests.support.chart_schema import hold_charts
from tests.support.plain_stages import filled
from tests.support.report_page import Page
from tests.support.synthetic import EMC, finish, make_folder, make_slow_folder, transfers

MIB = 1048576


def number(text: str) -> float:
    return float(text.replace(",", "").split()[0])


def test_RPT_14_backup_statistics(tmp_path: Path) -> None:
    """Rate is size by time; the time of all is the longest and their rate the sum, as in the
    published report.
    """
    further = [
        # 100 samples of 2 s with 118 MiB each, and 99 such samples.
        transfers(
            "checksum", "instance1", "backup", 1, range(7400, 7600, 2), 2, (472, 118 * MIB, 10**9)
        ),
        transfers(
            "checksum", "instance2", "backup", 1, range(7402, 7600, 2), 2, (472, 118 * MIB, 10**9)
        ),
    ]
    run = finish(make_folder(tmp_path / "run", further=further))
    table = Page(run / folder.REPORT).tables["Backup statistics"]
    assert table.row("instance1/database001") == ["11,800.00", "0:03:20", "59.00", "2.119", "0.50"]
    assert table.row("instance2/database001") == ["11,682.00", "0:03:18", "59.00", "2.119", "0.50"]
    assert table.row("(Average)") == ["11,741.00", "–", "59.00", "–", "–"]
    assert table.row("(Sum)") == ["23,482.00", "0:03:20", "118.00", "–", "–"]


def test_RPT_15_soft_recovery_statistics(tmp_path: Path) -> None:
    """Logs, seconds and seconds for each log, with MiB per second beside them because a count of
    logs can mislead.
    """
    further = [
        transfers("prepare", "instance1", "log_read", 0, range(12, 112, 2), 2, (9, 2 * MIB, 10**8)),
        transfers(
            "prepare", "instance1", "redo", 1, range(12, 112, 2), 2, (700, 700 * 32768, 10**10)
        ),
        # Log that is only read, for replication or verification, is no recovery.
        transfers("prepare", "instance2", "log_read", 0, range(12, 112, 2), 2, (9, 2 * MIB, 10**8)),
    ]
    run = finish(make_folder(tmp_path / "run", further=further))
    table = Page(run / folder.REPORT).tables["Soft recovery statistics"]
    assert table.rows == [["instance1", "100.0", "100.000", "1.000", "1.00"]]
    each = Page(run / folder.REPORT).tables["Soft recovery I/O for each log"]
    assert each.row("instance1")[:4] == ["350.0", "350.0", "0.00", "4.50"]


def test_a_run_without_backup_and_recovery_does_not_speak_of_them(published: Path) -> None:
    """An empty table would look like a backup that read nothing."""
    headings = Page(published / folder.REPORT).headings
    assert "Backup" not in headings
    assert "Soft recovery" not in headings


def test_RPT_31_the_inventory_is_collected_without_privileges(tmp_path: Path) -> None:
    """Server, processor, firmware, adapters, disks, system build.

    The fields of a published test bed.
    """
    environment = collect([tmp_path])
    assert {
        "vendor",
        "product",
        "firmware",
        "cpu_model",
        "cpu_packages",
        "memory_kib",
    } <= environment["machine"].keys()
    assert {"kernel", "build", "distribution"} <= environment["operating_system"].keys()
    assert {disk["name"] for disk in environment["disks"]} <= {
        path.name for path in Path("/sys/block").iterdir()
    }
    assert all(disk["size_bytes"] > 0 for disk in environment["disks"])


def test_RPT_31_facts_are_read_from_where_the_kernel_puts_them(tmp_path: Path) -> None:
    """On a server that is not this one: a tree like that of a published test bed."""
    content = {
        "class/dmi/id/sys_vendor": "Dell Inc.",
        "class/dmi/id/bios_vendor": "Dell Inc.",
        "class/dmi/id/bios_version": "1.1.4",
        "class/dmi/id/bios_date": "06/18/2009",
        "devices/system/cpu/cpu0/topology/physical_package_id": "0",
        "devices/system/cpu/cpu1/topology/physical_package_id": "1",
        "class/net/eth0/speed": "1000",
        "class/net/eth0/mtu": "9000",
        "class/net/eth0/operstate": "up",
        "class/net/eth0/device/vendor": "0x14e4",
        "class/net/lo/mtu": "65536",
        "block/sda/size": "143374744",
        "block/sda/device/vendor": "FUJITSU",
        "block/sda/device/model": "MBC2073RC",
        "block/sda/queue/rotational": "1",
        "block/sda/queue/scheduler": "none [mq-deadline]",
        "block/loop0/size": "8",
    }
    for name, text in content.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    facts = hardware.machine_facts(tmp_path)
    assert (facts["vendor"], facts["firmware"], facts["cpu_packages"]) == (
        "Dell Inc.",
        "Dell Inc., 1.1.4, 06/18/2009",
        2,
    )
    (adapter,) = hardware.network_adapters(tmp_path)
    assert (adapter["name"], adapter["speed_mbit_per_s"], adapter["frame_bytes_max"]) == (
        "eth0",
        1000,
        9000,
    )
    (disk,) = hardware.disks(tmp_path)
    assert (disk["model"], disk["size_bytes"], disk["rotational"]) == (
        "FUJITSU MBC2073RC",
        73407868928,
        True,
    )
    assert disk["scheduler"] == "mq-deadline"


def test_RPT_31_notes_stand_beside_what_was_found(published: Path, tmp_path: Path) -> None:
    """What no program can see is added by hand, and is told apart from what was seen."""
    run = tmp_path / "run"
    shutil.copytree(published, run)
    (run / "notes.toml").write_text(
        '"Array firmware" = "3.1.1"\n"RAID set" = "RAID 5, 6+1 <15k>"\n'
    )
    table = Page(write_report(run)).tables["Stated by those who ran the test"]
    assert table.rows == [["Array firmware", "3.1.1"], ["RAID set", "RAID 5, 6+1 <15k>"]]
    (run / "notes.toml").write_text("not a table")
    with pytest.raises(folder.FolderError, match=r"notes\.toml"):
        write_report(run)


def test_MON_06_the_limiting_layer_stands_first(tmp_path: Path) -> None:
    """A reader of a failed test wants to know whose fault it is before anything else."""
    run = finish(make_slow_folder(tmp_path / "run"))
    verdict = folder.read_json(run / folder.VERDICT)
    page = Page(run / folder.REPORT)
    assert verdict["result"] == "fail"
    assert page.headings[1].endswith("Fail (rehearsal, not a qualification)")
    guilty = [entry for entry in verdict["bottlenecks"] if entry["what"] == "check"]
    assert guilty, "a failed latency check names a layer"
    first = page.html.index("Limiting layer:")
    assert first < page.html.index("Key figures</h2>")
    assert guilty[0]["text"] in page.html[first:]
    assert [row[2] for row in page.tables["Limiting layer of each failed check"].rows] == [
        e["text"] for e in guilty
    ]
    failed = [row for row in page.tables["Checks"].rows if row[0] == "✗ FAIL"]
    assert failed == page.tables["Checks"].rows[: len(failed)], "what failed stands first"


def test_a_verdict_of_an_older_version_is_still_told(published: Path, tmp_path: Path) -> None:
    """A report of a folder whose verdict names no layer and whose checks have no source must not
    break.
    """
    run = tmp_path / "run"
    shutil.copytree(published, run)
    verdict = folder.read_json(run / folder.VERDICT)
    del verdict["bottlenecks"]
    for check in verdict["checks"]:
        del check["source"], check["title"]
    folder.write_json(run / folder.VERDICT, verdict)
    page = Page(write_report(run))
    assert "Limiting layer of each failed check" not in page.headings
    assert "Database read latency mean" in {row[1] for row in page.tables["Checks"].rows}


def step(rate: float, p99: float, decision: str) -> dict[str, Any]:
    latency = {"mean": p99 / 4, "p99": p99}
    return {
        "transactions_per_s": rate,
        "database_iops": rate * 1.0,
        "database_read_ms": latency,
        "log_write_ms": latency,
        "response_ms": latency,
        "decision": decision,
        "limited_by": None if decision == "passed" else "log_write_latency_mean",
    }


def test_a_search_is_told_with_its_knee(published: Path, tmp_path: Path) -> None:
    """Each rate that was tried, in order of rate, with what stopped it.

    And the highest that passed.
    """
    run = tmp_path / "run"
    shutil.copytree(published, run)
    search = {
        "workload": "mix",
        "end": "narrow",
        "passed_per_s": 200.0,
        "passed_iops": 205.5,
        "failed_per_s": 400.0,
        "limited_by": "log_write_latency_mean",
        "confidence_percent": None,
        "tolerance_percent": 5.0,
        "steps": [step(100, 4, "passed"), step(400, 90, "failed"), step(200, 9, "passed")],
    }
    folder.write_json(
        run / folder.POINTS, {"schema_version": 1, "searches": [filled(SearchResult, search)]}
    )
    page = Page(write_report(run))
    assert page.tables["Search for the highest rate"].row("mix")[:2] == ["200", "206"]
    assert "knee-1" in hold_charts(page.html)
    steps = next(
        table for heading, table in page.tables.items() if heading == "Search for the highest rate"
    )
    assert [row[0] for row in steps.rows[1:]] == ["100.0", "200.0", "400.0"]
    assert "failed: log write latency mean" in steps.rows[3][1]


def test_a_search_by_sessions_is_told_in_sessions(published: Path, tmp_path: Path) -> None:
    """The number that was looked for stands first, and the rate that it completed beside it."""
    run = tmp_path / "run"
    shutil.copytree(published, run)
    steps = [
        {**step(995, 19, "passed"), "sessions": 20},
        {**step(997, 21, "failed"), "sessions": 22},
    ]
    search = {
        "workload": "mix",
        "end": "narrow",
        "search": "max_sessions",
        "passed_per_s": 995.0,
        "passed_sessions": 20,
        "passed_iops": 1000.0,
        "failed_per_s": 997.0,
        "failed_sessions": 22,
        "limited_by": "database_read_latency_mean",
        "confidence_percent": None,
        "tolerance_percent": 5.0,
        "steps": steps,
    }
    folder.write_json(
        run / folder.POINTS, {"schema_version": 1, "searches": [filled(SearchResult, search)]}
    )
    page = Page(write_report(run))
    table = page.tables["Search for the highest load"]
    assert table.row("mix")[:3] == ["20", "22", "995"]
    assert "Most sessions that passed" in page.html
    assert "20 sessions passed with 995 transactions/s" in page.html


def test_the_libraries_are_joined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining takes seconds; a cache that cannot be written, or is damaged, must not cost the
    report.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script_bundle.cache_clear()
    first = script_bundle()
    (kept,) = (tmp_path / "cache" / "plimsoll").iterdir()
    assert kept.read_text() == first
    kept.write_bytes(b"\xff\xfe damaged")
    script_bundle.cache_clear()
    assert script_bundle() == first
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    script_bundle.cache_clear()
    assert script_bundle() == first


def test_twenty_databases_stay_readable(tmp_path: Path) -> None:
    """No picture tells twenty curves apart.

    Six are drawn, the words say so, the tables have all.
    """
    run = finish(make_folder(tmp_path / "run", seconds=600, rates=EMC * 10))
    page = Page(run / folder.REPORT)
    assert "the 6 places with the most of 20" in page.html
    assert "the 6 slowest of 20 places" in page.html
    assert len(page.tables["Transactional I/O"].rows) == 21


def test_nothing_measured_is_told_and_not_drawn(tmp_path: Path, published: Path) -> None:
    """An aborted run has a report too: no figures, no charts, and the reason."""
    run = tmp_path / "run"
    shutil.copytree(published, run)
    outcome = folder.read_json(run / folder.OUTCOME)
    outcome["phases"] = outcome["phases"][:1]
    outcome["ending"] = "interrupted"
    folder.write_json(run / folder.OUTCOME, outcome)
    command = [sys.executable, "-m", "plimsoll.cli", "report", str(run)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 4, result.stderr
    page = Page(run / folder.REPORT)
    assert "Inconclusive" in page.headings[1]
    assert json.loads((run / folder.SUMMARY).read_text())["window"]["seconds"] == 0


def test_the_self_check_finds_the_published_run_in_its_own_ratios(published: Path) -> None:
    """The run was made from the rates of the published two-hour run.

    Each ratio must come out as that column has it.
    """
    page = Page(published / folder.REPORT)
    table = page.tables["Appendix: engine self-check"]
    assert len(table.rows) == 9
    assert table.headings[5] == "2 h"
    for name, this_run, in_band, _, _, two_hours, *_ in table.rows:
        assert number(this_run) == pytest.approx(number(two_hours), rel=0.025), name
        assert in_band == "✓ yes", name
    assert page.html.index('<details class="appendix">') > page.html.index("Files of this run")


def test_the_self_check_says_what_it_cannot_tell(tmp_path: Path) -> None:
    """A run of a minute grows by a few steps: a ratio from that would be an accident.

    Raw files have no such ratios.
    """
    short = finish(make_folder(tmp_path / "short", seconds=60))
    plan, summary = Plan.read(short / folder.PLAN), Summary.read(short / folder.SUMMARY)
    grown = summary.databases[0].replace(grown_bytes_measured=8 * MIB)
    summary = summary.replace(databases=[grown, *summary.databases[1:]])
    assert engine_ratios.ratios(plan, summary)["growth_per_log_byte"] is None
    raw = [instance.replace(backend="raw_files") for instance in plan.run.instances]
    assert (
        engine_ratios.self_check_table(plan.replace(run=plan.run.replace(instances=raw)), summary)
        is None
    )


def test_every_published_ratio_lies_in_its_band_and_names_its_source() -> None:
    """A band that its own published runs break would accuse an engine that does as they did."""
    published = settings.published_ratios()
    assert published["source"] and published["condition"]
    for ratio in published["ratio"]:
        assert all(ratio["least"] <= value <= ratio["most"] for value in ratio["published"]), ratio[
            "name"
        ]


def test_charts_are_what_their_library_knows(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are written without asking it."""
    assert len(hold_charts((published / folder.REPORT).read_text(encoding="utf-8"))) >= 10
    monkeypatch.setattr("plimsoll.pages.vega.LIMIT_COLOUR", 3)
    with pytest.raises(AssertionError, match="overview-latency"):
        hold_charts(render(published))
