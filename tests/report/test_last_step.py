"""Charts over time: what stands in them is the whole measured time."""

import json
import re
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.synthetic import finish, make_slow_folder


def test_the_last_sample_has_its_step(tmp_path: Path) -> None:
    """A test failed by its last sample, and the chart ended where that began."""
    done = finish(make_slow_folder(tmp_path / "run"))
    page = (done / folder.REPORT).read_text(encoding="utf-8")
    found = re.search(r"^const specs = (.*);$", page, flags=re.MULTILINE)
    assert found
    specs = json.loads(found[1])
    minutes = folder.read_json(done / folder.SUMMARY)["window"]["seconds"] / 60
    for name in ("overview-iops", "database-read-latency-ms-mean"):
        times = [row["t"] for row in specs[name]["data"]["values"]]
        assert max(times) == pytest.approx(minutes), name
