"""What a plan says of mail.

`backend = "imap"` of an instance, which is a server and its accounts, and the keys of a workload of
its users.

    [[instance]]
    name = "mail"
    backend = "imap"
    endpoints = ["imap://127.0.0.1:10143"]
    deliver = ["lmtp://127.0.0.1:10024"]
    accounts = "u{n}"
    password_file = "/etc/plimsoll/mail"

    [[workload]]
    name = "mail"
    profile = "average"
    client = "cached"
    weights = "mail-only"
    load = { users = 200 }

Nothing of a server lies in a directory of ours. A target may name as `data_path` where the server's
storage is mounted on this machine, so that its device is watched; nothing is written there.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from plimsoll import settings
from plimsoll.documents import run_spec as spec
from plimsoll.documents.plan import MailAsked
from plimsoll.inputs.schema import Collector, Field, Flag, Given, ListOf, Number, Table, Text
from plimsoll.workloads import distribution
from plimsoll.workloads.mail import stored
from plimsoll.workloads.mail.endpoints import DELIVER, READ, Endpoint, NoEndpoint, endpoint
from plimsoll.workloads.mail.population import growing, population_of
from plimsoll.workloads.mail.profiles import DEFAULT_PROFILE, Profile, profiles, sizes
from plimsoll.workloads.mail.tasks import (
    MAIL_ONLY,
    PUBLISHED,
    WEIGHTS,
    Target,
    loadable,
    tasks,
    unsupported,
    weights_of,
)
from plimsoll.workloads.window_figures import WindowFigure

#: Servers, and stores on our engine.
SERVER_BACKENDS, STORE_BACKENDS = ("imap",), (stored.BACKEND,)
BACKENDS = (*SERVER_BACKENDS, *STORE_BACKENDS)
OPERATIONS = tuple(task.metric for task in loadable("mail_store"))
MIB = 1024 * 1024
CLIENTS = ("online", "cached")
#: A directory below which lies no device: a server of which nothing is known but its address.
NO_STORAGE = Path("/proc")
#: What every marker message holds: accounts with it are ours, all others are never touched.
MARKER = "plimsoll-test-mailbox"
_PATTERN = re.compile(r"\{n(:0\d{1,2})?\}")
ON_READ = ("reply", "reply_all", "forward", "move", "delete", "attachment")

#: Users do few tasks, and by chance: those of ten minutes are enough to tell.
WINDOW_S = 600.0
WINDOWS = {
    "tasks_per_s": WindowFigure("tasks per second", "of all mail users"),
    "tasks_per_user_per_day": WindowFigure(
        "tasks per user and day",
        "of one mail user in its day, which is day_h long",
        per="day",
        of_user=True,
    ),
}

INSTANCE_FIELDS = {
    "endpoints": Field(
        ListOf(Text(), 1),
        meaning="with backend imap: where the server is read, imap://HOST:PORT or "
        "imaps://HOST:PORT. Of a store on a server: where it is reached besides store_address, "
        "HOST:PORT",
    ),
    **distribution.FIELDS,
    "deliver": Field(
        ListOf(Text(), 1),
        meaning="where mail is handed in, lmtp://HOST:PORT or smtp://HOST:PORT: one for each "
        "endpoint, or one for all",
    ),
    "accounts": Field(
        Text(),
        meaning="what accounts are called, with {n} or {n:04} for their number; u{n} if left out",
    ),
    "address": Field(
        Text(),
        meaning="where mail of an account goes, such as u{n}@example.org; `accounts`, if that is "
        "an address",
    ),
    "first_account": Field(
        Number(0, 10_000_000, whole=True), meaning="number of the first account; 1 if left out"
    ),
    "account_count": Field(
        Number(1, 1_000_000, whole=True),
        meaning="how many accounts there are; as many as users if left out",
    ),
    "password_file": Field(
        Text(),
        meaning="a file with a line ACCOUNT:PASSWORD for each account, * standing for all others; "
        "of a store, its first line is "
        "the password",
    ),
    "password": Field(Text(), meaning="never here: passwords stand in password_file"),
    "ca_file": Field(
        Text(),
        meaning="certificates that the server's is checked against; the system's if left out. Of a "
        "store on postgresql: talk to it in TLS",
    ),
    "tls_name": Field(
        Text(),
        meaning="the name in the server's certificate, where it is not the host of the address",
    ),
    "deliver_login": Field(Flag(), meaning="with smtp: whether the sending account logs in"),
    "init": Field(
        Flag(),
        meaning="whether empty accounts are marked as ours and filled; only checked if left out",
    ),
    "mailbox_mib": Field(
        Number(0.001, 1_000_000),
        meaning="with init, or of a mail store: how much mail an account holds; as the profile "
        "says if left out",
    ),
    "sizes": Field(
        Text(tuple(sizes())), meaning="what mails are like; as the profile says if left out"
    ),
    "entropy_percent": Field(
        Number(0, 75, whole=True),
        meaning="share of the bits of a mail that no compressor removes; 60 if left out",
    ),
    "duplicate_mails_percent": Field(
        Number(0, 99, whole=True),
        meaning="share of the mails whose body is that of another one; 0 if left out",
    ),
    **stored.INSTANCE_FIELDS,
}

_COUNT = Field(Number(0, 10_000))
WORKLOAD_FIELDS = {
    "profile": Field(
        Text(tuple(profiles())), meaning="what a mail user does in a day; average if left out"
    ),
    "client": Field(
        Text(CLIENTS),
        meaning="online asks the server for all it shows, cached keeps a copy; cached if left out",
    ),
    "day_h": Field(
        Number(0.01, 24),
        meaning="hours that the day of a user is pressed into; as the profile says if left out",
    ),
    "weights": Field(
        Text(WEIGHTS),
        meaning="what the score is made of: figure-5, or mail-only for servers without calendar "
        "and contacts",
    ),
    "score_weights": Field(
        Table(dict.fromkeys(tasks(), _COUNT)),
        meaning="other weights, by the names of tasks: { SendMail = 1 }",
    ),
    "tasks": Field(
        Table(dict.fromkeys(tasks(), _COUNT)),
        meaning="other counts of tasks for each user and day, by their names",
    ),
    "searches_per_day": Field(
        Number(0, 1000), meaning="searches of a user in a day; none if left out"
    ),
    "recipients": Field(
        Number(1, 100, whole=True), meaning="of a new mail; as the profile says if left out"
    ),
    "on_read": Field(
        Table({name: Field(Number(0, 1)) for name in ON_READ}),
        meaning="shares of what is read: { reply = 0.1, move = 0.2 }; as the profile says if left "
        "out",
    ),
    "probes_per_minute": Field(
        Number(0, 600), meaning="mails that time their delivery; 6 if left out"
    ),
    "idle": Field(Flag(), meaning="whether sessions wait in IDLE between tasks; yes if left out"),
    **stored.WORKLOAD_FIELDS,
}
#: What may be said of a load of mail users.
LOAD_KEYS = ("users", "spacing")
_INSTANCE_KEYS = (
    "name",
    "target",
    "backend",
    "weight",
    "node",
    "processors",
    "memory_mib",
    *(key for key in INSTANCE_FIELDS if key not in stored.INSTANCE_FIELDS),
)
#: Keys of an instance that mean something for a server alone.
OF_SERVERS = tuple(
    key
    for key in INSTANCE_FIELDS
    if key not in stored.INSTANCE_FIELDS and key not in stored.SHARED_KEYS
)


def instance(
    common: Given, given: Given, users: int, profile: Profile, index: int, collector: Collector
) -> spec.MailInstance:
    """A server and its accounts.

    Args:
        common: what instances of all families have.
        given: the checked table, absent keys None.
        users: how many users the workloads on it have.
        profile: of the first of these workloads: what accounts are filled with.
        index: its position in the plan.
        collector: takes the mistakes.
    """
    path = ("instance", index)
    for key, value in given.items():
        if value is not None and key not in _INSTANCE_KEYS:
            collector.add((*path, key), "means nothing for a mail server", "remove it")
    if given["password"] is not None:
        collector.add(
            (*path, "password"),
            "does not belong in a plan",
            "write it in a file and name that as password_file",
        )
    read = _endpoints(given["endpoints"], READ, (*path, "endpoints"), "imap://HOST:PORT", collector)
    deliver = _endpoints(
        given["deliver"], DELIVER, (*path, "deliver"), "lmtp://HOST:PORT", collector
    )
    if len(deliver) == 1:
        deliver = deliver * max(1, len(read))
    if given["deliver"] and len(deliver) != len(read) and read:
        hint = "write one for each endpoint, or one for all"
        collector.add(
            (*path, "deliver"), f"has {len(deliver)} addresses for {len(read)} endpoints", hint
        )
    accounts = given["accounts"] or "u{n}"
    address = given["address"] or accounts
    for key, text in (("accounts", accounts), ("address", address)):
        _check_pattern(text, (*path, key), collector)
    if "@" not in address.strip("@"):
        hint = "write where mail of an account goes, in a domain of yours: u{n}@example.org"
        wrong = (
            f'is "{address}", which is no address'
            if given["address"]
            else "is missing, and `accounts` has no domain"
        )
        collector.add((*path, "address"), wrong, hint)
    count = given["account_count"] or users
    if count < users:
        hint = "write as many accounts as users, or fewer users"
        collector.add((*path, "account_count"), f"is {count}, but there are {users} users", hint)
    mails = sizes()[given["sizes"] or profile.sizes]
    if given["mailbox_mib"] is not None and not given["init"]:
        collector.add(
            (*path, "mailbox_mib"),
            "means something only with init",
            "write init = true, or remove it",
        )
    return spec.MailInstance(
        **common,
        databases=_databases(read, deliver, common["name"]),
        imap_tls=read[0].tls,
        deliver_protocol="smtp" if deliver[0].protocol == "smtp" else "lmtp",
        deliver_tls=deliver[0].tls,
        deliver_login=_login(given, deliver[0], path, collector),
        tls_name=given["tls_name"],
        ca_file=_trusted(given["ca_file"], [*read, *deliver], path, collector),
        login=accounts,
        address=address,
        first_account=1 if given["first_account"] is None else int(given["first_account"]),
        accounts=int(count),
        password_file=_password_file(given["password_file"], path, collector),
        marker=MARKER,
        init=_filling(given, profile, mails.mean_bytes) if given["init"] else None,
        messages=stored.messages(given, mails),
        connect_timeout_s=settings.MAIL["connect_timeout_s"],
        command_timeout_s=settings.MAIL["command_timeout_s"],
        lost_after_s=settings.MAIL["lost_after_s"],
        literal_max_bytes=settings.MAIL["literal_max_bytes"],
        distribution=distribution.completed(given, len(read), path, collector),
    )


def _endpoints(
    texts: Sequence[str] | None,
    schemes: tuple[str, ...],
    path: tuple[str | int, ...],
    example: str,
    collector: Collector,
) -> list[Endpoint]:
    """The addresses; one of the example's kind where there is none that could be read."""
    found = []
    if not texts:
        collector.add(path, "is missing", f"write the address of the mail server: {example}")
    for position, text in enumerate(texts or ()):
        place = endpoint(text, schemes)
        if isinstance(place, NoEndpoint):
            collector.add((*path, position), place.message, place.hint)
        else:
            found.append(place)
    if len({(item.protocol, item.tls) for item in found}) > 1:
        collector.add(
            path, "mixes protocols, or addresses with TLS and without", "write all of them alike"
        )
    if len({item.place for item in found}) < len(found):
        collector.add(path, "holds an address twice", "write each once")
    return found or [Endpoint(schemes[0], "none", "127.0.0.1:0", "127.0.0.1")]


def _databases(
    read: Sequence[Endpoint], deliver: Sequence[Endpoint], name: str
) -> list[spec.MailEndpoint]:
    each = zip(read, [*deliver, *[deliver[-1]] * len(read)], strict=False)
    return [
        spec.MailEndpoint(
            file_name=f"endpoint-{number}",
            size_bytes=0,
            seed=1,
            existing_records=None,
            imap=imap.place,
            deliver=to.place,
        )
        for number, (imap, to) in enumerate(each, 1)
    ]


def _check_pattern(text: str, path: tuple[str | int, ...], collector: Collector) -> None:
    rest = _PATTERN.sub("", text)
    if len(_PATTERN.findall(text)) != 1 or "{" in rest or "}" in rest:
        collector.add(
            path, f'is "{text}"', "write {n} once where the number of the account stands, or {n:04}"
        )
    elif any(letter.isspace() or ord(letter) < 32 for letter in text):
        collector.add(path, f'is "{text}"', "accounts have no blanks")


def _login(
    given: Given, deliver: Endpoint, path: tuple[str | int, ...], collector: Collector
) -> bool:
    if given["deliver_login"] and deliver.protocol == "lmtp":
        collector.add(
            (*path, "deliver_login"), "means nothing with lmtp", "remove it, or deliver by smtp"
        )
    return (
        bool(given["deliver_login"])
        if given["deliver_login"] is not None
        else deliver.protocol == "smtp"
    )


def _trusted(
    stated: str | None, used: Sequence[Endpoint], path: tuple[str | int, ...], collector: Collector
) -> str | None:
    """The certificates that servers are checked against; None where there is no TLS."""
    if all(item.tls == "none" for item in used):
        if stated is not None:
            collector.add(
                (*path, "ca_file"),
                "means nothing without TLS",
                "write imaps:// or imap+starttls://, or remove it",
            )
        return None
    usual = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    found = Path(stated or usual).expanduser().absolute()
    if not found.is_file():
        hint = (
            "name a file of certificates in PEM form"
            if stated
            else "name the certificates of the server: ca_file"
        )
        collector.add((*path, "ca_file"), f"{found} is not a file", hint)
    return str(found)


def _password_file(stated: str | None, path: tuple[str | int, ...], collector: Collector) -> str:
    if stated is None:
        collector.add(
            (*path, "password_file"),
            "is missing",
            "name a file with a line ACCOUNT:PASSWORD for each account",
        )
        return "/"
    found = Path(stated).expanduser().absolute()
    if not found.is_file():
        collector.add(
            (*path, "password_file"),
            f"{found} is not a file",
            "write one with a line ACCOUNT:PASSWORD",
        )
        return str(found)
    try:
        lines = found.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        collector.add(
            (*path, "password_file"),
            f"{found} cannot be read: {error}",
            "change its owner or its permissions",
        )
        return str(found)
    wrong = [number for number, line in enumerate(lines, 1) if line.strip() and ":" not in line]
    if wrong:
        collector.add(
            (*path, "password_file"),
            f"{found}, line {wrong[0]}, is not ACCOUNT:PASSWORD",
            "correct the line",
        )
    elif not any(line.strip() for line in lines):
        collector.add(
            (*path, "password_file"),
            f"{found} is empty",
            "write a line ACCOUNT:PASSWORD, or *:PASSWORD for all",
        )
    return str(found)


def _filling(given: Given, profile: Profile, mean_bytes: float) -> spec.MailInit:
    """What every account holds at the start.

    As the profile says, or so many messages in every folder that the size is reached.
    """
    initial = profile.initial
    each = initial["messages_per_folder"]
    if given["mailbox_mib"] is not None:
        messages = max(0.0, float(given["mailbox_mib"]) * MIB / mean_bytes - initial["inbox"])
        each = round(messages / initial["folders"])
    return spec.MailInit(
        folders=initial["folders"], messages_per_folder=each, inbox=initial["inbox"]
    )


def searches(given: Given) -> bool:
    """Whether the users of a workload search."""
    stated = (given["tasks"] or {}).get("Search")
    wanted = _wanted(given, profile_of(given)) if stated is None else {"Search": stated}
    return bool(wanted.get("Search"))


def users_of(given: Given) -> int:
    """The users of a workload; one where nothing is said."""
    return int((given["load"] or {}).get("users") or 1)


def profile_of(given: Given | None) -> Profile:
    """The profile of a workload."""
    return profiles()[(given or {}).get("profile") or DEFAULT_PROFILE]


def workload(
    common: Given,
    given: Given,
    edition: str | None,
    instances: Sequence[spec.InstanceSpec],
    index: int,
    collector: Collector,
) -> tuple[spec.MailWorkload, MailAsked]:
    """Mail users, and what their verdict and report need to know of them.

    Args:
        common: its name and its instances.
        given: the checked table, absent keys None.
        edition: whose habits the store of its users has; None on a server.
        instances: all of the plan, completed: among them the store of its users.
        index: its position in the plan.
        collector: takes the mistakes.
    """
    target: Target = "imap" if edition is None else "mail_store"
    path = ("workload", index)
    profile = profile_of(given)
    load = {key: value for key, value in (given["load"] or {}).items() if value is not None}
    for key in load:
        if key not in LOAD_KEYS:
            collector.add(
                (*path, "load", key),
                "means nothing for mail users",
                f"write {', '.join(LOAD_KEYS)}",
            )
    if "users" not in load:
        collector.add(
            (*path, "load", "users"), "is missing", "say how many users: load = { users = 200 }"
        )
    wanted = _wanted(given, profile)
    weights = _weights(given, path, collector)
    counted, left_out = _possible(wanted, weights, given, profile, target, path, collector)
    older, behind = (None, None) if edition is None else stored.habits_of(given, edition)
    for key in ("idle", "probes_per_minute") if edition else stored.WORKLOAD_FIELDS:
        if given[key] is not None:
            what = "a mail store" if edition else "a mail server"
            collector.add((*path, key), f"means nothing on {what}", "remove it")
    moved_percent = stored.moved_percent_per_day(given, index, collector) if edition else None
    recipients = (
        [[1.0, given["recipients"]]]
        if given["recipients"]
        else [list(row) for row in profile.recipients]
    )
    on_read = {
        **profile.on_read,
        **{key: value for key, value in (given["on_read"] or {}).items() if value is not None},
    }
    population = population_of(counted, recipients, on_read, 1.0)
    # Shipped profiles have a balance with the share that is stated of them; what a plan changes has
    # to have one by itself.
    if population.is_growing:
        place = (
            "on_read" if given["on_read"] else "recipients" if given["recipients"] else "profile"
        )
        collector.add(
            (*path, place),
            growing(population.made_of_one),
            "lower reply, reply_all, forward or recipients",
        )
    day_h = float(given["day_h"] or profile.day_h)
    usual = _usual(profile, given, counted)
    asked = MailAsked(
        profile=profile.name,
        source=profile.source,
        users=users_of(given),
        day_h_published=profile.day_h,
        weights="stated" if given["score_weights"] else given["weights"] or PUBLISHED,
        score_weights=weights,
        left_out=left_out,
        sent_per_day=None if population.is_growing else usual[0],
        received_per_day=None if population.is_growing else usual[1],
        moved_percent_per_day=moved_percent,
    )
    completed = spec.MailWorkload(
        name=common["name"],
        instances=common["instances"],
        family="mail",
        load=spec.SessionsLoad(sessions=users_of(given), shared=True),
        tasks=[spec.MailTask(task=name, per_day=float(count)) for name, count in counted.items()],
        client=given["client"] or "cached",
        day_h=day_h,
        dispatch="even" if load.get("spacing") == "regular" else "poisson",
        recipients=[
            spec.MailRecipients(weight=float(weight), count=int(count))
            for weight, count in recipients
        ],
        on_read=spec.MailOnRead(**{key: float(on_read[key]) for key in ON_READ}),
        inbox_limit=profile.inbox_limit,
        page_rows=settings.MAIL["page_rows"],
        read_max=settings.MAIL["read_max"],
        # A store times every delivery and has no connections.
        idle=edition is None and (True if given["idle"] is None else bool(given["idle"])),
        older_per_visit=older,
        background_reads_per_task=behind,
        mailbox_moves_per_h=None
        if moved_percent is None
        else stored.mailboxes_of(instances, common["instances"]) * moved_percent / 100 / day_h,
        probes_per_minute=0.0
        if edition
        else float(
            settings.MAIL["probes_per_minute"]
            if given["probes_per_minute"] is None
            else given["probes_per_minute"]
        ),
        probe_poll_ms=settings.MAIL["probe_poll_ms"],
        probe_timeout_s=settings.MAIL["probe_timeout_s"],
        unfinished_max_per_user=settings.MAIL["unfinished_max_per_user"],
    )
    return completed, asked


def _usual(profile: Profile, given: Given, counted: Given) -> tuple[float, float]:
    """Messages that a user sends and receives in a day, by the balance of what the plan asks
    for.
    """
    recipients = [[1.0, given["recipients"]]] if given["recipients"] else profile.recipients
    on_read = {
        **profile.on_read,
        **{key: value for key, value in (given["on_read"] or {}).items() if value is not None},
    }
    found = population_of(counted, recipients, on_read, profile.processed_share)
    return (0.0, 0.0) if found.is_growing else (found.sent, found.received)


def _wanted(given: Given, profile: Profile) -> dict[str, float]:
    """The tasks of a user's day, with what the plan changes of them."""
    changed = {key: value for key, value in (given["tasks"] or {}).items() if value is not None}
    searches = {} if given["searches_per_day"] is None else {"Search": given["searches_per_day"]}
    return {
        name: count for name, count in {**profile.tasks, **searches, **changed}.items() if count
    }


def _weights(given: Given, path: tuple[str | int, ...], collector: Collector) -> dict[str, float]:
    stated = {
        key: value for key, value in (given["score_weights"] or {}).items() if value is not None
    }
    if not given["score_weights"]:
        return weights_of(given["weights"] or PUBLISHED)
    if given["weights"]:
        collector.add((*path, "weights"), "stands next to `score_weights`", "write one of both")
    if not sum(stated.values()):
        collector.add((*path, "score_weights"), "adds up to 0", "give at least one task a weight")
    return {key: value for key, value in stated.items() if value}


#: Who does the tasks on each target.
_DOER: dict[Target, str] = {"imap": "IMAP", "mail_store": "a user"}


def _possible(
    wanted: dict[str, float],
    weights: dict[str, float],
    given: Given,
    profile: Profile,
    target: Target,
    path: tuple[str | int, ...],
    collector: Collector,
) -> tuple[dict[str, float], list[str]]:
    """What the load holds, and what it leaves out because the server cannot do it.

    The plan must say that it may.
    """
    stated = [name for name, count in (given["tasks"] or {}).items() if count]
    for name in stated:
        if not tasks()[name].is_loadable(target):
            collector.add(
                (*path, "tasks", name),
                f"is nothing that {_DOER[target]} can do",
                f"remove it: {tasks()[name].hows[target]}",
            )
    for name in given["score_weights"] or {}:
        if (given["score_weights"] or {})[name] and not tasks()[name].is_loadable(target):
            collector.add(
                (*path, "score_weights", name),
                f"weighs what {_DOER[target]} cannot do",
                "remove it",
            )
    left_out = [name for name in unsupported(wanted, target) if name not in stated]
    lacking = [name for name in unsupported({**wanted, **weights}, target) if name not in stated]
    if lacking and given["weights"] != MAIL_ONLY and not given["score_weights"]:
        listed = ", ".join(lacking)
        hint = (
            f'write weights = "{MAIL_ONLY}": they are left out of load and score, and the report '
            f"names them"
        )
        collector.add(
            (*path, "weights"),
            f"cannot be kept: IMAP cannot do {listed}, which profile {profile.name} asks for",
            hint,
        )
    counted = {
        name: count for name, count in wanted.items() if name not in unsupported(wanted, target)
    }
    if not counted:
        collector.add(
            (*path, "tasks"), "leaves a user nothing to do", "give at least one task a count"
        )
    for name in weights:
        if tasks()[name].is_loadable(target) and not counted.get(name):
            hint = "give it a count in `tasks`, or other weights"
            collector.add(
                (*path, "score_weights" if given["score_weights"] else "weights"),
                f"weigh {name}, which no user does",
                hint,
            )
    return counted, left_out


def is_storage(path: str) -> bool:
    """Whether a target is storage of this machine: a server may be known by its address alone.

    >>> is_storage("/mnt/mail"), is_storage(str(NO_STORAGE))
    (True, False)
    """
    return Path(path) != NO_STORAGE


def messages_filled(server: spec.MailInstance) -> int:
    """The messages that filling all accounts makes at most; none without init."""
    init = server.init
    return server.accounts * (init.folders * init.messages_per_folder + init.inbox) if init else 0


def mean_bytes(server: spec.MailInstance) -> float:
    """The mean of bodies and attachments of its mails."""
    return stored.mean_bytes(server.messages.sizes)


def account_names(server: spec.MailInstance) -> str:
    """The accounts, from the first to the last."""
    first, last = server.first_account, server.first_account + server.accounts - 1
    names = [server.login.format(n=number) for number in dict.fromkeys((first, last))]
    return " to ".join(names)
