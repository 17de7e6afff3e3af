//! What was accepted must lie in exactly one folder of each recipient, or have been removed by its
//! user: counted message by message at the end.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_clients::mail::MailError;
use plimsoll_io::{NANOS_PER_SECOND, Nanos, Permits};
use plimsoll_workload::mail::Check;

use super::ledger::AccountAudit;
use super::prepare::{MARKER_FOLDER, SENT};
use super::server::MailServer;
use super::spec::DeliverSpec;
use crate::RunError;
use crate::outcome::AuditReport;

/// Accounts that are looked at together.
const AT_ONCE: usize = 16;
/// A server that queues what it accepts is given so long to deliver it.
const QUEUE_NS: Nanos = 30 * NANOS_PER_SECOND;
/// Accounts that are named in a finding.
const NAMED: usize = 5;

/// Counts everything once more.
pub async fn audit(server: &Rc<MailServer>) -> Result<AuditReport, RunError> {
    let permits = Rc::new(Permits::new(AT_ONCE));
    let mut tasks = Vec::new();
    for account in 0..server.accounts.len() as u64 {
        let (server, permits) = (server.clone(), permits.clone());
        let handle = server.handle.clone();
        tasks.push(handle.spawn(async move {
            let _permit = permits.acquire().await;
            patiently(&server, account).await
        }));
    }
    let mut sum = AccountAudit::default();
    let mut wrong = Vec::new();
    let mut unread = Vec::new();
    for (account, task) in server.accounts.iter().zip(tasks) {
        match task.await {
            Ok(found) => {
                sum.received += found.received;
                sum.doubled += found.doubled;
                sum.missing += found.missing;
                for (endpoint, missing) in found.missing_by {
                    *sum.missing_by.entry(endpoint).or_default() += missing;
                }
                sum.astray += found.astray;
                if found.doubled + found.missing + found.astray > 0 {
                    wrong.push(account.login.as_str());
                }
            }
            Err(error) => unread.push(format!("{}: {error}", account.login)),
        }
    }
    Ok(report(server, &sum, &wrong, &unread))
}

fn report(
    server: &MailServer,
    sum: &AccountAudit,
    wrong: &[&str],
    unread: &[String],
) -> AuditReport {
    let totals = server.ledger.totals();
    let counts = [
        ("accounts", server.accounts.len() as u64),
        ("messages_sent", totals.messages_sent),
        ("recipients_accepted", totals.recipients_accepted),
        ("recipients_refused", totals.recipients_refused),
        ("recipients_unknown", totals.recipients_unknown),
        ("received", sum.received),
        ("deleted", totals.deleted),
        ("doubled", sum.doubled),
        ("missing", sum.missing),
        ("astray", sum.astray),
        ("probes_sent", totals.probes_sent),
        ("probes_seen", totals.probes_seen),
        ("sent_copies", totals.sent_copies),
        ("accounts_unread", unread.len() as u64),
    ];
    let such_as = || wrong[..wrong.len().min(NAMED)].join(", ");
    let mut findings = Vec::new();
    for (count, what) in [
        (sum.missing, "were accepted by the server and are in no folder"),
        (sum.doubled, "are there more than once"),
        (sum.astray, "are in accounts they were not sent to"),
    ] {
        if count > 0 {
            findings.push(format!("{count} messages {what}; see accounts such as {}", such_as()));
        }
    }
    if sum.missing > 0 && server.endpoints.count() > 1 {
        let by = sum.missing_by.iter().map(|(endpoint, missing)| {
            format!("{missing} by {}", server.delivers_at(usize::from(*endpoint)))
        });
        let by: Vec<_> = by.collect();
        findings.push(format!(
            "the messages that are missing were accepted: {}; see that all endpoints lead to the \
             same accounts",
            by.join(", ")
        ));
    }
    if !unread.is_empty() {
        findings.push(format!(
            "{} accounts could not be counted: {}",
            unread.len(),
            unread[..unread.len().min(NAMED)].join("; ")
        ));
    }
    AuditReport { counts: counts.into_iter().collect(), findings }
}

/// Looks again as long as a queue may still deliver.
async fn patiently(server: &MailServer, account: u64) -> Result<AccountAudit, MailError> {
    let until = server.handle.now() + QUEUE_NS;
    loop {
        let found = count(server, account).await?;
        let audit = server.ledger.audit(account, &found);
        let has_queue = server.spec.deliver_protocol == DeliverSpec::Smtp;
        if audit.missing == 0 || !has_queue || server.handle.now() >= until {
            return Ok(audit);
        }
        server.handle.sleep(NANOS_PER_SECOND).await;
    }
}

/// How often each message of this run lies in the folders of an account. Copies of what it sent are
/// no mail that it received.
async fn count(server: &MailServer, account: u64) -> Result<BTreeMap<u64, u64>, MailError> {
    let (mut imap, _open) = server.connect(account, None).await?;
    server.login(&mut imap, account).await?;
    let mut found = BTreeMap::new();
    for folder in imap.list().await? {
        if !folder.is_selectable || folder.name == SENT || folder.name == MARKER_FOLDER {
            continue;
        }
        if imap.select(&folder.name).await?.exists == 0 {
            continue;
        }
        let all = imap.headers_from(1).await?;
        let contents = all.rows.iter().flat_map(|row| &row.contents);
        for check in contents.filter_map(|content| Check::find(&content.head)) {
            if check.seed == server.corpus.seed() && server.is_of_this_run(check.id) {
                *found.entry(check.id).or_default() += 1;
            }
        }
    }
    // What comes of a goodbye does not matter.
    let _ = imap.logout().await;
    Ok(found)
}
