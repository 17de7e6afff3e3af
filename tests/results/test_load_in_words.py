"""What the printed result says of a load for those who know fio."""

import pytest

from plimsoll.documents.summary import NO_LOAD, Outstanding
from plimsoll.results.load import in_words


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (0.06, "(for fio: an iodepth of 6 next to one synchronous log job)"),
        # Files have no log.
        (0.0, "(for fio: an iodepth of 6)"),
    ],
)
def test_a_log_job_stands_only_where_a_log_was_written(log: float, said: str) -> None:
    outstanding = Outstanding(database_read=4.49, database_write=1.91, log_write=log)
    (line,) = in_words(NO_LOAD.replace(outstanding_mean=outstanding))
    assert line.endswith(said)
    assert ("log writes" in line) is bool(log)
