"""The named test of mail: users of a mail server, or of a mail store on our engine, with days as
LoadGen and LoadSim give them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from plimsoll.pipeline.named_tests.declared import Change, Minutes, RampS
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option
from plimsoll.pipeline.named_tests.options import refuse
from plimsoll.pipeline.named_tests.tables import (
    Tables,
    stated,
    storage,
    storage_problems,
    worked,
)

ACCOUNTS = "u{n}"
#: What is written where users search for nothing.
NO_SEARCH = "off"


def mail(
    target: Annotated[
        list[str] | None,
        Option(
            "A directory on the storage to be tested, or where a server is read: "
            "imap://HOST:PORT or imaps://HOST:PORT.",
            placeholder="PATH|ADDRESS...",
        ),
    ] = None,
    deliver: Annotated[
        list[str] | None,
        Option(
            "Where mail is handed in: lmtp://HOST:PORT or smtp://HOST:PORT. One for each "
            "address, or one for all."
        ),
    ] = None,
    users: Annotated[int, Option("Users; each has an account of its own.", minimum=1)] = 50,
    profile: Annotated[
        str,
        Option("light, average, heavy, very-heavy, loadsim-light, -medium, -heavy, or mmb."),
    ] = "average",
    client: Annotated[str, Option("online asks for all it shows; cached keeps a copy.")] = "cached",
    accounts: Annotated[
        str, Option("What accounts are called, with {n} or {n:04} for the number.")
    ] = ACCOUNTS,
    address: Annotated[
        str | None,
        Option("Where mail of an account goes, such as u{n}@example.org; the account if left out."),
    ] = None,
    first_account: Annotated[int, Option("Number of the first account.", minimum=0)] = 1,
    password_file: Annotated[
        Path | None, Option("Lines ACCOUNT:PASSWORD; * stands for all other accounts.")
    ] = None,
    init: Annotated[bool, Option("Mark empty accounts as ours and fill them.")] = False,
    mailbox_mib: Annotated[
        float | None, Option("Of a PATH, or with --init: MiB of mail in each mailbox.")
    ] = None,
    sizes: Annotated[
        str | None, Option("What mails are like; as the profile says if left out.")
    ] = None,
    day_h: Annotated[float | None, Option("Hours that a user's day is pressed into.")] = None,
    minutes: Minutes = 30.0,
    ramp_s: RampS = 0.0,
    weights: Annotated[
        str | None,
        Option("figure-5, or mail-only for servers without calendar and contacts."),
    ] = None,
    search: Annotated[str, Option("Searches of a user in a day, or off.")] = NO_SEARCH,
    spacing: Annotated[
        str | None, Option("How tasks come: regular as LoadGen's, or poisson.")
    ] = None,
    limits: Annotated[
        Literal["s4", "s1", "vmware", "spec-like"] | None,
        Option("Whose limits of the score; those of the profile if left out."),
    ] = None,
    ca_file: Annotated[
        Path | None, Option("Certificates that the server's is checked against.")
    ] = None,
    tls_name: Annotated[
        str | None, Option("The name in the certificate, if not that of the host.")
    ] = None,
    data_path: Annotated[
        Path | None,
        Option("Where the server's storage is mounted here, to watch its device."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        Option("A limit: 'mail_send_mail_response_ms_p95<500'. May be repeated."),
    ] = None,
    cache_mib: Annotated[int | None, Option("Of a PATH: most cache of the engine.")] = None,
    edition: Annotated[
        str | None,
        Option("Of a PATH: whose page size, layout, cache and log it has; 2010."),
    ] = None,
    modelled: Annotated[
        str | None,
        Option(
            "In the place of a PATH: simulate this array, a preset or FILE.toml.",
            placeholder="ARRAY",
        ),
    ] = None,
    change: Change = None,
    log_path: Annotated[
        Path | None,
        Option("Of a PATH: a directory for the logs, if they lie elsewhere."),
    ] = None,
    background_reads: Annotated[
        float | None,
        Option("Of a PATH: messages that jobs read behind each task; 0 for none."),
    ] = None,
    moves_percent: Annotated[
        float | None,
        Option(
            "Of a PATH: move so many percent of the mailboxes in a day of users to another "
            "database."
        ),
    ] = None,
    checksum: Annotated[bool, Option("Of a PATH: read and verify every page afterwards.")] = True,
    seed: Annotated[int, Option("Decides who does what when, and every mail.")] = 1,
) -> Tables:
    """Let users read, answer, file and send mail.

    Judge the weighted 95th percentile of their tasks.

    PATH holds a mail store on our own engine: nothing else is needed, and every message is
    accounted for at the end.

    Of a server, accounts are used only with our marker message in them. --init puts it into empty
    accounts and fills these; accounts with mail of others are never touched. A server without
    calendar needs --weights mail-only: the report names what was left out.

    Example: plimsoll test mail /mnt/array --users 200 --minutes 30 --yes

    Example: plimsoll test mail imap://mail:143 --deliver lmtp://mail:24 --address u{n}@example.org
    --password-file pw --users 200 --weights mail-only --init --yes
    """
    places = [Path(text) for text in target or () if "://" not in text]
    on_store = bool(places or modelled)
    place = places[0] if places else None
    problems = _search_problems(search)
    if on_store and (len(target or ()) > 1 or (modelled and target)):
        problems.append(
            f"{', '.join(target or ())} are several targets; write one PATH, or --modelled without "
            f"one, or addresses of one mail server: imap://HOST:PORT",
        )
    elif on_store:
        problems += storage_problems(place, modelled, change, "a directory or an address")
    refuse(problems)
    return {
        "name": "mail",
        "test": "mail",
        "target": [
            storage(place, modelled, change, log_path)
            if on_store
            else {"name": "server", **stated(data_path=data_path, log_path=log_path)}
        ],
        "instance": [
            {
                "name": "mail",
                "backend": "mail_store" if on_store else "imap",
                **stated(
                    endpoints=None if on_store else target or None,
                    mailbox_mib=mailbox_mib,
                    sizes=sizes,
                    deliver=deliver or None,
                    address=address,
                    init=init or None,
                    tls_name=tls_name,
                    accounts=None if on_store and accounts == ACCOUNTS else accounts,
                    first_account=None if on_store and first_account == 1 else first_account,
                    password_file=password_file,
                    ca_file=ca_file,
                    edition=edition,
                    cache_mib_max=cache_mib,
                ),
            }
        ],
        "workload": [
            {
                "name": "mail",
                "profile": profile,
                "client": client,
                "load": stated(users=users, spacing=spacing),
                **stated(
                    day_h=day_h,
                    weights=weights,
                    searches_per_day=None if search == NO_SEARCH else float(search),
                    background_reads_per_task=background_reads,
                    moves=None if moves_percent is None else {"percent_per_day": moves_percent},
                ),
            }
        ],
        "phase": worked(
            minutes * 60, "mail", ramp_s, audit=True, checksum=checksum and place is not None
        ),
        "seed": seed,
        **stated(limits=limits, stated_limits=limit or None),
    }


def _search_problems(text: str) -> list[str]:
    """Whether these are searches of a user in a day."""
    try:
        float("0" if text == NO_SEARCH else text)
    except ValueError:
        return [
            f'--search is "{text}"; write {NO_SEARCH}, or searches of a user in a day, such as 4'
        ]
    return []
