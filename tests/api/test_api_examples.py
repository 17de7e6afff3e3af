"""The examples of the API's page, of the package's own text, and of the notebook.

Readers copy them.
"""

import doctest
import runpy
import sys
from pathlib import Path

import pytest

import plimsoll

ROOT = Path(__file__).parents[2]


def test_every_example_of_the_page_gives_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are carried out on modelled arrays, below a folder of this test."""
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False)
    assert found.attempted > 25
    assert found.failed == 0


def test_the_example_of_the_package_gives_what_it_says() -> None:
    """It is what `help(plimsoll)` shows."""
    found = doctest.testmod(plimsoll)
    assert (found.attempted > 2, found.failed) == (True, 0)


def test_the_notebook_qualifies_storage_and_draws_latencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole qualification on databases of 64 MiB, from the plan to a chart, as cells one after
    the other.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_NOTEBOOK_DIRECTORY", str(tmp_path / "storage"))
    monkeypatch.setenv("PLIMSOLL_NOTEBOOK_SECONDS", "3")
    monkeypatch.setattr(sys, "argv", ["notebook.py"])
    cells = runpy.run_path(str(ROOT / "examples" / "notebook.py"))
    assert cells["result"].ending == "complete"
    rows = cells["points"]
    assert cells["chart"]["mark"]["type"] == "line"
    assert {row["metric"] for row in rows} >= {"database reads", "log writes"}
    assert all(row["latency_ms"] > 0 for row in rows)
    assert (cells["result"].folder / "report.html").exists()
    assert not list((tmp_path / "storage").glob("*")), "the databases are deleted"
    assert (cells["result"].folder / "latency.svg").exists()


def test_a_cell_of_the_notebook_may_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever works with a notebook runs the cell of the run once more; it was refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_NOTEBOOK_DIRECTORY", str(tmp_path / "storage"))
    monkeypatch.setenv("PLIMSOLL_NOTEBOOK_SECONDS", "1")
    cells = (ROOT / "examples" / "notebook.py").read_text().split("# %%\n")
    names: dict[str, object] = {"__name__": "__main__"}
    folders = set()
    for cell in [*cells[1:4], cells[3]]:
        exec(cell, names)
        result = names.get("result")
        folders |= {result.folder} if isinstance(result, plimsoll.Result) else set()
    assert len(folders) == 2
    exec(cells[-1], names)
    assert not list((tmp_path / "storage").glob("*")), "the databases are deleted"
