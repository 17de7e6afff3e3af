"""Finished run folders for the tests of summary and report."""

import shutil
from pathlib import Path

import pytest

from tests.support.synthetic import finish, make_folder

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the figures of the published two-hour test."""
    return finish(make_folder(tmp_path_factory.mktemp("published") / "run"))


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden run with its later stages done anew."""
    copy = tmp_path_factory.mktemp("golden") / "run"
    shutil.copytree(GOLDEN, copy)
    return finish(copy)
