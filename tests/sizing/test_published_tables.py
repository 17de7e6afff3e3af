"""The other published tables and rules, one by one, with the figures as printed or as corrected."""

import pytest

from plimsoll.sizing.backup import backup_hours, backup_window, replay_hours
from plimsoll.sizing.capacity import (
    usable_capacity,
    users_by_iops,
    users_by_mailbox_size,
    utilisation,
)
from plimsoll.sizing.guidance import Guidance, editions, read_data
from plimsoll.sizing.iops import (
    database_iops,
    iops_per_user,
    measured_iops_per_user,
    read_write_ratio,
    required_iops,
)
from plimsoll.sizing.logs import log_space_days, log_volume
from plimsoll.sizing.mailbox import profile_cache
from plimsoll.sizing.memory import cache_per_user, processor_demand, server_memory, system_disk
from plimsoll.sizing.qualifying_load import (
    dvd_store_threads,
    iometer_outstanding,
    outstanding_io,
    sessions_per_database,
)


@pytest.mark.parametrize(
    ("drive_gb", "data_drives", "usable_gb"),
    [
        *((size, 12, size * 12) for size in (250, 300, 400, 450, 500, 600, 1000, 2000)),
        *((size, 7, size * 7) for size in (250, 300, 400, 450, 500, 600, 1000, 2000)),
        (500, 39, 19500),
        (600, 39, 23400),
        (2000, 39, 78000),
        (500, 23, 11500),
        (600, 23, 13800),
        (2000, 23, 46000),
    ],
)
def test_usable_capacity_of_table_13(drive_gb: float, data_drives: int, usable_gb: float) -> None:
    """CAL-09: every cell of the table is drive size times data drives.

    One that is not would be a typing slip.
    """
    assert usable_capacity(drive_gb, data_drives).value == usable_gb


@pytest.mark.parametrize(
    "row",
    read_data("profiles.toml")["row"],
    ids=lambda row: f"{row['edition']}-{row['messages_per_day']}",
)
def test_profile_rows_follow_from_the_rules(row: dict[str, float | str]) -> None:
    """CAL-10: The rules of the guidance reproduce every published row, so a profile needs no table
    of its own.
    """
    guidance = editions()[str(row["edition"])]
    messages = float(row["messages_per_day"])
    rate = iops_per_user(messages, guidance, standalone=row["mode"] == "standalone").value
    # The tables print two or three digits, the last one rounded half up.
    assert rate == pytest.approx(float(row["iops_per_user"]), abs=0.00051)
    if "cache_mb_per_user" in row:
        assert profile_cache(messages, guidance).value == pytest.approx(
            float(row["cache_mb_per_user"])
        )


def test_users_against_mailbox_size_table_9() -> None:
    """CAL-11: EMC Table 9; its last row says 1,800 where its own measured rate carries 1,927 (noted
    in the docs).
    """
    rows = users_by_mailbox_size([3, 2, 1.5, 1, 0.5], 1500, 462.483, 0.24)
    assert [(row.users, row.limit) for row in rows] == [
        (500, "capacity"),
        (750, "capacity"),
        (1000, "capacity"),
        (1500, "capacity"),
        (1927, "IOPS"),
    ]
    assert users_by_iops(462.483, 0.24).value == 1927


def test_headroom(exchange_2010: Guidance) -> None:
    """CAL-12: 200 messages are 0.20 IOPS and 0.24 with headroom, the published target of 240 for
    1,000 users.
    """
    rates = database_iops(1000, iops_per_user(200, exchange_2010, standalone=False), exchange_2010)
    assert rates.iops_per_user_with_headroom.value == pytest.approx(0.24)
    assert rates.database_iops.value == pytest.approx(240)


def test_utilisation() -> None:
    """CAL-13: printed 76.4, 46.5 and 80.45 %.

    The first was truncated, the last took a rounded size.
    """
    assert utilisation(3211.26, 4200).value == pytest.approx(76.459, abs=0.0005)
    assert utilisation(1955, 4200).value == pytest.approx(46.548, abs=0.0005)
    assert utilisation(1955, 2 * 1.186 * 1024).value == pytest.approx(80.49, abs=0.005)


def test_cache_per_user(exchange_2010: Guidance) -> None:
    """CAL-14: The paper prints 1.48 and 3.48 by counting 8 GB as 8,000 MB.

    With 1,024 it is 1.536 and 3.584.
    """
    assert cache_per_user(8 * 1024, 4000, exchange_2010).value == pytest.approx(1.536)
    assert cache_per_user(16 * 1024, 4000, exchange_2010).value == pytest.approx(3.584)
    assert cache_per_user(1024, 4000, exchange_2010).value == 0


def test_ratio_and_rate_of_one_user() -> None:
    """CAL-15: from the printed rates.

    The ratios printed beside them are means of intervals and differ.
    """
    assert read_write_ratio(477.74, 144.682).value == pytest.approx(3.302, abs=0.0005)
    assert read_write_ratio(190.547, 117.083).value == pytest.approx(1.6275, abs=0.0001)
    assert measured_iops_per_user(622.422, 4000).value == pytest.approx(0.1556, abs=0.00005)


def test_backup_window_and_replay() -> None:
    """CAL-17: size and rate give the printed elapsed time.

    Parallel reads and more servers shorten the window.
    """
    one = backup_hours(994882.09 / 1024, 58.875)
    assert one.value * 3600 == pytest.approx(16898, abs=1)  # printed 4:41:38
    assert backup_window(2, one, 2, 1).value == one.value
    assert backup_window(2, one, 1, 1).value == 2 * one.value
    assert backup_window(2, one, 1, 2).value == one.value
    assert replay_hours(500, 1, 2.23).value * 3600 == pytest.approx(1115)


def test_processor_figures_are_plugged_in_as_guidance(exchange_2010: Guidance) -> None:
    """CAL-18: Nothing is said about processors until somebody states a figure with its source."""
    assert processor_demand(1000, exchange_2010) is None
    figure = {"value": 4.25, "source": "a vendor's table", "basis": "read"}
    extra = {"edition": [{"name": "exchange_2010", "figures": {"cpu_megacycles_per_user": figure}}]}
    demand = processor_demand(1000, editions(extra=extra)["exchange_2010"])
    assert demand is not None
    assert (demand.value, demand.source) == (4250, "a vendor's table")
    assert server_memory(5000, 9, exchange_2010).value == pytest.approx((5000 * 9 + 2048) / 1024)
    assert (
        server_memory(10, 9, editions()["exchange_2019"]).value == 128
    )  # the product's stated minimum


def test_logs_of_a_user(exchange_2010: Guidance) -> None:
    """CAL-19: 150 messages write 30 logs, the beginning of every log volume."""
    assert log_volume(1, 1, 150, 75, 3, exchange_2010).logs_per_user.value == 30


def test_threads_and_outstanding_io(exchange_2010: Guidance) -> None:
    """CAL-21: the threads and outstanding I/O of the published tests come back from their users and
    rates.
    """
    assert [dvd_store_threads(users).value for users in (200, 500)] == [20, 50]
    assert [iometer_outstanding(users).value for users in (200, 500)] == [1, 2]
    assert sessions_per_database(329.489, 2, exchange_2010).value == 3  # as in the test
    assert outstanding_io(329.489, 12.774).value == pytest.approx(4.209, abs=0.001)


def test_scaling_with_users() -> None:
    """CAL-22: the targets of the 1-2-3 member study."""
    assert [required_iops(users, 0.35).value for users in (5000, 10000, 15000)] == [
        1750,
        3500,
        5250,
    ]


def test_system_disk() -> None:
    """CAL-23: a guest with 48 GB needs 63 GB of system disk."""
    assert system_disk(48).value == 63


@pytest.mark.parametrize(
    ("retention", "interval", "lag", "days"),
    [(3, 1, 0, 3), (3, 7, 0, 7), (3, 1, 7, 10), (3, 7, 14, 21)],
)
def test_days_of_logs_kept(retention: float, interval: float, lag: float, days: float) -> None:
    """BKP-04: A weekly full backup stretches the days, a lagged copy adds its lag (section
    3.3.4).
    """
    assert log_space_days(retention, interval, lag).value == days


def test_the_window_follows_from_a_measured_rate() -> None:
    """BKP-02: a faster measured rate is a shorter backup, for one size."""
    hours = [backup_hours(1000, rate).value for rate in (50, 58.415, 100)]
    assert hours == sorted(hours, reverse=True)
