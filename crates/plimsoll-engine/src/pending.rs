//! Trees whose fate hangs on a transaction, and those that are to be released.
//!
//! A tree is made, and its pages are given back, in steps that no transaction undoes: other
//! trees of its parent go on taking space meanwhile. So the log notes on the tree's root page which
//! transaction makes or drops it (`Edit::MadeBy`, `Edit::DroppedBy`), in the same record that makes
//! it. A tree that was made is released unless its transaction commits; one that was dropped is
//! released once that has committed. Until it is, the checkpoint does not pass the note, so whoever
//! opens the database after a crash finds it and goes on.
//!
//! The running instance and redo keep the same list. A note is logged again by whoever takes long,
//! so that the checkpoint can follow. A note counts in the life of the instance that logged it:
//! transactions of another may have the same numbers, and what was not committed by then never is.

use std::collections::{BTreeMap, BTreeSet};

use crate::PageNumber;
use crate::btree::Tree;
use crate::edit::Edit;
use crate::log::Lsn;
use crate::page::page_flags;

/// What becomes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stays if this transaction commits.
    MadeBy(u64),
    /// It goes if this transaction commits.
    DroppedBy(u64),
    /// It goes.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    object: u32,
    fate: Fate,
    /// Where the log tells of it.
    since: Lsn,
}

/// A tree that is to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doomed {
    pub(crate) database: u8,
    pub(crate) root: PageNumber,
    pub(crate) object: u32,
}

/// See the module text.
#[derive(Default)]
pub(crate) struct PendingTrees {
    /// By database and root page.
    trees: BTreeMap<(u8, PageNumber), Pending>,
    /// Database, root page and object of trees that went: object numbers of tables are not used
    /// again, so these never come back.
    gone: BTreeSet<(u8, PageNumber, u32)>,
    /// Notes that count no longer, from where, and how far the log must be durable for that: a
    /// power cut that takes the record which settled a note leaves the note itself to go by.
    settled: Vec<(Lsn, Lsn)>,
}

impl PendingTrees {
    /// Notes what the edits of a page say about the tree whose root it is, in a record from `at` to
    /// `end`.
    pub(crate) fn note(
        &mut self,
        database: u8,
        page: PageNumber,
        edits: &[Edit],
        at: Lsn,
        end: Lsn,
    ) {
        for edit in edits {
            let (object, fate) = match edit {
                Edit::MadeBy { transaction, object } => (*object, Fate::MadeBy(*transaction)),
                Edit::DroppedBy { transaction, object } => (*object, Fate::DroppedBy(*transaction)),
                Edit::Format { object, flags, .. } => {
                    self.note_made_anew(database, page, *object, *flags, end);
                    continue;
                }
                _ => continue,
            };
            let since = at;
            self.gone.remove(&(database, page, object));
            let before = self.trees.insert((database, page), Pending { object, fate, since });
            self.settled.extend(before.map(|before| (before.since, end)));
        }
    }

    /// A page is the root of a tree no longer once it is made again as anything else.
    fn note_made_anew(
        &mut self,
        database: u8,
        page: PageNumber,
        object: u32,
        flags: u32,
        end: Lsn,
    ) {
        let is_still_there =
            |pending: &mut Pending| pending.object == object && flags & page_flags::ROOT != 0;
        if let Some(pending) = self.trees.get_mut(&(database, page))
            && !is_still_there(pending)
        {
            let object = pending.object;
            self.settled.push((pending.since, end));
            self.trees.remove(&(database, page));
            self.gone.insert((database, page, object));
        }
    }

    /// The transaction has ended, which the log says before `end`.
    pub(crate) fn end(&mut self, transaction: u64, is_committed: bool, end: Lsn) {
        self.decide(|by| (by == transaction).then_some(is_committed), end);
    }

    /// No transaction but those that ended has committed: a later life has begun, which the log
    /// says before `end`. Transactions of that may have the same numbers.
    pub(crate) fn end_all_uncommitted(&mut self, end: Lsn) {
        self.decide(|_| Some(false), end);
    }

    fn decide(&mut self, is_committed: impl Fn(u64) -> Option<bool>, end: Lsn) {
        let (gone, settled) = (&mut self.gone, &mut self.settled);
        self.trees.retain(|(database, root), pending| {
            let is_released = match pending.fate {
                Fate::MadeBy(by) => is_committed(by).map(|committed| !committed),
                Fate::DroppedBy(by) => is_committed(by),
                Fate::Released => None,
            };
            if is_released == Some(true) {
                pending.fate = Fate::Released;
                gone.insert((*database, *root, pending.object));
            }
            if is_released == Some(false) {
                settled.push((pending.since, end));
            }
            is_released != Some(false)
        });
    }

    /// The next tree to be released: the trees of a table before the table, which they are a part
    /// of. Their objects have higher numbers.
    pub(crate) fn next_doomed(&self) -> Option<Doomed> {
        let doomed = self.trees.iter().filter(|(_, tree)| tree.fate == Fate::Released);
        let next = doomed.max_by_key(|((database, root), tree)| (*database, tree.object, *root));
        next.map(|((database, root), tree)| Doomed {
            database: *database,
            root: *root,
            object: tree.object,
        })
    }

    /// The tree has been released, which the log says before `end`.
    pub(crate) fn forget(&mut self, doomed: Doomed, end: Lsn) {
        let released = self.trees.remove(&(doomed.database, doomed.root));
        self.settled.extend(released.map(|tree| (tree.since, end)));
    }

    /// Whether a tree went, or is about to.
    pub(crate) fn is_gone(&self, tree: &Tree) -> bool {
        self.gone.contains(&(tree.database, tree.root, tree.object))
    }

    /// Where the log begins that tells of all these trees, with the log `durable` so far.
    pub(crate) fn oldest(&mut self, durable: Lsn) -> Option<Lsn> {
        self.settled.retain(|(_, end)| *end > durable);
        let settled = self.settled.iter().map(|(since, _)| *since);
        self.trees.values().map(|tree| tree.since).chain(settled).min()
    }

    /// The highest object of these trees of a database.
    pub(crate) fn object_max(&self, database: u8) -> u32 {
        let trees = self.trees.iter().filter(|((of, _), _)| *of == database);
        trees.map(|(_, tree)| tree.object).max().unwrap_or(0)
    }

    /// The highest transaction that a tree hangs on.
    pub(crate) fn transaction_max(&self) -> u64 {
        let transactions = self.trees.values().map(|tree| match tree.fate {
            Fate::MadeBy(by) | Fate::DroppedBy(by) => by,
            Fate::Released => 0,
        });
        transactions.max().unwrap_or(0)
    }
}
