//! The state of a real disk and the moves that starting and finishing share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::RealDiskOptions;
use super::choose::Chosen;
use super::durable::DurableWays;
use super::table::{FileState, Pending, PendingTable};
use crate::arena::{Arena, CHUNK_BYTES, CHUNKS_REGISTERED_MAX, NewChunk};
use crate::net::{Order, WatchTable};
use crate::posix::{
    Chore, ChoreDone, Crew, DeviceRemark, Lanes, OpenRules, Wakeup, do_chore, lockable_memory,
};
use crate::transfer::{Transfer, TransferQueue, Transferred};
use crate::{Answer, Buffer, Clock, Completion, DiskError, FileId, Nanos, Outcome};

/// Workers for extensions.
const EXTEND_THREADS_MAX: usize = 4;

pub(super) struct State {
    pub(super) method: &'static str,
    pub(super) remarks: Vec<String>,
    pub(super) remarked_devices: BTreeSet<(u64, DeviceRemark)>,
    pub(super) choices: Vec<String>,
    pub(super) rules: Arc<OpenRules>,
    pub(super) durable: DurableWays,
    pub(super) queue: Box<dyn TransferQueue>,
    /// Declared after the queue, so that it is dropped after it.
    pub(super) arena: Rc<Arena>,
    registered_bytes_max: usize,
    /// The sockets that the queue watches, if it does.
    pub(super) sockets: Option<Arc<WatchTable>>,
    /// Transfers pushed to the queue and not collected.
    pub(super) in_queue: usize,
    /// Transfers the queue has no room for.
    pub(super) backlog: VecDeque<Transfer>,
    /// Tags pushed since the last flush.
    pub(super) unflushed: Vec<u32>,
    pub(super) names: Lanes,
    pub(super) extensions: Crew<(u32, Chore), ChoreDone>,
    pub(super) pending: PendingTable,
    pub(super) files: BTreeMap<FileId, FileState>,
    pub(super) next_file: u32,
    pub(super) finished: Vec<(Completion, Outcome)>,
    pub(super) transferred: Vec<Transferred>,
    pub(super) chores_done: Vec<ChoreDone>,
    /// How long handing over has taken so far.
    pub(super) inside_kernel_ns: Nanos,
}

impl State {
    /// A disk with nothing open.
    pub(super) fn new(options: &RealDiskOptions, chosen: Chosen, wakeup: &Arc<Wakeup>) -> Self {
        Self {
            method: chosen.method.name(),
            remarks: chosen.remarks,
            remarked_devices: BTreeSet::new(),
            choices: Vec::new(),
            rules: Arc::new(OpenRules {
                caching: options.caching,
                destroy_serials: options.destroy_serials.clone(),
            }),
            durable: DurableWays::new(options.durable_by),
            arena: Rc::default(),
            registered_bytes_max: options.registered_bytes_max,
            sockets: chosen.queue.watches().then(WatchTable::for_ring),
            queue: chosen.queue,
            in_queue: 0,
            backlog: VecDeque::new(),
            unflushed: Vec::new(),
            names: Lanes::new(wakeup.clone()),
            extensions: Crew::new("plimsoll-extend", EXTEND_THREADS_MAX, wakeup.clone(), do_chore),
            pending: PendingTable::default(),
            files: BTreeMap::new(),
            next_file: 0,
            finished: Vec::new(),
            transferred: Vec::new(),
            chores_done: Vec::new(),
            inside_kernel_ns: 0,
        }
    }

    pub(super) fn anything_ready(&mut self) -> bool {
        !self.finished.is_empty()
            || self.queue.ready()
            || self.names.ready()
            || self.extensions.ready()
    }

    pub(super) fn path_of(&self, file: Option<FileId>) -> PathBuf {
        file.and_then(|file| self.files.get(&file))
            .map_or(PathBuf::new(), |state| state.file.path.clone())
    }

    /// Hands everything queued to the kernel, stamped.
    pub(super) fn flush(&mut self, clock: &Clock) {
        self.pass_on_orders();
        if self.unflushed.is_empty() {
            return;
        }
        let now = clock.now();
        for tag in self.unflushed.drain(..) {
            // The second step of a durable write keeps the time of its first.
            self.pending.get_mut(tag).submitted.get_or_insert(now);
        }
        self.queue.flush();
        self.inside_kernel_ns += clock.now() - now;
    }

    /// Hands the queue what is asked of it for sockets; it reaches the kernel with the next look.
    fn pass_on_orders(&mut self) {
        if let Some(sockets) = &self.sockets {
            for order in sockets.take_orders() {
                self.queue.order(order);
            }
        }
    }

    /// Wakes who waits for sockets that became ready.
    pub(super) fn see_sockets(&mut self) {
        if let Some(sockets) = &self.sockets {
            for seen in self.queue.seen() {
                if let Some(fd) = sockets.see(seen) {
                    self.queue.order(Order::Begin(seen.key, fd));
                }
            }
        }
    }

    /// Answers an operation that never reaches the kernel; delivered by the next reap like every
    /// other.
    pub(super) fn refuse(&mut self, pending: Pending, error: DiskError) {
        let now = pending.asked;
        self.finish(pending, Err(error), now);
    }

    pub(super) fn finish(
        &mut self,
        pending: Pending,
        result: Result<Answer, DiskError>,
        completed: Nanos,
    ) {
        let outcome =
            Outcome { result, submitted: pending.submitted.unwrap_or(pending.asked), completed };
        self.finished.push((pending.completion, outcome));
    }

    pub(super) fn push(&mut self, transfer: Transfer) {
        if self.in_queue >= self.queue.capacity() {
            self.backlog.push_back(transfer);
            return;
        }
        self.in_queue += 1;
        self.unflushed.push(transfer.tag);
        self.pending.get_mut(transfer.tag).sent = Some(transfer);
        // SAFETY: the buffer is owned by the pending table and the descriptor by the file table
        // until the tag is collected (a close waits for `in_flight`, and `drop` leaks both rather
        // than free them early); the capacity was just checked.
        unsafe { self.queue.push(transfer) };
    }

    /// Memory for a transfer.
    pub(super) fn allocate(&mut self, length_bytes: usize) -> Buffer {
        let arena = self.arena.clone();
        arena.lend_any(length_bytes, |chunk| self.register(chunk))
    }

    /// Makes a chunk known to the kernel, as far as options, kernel and limits allow.
    fn register(&mut self, chunk: NewChunk) {
        if chunk.index >= CHUNKS_REGISTERED_MAX
            || self.arena.size_bytes() > self.registered_bytes_max
        {
            return;
        }
        // SAFETY: the state holds the arena, and the arena its chunks, longer than the queue.
        match unsafe { self.queue.register(chunk.index as u16, chunk.start.as_ptr(), CHUNK_BYTES) }
        {
            Ok(()) => self.arena.note_registered(chunk),
            Err(libc::EOPNOTSUPP) => {}
            Err(errno) => self.remark(&format!(
                "io_uring keeps {} MiB of registered memory, more is refused (errno {errno}; \
                 lockable memory is \
                 {}): a little more cost per I/O",
                chunk.index * CHUNK_BYTES / (1024 * 1024),
                lockable_memory(),
            )),
        }
    }

    pub(super) fn remark(&mut self, remark: &str) {
        if !self.remarks.iter().any(|said| said == remark) {
            self.remarks.push(remark.to_owned());
        }
    }

    /// Waits for everything under way, or gives up what hangs: then its memory and descriptors are
    /// never used again.
    pub(super) fn end(&mut self, patience_ns: Nanos) {
        self.backlog.clear();
        let patience = Duration::from_nanos(patience_ns);
        let chores_ended = self.names.finish(patience) & self.extensions.finish(patience);
        let transfers_ended = self.queue.finish(patience_ns);
        if chores_ended && transfers_ended {
            self.files.values().for_each(|state| state.file.unlock());
        } else {
            std::mem::forget(std::mem::take(&mut self.pending));
            std::mem::forget(std::mem::take(&mut self.files));
        }
    }
}
