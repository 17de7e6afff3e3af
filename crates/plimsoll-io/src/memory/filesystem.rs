//! The file operations of a memory disk, without time: names, handles, locks, alignment, capacity.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::chunks::Layout;
use super::inode::{Inode, InodeRef, Keeping};
use super::names::{Names, normal};
use super::options::{MemoryOptions, Tracking};
use crate::DiskErrorKind as Kind;
use crate::{Action, Answer, Buffer, DiskError, Durability, FileId, Nanos, OpenMode, Opened};

/// The longest file, as on ext4 with 4 KiB blocks.
const FILE_BYTES_MAX: u64 = 16 << 40;

pub(crate) struct Handle {
    pub(crate) path: Rc<Path>,
    pub(crate) inode: InodeRef,
    pub(crate) writable: bool,
    /// When the last operation submitted on it will be done.
    pub(crate) busy_until: Nanos,
}

pub(crate) struct FileSystem {
    pub(crate) names: Names,
    handles: Vec<Option<Handle>>,
    options: MemoryOptions,
}

impl FileSystem {
    pub(crate) fn new(options: MemoryOptions) -> Self {
        Self {
            names: Names::new(options.tracking != Tracking::Nothing),
            handles: Vec::new(),
            options,
        }
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.options.chunk_bytes
    }

    pub(crate) fn atomic_write_bytes(&self) -> u64 {
        u64::from(self.options.atomic_write_bytes)
    }

    /// The file or directory an action is about; empty for a closed file.
    pub(crate) fn path_of<'a>(&'a self, action: &'a Action) -> &'a Path {
        match action {
            Action::Open { path, .. }
            | Action::Delete { path }
            | Action::SyncDirectory { path }
            | Action::List { path }
            | Action::Stat { path }
            | Action::MakeDirectory { path }
            | Action::RemoveDirectory { path }
            | Action::Rename { from: path, .. } => path,
            Action::Extend { file, .. }
            | Action::Read { file, .. }
            | Action::Write { file, .. }
            | Action::SyncFile { file }
            | Action::Close { file } => {
                self.handle(*file).map_or(Path::new(""), |handle| &handle.path)
            }
        }
    }

    /// The same, for keeping.
    pub(crate) fn shared_path_of(&self, action: &Action) -> Rc<Path> {
        let handle = file_of(action).and_then(|file| self.handle(file));
        handle.map_or_else(|| Rc::from(self.path_of(action)), |handle| handle.path.clone())
    }

    pub(crate) fn handle(&self, file: FileId) -> Option<&Handle> {
        self.handles.get(file.0 as usize)?.as_ref()
    }

    pub(crate) fn handle_mut(&mut self, file: FileId) -> Option<&mut Handle> {
        self.handles.get_mut(file.0 as usize)?.as_mut()
    }

    /// What a sync submitted now will cover: everything completed before.
    pub(crate) fn sync_mark(&self, action: &Action) -> u64 {
        match action {
            Action::SyncFile { file } => {
                self.handle(*file).map_or(0, |handle| handle.inode.borrow().next_sequence)
            }
            Action::SyncDirectory { .. } => self.names.next_sequence,
            _ => 0,
        }
    }

    /// Does it. `sync_mark` was taken when the action was submitted.
    pub(crate) fn perform(&mut self, action: Action, sync_mark: u64) -> Result<Answer, DiskError> {
        let verb = action.verb();
        match action {
            Action::Open { path, mode } => self.open(path, mode, verb),
            Action::Extend { file, length_bytes } => self.extend(file, length_bytes),
            Action::Read { file, offset, buffer } => self.read(file, offset, buffer),
            Action::Write { file, offset, buffer, durability } => {
                self.write(file, offset, buffer, durability)
            }
            Action::SyncFile { file } => {
                let inode = self.inode(file, verb)?;
                inode.borrow_mut().settle(sync_mark);
                Ok(Answer::Done)
            }
            Action::Close { file } => self.close(file),
            Action::Rename { from, to } => self.rename(&from, &to),
            Action::Delete { path } => self.delete(&path),
            Action::SyncDirectory { path } => {
                let directory = normal(&path);
                if !self.names.directories.contains(&directory) {
                    return Err(DiskError::new(Kind::NotFound, verb, path));
                }
                self.names.settle(&directory, sync_mark);
                Ok(Answer::Done)
            }
            Action::List { path } => self.list(&path),
            Action::Stat { path } => self.stat(&path),
            Action::MakeDirectory { path } => self.make_directory(&path),
            Action::RemoveDirectory { path } => self.remove_directory(&path),
        }
    }

    fn open_handle(&self, file: FileId, verb: &'static str) -> Result<&Handle, DiskError> {
        let closed = || DiskError::new(Kind::Other, verb, format!("closed file {}", file.0));
        self.handle(file).ok_or_else(closed)
    }

    fn inode(&self, file: FileId, verb: &'static str) -> Result<InodeRef, DiskError> {
        self.open_handle(file, verb).map(|handle| handle.inode.clone())
    }

    fn open(
        &mut self,
        path: PathBuf,
        mode: OpenMode,
        verb: &'static str,
    ) -> Result<Answer, DiskError> {
        let name = normal(&path);
        let error = |kind| DiskError::new(kind, verb, &path);
        let inode = match (mode, self.names.present.get(&name)) {
            _ if self.names.directories.contains(&name) => {
                let exists = mode == OpenMode::Create;
                return Err(error(if exists { Kind::AlreadyExists } else { Kind::Other }));
            }
            (OpenMode::Create, Some(_)) => return Err(error(Kind::AlreadyExists)),
            (OpenMode::Create, None) if !self.names.has_parent(&name) => {
                return Err(error(Kind::NotFound));
            }
            (OpenMode::Create, None) => {
                let inode = self.new_inode(Layout::plain(self.options.chunk_bytes));
                self.names.change(vec![(name, Some(inode.clone()))]);
                inode
            }
            (_, None) => return Err(error(Kind::NotFound)),
            (_, Some(inode)) => inode.clone(),
        };
        let writable = mode != OpenMode::Read;
        if writable {
            if inode.borrow().has_writer {
                return Err(error(Kind::Locked));
            }
            inode.borrow_mut().has_writer = true;
        }
        Ok(Answer::Opened(self.add_handle(path, inode, writable)))
    }

    pub(crate) fn new_inode(&self, layout: Layout) -> InodeRef {
        Rc::new(RefCell::new(Inode::new(layout)))
    }

    fn add_handle(&mut self, path: PathBuf, inode: InodeRef, writable: bool) -> Opened {
        let opened = Opened {
            file: FileId(self.handles.len() as u32),
            length_bytes: inode.borrow().length_bytes,
            alignment_bytes: self.options.alignment_bytes,
            atomic_write_bytes: self.options.atomic_write_bytes,
            is_device: false,
        };
        self.handles.push(Some(Handle { path: Rc::from(path), inode, writable, busy_until: 0 }));
        opened
    }

    fn close(&mut self, file: FileId) -> Result<Answer, DiskError> {
        self.open_handle(file, "close")?;
        let handle = self.handles[file.0 as usize].take().expect("just seen open");
        if handle.writable {
            handle.inode.borrow_mut().has_writer = false;
        }
        Ok(Answer::Done)
    }

    fn read(&self, file: FileId, offset: u64, mut buffer: Buffer) -> Result<Answer, DiskError> {
        let handle = self.open_handle(file, "read")?;
        let length = buffer.len() as u64;
        let error = |kind| DiskError::new(kind, "read", &handle.path).at(offset, length);
        if self.is_misaligned(offset, length) {
            return Err(error(Kind::Misaligned));
        }
        let inode = handle.inode.borrow();
        if offset.checked_add(length).is_none_or(|end| end > inode.length_bytes) {
            return Err(error(Kind::Short));
        }
        if inode.is_unreadable(offset, length) {
            return Err(error(Kind::Medium));
        }
        inode.chunks.read_into(offset, &mut buffer);
        Ok(Answer::Buffer(buffer))
    }

    pub(crate) fn write(
        &mut self,
        file: FileId,
        offset: u64,
        mut buffer: Buffer,
        durability: Durability,
    ) -> Result<Answer, DiskError> {
        let inode = self.check_write(file, offset, buffer.len() as u64)?;
        let keeping = self.keeping(durability);
        inode.borrow_mut().write_buffer(offset, &mut buffer, keeping);
        Ok(Answer::Buffer(buffer))
    }

    /// The file a write may go to.
    pub(crate) fn check_write(
        &self,
        file: FileId,
        offset: u64,
        length: u64,
    ) -> Result<InodeRef, DiskError> {
        let handle = self.open_handle(file, "write")?;
        let error = |kind| DiskError::new(kind, "write", &handle.path).at(offset, length);
        if !handle.writable {
            return Err(error(Kind::PermissionDenied));
        }
        if self.is_misaligned(offset, length) {
            return Err(error(Kind::Misaligned));
        }
        let end = offset.saturating_add(length);
        if !self.has_room(&handle.inode, end) {
            return Err(error(Kind::Full));
        }
        Ok(handle.inode.clone())
    }

    pub(crate) fn keeping(&self, durability: Durability) -> Keeping {
        match (self.options.tracking, durability) {
            (Tracking::Nothing, _) => Keeping::Untracked,
            (_, Durability::Durable) => Keeping::Stable,
            (Tracking::WriteThrough, Durability::Volatile) => Keeping::Through,
            (Tracking::VolatileCache, Durability::Volatile) => Keeping::Volatile,
        }
    }

    fn extend(&mut self, file: FileId, length_bytes: u64) -> Result<Answer, DiskError> {
        let handle = self.open_handle(file, "extend")?;
        let error = |kind| DiskError::new(kind, "extend", &handle.path);
        if !handle.writable {
            return Err(error(Kind::PermissionDenied));
        }
        if !self.has_room(&handle.inode, length_bytes) {
            return Err(error(Kind::Full));
        }
        let keeping = match self.options.tracking {
            Tracking::Nothing => Keeping::Untracked,
            _ => Keeping::Volatile,
        };
        handle.inode.borrow_mut().extend(length_bytes, keeping);
        Ok(Answer::Done)
    }

    fn is_misaligned(&self, offset: u64, length: u64) -> bool {
        let alignment = u64::from(self.options.alignment_bytes);
        !offset.is_multiple_of(alignment) || !length.is_multiple_of(alignment) || length == 0
    }

    /// Whether a file may become this long.
    fn has_room(&self, inode: &InodeRef, length_bytes: u64) -> bool {
        let present_bytes = inode.borrow().length_bytes;
        if length_bytes <= present_bytes {
            return true;
        }
        let fits = |capacity| self.used_bytes() - present_bytes + length_bytes <= capacity;
        length_bytes <= FILE_BYTES_MAX && self.options.capacity_bytes.is_none_or(fits)
    }

    /// The lengths of all files that are named or open.
    pub(crate) fn used_bytes(&self) -> u64 {
        let open = self.handles.iter().flatten().map(|handle| &handle.inode);
        let distinct: BTreeMap<_, _> = self
            .names
            .present
            .values()
            .chain(open)
            .map(|inode| (Rc::as_ptr(inode), inode.borrow().length_bytes))
            .collect();
        distinct.values().sum()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<Answer, DiskError> {
        let (source, target) = (normal(from), normal(to));
        let Some(inode) = self.names.present.get(&source).cloned() else {
            return Err(DiskError::new(Kind::NotFound, "rename", from));
        };
        if self.names.directories.contains(&target) {
            return Err(DiskError::new(Kind::AlreadyExists, "rename", to));
        }
        if !self.names.has_parent(&target) {
            return Err(DiskError::new(Kind::NotFound, "rename", to));
        }
        if source != target {
            self.names.change(vec![(source, None), (target, Some(inode))]);
        }
        Ok(Answer::Done)
    }

    fn delete(&mut self, path: &Path) -> Result<Answer, DiskError> {
        let name = normal(path);
        if self.names.directories.contains(&name) {
            return Err(DiskError::new(Kind::Other, "delete", path));
        }
        if !self.names.present.contains_key(&name) {
            return Err(DiskError::new(Kind::NotFound, "delete", path));
        }
        self.names.change(vec![(name, None)]);
        Ok(Answer::Done)
    }

    fn list(&self, path: &Path) -> Result<Answer, DiskError> {
        let entries = self.names.list(&normal(path));
        entries.map(Answer::Entries).ok_or_else(|| DiskError::new(Kind::NotFound, "list", path))
    }

    fn stat(&self, path: &Path) -> Result<Answer, DiskError> {
        let entry = self.names.entry(&normal(path));
        entry.map(Answer::Entry).ok_or_else(|| DiskError::new(Kind::NotFound, "stat", path))
    }

    fn make_directory(&mut self, path: &Path) -> Result<Answer, DiskError> {
        let name = normal(path);
        let error = |kind| Err(DiskError::new(kind, "make directory", path));
        if self.names.entry(&name).is_some() {
            return error(Kind::AlreadyExists);
        }
        if !self.names.has_parent(&name) {
            return error(Kind::NotFound);
        }
        self.names.create_directory(&name);
        Ok(Answer::Done)
    }

    fn remove_directory(&mut self, path: &Path) -> Result<Answer, DiskError> {
        let name = normal(path);
        let error = |kind| DiskError::new(kind, "remove directory", path);
        match self.names.list(&name) {
            // As ENOTDIR is read, where it is a file.
            None => Err(error(Kind::NotFound)),
            Some(inside) if !inside.is_empty() => {
                Err(error(Kind::Other).because("the directory is not empty"))
            }
            Some(_) => {
                self.names.directories.remove(&name);
                Ok(Answer::Done)
            }
        }
    }
}

/// The open file an action is about.
pub(crate) fn file_of(action: &Action) -> Option<FileId> {
    match action {
        Action::Extend { file, .. }
        | Action::Read { file, .. }
        | Action::Write { file, .. }
        | Action::SyncFile { file }
        | Action::Close { file } => Some(*file),
        _ => None,
    }
}
