"""Parquet files of run folders in DuckDB's SQL.

The file that is meant and no other, whatever its path looks like.

To DuckDB the path of a file to be read is a pattern, in which `[`, `*` and `?` stand for others,
and a folder called `array=2` in it is a column. Folders are named by users, so both are ruled out
here, and nowhere else is a path put into SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

#: A row of an answer, by column; the values of a question, by name; and what asks.
Row = dict[str, Any]
Values = dict[str, Any]
Query = Callable[[str, Values], list[Row]]
#: A table in memory: an array for each column.
Columns = dict[str, "NDArray[Any]"]

PATTERN_CHARACTERS = "[*?"


def database() -> duckdb.DuckDBPyConnection:
    """A connection to a database in memory, to ask files with.

    It has one thread: of the same rows, sums of several differ in the last digit from run to run.
    To make the database takes 17 ms, so connections open at once share it; tables are therefore
    temporary, which other connections do not see.
    """
    import duckdb

    return duckdb.connect(":memory:plimsoll", config={"threads": 1})


def rows_of(path: Path) -> str:
    """The rows of one file, to stand behind FROM.

    >>> rows_of(Path("/runs/a [1]/it's.parquet"))
    "read_parquet('/runs/a [[]1]/it''s.parquet', hive_partitioning = false)"
    """
    return _read(_itself(path))


def rows_of_all(directory: Path) -> str:
    """The rows of all Parquet files right in a directory, to stand behind FROM."""
    return _read(f"{_itself(directory)}/*.parquet")


def into(path: Path) -> str:
    """Where rows are written, to stand at the end of COPY.

    A new file, or another in the place of the old.

    >>> into(Path("/runs/a/b.parquet"))
    "TO '/runs/a/b.parquet' (FORMAT parquet, COMPRESSION zstd)"
    """
    return f"TO {_text(str(path.absolute()))} (FORMAT parquet, COMPRESSION zstd)"


def column(name: str) -> str:
    """A column that a file has named.

    >>> print(column('one "of" them'))
    "one ""of"" them"
    """
    return '"' + name.replace('"', '""') + '"'


def _itself(path: Path) -> str:
    """A pattern that only this path fits.

    A relative one could be taken for an address or a home.
    """
    return "".join(
        f"[{letter}]" if letter in PATTERN_CHARACTERS else letter for letter in str(path.absolute())
    )


def _read(pattern: str) -> str:
    return f"read_parquet({_text(pattern)}, hive_partitioning = false)"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
