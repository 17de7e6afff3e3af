//! The version store: what rows looked like before transactions that others must not see yet (or no
//! longer must see).
//!
//! The page always holds the newest state of a row. For every change by a transaction that some
//! snapshot may not see, the state before it is kept here. A reader takes back from the page all
//! changes invisible to it. Changes by delta commute, so several transactions may have them on one
//! row at once; any other change excludes all others (first come, the rest get a conflict).
//!
//! What a change and a look cost does not grow with the changes of the row before them, see
//! `versions/chain.rs`.

mod chain;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use crate::btree::Tree;
use crate::edit::RowChange;
use crate::error::{EngineError, Result};
use chain::Chain;

/// A transaction as its versions know it.
#[derive(Debug)]
pub struct TransactionStatus {
    /// Number, unique in the stream since the instance was opened.
    pub id: u64,
    /// Bytes of the versions it keeps.
    pub bytes: Cell<usize>,
    /// What it does is seen by everybody once it commits, also by transactions begun before: it
    /// says nothing that they could not see already.
    pub is_seen_by_all: Cell<bool>,
}

impl TransactionStatus {
    /// A transaction that has changed nothing.
    pub fn new(id: u64) -> TransactionStatus {
        TransactionStatus { id, bytes: Cell::new(0), is_seen_by_all: Cell::new(false) }
    }
}

/// A row: tree and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The tree.
    pub tree: Tree,
    /// Its key.
    pub key: Vec<u8>,
}

/// What was there before a change.
#[derive(Clone, Debug)]
pub enum Before {
    /// No row.
    Absent,
    /// A row with this data.
    Data(Vec<u8>),
    /// The row without these deltas.
    Deltas(Vec<RowChange>),
}

impl Before {
    fn bytes(&self) -> usize {
        match self {
            Before::Data(data) => data.len(),
            Before::Absent => 0,
            // One is told with the version.
            Before::Deltas(deltas) => deltas.len().saturating_sub(1) * size_of::<RowChange>(),
        }
    }

    /// What was before two changes, of which `newer` was the next after this.
    fn join(self, newer: Before) -> Before {
        match (self, newer) {
            (Before::Deltas(mut older), Before::Deltas(newer)) => {
                newer.into_iter().for_each(|delta| add_delta(&mut older, delta));
                Before::Deltas(older)
            }
            (Before::Deltas(older), Before::Data(mut data)) => {
                older.iter().for_each(|delta| delta.unapply_delta(&mut data));
                Before::Data(data)
            }
            (Before::Deltas(_), Before::Absent) => Before::Absent,
            (whole, _) => whole,
        }
    }

    /// Bytes that a version of a row takes: the key is kept with the row, and with the transaction
    /// that changed it.
    fn version_bytes(&self, row: &RowKey) -> usize {
        self.bytes() + 2 * row.key.len() + VERSION_OVERHEAD_BYTES
    }
}

/// Adds to the sum of the same counter, if there is one.
fn add_delta(deltas: &mut Vec<RowChange>, delta: RowChange) {
    let RowChange::Delta { at, width, amount } = delta else { return };
    for sum in deltas.iter_mut() {
        match sum {
            RowChange::Delta { at: same, width: as_wide, amount: sum }
                if (*same, *as_wide) == (at, width) =>
            {
                *sum = sum.wrapping_add(amount);
                return;
            }
            _ => {}
        }
    }
    deltas.push(delta);
}

/// What a row was when its transaction committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A row.
    There,
    /// Deleted: its node is to be removed once nobody sees it.
    Deleted,
}

/// The rows a transaction changed, each once.
pub type ChangedRows = Vec<(RowKey, Ended)>;

/// The rows of a transaction that has committed. One whose version was joined with a newer one is
/// taken out.
struct CommittedRows {
    rows: Vec<Option<(RowKey, Ended)>>,
    left: usize,
}

/// Bytes a version takes beside the data before it and the key of its row.
const VERSION_OVERHEAD_BYTES: usize = 96;

/// See the module text. The map is only looked up, never walked.
pub struct VersionStore {
    chains: HashMap<RowKey, Chain, BuildHasherDefault<DefaultHasher>>,
    bytes: usize,
    bytes_max: usize,
    last_commit: u64,
    snapshots: BTreeMap<u64, usize>,
    committed: BTreeMap<u64, CommittedRows>,
    visited: Cell<u64>,
}

impl VersionStore {
    /// An empty store that holds at most about `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            chains: HashMap::default(),
            bytes: 0,
            bytes_max,
            last_commit: 0,
            snapshots: BTreeMap::new(),
            committed: BTreeMap::new(),
            visited: Cell::new(0),
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Versions that were looked at so far, for tests of how much work that is.
    #[doc(hidden)]
    pub fn visited(&self) -> u64 {
        self.visited.get()
    }

    /// Rows with versions.
    pub fn rows(&self) -> usize {
        self.chains.len()
    }

    /// Takes a snapshot: everything committed so far is visible to it.
    pub fn open_snapshot(&mut self) -> u64 {
        *self.snapshots.entry(self.last_commit).or_insert(0) += 1;
        self.last_commit
    }

    /// Ends a snapshot. Returns rows that are deleted for everybody now.
    pub fn close_snapshot(&mut self, snapshot: u64) -> Vec<RowKey> {
        if let Some(count) = self.snapshots.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                self.snapshots.remove(&snapshot);
            }
        }
        self.trim()
    }

    fn trim(&mut self) -> Vec<RowKey> {
        let oldest = self.snapshots.keys().next().copied().unwrap_or(u64::MAX);
        let mut gone = Vec::new();
        while let Some(entry) = self.committed.first_entry() {
            if *entry.key() > oldest {
                break;
            }
            let (commit, rows) = entry.remove_entry();
            for (row, ended) in rows.rows.into_iter().flatten() {
                if self.forget(&row, |chain| chain.pop_committed(commit).into_iter().collect())
                    && ended == Ended::Deleted
                {
                    gone.push(row);
                }
            }
        }
        gone
    }

    /// Drops versions of one row that `take` takes; true if the row has none left.
    fn forget(&mut self, row: &RowKey, take: impl FnOnce(&mut Chain) -> Vec<Before>) -> bool {
        let Some(chain) = self.chains.get_mut(row) else {
            return false;
        };
        let taken = take(chain);
        self.visited.set(self.visited.get() + taken.len() as u64);
        self.bytes -= taken.iter().map(|before| before.version_bytes(row)).sum::<usize>();
        let is_empty = chain.is_empty();
        if is_empty {
            self.chains.remove(row);
        }
        is_empty
    }

    /// Whether there are versions of rows of any of these trees.
    pub(crate) fn has_versions_in(&self, is_one: impl Fn(&Tree) -> bool) -> bool {
        self.chains.keys().any(|row| is_one(&row.tree))
    }

    /// Whether any snapshot may still need older states of the row.
    pub fn has_versions(&self, row: &RowKey) -> bool {
        self.chains.contains_key(row)
    }

    /// Whether this transaction has changed the row.
    pub fn has_versions_of(&self, row: &RowKey, status: &TransactionStatus) -> bool {
        self.chains.get(row).is_some_and(|chain| chain.has_changes_of(status))
    }

    /// Refuses a change that another transaction excludes. `by_delta` changes go together with
    /// other uncommitted deltas.
    pub fn check_conflict(
        &self,
        row: &RowKey,
        status: &TransactionStatus,
        snapshot: u64,
        by_delta: bool,
    ) -> Result<()> {
        let chain = self.chains.get(row);
        if chain.is_some_and(|chain| chain.conflicts(status, snapshot, by_delta, &self.visited)) {
            return Err(EngineError::WriteConflict);
        }
        Ok(())
    }

    /// What transactions other than `status` may still take back of a counter of the row: how much
    /// of what they have added, and of what they have taken away.
    pub fn may_be_taken_back(
        &self,
        row: &RowKey,
        status: &TransactionStatus,
        counter_at: u32,
    ) -> (i128, i128) {
        let chain = self.chains.get(row);
        chain.map_or((0, 0), |chain| chain.may_be_taken_back(status, counter_at, &self.visited))
    }

    /// Refuses more versions when the store is full, and before that to a transaction that has had
    /// its share: half of the store. So it is told, and not the others that it leaves no room.
    pub fn check_room(&self, status: &TransactionStatus) -> Result<()> {
        let (bytes, bytes_max) = (status.bytes.get(), self.bytes_max / 2);
        if bytes >= bytes_max {
            return Err(EngineError::TransactionTooLarge { bytes, bytes_max });
        }
        if self.bytes < self.bytes_max {
            Ok(())
        } else {
            Err(EngineError::VersionStoreFull { bytes: self.bytes })
        }
    }

    /// Notes what a row was before a change.
    pub fn push(&mut self, row: RowKey, status: Rc<TransactionStatus>, before: Before) {
        let bytes = before.version_bytes(&row);
        self.bytes += bytes;
        status.bytes.set(status.bytes.get() + bytes);
        self.chains.entry(row).or_insert_with(Chain::new).push(status, before);
    }

    /// Takes the newest version of a transaction on a row away, because the change was undone.
    /// True if the row has none left.
    pub fn pop(&mut self, row: &RowKey, status: &TransactionStatus) -> bool {
        let Some(chain) = self.chains.get_mut(row) else {
            return true;
        };
        if let Some(before) = chain.pop(status) {
            let bytes = before.version_bytes(row);
            self.bytes -= bytes;
            status.bytes.set(status.bytes.get().saturating_sub(bytes));
        }
        let empty = chain.is_empty();
        if empty {
            self.chains.remove(row);
        }
        empty
    }

    /// What `status` sees of a row whose page holds `current`.
    pub fn visible(
        &self,
        row: &RowKey,
        current: Option<&[u8]>,
        status: &TransactionStatus,
        snapshot: u64,
    ) -> Option<Vec<u8>> {
        match self.chains.get(row) {
            Some(chain) => chain.visible(current, status, snapshot, &self.visited),
            None => current.map(<[u8]>::to_vec),
        }
    }

    /// Schedules the versions of a transaction that commits for removal. Returns rows that are
    /// deleted for everybody already.
    pub fn commit(&mut self, status: &Rc<TransactionStatus>, rows: ChangedRows) -> Vec<RowKey> {
        self.last_commit += 1;
        if status.is_seen_by_all.get() {
            // What was there before is of interest to no one.
            return self.forget_all(rows, status);
        }
        let commit = self.last_commit;
        for (place, (row, _)) in rows.iter().enumerate() {
            self.commit_row(status, commit, place, row);
        }
        if !rows.is_empty() {
            let left = rows.len();
            let rows = rows.into_iter().map(Some).collect();
            self.committed.insert(commit, CommittedRows { rows, left });
        }
        self.trim()
    }

    /// Joins what the transaction changed of a row, and puts it behind what was committed before.
    fn commit_row(&mut self, status: &TransactionStatus, commit: u64, place: usize, row: &RowKey) {
        let Some(chain) = self.chains.get_mut(row) else { return };
        let changes = chain.take(status);
        self.visited.set(self.visited.get() + changes.len() as u64);
        self.bytes -= changes.iter().map(|before| before.version_bytes(row)).sum::<usize>();
        let Some(before) = changes.into_iter().reduce(Before::join) else { return };
        self.bytes += before.version_bytes(row);
        chain.push_committed(commit, place, before);
        let overhead_bytes = Before::Absent.version_bytes(row);
        chain.join(&self.snapshots, &self.visited, |joined| {
            self.bytes += joined.bytes;
            self.bytes -= joined.bytes_before + overhead_bytes;
            take_out(&mut self.committed, joined.commit, joined.place);
        });
    }

    /// Drops the versions of one active transaction. Returns the rows that it left deleted, and
    /// that are so for everybody now.
    fn forget_all(&mut self, rows: ChangedRows, status: &TransactionStatus) -> Vec<RowKey> {
        let mut gone = Vec::new();
        for (row, ended) in rows {
            if self.forget(&row, |chain| chain.take(status)) && ended == Ended::Deleted {
                gone.push(row);
            }
        }
        gone
    }
}

/// Takes a row out of those of a transaction that has committed.
fn take_out(committed: &mut BTreeMap<u64, CommittedRows>, commit: u64, place: usize) {
    let Some(rows) = committed.get_mut(&commit) else { return };
    rows.rows[place] = None;
    rows.left -= 1;
    if rows.left == 0 {
        committed.remove(&commit);
    }
}
