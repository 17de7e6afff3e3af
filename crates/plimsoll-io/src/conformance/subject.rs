//! What the cases of a disk work on, and what they do again and again.

use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;

use crate::{Buffer, Clock, Context, Disk, Executor, File, Files, OpenMode, Purpose, Random};

/// What one case works on: a disk nobody else uses and an existing, empty folder on it.
pub struct Subject {
    /// The disk.
    pub disk: Rc<dyn Disk>,
    /// The clock it was made with.
    pub clock: Rc<Clock>,
    /// An empty folder.
    pub folder: PathBuf,
}

pub(super) const CONTEXT: Context = Context {
    purpose: Purpose::Header,
    instance: crate::InstanceId(0),
    database: 0,
    intended: None,
};

impl Subject {
    /// Runs a future on an executor over the disk.
    pub(super) fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        Executor::new(self.clock.clone(), self.disk.clone())
            .run(future)
            .expect("every operation completes")
    }

    pub(super) fn files(&self) -> Files {
        Files::new(self.disk.clone())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Creates a file of zeros.
pub(super) async fn create(files: &Files, path: PathBuf, length_bytes: u64) -> File {
    let file =
        files.open(path, OpenMode::Create, CONTEXT).await.expect("a new file can be created");
    file.extend(length_bytes, CONTEXT).await.expect("there is room for a small file");
    file
}

/// The one content that belongs to an offset of a file.
pub(super) fn content(file_seed: u64, offset: u64, length_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; length_bytes];
    Random::from_seed(file_seed ^ offset.rotate_left(32)).fill(&mut bytes);
    bytes
}

/// A buffer of the disk holding [`content`].
pub(super) fn filled(file: &File, file_seed: u64, offset: u64, length_bytes: usize) -> Buffer {
    let mut buffer = file.allocate(length_bytes);
    assert_eq!(buffer.len(), length_bytes, "allocate gives the length asked for");
    buffer.copy_from_slice(&content(file_seed, offset, length_bytes));
    buffer
}
