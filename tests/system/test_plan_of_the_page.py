"""The first plan of `docs/combined.md`, carried out on a small scale: whoever copies it gets a
result, or a reason that speaks of the storage.
"""

import json
import re
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll

PAGE = Path(__file__).parents[2] / "docs" / "combined.md"
#: What makes it small: no key is added but caches that do not hold the small databases.
SMALLER = (
    ('"/mnt/array"', '"{place}/array"'),
    ("database_size_mib = 20480", "database_size_mib = 128\ncache_mib_min = 8\ncache_mib_max = 16"),
    ('store_size = "1GB"', 'store_size = "10MB"\ncache_mib_min = 2\ncache_mib_max = 4'),
    ("file_mib = 5120", "file_mib = 8"),
    ("transactions_per_s = 200", "transactions_per_s = 20"),
    ("start_after_s = 10", "start_after_s = 1"),
    ("start_after_s = 20", "start_after_s = 2"),
    ("duration_s = 1800", "duration_s = 20"),
)


def plan_of_page(place: Path) -> str:
    """The first plan of the page, made small."""
    page = PAGE.read_text(encoding="utf-8")
    begin = page.index('    kind = "plan"')
    text = re.sub("^    ", "", page[begin : page.index("    plimsoll run three.toml")], flags=re.M)
    for shown, small in SMALLER:
        assert text.count(shown) == 1, shown
        text = text.replace(shown, small.format(place=place))
    return text


@pytest.mark.parametrize("verify", [True, False])
def test_the_first_plan_of_the_page_ends_with_a_result(tmp_path: Path, *, verify: bool) -> None:
    """It ended as "described wrongly" after all was measured, because files were not verified."""
    text = plan_of_page(tmp_path)
    assert "verify = true\n" in text
    plan = tmp_path / "plan.toml"
    plan.write_text(text if verify else text.replace("verify = true\n", ""))
    out = ("--yes", "--quiet", "--create", "--allow-system-disk", "--out", str(tmp_path / "run"))
    done = plimsoll("run", str(plan), *out, cwd=tmp_path)
    assert "described wrongly" not in done.stdout + done.stderr
    outcome = json.loads((tmp_path / "run" / folder.OUTCOME).read_text())
    assert (outcome["ending"], outcome.get("error")) == ("complete", None)
    verdict = json.loads((tmp_path / "run" / folder.VERDICT).read_text())
    # What a busy machine does to latencies is told as such; all else has been evaluated.
    judged = {
        (check["name"], check["scope"].split("/")[0])
        for check in verdict["checks"]
        if check["status"] != "not_evaluated"
    }
    read_back = {scope for name, scope in judged if name == "bad_pages"}
    assert read_back == ({"mail", "shop", "share"} if verify else {"mail", "shop"})
    assert {("store_audit", "shop"), ("io_errors", "run")} <= judged
    assert "load_overlap" in {name for name, _ in judged}
    assert verdict["result"] == "pass" or verdict["reasons"], verdict["headline"]
    left_out = "share: left out" in (tmp_path / "run" / folder.EVENTS).read_text()
    assert left_out is not verify
