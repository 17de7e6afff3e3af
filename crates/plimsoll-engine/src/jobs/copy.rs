//! A backup that is kept: the pages of each database go to a file of their own, the log that makes
//! them consistent beside them, and the headers last.
//!
//! Databases of one instance share a log and are sealed together: opening the copies redoes it to
//! one moment for all of them. A copy that was not sealed begins with blank pages, whatever else
//! was written of it, so nobody takes it for a database.
//!
//! # Example
//!
//! A backup, and its restore:
//!
//! ```
//! # mod shared { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/documented/mod.rs")); }
//! # use shared::*;
//! # on_a_disk(async |files, handle| {
//! # let instance = create_and_open(&files, &handle).await?;
//! use plimsoll_engine::jobs::backup::Backup;
//! use plimsoll_engine::jobs::copy::{Copy, seal};
//! # use plimsoll_engine::{Instance, InstanceOptions, log::names::LogNames};
//! # use plimsoll_io::Random;
//!
//! // The pages are read while transactions go on. Their log is kept until the backup has ended.
//! let backup = Backup::start(&instance, 1, 256 << 10)?;
//! let mut copy = Copy::start(backup, "/backup/mail.edb").await?;
//! while copy.copy_on().await? {}
//! let log = LogNames::new("/backup", "E00");
//! seal(vec![copy.finish().await?], &log).await?;
//!
//! // Opening the copy with its log recovers it. Restore a copy of the files, to keep the backup.
//! let options = InstanceOptions {
//!     log,
//!     databases: vec!["/backup/mail.edb".into()],
//!     ..instance.options().clone()
//! };
//! let mut random = Random::from_seed(3);
//! let (restored, report) = Instance::open(files, handle, options, &mut random).await?;
//! assert!(report.recovered);
//! restored.open_table(1, "Messages").await?;
//! # restored.close().await?;
//! # instance.close().await
//! # });
//! ```

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, DiskError, Durability, File, OpenMode, Purpose};

use super::backup::{Backup, BackupReport};
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::log::names::LogNames;

/// Log is copied in pieces of this size.
const LOG_PIECE_BYTES: u64 = 256 * 1024;

type Write = Pin<Box<dyn Future<Output = std::result::Result<Buffer, DiskError>>>>;

/// A backup of one database whose pages go to a new file.
pub struct Copy {
    backup: Backup,
    file: File,
    context: Context,
    writes: VecDeque<Write>,
    writes_outstanding_max: usize,
}

/// A copy whose pages are all written.
pub struct Copied {
    copy: Copy,
    report: BackupReport,
}

/// The log that lies beside sealed copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedLog {
    /// First generation.
    pub generation_first: u32,
    /// Last generation.
    pub generation_last: u32,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Copy {
    /// Begins to write what a backup reads to `path`, where nothing may be yet. The file gets its
    /// whole length first.
    ///
    /// # Errors
    /// Whatever creating it meets: a file that is there, a full disk.
    pub async fn start(backup: Backup, path: impl AsRef<Path>) -> Result<Copy> {
        let context = backup.context();
        let files = backup.instance().store().files.clone();
        let file = files.open(path, OpenMode::Create, context).await?;
        file.extend(backup.file_bytes(), context).await?;
        let writes_outstanding_max = backup.reads_outstanding();
        Ok(Copy { backup, file, context, writes: VecDeque::new(), writes_outstanding_max })
    }

    /// Copies the next run of pages; false when there are no more.
    ///
    /// # Errors
    /// A damaged page, or what reading and writing meets.
    pub async fn copy_on(&mut self) -> Result<bool> {
        let Some(chunk) = self.backup.next_chunk().await? else {
            return Ok(false);
        };
        while self.writes.len() >= self.writes_outstanding_max {
            self.oldest_write().await?;
        }
        let offset = self.backup.page_size().offset_of(chunk.first);
        let write = self.file.write(offset, chunk.bytes, Durability::Volatile, self.context);
        self.writes.push_back(Box::pin(write));
        Ok(true)
    }

    async fn oldest_write(&mut self) -> Result<()> {
        if let Some(write) = self.writes.pop_front() {
            write.await?;
        }
        Ok(())
    }

    /// Makes the pages durable, and the log that they need.
    ///
    /// # Errors
    /// Those of [`Backup::finish`], and what writing meets.
    pub async fn finish(mut self) -> Result<Copied> {
        while !self.writes.is_empty() {
            self.oldest_write().await?;
        }
        self.file.sync(self.context).await?;
        let report = self.backup.finish().await?;
        Ok(Copied { copy: self, report })
    }
}

impl Copied {
    /// What was read, and which log belongs to it.
    pub fn report(&self) -> BackupReport {
        self.report
    }
}

/// Copies the log that all of these need to a directory without log, and gives each its header:
/// from then on they are databases that were not shut down cleanly, and whoever opens them together
/// recovers them.
///
/// # Errors
/// [`EngineError::BadOption`] without a copy, with copies of several instances, which share no log,
/// or for a log without a name; and what reading and writing meets. Then the copies have no
/// headers.
pub async fn seal(copies: Vec<Copied>, to: &LogNames) -> Result<CopiedLog> {
    to.check()?;
    let mut instances = copies.iter().map(|copied| copied.copy.backup.instance().clone());
    let instance = instances.next().filter(|first| instances.all(|next| Rc::ptr_eq(first, &next)));
    let instance = instance.ok_or_else(|| EngineError::BadOption {
        name: "copies",
        why: "name those of one instance, which share its log".into(),
    })?;
    let reports = || copies.iter().map(Copied::report);
    let first = reports().map(|report| report.generation_first).min().unwrap_or_default();
    let last = reports().map(|report| report.generation_last).max().unwrap_or_default();
    let log = &instance.store().log;
    // A generation is copied when no more is written to it.
    let next = match log.tip().generation == last {
        true => log.begin_generation().end,
        false => log.tip(),
    };
    log.make_durable(next).await?;
    let mut bytes = 0;
    for generation in first..=last {
        let source = instance.options().log.closed(generation);
        bytes += copy_file(&instance, source, to.closed(generation)).await?;
    }
    let (files, context) = (&instance.store().files, Context::of(Purpose::Backup));
    files.sync_directory(to.directory(), context).await?;
    for copied in &copies {
        copied.write_header().await?;
        let directory = copied.copy.file.path().parent().unwrap_or(Path::new("."));
        files.sync_directory(directory, context).await?;
    }
    for copied in copies {
        copied.copy.file.close(copied.copy.context).await?;
    }
    Ok(CopiedLog { generation_first: first, generation_last: last, bytes })
}

impl Copied {
    /// Writes both copies of the header; the pages and the log are durable by now.
    async fn write_header(&self) -> Result<()> {
        let Copy { backup, file, context, .. } = &self.copy;
        let encoded = backup.header_of_copy(&self.report).encode();
        for number in 0..2 {
            let mut page = file.allocate(encoded.len());
            page.copy_from_slice(&encoded);
            let at = number * encoded.len() as u64;
            file.write(at, page, Durability::Volatile, *context).await?;
        }
        Ok(file.sync(*context).await?)
    }
}

/// Copies a closed generation durably; answers its bytes.
async fn copy_file(instance: &Instance, from: PathBuf, to: PathBuf) -> Result<u64> {
    let store = instance.store();
    let reading = Context { purpose: Purpose::LogRead, database: 0, ..store.context };
    let writing = Context { purpose: Purpose::Backup, ..reading };
    let source = store.files.open(from, OpenMode::Read, reading).await?;
    let length = source.opened().length_bytes;
    let target = store.files.open(to, OpenMode::Create, writing).await?;
    target.extend(length, writing).await?;
    let mut at = 0;
    while at < length {
        let piece = (length - at).min(LOG_PIECE_BYTES);
        let bytes = source.read(at, source.allocate(piece as usize), reading).await?;
        target.write(at, bytes, Durability::Volatile, writing).await?;
        at += piece;
    }
    target.sync(writing).await?;
    target.close(writing).await?;
    source.close(reading).await?;
    Ok(length)
}
