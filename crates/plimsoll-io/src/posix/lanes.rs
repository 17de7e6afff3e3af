//! Threads for names: what concerns one directory is done in the order in which it was asked for,
//! what concerns several goes on at once.
//!
//! The order matters where nobody waits for an answer: a file that was dropped is closed before it
//! is opened again. Several lanes matter where a name takes as long as a journey to a server: one
//! thread would make a queue that the storage does not have.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Chore, ChoreDone, Crew, Wakeup, do_chore};

/// Lanes at most; only those that are used have a thread.
const LANES_MAX: u64 = 32;

/// See the module text.
pub(crate) struct Lanes {
    wakeup: Arc<Wakeup>,
    lanes: BTreeMap<u64, Crew<(u32, Chore), ChoreDone>>,
}

impl Lanes {
    /// No lane yet.
    pub(crate) fn new(wakeup: Arc<Wakeup>) -> Lanes {
        Lanes { wakeup, lanes: BTreeMap::new() }
    }

    /// Hands a chore to the lane of its directory.
    pub(crate) fn push(&mut self, tag: u32, chore: Chore) {
        let mut hasher = DefaultHasher::new();
        directory_of(&chore).hash(&mut hasher);
        let lane = hasher.finish() % LANES_MAX;
        let start = || Crew::new("plimsoll-names", 1, self.wakeup.clone(), do_chore);
        self.lanes.entry(lane).or_insert_with(start).push((tag, chore));
    }

    /// Whether results are waiting.
    pub(crate) fn ready(&self) -> bool {
        self.lanes.values().any(Crew::ready)
    }

    /// Moves all waiting results to `into`.
    pub(crate) fn take(&self, into: &mut Vec<ChoreDone>) {
        self.lanes.values().for_each(|lane| lane.take(into));
    }

    /// As [`Crew::finish`], of every lane.
    pub(crate) fn finish(&mut self, patience: Duration) -> bool {
        self.lanes.values_mut().fold(true, |ended, lane| lane.finish(patience) & ended)
    }
}

/// The directory whose names a chore is about.
fn directory_of(chore: &Chore) -> &Path {
    let path = match chore {
        Chore::SyncDirectory(path) | Chore::List(path) => return path,
        Chore::Close(file) | Chore::Extend(file, _) => &file.path,
        Chore::Open { path, .. } | Chore::Rename { to: path, .. } => path,
        Chore::Delete(path)
        | Chore::Stat(path)
        | Chore::MakeDirectory(path)
        | Chore::RemoveDirectory(path) => path,
    };
    path.parent().unwrap_or(path)
}
