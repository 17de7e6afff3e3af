"""A configuration becomes a plan that runs, and a plan becomes the configuration again, with every
field it had.
"""

import math
import tomllib
from pathlib import Path

import pytest

from plimsoll.imports.jetstress.config_fields import fields_of
from plimsoll.imports.jetstress.config_read import import_config
from plimsoll.imports.jetstress.config_write import export_config
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.safe_xml import parse_xml
from plimsoll.plan.complete import read_plan
from tests.support.jetstress_files import config_2010, config_2013

PATHS = "ExchangeProfile/EseInstances/EseInstance[2]"


def imported(text: str) -> tuple[dict[str, object], dict[str, str]]:
    """The plan as data, and what was kept."""
    found = import_config("JetstressConfig.xml", text.encode())
    return tomllib.loads(found.text), found.kept


def round_trip(text: str, folder: Path, change: tuple[str, str] = ("", "")) -> dict[str, str]:
    """The fields after the way to a plan and back, with one change in the plan."""
    plan = folder / "plan.toml"
    plan.write_text(
        import_config("JetstressConfig.xml", text.encode()).text.replace(*change), encoding="utf-8"
    )
    return fields_of(parse_xml("back", export_config(plan)[0].encode()))[0]


def same(left: str, right: str) -> bool:
    """Whether two texts say the same: numbers by value, the rest letter by letter."""
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-12)
    except ValueError:
        return left == right


CONFIGS = {
    "2013 users": config_2013(),
    "2013 sessions": config_2013(tuning="true"),
    "2013 search": config_2013(sizing="Percentage"),
    "2013 no threads": config_2013(tuning="true", threads=""),
    "2013 recovery": config_2013(kind="SoftRecovery").replace(
        ">500</LogFilesToReplay", ">750</LogFilesToReplay"
    ),
    "2013 backup": config_2013(kind="DatabaseBackup", tuning="true"),
    "2013 of another kind": config_2013(kind="Mystery"),
    "2010 stress": config_2010(),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_JST_17_every_field_survives_the_round_trip(name: str, tmp_path: Path) -> None:
    """A field that is lost is a test that silently becomes another one."""
    before = fields_of(parse_xml("before", CONFIGS[name].encode()))[0]
    after = round_trip(CONFIGS[name], tmp_path)
    assert {path for path in before if path not in after} == set()
    assert {
        path: (before[path], after[path]) for path in before if not same(before[path], after[path])
    } == {}


def test_JST_17_what_means_the_same_is_translated(tmp_path: Path) -> None:
    """The plan must do what the configuration asked for, not only carry its words."""
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text(
        import_config("c.xml", config_2010().encode(), "/srv").text, encoding="utf-8"
    )
    plan = read_plan(plan_file)
    instance, workload = plan.run.instances[1], plan.run.workloads[0]
    measure = next(phase.action for phase in plan.run.phases if phase.action.kind == "measure")
    assert plan.judgement.test == "stress"
    assert plan.judgement.limits == "lenient"
    assert plan.judgement.required_iops == 360
    assert plan.judgement.margin_percent == 5, "the configuration states what the tool granted"
    assert plan.judgement.editions == ("2010",) * 3
    assert measure.duration_s == 86400
    assert workload.load.plain() == {"sessions": 3, "shared": False}
    assert instance.copies_count == 3
    assert instance.databases[0].size_bytes == 1_024_000 * 2**20
    assert instance.directory == "/srv/f/store2/db/instance2"
    assert instance.log_directory == "/srv/f/store2/log/instance2"


@pytest.mark.parametrize(
    ("kind", "test", "phases"),
    [
        ("DatabaseBackup", "backup", ["prepare", "backup", "stop"]),
        ("SoftRecovery", "recovery", ["prepare", "generate_logs", "recover", "stop"]),
    ],
)
def test_JST_17_backup_and_recovery_are_tests_of_their_own(
    kind: str, test: str, phases: list[str], tmp_path: Path
) -> None:
    """The tool's four kinds of test have one each here."""
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text(
        import_config("c.xml", config_2013(kind=kind).encode()).text, encoding="utf-8"
    )
    plan = read_plan(plan_file)
    assert plan.judgement.test == test
    assert [phase.action.kind for phase in plan.run.phases] == phases


def test_a_pool_of_threads_of_2013_is_one_pool_here() -> None:
    """The 2010 tool counts threads for each database, that of 2013 for all."""
    plan, _ = imported(config_2013(tuning="true"))
    assert plan["workload"] == [
        {
            "name": "mix",
            "insert_percent": 40,
            "delete_percent": 20,
            "replace_percent": 5,
            "lazy_commit_percent": 70,
            "read_percent": 35,
            "sluggish": 1,
            "batch_operations": 16,
            "load": {"sessions": 4, "shared": True},
        }
    ]


def test_what_means_nothing_here_is_listed_with_a_reason() -> None:
    """ "Imported" without a list would claim that everything counts."""
    _, kept = imported(config_2010())
    assert (
        kept["TestDesignInfo/MaximumLatencyErrors"]
        == "its meaning was never published; the highest sample is judged here"
    )
    assert kept["TestDesignInfo/Mystery/Inner"] == "means nothing here"
    assert kept["TestDesignInfo/Mystery/@Depth"] == "means nothing here"


def test_a_change_in_the_plan_reaches_the_configuration(tmp_path: Path) -> None:
    """Kept words must not win over what the user wrote since."""
    after = round_trip(config_2013(), tmp_path, ("duration_s = 7200", "duration_s = 90061"))
    assert after["TestDesignInfo/Duration"] == "P0Y0M1DT1H1M1S"
    after = round_trip(config_2013(), tmp_path, ("users = 3000", "users = 4000"))
    assert after["ExchangeProfile/MailboxCount"] == "4000"
    after = round_trip(
        config_2013(tuning="true"),
        tmp_path,
        ("database_size_mib = 1024000", "database_size_mib = 2048000"),
    )
    assert after["ExchangeProfile/MailboxQuota"] == "2048"


def test_the_weight_of_an_instance_comes_along(tmp_path: Path) -> None:
    """A file that loads one volume twice as hard must not be measured as if all were alike.

    And its own digits come back.
    """
    text = config_2013().replace('IopsBias="1"', 'IopsBias="2.50"', 1)
    instances = tomllib.loads(import_config("c.xml", text.encode()).text)["instance"]
    assert [item.get("weight") for item in instances] == [2.5, *[None] * (len(instances) - 1)]
    biases = [
        value for path, value in round_trip(text, tmp_path).items() if path.endswith("@IopsBias")
    ]
    assert biases == ["2.50", *["1"] * (len(biases) - 1)]
    biases = [
        value
        for path, value in round_trip(text, tmp_path, ("weight = 2.5", "weight = 3")).items()
        if path.endswith("@IopsBias")
    ]
    assert biases[0] == "3"


def test_a_plan_of_our_own_can_be_exported(tmp_path: Path) -> None:
    """Whoever still has the tool can run the same test with it."""
    text, remarks = export_config(Path(__file__).parents[2] / "examples" / "day.toml")
    fields = fields_of(parse_xml("day", text.encode()))[0]
    assert fields["TestDesignInfo/Duration"] == "P0Y0M1DT0H0M0S"
    assert fields["ExchangeProfile/EseInstances/EseInstance[1]/LogPath"]
    assert "paths are those of this machine; write the drive letters of the other one" in remarks


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (">P0Y0M0DT2H0M0S<", ">two hours<", "P0Y0M0DT2H0M0S was expected"),
        (">3000<", ">many<", "a number was expected"),
        (">1024<", ">1e400<", "a number was expected"),
        ('InsertOps="40"', 'InsertOps="90"', "make 100 at most"),
        (">32768<", ">5001<", "4096, 8192, 16384 or 32768 was expected"),
        ("</TestDesignInfo>", "</TestDesign>", "not well-formed"),
        ('<?xml version="1.0"?>', '<!DOCTYPE c [<!ENTITY a "b">]>', "document type"),
        ("</configuration>", "</configuration><more/>", "not well-formed"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(old: str, new: str, word: str) -> None:
    """Nobody finds "invalid value" in a hundred lines."""
    text = config_2013().replace(old, new, 1)
    with pytest.raises(InputError) as found:
        import_config("c.xml", text.encode())
    mistake = found.value.mistakes[0]
    assert word in f"{mistake.message} {mistake.hint}"
    assert mistake.line == text[: text.index(new)].count("\n") + 1
