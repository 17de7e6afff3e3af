"""`plimsoll advise` as a user meets it.

Findings with evidence and fix, JSON, HTML, exit codes, refusals.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.warm_program import COLD, run_warm

EXAMPLES = Path(__file__).parents[2] / "examples"
SOUND = str(EXAMPLES / "topology_two_hosts.toml")
CLUSTER = str(EXAMPLES / "topology_virtual_cluster.toml")


def plimsoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, as a shell would."""
    environment = os.environ | {"COLUMNS": "160", "NO_COLOR": "1"}
    return run_warm(arguments, Path.cwd(), 60, environment)


def test_ADV_01_findings_come_with_evidence_fix_and_source() -> None:
    """The reader must be able to act on a finding and to argue with it."""
    done = plimsoll("advise", CLUSTER)
    assert (done.returncode, done.stderr) == (0, "")
    for expected in (
        "WARNING HA-03-processors: after the loss of a host",
        "vcpus_per_thread_max = 1.375",
        "Fix: add threads or a host",
        "Source: HA-03-processors: Dell MD3000i high-availability paper",
        "Not evaluated",
        "not stated: portfast",
        "no benchmarks",
    ):
        assert expected in done.stdout, expected


def test_ADV_01_json_holds_every_outcome() -> None:
    """Findings with file and line, rules that hold, rules that do not apply, and those left open
    with why.
    """
    result = json.loads(plimsoll("advise", CLUSTER, "--json").stdout)
    finding = next(finding for finding in result["findings"] if finding["id"] == "HA-03-processors")
    assert finding["evidence"]["vcpus_per_thread_max"] == 1.375
    assert (finding["scope"], finding["line"] > 0, finding["severity"]) == (
        "host_loss",
        True,
        "warning",
    )
    assert {"condition", "recommendation", "fix", "source", "also", "file"} <= set(finding)
    assert result["counts"]["error"] == sum(
        finding["severity"] == "error" for finding in result["findings"]
    )
    assert all(entry["reason"] for entry in result["not_evaluated"])
    seen = {entry["rule"] for entry in result["not_evaluated"]} | {
        finding["id"] for finding in result["findings"]
    }
    seen |= {also for finding in result["findings"] for also in finding["also"]}
    seen |= (
        set(result["met"])
        | set(result["not_applicable"])
        | {rule["id"] for rule in result["to_weigh"]}
    )
    assert len(seen) == 126


@pytest.mark.parametrize(
    ("file", "fail_on", "code"),
    [(SOUND, "info", 0), (CLUSTER, "never", 0), (CLUSTER, "error", 1), (CLUSTER, "warning", 1)],
)
def test_a_gate_can_fail_on_findings(file: str, fail_on: str, code: int) -> None:
    """A pipeline decides how serious a finding must be to stop it; by default none does."""
    assert plimsoll("advise", file, "--fail-on", fail_on).returncode == code


def test_several_files_are_looked_at_together(tmp_path: Path) -> None:
    """A topology and the requirements behind it answer more rules than either alone."""
    requirements = tmp_path / "requirements.toml"
    requirements.write_text(
        'kind = "requirements"\n[users]\ncount = 5000\nmailbox_quota = "2 GB"\nmessages_per_day = '
        "150\n[copies]\ncount = 2\n"
    )
    result = json.loads(plimsoll("advise", SOUND, str(requirements), "--json").stdout)
    assert {"BP-Q21", "BP-Q13"} <= set(result["met"])
    assert [suggestion["subject"] for suggestion in result["suggestions"]] == [
        "RAID",
        "drives",
        "copies",
        "memory",
    ]


def test_mistakes_of_all_files_and_options_come_at_once(tmp_path: Path) -> None:
    """A wrong kind, a missing file, a broken rules file and an unknown severity in one answer."""
    wrong = tmp_path / "catalogue.toml"
    wrong.write_text('kind = "catalogue"\n')
    rules = tmp_path / "rules.toml"
    rules.write_text('kind = "rules"\nname = "x"\n')
    done = plimsoll(
        "advise",
        str(wrong),
        str(tmp_path / "none.toml"),
        "--rules",
        str(rules),
        "--fail-on",
        "eror",
        "--json",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "4 mistakes" in done.stderr
    assert "`plimsoll select --catalogue` reads files of this kind" in done.stderr
    assert "none.toml: cannot be read" in done.stderr
    assert "`rules` is missing" in done.stderr
    assert "did you mean `error`" in done.stderr


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """Nothing to look at is a mistake, not an empty result."""
    done = plimsoll("advise", str(tmp_path))
    assert done.returncode == 2
    assert "holds no run" in done.stderr


def test_own_rules_stand_beside_the_shipped_ones(tmp_path: Path) -> None:
    """`--rules shipped --rules own.toml` uses both; `--rules own.toml` only the own ones."""
    own = tmp_path / "own.toml"
    own.write_text(
        'kind = "rules"\nname = "own"\n[[rules]]\nid = "H-1"\nsubject = "size"\ncondition = '
        '"any"\nseverity = "info"\n'
        'recommendation = "three arrays"\nsource = "house"\nchecks = [{ scope = "design", check = '
        '"array_count >= 3" }]\n'
    )
    alone = json.loads(plimsoll("advise", SOUND, "--rules", str(own), "--json").stdout)
    assert [finding["id"] for finding in alone["findings"]] == ["H-1"]
    assert alone["met"] == {}
    both = json.loads(
        plimsoll("advise", SOUND, "--rules", "shipped", "--rules", str(own), "--json").stdout
    )
    assert len(both["met"]) > 40
    twice = plimsoll("advise", SOUND, "--rules", "shipped", "--rules", "shipped")
    assert twice.returncode == 2


def test_ADV_04_the_page_states_its_limits_and_loads_nothing(tmp_path: Path) -> None:
    """The HTML is handed on without the terminal's context."""
    page = tmp_path / "advice.html"
    assert plimsoll("advise", CLUSTER, "--html", str(page)).returncode == 0
    text = page.read_text()
    assert "do not replace a test of the own design" in text
    assert "<script" not in text
    assert "http" not in text


def test_the_answer_comes_in_under_0_3_seconds() -> None:
    """Start-up included; processor time, the best of five.

    On a busy machine even that says nothing.
    """
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*COLD, "advise", SOUND], capture_output=True, check=False, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if min(times) >= 0.3 and os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        pytest.skip(f"{min(times):.2f} s, but the machine is busy")
    assert min(times) < 0.3
