//! Rules of mailboxes: into which folder a message is laid when it is delivered. Each delivery
//! reads the rules of every recipient in its own transaction, and the first that fits decides.
//!
//! A rule stands for one that files mail by its sender, as most do: it fits one sender of so many.

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::transaction::Transaction;

use super::homes::Home;
use super::items::{Property, filler};
use super::schema::property;
use super::{INBOX, MailStore, of_long};
use crate::shop::Value;

/// Bytes of a rule; Plimsoll's choice.
const RULE_BYTES: usize = 512;
/// How the content of a rule begins.
const MARK: &str = "rule";

/// Mail of some senders goes into a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// It fits one sender of so many, at least 1.
    pub senders: u32,
    /// Which one: the number of the sender divided by `senders` leaves this.
    pub sender: u32,
    /// Where its mail goes.
    pub folder: i32,
}

impl Rule {
    fn fits(&self, sender: i64) -> bool {
        sender.rem_euclid(self.senders.max(1).into()) == i64::from(self.sender)
    }

    fn content(&self, seed: u64) -> Vec<u8> {
        let Rule { senders, sender, folder } = self;
        let mut content = format!("{MARK} {senders} {sender} {folder}\n").into_bytes();
        let rest = RULE_BYTES.saturating_sub(content.len());
        content.extend(filler(seed, MARK, rest));
        content
    }

    /// Stores of earlier versions hold rules that say nothing.
    fn of_content(content: &[u8]) -> Option<Rule> {
        let end = content.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&content[..end]).ok()?;
        let mut words = line.strip_prefix(MARK)?.split_whitespace();
        Some(Rule {
            senders: words.next()?.parse().ok()?,
            sender: words.next()?.parse().ok()?,
            folder: words.next()?.parse().ok()?,
        })
    }
}

impl MailStore {
    /// Keeps a rule under a number; the lowest number is asked first.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for a folder that the mailbox does not have, and what the disk
    /// reports.
    pub async fn put_rule(&self, mailbox: u32, number: u32, rule: Rule) -> Result<()> {
        let folders = self.folders(mailbox).await?;
        if !folders.iter().any(|(folder, _)| *folder == rule.folder) {
            return Err(EngineError::BadRow(format!(
                "a rule of mailbox {mailbox} files mail in folder {}, which it does not have; name \
                 one of its {} folders",
                rule.folder,
                folders.len()
            )));
        }
        let content = rule.content(self.corpus.seed());
        self.put(mailbox, Property::Rule, number, &content).await
    }

    /// The rules of a mailbox, the first one first.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn rules(&self, mailbox: u32) -> Result<Vec<Rule>> {
        let home = self.enter(mailbox).await?;
        rules_of(&home, &home.mail.begin(), mailbox).await
    }

    /// Where mail of a sender goes in each of some mailboxes of one database.
    pub(super) async fn sorted(
        &self,
        home: &Home,
        transaction: &Transaction,
        mailboxes: &[u32],
        sender: i64,
    ) -> Result<Vec<(u32, i32)>> {
        let mut places = Vec::new();
        for mailbox in mailboxes {
            let rules = rules_of(home, transaction, *mailbox).await?;
            let first = rules.iter().find(|rule| rule.fits(sender));
            places.push((*mailbox, first.map_or(INBOX, |rule| rule.folder)));
        }
        Ok(places)
    }
}

async fn rules_of(home: &Home, transaction: &Transaction, mailbox: u32) -> Result<Vec<Rule>> {
    let sheet = &home.tables.properties;
    let place = [mailbox.into(), Property::Rule as i64].map(Value::Number);
    let mut rows = sheet.rows(transaction, 0, &place)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().await? {
        let content = sheet.long_value(transaction, &row, property::CONTENT).await?;
        found.extend(Rule::of_content(of_long(&content)));
    }
    Ok(found)
}
