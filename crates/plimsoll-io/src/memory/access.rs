//! Direct access to the files of a memory disk, for setting up, looking in, and doing damage. None
//! of it takes time, and whatever it changes is stable at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::chunks::{Chunks, Layout};
use super::faults::FaultRule;
use super::inode::{Inode, InodeRef, SECTOR_BYTES};
use super::names::normal;
use super::trace::TraceEntry;
use super::{Coding, MemoryDisk};
use crate::sparse::Sparse;
use crate::{Durability, Nanos};

impl MemoryDisk {
    /// Adds a directory and those above it, stable at once.
    pub fn create_directory(&self, path: impl AsRef<Path>) {
        let name = normal(path.as_ref());
        self.state.borrow_mut().files.names.create_directory(&name);
    }

    /// Puts a file in place, stable at once, replacing what was there; its directories are made.
    pub fn load(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut chunks = Chunks::new(Layout::plain(self.options.chunk_bytes));
        chunks.write(0, bytes);
        self.place(path.as_ref(), Inode::settled(chunks, bytes.len() as u64));
    }

    /// Puts a file of generated content in place, stable at once. What it is extended by reads as
    /// zero.
    ///
    /// # Panics
    /// When the length is not a whole number of the content's units.
    pub fn load_sparse(&self, path: impl AsRef<Path>, length_bytes: u64, sparse: Sparse) {
        let mut chunks = Chunks::new(Layout::sparse(sparse, length_bytes));
        if self.options.coding == Coding::Ahead {
            chunks.code_ahead();
        }
        self.place(path.as_ref(), Inode::settled(chunks, length_bytes));
    }

    fn place(&self, path: &Path, inode: Inode) {
        let name = normal(path);
        let names = &mut self.state.borrow_mut().files.names;
        if let Some(parent) = name.parent() {
            names.create_directory(parent);
        }
        names.settle_file(name, Rc::new(RefCell::new(inode)));
    }

    fn inode(&self, path: &Path) -> Option<InodeRef> {
        self.state.borrow().files.names.present.get(&normal(path)).cloned()
    }

    /// The present bytes of one file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let inode = self.inode(path.as_ref())?;
        let inode = inode.borrow();
        let mut bytes = vec![0; inode.length_bytes as usize];
        inode.chunks.read(0, &mut bytes);
        Some(bytes)
    }

    /// The present names, sorted, with lengths. Paths have no leading slash.
    pub fn list_files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.borrow();
        let names = state.files.names.present.iter();
        names.map(|(name, inode)| (name.clone(), inode.borrow().length_bytes)).collect()
    }

    /// The present bytes of every file.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = self.list_files().into_iter();
        files.filter_map(|(path, _)| self.bytes(&path).map(|bytes| (path, bytes))).collect()
    }

    /// Bytes of memory that hold file content: what was written, not what is generated or zero, and
    /// what power cuts could bring back.
    pub fn stored_bytes(&self) -> u64 {
        let state = self.state.borrow();
        let inodes = state.files.names.present.values();
        inodes.map(|inode| inode.borrow().stored_bytes()).sum()
    }

    /// Changes stored bytes from `offset` to the end of the file through `change`, as a failing
    /// medium would. Answers whether there is such a file.
    pub fn corrupt(
        &self,
        path: impl AsRef<Path>,
        offset: u64,
        change: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some(inode) = self.inode(path.as_ref()) else {
            return false;
        };
        let mut inode = inode.borrow_mut();
        let old = {
            let mut bytes = vec![0; inode.length_bytes.saturating_sub(offset) as usize];
            inode.chunks.read(offset, &mut bytes);
            bytes
        };
        let mut new = old.clone();
        change(&mut new);
        let keeping = self.state.borrow().files.keeping(Durability::Durable);
        let differs = |index: &usize| old[*index] != new[*index];
        if let Some(first) = (0..old.len()).find(differs) {
            let last = (0..old.len()).rfind(differs).expect("there is a first");
            inode.write(offset + first as u64, &new[first..=last], keeping);
        }
        true
    }

    /// Makes the sectors of a range unreadable until they are written again. Answers whether there
    /// is such a file.
    pub fn lose_sectors(&self, path: impl AsRef<Path>, offset: u64, length_bytes: u64) -> bool {
        let Some(inode) = self.inode(path.as_ref()) else {
            return false;
        };
        let sectors = offset / SECTOR_BYTES..(offset + length_bytes).div_ceil(SECTOR_BYTES);
        inode.borrow_mut().unreadable.extend(sectors);
        true
    }

    /// Adds a fault rule. Rules are asked in the order they were added.
    pub fn inject(&self, rule: FaultRule) {
        self.state.borrow_mut().injector.add(rule);
    }

    /// Removes every fault rule.
    pub fn clear_faults(&self) {
        self.state.borrow_mut().injector.clear();
    }

    /// How often each effect was injected, by its name.
    pub fn injected(&self) -> BTreeMap<&'static str, u64> {
        self.state.borrow().injector.injected().clone()
    }

    /// Bytes of the memory for I/O that was lent and has not come back, by this disk and by every
    /// image of it: whoever finds some after all files and tasks are gone has found a leak. Buffers
    /// of more than 2 MiB come from the heap and are not counted.
    pub fn lent_bytes(&self) -> usize {
        self.arena.lent_bytes()
    }

    /// Takes the device away at a time: whatever completes then or later fails, and nothing is
    /// stored any more.
    pub fn remove_at(&self, then: Nanos) {
        self.state.borrow_mut().gone_at = Some(then);
    }

    /// The last operations, oldest first, as many as the options ask for.
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.state.borrow().trace.entries()
    }
}
