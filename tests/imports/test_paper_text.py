"""The text of a paper with its broken tables.

Every figure comes out as it went into the printing.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.imports.papers.row_repair import Block, cells_of
from plimsoll.imports.papers.text import read_paper
from plimsoll.inputs.mistakes import InputError
from tests.support.paper_shape import (
    BELOW,
    BLANKS,
    FAULTS,
    SEQUENCE,
    SPACE,
    TAILS,
    WHOLE,
    paper,
    printed_with,
    report_lines,
)
from tests.support.published import REPORTS, differences

WAYS = (WHOLE, BELOW, SEQUENCE, BLANKS, SPACE, TAILS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REPORTS)
def test_RPT_26_a_report_with_broken_tables_keeps_every_figure(name: str, way: str) -> None:
    """The published text is damaged in each of these ways.

    A lost digit would be a wrong latency.
    """
    expected = REPORTS[name]()
    (found,) = read_paper("paper.txt", "\n".join(report_lines(expected, way, seed=7)))
    assert differences(expected, found) == []


def test_RPT_26_a_whole_paper_is_taken_apart_into_its_reports() -> None:
    """Appendices B to F, each damaged in its own way, with page headings and numbers between."""
    ways = [
        ("B", "appendix_b", BELOW),
        ("C", "appendix_c", BLANKS),
        ("D", "appendix_d", SEQUENCE),
        ("E", "appendix_e", WHOLE),
        ("F", "appendix_f_replay", SPACE),
        ("", "appendix_f_generation", WHOLE),
    ]
    text = paper([(letter, REPORTS[name](), way) for letter, name, way in ways])
    found = read_paper("paper.txt", text)
    assert [report["source"]["part"] for report in found] == [
        "appendix-b-performance",
        "appendix-c-performance",
        "appendix-d-stress",
        "appendix-e-database-backup",
        "appendix-f-soft-recovery",
        "appendix-f-performance",
    ]
    for (_, name, _), report in zip(ways, found, strict=True):
        assert differences(REPORTS[name](), report) == [], name


def test_what_was_mended_is_said() -> None:
    """E-01 and E-02: whoever reads the figures must know that a program put them together."""
    (found,) = read_paper("paper.txt", "\n".join(report_lines(REPORTS["appendix_d"](), BELOW)))
    assert found["repairs"] == [
        "Transactional I/O Performance: the cells of 2 rows were cut in pieces and put together",
        "Total I/O Performance: the cells of 2 rows were cut in pieces and put together",
        "Total I/O Performance: rows of another table stand before its own and were left out",
    ]


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 30)), min_size=2, max_size=12),
    st.sampled_from(["below", "sequence"]),
)
@settings(max_examples=200, deadline=None)
def test_cells_cut_anywhere_come_together(values: list[tuple[int, int]], way: str) -> None:
    """The published page cut each cell where its column happened to end."""
    cells = [f"{value // 1000}.{value % 1000:03}" for value, _ in values]
    halves = [
        (cell[:cut], cell[cut:])
        for cell, (_, place) in zip(cells, values, strict=True)
        for cut in [1 + place % (len(cell) - 1)]
    ]
    if way == "below":
        lines = [
            "".join(f"{head:<18}" for head, _ in halves),
            "".join(f"{tail:<18}" for _, tail in halves),
        ]
    else:
        lines = [piece for pair in halves for piece in pair]
    found = cells_of(Block(1, "", lines), len(cells), 3)
    assert found == cells


@pytest.mark.parametrize(
    ("name", "old", "word"),
    [
        ("appendix_c", "102.641", "12 numbers with three decimals were expected"),
        ("appendix_e", "04:41:38", "rows of Database Size"),
        ("appendix_c", "1.689", "average, minimum and maximum"),
    ],
)
def test_a_table_that_cannot_be_put_together_is_lost_by_name_and_the_rest_is_kept(
    name: str, old: str, word: str
) -> None:
    """Guessing a digit is worse than asking for it, and one broken table is no reason to lose a
    report.
    """
    lines = "\n".join(report_lines(REPORTS[name]())).split("\n")
    place = next(number for number, line in enumerate(lines) if old in line)
    lines[place] = lines[place].replace(old, "", 1)
    (found,) = read_paper("paper.txt", "\n".join(lines))
    (loss,) = found["losses"]
    assert word in loss and "cannot be put together" in loss
    assert f"line {place + 1}," in loss or ":" in old
    lost = {"appendix_e": "database_backup_statistics"}.get(
        name, "host" if word.startswith("average") else ""
    )
    whole = {key for key in REPORTS[name]() if key in found}
    assert whole >= {"test_log_events", "database_configuration"} - {lost}


def test_a_report_without_any_result_is_refused_with_the_lines_of_what_broke() -> None:
    """A report that keeps nothing but its headings would look imported."""
    report = REPORTS["appendix_c"]()
    lines = "\n".join(
        report_lines({key: report[key] for key in ("test_summary", "transactional_io")})
    ).split("\n")
    row = next(number for number, line in enumerate(lines) if "102.641" in line)
    lines = [line.replace("102.641", "").replace("101.639", "") for line in lines]
    with pytest.raises(InputError) as found:
        read_paper("paper.txt", "\n".join(lines))
    assert found.value.mistakes[0].line == row + 1
    assert "12 numbers with three decimals" in found.value.mistakes[0].hint


@pytest.mark.parametrize("way", FAULTS)
@pytest.mark.parametrize("name", REPORTS)
def test_RPT_26_the_faults_of_the_printed_text_lose_no_figure(name: str, way: str) -> None:
    """A paper that was really printed has these, alone and together.

    It was refused whole for any of them.
    """
    expected = REPORTS[name]()
    for table_way in (WHOLE, TAILS):
        text = printed_with(way, report_lines(expected, table_way, seed=11))
        (found,) = read_paper("paper.txt", "\n".join(text))
        assert differences(expected, found) == []
        assert found["losses"] == []


def test_a_text_that_is_no_paper_says_what_was_expected() -> None:
    """The usual slip is the wrong file."""
    with pytest.raises(InputError, match="holds no report of the test tool"):
        read_paper("x.txt", "Dear Sir,\n\nI wanted a report.\n")


NAMES_DAMAGED = {
    "point lost": r"\g<1>\g<2>",
    "comma": r"\g<1>,\g<2>",
    "blank before": r"\g<1> .\g<2>",
    "blank behind": r"\g<1>. \g<2>",
    "blank for it": r"\g<1> \g<2>",
}


@pytest.mark.parametrize("damaged", NAMES_DAMAGED.values(), ids=NAMES_DAMAGED)
@pytest.mark.parametrize("name", REPORTS)
def test_RPT_26_a_row_whose_name_lost_its_point_is_read(name: str, damaged: str) -> None:
    """Such a row was left out without a word, or its figures went to the row above."""
    expected = REPORTS[name]()
    for way in (WHOLE, TAILS, BELOW):
        lines = "\n".join(report_lines(expected, way, seed=3)).split("\n")
        configuration = lines.index("Database Configuration")
        for number, line in enumerate(lines):
            if not configuration < number < configuration + 6:
                lines[number] = re.sub(r"^(Instance\d+)\.(\d)", damaged, line)
        (found,) = read_paper("paper.txt", "\n".join(lines))
        assert differences(expected, found) == []
        assert found["losses"] == []
        if way == WHOLE:
            assert re.match(
                r"the names of \d+ rows had lost or misplaced their point", found["repairs"][0]
            )


@pytest.mark.parametrize("damaged", ["comma", "blank before", "blank behind", "blank for it"])
def test_RPT_26_names_that_are_whole_nowhere_are_read_where_their_shape_tells_them(
    damaged: str,
) -> None:
    """A text recogniser makes the same slip in every line."""
    for name in REPORTS:
        lines = "\n".join(report_lines(REPORTS[name]())).split("\n")
        lines = [re.sub(r"^(Instance\d+)\.(\d)", NAMES_DAMAGED[damaged], line) for line in lines]
        (found,) = read_paper("paper.txt", "\n".join(lines))
        assert differences(REPORTS[name](), found) == [], name


def test_a_name_without_a_whole_one_like_it_stays_as_it_is_printed() -> None:
    """Instance28041 may be the first of process 2804 or the forty-first of 280.

    The figures are kept, no name is made up.
    """
    lines = [
        line.replace("Instance2804.", "Instance2804")
        for line in report_lines(REPORTS["appendix_d"]())
    ]
    (found,) = read_paper("paper.txt", "\n".join(lines))
    assert set(found["transactional_io"]) == {"Instance28041", "Instance28042"}
    assert found["transactional_io"]["Instance28041"]["db_read_avg_latency_ms"] == 17.92


@pytest.mark.parametrize(
    ("name", "old", "new", "word"),
    [
        (
            "appendix_d",
            "Instance2804.2",
            "lnstanoe28O4.2",
            "Transactional I/O Performance, Instance2804.1: cannot",
        ),
        ("appendix_d", "F:\\Jetstress002001.edb ", "F:\\Jetstress002001edb ", "3 rows of"),
        ("appendix_e", "Instance3236.2", "lnstance3236.2", "rows of Database Size"),
        ("appendix_f_replay", "Instance3764.2", "lnstance3764.2", "Instance3764.2: has no row"),
    ],
)
def test_a_row_that_cannot_be_told_by_its_name_is_never_left_out_without_a_word(
    name: str, old: str, new: str, word: str
) -> None:
    """Half of the databases would look like all of them."""
    lines = "\n".join(report_lines(REPORTS[name]())).split("\n")
    title = {
        "appendix_d": "Checksum" if "edb" in old else "Transactional",
        "appendix_e": "Database Backup",
    }
    begin = next(
        i for i, line in enumerate(lines) if line.startswith(title.get(name, "Soft-Recovery"))
    )
    row = next(i for i in range(begin, len(lines)) if lines[i].startswith(old))
    lines[row] = lines[row].replace(old, new)
    (found,) = read_paper("paper.txt", "\n".join(lines))
    assert any(word in loss for loss in found["losses"]), found["losses"]


def test_RPT_26_a_report_whose_end_is_missing_keeps_the_rest() -> None:
    """The published reports of three appendices end in the middle of a line of their log (E-22)."""
    for name in REPORTS:
        expected = REPORTS[name]()
        text = "\n".join(report_lines(expected)).rstrip()
        (found,) = read_paper("paper.txt", text[: len(text) - 17])
        assert (
            differences({k: v for k, v in expected.items() if k != "test_log_events"}, found) == []
        ), name
