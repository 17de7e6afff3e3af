"""Planted bugs in how clients come to endpoints, and in what is counted there. See `run.py`."""

from tests.planted.bug import Bug

_CLIENTS, _RUN = "plimsoll-clients", "plimsoll-run"
_TEST = "mail::endpoints::"
_SHARED = _TEST + "single_affinity_shares_users_by_where_they_come_from"
_MOVES = _TEST + "under_round_robin_users_of_a_dead_endpoint_go_on_at_the_other"
_DELIVERY = _TEST + "under_round_robin_mail_goes_on_by_the_other_endpoint_where_one_takes_none"

BUGS = (
    Bug(
        "round robin begins with the first endpoint each time",
        "endpoints.rs",
        "let turn = self.turn.get();",
        "let turn = if PLANTED { 0 } else { self.turn.get() };",
        "families",
        _MOVES,
        crate=_CLIENTS,
    ),
    Bug(
        "clients of a dead endpoint try no other",
        "endpoints.rs",
        "(turn, count)",
        "(turn, if PLANTED { 1 } else { count })",
        "families",
        _MOVES,
        crate=_CLIENTS,
    ),
    Bug(
        "addresses of clients are not heeded at endpoints",
        "endpoints.rs",
        "Distribution::SingleAffinity { addresses: Some(addresses) } => {",
        "Distribution::SingleAffinity { addresses: Some(addresses) } if !PLANTED => {",
        "families",
        _SHARED,
        crate=_CLIENTS,
    ),
    Bug(
        "what is new of an endpoint is told of the next one",
        "endpoints.rs",
        "(at, since)",
        "(if PLANTED { (at + 1) % each.len() } else { at }, since)",
        "families",
        _MOVES,
        crate=_CLIENTS,
    ),
    Bug(
        "clients that come from another endpoint are not counted",
        "endpoints.rs",
        "before.is_some_and(|before| before != at)",
        "!PLANTED && before.is_some_and(|before| before != at)",
        "families",
        _MOVES,
        crate=_CLIENTS,
    ),
    Bug(
        "what is done at an endpoint is done at the first",
        "load/shared.rs",
        "self.database = Some(endpoint as u32 + 1);",
        "self.database = if PLANTED { Some(1) } else { Some(endpoint as u32 + 1) };",
        "families",
        _SHARED,
        crate=_RUN,
    ),
    Bug(
        "mail that an endpoint takes not goes by no other",
        "endpoints.rs",
        "Distribution::RoundRobin => count,",
        "Distribution::RoundRobin => if PLANTED { 1 } else { count },",
        "families",
        _DELIVERY,
        crate=_CLIENTS,
    ),
    Bug(
        "an endpoint that takes no mail is not counted",
        "mail/server.rs",
        "Err(error) if error.is_lost() && tries.peek().is_some() => {",
        "Err(error) if PLANTED && error.is_lost() && tries.peek().is_some() => {}\n"
        "                Err(error) if error.is_lost() && tries.peek().is_some() => {",
        "families",
        _DELIVERY,
        crate=_RUN,
    ),
    Bug(
        "mail is offered anew at an endpoint that took none before",
        "mail/server.rs",
        "taken_at.set(at);",
        "if !PLANTED { taken_at.set(at); }",
        "families",
        _DELIVERY,
        crate=_RUN,
    ),
    Bug(
        "what an endpoint accepts is accepted by the first",
        "mail/server.rs",
        "Ok(delivery) => self.ledger.settle(mail.id, endpoint, to, &delivery.recipients),",
        "Ok(delivery) => self.ledger.settle(\n"
        "                mail.id,\n"
        "                if PLANTED { 0 } else { endpoint },\n"
        "                to,\n"
        "                &delivery.recipients,\n"
        "            ),",
        "families",
        _TEST + "mail_that_an_endpoint_took_and_lost_is_told_with_the_endpoint",
        crate=_RUN,
    ),
    Bug(
        "a connection to an endpoint that ended while idle loses the mail",
        "mail/server.rs",
        "Err(error) if error.is_lost() && !matches!(error, MailError::TimedOut { .. }) => {",
        "Err(error) if !PLANTED\n"
        "                    && error.is_lost()\n"
        "                    && !matches!(error, MailError::TimedOut { .. }) => {",
        "families",
        _TEST + "a_connection_for_delivery_that_ended_while_nobody_used_it_is_made_again",
        crate=_RUN,
    ),
)
