//! Who was sent which message, and what became of it: what the audit at the end holds against the
//! mailboxes.
//!
//! A message is entered before its first byte is sent, as of unknown end, and settled when the
//! server has answered. So whatever interrupts a delivery, a removal or the run leaves the ledger
//! true.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_clients::mail::Recipient;

/// How far a message came with one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The server has it, by this endpoint.
    Accepted(u16),
    /// It was sent, and nobody knows.
    Unknown,
}

#[derive(Clone, Debug, Default)]
struct Account {
    sent_to_it: BTreeMap<u64, End>,
    deleted: BTreeSet<u64>,
    /// Removals whose end nobody knows.
    maybe_deleted: BTreeSet<u64>,
    /// Moved by a command whose end nobody knows: it may lie in two folders, where a server copies
    /// first.
    maybe_moved: BTreeSet<u64>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are")]
pub struct Totals {
    pub messages_sent: u64,
    pub recipients_accepted: u64,
    pub recipients_refused: u64,
    pub recipients_unknown: u64,
    pub deleted: u64,
    pub sent_copies: u64,
    pub probes_sent: u64,
    pub probes_seen: u64,
}

/// What an account was found to hold against what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountAudit {
    /// Messages of this run that are there.
    pub received: u64,
    /// Messages that are there more than once.
    pub doubled: u64,
    /// Messages that were accepted and are not there.
    pub missing: u64,
    /// The same by the endpoint that accepted them.
    pub missing_by: BTreeMap<u16, u64>,
    /// Messages of this run that nobody sent to this account.
    pub astray: u64,
}

/// See the module text.
#[derive(Debug)]
pub struct Ledger {
    accounts: RefCell<Vec<Account>>,
    totals: RefCell<Totals>,
    by_endpoint: RefCell<Vec<u64>>,
}

impl Ledger {
    /// A ledger in which nothing stands.
    pub fn new(accounts: usize, endpoints: usize) -> Ledger {
        Ledger {
            accounts: RefCell::new(vec![Account::default(); accounts]),
            totals: RefCell::default(),
            by_endpoint: RefCell::new(vec![0; endpoints]),
        }
    }

    /// A message is about to be sent.
    pub fn offer(&self, id: u64, to: &[u64]) {
        for account in to {
            let mut accounts = self.accounts.borrow_mut();
            accounts[*account as usize].sent_to_it.insert(id, End::Unknown);
        }
    }

    /// It was certainly not delivered.
    pub fn withdraw(&self, id: u64, to: &[u64]) {
        for account in to {
            self.accounts.borrow_mut()[*account as usize].sent_to_it.remove(&id);
        }
    }

    /// The server has answered.
    pub fn settle(&self, id: u64, endpoint: usize, to: &[u64], ends: &[Recipient]) {
        let mut totals = self.totals.borrow_mut();
        let mut accepted = 0;
        for (account, end) in to.iter().zip(ends) {
            let sent = &mut self.accounts.borrow_mut()[*account as usize].sent_to_it;
            match end {
                Recipient::Accepted => {
                    sent.insert(id, End::Accepted(endpoint as u16));
                    accepted += 1;
                }
                // A server that fails for now, as one does that is killed with the message in its
                // hands, may have it all the same.
                Recipient::Refused(400..500) => totals.recipients_refused += 1,
                Recipient::Refused(_) => {
                    sent.remove(&id);
                    totals.recipients_refused += 1;
                }
                Recipient::Unknown => totals.recipients_unknown += 1,
            }
        }
        totals.recipients_accepted += accepted;
        totals.messages_sent += u64::from(accepted > 0);
        self.by_endpoint.borrow_mut()[endpoint] += accepted;
    }

    /// Messages are about to be removed.
    pub fn begin_delete(&self, account: u64, ids: &[u64]) {
        self.accounts.borrow_mut()[account as usize].maybe_deleted.extend(ids);
    }

    /// They are.
    pub fn deleted(&self, account: u64, ids: &[u64]) {
        let mut accounts = self.accounts.borrow_mut();
        let account = &mut accounts[account as usize];
        for id in ids {
            account.maybe_deleted.remove(id);
            if account.sent_to_it.contains_key(id) && account.deleted.insert(*id) {
                self.totals.borrow_mut().deleted += 1;
            }
        }
    }

    /// Messages are about to be moved.
    pub fn begin_move(&self, account: u64, ids: &[u64]) {
        self.accounts.borrow_mut()[account as usize].maybe_moved.extend(ids);
    }

    /// They are.
    pub fn moved(&self, account: u64, ids: &[u64]) {
        let mut accounts = self.accounts.borrow_mut();
        ids.iter().for_each(|id| {
            accounts[account as usize].maybe_moved.remove(id);
        });
    }

    /// Whether a message was removed by its user.
    pub fn is_deleted(&self, account: u64, id: u64) -> bool {
        let accounts = self.accounts.borrow();
        let account = &accounts[account as usize];
        account.deleted.contains(&id) || account.maybe_deleted.contains(&id)
    }

    /// What was counted, to be added to.
    pub fn count(&self, add: impl FnOnce(&mut Totals)) {
        add(&mut self.totals.borrow_mut());
    }

    /// What was counted.
    pub fn totals(&self) -> Totals {
        *self.totals.borrow()
    }

    /// Recipients that were accepted by each endpoint.
    pub fn delivered_by(&self, endpoint: usize) -> u64 {
        self.by_endpoint.borrow()[endpoint]
    }

    /// Holds what an account was found to hold, by number of message with how often, against what
    /// it should.
    pub fn audit(&self, account: u64, found: &BTreeMap<u64, u64>) -> AccountAudit {
        let accounts = self.accounts.borrow();
        let account = &accounts[account as usize];
        let mut audit = AccountAudit::default();
        for (id, times) in found {
            match account.sent_to_it.contains_key(id) {
                true => audit.received += 1,
                false => audit.astray += 1,
            }
            audit.doubled += u64::from(*times > 1 && !account.maybe_moved.contains(id));
        }
        for (id, end) in &account.sent_to_it {
            let may_be_gone = account.deleted.contains(id) || account.maybe_deleted.contains(id);
            if let End::Accepted(endpoint) = end
                && !may_be_gone
                && !found.contains_key(id)
            {
                audit.missing += 1;
                *audit.missing_by.entry(*endpoint).or_default() += 1;
            }
        }
        audit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit_of_refused(code: u16) -> AccountAudit {
        let ledger = Ledger::new(1, 1);
        ledger.offer(7, &[0]);
        ledger.settle(7, 0, &[0], &[Recipient::Refused(code)]);
        assert_eq!(ledger.totals().recipients_refused, 1);
        assert_eq!(ledger.audit(0, &BTreeMap::new()), AccountAudit::default(), "it may be absent");
        ledger.audit(0, &BTreeMap::from([(7, 1)]))
    }

    #[test]
    fn a_message_that_failed_for_now_may_be_there() {
        assert_eq!(audit_of_refused(451), AccountAudit { received: 1, ..AccountAudit::default() });
    }

    #[test]
    fn a_message_that_was_refused_for_good_is_astray() {
        assert_eq!(audit_of_refused(550), AccountAudit { astray: 1, ..AccountAudit::default() });
    }
}
