"""`plimsoll test mail`: users of a mail server, or of a mail store on our engine, with days as
LoadGen and LoadSim give them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from plimsoll import exit_codes
from plimsoll.cli.named_tests import Options, phase, stated, storage_options
from plimsoll.cli.terminal import stop_with


def mail_test(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            help="A directory on the storage to be tested, or where a server is read: "
            "imap://HOST:PORT or imaps://HOST:PORT.",
            metavar="PATH|ADDRESS...",
        ),
    ] = None,
    deliver: Annotated[
        list[str] | None,
        typer.Option(
            help="Where mail is handed in: lmtp://HOST:PORT or smtp://HOST:PORT. One for each "
            "address, or one for all."
        ),
    ] = None,
    users: Annotated[int, typer.Option(min=1, help="Users; each has an account of its own.")] = 50,
    profile: Annotated[
        str,
        typer.Option(
            help="light, average, heavy, very-heavy, loadsim-light, -medium, -heavy, or mmb."
        ),
    ] = "average",
    client: Annotated[
        str, typer.Option(help="online asks for all it shows; cached keeps a copy.")
    ] = "cached",
    accounts: Annotated[
        str, typer.Option(help="What accounts are called, with {n} or {n:04} for the number.")
    ] = "u{n}",
    address: Annotated[
        str | None,
        typer.Option(
            help="Where mail of an account goes, such as u{n}@example.org; the account if left out."
        ),
    ] = None,
    first_account: Annotated[int, typer.Option(min=0, help="Number of the first account.")] = 1,
    password_file: Annotated[
        Path | None, typer.Option(help="Lines ACCOUNT:PASSWORD; * stands for all other accounts.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Mark empty accounts as ours and fill them.")
    ] = False,
    mailbox_mib: Annotated[
        float | None, typer.Option(help="Of a PATH, or with --init: MiB of mail in each mailbox.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="What mails are like; as the profile says if left out.")
    ] = None,
    day_h: Annotated[
        float | None, typer.Option(help="Hours that a user's day is pressed into.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")
    ] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    weights: Annotated[
        str | None,
        typer.Option(help="figure-5, or mail-only for servers without calendar and contacts."),
    ] = None,
    search: Annotated[str, typer.Option(help="Searches of a user in a day, or off.")] = "off",
    spacing: Annotated[
        str | None, typer.Option(help="How tasks come: regular as LoadGen's, or poisson.")
    ] = None,
    limits: Annotated[
        Literal["s4", "s1", "vmware", "spec-like"] | None,
        typer.Option(help="Whose limits of the score; those of the profile if left out."),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificates that the server's is checked against.")
    ] = None,
    tls_name: Annotated[
        str | None, typer.Option(help="The name in the certificate, if not that of the host.")
    ] = None,
    data_path: Annotated[
        Path | None,
        typer.Option(help="Where the server's storage is mounted here, to watch its device."),
    ] = None,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", help="A limit: 'mail_send_mail_response_ms_p95<500'. May be repeated."
        ),
    ] = None,
    cache_mib: Annotated[
        int | None, typer.Option(help="Of a PATH: most cache of the engine.")
    ] = None,
    edition: Annotated[
        str | None,
        typer.Option(help="Of a PATH: whose page size, layout, cache and log it has; 2010."),
    ] = None,
    modelled: Annotated[
        str | None,
        typer.Option(
            help="In the place of a PATH: simulate this array, a preset or FILE.toml.",
            metavar="ARRAY",
        ),
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option(help="A figure of the modelled array.", metavar="KEY=VALUE")
    ] = None,
    log_path: Annotated[
        Path | None,
        typer.Option(help="Of a PATH: a directory for the logs, if they lie elsewhere."),
    ] = None,
    background_reads: Annotated[
        float | None,
        typer.Option(help="Of a PATH: messages that jobs read behind each task; 0 for none."),
    ] = None,
    moves_percent: Annotated[
        float | None,
        typer.Option(
            help="Of a PATH: move so many percent of the mailboxes in a day of users to another "
            "database."
        ),
    ] = None,
    checksum: Annotated[
        bool, typer.Option(help="Of a PATH: read and verify every page afterwards.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Decides who does what when, and every mail.")] = 1,
) -> Options:
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
    places = [text for text in target or () if "://" not in text]
    on_store = bool(places or modelled)
    if on_store and (len(target or ()) > 1 or (modelled and target)):
        stop_with(
            exit_codes.USAGE,
            f"{', '.join(target or ())} are several targets; write one PATH, or --modelled without "
            f"one, or addresses of one mail server: imap://HOST:PORT",
        )
    of_server = stated(
        deliver=deliver or None,
        address=address,
        init=init or None,
        tls_name=tls_name,
        accounts=None if on_store and accounts == "u{n}" else accounts,
        first_account=None if on_store and first_account == 1 else first_account,
        **_paths(password_file=password_file, ca_file=ca_file),
    )
    of_store = stated(edition=edition, cache_mib_max=cache_mib)
    place = Path(places[0]) if places else None
    return {
        "name": "mail",
        "test": "mail",
        "target": [
            storage_options(place, modelled, change, log_path, "a directory or an address")
            if on_store
            else {"name": "server", **_paths(data_path=data_path, log_path=log_path)}
        ],
        "instance": [
            {
                "name": "mail",
                "backend": "mail_store" if on_store else "imap",
                **stated(endpoints=None if on_store else target or None),
                **stated(mailbox_mib=mailbox_mib, sizes=sizes),
                **of_server,
                **of_store,
            }
        ],
        "workload": [
            {
                "name": "mail",
                "profile": profile,
                "client": client,
                "load": stated(users=users, spacing=spacing),
                **stated(day_h=day_h, weights=weights, searches_per_day=_searches(search)),
                **stated(background_reads_per_task=background_reads),
                **({} if moves_percent is None else {"moves": {"percent_per_day": moves_percent}}),
            }
        ],
        "phase": _phases(minutes, ramp_s, checksum=checksum and bool(places)),
        "seed": seed,
        **stated(limits=limits, stated_limits=stated_limits or None),
    }


def _paths(**values: Path | None) -> Options:
    return {key: str(value) for key, value in values.items() if value is not None}


def _searches(text: str) -> float | None:
    """Searches of a user in a day; none when they are off."""
    if text == "off":
        return None
    try:
        return float(text)
    except ValueError:
        stop_with(
            exit_codes.USAGE,
            f'--search is "{text}"; write off, or searches of a user in a day, such as 4',
        )


def _phases(minutes: float, ramp_s: float, *, checksum: bool) -> list[Options]:
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["mail"])] if ramp_s else []
    return [
        phase("prepare"),
        *ramp,
        phase("measure", duration_s=minutes * 60),
        phase("audit"),
        phase("stop"),
        *([phase("checksum")] if checksum else []),
    ]
