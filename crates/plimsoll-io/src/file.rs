//! The asynchronous face of a disk: [`Files`] opens, [`File`] reads and writes. A dropped future
//! abandons the answer, not the operation: the disk keeps the memory until the device is done with
//! it.
//!
//! A file is closed by [`File::close`], which says when that is done, or when the last clone of it
//! is dropped: an error on any path may not leave a file open, because an open file is a locked
//! one. A file whose opening was abandoned is closed as soon as it is open.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::{
    Action, Answer, Buffer, Context, Disk, DiskError, Durability, Entry, FileId, OpenMode, Opened,
    Operation, Purpose,
};

struct Slot<T> {
    result: Option<T>,
    waker: Option<Waker>,
}

/// The pending answer of one operation. The operation was submitted when this was made.
struct Pending<T> {
    slot: Rc<RefCell<Slot<T>>>,
}

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<T> {
        let mut slot = self.slot.borrow_mut();
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

type Answered = Result<Answer, DiskError>;

/// Submits an operation; its answer becomes what `make` makes of it. The completion holds nothing
/// of the disk it waits on: a disk whose queue held itself would never be freed.
fn start_as<T: 'static>(
    disk: &dyn Disk,
    action: Action,
    context: Context,
    make: impl FnOnce(Answered) -> T + 'static,
) -> Pending<T> {
    let slot = Rc::new(RefCell::new(Slot { result: None, waker: None }));
    let filled = slot.clone();
    let completion = Box::new(move |outcome: crate::Outcome| {
        let made = make(outcome.result);
        let mut slot = filled.borrow_mut();
        slot.result = Some(made);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    });
    disk.submit(Operation { action, context, completion });
    Pending { slot }
}

fn start(disk: &dyn Disk, action: Action, context: Context) -> Pending<Answered> {
    start_as(disk, action, context, |answered| answered)
}

/// The files of one disk.
#[derive(Clone)]
pub struct Files {
    disk: Rc<dyn Disk>,
}

impl Files {
    /// The files of `disk`.
    pub fn new(disk: Rc<dyn Disk>) -> Self {
        Self { disk }
    }

    /// The disk below.
    pub fn disk(&self) -> &Rc<dyn Disk> {
        &self.disk
    }

    async fn done(&self, action: Action, context: Context) -> Result<(), DiskError> {
        start(&*self.disk, action, context).await.map(|_| ())
    }

    /// Opens or creates a file.
    pub async fn open(
        &self,
        path: impl AsRef<Path>,
        mode: OpenMode,
        context: Context,
    ) -> Result<File, DiskError> {
        let path = path.as_ref().to_owned();
        let action = Action::Open { path: path.clone(), mode };
        // The answer is a file from the moment it arrives: one that nobody waits for any more is
        // closed again.
        let disk = Rc::downgrade(&self.disk);
        let file_of = move |answered: Answered| {
            answered.map(|answer| match answer {
                Answer::Opened(opened) => disk.upgrade().map(|disk| File::new(disk, path, opened)),
                other => unreachable!("open was answered by {other:?}"),
            })
        };
        let opened = start_as(&*self.disk, action, context, file_of).await?;
        Ok(opened.expect("who waits for the answer holds the disk"))
    }

    /// Whether the path can be opened for reading.
    pub async fn exists(
        &self,
        path: impl AsRef<Path>,
        context: Context,
    ) -> Result<bool, DiskError> {
        match self.open(path, OpenMode::Read, context).await {
            Ok(file) => file.close(context).await.map(|()| true),
            Err(error) if error.kind == crate::DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Renames a file, replacing the target.
    pub async fn rename(&self, from: &Path, to: &Path, context: Context) -> Result<(), DiskError> {
        self.done(Action::Rename { from: from.to_owned(), to: to.to_owned() }, context).await
    }

    /// Deletes a file.
    pub async fn delete(&self, path: &Path, context: Context) -> Result<(), DiskError> {
        self.done(Action::Delete { path: path.to_owned() }, context).await
    }

    /// Makes the names in a directory durable.
    pub async fn sync_directory(&self, path: &Path, context: Context) -> Result<(), DiskError> {
        self.done(Action::SyncDirectory { path: path.to_owned() }, context).await
    }

    /// The names in a directory, sorted.
    pub async fn list(&self, path: &Path, context: Context) -> Result<Vec<Entry>, DiskError> {
        match start(&*self.disk, Action::List { path: path.to_owned() }, context).await? {
            Answer::Entries(entries) => Ok(entries),
            other => unreachable!("list was answered by {other:?}"),
        }
    }

    /// What a name stands for.
    pub async fn stat(&self, path: &Path, context: Context) -> Result<Entry, DiskError> {
        match start(&*self.disk, Action::Stat { path: path.to_owned() }, context).await? {
            Answer::Entry(entry) => Ok(entry),
            other => unreachable!("stat was answered by {other:?}"),
        }
    }

    /// Makes a directory, which must not exist, in one that does.
    pub async fn make_directory(&self, path: &Path, context: Context) -> Result<(), DiskError> {
        self.done(Action::MakeDirectory { path: path.to_owned() }, context).await
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&self, path: &Path, context: Context) -> Result<(), DiskError> {
        self.done(Action::RemoveDirectory { path: path.to_owned() }, context).await
    }
}

/// An open file.
#[derive(Clone)]
pub struct File {
    disk: Rc<dyn Disk>,
    path: PathBuf,
    opened: Opened,
    closing: Rc<CloseWhenDropped>,
}

/// Shared by the clones of a file.
struct CloseWhenDropped {
    disk: Rc<dyn Disk>,
    file: FileId,
    is_closed: Cell<bool>,
}

impl Drop for CloseWhenDropped {
    fn drop(&mut self) {
        if !self.is_closed.get() {
            let action = Action::Close { file: self.file };
            drop(start(&*self.disk, action, Context::of(Purpose::Metadata)));
        }
    }
}

impl File {
    fn new(disk: Rc<dyn Disk>, path: PathBuf, opened: Opened) -> Self {
        let closing = Rc::new(CloseWhenDropped {
            disk: disk.clone(),
            file: opened.file,
            is_closed: Cell::new(false),
        });
        Self { disk, path, opened, closing }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What opening it told: length then, alignment, atomic write unit.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// Memory for this file's I/O; its content is unspecified.
    pub fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }

    /// Reads exactly `buffer.len()` bytes. Submitted at once, even before the future is polled.
    pub fn read(
        &self,
        offset: u64,
        buffer: Buffer,
        context: Context,
    ) -> impl Future<Output = Result<Buffer, DiskError>> + use<> {
        let pending =
            start(&*self.disk, Action::Read { file: self.opened.file, offset, buffer }, context);
        async move { pending.await.map(expect_buffer) }
    }

    /// Writes the whole buffer. Submitted at once, even before the future is polled.
    pub fn write(
        &self,
        offset: u64,
        buffer: Buffer,
        durability: Durability,
        context: Context,
    ) -> impl Future<Output = Result<Buffer, DiskError>> + use<> {
        let action = Action::Write { file: self.opened.file, offset, buffer, durability };
        let pending = start(&*self.disk, action, context);
        async move { pending.await.map(expect_buffer) }
    }

    async fn done(&self, action: Action, context: Context) -> Result<(), DiskError> {
        start(&*self.disk, action, context).await.map(|_| ())
    }

    /// Makes the file at least this long.
    pub async fn extend(&self, length_bytes: u64, context: Context) -> Result<(), DiskError> {
        self.done(Action::Extend { file: self.opened.file, length_bytes }, context).await
    }

    /// Makes data and length durable.
    pub async fn sync(&self, context: Context) -> Result<(), DiskError> {
        self.done(Action::SyncFile { file: self.opened.file }, context).await
    }

    /// Closes the file; other clones of this handle become useless.
    pub async fn close(&self, context: Context) -> Result<(), DiskError> {
        self.closing.is_closed.set(true);
        self.done(Action::Close { file: self.opened.file }, context).await
    }
}

fn expect_buffer(answer: Answer) -> Buffer {
    match answer {
        Answer::Buffer(buffer) => buffer,
        other => unreachable!("a transfer was answered by {other:?}"),
    }
}
