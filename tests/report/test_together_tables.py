"""The chapter "Together": its tables and their sentences."""

from typing import Any

from plimsoll.documents.endpoint_figures import DistributionFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.server_usage import ServerUsage
from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.pages.kit import page_style
from plimsoll.pages.tables import Table
from plimsoll.report.published_cells import per_user_table, published_table
from plimsoll.report.together import together_tables
from tests.support.event_answers import event, response
from tests.support.plain_stages import filled
from tests.support.two_loads import two_loads


def tables(found: list[Table]) -> dict[str, Table]:
    return {table.title: table for table in found}


def run_of(tmp_path: Any, **changes: Any) -> tuple[Plan, Summary]:
    place = two_loads(tmp_path / "run", **changes)
    return Plan.read(place / folder.PLAN), Summary.read(place / folder.SUMMARY)


def test_think_time_is_spoken_of_only_where_a_store_was_used(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path)
    with_store = per_user_table(plan, summary)
    assert with_store is not None and "think" in with_store.note.lower()
    # Half a second of think time allows twelve orders a minute, whatever a paper had.
    row = next(row for row in with_store.rows if row[0] == "orders")
    assert row[4] == 12 and row[5] == 100 * row[3] / 12
    alone = per_user_table(plan, summary.replace(store=()))
    assert alone is not None
    assert "think" not in (alone.note + " ".join(alone.headings)).lower()


def test_users_and_array_that_are_not_those_of_the_paper_are_named(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path, published="md3000i-optimized-200")
    table = published_table(plan, summary)
    assert table is not None
    assert next(row for row in table.rows if row[0] == "Users of each load")[1:] == [
        200, 500, 200, 500, "40 orders, 50 files",
    ]  # fmt: skip
    assert "40 users of orders instead of 200" in table.note
    assert "only figures for each user" in table.note
    assert "not on the array of the paper" in table.note


def test_it_is_plain_whose_cells_are_whose(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path, published="md3000i-optimized-200")
    found = tables(together_tables(plan, summary))
    headings = found["Published cells and this run"].headings
    assert headings[1] == "Paper: optimized, 200 users" and headings[-1] == "This run, MODELLED"
    against = found["What the paper says against itself"]
    assert [row[0] for row in against.rows] == ["M-01", "M-02", "M-03", "M-04", "M-05", "M-15"]
    assert "302 against 517" in against.rows[-1][1] and "144 against 151" in against.rows[-1][1]


def test_events_have_numbers_and_say_what_they_share(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path)
    events = [
        event(10, 20, response(None, seen=False)).replace(name="a"),
        event(12, None, response(None, seen=False)).replace(name="b"),
        event(30.04, 31, response(None, seen=False)).replace(name="c"),
    ]
    found = tables(together_tables(plan, summary.replace(events=events)))
    table = found["Events"]
    assert [row[:2] for row in table.rows] == [["a", 1], ["b", 2], ["c", 3]]
    assert "30.0" in [table.shown(cell) for cell in table.rows[2]]
    assert "1 with 2; 2 with 1, 3; 3 with 2" in table.note
    answers = found["Event 1, a: answers of the loads"]
    assert answers.rows[0][answers.headings.index("Seen after, s")] == "not seen"
    assert "Mean while it lasted, ms" in answers.headings


def test_no_fall_is_deeper_than_the_whole_rate(tmp_path: Any) -> None:
    """A load of few operations scatters by more than it does: then any fall may be chance."""
    plan, summary = run_of(tmp_path)
    few = response(None, seen=False).replace(workload="few", unseen_percent=160.0)
    many = response(None, seen=False).replace(workload="many", unseen_percent=12.3)
    staged = event(10, 20, few).replace(name="a", loads=[few, many])
    found = tables(together_tables(plan, summary.replace(events=[staged, staged])))
    note = found["Event 1, a: answers of the loads"].note
    assert "160" not in note and "few any" in note and "many below 12.3 %" in note
    # What holds for every event is told once.
    assert "by chance" in note
    assert "by chance" not in found["Event 2, a: answers of the loads"].note


def test_clients_of_one_address_are_told_as_one(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path)
    found = [
        DistributionFigures(
            workload="orders",
            instance="shop",
            policy="single affinity",
            addresses=count,
            endpoints=(),
        )
        for count in (1, 4)
    ]
    notes = [table.note for table in together_tables(plan, summary.replace(endpoints=found))]
    assert any("clients of one address." in note for note in notes)
    assert any("clients of 4 addresses." in note for note in notes)


def test_a_load_on_time_is_late_by_nothing(tmp_path: Any) -> None:
    """Seven nanoseconds are not 7e-06."""
    plan, summary = run_of(tmp_path)
    loads = [
        load.replace(arrival_lag=load.response.replace(ms_p99=7e-06))
        for load in summary.load.workloads
    ]
    summary = summary.replace(load=summary.load.replace(workloads=loads))
    table = tables(together_tables(plan, summary))["Loads next to each other"]
    assert {table.shown(row[-1]) for row in table.rows} == {"0"}


def test_heads_of_tables_break_between_words() -> None:
    """`Pause` and `, s` on two lines, or `Highe` and `st`, are not read."""
    heads = [line for line in page_style().splitlines() if "thead th {" in line]
    assert heads and not any("anywhere" in line for line in heads)


def test_what_servers_were_out_of_is_said_in_whole_sentences(tmp_path: Any) -> None:
    plan, summary = run_of(tmp_path)
    gone = [
        ServerUsage.from_plain(filled(ServerUsage, {"name": name, "gone_s": 5.0}))
        for name in ("shop", "mail")
    ]
    note = tables(together_tables(plan, summary.replace(servers=gone)))[
        "Servers and the run itself"
    ].note
    assert note.startswith(
        "shop had no process for 5 s while it was measured; "
        "mail had no process for 5 s while it was measured. Memory that"
    )
