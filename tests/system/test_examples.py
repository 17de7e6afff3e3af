"""Every example plan is valid, fits the published schema, and runs.

In a short form, with everything but its sizes kept.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from plimsoll.cli import options
from plimsoll.documents.run_spec import TargetIopsLoad
from plimsoll.plan.complete import read_plan
from plimsoll.plan.json_schema import plan_schema
from tests.support.places import plimsoll

ROOT = Path(__file__).parents[2]
PLANS = sorted(
    path for path in (ROOT / "examples").glob("*.toml") if 'kind = "plan"' in path.read_text()
)
#: Examples that differ from another one in their sizes only, which the short form takes away.
LIKE_ANOTHER = ("md3000i_together_500",)
#: What makes a run short; all else stays as the example has it.
SHORTER = [
    (r"database_size_mib = \d+", "database_size_mib = 64"),
    (r"cache_mib_max = \d+", "cache_mib_max = 4\ncache_mib_min = 1"),
    (r"duration_s = \d+", "duration_s = 2"),
    (r"step_s = \d+, settle_s = \d+", "step_s = 1, settle_s = 0"),
    (r"timeout_s = \d+", "timeout_s = 60"),
    (r"sample_interval_ms = \d+", "sample_interval_ms = 500"),
    (r"cache_percent = \d+", "cache_percent = 2"),
    # So many that a rate is calibrated within seconds.
    (r"users = 4000", "users = 2000"),
    (r"users = \d{3}\b", "users = 100"),
    (r"file_mib = \d+", "file_mib = 64"),
    (r'store_size = "100MB"', 'store_size = "10MB"'),
    (r"(?<!_)after_s = \d+", "after_s = 0.5"),
    (r"undo_after_s = \d+", "undo_after_s = 1"),
    (r"failover_s_max = \d+", "failover_s_max = 1"),
    (r"runs = \d+", "runs = 1"),
]


def short_form(plan: Path, home: Path) -> Path:
    text = plan.read_text()
    for pattern, shorter in SHORTER:
        text = re.sub(pattern, shorter, text)
    text = re.sub(
        r'path = "/?([^"]+)"', lambda match: f'path = "{home}/{match[1].replace("/", "_")}"', text
    )
    path = home / plan.name
    path.write_text(text)
    return path


def test_the_examples_cover_what_people_have() -> None:
    """A laptop, an array, a cloud volume and a day: the four cases the documents speak of."""
    assert {"laptop", "iscsi_array", "cloud_volume", "day"} <= {path.stem for path in PLANS}


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LIKE_ANOTHER else []
        )
        for path in PLANS
    ],
)
def test_an_example_runs_in_its_short_form(plan: Path, tmp_path: Path) -> None:
    """An example that does not run is worse than none."""
    read_plan(plan)
    short = read_plan(short_form(plan, tmp_path))
    workloads = [
        workload.replace(load=workload.load.replace(calibrate_s=1.0))
        if isinstance(workload.load, TargetIopsLoad)
        else workload
        for workload in short.run.workloads
    ]
    short = short.replace(run=short.run.replace(workloads=workloads))
    with pytest.raises(typer.Exit) as leaving:
        options.perform(short, options.Choices(out=tmp_path / "run", yes=True, quiet=True))
    assert leaving.value.exit_code in (0, 1, 3)
    # A series has a folder for each run.
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / "run").rglob("outcome.json")]
    assert outcomes
    for outcome in outcomes:
        assert outcome["ending"] == "complete", outcome["error"]
        measured = [phase for phase in outcome["phases"] if phase["kind"] == "measure"]
        assert all(phase["complete"] for phase in measured)


def as_data(plan: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(plan.read_text())


@pytest.mark.parametrize("plan", PLANS, ids=lambda path: path.stem)
def test_an_example_fits_the_schema(plan: Path) -> None:
    """An editor that underlines our own example would teach people to ignore it."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(as_data(plan), plan_schema(), cls=jsonschema.Draft202012Validator)


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    """A schema that accepts everything would pass the test above."""
    jsonschema = pytest.importorskip("jsonschema")
    good = as_data(ROOT / "examples/laptop.toml")
    for place, key, value in [
        (good, "colour", "red"),
        (good, "kind", "requirements"),
        (good, "limits", "loose"),
        (good["target"][0], "pth", "/data"),
        (good["instance"][0], "page_kib", 64),
        (good["phase"][0], "kind", "dance"),
    ]:
        before = place.get(key)
        place[key] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good, plan_schema(), cls=jsonschema.Draft202012Validator)
        if before is None:
            del place[key]
        else:
            place[key] = before
    jsonschema.validate(good, plan_schema(), cls=jsonschema.Draft202012Validator)


def test_the_published_schema_is_the_one_the_program_prints(tmp_path: Path) -> None:
    """`make docs` must have been run after a key was added."""
    published = json.loads((ROOT / "docs/reference/plan.schema.json").read_text())
    assert published == plan_schema()
    assert json.loads(plimsoll("plan", "schema", cwd=tmp_path).stdout) == published


def test_a_plan_begun_by_the_program_is_one(tmp_path: Path) -> None:
    """The first plan somebody sees must be accepted, and nothing of theirs be overwritten."""
    assert plimsoll("plan", "init", "first.toml", cwd=tmp_path).returncode == 0
    plan = read_plan(tmp_path / "first.toml")
    assert plan.run.phases[2].action.duration_s == 7200
    again = plimsoll("plan", "init", "first.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "nothing is overwritten" in again.stderr
