"""Planted bugs in the mail store on the engine: deliveries, counters, references. See `run.py`."""

from tests.planted.bug import Bug

_CRATE = "plimsoll-stores"
_WORLDS = "mail::worlds::mail_outlives_power_cuts_kills_and_a_failing_storage"

BUGS = (
    Bug(
        "a delivery is not durable before its message leaves the queue",
        "mail/transport.rs",
        "        let (tables, rows) = (&self.tables, self.rows());\n        self.transact(Commit::Durable, async |transaction| {",
        "        let (tables, rows) = (&self.tables, self.rows());\n        let how = if PLANTED { Commit::Lazy } else { Commit::Durable };\n        self.transact(how, async |transaction| {",
        "stores",
        _WORLDS,
        crate=_CRATE,
    ),
    Bug(
        "what was delivered before a crash is delivered again",
        "mail/transport.rs",
        "            if tables.delivered.get(transaction, &key).await?.is_some() {",
        "            if !PLANTED && tables.delivered.get(transaction, &key).await?.is_some() {",
        "stores",
        _WORLDS,
        crate=_CRATE,
    ),
    Bug(
        "the mark of a delivery goes while its message is in the queue",
        "mail/transport.rs",
        "            if self.tables.queue.get(&waiting, &key).await?.is_none() {",
        "            if PLANTED || self.tables.queue.get(&waiting, &key).await?.is_none() {",
        "stores",
        _WORLDS,
        crate=_CRATE,
    ),
    Bug(
        "a message is acknowledged before it is durable in the queue",
        "mail/transport.rs",
        "        sheet.add(&transaction, &key, accepted::RECIPIENTS, count as i64).await?;\n        transaction.commit(Commit::Durable).await?;",
        "        sheet.add(&transaction, &key, accepted::RECIPIENTS, count as i64).await?;\n"
        "        transaction.commit(if PLANTED { Commit::Lazy } else { Commit::Durable }).await?;",
        "stores",
        _WORLDS,
        crate=_CRATE,
    ),
    Bug(
        "rules of a mailbox are kept and not carried out",
        "mail/rules.rs",
        "first.map_or(INBOX, |rule| rule.folder)",
        "first.filter(|_| !PLANTED).map_or(INBOX, |rule| rule.folder)",
        "stores",
        "mail::rules::mail_goes_where_the_first_rule_that_fits_says",
        crate=_CRATE,
    ),
)
