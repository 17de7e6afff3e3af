"""Run folders to compare: made from stated rates, without a disk."""

from pathlib import Path

import pytest

from tests.support.judged_runs import judged
from tests.support.synthetic import make_folder, make_slow_folder


@pytest.fixture(scope="session")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published two-hour run."""
    return judged(make_folder(tmp_path_factory.mktemp("fast") / "fast"))


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on a storage whose reads take 25 ms."""
    return judged(make_slow_folder(tmp_path_factory.mktemp("slow") / "slow"))
