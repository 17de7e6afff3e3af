"""What a check, a stated limit, a doubt or a layer means: the texts behind `plimsoll explain NAME`.

Everything is data (`data/limits.toml`, `data/doubts.toml`); only fields of the summary are
described by what they are made of.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.errors import InvalidValueError
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.plan.limits import FIELDS, LimitError, known_fields, parse_limit, unit_of


class UnknownNameError(InvalidValueError):
    """A name nothing is known of; the message has a hint."""


#: When the checks of a store, of home folders, and the audit of mail, are made.
FAMILY_FACTS = {
    "load_overlap": "For every load of a run that has several.",
    "load_window": "For every load whose plan states `window`, and every load on files that states "
    "users.",
    "endpoint_spread": "For every load on a server that has several endpoints.",
    "event_staged": "For every event of the plan.",
    "event_pause": "For every event that states `pause_s_max`, and every load.",
    "event_recovery": "For every event that states `recover_s_max`, and every load.",
    "event_dip": "For every event that states `dip_max`, and every load.",
    "event_degraded": "For every event that states `degraded_limits`, and every database and log.",
    "event_errors": "For every event that states `errors_max`.",
    "event_failover": "For every event that states `failover_s_max`, and every instance of its "
    "node.",
    "node_fit": "For every event that kills a node.",
    "records_audit": "After the load, for every instance of records whose node died: phase audit.",
    "homes_audit": "After the load, for every instance of home folders: phase audit.",
    "homes_response": "For every workload on home folders that plans a rate.",
    "homes_achieved": "For every workload on home folders that plans a rate.",
    "mail_audit": "After the load, for every instance that is a mail server: phase audit.",
    "backup_restored": "For every instance whose backup a plan keeps, or whose clone it opens.",
    "log_space": "For every instance that keeps log, where `log_room_gib` or free space is known.",
    "stage_carried": "For every load whose rate goes through stages.",
    "store_audit": "After the load, for every instance that is a store: phase audit.",
    "store_carried": "Over the measured time, for every workload on a store at which customers "
    "arrive at one rate.",
    "store_durable": "For every store on a server whose settings let commits be lost.",
    "store_refused": "Over the measured time, for every workload on the server of a store.",
    "store_rollbacks": "Over the measured time, for every workload on a store with 1,000 orders or "
    "more.",
}


def explained_names() -> list[str]:
    """Every check and every doubt."""
    checks = [
        row["name"] for row in (*settings.limits()["check"], *settings.limits()["mail_check"])
    ]
    return [
        *checks,
        "required_iops",
        *FAMILY_FACTS,
        "stated_limit",
        *(row["name"] for row in settings.doubts()),
    ]


def explain(name: str) -> str:
    """The explanation of a check, a doubt, a field of the summary or a limit on one.

    Raises:
        UnknownNameError: there is nothing of the name.

    >>> explain("bad_pages").splitlines()[0]
    'bad_pages: Damaged or misplaced pages'
    """
    limits = settings.limits()
    for row in limits["check"]:
        if row["name"] == name:
            sets = ", ".join(
                f"{title} {row['limit'][title]} {row['unit']}"
                for title in limits["sets"]
                if title in row["limit"]
            )
            return _text(
                f"{name}: {row['title']}",
                row,
                f"Limits: {sets}. For every {row['scope']}.",
                row["source"],
            )
    for row in limits["mail_check"]:
        if row["name"] == name:
            word = "at least" if row.get("least") else "below"
            sets = ", ".join(
                f"{title} {word} {limit} {row['unit']}" for title, limit in row["limit"].items()
            )
            return _text(
                f"{name}: {row['title']}",
                row,
                f"Limits: {sets}. For every workload of mail users.",
                row["source"],
            )
    if name == "required_iops":
        single = settings.single_rule(name)
        return _text(
            f"{name}: {single['title']}",
            single,
            "Margin: none unless stated, with --margin-percent or margin_percent in a plan.",
            single["source"],
        )
    if name in FAMILY_FACTS:
        single = settings.single_rule(name)
        return _text(f"{name}: {single['title']}", single, FAMILY_FACTS[name], single["source"])
    for doubt in settings.doubts():
        if doubt["name"] == name:
            return _text(
                f"{name}: a doubt about the load generator",
                doubt,
                f"Limit: {doubt['limit']:g}.",
                "Plimsoll's choice",
            )
    return _explain_field(name)


def _explain_field(name: str) -> str:
    """A stated limit, or a field that one can be stated on."""
    row = settings.single_rule("stated_limit")
    if name == "stated_limit":
        return _text(
            f"{name}: a limit of your own",
            row,
            "Example: --limit 'log_write_latency_ms_p99<5'.",
            row["source"],
        )
    field = name
    if any(sign in name for sign in "<>="):
        try:
            field = parse_limit(name).field
        except LimitError as error:
            raise UnknownNameError(str(error)) from error
    places = [place for place, fields in FIELDS.items() if field in fields]
    if not places:
        hint = nearest_names(name, [*explained_names(), *known_fields()])
        raise UnknownNameError(f'nothing is called "{name}"; {hint}')
    made = f"A field of the summary, in {unit_of(field)}, once for every {places[0]}."
    return _text(f"{name}: a limit of your own", row, made, row["source"])


def _text(title: str, row: settings.RuleText | settings.DoubtRule, facts: str, source: str) -> str:
    return "\n".join(
        [
            title,
            "",
            row["explanation"].strip(),
            "",
            facts,
            f"Source: {source}.",
            "",
            f"If it fails: {row['if_it_fails'].strip()}",
        ]
    )
