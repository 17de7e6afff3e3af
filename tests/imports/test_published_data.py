"""Published results as data: they load, and each names the paper it comes from.

Editions differ where the papers say so.
"""

import tomllib
from importlib.resources import files

from plimsoll import settings
from plimsoll.plan.complete import plan_of_options

MIB = 1 << 20


def test_DAT_01_published_results_load_and_name_their_source() -> None:
    """A figure without its paper cannot be looked up by whoever doubts it."""
    papers = tomllib.loads(
        files("plimsoll.data").joinpath("papers.toml").read_text(encoding="utf-8")
    )
    assert len(papers["points"]) > 10
    for point in papers["points"]:
        assert point["source"].strip(), point["id"]
        assert all(figure["published"] > 0 and figure["unit"] for figure in point["figures"]), (
            point["id"]
        )
    ratios = settings.published_ratios()
    assert "h8259.1" in ratios["source"]
    assert all(row["least"] < row["most"] and row["published"] for row in ratios["ratio"])
    for row in [*settings.limits()["check"], *settings.editions().values()]:
        assert row.get("source") or row.get("sources")


def test_STU_18_editions_differ_in_memory_and_page_as_published() -> None:
    """JST-21: 900 MB for all databases of 2003, pages of 4 KiB.

    2007 reads twice as much at once into a cache of each database.
    """
    caches, pages = {}, {}
    for edition in ("2003", "2007"):
        run = plan_of_options(
            {
                "target": [{"name": "d", "path": "/d"}],
                "instance": [{"name": "i", "edition": edition, "databases": 4}],
            }
        ).run
        caches[edition] = run.instances[0].cache_bytes_max // MIB
        pages[edition] = run.instances[0].page_bytes
    assert pages == {"2003": 4096, "2007": 8192}
    assert caches == {"2003": 900, "2007": 4 * 256}
