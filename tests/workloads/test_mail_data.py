"""The shipped figures of mail users against what was published.

Names, weights, counts, sizes, and the balance of sent and received.
"""

import json
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from plimsoll.workloads.mail.population import Population, population_of
from plimsoll.workloads.mail.profiles import profiles, sizes
from plimsoll.workloads.mail.tasks import (
    MAIL_ONLY,
    PUBLISHED,
    loadable,
    tasks,
    unsupported,
    weights_of,
)

#: As printed; the file names the sources.
PRINTED = json.loads(
    (Path(__file__).parents[1] / "golden" / "published" / "mail_users.json").read_text(
        encoding="utf-8"
    )
)
BASES = {"read", "derived", "inferred", "recalled", "own"}


def test_LG_05_the_28_tasks_are_those_of_the_score_sheet():
    """A missing name would be a task that nobody notices is not done."""
    weighted = PRINTED["loadgen"]["score_weights"]
    assert set(tasks()) == {*weighted, *PRINTED["loadgen"]["zero"]} and len(tasks()) == 28
    assert {name: task.weight for name, task in tasks().items() if task.weight} == weighted
    supports = [task.supports for task in tasks().values()]
    assert {found["imap"] for found in supports} == {"done", "mapped", "unsupported"}
    assert {found["mail_store"] for found in supports} == {"done", "mapped"}


def test_LG_07_the_weights_add_up_to_60_and_53():
    assert sum(weights_of(PUBLISHED).values()) == 60
    assert sum(weights_of(MAIL_ONLY).values()) == 53
    assert unsupported(weights_of(PUBLISHED), "imap") == [
        "BrowseCalendar",
        "MakeAppointment",
        "CreateContact",
        "CreateTask",
        "PostFreeBusy",
    ]
    assert unsupported(weights_of(MAIL_ONLY), "imap") == []
    assert unsupported(dict.fromkeys(tasks(), 1.0), "mail_store") == [
        name for name, task in tasks().items() if task.is_phase
    ]
    names = [task.metric for task in loadable("imap")]
    assert len(names) == 11 and "mail_request_meeting" in names
    assert len(loadable("mail_store")) == 23


@pytest.mark.parametrize("name", profiles())
def test_every_figure_of_a_profile_has_a_source_and_its_tasks_add_up(name):
    profile = profiles()[name]
    assert profile.source and set(profile.basis.values()) <= BASES
    assert {"tasks", "mail", "on_read", "initial", "day_h"} <= set(profile.basis)
    assert sum(profile.tasks.values()) == pytest.approx(profile.tasks_per_day)
    assert set(profile.tasks) <= {task for task, found in tasks().items() if not found.is_phase}
    assert profile.sizes in sizes()


@pytest.mark.parametrize("name", profiles())
def test_LG_04_sent_and_received_balance_within_two_percent(name):
    """LoadSim prints shares and averages.

    One must follow from the other, or the load is not the published one.
    """
    profile = profiles()[name]
    assert profile.population.sent == pytest.approx(profile.sent, rel=0.02)
    assert profile.population.received == pytest.approx(profile.received, rel=0.02)


def test_loadsim_is_as_published():
    for name, row in PRINTED["loadsim"].items():
        profile = profiles()[f"loadsim-{name}"]
        assert profile.tasks["SendMail"] == row["originate_per_day"]
        assert profile.tasks["ReadAndProcessMessages"] == row["read_new_times"]
        assert profile.tasks["ExportMail"] == row["read_old_times"]
        assert profile.tasks["MakeAppointment"] == row["schedule_changes_per_day"]
        assert profile.recipients == ((1, row["recipients_per_new"]),)
        assert profile.on_read == {**row["on_read"], "attachment": row["load_attachment"]}
        assert profile.inbox_limit == row["inbox_limit"]
        assert profile.initial == row["initial"]
        assert {"sent": profile.sent, "received": profile.received} == row["stated_averages"]
        mix = {(1024, 0): "1k", (2048, 0): "2k", (4096, 0): "4k", (1024, 10240): "10k_attachment"}
        stated = {
            mix[body, attachment]: weight
            for weight, body, attachment in sizes()[profile.sizes].rows
        }
        assert stated == {key: weight for key, weight in row["message_mix"].items() if weight}


def test_mmb_and_loadgen_are_as_published():
    found = PRINTED
    day, mmb = found["mmb"]["per_day"], profiles()["mmb"]
    assert (
        mmb.tasks["SendMail"] == day["send"]
        and mmb.tasks["ReadAndProcessMessages"] == day["check_inbox"]
    )
    assert mmb.tasks["MakeAppointment"] == day["update_calendar"]
    assert mmb.population.recipients == day["recipients_per_message"]
    assert mmb.received + mmb.tasks["ExportMail"] == pytest.approx(day["read"])
    assert mmb.on_read["move"] == pytest.approx(day["move"] / day["read"], abs=0.001)
    assert mmb.on_read["delete"] == pytest.approx(day["delete"] / day["read"], abs=0.001)
    rows = [(weight, kib * 1024) for weight, kib in found["mmb"]["message_mix"]]
    assert sorted(
        (weight, body + attachment) for weight, body, attachment in sizes()["mmb"].rows
    ) == sorted(rows)
    assert sizes()["mmb"].mean_bytes / 1024 == pytest.approx(found["mmb"]["mean_kb"], abs=0.05)
    heavy = found["loadgen"]["heavy"]
    assert profiles()["heavy"].tasks_per_day == heavy["tasks_per_user_day"]
    assert (profiles()["heavy"].sent, profiles()["heavy"].received) == (
        heavy["sent"],
        heavy["received"],
    )
    very = found["loadgen"]["very_heavy"]["messages_per_user_day"]
    assert profiles()["very-heavy"].sent + profiles()["very-heavy"].received == very
    assert profiles()["average"].tasks == found["loadgen"]["score_weights"]


def test_sizes_are_what_they_say():
    content = tomllib.loads(
        files("plimsoll.data").joinpath("mail_sizes.toml").read_text(encoding="utf-8")
    )
    for row in content["sizes"]:
        assert row["source"] and row["basis"] in BASES
        assert sizes()[row["name"]].mean_bytes == pytest.approx(row["mean_bytes"], rel=1e-6)
    cumulative = PRINTED["freebsd_list_2002_cdf"]
    reached = 0.0
    for (weight, _, _), share in zip(sizes()["list-2002"].rows, cumulative, strict=True):
        reached += weight / 100
        assert reached == pytest.approx(share, abs=0.0002)


def test_a_population_without_a_balance_is_refused():
    """Each message that makes another one or more would fill every mailbox in the end."""
    grown = Population(new=8, recipients=5, reply=0.2, reply_all=0.1, forward=0.076)
    assert grown.made_of_one == pytest.approx(1.08) and grown.is_growing
    with pytest.raises(ValueError, match=r"each message makes 1\.08 more"):
        _ = grown.received
    just = population_of(
        {"SendMail": 8}, [[1, 5]], {"reply": 0.0, "reply_all": 0.1, "forward": 0.1}, 1.0
    )
    assert just.is_growing
