//! The ledger of a run as the history of each row. Every moment of a run is audited against the
//! same history: what a row was after so many commits is looked up, where a ledger would have to be
//! gone through from its beginning for each cut.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::instance::Instance;

use crate::moments::Promises;
use crate::support::*;

/// What one commit made of a row.
struct Version {
    /// The number of the commit, from 0.
    commit: usize,
    effects: Rc<Effects>,
    index: usize,
}

impl Version {
    fn data(&self) -> Option<&[u8]> {
        self.effects[self.index].2.as_deref()
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<Version>>;

/// See the module text.
#[derive(Default)]
pub struct History {
    trees: BTreeMap<Tree, Rows>,
    /// The number of the commit with each serial number.
    numbers: BTreeMap<u64, usize>,
    /// How many commits have to be there when the first so many acknowledgements have been given.
    needed: Vec<usize>,
}

impl History {
    /// Of everything a ledger holds.
    pub fn of(ledger: &Ledger) -> History {
        let mut history = History::default();
        for (commit, (serial, effects)) in ledger.committed.iter().enumerate() {
            history.numbers.insert(*serial, commit);
            for (index, (tree, key, _)) in effects.iter().enumerate() {
                let rows = history.trees.entry(*tree).or_default();
                let version = Version { commit, effects: effects.clone(), index };
                match rows.get_mut(key) {
                    Some(versions) => versions.push(version),
                    None => drop(rows.insert(key.clone(), vec![version])),
                }
            }
        }
        history.needed.push(0);
        for serial in &ledger.acknowledged {
            let before = *history.needed.last().expect("one was just pushed");
            history.needed.push(before.max(history.numbers[serial] + 1));
        }
        history
    }

    /// The rows of a tree after the first `commits`.
    pub fn rows(&self, tree: Tree, commits: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let rows = self.trees.get(&tree).into_iter().flatten();
        rows.filter_map(move |(key, versions)| {
            let count = versions.partition_point(|version| version.commit < commits);
            let latest = versions[..count].last()?;
            Some((&key[..], latest.data()?))
        })
    }

    /// How many commits are there, by their serial numbers: the first so many, all that were
    /// acknowledged, none that had not begun.
    async fn survivors(&self, instance: &Instance, field: &Field, promises: &Promises) -> usize {
        let transaction = instance.begin();
        let mut cursor =
            Cursor::new(&transaction, field.serials, KeyRange::all(), Direction::Forward);
        let (mut survived, mut end) = (0, 0);
        while let Some((key, _)) = cursor.next().await.expect("a sound tree") {
            let serial = u64::from_be_bytes(key.try_into().expect("a serial number"));
            let number = self.numbers.get(&serial).copied();
            let number = number.unwrap_or_else(|| panic!("commit {serial} was never made"));
            (survived, end) = (survived + 1, end.max(number + 1));
        }
        assert_eq!(survived, end, "commits survive from the first on without a gap");
        let (begun, needed) = (promises.committed, self.needed[promises.acknowledged]);
        assert!(survived <= begun, "{survived} commits are there, {begun} had begun");
        assert!(survived >= needed, "{survived} commits are there, {needed} were acknowledged");
        survived
    }

    /// Compares what an instance holds with what may be there after a crash: every acknowledged
    /// commit, and exactly the effects of an unbroken run of commits from the first on. Answers how
    /// many.
    pub async fn audit(&self, instance: &Instance, field: &Field, promises: &Promises) -> usize {
        let survived = self.survivors(instance, field, promises).await;
        for tree in field.data.iter().chain([&field.serials]) {
            let transaction = instance.begin();
            let mut cursor = Cursor::new(&transaction, *tree, KeyRange::all(), Direction::Forward);
            let mut expected = self.rows(*tree, survived);
            loop {
                let found = cursor.next().await.expect("a sound tree");
                let wanted = expected.next();
                let is_same = match (&found, wanted) {
                    (Some((key, data)), Some(wanted)) => (&key[..], &data[..]) == wanted,
                    (None, None) => break,
                    _ => false,
                };
                assert!(is_same, "{}", self.story(*tree, found.as_ref(), wanted, survived));
            }
        }
        survived
    }

    /// What is known of the first row that differs, or of the two.
    fn story(
        &self,
        tree: Tree,
        found: Option<&(Vec<u8>, Vec<u8>)>,
        wanted: Option<(&[u8], &[u8])>,
        survived: usize,
    ) -> String {
        let mut story = format!("{tree:?} after {survived} commits:");
        let found_key = found.map(|(key, data)| ("found", &key[..], data.len()));
        let wanted_key = wanted.map(|(key, data)| ("expected", key, data.len()));
        for (what, key, bytes) in [found_key, wanted_key].into_iter().flatten() {
            story += &format!(" {what} row {} of {bytes} bytes;", String::from_utf8_lossy(key));
            let versions = self.trees.get(&tree).and_then(|rows| rows.get(key));
            for version in versions.into_iter().flatten() {
                let (commit, data) = (version.commit, version.data());
                story += &format!(" commit {commit} left {:?};", data.map(<[u8]>::len));
            }
        }
        story
    }
}
