//! The directories of a memory disk: the names of the present, the names that would survive a power
//! cut, and the changes between the two.
//!
//! A change assigns one or two names at once (a rename clears one and sets one) and is stable when
//! every directory it touches has been synced after it completed. A change needs every earlier
//! pending change of the same names: a rename cannot survive the creation it stands on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use super::inode::InodeRef;
use crate::Entry;

/// A pending change of names.
#[derive(Clone)]
pub(crate) struct NameChange {
    pub(crate) sequence: u64,
    pub(crate) names: Vec<(PathBuf, Option<InodeRef>)>,
    unsynced: BTreeSet<PathBuf>,
}

impl NameChange {
    pub(crate) fn touches_any(&self, names: &BTreeSet<PathBuf>) -> bool {
        self.names.iter().any(|(name, _)| names.contains(name))
    }
}

pub(crate) struct Names {
    pub(crate) present: BTreeMap<PathBuf, InodeRef>,
    pub(crate) stable: BTreeMap<PathBuf, InodeRef>,
    pub(crate) pending: Vec<NameChange>,
    pub(crate) directories: BTreeSet<PathBuf>,
    pub(crate) next_sequence: u64,
    tracked: bool,
}

/// A path without root, `.` and `..`: `/a/./b` and `a/b` are the same name.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => {
                plain.pop();
            }
            _ => {}
        }
    }
    plain
}

fn parent_of(name: &Path) -> PathBuf {
    name.parent().map(Path::to_owned).unwrap_or_default()
}

impl Names {
    pub(crate) fn new(tracked: bool) -> Self {
        Self {
            present: BTreeMap::new(),
            stable: BTreeMap::new(),
            pending: Vec::new(),
            directories: BTreeSet::from([PathBuf::new()]),
            next_sequence: 0,
            tracked,
        }
    }

    pub(crate) fn has_parent(&self, name: &Path) -> bool {
        self.directories.contains(&parent_of(name))
    }

    /// Adds a directory and those above it, stable at once.
    pub(crate) fn create_directory(&mut self, name: &Path) {
        self.directories.extend(name.ancestors().map(Path::to_owned));
    }

    /// Changes names in the present; the change is pending until its directories are synced.
    pub(crate) fn change(&mut self, names: Vec<(PathBuf, Option<InodeRef>)>) {
        assign(&mut self.present, &names);
        if self.tracked {
            self.pending.push(NameChange {
                sequence: self.next_sequence,
                unsynced: names.iter().map(|(name, _)| parent_of(name)).collect(),
                names,
            });
            self.next_sequence += 1;
        }
    }

    /// Adds a file that is stable at once.
    pub(crate) fn settle_file(&mut self, name: PathBuf, inode: InodeRef) {
        self.pending.retain(|change| !change.names.iter().any(|(other, _)| *other == name));
        self.stable.insert(name.clone(), inode.clone());
        self.present.insert(name, inode);
    }

    /// Makes every change of names in `directory` with a sequence below `until` stable, and what it
    /// stands on.
    pub(crate) fn settle(&mut self, directory: &Path, until: u64) {
        for change in &mut self.pending {
            if change.sequence < until {
                change.unsynced.remove(directory);
            }
        }
        let mut settled = vec![false; self.pending.len()];
        let mut needed = BTreeSet::new();
        for (index, change) in self.pending.iter().enumerate().rev() {
            if change.unsynced.is_empty() || change.touches_any(&needed) {
                settled[index] = true;
                needed.extend(change.names.iter().map(|(name, _)| name.clone()));
            }
        }
        let mut index = 0;
        let stable = &mut self.stable;
        self.pending.retain(|change| {
            index += 1;
            if settled[index - 1] {
                assign(stable, &change.names);
            }
            !settled[index - 1]
        });
    }

    /// What is directly in a directory, sorted; `None` when there is no such directory.
    pub(crate) fn list(&self, directory: &Path) -> Option<Vec<Entry>> {
        if !self.directories.contains(directory) {
            return None;
        }
        // Paths sort by their components, so all that is below a directory follows it.
        let below = (Bound::Excluded(directory), Bound::Unbounded);
        let is_below = |name: &&PathBuf| name.starts_with(directory);
        let inside = |name: &Path| parent_of(name) == directory;
        let files = self.present.range::<Path, _>(below).take_while(|(name, _)| is_below(name));
        let folders = self.directories.range::<Path, _>(below).take_while(is_below);
        let mut entries: Vec<Entry> = files
            .filter(|(name, _)| inside(name))
            .map(|(name, inode)| entry(name, inode.borrow().length_bytes, false))
            .chain(folders.filter(|name| inside(name)).map(|name| entry(name, 0, true)))
            .collect();
        entries.sort();
        Some(entries)
    }

    /// What a name stands for.
    pub(crate) fn entry(&self, name: &Path) -> Option<Entry> {
        if self.directories.contains(name) {
            return Some(entry(name, 0, true));
        }
        self.present.get(name).map(|inode| entry(name, inode.borrow().length_bytes, false))
    }
}

fn entry(name: &Path, length_bytes: u64, is_directory: bool) -> Entry {
    let last = name.file_name().unwrap_or_default();
    Entry { name: last.to_string_lossy().into_owned(), length_bytes, is_directory }
}

/// Applies a change to a set of names.
pub(crate) fn assign(set: &mut BTreeMap<PathBuf, InodeRef>, names: &[(PathBuf, Option<InodeRef>)]) {
    for (name, inode) in names {
        match inode {
            Some(inode) => set.insert(name.clone(), inode.clone()),
            None => set.remove(name),
        };
    }
}
