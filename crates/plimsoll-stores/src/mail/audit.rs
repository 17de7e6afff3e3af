//! Counting everything once more: messages against the counters of their mailboxes, and what was delivered.

use std::collections::BTreeMap;

use plimsoll_engine::error::Result;

use super::schema::{mailbox, message, queued};
use super::{MailStore, numbers};

/// What a mail store holds, counted row by row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailAudit {
    /// Messages that ever came to a mailbox, prepared ones included, once for each recipient.
    pub received: u64,
    /// Messages times recipients that wait in the queue and were not delivered.
    pub queued: u64,
    /// Messages that users deleted.
    pub deleted: u64,
    /// Messages that are there.
    pub messages: u64,
    /// Mailboxes whose total is not the number of their messages, or not what was received less what was deleted.
    pub totals_wrong: u64,
    /// Mailboxes whose count of unread messages is not what is unread.
    pub unread_wrong: u64,
    /// Mailboxes whose used bytes are not the sum of their messages.
    pub used_wrong: u64,
    /// Messages of mailboxes that are not there.
    pub astray: u64,
    /// Messages whose body has another length than was noted.
    pub bodies_wrong: u64,
}

impl MailAudit {
    /// Counters and rows agree: everything but the sum of what was accepted.
    pub fn is_consistent(&self) -> bool {
        let wrong = [
            self.totals_wrong,
            self.unread_wrong,
            self.used_wrong,
            self.astray,
            self.bodies_wrong,
        ];
        wrong.iter().all(|count| *count == 0)
    }
}

impl MailStore {
    /// What the store and its queue hold. Nothing may be delivered meanwhile, or a message may be counted at neither place.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn audit(&self) -> Result<MailAudit> {
        let (mail, queue) = (self.mail.begin(), self.queue.begin());
        let tables = &self.tables;
        let handle = &self.mail.store().handle;
        let mut audit = MailAudit::default();
        let mut counted: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
        let sheet = &tables.messages;
        let mut rows = sheet.rows(&mail, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let bytes = sheet.number(&row, message::SIZE_BYTES)?;
            let body = sheet.long_value(&mail, &row, message::BODY).await?;
            audit.bodies_wrong += u64::from(body.len() as i64 != bytes);
            let counts = counted.entry(sheet.number(&row, message::MAILBOX)?).or_default();
            counts[0] += 1;
            counts[1] += i64::from(sheet.number(&row, message::READ)? == 0);
            counts[2] += bytes;
            audit.messages += 1;
            handle.breathe().await;
        }
        let sheet = &tables.mailboxes;
        let mut rows = sheet.rows(&mail, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let number = |position| sheet.number(&row, position);
            let [total, unread, used] = counted.remove(&number(mailbox::NUMBER)?).unwrap_or_default();
            let (received, deleted) = (number(mailbox::RECEIVED)?, number(mailbox::DELETED)?);
            audit.received += received.max(0) as u64;
            audit.deleted += deleted.max(0) as u64;
            let is_total = number(mailbox::TOTAL)? == total && received - deleted == total;
            audit.totals_wrong += u64::from(!is_total);
            audit.unread_wrong += u64::from(number(mailbox::UNREAD)? != unread);
            audit.used_wrong += u64::from(number(mailbox::USED_BYTES)? != used);
        }
        audit.astray = counted.values().map(|counts| counts[0] as u64).sum();
        let sheet = &tables.queue;
        let mut rows = sheet.rows(&queue, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let key = tables
                .delivered
                .key_of_number(sheet.number(&row, queued::DOCUMENT)?)?;
            if tables.delivered.get(&mail, &key).await?.is_none() {
                let list = sheet.long_value(&queue, &row, queued::RECIPIENTS).await?;
                audit.queued += numbers(&list).len() as u64;
            }
        }
        Ok(audit)
    }
}
