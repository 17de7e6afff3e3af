//! Probe messages: how long a message takes from its sender's first word to its first sight in the
//! mailbox of its recipient.

use std::rc::{Rc, Weak};

use plimsoll_clients::mail::{MailError, Recipient};
use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::mail::{Check, Letter};

use super::metrics;
use super::office::Office;
use super::server::{MailServer, PROBES, nanos};

/// Sends a probe now and then until the load is gone.
pub async fn probe(office: Weak<Office>, mut random: Random) {
    let mut sequence = 0;
    loop {
        let Some((handle, gap_ns)) = office.upgrade().map(|office| {
            let gap_ns = 60.0 * NANOS_PER_SECOND as f64 / office.group.spec.probes_per_minute;
            (office.group.run.handle.clone(), gap_ns as Nanos)
        }) else {
            return;
        };
        handle.sleep(gap_ns).await;
        let Some(office) = office.upgrade() else {
            return;
        };
        let account = random.below(office.group.days.len() as u64);
        let found = one(&office, account, sequence).await;
        sequence += 1;
        let note = |metric: &'static str| {
            let endpoint = office.server.endpoints.of(account) as u32 + 1;
            let key = office.group.run.recorder.key(office.server.number, endpoint, metric);
            key.of_workload(office.group.place.workload)
        };
        let recorder = &office.group.run.recorder;
        let (was_sent, seen_after_ns) = found.unwrap_or((false, None));
        if was_sent {
            recorder.count(note(metrics::PROBES_SENT), 1);
            office.server.ledger.count(|totals| totals.probes_sent += 1);
        }
        match seen_after_ns {
            Some(took_ns) => {
                recorder.record(note(metrics::DELIVERY), took_ns);
                office.server.ledger.count(|totals| totals.probes_seen += 1);
            }
            None => recorder.count(note(metrics::PROBES_LOST), 1),
        }
    }
}

/// Whether the server took it, and after what time it was seen.
async fn one(
    office: &Rc<Office>,
    account: u64,
    sequence: u64,
) -> Result<(bool, Option<Nanos>), MailError> {
    let server = &office.server;
    let handle = &office.group.run.handle;
    let (mut imap, _open) = server.connect(account, None).await?;
    server.login(&mut imap, account).await?;
    let first = imap.select("INBOX").await?.uid_next.max(1);
    let id = server.message_id(PROBES, sequence);
    let address = &server.accounts[account as usize].address;
    let mail = server.corpus.mail(&Letter {
        id,
        from: address,
        to: std::slice::from_ref(address),
        prefix: "",
        is_meeting: false,
    });
    let begun = handle.now();
    let delivery = server.deliver(account, &[account], &mail).await?;
    if delivery.recipients != [Recipient::Accepted] {
        return Ok((false, None));
    }
    let until = begun + nanos(office.group.spec.probe_timeout_s);
    loop {
        if imap.noop().await.is_ok() && sees(server, &mut imap, account, first, id).await {
            let took_ns = handle.now() - begun;
            // What comes of a goodbye does not matter.
            let _ = imap.logout().await;
            return Ok((true, Some(took_ns)));
        }
        if !imap.is_open() || handle.now() >= until {
            return Ok((true, None));
        }
        handle.sleep(office.group.spec.probe_poll_ms * NANOS_PER_MILLISECOND).await;
    }
}

/// Whether the message is there, or was until its user has removed it.
async fn sees(
    server: &MailServer,
    imap: &mut plimsoll_clients::mail::Imap,
    account: u64,
    first: u32,
    id: u64,
) -> bool {
    if server.ledger.is_deleted(account, id) {
        return true;
    }
    if imap.mailbox().is_none_or(|mailbox| mailbox.exists == 0) {
        return false;
    }
    let Ok(found) = imap.headers_from(first).await else {
        return false;
    };
    let mut contents = found.rows.iter().flat_map(|row| &row.contents);
    contents.any(|content| Check::find(&content.head).is_some_and(|check| check.id == id))
}
