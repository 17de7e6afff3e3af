//! The version store: what rows looked like before transactions that others must not see yet (or no
//! longer must see).
//!
//! The page always holds the newest state of a row. For every change by a transaction that some
//! snapshot may not see, the state before it is kept here, newest last. A reader walks back from
//! the page over all changes invisible to it. Changes by delta commute, so several transactions may
//! have them on one row at once; any other change excludes all others (first come, the rest get a
//! conflict).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use crate::btree::Tree;
use crate::edit::RowChange;
use crate::error::{EngineError, Result};

/// A transaction as its versions know it.
#[derive(Debug)]
pub struct TransactionStatus {
    /// Number, unique in the stream since the instance was opened.
    pub id: u64,
    /// When it committed, in the order of commits; `None` while active.
    pub committed: Cell<Option<u64>>,
    /// Bytes of the versions it keeps.
    pub bytes: Cell<usize>,
    /// What it does is seen by everybody once it commits, also by transactions begun before: it
    /// says nothing that they could not see already.
    pub is_seen_by_all: Cell<bool>,
}

impl TransactionStatus {
    /// A transaction that has changed nothing.
    pub fn new(id: u64) -> TransactionStatus {
        TransactionStatus {
            id,
            committed: Cell::new(None),
            bytes: Cell::new(0),
            is_seen_by_all: Cell::new(false),
        }
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
    /// The row without this delta.
    Delta(RowChange),
}

impl Before {
    fn bytes(&self) -> usize {
        match self {
            Before::Data(data) => data.len(),
            Before::Absent | Before::Delta(_) => 0,
        }
    }

    /// Bytes that a version of a row takes: the key is kept with the row, and with the transaction
    /// that changed it.
    fn version_bytes(&self, row: &RowKey) -> usize {
        self.bytes() + 2 * row.key.len() + VERSION_OVERHEAD_BYTES
    }
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

struct Version {
    status: Rc<TransactionStatus>,
    before: Before,
}

/// Bytes a version takes beside the data before it and the key of its row.
const VERSION_OVERHEAD_BYTES: usize = 96;

/// See the module text. The map is only looked up, never walked.
pub struct VersionStore {
    chains: HashMap<RowKey, Vec<Version>, BuildHasherDefault<DefaultHasher>>,
    bytes: usize,
    bytes_max: usize,
    last_commit: u64,
    snapshots: BTreeMap<u64, usize>,
    committed: VecDeque<(u64, Rc<TransactionStatus>, ChangedRows)>,
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
            committed: VecDeque::new(),
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes
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
        while self.committed.front().is_some_and(|(committed, _, _)| *committed <= oldest) {
            let (_, status, rows) = self.committed.pop_front().expect("there is a front");
            gone.extend(self.forget_all(rows, &status));
        }
        gone
    }

    /// Drops the versions of one transaction on one row; true if the row has none left.
    fn forget(&mut self, row: &RowKey, status: &Rc<TransactionStatus>) -> bool {
        let Some(chain) = self.chains.get_mut(row) else {
            return false;
        };
        let mut freed_bytes = 0;
        chain.retain(|version| {
            let keep = !Rc::ptr_eq(&version.status, status);
            if !keep {
                freed_bytes += version.before.version_bytes(row);
            }
            keep
        });
        self.bytes -= freed_bytes;
        let empty = chain.is_empty();
        if empty {
            self.chains.remove(row);
        }
        empty
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
        self.chains
            .get(row)
            .is_some_and(|chain| chain.iter().any(|version| version.status.id == status.id))
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
        let Some(chain) = self.chains.get(row) else {
            return Ok(());
        };
        let invisible =
            chain.iter().filter(|version| !is_visible(&version.status, status, snapshot));
        for version in invisible {
            if !(by_delta && matches!(version.before, Before::Delta(_))) {
                return Err(EngineError::WriteConflict);
            }
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
        let (mut added, mut taken_away) = (0, 0);
        let chain = self.chains.get(row).map_or(&[][..], Vec::as_slice);
        let is_open = |of: &TransactionStatus| of.id != status.id && of.committed.get().is_none();
        for version in chain.iter().filter(|version| is_open(&version.status)) {
            match version.before {
                Before::Delta(RowChange::Delta { at, amount, .. }) if at == counter_at => {
                    added += i128::from(amount.max(0));
                    taken_away -= i128::from(amount.min(0));
                }
                _ => {}
            }
        }
        (added, taken_away)
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
        self.chains.entry(row).or_default().push(Version { status, before });
    }

    /// Takes the newest version of a transaction on a row away, because the change was undone.
    /// True if the row has none left.
    pub fn pop(&mut self, row: &RowKey, status: &TransactionStatus) -> bool {
        let Some(chain) = self.chains.get_mut(row) else {
            return true;
        };
        if let Some(index) = chain.iter().rposition(|version| version.status.id == status.id) {
            let version = chain.remove(index);
            let bytes = version.before.version_bytes(row);
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
        let mut state = current.map(<[u8]>::to_vec);
        let Some(chain) = self.chains.get(row) else {
            return state;
        };
        for version in
            chain.iter().rev().filter(|version| !is_visible(&version.status, status, snapshot))
        {
            match &version.before {
                Before::Absent => state = None,
                Before::Data(data) => state = Some(data.clone()),
                Before::Delta(delta) => {
                    if let Some(data) = &mut state {
                        delta.unapply_delta(data);
                    }
                }
            }
        }
        state
    }

    /// Stamps a transaction committed and schedules its versions for removal. Returns rows that are
    /// deleted for everybody already.
    pub fn commit(&mut self, status: &Rc<TransactionStatus>, rows: ChangedRows) -> Vec<RowKey> {
        self.last_commit += 1;
        status.committed.set(Some(self.last_commit));
        if status.is_seen_by_all.get() {
            // What was there before is of interest to nobody.
            return self.forget_all(rows, status);
        }
        self.committed.push_back((self.last_commit, status.clone(), rows));
        self.trim()
    }

    /// Drops the versions of one transaction. Returns the rows that it left deleted, and that are
    /// so for everybody now.
    fn forget_all(&mut self, rows: ChangedRows, status: &Rc<TransactionStatus>) -> Vec<RowKey> {
        let mut gone = Vec::new();
        for (row, ended) in rows {
            if self.forget(&row, status) && ended == Ended::Deleted {
                gone.push(row);
            }
        }
        gone
    }
}

fn is_visible(of: &TransactionStatus, to: &TransactionStatus, snapshot: u64) -> bool {
    of.id == to.id || of.committed.get().is_some_and(|committed| committed <= snapshot)
}
