"""Between the tables of a paper, its reports and its prose: what people found by hand is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.imports.consistency_checks import CONTRADICTION, ODDITY, ROUNDING, Finding
from plimsoll.imports.papers.checks import check_paper
from plimsoll.imports.papers.claims import check_claims
from plimsoll.imports.papers.tables import read_tables
from plimsoll.imports.papers.text import read_paper
from plimsoll.inputs.mistakes import InputError
from tests.support.paper_shape import BELOW, WHOLE, paper
from tests.support.published import PUBLISHED, REPORTS, read

EXAMPLES = Path(__file__).parents[2] / "examples"


def table_lines() -> list[str]:
    """The numbered tables with the published figures, under labels of the template."""
    facts = read("solution_and_tables_1_to_5_and_9")
    first, fourth, fifth = (
        facts[name]
        for name in (
            "table_1_simulated_exchange_configuration",
            "table_4_mailbox_store_disks",
            "table_5_transaction_log_disks",
        )
    )
    summary = read("summary_tables_6_to_8")
    sixth, seventh, eighth = (
        summary[name]
        for name in (
            "table_6_individual_server_metrics",
            "table_7_database_read_only_performance",
            "table_8_log_replay_performance",
        )
    )
    rows: dict[str, dict[str, Any]] = {
        "Table 1. Simulated configuration": {
            "Number of Exchange mailboxes simulated": "1,000",
            "Number of databases/host": first["databases_per_host"],
            "Simulated profile: I/O per second of a mailbox (20% headroom)": first[
                "iops_per_mailbox_incl_20pct_headroom"
            ],
            "Database LUN size": f"{first['database_lun_size_tb']} TB",
            "Total database size for performance testing": "1,955 GB",
            "% storage capacity used by databases": f"{first['storage_capacity_used_by_database_pct']}%",  # noqa: E501
        },
        "Table 2. Hardware": {"Host": "4 processors of 2.99 GHz, 32 GB memory"},
        "Table 4. Disks of the databases": {
            "Raw capacity per disk (GB)": fourth["raw_capacity_per_disk_gb"],
            "Number of physical disks in test": fourth["physical_disks"],
            "Total raw storage capacity (GB)": "4,200",
            "Total formatted capacity": fourth["total_formatted_capacity_gb"],
            "Storage capacity utilization": f"{fourth['storage_capacity_utilization_pct']}%",
            "Database capacity utilization": f"{fourth['database_capacity_utilization_pct']}%",
        },
        "Table 5. Disks of the logs": {
            "Total formatted capacity": fifth["total_formatted_capacity_gb"]
        },
        "Table 6. Server metrics": {
            "Database disks transfers/sec": sixth["database_disk_transfers_per_sec"],
            "Database disk reads/sec": f"{sixth['database_disk_reads_per_sec']:.3f}",
            "Database disk writes/sec": sixth["database_disk_writes_per_sec"],
            "Average database disk read latency (ms)": sixth[
                "average_database_disk_read_latency_ms"
            ],
            "Average database disk write latency (ms)": sixth[
                "average_database_disk_write_latency_ms"
            ],
            "Log disk writes/sec": sixth["log_disk_writes_per_sec"],
            "Average log disk write latency (ms)": sixth["average_log_disk_write_latency_ms"],
        },
        "Table 7. Reading for a backup": {
            "MB read/sec per database": seventh["mb_read_per_sec_per_database"],
            "MB read/sec total per server": f"{seventh['mb_read_per_sec_total_per_server']:.2f}",
        },
        "Table 8. Replay": {
            "Number of log files": eighth["log_files_nominal"],
            "Average time to play one log file (sec)": eighth["average_time_to_play_one_log_s"],
        },
        "Table 9. Users": {},
    }
    lines = ["Tested date: 4/25/2011", ""]
    for title, pairs in rows.items():
        lines += [title, *(f"{label:<70}{value}" for label, value in pairs.items()), ""]
    lines += [
        f"{row['max_users']:>8,}      {row['mailbox_size_gb']}"
        for row in facts["table_9_maximum_user_count"]
    ]
    lines += [
        "",
        f"The maximum number of users within the limit is "
        f"{facts['appendix_a_user_mailbox_sizing']['max_users_at_latency_limit']:,}.",
    ]
    return lines


@pytest.fixture(scope="module")
def whole() -> str:
    """A paper with tables and reports, two of them with broken cells."""
    ways = [
        ("B", "appendix_b", BELOW),
        ("C", "appendix_c", WHOLE),
        ("D", "appendix_d", BELOW),
        ("E", "appendix_e", WHOLE),
        ("F", "appendix_f_replay", WHOLE),
        ("", "appendix_f_generation", WHOLE),
    ]
    return paper([(letter, REPORTS[name](), way) for letter, name, way in ways], table_lines())


@pytest.fixture(scope="module")
def findings(whole: str) -> list[Finding]:
    """What does not add up in it beyond its single reports."""
    return check_paper(read_tables(whole), read_paper("paper.txt", whole))


BY_HAND = {
    "E-04": (
        "storage_utilisation",
        ROUNDING,
        "76.4 is printed, 76.4586 is computed (cut off, not rounded)",
    ),
    "E-05": ("formatted_capacity", CONTRADICTION, "3211.26 GB and of 3211.64 GB"),
    "E-06": ("volume_share", CONTRADICTION, "80.45 is printed, 80.48"),
    "E-07": (
        "tested_size",
        CONTRADICTION,
        "1944.6 GB, 1955 GB are printed; it is that of the run of 2011-04-30",
    ),
    "E-08": ("log_count", CONTRADICTION, "500 logs are stated, 501 were replayed"),
    "E-09": (
        "user_limit",
        CONTRADICTION,
        "are 1927 users; 1900 are stated and table 9 ends at 1800",
    ),
    "E-12": ("host_memory", CONTRADICTION, "32 GB of memory are stated"),
    "E-13": ("tested_date", ODDITY, "2011-04-25 is stated, the runs are of 2011-04-21"),
    "E-16": ("restored", ODDITY, "databases were restored or made again"),
}


@pytest.mark.parametrize("entry", BY_HAND)
def test_RPT_27_an_entry_between_the_tables_is_found(findings: list[Finding], entry: str) -> None:
    """These need the whole paper: no single report is wrong."""
    rule, kind, words = BY_HAND[entry]
    found = [finding for finding in findings if finding.rule == rule and words in finding.text]
    assert found, [finding.text for finding in findings if finding.rule == rule]
    assert found[0].kind == kind


def test_RPT_27_tables_6_to_8_agree_with_the_reports(findings: list[Finding]) -> None:
    """The published summary follows from its appendices in every digit.

    A checker must say so by saying nothing.
    """
    assert [
        finding
        for finding in findings
        if finding.rule in ("table_6", "table_7", "table_8", "raw_capacity")
    ] == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("12.774", "12.874", "table_6"),
        ("329.489", "329.498", "table_6"),
        ("58.415", "58.515", "table_7"),
        ("2.23\n", "2.33\n", "table_8"),
    ],
)
def test_RPT_27_a_changed_digit_in_a_table_is_found(
    whole: str, old: str, new: str, rule: str
) -> None:
    """Each rule must be able to fail."""
    place = whole.index(old)
    text = whole[:place] + new + whole[place + len(old) :]
    found = check_paper(read_tables(text), read_paper("paper.txt", text))
    assert rule in {finding.rule for finding in found}


def test_importing_a_paper_keeps_its_tables(whole: str, tmp_path: Path) -> None:
    """What a user sees: run folders of the reports, one file for the tables and the findings."""
    (tmp_path / "vendor.txt").write_text(whole, encoding="utf-8")
    result = CliRunner().invoke(
        app, ["import", str(tmp_path / "vendor.txt"), "--out", str(tmp_path / "runs")]
    )
    assert result.exit_code == 0, result.output
    assert len([path for path in (tmp_path / "runs").iterdir() if path.is_dir()]) == 6
    content = json.loads((tmp_path / "runs" / "vendor.paper.json").read_text(encoding="utf-8"))
    assert content["tables"]["table_6"]["database_disk_transfers_per_sec"] == "329.489"
    assert "are 1927 users" in result.output


def test_RPT_27_statements_of_a_comparison_are_checked() -> None:
    """S-01 to S-06: factors, sameness and a sum of the SanDisk paper."""
    found = {
        finding.where: finding.kind for finding in check_claims(EXAMPLES / "claims_sandisk.toml")[1]
    }
    assert found == {
        "summary, IOPS": CONTRADICTION,
        "table 1, read latency": CONTRADICTION,
        "cost": CONTRADICTION,
        "table 1, database writes": CONTRADICTION,
        "table 1, log writes": CONTRADICTION,
        "table 1, sum of reads and writes": ROUNDING,
    }


NETAPP = {
    "N-01": ("42", "(online_reads - cached_reads) / online_reads * 100", CONTRADICTION),
    "N-02": ("3.424545", "online_reads / online_writes", CONTRADICTION),
    "N-03": ("1.48", "(8192 - 2048) / 4000", CONTRADICTION),
    "N-05": ("366.434", "fig_8_reads + fig_8_writes", CONTRADICTION),
    "N-07": ("0.07", "cached_iops_per_user", ROUNDING),
}


@pytest.mark.parametrize("entry", NETAPP)
def test_RPT_27_statements_of_the_netapp_paper_are_checked(entry: str, tmp_path: Path) -> None:
    """Percentages, ratios and sums that its own rates contradict."""
    results = json.loads(
        (PUBLISHED / "netapp_tr3565" / "results_2003_vs_2007_and_online_vs_cached.json").read_text(
            encoding="utf-8"
        )
    )
    table, eighth = results["table_2_online_vs_cached"], results["cache_size_study_fig_8"]["8GB"]
    figures = {
        "online_reads": table["online"]["reads_per_sec"],
        "online_writes": table["online"]["writes_per_sec"],
        "cached_reads": table["cached"]["reads_per_sec"],
        "cached_iops_per_user": table["cached"]["iops_per_user"],
        "fig_8_reads": eighth["reads_per_sec"],
        "fig_8_writes": eighth["writes_per_sec"],
    }
    stated, expression, kind = NETAPP[entry]
    lines = [
        'kind = "claims"',
        "schema_version = 1",
        'source = "NetApp TR-3565"',
        "[figures]",
        *(f"{name} = {value}" for name, value in figures.items()),
    ]
    lines += [
        "[[claim]]",
        f'where = "{entry}"',
        f'stated = "{stated}"',
        f'expression = "{expression}"',
    ]
    (tmp_path / "claims.toml").write_text("\n".join(lines), encoding="utf-8")
    assert [
        (finding.where, finding.kind) for finding in check_claims(tmp_path / "claims.toml")[1]
    ] == [(entry, kind)]


def test_a_mistake_in_a_file_of_claims_has_its_line(tmp_path: Path) -> None:
    """Several slips are named at once."""
    text = (
        'kind = "claims"\nsource = "x"\n[figures]\na = 1\n[[claim]]\nwhere = "w"\nstated = '
        '"many"\nexpression = "a / b"\n'
    )
    (tmp_path / "claims.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as found:
        check_claims(tmp_path / "claims.toml")
    assert sorted(mistake.line for mistake in found.value.mistakes) == [7, 8]


def test_DAT_01_published_results_load_with_their_source() -> None:
    """A figure without a source is a rumour."""
    files = sorted(PUBLISHED.glob("*/*.json"))
    assert len(files) == 11
    for path in files:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["provenance"]["paper"], path.name


@pytest.mark.parametrize(
    ("name", "expected", "in_order"),
    [
        (
            "equallogic",
            {"Q-01", "Q-02", "Q-03", "Q-04", "Q-05", "Q-06", "Q-07", "Q-08"},
            {"Q-09", "Q-28"},
        ),
        ("md3000i", {"M-01", "M-02", "M-03", "M-04"}, {"M-06", "M-16"}),
    ],
)
def test_RPT_27_statements_of_the_equallogic_and_md3000i_papers_are_checked(
    name: str, expected: set[str], in_order: set[str]
) -> None:
    """Each contradiction found by hand is found.

    What adds up within its last digit is not called one.
    """
    path = EXAMPLES / f"claims_{name}.toml"
    findings = check_claims(path)[1]
    assert {finding.where[:4] for finding in findings} == expected
    assert all(f'where = "{entry}' in path.read_text(encoding="utf-8") for entry in in_order)
    kinds = {finding.where: finding.kind for finding in findings}
    rounded = [where for where, kind in kinds.items() if kind == ROUNDING]
    assert rounded == (
        ["Q-07: section 2.4, gain of RAID 10 on the PS6500E"] if name == "equallogic" else []
    )
