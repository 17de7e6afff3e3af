"""Tables 14 to 19 of the Dell EqualLogic paper.

The printed example exactly, and what the formulas give instead.
"""

import pytest

from plimsoll.sizing.databases import (
    Reserves,
    database_count,
    database_volumes,
    total_capacity,
    total_database_size,
)
from plimsoll.sizing.design import Sizing, size
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.iops import (
    LOG_RULES,
    database_iops,
    iops_per_user,
    log_iops_prose,
    log_iops_table_17,
)
from plimsoll.sizing.logs import log_volume, message_size_factor
from plimsoll.sizing.mailbox import mailbox_size
from plimsoll.sizing.requirements import as_document, check_requirements
from plimsoll.sizing.traced import by_name
from plimsoll.sizing.worked_example import EXAMPLE

TABLES_18_AND_19 = {
    "white_space_mb": 11,
    "dumpster_mb": 297,
    "mailbox_size_mb": 2356,
    "total_database_size_gb": 11505,
    "database_count": 12,
    "database_size_gb": 959,
    "database_volume_size_gb": 1266,
    "logs_per_user_per_day": 30,
    "message_size_factor": 1,
    "users_per_database_count": 417,
    "log_growth_mb_per_day": 12510,
    "log_volume_size_gb": 48,
    "total_capacity_gb": 15768,
    "iops_per_user": 0.15,
    "database_iops": 900,
}


def worked_example(reading: str) -> Sizing:
    return size(
        check_requirements(as_document("paper", {"kind": "requirements", **EXAMPLE})), reading
    )


@pytest.mark.parametrize(("name", "printed"), TABLES_18_AND_19.items())
def test_the_worked_example_as_printed(name: str, printed: float) -> None:
    """CAL-01 to CAL-07: The paper's own rounding and omissions, exactly.

    An architect compares these with the page.
    """
    assert worked_example("dell_2010").results[name].value == printed


def test_the_formulas_give_other_figures_and_every_difference_is_explained() -> None:
    """Table 14 multiplies by 1.2 where the example does not.

    Silence would make one of the two look wrong.
    """
    sizing = worked_example("formulas")
    figures = sizing.results
    assert figures["total_database_size_gb"].value == pytest.approx(13805.595245, abs=1e-6)
    assert figures["database_count"].value == 14
    assert figures["total_capacity_gb"].value == pytest.approx(18750.729474, abs=1e-6)
    differing = {difference.name for difference in sizing.differences}
    published = worked_example("dell_2010").results
    assert differing >= {
        name for name in TABLES_18_AND_19 if published[name].value != figures[name].value
    }
    assert all(difference.reason != "follows" for difference in sizing.differences)


def test_the_example_stated_as_it_assumes_differs_only_by_rounding_and_the_overhead(
    exchange_2010: Guidance,
) -> None:
    """With the 10 % of mailbox moves stated, Table 19 follows from Table 15 but for its
    rounding.
    """
    logs = log_volume(5000, 12, 150, 75, 3, exchange_2010, moved_fraction=0.1)
    assert logs.log_volume_size.value == pytest.approx(
        48.3398, abs=1e-4
    )  # 48.3785 with users rounded to 417
    assert log_volume(5000, 12, 150, 75, 3, exchange_2010).log_volume_size.value == pytest.approx(
        43.9453, abs=1e-4
    )


def test_the_chain_of_a_result_has_one_step_for_each_name() -> None:
    """The rounded and the unrounded mailbox both take part in the paper's reading and need two
    names.
    """
    for reading in ("formulas", "dell_2010"):
        assert by_name(worked_example(reading).steps)


def test_mailbox_unrounded(exchange_2010: Guidance) -> None:
    """CAL-01: the sizes behind the rounded ones, which the total is computed from."""
    sizes = mailbox_size(2048, 150, 75, exchange_2010)
    assert sizes.white_space.value == 10.986328125
    assert sizes.dumpster.value == pytest.approx(297.16859375, rel=1e-12)
    assert sizes.mailbox_size.value == pytest.approx(2356.154921875, rel=1e-12)


def test_database_and_volume(exchange_2010: Guidance) -> None:
    """CAL-02: with the 1.2 of the table, and the volume from the database size as printed."""
    total = total_database_size(5000, 2356.154921875, exchange_2010)
    assert total.value == pytest.approx(13805.595245, abs=1e-6)
    volumes = database_volumes(11504.662704, 12, exchange_2010)
    assert volumes.database_size.value == pytest.approx(958.7219, abs=1e-4)
    assert database_volumes(959, 1, exchange_2010).database_volume_size.value == pytest.approx(
        1265.88
    )


def test_database_count_by_size_users_and_backup() -> None:
    """CAL-03: The number is the smallest that keeps every limit, so the tightest limit decides."""
    assert database_count(11504.66, 1024).value == 12
    assert (
        database_count(11504.66, 1024, user_count=5000, users_per_database_max_count=250).value
        == 20
    )
    assert database_count(11504.66, 1024, minimum_count=16).value == 16
    from plimsoll.sizing.backup import window_database_size

    window = window_database_size(8, 58.415)
    assert window.value == pytest.approx(1642.92, abs=0.01)
    assert database_count(11504.66, 2048, backup_window_database_gb=window).value == 8


def test_mailbox_moves_write_logs(exchange_2010: Guidance) -> None:
    """ENG-24: moving a tenth of the mailboxes while logs are held takes a tenth more space for
    them.
    """
    still, moving = (log_volume(5000, 12, 150, 75, 3, exchange_2010, moved) for moved in (0, 0.1))
    assert moving.log_volume_size.value == pytest.approx(1.1 * still.log_volume_size.value)


def test_message_size_factor_steps() -> None:
    """CAL-04: the factor is a step function.

    A continuous one would give other volumes between the steps.
    """
    assert [
        message_size_factor(size_kb).value for size_kb in (1, 75, 75.01, 150, 150.01, 1000)
    ] == [
        1.0,
        1.0,
        1.9,
        1.9,
        3.8,
        3.8,
    ]


def test_database_iops(exchange_2010: Guidance) -> None:
    """CAL-05: 900 in a group; a standalone server writes a fifth more."""
    for standalone, one, total in ((False, 0.15, 900), (True, 0.18, 1080)):
        rate = iops_per_user(150, exchange_2010, standalone=standalone)
        assert rate.value == pytest.approx(one)
        assert database_iops(5000, rate, exchange_2010).database_iops.value == pytest.approx(total)


def test_both_published_log_rules_by_name(exchange_2010: Guidance) -> None:
    """CAL-06: The table takes a tenth of database I/O for each copy, the prose a tenth of log
    writes: 378 against 297.
    """
    assert log_iops_table_17(900, 2, exchange_2010).value == pytest.approx(378)
    assert log_iops_prose(900, 2, exchange_2010).value == pytest.approx(297)
    assert (
        log_iops_table_17(900, 1, exchange_2010).value
        == log_iops_prose(900, 1, exchange_2010).value
    )
    assert set(LOG_RULES) == {"table_17", "section_3_3_2"}


def test_capacity_is_the_sum_of_its_parts(exchange_2010: Guidance) -> None:
    """CAL-07: 15,768 GB as printed, and each reserve that is asked for adds its own term."""
    plain = total_capacity(12, 1266, 48, 2, exchange_2010)
    assert (plain.total.value, plain.all_copies.value) == (15768, 31536)
    full = total_capacity(12, 1266, 48, 2, exchange_2010, Reserves(0.2, 0.1, 1, 2, 1))
    assert full.total.value == pytest.approx(sum(part.value for part in full.parts))
    assert [part.value for part in full.parts] == pytest.approx(
        [15768, 3153.6, 1576.8, 15768, 2 * 1266, 1.1 * 1266]
    )
