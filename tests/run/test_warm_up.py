"""A cache of ours warms up next to a database of others, under the loads of both."""

import plimsoll
from tests.support.places import plimsoll as program


def test_loads_of_both_run_until_our_cache_is_warm(tmp_path):
    (tmp_path / "plan.toml").write_text(f"""kind = "plan"
schema_version = 1
sample_interval_ms = 200
target = [{{ name = "disk", path = "{tmp_path}/data" }}]
phase = [{{ kind = "prepare" }}, {{ kind = "warm_up" }}, {{ kind = "measure", duration_s = 1 }}]
[[instance]]
name = "shop"
backend = "sqlite"
store_address = "sqlite:{tmp_path}/shop.db"
store_size = "10MB"
[[instance]]
name = "mail"
database_size_mib = 64
cache_mib_min = 1
cache_mib_max = 4
[[workload]]
name = "shop"
instances = ["shop"]
load = {{ users = 2 }}
think_s = 0.1
[[workload]]
name = "mail"
instances = ["mail"]
load = {{ sessions = 2 }}
""")
    run = ("run", "plan.toml", "--yes", "--create", "--allow-system-disk", "--out", "run")
    done = program(*run, cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    events = plimsoll.read_events(tmp_path / "run")
    begun = next(event.time_ns for event in events if event.text == "warm_up started")
    (warm,) = (event for event in events if event.kind == "cache_warm")
    loads = [
        event for event in events if event.text.startswith(("workload shop:", "workload mail"))
    ]
    assert len(loads) == 2
    assert all(begun <= event.time_ns < warm.time_ns for event in loads)
    assert warm.text.startswith("every cache holds 90 % of its limit")
