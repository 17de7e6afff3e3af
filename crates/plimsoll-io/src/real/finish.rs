//! The way out: results become answers or errors, durable writes take their second step, closes
//! that waited go on.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::durable::Way;
use super::state::State;
use super::table::{FileState, Pending, Stage};
use crate::posix::{ChoreAnswer, ChoreDone, OpenFile};
use crate::transfer::{Memory, Transfer, TransferKind, Transferred};
use crate::{Answer, Clock, DiskError, DiskErrorKind, FileId, Nanos, Opened};

/// Said once, when the kernel refuses RWF_DSYNC.
const DSYNC_REFUSED: &str =
    "the kernel refuses RWF_DSYNC: a durable write is a write followed by fdatasync";

impl State {
    /// Takes in everything that has finished.
    pub(super) fn collect(&mut self, clock: &Clock) {
        let mut transferred = std::mem::take(&mut self.transferred);
        let mut chores_done = std::mem::take(&mut self.chores_done);
        if self.queue.ready() {
            self.queue.collect(&mut transferred);
            self.see_sockets();
        }
        self.names.take(&mut chores_done);
        self.extensions.take(&mut chores_done);
        let now = clock.now();
        self.in_queue -= transferred.len();
        for done in transferred.drain(..) {
            self.transfer_done(done, now);
        }
        for done in chores_done.drain(..) {
            self.chore_done(done, now);
        }
        self.transferred = transferred;
        self.chores_done = chores_done;
        while self.in_queue < self.queue.capacity()
            && let Some(transfer) = self.backlog.pop_front()
        {
            self.push(transfer);
        }
    }

    fn transfer_done(&mut self, done: Transferred, now: Nanos) {
        // A signal is nothing the storage did, and nothing was transferred. The time goes on from
        // the first attempt.
        if done.result == -libc::EINTR
            && let Some(transfer) = self.pending.get_mut(done.tag).sent
        {
            return self.push(transfer);
        }
        if self.continue_durable_write(done) {
            return;
        }
        let mut pending = self.pending.remove(done.tag);
        let file = pending.file.expect("every transfer has a file");
        let result = match done.result {
            errno if errno < 0 => {
                Err(DiskError::from_errno(-errno, pending.doing, self.path_of(Some(file))))
            }
            _ if pending.stage == Stage::SyncAfterWrite => Ok(()),
            bytes if bytes as u32 != pending.length_bytes => {
                Err(DiskError::new(DiskErrorKind::Short, pending.doing, self.path_of(Some(file))))
            }
            _ => Ok(()),
        };
        if result.is_ok() {
            self.note_durable(&pending, file, now);
        }
        let state = self.files.get_mut(&file).expect("a file in use stays open");
        state.in_flight -= 1;
        state.length_changed |= pending.stage == Stage::SyncFile && result.is_err();
        let result = match pending.buffer.take() {
            Some(buffer) => result
                .map(|()| Answer::Buffer(buffer))
                .map_err(|error| error.at(pending.offset, u64::from(pending.length_bytes))),
            None => result.map(|()| Answer::Done),
        };
        self.finish(pending, result, now);
        self.close_if_idle(file);
    }

    /// Compares the ways of durable writes.
    fn note_durable(&mut self, pending: &Pending, file: FileId, now: Nanos) {
        let way = match pending.stage {
            Stage::DurableWrite => Way::Flag,
            Stage::SyncAfterWrite => Way::WriteThenSync,
            _ => return,
        };
        let taken_ns = now.saturating_sub(pending.submitted.unwrap_or(pending.asked));
        let opened = self.files[&file].file.clone();
        if let Some(chosen) = self.durable.note(opened.device, way, taken_ns) {
            let folder = opened.path.parent().unwrap_or(&opened.path).display();
            let how = match chosen {
                Way::Flag => "with RWF_DSYNC",
                Way::WriteThenSync => "a write and then fdatasync",
            };
            self.choices.push(format!("durable writes to the device below {folder}: {how}"));
        }
    }

    /// Starts what is left of a durable write in several steps. Answers whether there was anything.
    fn continue_durable_write(&mut self, done: Transferred) -> bool {
        let pending = self.pending.get_mut(done.tag);
        let file = pending.file.expect("every transfer has a file");
        let complete = done.result >= 0 && done.result as u32 == pending.length_bytes;
        let (kind, memory) = match pending.stage {
            Stage::DurableWrite if done.result == -libc::EOPNOTSUPP => {
                pending.stage = Stage::WriteBeforeSync;
                let buffer = pending.buffer.as_ref().expect("a write has its memory");
                let memory = Memory {
                    start: buffer.source(),
                    length_bytes: pending.length_bytes,
                    registered_index: None,
                };
                (TransferKind::Write, memory)
            }
            Stage::WriteBeforeSync if complete => {
                pending.stage = Stage::SyncAfterWrite;
                (TransferKind::SyncContent, Memory::NONE)
            }
            _ => return false,
        };
        let offset = pending.offset;
        if kind == TransferKind::Write {
            self.durable.refuse_flag();
            self.remark(DSYNC_REFUSED);
        }
        let fd = self.files[&file].file.fd.as_raw_fd();
        self.push(Transfer { tag: done.tag, kind, fd, offset, memory });
        true
    }

    fn chore_done(&mut self, done: ChoreDone, now: Nanos) {
        if let Some(remark) = done.remark {
            self.remark(remark);
        }
        let pending = self.pending.remove(done.tag);
        if pending.stage == Stage::Extend {
            let file = pending.file.expect("an extension has a file");
            let state = self.files.get_mut(&file).expect("a file in use stays open");
            state.in_flight -= 1;
            state.length_changed = true;
            self.close_if_idle(file);
        }
        let result = done.result.map(|answer| match answer {
            ChoreAnswer::Done => Answer::Done,
            ChoreAnswer::Entries(entries) => Answer::Entries(entries),
            ChoreAnswer::Entry(entry) => Answer::Entry(entry),
            ChoreAnswer::Opened(file) => Answer::Opened(self.add_file(file)),
        });
        self.finish(pending, result, now);
    }

    pub(super) fn add_file(&mut self, mut file: OpenFile) -> Opened {
        for remark in std::mem::take(&mut file.remarks) {
            if remark.of_device.is_none_or(|known| self.remarked_devices.insert(known)) {
                self.remark(&remark.text);
            }
        }
        let opened = Opened {
            file: FileId(self.next_file),
            length_bytes: file.opened_length_bytes,
            alignment_bytes: file.alignment_bytes,
            atomic_write_bytes: file.atomic_write_bytes,
            is_device: file.is_device,
        };
        self.next_file += 1;
        self.files.insert(
            opened.file,
            FileState {
                file: Arc::new(file),
                in_flight: 0,
                length_changed: false,
                closing_tag: None,
            },
        );
        opened
    }
}
