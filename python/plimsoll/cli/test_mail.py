"""`plimsoll test mail`: users of a mail server, with days as LoadGen and LoadSim give them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import exit_codes
from plimsoll.cli.named_tests import Options, phase, stated
from plimsoll.cli.terminal import stop_with


def mail_test(
    target: Annotated[
        list[str] | None, typer.Argument(help="Where the server is read: imap://HOST:PORT or imaps://HOST:PORT.")
    ] = None,
    deliver: Annotated[
        list[str] | None,
        typer.Option(
            help="Where mail is handed in: lmtp://HOST:PORT or smtp://HOST:PORT. One for each TARGET, or one."
        ),
    ] = None,
    users: Annotated[int, typer.Option(min=1, help="Users; each has an account of its own.")] = 50,
    profile: Annotated[
        str, typer.Option(help="light, average, heavy, very-heavy, loadsim-light, -medium, -heavy, or mmb.")
    ] = "average",
    client: Annotated[str, typer.Option(help="online asks for all it shows; cached keeps a copy.")] = "cached",
    accounts: Annotated[
        str, typer.Option(help="What accounts are called, with {n} or {n:04} for the number.")
    ] = "u{n}",
    address: Annotated[
        str | None, typer.Option(help="Where mail of an account goes, such as u{n}@example.org, if not ACCOUNTS.")
    ] = None,
    first_account: Annotated[int, typer.Option(min=0, help="Number of the first account.")] = 1,
    password_file: Annotated[
        Path | None, typer.Option(help="Lines ACCOUNT:PASSWORD; * stands for all other accounts.")
    ] = None,
    init: Annotated[bool, typer.Option("--init", help="Mark empty accounts as ours and fill them.")] = False,
    mailbox_mib: Annotated[float | None, typer.Option(help="With --init: MiB of mail in each account.")] = None,
    sizes: Annotated[str | None, typer.Option(help="What mails are like; as the profile says if left out.")] = None,
    day_h: Annotated[float | None, typer.Option(help="Hours that a user's day is pressed into.")] = None,
    minutes: Annotated[float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    weights: Annotated[
        str | None, typer.Option(help="figure-5, or mail-only for servers without calendar and contacts.")
    ] = None,
    search: Annotated[str, typer.Option(help="Searches of a user in a day, or off.")] = "off",
    spacing: Annotated[str | None, typer.Option(help="How tasks come: regular as LoadGen's, or poisson.")] = None,
    limits: Annotated[str | None, typer.Option(help="s4, s1, vmware or spec-like.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Certificates that the server's is checked against.")] = None,
    tls_name: Annotated[
        str | None, typer.Option(help="The name in the certificate, if not the host of TARGET.")
    ] = None,
    data_path: Annotated[
        Path | None, typer.Option(help="Where the server's storage is mounted here, to watch its device.")
    ] = None,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A limit: 'mail_send_mail_response_ms_p95<500'. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides who does what when, and every mail.")] = 1,
) -> Options:
    """Let users read, answer, file and send mail; judge the weighted 95th percentile of their tasks.

    Accounts are used only with our marker message in them. --init puts it into empty accounts and fills these; accounts with mail of
    others are never touched. A server without calendar needs --weights mail-only: the report names what was left out.

    Example: plimsoll test mail imap://mail:143 --deliver lmtp://mail:24 --address u{n}@example.org --password-file pw --users 200
    --weights mail-only --init --yes
    """
    for text in target or ():
        if "://" not in text:
            stop_with(
                exit_codes.USAGE,
                f"{text} is no address of a mail server; write imap://HOST:PORT. A store of mail in a directory is not in this version",
            )
    return {
        "name": "mail",
        "test": "mail",
        "target": [{"name": "server", **_paths(data_path=data_path)}],
        "instance": [
            {
                "name": "mail",
                "backend": "imap",
                "accounts": accounts,
                "first_account": first_account,
                **stated(endpoints=target or None, deliver=deliver or None, address=address, init=init or None),
                **stated(mailbox_mib=mailbox_mib, sizes=sizes, tls_name=tls_name),
                **_paths(password_file=password_file, ca_file=ca_file),
            }
        ],
        "workload": [
            {
                "name": "mail",
                "profile": profile,
                "client": client,
                "load": stated(users=users, spacing=spacing),
                **stated(day_h=day_h, weights=weights, searches_per_day=_searches(search)),
            }
        ],
        "phase": _phases(minutes, ramp_s),
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
        stop_with(exit_codes.USAGE, f'--search is "{text}"; write off, or searches of a user in a day, such as 4')


def _phases(minutes: float, ramp_s: float) -> list[Options]:
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["mail"])] if ramp_s else []
    return [phase("prepare"), *ramp, phase("measure", duration_s=minutes * 60), phase("audit"), phase("stop")]
