"""How many users a rate is worth, by the user profiles and the published I/O of one message.

The same figures as in `plimsoll size`; recalled and assumed ones are marked there with their basis,
and their names come along here. Editions without a published figure have no equivalent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from plimsoll.documents.plan import Plan
from plimsoll.documents.verdict import UserEquivalent
from plimsoll.sizing.guidance import editions, profiles
from plimsoll.sizing.iops import iops_per_user


def user_equivalents(plan: Plan, database_iops: float) -> list[UserEquivalent]:
    """For each profile, how many of its users the rate carries; no headroom is taken off."""
    judged = plan.judgement.editions or []
    guidance = editions().get(f"exchange_{judged[0]}") if judged else None
    if guidance is None or "iops_per_message_ratio" not in guidance.figures:
        return []
    standalone = all(instance.copies_count <= 1 for instance in plan.run.record_instances)
    found = []
    for profile in sorted(profiles().values(), key=lambda profile: profile.messages_per_day):
        one = float(iops_per_user(profile.messages_per_day, guidance, standalone=standalone).value)
        found.append(
            UserEquivalent(
                profile=profile.name,
                messages_per_day=profile.messages_per_day,
                iops_per_user=one,
                users=math.floor(database_iops / one),
                source=guidance.figures["iops_per_message_ratio"].source,
            )
        )
    return found


def in_words(equivalents: Sequence[UserEquivalent]) -> str:
    """One sentence for the result, with the profiles that are named after how much their users do.

    >>> heavy = UserEquivalent(profile="heavy", messages_per_day=100, iops_per_user=0.12, users=1900, source="")
    >>> in_words([heavy])
    'as much as 1,900 heavy users need (0.12 IOPS each)'
    """  # noqa: E501
    shown = [
        f"{row.users:,} {row.profile} users need ({row.iops_per_user:.2g} IOPS each)"
        for row in equivalents
        if row.profile in ("average", "heavy")
    ]
    return f"as much as {' or '.join(shown)}" if shown else ""
