//! A memory disk with an executor over it and short names for what every test does.

use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{
    Buffer, Clock, Context, Durability, Executor, File, Files, MemoryDisk, MemoryOptions, OpenMode,
    Purpose, Random,
};

pub struct Rig {
    pub disk: Rc<MemoryDisk>,
    pub executor: Executor,
    pub files: Files,
}

/// The label tests use where the label does not matter.
pub fn label() -> Context {
    Context::of(Purpose::DatabaseWrite)
}

impl Rig {
    pub fn new(options: MemoryOptions) -> Self {
        let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
        Self::over(disk)
    }

    pub fn over(disk: Rc<MemoryDisk>) -> Self {
        Self {
            executor: Executor::new(disk.clock().clone(), disk.clone()),
            files: Files::new(disk.clone()),
            disk,
        }
    }

    pub fn run<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        self.executor.run(work).expect("the work can finish")
    }

    /// A file that exists durably and is zero.
    pub fn settled_file(&self, path: &str, length_bytes: usize) -> File {
        self.disk.load(path, &vec![0; length_bytes]);
        let (files, path) = (self.files.clone(), path.to_owned());
        self.run(async move { files.open(path, OpenMode::Write, label()).await.unwrap() })
    }

    pub fn write(&self, file: &File, offset: u64, bytes: &[u8], durability: Durability) {
        let pending = file.write(offset, Buffer::copy_of(bytes), durability, label());
        self.run(pending).expect("the write succeeds");
    }

    pub fn sync(&self, file: &File) {
        let file = file.clone();
        self.run(async move { file.sync(label()).await.expect("the sync succeeds") });
    }

    pub fn read(&self, file: &File, offset: u64, length_bytes: usize) -> Vec<u8> {
        let pending = file.read(offset, Buffer::zeroed(length_bytes), label());
        self.run(pending).expect("the read succeeds").to_vec()
    }
}
