//! Transactions that recovery may have to undo, and the log that it needs for that.
//!
//! A transaction that has logged changes needs the log from its first record on: until it ends, and
//! then until the record of its end is on stable storage. A lazy commit ends at once and is durable
//! later; if the power fails in between, recovery has to undo the transaction.

use std::collections::{BTreeMap, VecDeque};

use crate::log::Lsn;

/// See the module text.
#[derive(Debug, Default)]
pub struct Writers {
    /// First log position by transaction.
    active: BTreeMap<u64, Lsn>,
    /// Transactions whose end is in the log but perhaps not durable: the position behind that
    /// record, and their first. In the order of their ends.
    ended: VecDeque<(Lsn, Lsn)>,
}

impl Writers {
    /// Notes a change whose log begins at `first`, unless the transaction has made one before.
    pub fn note(&mut self, transaction: u64, first: Lsn) {
        self.active.entry(transaction).or_insert(first);
    }

    /// Whether the transaction is under way and has logged changes.
    pub fn contains(&self, transaction: u64) -> bool {
        self.active.contains_key(&transaction)
    }

    /// Notes that the record of the transaction's end lies before `end`; the log is `durable` so
    /// far.
    pub fn end(&mut self, transaction: u64, end: Lsn, durable: Lsn) {
        if let Some(first) = self.active.remove(&transaction) {
            self.ended.push_back((end, first));
        }
        self.forget(durable);
    }

    /// Where the log begins that undoing may need, with the log `durable` so far.
    pub fn oldest_needed(&mut self, durable: Lsn) -> Option<Lsn> {
        self.forget(durable);
        let ended = self.ended.iter().map(|(_, first)| first);
        self.active.values().chain(ended).min().copied()
    }

    fn forget(&mut self, durable: Lsn) {
        while self.ended.front().is_some_and(|(end, _)| *end <= durable) {
            self.ended.pop_front();
        }
    }
}
