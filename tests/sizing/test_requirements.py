"""A requirements file with mistakes: all of them at once, each with its line and a hint."""

from pathlib import Path

import pytest

from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.toml_lines import parse_located
from plimsoll.sizing.requirements import Requirements, check_requirements, read_requirements

GOOD = """kind = "requirements"

[users]
count = 5000
mailbox_quota = "2 GB"
messages_per_day = 150

[copies]
mode = "dag"
count = 2
servers = 2
"""

FIGURE = (
    '[[edition]]\nname = "exchange_2010"\n[edition.figures]\n{name} = {{ value = {value}, source = '
    '"x", basis = "{basis}" }}\n'
)


def read(text: str) -> Requirements:
    return check_requirements(parse_located("need.toml", text))


def mistakes_in(text: str) -> list[Mistake]:
    with pytest.raises(InputError) as caught:
        read(text)
    assert all(mistake.hint for mistake in caught.value.mistakes), "every mistake says what to do"
    return list(caught.value.mistakes)


def check(text: str, *expected: tuple[int, str, str]) -> None:
    """The mistakes are exactly those expected: line, key and a word of the message."""
    found = mistakes_in(text)
    assert [(mistake.line, mistake.where) for mistake in found] == [
        (line, where) for line, where, _ in expected
    ]
    for mistake, (_, _, words) in zip(found, expected, strict=True):
        assert words in mistake.message, mistake


def test_a_good_file_is_read_with_its_defaults() -> None:
    requirements = read(GOOD)
    assert requirements.users is not None
    assert (requirements.users.mailbox_quota_mb, requirements.users.message_size_kb) == (2048, 75)
    assert (requirements.edition, requirements.copies.layout) == ("exchange_2010", "active/active")
    assert requirements.storage.allocation_unit_kb == 64


@pytest.mark.parametrize(
    "quota",
    [
        'mailbox_quota = "2 GB"',
        'mailbox_quota = "2048 MB"',
        "mailbox_quota_mb = 2048",
        "mailbox_quota_gb = 2",
    ],
)
def test_a_quantity_may_carry_its_unit_in_the_text_or_in_the_key(quota: str) -> None:
    requirements = read(GOOD.replace('mailbox_quota = "2 GB"', quota))
    assert requirements.users is not None
    assert requirements.users.mailbox_quota_mb == 2048


def test_every_mistake_is_reported_at_once() -> None:
    """A person who made nine slips corrects them in one go instead of running the program nine
    times.
    """
    check(
        """kind = "requirements"
colour = "blue"
[users]
count = -5
mailbox_quota = 2048
message_size = "75 Kb"
mesages_per_day = 150
[copies]
mode = "dag"
count = 3
servers = 17
[databases]
max_size = "3 TB"
""",
        (2, "colour", "not a key"),
        (3, "users.messages_per_day", "is missing"),
        (4, "users.count", "must lie between"),
        (5, "users.mailbox_quota", "without a unit"),
        (6, "users.message_size", "a small b means bits"),
        (7, "users.mesages_per_day", "not a key"),
        (11, "copies.servers", "at most 16 servers"),
        (13, "databases.max_size", "at most 2048 GB"),
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "where", "words"),
    [
        ('"2 GB"', '"-2 GB"', 5, "users.mailbox_quota", "must lie between"),
        ('"2 GB"', '"2"', 5, "users.mailbox_quota", "no unit"),
        ('"2 GB"', '"2 G"', 5, "users.mailbox_quota", "ambiguous"),
        ('"2 GB"', '"2 PB"', 5, "users.mailbox_quota", "must lie between"),
        ('"2 GB"', '"2 GB"\nmailbox_quota_mb = 2048', 5, "users.mailbox_quota", "also given"),
        ("count = 5000", "count = 1.5", 4, "users.count", "whole number"),
        ("count = 5000", 'count = "many"', 4, "users.count", "must be a number"),
        ("count = 5000", "", 3, "users.count", "is missing"),
        (
            "messages_per_day = 150",
            "messages_per_day = 1e9",
            6,
            "users.messages_per_day",
            "must lie between",
        ),
        ("messages_per_day = 150", "messages_per_day = nan", 6, "users.messages_per_day", "finite"),
        ("messages_per_day = 150", 'profile = "heavvy"', 6, "users.profile", "not a known profile"),
        ("count = 2", "count = 3", 10, "copies.count", "on 2 servers"),
        ('mode = "dag"', 'mode = "standalone"', 10, "copies.count", "holds one copy"),
        ("servers = 2", "servers = 17", 11, "copies.servers", "at most 16"),
        ("servers = 2", "servers = 2\nlagged_count = 1", 8, "copies.replay_lag", "is missing"),
        (
            "servers = 2",
            'servers = 2\nlagged_count = 2\nreplay_lag = "7 days"',
            12,
            "copies.lagged_count",
            "2 of 2",
        ),
        (
            "servers = 2",
            'servers = 2\n[databases]\nmax_size = "2049 GB"',
            13,
            "databases.max_size",
            "at most 2048 GB",
        ),
        (
            'kind = "requirements"',
            'kind = "requirements"\nedition = "exchange_2011"',
            2,
            "edition",
            "not a known",
        ),
        (
            'kind = "requirements"',
            'kind = "requirements"\nschema_version = 2',
            2,
            "schema_version",
            "must lie between",
        ),
    ],
)
def test_each_kind_of_bad_value(old: str, new: str, line: int, where: str, words: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    found = mistakes_in(text)
    assert (found[0].line, found[0].where, len(found)) == (line, where, 1)
    assert words in found[0].message


def test_a_standalone_database_has_a_smaller_limit() -> None:
    """Without copies, a database must be restored from backup, so the papers cap it at 100 GB."""
    text = GOOD.replace('mode = "dag"\ncount = 2\nservers = 2', 'mode = "standalone"')
    check(text + '[databases]\nmax_size = "101 GB"\n', (11, "databases.max_size", "at most 100 GB"))
    assert read(text + '[databases]\nmax_size = "100 GB"\n').databases.max_size_gb == 100
    modern = text.replace(
        'kind = "requirements"', 'kind = "requirements"\nedition = "exchange_2019"'
    )
    assert read(modern + '[databases]\nmax_size = "200 GB"\n').databases.max_size_gb == 200


def test_users_or_transactions_but_not_both() -> None:
    check('kind = "requirements"\n', (0, "users", "both missing"))
    both = (
        GOOD + '[transactions]\nper_second = 10\ndatabase_ios_each = 4\ndata_size = "1 '
        'GB"\nlog_size_each = "4 KB"\n'
    )
    check(both, (3, "users", "both given"))


def test_machines_need_their_hosts() -> None:
    machine = '[[machine]]\nname = "mail"\nhost = "one"\nmemory = "48 GB"\nvcpu_count = 8\n'
    check(GOOD + machine, (0, "server", "does not state the hosts"))
    twice = '[server]\nmemory = "48 GB"\nthread_count = 16\n' + machine + machine
    check(GOOD + twice, (21, "machine[2].name", "repeats"))


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    """Somebody who gives the catalogue to `size` is told which command reads it."""
    path = tmp_path / "arrays.toml"
    path.write_text('kind = "catalogue"\n')
    with pytest.raises(InputError, match="plimsoll select"):
        read_requirements(path)
    path.write_text("users = 5\n")
    with pytest.raises(InputError, match="is missing"):
        read_requirements(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_requirements(tmp_path / "absent.toml")


def test_figures_of_ones_own_are_laid_over_the_shipped_ones(tmp_path: Path) -> None:
    """CAL-18: the documented extension point: a guidance file beside the requirements."""
    (tmp_path / "mine.toml").write_text(
        'kind = "guidance"\n[[edition]]\nname = "exchange_2019"\n[edition.figures]\n'
        'cpu_megacycles_per_user = { value = 4, source = "vendor table", basis = "read" }\n'
    )
    path = tmp_path / "need.toml"
    path.write_text(
        GOOD.replace(
            'kind = "requirements"',
            'kind = "requirements"\nedition = "exchange_2019"\nguidance_file = "mine.toml"',
        )
    )
    guidance = read_requirements(path).guidance
    assert guidance.number("cpu_megacycles_per_user") == 4
    assert guidance.number("max_database_standalone_gb") == 200


@pytest.mark.parametrize(
    ("guidance", "words"),
    [
        (
            '[[edition]]\nname = "exchange_2019"\n[edition.figures]\npage_kb = 8\n',
            "line 5: page_kb needs a value",
        ),
        ('[[edition]]\nname = "mine"\n', "extends no known edition"),
        ('[[edition]]\ntitle = "mine"\n', "no name"),
        ("edition = 3\n", "list of tables"),
        (FIGURE.format(name="page_kb", value="-1", basis="read"), "not negative"),
        (FIGURE.format(name="page_kb", value="0", basis="read"), "nothing to size"),
        (FIGURE.format(name="page_kb", value="nan", basis="read"), "not negative"),
        (FIGURE.format(name="page", value="8", basis="read"), "does not end in a unit"),
        (FIGURE.format(name="page_kb", value="8", basis="guess"), "a basis that is one of"),
    ],
)
def test_a_wrong_guidance_file_is_told_with_its_line(
    guidance: str, words: str, tmp_path: Path
) -> None:
    """A figure of zero would end in a division, one without a source in a number nobody can
    check.
    """
    (tmp_path / "mine.toml").write_text('kind = "guidance"\n' + guidance)
    path = tmp_path / "need.toml"
    path.write_text(
        GOOD.replace('kind = "requirements"', 'kind = "requirements"\nguidance_file = "mine.toml"')
    )
    with pytest.raises(InputError) as caught:
        read_requirements(path)
    assert [mistake.line for mistake in caught.value.mistakes] == [2]
    assert words in caught.value.mistakes[0].message
