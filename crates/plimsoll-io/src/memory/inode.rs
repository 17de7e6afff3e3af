//! One file: what it reads as now, and what of that would survive a power cut.
//!
//! `chunks` is the present. For every chunk with changes that are not yet stable, `before` keeps
//! the stable version, and `changes` lists those changes in order of completion. The stable file is
//! therefore `chunks` with `before` laid over it, and every crash image is that plus a selection of
//! the changes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::chunks::{Chunks, Layout, Slot};
use crate::Buffer;

/// Medium errors are kept per sector of this size.
pub(crate) const SECTOR_BYTES: u64 = 512;

pub(crate) type InodeRef = Rc<RefCell<Inode>>;

/// A completed change that a power cut may undo.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) sequence: u64,
    pub(crate) kind: ChangeKind,
}

#[derive(Clone)]
pub(crate) enum ChangeKind {
    /// The file was made this long.
    Length(u64),
    /// These bytes were written. Certain writes are durable themselves but were followed or
    /// preceded by volatile ones in the same file, so they must be replayed in order.
    Write { offset: u64, bytes: Rc<[u8]>, certain: bool },
}

pub(crate) struct Inode {
    pub(crate) chunks: Chunks,
    pub(crate) length_bytes: u64,
    pub(crate) stable_length_bytes: u64,
    pub(crate) before: BTreeMap<usize, Slot>,
    pub(crate) changes: VecDeque<Change>,
    pub(crate) next_sequence: u64,
    pub(crate) has_writer: bool,
    /// Sectors that cannot be read until they are written again.
    pub(crate) unreadable: BTreeSet<u64>,
}

/// How a write is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Power cuts are not modelled: nothing is remembered.
    Untracked,
    /// May be lost until the next sync.
    Volatile,
    /// The bytes are stable at once, a longer length only after the next sync: a disk without a
    /// volatile cache.
    Through,
    /// Stable at once.
    Stable,
}

impl Inode {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            chunks: Chunks::new(layout),
            length_bytes: 0,
            stable_length_bytes: 0,
            before: BTreeMap::new(),
            changes: VecDeque::new(),
            next_sequence: 0,
            has_writer: false,
            unreadable: BTreeSet::new(),
        }
    }

    /// A file that is stable as it is.
    pub(crate) fn settled(chunks: Chunks, length_bytes: u64) -> Self {
        Self {
            length_bytes,
            stable_length_bytes: length_bytes,
            ..Self::new(chunks.layout().clone())
        }
        .with_chunks(chunks)
    }

    fn with_chunks(mut self, chunks: Chunks) -> Self {
        self.chunks = chunks;
        self
    }

    fn push(&mut self, kind: ChangeKind) {
        self.changes.push_back(Change { sequence: self.next_sequence, kind });
        self.next_sequence += 1;
    }

    /// Makes the file at least this long.
    pub(crate) fn extend(&mut self, length_bytes: u64, keeping: Keeping) {
        if length_bytes <= self.length_bytes {
            return;
        }
        self.length_bytes = length_bytes;
        match keeping {
            Keeping::Volatile | Keeping::Through => self.push(ChangeKind::Length(length_bytes)),
            Keeping::Stable | Keeping::Untracked => self.stable_length_bytes = length_bytes,
        }
    }

    /// Writes, growing the file where needed.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], keeping: Keeping) {
        self.keep_before(offset, bytes, keeping);
        self.chunks.write(offset, bytes);
        self.note_written(offset, offset + bytes.len() as u64, keeping);
    }

    /// The same from a buffer, which may be kept while it is shared.
    pub(crate) fn write_buffer(&mut self, offset: u64, buffer: &mut Buffer, keeping: Keeping) {
        self.keep_before(offset, buffer, keeping);
        self.chunks.write_buffer(offset, buffer);
        self.note_written(offset, offset + buffer.len() as u64, keeping);
    }

    /// Keeps what a write may have to give back after a power cut.
    fn keep_before(&mut self, offset: u64, bytes: &[u8], keeping: Keeping) {
        if keeping == Keeping::Through {
            self.extend(offset + bytes.len() as u64, keeping);
        }
        let replayed = keeping == Keeping::Volatile || !self.changes.is_empty();
        if keeping == Keeping::Untracked || !replayed {
            return;
        }
        for piece in self.chunks.layout().pieces(offset, bytes.len()) {
            let chunks = &self.chunks;
            self.before.entry(piece.chunk).or_insert_with(|| chunks.slot(piece.chunk));
        }
        self.push(ChangeKind::Write {
            offset,
            bytes: Rc::from(bytes),
            certain: keeping != Keeping::Volatile,
        });
    }

    fn note_written(&mut self, offset: u64, end: u64, keeping: Keeping) {
        self.length_bytes = self.length_bytes.max(end);
        if keeping == Keeping::Stable || keeping == Keeping::Untracked {
            self.stable_length_bytes = self.stable_length_bytes.max(end);
        }
        self.heal(offset, end);
    }

    /// Makes every change with a sequence below `until` stable.
    pub(crate) fn settle(&mut self, until: u64) {
        if until >= self.next_sequence {
            self.changes.clear();
            self.before.clear();
            self.stable_length_bytes = self.length_bytes;
            return;
        }
        while self.changes.front().is_some_and(|change| change.sequence < until) {
            let change = self.changes.pop_front().expect("the front was just seen");
            match change.kind {
                ChangeKind::Length(length) => {
                    self.stable_length_bytes = self.stable_length_bytes.max(length);
                }
                ChangeKind::Write { offset, bytes, .. } => self.settle_write(offset, &bytes),
            }
        }
        self.forget_settled_chunks();
    }

    fn settle_write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        self.stable_length_bytes = self.stable_length_bytes.max(end);
        let layout = self.chunks.layout().clone();
        for piece in layout.pieces(offset, bytes.len()) {
            let slot = self.before.get_mut(&piece.chunk);
            let slot = slot.expect("every listed change has its chunk kept from before");
            layout.write_slot(slot, &piece, &bytes[piece.bytes.clone()]);
        }
    }

    fn forget_settled_chunks(&mut self) {
        let layout = self.chunks.layout();
        let mut touched = BTreeSet::new();
        for change in &self.changes {
            if let ChangeKind::Write { offset, bytes, .. } = &change.kind {
                touched.extend(layout.pieces(*offset, bytes.len()).map(|piece| piece.chunk));
            }
        }
        self.before.retain(|chunk, _| touched.contains(chunk));
    }

    /// The bytes that are certain to survive.
    pub(crate) fn stable_chunks(&self) -> Chunks {
        let mut stable = self.chunks.clone();
        for (chunk, slot) in &self.before {
            stable.set_slot(*chunk, slot.clone());
        }
        stable
    }

    /// Bytes held for the present and for the stable version of what is at risk.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let before = self.before.values().flatten();
        self.chunks.stored_bytes() + before.map(|chunk| chunk.len() as u64).sum::<u64>()
    }

    fn heal(&mut self, offset: u64, end: u64) {
        if !self.unreadable.is_empty() {
            let written = offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
            self.unreadable.retain(|sector| !written.contains(sector));
        }
    }

    /// Whether a medium error lies in the range.
    pub(crate) fn is_unreadable(&self, offset: u64, length_bytes: u64) -> bool {
        let sectors = offset / SECTOR_BYTES..(offset + length_bytes).div_ceil(SECTOR_BYTES);
        !self.unreadable.is_empty() && self.unreadable.range(sectors).next().is_some()
    }
}
