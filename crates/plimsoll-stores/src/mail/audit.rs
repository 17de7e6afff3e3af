//! Counting everything once more: messages against the counters of folders and mailboxes, contents
//! against what refers to them, and what was accepted against what was delivered.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_engine::error::{EngineError, Result};

use super::MailStore;
use super::homes::{Home, Mark};
use super::schema::{accepted, contents, folder, mailbox, message, queued};
use super::transport::numbers;
use crate::shop::Value;

/// What a mail store holds, counted row by row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailAudit {
    /// Messages times recipients that the queue ever accepted, as it says itself.
    pub accepted: u64,
    /// Messages times recipients that were ever delivered.
    pub delivered: u64,
    /// Messages times recipients that wait in the queue and were not delivered.
    pub queued: u64,
    /// Messages that ever came to a mailbox, prepared ones, sent ones and posts included.
    pub received: u64,
    /// Messages that users deleted.
    pub deleted: u64,
    /// Messages that stand in folders.
    pub messages: u64,
    /// Contents that are kept; fewer than messages where several mailboxes share one.
    pub contents: u64,
    /// Bytes of all messages, as the mailboxes count them.
    pub used_bytes: u64,
    /// Folders whose total is not the number of their messages.
    pub folders_wrong: u64,
    /// Folders whose count of unread messages is not what is unread.
    pub unread_wrong: u64,
    /// Mailboxes that do not hold what came less what was deleted.
    pub totals_wrong: u64,
    /// Mailboxes whose used bytes are not the sum of their messages.
    pub used_wrong: u64,
    /// Messages that stand in a folder and have no content.
    pub missing: u64,
    /// Contents with other references than messages that refer to them.
    pub references_wrong: u64,
    /// Contents that are not what was written.
    pub bodies_wrong: u64,
    /// Rows of kept views that are missing or too many.
    pub views_wrong: u64,
    /// Mailboxes that live in no database, or in two.
    pub homes_wrong: u64,
}

impl MailAudit {
    /// What does not add up, in sentences.
    pub fn findings(&self, acknowledged: u64) -> Vec<String> {
        let mut found = Vec::new();
        for (count, what) in [
            (self.folders_wrong, "folders do not hold as many messages as they count"),
            (self.unread_wrong, "folders have other unread messages than they count"),
            (self.totals_wrong, "mailboxes do not hold what came less what was deleted"),
            (self.used_wrong, "mailboxes use other bytes than they count"),
            (self.missing, "messages stand in a folder and have no content"),
            (self.references_wrong, "contents have other references than messages"),
            (self.bodies_wrong, "contents are not what was written"),
            (self.views_wrong, "rows of kept views are missing or too many"),
            (self.homes_wrong, "mailboxes live in no database, or in two"),
        ] {
            if count > 0 {
                found.push(format!("{count} {what}"));
            }
        }
        let there = self.delivered + self.queued;
        if self.accepted != there {
            found.push(format!(
                "{} recipients were accepted, but {} deliveries were made and {} wait: {} are {}",
                self.accepted,
                self.delivered,
                self.queued,
                self.accepted.abs_diff(there),
                if there < self.accepted { "lost" } else { "doubled" }
            ));
        }
        if self.accepted < acknowledged {
            found.push(format!(
                "{acknowledged} recipients were acknowledged in this run alone, but the queue \
                 knows of {} in all",
                self.accepted
            ));
        }
        found
    }
}

/// What the messages of a folder come to: how many, unread ones, bytes.
type Sums = [i64; 3];

impl MailStore {
    /// What the store and its queue hold. Nothing may be delivered meanwhile, or a message may be
    /// counted at neither place.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn audit(&self) -> Result<MailAudit> {
        let _nobody_moves = self.movers.acquire().await;
        let mut audit = MailAudit::default();
        let mut homes_of = BTreeMap::new();
        for home in &self.homes {
            // A copy that is being made counts for nothing.
            let coming = home.marked(Mark::Coming).await?;
            let mut references = BTreeMap::new();
            let mut sums = self.sum_up(home, &coming, &mut audit, &mut references).await?;
            hold_folders(home, &coming, &mut audit, &sums).await?;
            hold_mailboxes(home, &mut audit, &mut sums).await?;
            self.hold_contents(home, &coming, &mut audit, references).await?;
            for number in home.mailboxes().await? {
                *homes_of.entry(number).or_default() += 1;
            }
        }
        let once = |number: u32| homes_of.get(&number) == Some(&1);
        audit.homes_wrong =
            (0..=self.filling.public()).filter(|number| !once(*number)).count() as u64;
        self.hold_queue(&mut audit).await?;
        Ok(audit)
    }

    /// Adds up what stands in every folder, and who refers to which content.
    async fn sum_up(
        &self,
        home: &Home,
        coming: &BTreeSet<u32>,
        audit: &mut MailAudit,
        references: &mut BTreeMap<(i64, i64), i64>,
    ) -> Result<BTreeMap<(i64, i64), Sums>> {
        let transaction = home.mail.begin();
        let sheet = &home.tables.contents;
        let mut messages = 0;
        let mut sums: BTreeMap<(i64, i64), Sums> = BTreeMap::new();
        let mut rows = sheet.rows(&transaction, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let number = |position| sheet.number(&row, position);
            let (mailbox, document) = (number(contents::MAILBOX)?, number(contents::DOCUMENT)?);
            if coming.contains(&(mailbox as u32)) {
                continue;
            }
            let of = sums.entry((mailbox, number(contents::FOLDER)?)).or_default();
            of[0] += 1;
            of[1] += i64::from(number(contents::READ)? == 0);
            of[2] += number(contents::SIZE_BYTES)?;
            if let [Value::Number(owner), Value::Number(content)] =
                self.rows_of(home).content_of(mailbox as u32, document)
            {
                *references.entry((owner, content)).or_default() += 1;
            }
            messages += 1;
            home.mail.store().handle.breathe().await;
        }
        let mut views = home.tables.views.count(&transaction).await?;
        for number in coming {
            let place = [Value::Number((*number).into())];
            views -= home.tables.views.count_of(&transaction, &place).await?;
        }
        audit.messages += messages;
        audit.views_wrong += views.abs_diff(messages * u64::from(self.filling.views));
        Ok(sums)
    }

    async fn hold_contents(
        &self,
        home: &Home,
        coming: &BTreeSet<u32>,
        audit: &mut MailAudit,
        mut references: BTreeMap<(i64, i64), i64>,
    ) -> Result<()> {
        let transaction = home.mail.begin();
        let sheet = &home.tables.messages;
        let mut rows = sheet.rows(&transaction, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let number = |position| sheet.number(&row, position);
            let (owner, document) = (number(message::OWNER)?, number(message::DOCUMENT)?);
            let mailbox = owner.max(0) as u32;
            if coming.contains(&mailbox) {
                continue;
            }
            let referring = references.remove(&(owner, document)).unwrap_or_default();
            let counted = number(message::REFERENCES)?;
            audit.references_wrong += u64::from(counted != referring || counted <= 0);
            let body = self.read_content(home, &transaction, mailbox, document).await?;
            let attachment = self.attachment_of(home, &transaction, mailbox, document).await?;
            let bytes = [body, attachment].iter().flatten().map(|read| read.bytes).sum::<u64>();
            let is_right = bytes as i64 == number(message::SIZE_BYTES)?
                && body.is_some_and(|read| read.is_right)
                && body.is_some_and(|read| read.has_attachment) == attachment.is_some()
                && attachment.is_none_or(|read| read.is_right);
            audit.bodies_wrong += u64::from(!is_right);
            audit.contents += 1;
            home.mail.store().handle.breathe().await;
        }
        audit.missing += references.into_values().sum::<i64>() as u64;
        Ok(())
    }

    async fn hold_queue(&self, audit: &mut MailAudit) -> Result<()> {
        let queue = self.queue.begin();
        let tables = &self.first().tables;
        let sheet = &tables.accepted;
        let key = sheet.key_of_number(1)?;
        let row = sheet.get(&queue, &key).await?.ok_or(EngineError::RowNotFound)?;
        audit.accepted = sheet.number(&row, accepted::RECIPIENTS)?.max(0) as u64;
        let sheet = &tables.queue;
        let mut rows = sheet.rows(&queue, 0, &[])?;
        while let Some(row) = rows.next().await? {
            let document = sheet.number(&row, queued::DOCUMENT)?;
            let mut waits = Vec::new();
            for home in &self.homes {
                let sheet = &home.tables.delivered;
                let key = sheet.key_of_number(document)?;
                waits.push(sheet.get(&home.mail.begin(), &key).await?.is_none());
            }
            let list = sheet.long_value(&queue, &row, queued::RECIPIENTS).await?;
            let recipients = numbers(&list);
            let waiting = recipients.iter().filter(|number| waits[self.place_of(**number)]);
            audit.queued += waiting.count() as u64;
        }
        Ok(())
    }
}

async fn hold_folders(
    home: &Home,
    coming: &BTreeSet<u32>,
    audit: &mut MailAudit,
    sums: &BTreeMap<(i64, i64), Sums>,
) -> Result<()> {
    let transaction = home.mail.begin();
    let sheet = &home.tables.folders;
    let mut seen = 0;
    let mut rows = sheet.rows(&transaction, 0, &[])?;
    while let Some(row) = rows.next().await? {
        let number = |position| sheet.number(&row, position);
        let place = (number(folder::MAILBOX)?, number(folder::NUMBER)?);
        if coming.contains(&(place.0 as u32)) {
            continue;
        }
        let [total, unread, _] = sums.get(&place).copied().unwrap_or_default();
        seen += u64::from(sums.contains_key(&place));
        audit.folders_wrong += u64::from(number(folder::TOTAL)? != total);
        audit.unread_wrong += u64::from(number(folder::UNREAD)? != unread);
    }
    // Messages in folders that are not there.
    audit.folders_wrong += sums.len() as u64 - seen;
    Ok(())
}

async fn hold_mailboxes(
    home: &Home,
    audit: &mut MailAudit,
    sums: &mut BTreeMap<(i64, i64), Sums>,
) -> Result<()> {
    let mut by_mailbox: BTreeMap<i64, Sums> = BTreeMap::new();
    for ((mailbox, _), sum) in std::mem::take(sums) {
        let of = by_mailbox.entry(mailbox).or_default();
        of.iter_mut().zip(sum).for_each(|(all, more)| *all += more);
    }
    let transaction = home.mail.begin();
    let sheet = &home.tables.mailboxes;
    let mut rows = sheet.rows(&transaction, 0, &[])?;
    while let Some(row) = rows.next().await? {
        let number = |position| sheet.number(&row, position);
        let held = by_mailbox.remove(&number(mailbox::NUMBER)?).unwrap_or_default();
        let (received, deleted) = (number(mailbox::RECEIVED)?, number(mailbox::DELETED)?);
        let used = number(mailbox::USED_BYTES)?;
        audit.received += received.max(0) as u64;
        audit.deleted += deleted.max(0) as u64;
        audit.delivered += number(mailbox::DELIVERED)?.max(0) as u64;
        audit.used_bytes += used.max(0) as u64;
        audit.totals_wrong += u64::from(received - deleted != held[0]);
        audit.used_wrong += u64::from(used != held[2]);
    }
    // Messages in mailboxes that are not there.
    audit.totals_wrong += by_mailbox.len() as u64;
    Ok(())
}
