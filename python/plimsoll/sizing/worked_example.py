"""What a paper printed for its own example, rounding and omissions included.

`dell_2010` follows Tables 18 and 19 of the Dell EqualLogic paper, which differ from the paper's own
formulas:

* the total database size leaves out the 1.2 of Table 14 (11,505 GB instead of 13,806 GB, hence 12
  databases, not 14);
* white space, dumpster, mailbox, database, volume and log sizes are rounded, but the total takes
  the unrounded mailbox;
* users per database are rounded before they are multiplied (417, hence 12,510 MB of logs a day, not
  12,500);
* the log volume takes 10 % for mailbox moves, which Table 15 does not have.

The paper's second total, 15,780 GB, follows from a log volume rounded up to 49 GB and is not used.
"""

from collections.abc import Callable

from plimsoll.errors import InvalidValueError
from plimsoll.inputs.records import dataclass
from plimsoll.sizing.databases import database_count
from plimsoll.sizing.formulas import (
    Core,
    Givens,
    UserSteps,
    capacity_of,
    core_figures,
    givens,
    user_rates,
)
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.logs import LogVolume, log_space_days, message_size_factor
from plimsoll.sizing.mailbox import MailboxSize, mailbox_size, profile_cache
from plimsoll.sizing.requirements import Requirements
from plimsoll.sizing.traced import Expression, Step, derive, given, round_half_up
from plimsoll.units import BYTES_PER_KB

DELL_MOVED_FRACTION = 0.1
EXAMPLE_USERS = {
    "count": 5000,
    "mailbox_quota_mb": 2048,
    "messages_per_day": 150,
    "message_size_kb": 75,
}
EXAMPLE = {
    "title": "Worked example of the Dell EqualLogic paper, Tables 18 and 19",
    "users": EXAMPLE_USERS,
    "copies": {"mode": "dag", "count": 2, "servers": 2},
    "databases": {"max_size_gb": 1024},
}


@dataclass(frozen=True)
class Difference:
    """A figure that the paper printed otherwise than its formulas give.

    Attributes:
        name: The figure.
        published: As the paper's example computes it.
        formulas: As the paper's formulas give it.
        reason: Why they differ.
    """

    name: str
    unit: str
    published: float
    formulas: float
    reason: str


REASONS = {
    "white_space_mb": "rounded to whole MB",
    "dumpster_mb": "rounded to whole MB",
    "mailbox_size_mb": "rounded to whole MB, though the total then takes it unrounded",
    "total_database_size_gb": "the example leaves out the 1.2 overhead of Table 14",
    "database_count": "follows from the smaller total",
    "database_size_gb": "follows from total and count, rounded to whole GB",
    "database_volume_size_gb": "computed from the rounded database size and rounded again",
    "users_per_database_count": "rounded to whole users before it is multiplied",
    "log_growth_mb_per_day": "computed from the rounded users per database",
    "log_volume_size_gb": "the example adds 10 % for mailbox moves, which Table 15 lacks, and "
    "rounds to whole GB",
    "total_capacity_gb": "follows from count and rounded volumes",
    "total_capacity_all_copies_gb": "follows from the total of one copy",
}


def dell_2010(requirements: Requirements) -> Core:
    """Size mailbox users as Tables 18 and 19 do.

    Args:
        requirements: Checked requirements with users. Mailbox moves count 10 % unless stated
            otherwise.

    Returns:
        The main figures, rounded where the paper rounds.

    Raises:
        InvalidValueError: The requirements are not for mailbox users.
    """
    users, guidance = requirements.users, requirements.guidance
    if users is None:
        raise InvalidValueError("the Dell example sizes mailbox users, not transactions")
    shared = givens(requirements, DELL_MOVED_FRACTION, "dell_eql, section 3.4.2, assumptions")
    load = UserSteps.of(requirements, users)
    exact = mailbox_size(load.quota, load.messages, load.message, guidance, stage="_unrounded")
    mailbox = _printed_mailbox(exact)
    unrounded = load.count * exact.mailbox_size / BYTES_PER_KB
    total = _rounded("total_database_size_gb", unrounded, "Total database size", "Table 18, DBS")
    least = given("minimum_database_count", 1, "Fewest databases", "default")
    databases = database_count(total, shared.max_database_size, minimum_count=least)
    size = _rounded("database_size_gb", total / databases, "Size of one database", "Table 18, IDBS")
    index, free = guidance.step("content_index_factor"), guidance.step("volume_overhead_factor")
    volume = _rounded(
        "database_volume_size_gb", size * index * free, "Database volume size", "Table 18, DVS"
    )
    logs = _printed_logs(load, databases, shared, guidance)
    rates = user_rates(requirements, users, load, shared.copy_count)
    return Core(
        shared=shared,
        user_count=load.count,
        load=(load.count, mailbox.white_space, mailbox.dumpster, mailbox.mailbox_size),
        total_database_size=total,
        max_database_size=shared.max_database_size,
        database_count=databases,
        database_size=size,
        database_volume_size=volume,
        log_details=(logs.users_per_database, logs.logs_per_user, logs.message_size_factor),
        log_growth=logs.daily_growth,
        log_space_days=logs.space_days,
        log_volume_size=logs.log_volume_size,
        iops=(rates.database.iops_per_user, rates.database.iops_per_user_with_headroom),
        database_iops=rates.database.database_iops,
        log_iops=rates.log_iops,
        log_rules=rates.log_rules,
        capacity=capacity_of(requirements, shared, databases, volume, logs.log_volume_size),
        cache_per_user=profile_cache(load.messages, guidance),
    )


def _printed_logs(
    load: UserSteps, databases: Step, shared: Givens, guidance: Guidance
) -> LogVolume:
    """Table 19: users rounded before they are multiplied, and mailbox moves on top."""
    users = _rounded(
        "users_per_database_count", load.count / databases, "Users per database", "Table 19, NDB"
    )
    per_user = derive(
        "logs_per_user_per_day",
        load.messages * guidance.step("logs_per_message_ratio"),
        "Logs of one user in a day",
        "dell_eql, Table 19, NL",
    )
    factor = message_size_factor(load.message)
    growth = derive(
        "log_growth_mb_per_day",
        users * per_user * factor * guidance.step("log_file_mb"),
        "Logs of one database in a day",
        "dell_eql, Table 19, TLC",
    )
    days = log_space_days(shared.retention, shared.backup_interval, shared.replay_lag)
    held = growth * (1 + shared.moved) * days * guidance.step("log_overhead_factor") / BYTES_PER_KB
    volume = _rounded("log_volume_size_gb", held, "Log volume size", "Table 19, LVS")
    return LogVolume(users, per_user, factor, growth, days, volume)


def _rounded(name: str, expression: Expression, title: str, place: str) -> Step:
    return derive(name, round_half_up(expression), title, f"dell_eql, {place}")


def _printed_mailbox(exact: MailboxSize) -> MailboxSize:
    """The three sizes as Table 18 prints them, the unrounded ones kept under names of their own."""

    def printed(step: Step) -> Step:
        return _rounded(step.name.replace("_unrounded", ""), step, step.title, "Table 18")

    return MailboxSize(
        printed(exact.white_space), printed(exact.dumpster), printed(exact.mailbox_size)
    )


PAPERS: dict[str, Callable[[Requirements], Core]] = {"dell_2010": dell_2010}


def main_steps(core: Core) -> list[Step]:
    """The figures of a design that both readings have, for comparison."""
    capacity = core.capacity
    return [
        *core.load,
        core.total_database_size,
        core.database_count,
        core.database_size,
        core.database_volume_size,
        *core.log_details,
        core.log_growth,
        core.log_volume_size,
        *core.iops,
        core.database_iops,
        core.log_iops,
        capacity.total,
        capacity.all_copies,
    ]


def differences(requirements: Requirements) -> list[Difference]:
    """Where the paper's example and the paper's formulas part, for these requirements, with the
    reason.
    """
    formulas = {step.name: step for step in main_steps(core_figures(requirements))}
    return [
        Difference(
            step.name,
            step.unit,
            step.value,
            formulas[step.name].value,
            REASONS.get(step.name, "follows"),
        )
        for step in main_steps(dell_2010(requirements))
        if step.value != formulas[step.name].value
    ]
