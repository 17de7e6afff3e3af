//! Transfers by io_uring, the method with the least cost per I/O. The same ring watches the sockets
//! of the network.
//!
//! Source: io_uring_setup(2), io_uring_enter(2), io_uring_register(2). Wanted is a ring of one
//! issuer with deferred completion work (Linux 6.1), so that completions are processed when this
//! thread asks and never interrupt it; older kernels get a plainer ring, with a remark. A kernel
//! without waiting by timeout (before 5.11) is refused.
//!
//! When io_uring_enter answers EAGAIN, EBUSY, EINTR or ENOMEM it has taken nothing: what was queued
//! stays queued and is handed over again. No transfer that the kernel has taken is ever repeated.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::Nanos;
use crate::arena::CHUNKS_REGISTERED_MAX;
use crate::net::{Order, Seen, WATCHED_EVENTS};
use crate::posix::{Wakeup, errno_of, lockable_memory};
use crate::transfer::{Refusal, Transfer, TransferKind, TransferQueue, Transferred};

/// A ring more shallow than this is worth less than libaio.
const DEPTH_MIN: u32 = 64;
/// How long a kernel without memory is left alone.
const NO_MEMORY_PAUSE: Duration = Duration::from_millis(1);
/// Marks the completion of the poll on the wake-up.
const WAKEUP_TAG: u64 = u64::MAX;
/// Marks the empty request that proves that the ring works.
const PROOF_TAG: u64 = u64::MAX - 1;
/// Marks the answer to an order to watch a socket no more.
const LET_GO_TAG: u64 = u64::MAX - 2;
/// Marks what is seen of a socket, beside its key. Transfers use the lower half of the tag.
const SOCKET_BIT: u64 = 1 << 62;

/// See the module text.
pub(crate) struct UringQueue {
    ring: IoUring,
    wakeup: Arc<Wakeup>,
    /// What the ring has no room for: sockets are not counted in its capacity.
    later: VecDeque<squeue::Entry>,
    seen: Vec<Seen>,
    under_way: usize,
    capacity: usize,
    /// Whether one poll reports every wake-up (Linux 5.13).
    poll_repeats: bool,
    buffers_registrable: bool,
}

impl UringQueue {
    /// Sets up a ring for `depth` transfers; what is less than wanted is added to `remarks`.
    pub(crate) fn open(
        depth: u32,
        wakeup: Arc<Wakeup>,
        remarks: &mut Vec<String>,
    ) -> Result<Self, Refusal> {
        let mut ring = build_ring_within_limits(depth, remarks)?;
        if !(ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop()) {
            return Err(Refusal {
                reason: "the kernel's io_uring is too old (before Linux 5.11)".to_owned(),
                errno: None,
            });
        }
        prove(&mut ring).map_err(|error| Refusal::by_kernel("io_uring_enter", errno_of(&error)))?;
        let registered = ring.submitter().register_buffers_sparse(CHUNKS_REGISTERED_MAX as u32);
        if let Err(error) = &registered {
            remarks.push(format!(
                "io_uring without registered memory: the kernel refuses it (errno {})",
                errno_of(error)
            ));
        }
        let mut queue = Self {
            capacity: ring.params().sq_entries() as usize,
            ring,
            wakeup,
            later: VecDeque::new(),
            seen: Vec::new(),
            under_way: 0,
            poll_repeats: true,
            buffers_registrable: registered.is_ok(),
        };
        queue.watch_wakeup();
        queue.enter();
        Ok(queue)
    }

    fn watch_wakeup(&mut self) {
        let poll = opcode::PollAdd::new(Fd(self.wakeup.fd()), libc::POLLIN as u32)
            .multi(self.poll_repeats)
            .build()
            .user_data(WAKEUP_TAG);
        self.push_entry(&poll);
    }

    fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: whoever made the entry keeps its memory and descriptor until its completion.
        if self.later.is_empty() && unsafe { self.ring.submission().push(entry) }.is_ok() {
            return;
        }
        self.later.push_back(entry.clone());
        self.enter();
    }

    /// Hands over what is queued and lets the kernel finish completion work that waits for this
    /// thread.
    fn enter(&mut self) {
        loop {
            if let Err(error) = self.ring.submit() {
                tolerate(&error);
            }
            if !self.refill() {
                return;
            }
        }
    }

    /// Queues what had no room; answers whether there was anything and room for it.
    fn refill(&mut self) -> bool {
        let mut submission = self.ring.submission();
        let before = self.later.len();
        while let Some(entry) = self.later.front() {
            // SAFETY: as in `push_entry`.
            if unsafe { submission.push(entry) }.is_err() {
                break;
            }
            self.later.pop_front();
        }
        self.later.len() < before
    }

    fn work_waits(&mut self) -> bool {
        let submission = self.ring.submission();
        submission.taskrun()
            || submission.cq_overflow()
            || !submission.is_empty()
            || !self.later.is_empty()
    }

    fn wakeup_seen(&mut self, result: i32, flags: u32) {
        self.wakeup.drain();
        if result < 0 {
            self.poll_repeats = false;
        }
        if !cqueue::more(flags) {
            self.watch_wakeup();
        }
    }
}

fn entry_of(transfer: &Transfer) -> squeue::Entry {
    let (fd, offset) = (Fd(transfer.fd), transfer.offset);
    let (start, length) = (transfer.memory.start, transfer.memory.length_bytes);
    let durable_flag = match transfer.kind {
        TransferKind::WriteDurable => libc::RWF_DSYNC,
        _ => 0,
    };
    match (transfer.kind, transfer.memory.registered_index) {
        (TransferKind::Read, Some(index)) => {
            opcode::ReadFixed::new(fd, start, length, index).offset(offset).build()
        }
        (TransferKind::Read, None) => opcode::Read::new(fd, start, length).offset(offset).build(),
        (TransferKind::Write | TransferKind::WriteDurable, Some(index)) => {
            opcode::WriteFixed::new(fd, start, length, index)
                .offset(offset)
                .rw_flags(durable_flag)
                .build()
        }
        (TransferKind::Write | TransferKind::WriteDurable, None) => {
            opcode::Write::new(fd, start, length).offset(offset).rw_flags(durable_flag).build()
        }
        (TransferKind::SyncContent, _) => {
            opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
        }
        (TransferKind::SyncEverything, _) => opcode::Fsync::new(fd).build(),
    }
}

impl TransferQueue for UringQueue {
    fn capacity(&self) -> usize {
        self.capacity
    }

    unsafe fn push(&mut self, transfer: Transfer) {
        self.under_way += 1;
        self.push_entry(&entry_of(&transfer).user_data(u64::from(transfer.tag)));
    }

    fn flush(&mut self) {
        self.enter();
    }

    fn ready(&mut self) -> bool {
        self.work_waits() || !self.ring.completion().is_empty()
    }

    fn collect(&mut self, done: &mut Vec<Transferred>) {
        if self.work_waits() {
            self.enter();
        }
        let mut wakeup_flags = None;
        for completion in self.ring.completion() {
            match completion.user_data() {
                WAKEUP_TAG => wakeup_flags = Some((completion.result(), completion.flags())),
                LET_GO_TAG => {}
                tag if tag & SOCKET_BIT != 0 => self.seen.push(Seen {
                    key: tag & !SOCKET_BIT,
                    result: completion.result(),
                    goes_on: cqueue::more(completion.flags()),
                }),
                tag => {
                    self.under_way -= 1;
                    done.push(Transferred { tag: tag as u32, result: completion.result() });
                }
            }
        }
        if let Some((result, flags)) = wakeup_flags {
            self.wakeup_seen(result, flags);
        }
    }

    fn wait(&mut self, timeout_ns: Option<Nanos>) {
        if !self.later.is_empty() {
            // Room is made by collecting, so nobody sleeps now.
            return self.enter();
        }
        let result = match timeout_ns {
            None => self.ring.submit_and_wait(1),
            Some(timeout_ns) => {
                let timeout = Timespec::from(Duration::from_nanos(timeout_ns));
                let arguments = SubmitArgs::new().timespec(&timeout);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        if let Err(error) = result {
            tolerate(&error);
        }
    }

    unsafe fn register(
        &mut self,
        index: u16,
        start: *mut u8,
        length_bytes: usize,
    ) -> Result<(), i32> {
        if !self.buffers_registrable {
            return Err(libc::EOPNOTSUPP);
        }
        let memory = libc::iovec { iov_base: start.cast(), iov_len: length_bytes };
        // SAFETY: the caller keeps the memory as long as this queue lives.
        unsafe { self.ring.submitter().register_buffers_update(u32::from(index), &[memory], None) }
            .map_err(|error| {
                self.buffers_registrable = false;
                errno_of(&error)
            })
    }

    /// One poll that reports every change is known since Linux 5.13, and so is what this asks for.
    fn watches(&self) -> bool {
        self.ring.params().is_feature_resource_tagging()
    }

    fn order(&mut self, order: Order) {
        let entry = match order {
            Order::Begin(key, fd) => {
                opcode::PollAdd::new(Fd(fd), WATCHED_EVENTS | libc::EPOLLET as u32)
                    .multi(true)
                    .build()
                    .user_data(SOCKET_BIT | key)
            }
            // Removing a poll fails while an event of it is on its way; cancelling does not.
            Order::End(key) => {
                opcode::AsyncCancel::new(SOCKET_BIT | key).build().user_data(LET_GO_TAG)
            }
        };
        self.push_entry(&entry);
    }

    fn seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    fn finish(&mut self, patience_ns: Nanos) -> bool {
        let deadline = Instant::now() + Duration::from_nanos(patience_ns);
        let mut done = Vec::new();
        loop {
            self.collect(&mut done);
            done.clear();
            let left = deadline.saturating_duration_since(Instant::now());
            if self.under_way == 0 || left.is_zero() {
                return self.under_way == 0;
            }
            self.wait(Some(left.as_nanos() as Nanos));
        }
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        // Closing a ring leaves the release of its memory to a kernel thread; doing it here lets a
        // file system be unmounted directly after. With a transfer that hangs it would hang too.
        if self.under_way == 0 && self.buffers_registrable {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

/// The deepest ring up to `depth` for which memory may be locked: recent kernels count a ring's own
/// memory too.
fn build_ring_within_limits(depth: u32, remarks: &mut Vec<String>) -> Result<IoUring, Refusal> {
    let mut smaller = depth;
    loop {
        match build_ring(smaller, remarks) {
            Err(refusal) if refusal.errno == Some(libc::ENOMEM) && smaller / 2 >= DEPTH_MIN => {
                smaller /= 2
            }
            Ok(ring) if smaller < depth => {
                remarks.push(format!(
                    "io_uring holds {smaller} transfers at once instead of {depth}: lockable \
                     memory is {}",
                    lockable_memory()
                ));
                return Ok(ring);
            }
            result => return result,
        }
    }
}

/// The best ring this kernel has.
fn build_ring(depth: u32, remarks: &mut Vec<String>) -> Result<IoUring, Refusal> {
    let mut newest = IoUring::builder();
    newest.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
    let refused = match newest.setup_clamp().dontfork().build(depth) {
        Ok(ring) => return Ok(ring),
        Err(error) => error,
    };
    if errno_of(&refused) == libc::EINVAL {
        let mut cooperative = IoUring::builder();
        cooperative.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        for (mut builder, lacking) in [
            (cooperative, "deferred completion work (before Linux 6.1)"),
            (IoUring::builder(), "cooperative completion work (before Linux 5.19)"),
        ] {
            if let Ok(ring) = builder.setup_clamp().dontfork().build(depth) {
                remarks.push(format!("io_uring without {lacking}: more cost per I/O"));
                return Ok(ring);
            }
        }
    }
    Err(Refusal::by_kernel("io_uring_setup", errno_of(&refused)))
}

/// Some sandboxes allow a ring to be made but not to be used.
fn prove(ring: &mut IoUring) -> io::Result<()> {
    let nothing = opcode::Nop::new().build().user_data(PROOF_TAG);
    // SAFETY: the request uses no memory.
    unsafe { ring.submission().push(&nothing) }.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    match ring.completion().next() {
        Some(completion) if completion.user_data() == PROOF_TAG && completion.result() == 0 => {
            Ok(())
        }
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// Lets pass what leaves the queued requests queued; anything else is a bug of this file.
fn tolerate(error: &io::Error) {
    match errno_of(error) {
        libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY => {}
        // The host is short of memory: asking again at once would only take the processor from
        // whoever gives some back.
        libc::ENOMEM | libc::ENOBUFS => std::thread::sleep(NO_MEMORY_PAUSE),
        errno => panic!("io_uring_enter refuses our requests: errno {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why: a host that is short of memory for a moment ended the run with a panic. What is queued
    /// stays queued.
    #[test]
    fn a_kernel_without_memory_is_asked_again() {
        for errno in [libc::ENOMEM, libc::ENOBUFS, libc::EAGAIN, libc::EBUSY, libc::EINTR] {
            tolerate(&io::Error::from_raw_os_error(errno));
        }
    }
}
