"""What one user needs: the first half of Table 14, and the cache and I/O of a user profile.

Source: Dell EqualLogic Exchange 2010 sizing paper, Table 14 and section 2. White space is one day
of mail; the dumpster keeps deleted mail for the retention period, and adds single item recovery and
calendar logging.
"""

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Step, amount, derive
from plimsoll.units import BYTES_PER_KB


@dataclass(frozen=True)
class MailboxSize:
    """The parts of a mailbox on disk, each for one user."""

    white_space: Step
    dumpster: Step
    mailbox_size: Step


def mailbox_size(
    mailbox_quota_mb: Amount,
    messages_per_day: Amount,
    message_kb: Amount,
    guidance: Guidance,
    stage: str = "",
) -> MailboxSize:
    """Size one mailbox (Table 14, WSU, DSU and MBU).

    Args:
        mailbox_quota_mb: Mailbox quota, MB of 1024^2 bytes.
        messages_per_day: Messages sent and received by one user in a day.
        message_kb: Mean message size, KB of 1024 bytes.
        guidance: The edition's retention and fractions.
        stage: A word put into the names where rounded figures stand beside these, such as
            "_unrounded".

    Returns:
        White space, dumpster and mailbox size in MB, unrounded.

    Example:
        >>> from plimsoll.sizing.guidance import editions
        >>> round(mailbox_size(2048, 150, 75, editions()["exchange_2010"]).mailbox_size.value, 3)
        2356.155
    """
    quota = amount(mailbox_quota_mb, "mailbox_quota_mb", "Mailbox quota")
    messages = amount(
        messages_per_day, "messages_per_day", "Messages sent and received by a user in a day"
    )
    message = amount(message_kb, "message_kb", "Mean message size")
    white_space = derive(
        f"white_space{stage}_mb",
        messages * message / BYTES_PER_KB,
        "White space per user",
        "dell_eql, Table 14, WSU",
    )
    dumpster = derive(
        f"dumpster{stage}_mb",
        messages * message / BYTES_PER_KB * guidance.step("deleted_item_retention_days")
        + guidance.step("single_item_recovery_fraction") * quota
        + guidance.step("calendar_logging_fraction") * quota,
        "Dumpster per user",
        "dell_eql, Table 14, DSU",
    )
    total = quota + white_space + dumpster
    size = derive(
        f"mailbox_size{stage}_mb", total, "Mailbox size per user", "dell_eql, Table 14, MBU"
    )
    return MailboxSize(white_space, dumpster, size)


def profile_cache(messages_per_day: Amount, guidance: Guidance) -> Step:
    """Database cache that a profile asks for.

    Args:
        messages_per_day: Messages sent and received by one user in a day.
        guidance: The edition's cache for each message.

    Returns:
        Cache of one user, MB.
    """
    messages = amount(
        messages_per_day, "messages_per_day", "Messages sent and received by a user in a day"
    )
    per_message = guidance.step("cache_mb_per_message")
    return derive(
        "profile_cache_mb_per_user",
        messages * per_message,
        "Database cache by profile, per user",
        per_message.source,
    )
