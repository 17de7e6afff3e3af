"""What the log of a run says of a load that begins."""

from pathlib import Path

from plimsoll.files import folder
from tests.support.two_loads import two_loads


def test_the_rate_of_a_load_has_no_digits_without_sense(tmp_path: Path) -> None:
    """Of I/O of files, nothing is a transaction."""
    told = (two_loads(tmp_path / "run") / folder.EVENTS).read_text("utf-8")
    assert "workload files: 35 operations/s, regular arrivals" in told
