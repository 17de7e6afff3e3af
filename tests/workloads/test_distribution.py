"""Clients over several endpoints of a server: what a plan of it becomes, and its mistakes."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from tests.support.mail_run import mail_plan

ADDRESS = "postgresql://shop@db1.example.org/ds2"


@pytest.fixture
def passwords(tmp_path):
    path = tmp_path / "passwords"
    path.write_text("*:a-word-of-tests\n", encoding="utf-8")
    return path


def store_plan(**instance):
    """Options of a plan of a store on a server."""
    return {
        "target": [{"name": "server"}],
        "instance": [{"name": "shop", "store_address": ADDRESS, **instance}],
        "workload": [{"name": "orders", "load": {"users": 200}}],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}, {"kind": "stop"}],
    }


def server_of(options):
    return plan_of_options(options).plain()["run"]["instances"][0]


def mistakes(options):
    with pytest.raises(InputError) as found:
        plan_of_options(options)
    return {mistake.where: f"{mistake.message}; {mistake.hint}" for mistake in found.value.mistakes}


def test_HA_06_a_mail_server_says_how_users_come_to_its_endpoints(passwords):
    assert "distribution" not in server_of(mail_plan(passwords)), "nothing is made up"
    found = server_of(mail_plan(passwords, {"distribution": "round robin"}))
    assert found["distribution"] == {"policy": "round robin"}
    found = server_of(mail_plan(passwords, {"client_addresses": 1}))
    assert found["distribution"] == {"policy": "single affinity", "client_addresses": 1}


def test_HA_06_a_store_is_reached_at_several_endpoints():
    found = server_of(
        store_plan(endpoints=["db2.example.org:5433", "[fd00::2]:5432"], distribution="round robin")
    )["server"]
    assert found["endpoints"] == [
        {"host": "db2.example.org", "port": 5433},
        {"host": "fd00::2", "port": 5432},
    ]
    assert found["distribution"] == {"policy": "round robin"}
    alone = server_of(store_plan())["server"]
    assert "endpoints" not in alone and "distribution" not in alone


def test_mistakes_of_endpoints_are_told_with_their_places(passwords):
    found = mistakes(
        store_plan(
            endpoints=[
                "db2.example.org",
                "shop@db2.example.org:5432",
                "db1.example.org:5432",
                "postgresql://db2:5432",
                "db2:0",
            ],
            distribution="round robin",
        )
    )
    for number in (1, 2, 4, 5):
        assert "which is no endpoint; write HOST:PORT" in found[f"instance[1].endpoints[{number}]"]
    assert "a second time" in found["instance[1].endpoints[3]"]
    one = {"endpoints": ["imap://127.0.0.1:10143"], "distribution": "round robin"}
    found = mistakes(mail_plan(passwords, one))
    assert "one endpoint; write more endpoints" in found["instance[1].distribution"]
    both = {"distribution": "round robin", "client_addresses": 4}
    found = mistakes(mail_plan(passwords, both))
    assert "looks at no address" in found["instance[1].client_addresses"]
    found = mistakes(mail_plan(passwords, {"distribution": "at random"}))
    assert "single affinity" in found["instance[1].distribution"]


def test_endpoints_of_a_mail_server_are_each_one_and_all_alike(passwords):
    """An address in other words is the same one, and TLS is for all endpoints or for none."""
    twice = {"endpoints": ["imap://Mail1.example.org", "imap://mail1.example.org:143/"]}
    found = mistakes(mail_plan(passwords, twice))["instance[1].endpoints"]
    assert "holds an address twice" in found
    twice = {"deliver": ["lmtp://127.0.0.1:24", "lmtp://127.0.0.1"]}
    assert "holds an address twice" in mistakes(mail_plan(passwords, twice))["instance[1].deliver"]
    mixed = {"endpoints": ["imap://127.0.0.1", "imaps://127.0.0.2"]}
    found = mistakes(mail_plan(passwords, mixed))["instance[1].endpoints"]
    assert "with TLS and without" in found
    mixed = {"deliver": ["lmtp://127.0.0.1", "smtp://127.0.0.2"]}
    assert "mixes protocols" in mistakes(mail_plan(passwords, mixed))["instance[1].deliver"]
    other = {"endpoints": ["imap://127.0.0.1", "lmtp://127.0.0.2"]}
    found = mistakes(mail_plan(passwords, other))["instance[1].endpoints[2]"]
    assert '"lmtp" is not a protocol for this' in found


def test_an_instance_of_ours_has_no_endpoints():
    plan = {
        "target": [{"name": "disk", "path": "/nowhere"}],
        "instance": [{"name": "one", "distribution": "round robin"}],
    }
    found = mistakes(plan)
    assert "a server with several endpoints" in found["instance[1].distribution"]
    plan["instance"] = [{"name": "one", "store_address": "sqlite:/x.db", "client_addresses": 2}]
    assert "file of SQLite" in mistakes(plan)["instance[1].client_addresses"]
