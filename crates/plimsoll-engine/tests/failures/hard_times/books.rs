//! What every row has been, commit by commit, and whether what was found is one of the states it
//! may be in.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use plimsoll_engine::btree::Tree;

use crate::support::Ledger;

/// What was found, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The row as committed.
    Right,
    /// The row as it was before a later commit.
    Stale,
    /// Nothing that was ever committed.
    Invented,
}

/// What a commit left of a row, and the number of commits from which on that is so.
type Versions = Vec<(usize, Option<Vec<u8>>)>;

#[derive(Default)]
pub struct Books {
    read: usize,
    rows: BTreeMap<Tree, BTreeMap<Vec<u8>, Versions>>,
}

impl Books {
    pub fn of(ledger: &Ledger) -> Books {
        let mut books = Books::default();
        books.catch_up(ledger);
        books
    }

    /// Takes in what was committed since.
    pub fn catch_up(&mut self, ledger: &Ledger) {
        for (index, (_, effects)) in ledger.committed.iter().enumerate().skip(self.read) {
            for (tree, key, after) in effects.iter() {
                let rows = self.rows.entry(*tree).or_default();
                let versions = rows.entry(key.clone()).or_default();
                versions.retain(|(count, _)| *count <= index);
                versions.push((index + 1, after.clone()));
            }
        }
        self.read = ledger.committed.len();
    }

    /// All keys that a tree ever had.
    pub fn keys(&self, tree: Tree) -> impl Iterator<Item = &Vec<u8>> {
        self.rows.get(&tree).into_iter().flat_map(BTreeMap::keys)
    }

    /// Judges a row, where any number of commits in `counts` may be what is there.
    pub fn judge(
        &self,
        tree: Tree,
        key: &[u8],
        found: Option<&[u8]>,
        counts: &RangeInclusive<usize>,
    ) -> Judged {
        let none = Versions::new();
        let versions = self.rows.get(&tree).and_then(|rows| rows.get(key)).unwrap_or(&none);
        let first = versions.iter().rev().find(|(count, _)| count <= counts.start());
        let first = first.and_then(|(_, after)| after.as_deref());
        let later = |count: &usize| counts.contains(count) && count > counts.start();
        let mut allowed = versions.iter().filter(|(count, _)| later(count));
        if found == first || allowed.any(|(_, after)| found == after.as_deref()) {
            return Judged::Right;
        }
        let mut earlier = versions.iter().filter(|(count, _)| count <= counts.start());
        if found.is_none() || earlier.any(|(_, after)| found == after.as_deref()) {
            return Judged::Stale;
        }
        Judged::Invented
    }
}
