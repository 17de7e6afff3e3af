"""`make rogues`: every row of the gallery on real devices, and what was concluded, into
docs/honesty.md.

    python -m tests.rogues.gather [--page FILE] [--at-once N] [WORD ...]

With words only the rows whose name holds one of them are carried out; the others keep their lines
of the page, as do those that others on the machine have spoilt. Wants root. It ends with 1 where a
conclusion is not what its row demands.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rogues.conclusions import conclude
from tests.rogues.gallery import GALLERY
from tests.rogues.page import Row, kept_lines, page_of
from tests.rogues.rogue import MACHINE_WAS_BUSY, Rogue, mistakes, was_busy

#: How often a row is carried out on a machine that others keep busy.
ATTEMPTS = 3


def row_of(rogue: Rogue) -> Row:
    """Carry out one row, again where others kept the processor from a sound storage.

    What is said of it then is right, and no answer to what is asked here.
    """
    for _ in range(ATTEMPTS):
        row = _row_of(rogue)
        if row.concluded is None or not was_busy(rogue, row.concluded):
            return row
    return Row(rogue, None, (), MACHINE_WAS_BUSY)


def _row_of(rogue: Rogue) -> Row:
    """Carry out one row below a temporary folder, which is removed if it went as demanded."""
    home = Path(tempfile.mkdtemp(prefix="plimsoll-rogues-"))
    try:
        concluded = conclude(rogue, home)
    except pytest.skip.Exception as skipped:
        shutil.rmtree(home)
        return Row(rogue, None, (), str(skipped))
    wrong = tuple(mistakes(rogue, concluded))
    if not wrong or was_busy(rogue, concluded):
        shutil.rmtree(home)
    return Row(rogue, concluded, wrong, "")


def gather(chosen: Sequence[Rogue], at_once: int, page: Path | None) -> list[Row]:
    """Carry out these rows, short ones first.

    The page is written after each, so that an early end leaves one.

    Who interrupts waits for the rows under way: their devices are undone first.
    """
    before = page.read_text(encoding="utf-8") if page is not None and page.exists() else ""
    done: dict[str, Row] = {}
    with ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(row_of, rogue) for rogue in sorted(chosen, key=_length)]
        try:
            for future in as_completed(waiting):
                row = future.result()
                done[row.rogue.name] = row
                print(row.line(), flush=True)
                if page is not None:
                    page.write_text(page_of(_in_order(done, before)), encoding="utf-8")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return list(done.values())


def _length(rogue: Rogue) -> float:
    """Hung I/O is waited for, whatever the length of the load."""
    return rogue.seconds + 60 * rogue.name.startswith("hung")


def _in_order(done: dict[str, Row], before: str) -> list[Row]:
    """The rows of the gallery in its order.

    Those not carried out keep what the page before says.
    """
    rows = [done.get(rogue.name) or Row(rogue, None, (), "left out") for rogue in GALLERY]
    return [
        row if row.concluded else replace(row, kept=kept_lines(before, row.rogue)) for row in rows
    ]


def main() -> None:
    """Carry out the gallery and write its page."""
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.default_int_handler)
    parser = argparse.ArgumentParser(description="carry out the gallery")
    parser.add_argument("words", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--page", type=Path, help="write the table into this file")
    parser.add_argument("--at-once", type=int, default=1, help="rows at the same time")
    options = parser.parse_args()
    chosen = [
        rogue
        for rogue in GALLERY
        if not options.words or any(word in rogue.name for word in options.words)
    ]
    rows = gather(chosen, options.at_once, options.page)
    sys.exit(any(row.mistakes for row in rows))


if __name__ == "__main__":
    main()
