"""Plans of stores: what they become, and that every mistake is reported at once with its place."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.workloads.store.rate import ceiling, opm, sessions_of
from plimsoll.workloads.store.sizes import bytes_of, megabytes_of, rows_of


def plan(instance=None, workload=None, **further):
    """A plan of one store and one workload on it, without storage."""
    return plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "shop", "backend": "store", **(instance or {})}],
            "workload": [{"name": "orders", **(workload or {})}],
            "phase": [
                {"kind": "prepare"},
                {"kind": "measure", "duration_s": 60},
                {"kind": "audit"},
                {"kind": "stop"},
            ],
            **further,
        }
    ).plain()


def mistakes(*arguments, **further):
    """The places of all mistakes, with their texts."""
    with pytest.raises(InputError) as found:
        plan(*arguments, **further)
    return {mistake.where: mistake.message for mistake in found.value.mistakes}


def test_DS_02_sizes_follow_one_rule():
    """The published sizes come out of it, and more megabytes never mean fewer rows, as they do in
    the original.
    """
    assert rows_of(megabytes_of("S")) == {"customers": 20_000, "products": 10_000, "orders": 12_000}
    assert rows_of(megabytes_of("M")) == {
        "customers": 2_000_000,
        "products": 100_000,
        "orders": 1_200_000,
    }
    assert megabytes_of("L") == megabytes_of("100GB") == 100_000
    before = 0
    for megabytes in (*range(1, 3000, 7), 250_000):
        assert bytes_of(megabytes) > before
        before = bytes_of(megabytes)
    assert [megabytes_of(text) for text in ("", "10", "1.5GB", "1001GB", "-1MB")] == [None] * 5


def test_DS_04_DS_06_users_are_threads_and_think_time_bounds_the_rate():
    """The published tests: 200 users are 20 threads, which at 1.5 s make 800 orders per minute at
    most.
    """
    found = plan(workload={"think_s": 1.5, "load": {"users": 200}})["run"]["workloads"][0]
    assert found["load"] == {"sessions": 20, "shared": True} and found["think_s"] == 1.5
    assert (ceiling(20, 1.5, 0.0), ceiling(50, 1.5, 0.0)) == (800, 2000)
    assert sessions_of(500) == 50
    # Some more than whole tens are one session more: fewer than asked for would pass too easily.
    assert [sessions_of(users) for users in (1, 5, 25, 30, 35)] == [1, 1, 3, 3, 4]


def test_DS_05_orders_per_minute_on_a_synthetic_log():
    assert [opm(count, 60.0) for count in (0, 1, 799)] == [0, 1, 799]
    assert opm(24_000, 1800.0) == 800 and opm(1, 61.0) == 0


def test_what_is_not_said_is_as_in_dvd_store():
    found = plan()
    workload, instance = found["run"]["workloads"][0], found["run"]["instances"][0]
    assert workload["family"] == "store" and workload["load"] == {"sessions": 1, "shared": True}
    assert [workload[key] for key in ("searches_mean", "search_rows_mean", "lines_mean")] == [
        3,
        5,
        5,
    ]
    assert workload["new_customers_percent"] == 20 and workload["think_s"] == 0
    assert (
        instance["databases"][0]["store_mb"] == 10
        and "record_bytes" not in instance["databases"][0]
    )
    assert found["judgement"]["test"] == "store"
    arriving = plan(workload={"load": {"transactions_per_s": 5}})["run"]["workloads"][0]["load"]
    assert arriving["transactions_per_s"] == 5 and arriving["spacing"] == "poisson"


def test_every_mistake_is_reported_at_once():
    found = mistakes(
        {"store_size": "huge", "databases": 2, "file_mib": 5},
        {"sluggish": 1, "load": {"users": 5, "sessions": 3, "target_iops": 7}},
    )
    assert found["instance[1].store_size"] == 'is "huge", which is no size of a store'
    assert found["instance[1].databases"] == "means nothing for a store"
    assert found["instance[1].file_mib"] == "means something only for files"
    assert found["workload[1].sluggish"] == "means nothing for store"
    assert found["workload[1].load.target_iops"] == "means nothing for a store"
    assert "sessions and users" in found["workload[1].load"]
    with pytest.raises(InputError) as refused:
        plan_of_options(
            {
                "target": [{"name": "disk", "path": "/nowhere"}],
                "instance": [{"name": "mail", "backend": "engine", "store_size": "S"}],
                "phase": [{"kind": "prepare"}, {"kind": "audit"}],
            }
        )
    assert "means something only for a store" in str(refused.value)
    assert "no instance is a store" in str(refused.value)


def test_an_address_that_cannot_be_read_is_no_file_of_sqlite():
    """A password in the address was told together with "means nothing for a file of SQLite"."""
    where = {"store_address": "postgresql://shop:hush@h/d", "password_file": "/etc/shop"}
    found = mistakes({"backend": "postgresql", **where}, target=[{"name": "host"}])
    assert "holds a password" in found["instance[1].store_address"]
    assert list(found) == ["instance[1].store_address"]
