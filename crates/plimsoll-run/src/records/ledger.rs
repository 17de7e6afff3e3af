//! What the clients of an instance were told of its records: which version each has, or that it is
//! gone, by the last durable commit that was acknowledged. An audit holds it against what is there.
//!
//! A commit that was begun and not acknowledged, or acknowledged without being durable, may or may
//! not have survived a crash: either is right. Of two changes of one record the later transaction
//! began later, because the engine lets no two of them change a record at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The version of a record; none of one that was deleted.
pub type Version = Option<u32>;

/// A record: the position of its database, and its number.
pub type RecordPlace = (usize, u64);

/// See the module text.
#[derive(Default)]
pub struct Ledger {
    begun: Cell<u64>,
    records: RefCell<BTreeMap<RecordPlace, Entry>>,
}

#[derive(Default)]
struct Entry {
    /// The transaction and what it left.
    acknowledged: Option<(u64, Version)>,
    /// Later ones of which that is not known.
    unsure: Vec<(u64, Version)>,
}

impl Ledger {
    /// A number for a transaction that begins.
    pub fn begin(&self) -> u64 {
        self.begun.set(self.begun.get() + 1);
        self.begun.get()
    }

    /// A transaction that has changed a record is about to commit.
    pub fn tries(&self, place: RecordPlace, transaction: u64, version: Version) {
        let mut records = self.records.borrow_mut();
        records.entry(place).or_default().unsure.push((transaction, version));
    }

    /// Its durable commit was acknowledged.
    pub fn keeps(&self, place: RecordPlace, transaction: u64, version: Version) {
        let mut records = self.records.borrow_mut();
        let entry = records.entry(place).or_default();
        if entry.acknowledged.is_none_or(|(known, _)| known < transaction) {
            entry.acknowledged = Some((transaction, version));
            entry.unsure.retain(|(other, _)| *other > transaction);
        }
    }

    /// The records of which a durable commit was acknowledged.
    pub fn acknowledged(&self) -> Vec<RecordPlace> {
        let records = self.records.borrow();
        let known = records.iter().filter(|(_, entry)| entry.acknowledged.is_some());
        known.map(|(place, _)| *place).collect()
    }

    /// What is wrong with a record that was found like this.
    pub fn finding(&self, place: RecordPlace, found: Version) -> Option<String> {
        let records = self.records.borrow();
        let entry = records.get(&place)?;
        let (_, acknowledged) = entry.acknowledged?;
        let may_be = entry.unsure.iter().any(|(_, version)| *version == found);
        if found == acknowledged || may_be {
            return None;
        }
        let (database, record) = place;
        Some(format!(
            "record {record} of database {} is {}, but {} was acknowledged",
            database + 1,
            in_words(found),
            in_words(acknowledged)
        ))
    }
}

fn in_words(version: Version) -> String {
    version.map_or_else(|| "gone".into(), |version| format!("version {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RecordPlace = (0, 7);

    fn check(told: &[(&str, u64, Version)], found: Version, is_right: bool) {
        let ledger = Ledger::default();
        for (what, transaction, version) in told {
            match *what {
                "tries" => ledger.tries(PLACE, *transaction, *version),
                _ => ledger.keeps(PLACE, *transaction, *version),
            }
        }
        assert_eq!(ledger.finding(PLACE, found).is_none(), is_right, "{told:?} {found:?}");
    }

    /// What was acknowledged must be there; what was begun behind it may be.
    #[test]
    fn an_acknowledged_change_must_be_there_and_a_later_one_may() {
        let kept = [("tries", 1, Some(3)), ("keeps", 1, Some(3))];
        check(&kept, Some(3), true);
        check(&kept, Some(2), false);
        check(&kept, None, false);
        let behind = [kept[0], kept[1], ("tries", 2, None)];
        check(&behind, None, true);
        check(&behind, Some(3), true);
        check(&behind, Some(4), false);
    }

    /// Acknowledgements may come in any order: the later transaction decides.
    #[test]
    fn the_later_transaction_decides_whoever_hears_first() {
        let told = [
            ("tries", 1, Some(1)),
            ("tries", 2, Some(2)),
            ("keeps", 2, Some(2)),
            ("keeps", 1, Some(1)),
        ];
        check(&told, Some(2), true);
        check(&told, Some(1), false);
    }

    /// Of a record whose commits were never acknowledged anything is right.
    #[test]
    fn what_was_never_acknowledged_is_not_claimed() {
        check(&[("tries", 1, Some(1))], None, true);
        check(&[], Some(9), true);
    }
}
