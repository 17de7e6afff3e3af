"""Results that papers print, as sides of comparisons and studies: `published:netapp-2007`."""

import json
from pathlib import Path

import pytest

import plimsoll
from plimsoll import settings
from plimsoll.compare.published import NAMES, published_results
from plimsoll.compare.sides import ComparisonError
from plimsoll.study.description import read_study
from plimsoll.study.results import judged

GOLDEN = Path(__file__).parents[1] / "golden" / "published"


def golden(name: str) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = json.loads(
        (GOLDEN / name).read_text(encoding="utf-8")
    )
    return found


def test_DAT_01_results_of_all_five_papers_ship_with_paper_and_place() -> None:
    """A figure without a source is a rumour.

    One paper left out, and nobody can hold a run against it.
    """
    papers = {result.paper.split()[0] for result in published_results().values()}
    assert papers == {"EMC", "SanDisk,", "NetApp", "Dell"}
    assert {result.paper for result in published_results().values() if "MD3000i" in result.paper}
    assert {result.paper for result in published_results().values() if "EqualLogic" in result.paper}
    for result in published_results().values():
        assert result.where and result.figures, result.id
        assert all(name in NAMES or name.endswith(("_bytes", "_mib")) for name in result.figures), (
            result.id
        )


def test_the_shipped_figures_are_the_published_ones() -> None:
    """They were typed once; the machine-readable papers know better."""
    table = golden("sandisk_ssd/configuration_criteria_results_tco.json")["table_1"]
    for side in ("hdd", "ssd"):
        figures = published_results()[f"sandisk-{side}"].figures
        assert figures["database_iops"] == table["achieved_transactional_iops"][side]
        assert figures["read_latency_ms"] == table["db_read_avg_latency_ms"][side]
        assert figures["log_writes_per_s"] == table["log_writes_per_sec"][side]
    online = golden("netapp_tr3565/results_2003_vs_2007_and_online_vs_cached.json")[
        "table_2_online_vs_cached"
    ]
    for mode in ("online", "cached"):
        figures = published_results()[f"netapp-2007-{mode}"].figures
        printed = (
            online[mode]["reads_per_sec"],
            online[mode]["writes_per_sec"],
            online[mode]["iops"],
        )
        assert (
            figures["reads_per_s"],
            figures["writes_per_s"],
            figures["database_iops"],
        ) == printed
    sixth = golden("emc_vnxe3300/summary_tables_6_to_8.json")["table_6_individual_server_metrics"]
    figures = published_results()["emc-2011"].figures
    assert figures["database_iops"] == sixth["database_disk_transfers_per_sec"]
    assert figures["read_latency_ms"] == sixth["average_database_disk_read_latency_ms"]
    assert figures["log_writes_per_s"] == sixth["log_disk_writes_per_sec"]


def test_the_loads_of_the_papers_ship() -> None:
    """Weights of the mail generator, the access specification and the threads of the web shop."""
    data = settings.published_results()
    weights = {name: value for name, value in data["mail_weights"].items() if name != "source"}
    assert (sum(weights.values()), weights["ReadAndProcessMessages"]) == (60, 52)
    access = data["file_access"]
    assert sum(row["share_percent"] for row in access) == 100
    assert sum(
        row["share_percent"] * row["transfer_bytes"] for row in access
    ) / 102400 == pytest.approx(11.08, abs=0.01)
    assert data["shop_threads"]["users_500"] * data["shop_threads"]["users_per_thread"] == 500


def test_CMP_published_results_are_compared_by_name() -> None:
    """The published comparison of four disks with four SSDs, without a folder.

    18 times the operations, 27.3 times as fast.
    """
    found = plimsoll.compare_runs([Path("published:sandisk-hdd"), Path("published:sandisk-ssd")])
    factors = {row.name: row.against_first[0].factor for row in found.content.figures}
    assert factors["database_iops"] == pytest.approx(17.994, abs=0.001)
    assert factors["total_database_read_latency_ms_mean_of_samples"] == pytest.approx(
        27.31, abs=0.01
    )
    assert factors["total_log_write_latency_ms_mean_of_samples"] == pytest.approx(0.885, abs=0.001)
    assert [side.name for side in found.content.sides] == ["sandisk-hdd", "sandisk-ssd"]
    assert any(
        "published, not measured here: SanDisk" in warning for warning in found.content.warnings
    )


def test_client_loads_are_compared_by_their_own_figures() -> None:
    """M-15: the degraded array answered mail faster; nobody must assume the contrary."""
    found = plimsoll.compare_runs(
        [Path("published:md3000i-optimized-500"), Path("published:md3000i-degraded-500")]
    )
    words = {
        row.name: (row.against_first[0].word, row.against_first[0].factor)
        for row in found.content.figures
    }
    assert words["mail_p95_weighted_ms"][0] == "better"
    assert words["orders_per_min"] == ("same", pytest.approx(0.995, abs=0.001))


def test_an_unknown_result_is_refused_with_the_nearest_name() -> None:
    """A mistyped year is the usual slip."""
    with pytest.raises(ComparisonError, match="did you mean published:netapp-2007"):
        plimsoll.compare_runs([Path("published:netapp-208"), Path("published:netapp-2003")])


def test_a_study_has_published_results_beside_its_variants(tmp_path: Path) -> None:
    """The modelled array and the paper it was made after, in one table.

    A paper is no point of the axis and is never unfinished.
    """
    study = tmp_path / "study.toml"
    text = (
        'kind = "study"\nschema_version = 1\nname = "x"\nrepeat = 1\npublished = [%s]\n'
        '[light]\narray = "emc-vnxe3300"\ndatabase_gb = 700\nsessions = 6\nvolume_gb = '
        '800\n[[variants]]\nname = "modelled"\n'
    )
    study.write_text(text % '"published:emc-2011"')
    found = judged(read_study(study), tmp_path)
    assert [side.name for side in found.sides] == ["modelled", "published:emc-2011"]
    rates = next(row for row in found.figures if row.name == "database_iops")
    assert rates.sides[1].value == 329.489
    assert list(found.sides[1].warnings) == [published_results()["emc-2011"].origin]
    study.write_text(text % '"published:emc-2012", "emc"')
    with pytest.raises(plimsoll.PlimsollError) as refused:
        read_study(study)
    assert "emc-2011" in str(refused.value) and "write published:" in str(refused.value)
