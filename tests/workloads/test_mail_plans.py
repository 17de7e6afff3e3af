"""Plans of mail users: what they become, and that every mistake is reported at once with its place
and what to do.
"""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.workloads.mail.endpoints import DELIVER, READ, Endpoint, NoEndpoint, endpoint
from tests.support.mail_run import mail_plan


@pytest.fixture
def passwords(tmp_path):
    path = tmp_path / "passwords"
    path.write_text("*:a-word-of-tests\n", encoding="utf-8")
    return path


def mistakes(options):
    """The places of all mistakes, with their texts and hints."""
    with pytest.raises(InputError) as found:
        plan_of_options(options)
    return {mistake.where: f"{mistake.message}; {mistake.hint}" for mistake in found.value.mistakes}


def test_LG_03_LG_04_a_profile_becomes_tasks_and_what_the_server_cannot_do_is_named(passwords):
    found = plan_of_options(mail_plan(passwords)).plain()
    load, server = found["run"]["workloads"][0], found["run"]["instances"][0]
    assert load["family"] == "mail" and load["load"] == {"sessions": 50, "shared": True}
    assert {row["task"]: row["per_day"] for row in load["tasks"]} == {
        "ReadAndProcessMessages": 52,
        "SendMail": 1,
        "RequestMeeting": 1,
    }
    assert (load["client"], load["day_h"], load["dispatch"]) == ("cached", 0.5, "poisson")
    assert [row["imap"] for row in server["databases"]] == ["127.0.0.1:10143", "127.0.0.2:10143"]
    assert {row["deliver"] for row in server["databases"]} == {"127.0.0.1:10024"}
    assert server["init"] is None and server["accounts"] == 50 and server["login"] == "u{n}"
    asked = found["judgement"]["mail"]["mail"]
    assert asked["left_out"] == [
        "BrowseCalendar",
        "MakeAppointment",
        "CreateContact",
        "CreateTask",
        "PostFreeBusy",
    ]
    assert asked["score_weights"] == {"SendMail": 1, "ReadAndProcessMessages": 52}
    assert (asked["sent_per_day"], asked["received_per_day"]) == (
        pytest.approx(10),
        pytest.approx(40),
    )
    assert found["judgement"]["test"] == "mail" and found["judgement"]["limits"] == "s4"
    assert "a-word-of-tests" not in str(found), "no password in a plan"


def test_LG_10_filling_reaches_the_stated_size(passwords):
    options = mail_plan(passwords, {"init": True, "mailbox_mib": 100})
    init = plan_of_options(options).plain()["run"]["instances"][0]["init"]
    messages = init["folders"] * init["messages_per_folder"] + init["inbox"]
    assert messages * 51200 / 2**20 == pytest.approx(100, rel=0.01)


def test_LG_11_no_search_unless_asked_for(passwords):
    def tasks(**workload):
        load = plan_of_options(mail_plan(passwords, workload=workload)).plain()["run"]["workloads"][
            0
        ]
        return {row["task"]: row["per_day"] for row in load["tasks"]}

    assert "Search" not in tasks() and tasks(searches_per_day=4)["Search"] == 4


def test_nothing_is_left_out_silently(passwords):
    options = mail_plan(passwords, workload={"weights": "figure-5"})
    text = mistakes(options)["workload[1].weights"]
    assert "IMAP cannot do BrowseCalendar" in text and 'weights = "mail-only"' in text


def test_every_mistake_is_reported_at_once(tmp_path):
    """One round of corrections, not one for each mistake."""
    options = mail_plan(
        tmp_path / "missing",
        {
            "endpoints": ["imap://u:secret@host", "pop3://host", "imap://host:99999"],
            "deliver": ["lmtp://a", "lmtp://b"],
            "password": "secret",
            "accounts": "user",
            "account_count": 3,
            "tls_name": "x",
            "ca_file": str(tmp_path / "none.pem"),
            "mailbox_mib": 5,
            "page_kib": 8,
        },
        {
            "load": {"users": 50, "target_iops": 3},
            "tasks": {"CreateTask": 1, "ReadMail": 2},
            "score_weights": {"SendMail": 0},
            "on_read": {"reply_all": 0.5, "forward": 0.5},
            "think_s": 3,
            "day_h": 0,
        },
        target=[{"name": "server", "path": str(tmp_path)}],
    )
    options["phase"].append({"kind": "checksum"})
    found = mistakes(options)
    for place, words in {
        "target[1].path": "means nothing for a mail server",
        "instance[1].endpoints[1]": "holds an account or a password",
        "instance[1].endpoints[2]": '"pop3" is not a protocol',
        "instance[1].endpoints[3]": "is no address",
        "instance[1].deliver": "2 addresses for",
        "instance[1].password": "does not belong in a plan; write it in a file",
        "instance[1].accounts": "write {n} once",
        "instance[1].account_count": "is 3, but there are 50 users",
        "instance[1].password_file": "is not a file",
        "instance[1].mailbox_mib": "only with init",
        "instance[1].page_kib": "means nothing for a mail server",
        "workload[1].load.target_iops": "means nothing for mail users",
        "workload[1].tasks.CreateTask": "nothing that IMAP can do",
        "workload[1].tasks.ReadMail": "is not a key of this table",
        "workload[1].score_weights": "adds up to 0",
        "workload[1].on_read": "would grow without end",
        "workload[1].think_s": "means nothing for mail",
        "workload[1].day_h": "must lie between",
        "phase[5].kind": "no instance can be judged by reading it",
    }.items():
        assert words in found[place], (place, found.get(place))
    assert not any("secret" in text for text in found.values()), "a password is never shown"


def test_users_and_instances_must_be_there(passwords):
    assert (
        "say how many users"
        in mistakes(mail_plan(passwords, workload={"load": {}}))["workload[1].load.users"]
    )
    none = mistakes(mail_plan(passwords, workload={"load": {"users": 0}}))
    assert "workload[1].load.users" in none
    assert "workload[1].instances" in mistakes(
        mail_plan(passwords, workload={"instances": ["other"]})
    )
    modelled = mail_plan(passwords, target=[{"name": "server", "modelled": "emc-vnxe3300"}])
    assert "means nothing for a mail server" in mistakes(modelled)["target[1].modelled"]
    without = mail_plan(passwords)
    del without["instance"][0]["address"]
    assert "domain of yours" in mistakes(without)["instance[1].address"]


def test_keys_of_mail_mean_nothing_to_databases(tmp_path):
    found = mistakes(
        {
            "target": [{"name": "disk", "path": str(tmp_path), "data_path": "/srv"}],
            "instance": [{"name": "one", "endpoints": ["imap://host"]}],
            "workload": [{"name": "mix", "client": "cached"}],
        }
    )
    assert "only for mail" in found["instance[1].endpoints"]
    assert (
        "workload[1].client" in found and "only for a mail server" in found["target[1].data_path"]
    )


@pytest.mark.parametrize(
    ("text", "schemes", "expected"),
    [
        ("imap://host", READ, ("imap", "none", "host:143")),
        ("imaps://host:10993", READ, ("imap", "tls", "host:10993")),
        ("imap+starttls://[::1]:1143", READ, ("imap", "starttls", "[::1]:1143")),
        ("lmtp://127.0.0.1:10024", DELIVER, ("lmtp", "none", "127.0.0.1:10024")),
        ("smtps://mail.example.org", DELIVER, ("smtp", "tls", "mail.example.org:465")),
    ],
)
def test_LG_02_addresses_of_servers(text, schemes, expected):
    found = endpoint(text, schemes)
    assert isinstance(found, Endpoint)
    assert (found.protocol, found.tls, found.place) == expected


@pytest.mark.parametrize(
    "text", ["imap://", "imap://host/INBOX", "imap://host:0", "host:143", "jmap://host", "lmtp://h"]
)
def test_what_is_no_address_says_what_to_write(text):
    found = endpoint(text, READ)
    assert isinstance(found, NoEndpoint) and found.message and found.hint
