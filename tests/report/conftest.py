"""Finished run folders for the tests of summary and report."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic import make_folder

from plimsoll import folder
from plimsoll.measurements import summarize
from plimsoll.report import write_report
from plimsoll.verdict import judge

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
Finish = Callable[[Path], Path]


@pytest.fixture(scope="session")
def finish() -> Finish:
    """Does the stages after a run: summary, verdict, report."""

    def stages(run_folder: Path) -> Path:
        plan, environment = (folder.read_json(run_folder / name) for name in (folder.PLAN, folder.ENVIRONMENT))
        summary = summarize(run_folder)
        folder.write_json(run_folder / folder.SUMMARY, summary)
        folder.write_json(run_folder / folder.VERDICT, judge(plan, summary, environment))
        write_report(run_folder)
        return run_folder

    return stages


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory, finish: Finish) -> Path:
    """A run with the figures of the published two-hour test."""
    return finish(make_folder(tmp_path_factory.mktemp("published") / "run"))


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory, finish: Finish) -> Path:
    """The golden run with its later stages done anew."""
    copy = tmp_path_factory.mktemp("golden") / "run"
    shutil.copytree(GOLDEN, copy)
    return finish(copy)
