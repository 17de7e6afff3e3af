//! What a real disk remembers: operations under way, by tag, and open files, by number.

use std::sync::Arc;

use crate::posix::OpenFile;
use crate::transfer::Transfer;
use crate::{Buffer, Completion, FileId, Nanos};

/// What is left to do for an operation when its transfer comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A transfer or chore that is the whole operation.
    Whole,
    /// A durable write by flag, which may still turn out to be refused.
    DurableWrite,
    /// The write of a durable write whose sync follows.
    WriteBeforeSync,
    /// The sync of a durable write.
    SyncAfterWrite,
    /// A file sync whose success makes the length durable.
    SyncFile,
    /// An extension whose success makes the length volatile.
    Extend,
}

/// An operation under way.
pub(super) struct Pending {
    pub completion: Completion,
    pub doing: &'static str,
    pub stage: Stage,
    pub file: Option<FileId>,
    pub buffer: Option<Buffer>,
    pub offset: u64,
    pub length_bytes: u32,
    pub asked: Nanos,
    /// When it was handed over, if it was.
    pub submitted: Option<Nanos>,
    /// Its transfer as the kernel has it, to be made again when a signal interrupts it.
    pub sent: Option<Transfer>,
}

/// Operations under way by tag; freed tags are used again.
#[derive(Default)]
pub(super) struct PendingTable {
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl PendingTable {
    pub(super) fn insert(&mut self, pending: Pending) -> u32 {
        match self.free.pop() {
            Some(tag) => {
                self.slots[tag as usize] = Some(pending);
                tag
            }
            None => {
                self.slots.push(Some(pending));
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub(super) fn get_mut(&mut self, tag: u32) -> &mut Pending {
        self.slots[tag as usize].as_mut().expect("a tag under way has its operation")
    }

    pub(super) fn remove(&mut self, tag: u32) -> Pending {
        let pending = self.slots[tag as usize].take().expect("a tag under way has its operation");
        self.free.push(tag);
        pending
    }
}

/// An open file.
pub(super) struct FileState {
    pub file: Arc<OpenFile>,
    pub in_flight: u32,
    /// Set until a sync started after the change has succeeded.
    pub length_changed: bool,
    /// The close that waits for the operations in flight.
    pub closing_tag: Option<u32>,
}
