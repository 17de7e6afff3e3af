//! The way in: an operation becomes a transfer, a chore, or an error that the next reap delivers.

use std::os::fd::AsRawFd;

use super::durable::Way;
use super::state::State;
use super::table::{FileState, Pending, Stage};
use crate::posix::{Chore, OpenFile};
use crate::transfer::{Memory, Transfer, TransferKind};
use crate::{
    Action, Buffer, DiskError, DiskErrorKind, Durability, FileId, Nanos, OpenMode, Operation,
};

/// The kernel ends any transfer below 2 GiB; half of that is a round limit.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

impl State {
    pub(super) fn start(&mut self, operation: Operation, now: Nanos) {
        let doing = operation.action.verb();
        let mut pending = Pending {
            completion: operation.completion,
            doing,
            stage: Stage::Whole,
            file: None,
            buffer: None,
            offset: 0,
            length_bytes: 0,
            asked: now,
            submitted: None,
            sent: None,
        };
        match operation.action {
            Action::Read { file, offset, buffer } => {
                pending.file = Some(file);
                self.start_transfer(pending, TransferKind::Read, offset, buffer);
            }
            Action::Write { file, offset, buffer, durability } => {
                pending.file = Some(file);
                let kind = self.write_kind(durability, &mut pending);
                self.start_transfer(pending, kind, offset, buffer);
            }
            Action::SyncFile { file } => {
                pending.file = Some(file);
                pending.stage = Stage::SyncFile;
                self.start_sync(pending);
            }
            Action::Extend { file, length_bytes } => {
                pending.file = Some(file);
                pending.stage = Stage::Extend;
                self.start_extend(pending, length_bytes);
            }
            Action::Close { file } => {
                pending.file = Some(file);
                self.start_close(pending);
            }
            Action::Open { path, mode } => {
                let rules = self.rules.clone();
                self.start_chore(pending, Chore::Open { path, mode, rules });
            }
            Action::Rename { from, to } => self.start_chore(pending, Chore::Rename { from, to }),
            Action::Delete { path } => self.start_chore(pending, Chore::Delete(path)),
            Action::SyncDirectory { path } => self.start_chore(pending, Chore::SyncDirectory(path)),
            Action::List { path } => self.start_chore(pending, Chore::List(path)),
            Action::Stat { path } => self.start_chore(pending, Chore::Stat(path)),
            Action::MakeDirectory { path } => self.start_chore(pending, Chore::MakeDirectory(path)),
            Action::RemoveDirectory { path } => {
                self.start_chore(pending, Chore::RemoveDirectory(path))
            }
        }
    }

    fn write_kind(&mut self, durability: Durability, pending: &mut Pending) -> TransferKind {
        if durability == Durability::Volatile {
            return TransferKind::Write;
        }
        let file = pending.file.and_then(|file| self.files.get(&file));
        let device = file.and_then(|state| state.file.device);
        match self.durable.next(device) {
            Way::Flag => {
                pending.stage = Stage::DurableWrite;
                TransferKind::WriteDurable
            }
            Way::WriteThenSync => {
                pending.stage = Stage::WriteBeforeSync;
                TransferKind::Write
            }
        }
    }

    /// The open file of an operation, or the error that there is none.
    fn file_for(&mut self, pending: &Pending) -> Result<&mut FileState, DiskError> {
        let file = pending.file.expect("only operations on files ask");
        match self.files.get_mut(&file) {
            Some(state) if state.closing_tag.is_none() => Ok(state),
            _ => Err(DiskError::from_errno(
                libc::EBADF,
                pending.doing,
                format!("file number {}", file.0),
            )
            .because("it is not open")),
        }
    }

    fn start_transfer(
        &mut self,
        mut pending: Pending,
        kind: TransferKind,
        offset: u64,
        buffer: Buffer,
    ) {
        let length_bytes = buffer.len();
        assert!(
            kind != TransferKind::Read || !buffer.is_shared(),
            "nothing is read into shared memory"
        );
        let fd = match self.file_for(&pending) {
            Err(error) => return self.refuse(pending, error),
            Ok(state) => match check_transfer(&state.file, kind, offset, length_bytes) {
                Err(error) => {
                    let error = error.at(offset, length_bytes as u64);
                    return self.refuse(pending, error);
                }
                Ok(()) => {
                    state.in_flight += 1;
                    state.file.fd.as_raw_fd()
                }
            },
        };
        let memory = Memory {
            registered_index: self.arena.registered_index(&buffer),
            start: buffer.source(),
            length_bytes: length_bytes as u32,
        };
        pending.offset = offset;
        pending.length_bytes = memory.length_bytes;
        pending.buffer = Some(buffer);
        let tag = self.pending.insert(pending);
        self.push(Transfer { tag, kind, fd, offset, memory });
    }

    fn start_sync(&mut self, pending: Pending) {
        let (fd, kind) = match self.file_for(&pending) {
            Err(error) => return self.refuse(pending, error),
            Ok(state) => {
                state.in_flight += 1;
                let kind = match std::mem::take(&mut state.length_changed) {
                    true => TransferKind::SyncEverything,
                    false => TransferKind::SyncContent,
                };
                (state.file.fd.as_raw_fd(), kind)
            }
        };
        let tag = self.pending.insert(pending);
        self.push(Transfer { tag, kind, fd, offset: 0, memory: Memory::NONE });
    }

    fn start_extend(&mut self, pending: Pending, length_bytes: u64) {
        let file = match self.file_for(&pending) {
            Err(error) => return self.refuse(pending, error),
            Ok(state) => match check_writable(&state.file, pending.doing) {
                Err(error) => return self.refuse(pending, error),
                Ok(()) => {
                    state.in_flight += 1;
                    state.file.clone()
                }
            },
        };
        let tag = self.pending.insert(pending);
        self.extensions.push((tag, Chore::Extend(file, length_bytes)));
    }

    fn start_close(&mut self, pending: Pending) {
        if let Err(error) = self.file_for(&pending) {
            return self.refuse(pending, error);
        }
        let file = pending.file.expect("a close names its file");
        let tag = self.pending.insert(pending);
        if let Some(state) = self.files.get_mut(&file) {
            state.closing_tag = Some(tag);
        }
        self.close_if_idle(file);
    }

    pub(super) fn close_if_idle(&mut self, file: FileId) {
        let Some(FileState { in_flight: 0, closing_tag: Some(tag), .. }) = self.files.get(&file)
        else {
            return;
        };
        let tag = *tag;
        if let Some(state) = self.files.remove(&file) {
            self.names.push(tag, Chore::Close(state.file));
        }
    }

    fn start_chore(&mut self, pending: Pending, chore: Chore) {
        let tag = self.pending.insert(pending);
        self.names.push(tag, chore);
    }
}

fn check_writable(file: &OpenFile, doing: &'static str) -> Result<(), DiskError> {
    if file.mode == OpenMode::Read {
        return Err(DiskError::new(DiskErrorKind::PermissionDenied, doing, &file.path)
            .because("the file was opened for reading only"));
    }
    Ok(())
}

fn check_transfer(
    file: &OpenFile,
    kind: TransferKind,
    offset: u64,
    length_bytes: usize,
) -> Result<(), DiskError> {
    let doing = if kind == TransferKind::Read { "read" } else { "write" };
    if kind != TransferKind::Read {
        check_writable(file, doing)?;
    }
    let alignment_bytes = u64::from(file.alignment_bytes);
    if length_bytes == 0
        || length_bytes > TRANSFER_BYTES_MAX
        || !offset.is_multiple_of(alignment_bytes)
        || !(length_bytes as u64).is_multiple_of(alignment_bytes)
    {
        return Err(DiskError::new(DiskErrorKind::Misaligned, doing, &file.path).because(format!(
            "offsets and lengths are multiples of {alignment_bytes}, lengths at most \
                 {TRANSFER_BYTES_MAX}"
        )));
    }
    Ok(())
}
