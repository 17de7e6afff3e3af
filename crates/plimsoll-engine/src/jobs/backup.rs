//! A streaming backup: all pages in order while transactions go on, and the generations that make
//! the copy consistent.
//!
//! The pages are read as they are in the file, so the copy is of many moments; replaying the log
//! from the checkpoint at the start to the tip at the end makes it one. The log needed is held back
//! from deletion until the backup is dropped. The copy has a header of its own, which names that
//! log: whoever opens the copy without all of it is refused.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_io::{Buffer, Context, Purpose};

use super::scan::{Chunk, read_chunk};
use crate::PageNumber;
use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::instance::{Held, Instance};
use crate::log::Lsn;
use crate::{BackupMark, DatabaseHeader, DatabaseState, LogTime, PageSize};

/// A run of pages.
pub struct BackupChunk {
    /// The first page.
    pub first: PageNumber,
    /// The pages.
    pub bytes: Buffer,
}

/// What was read and which log belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Pages.
    pub pages: u32,
    /// Bytes, headers not counted.
    pub bytes: u64,
    /// Pages with a flipped bit that was put right in memory; the copy holds them as they should
    /// be, the file does not.
    pub corrected: u64,
    /// Whether one copy of the header was damaged when the database was opened after a clean end.
    pub header_copy_damaged: bool,
    /// First generation the copy needs.
    pub generation_first: u32,
    /// Last generation the copy needs.
    pub generation_last: u32,
}

/// A read of a run of pages. It goes on only while somebody waits for a chunk, and ends with the
/// backup.
enum Reading {
    UnderWay(Pin<Box<dyn Future<Output = Result<Chunk>>>>),
    Done(Result<Chunk>),
}

/// A backup under way.
pub struct Backup {
    instance: Rc<Instance>,
    database: Rc<Database>,
    _held: Held,
    started_at: Lsn,
    next: PageNumber,
    last: PageNumber,
    pages_handed_out: u32,
    corrected: u64,
    pages_per_read: u32,
    reads_outstanding: usize,
    reads: VecDeque<Reading>,
}

impl Backup {
    /// Begins a backup of one database in reads of `read_bytes`.
    pub fn start(instance: &Rc<Instance>, database: u8, read_bytes: usize) -> Result<Backup> {
        let target = instance.database(database)?;
        let started_at = instance.store().checkpoint.get();
        let what = format!("backup of database {database}");
        Ok(Backup {
            _held: Held::begin(instance, &what, started_at.generation),
            instance: instance.clone(),
            started_at,
            next: 1,
            last: target.pages_in_use(),
            pages_handed_out: 0,
            corrected: 0,
            reads_outstanding: 1,
            reads: VecDeque::new(),
            pages_per_read: (read_bytes / target.size().bytes()).max(1) as u32,
            database: target,
        })
    }

    /// Keeps so many reads under way instead of one.
    #[must_use]
    pub fn with_reads_outstanding(mut self, count: usize) -> Backup {
        self.reads_outstanding = count.max(1);
        self
    }

    /// The instance it reads.
    pub fn instance(&self) -> &Rc<Instance> {
        &self.instance
    }

    /// The size of its pages.
    pub fn page_size(&self) -> PageSize {
        self.database.size()
    }

    /// How long a file is that holds all that is read, and the headers.
    pub fn file_bytes(&self) -> u64 {
        self.database.size().file_bytes(self.last)
    }

    /// The label of its reads.
    pub(super) fn context(&self) -> Context {
        Context {
            purpose: Purpose::Backup,
            database: self.database.number(),
            ..self.instance.store().context
        }
    }

    pub(super) fn reads_outstanding(&self) -> usize {
        self.reads_outstanding
    }

    /// The next run of pages, `None` at the end.
    ///
    /// # Errors
    /// A damaged page ends the backup: a copy of damage is no copy.
    pub async fn next_chunk(&mut self) -> Result<Option<BackupChunk>> {
        while self.reads.len() < self.reads_outstanding && self.next <= self.last {
            self.start_read();
        }
        if self.reads.is_empty() {
            return Ok(None);
        }
        let chunk = self.first_read().await?;
        if let Some((page, damage)) = chunk.damaged.into_iter().next() {
            let path = self.database.path().to_owned();
            return Err(EngineError::DamagedPage { path, page, damage });
        }
        self.corrected += chunk.corrected;
        self.pages_handed_out += (chunk.bytes.len() / self.database.size().bytes()) as u32;
        Ok(Some(BackupChunk { first: chunk.first, bytes: chunk.bytes }))
    }

    fn start_read(&mut self) {
        let count = self.pages_per_read.min(self.last + 1 - self.next);
        let (handle, database, first) =
            (self.instance.store().handle.clone(), self.database.clone(), self.next);
        self.reads.push_back(Reading::UnderWay(Box::pin(async move {
            read_chunk(&handle, &database, first, count, Purpose::Backup).await
        })));
        self.next += count;
    }

    /// Waits for the oldest read; those behind it go on meanwhile.
    async fn first_read(&mut self) -> Result<Chunk> {
        poll_fn(|context| {
            for read in &mut self.reads {
                if let Reading::UnderWay(work) = read
                    && let Poll::Ready(chunk) = work.as_mut().poll(context)
                {
                    *read = Reading::Done(chunk);
                }
            }
            match self.reads.pop_front() {
                Some(Reading::Done(chunk)) => Poll::Ready(chunk),
                Some(waiting) => {
                    self.reads.push_front(waiting);
                    Poll::Pending
                }
                None => unreachable!("asked only while something is read"),
            }
        })
        .await
    }

    /// Makes durable the log that the copy needs and says which generations that is. They stay
    /// until the backup is dropped.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] when log was deleted that the copy needs. A file that ends
    /// before the last page the database owns has lost pages, which no copy holds either.
    pub async fn finish(&self) -> Result<BackupReport> {
        let store = self.instance.store();
        store.check_length(&self.database).await?;
        store.log.make_durable(store.log.tip()).await?;
        let generation_first = self.started_at.generation;
        if store.log.oldest_generation() > generation_first {
            let path = store.log.names().directory().to_owned();
            return Err(EngineError::LogMissing { generation: generation_first, path });
        }
        Ok(BackupReport {
            pages: self.pages_handed_out,
            bytes: u64::from(self.pages_handed_out) * self.database.size().bytes() as u64,
            corrected: self.corrected,
            header_copy_damaged: self.database.statistics().header_copy_damaged,
            generation_first,
            generation_last: store.log.durable().generation,
        })
    }
}

impl Backup {
    /// The header of the copy, for both of its header pages: it names the generations of the
    /// report, all of which recovery then demands.
    pub fn header_of_copy(&self, report: &BackupReport) -> DatabaseHeader {
        let log = &self.instance.store().log;
        let now = LogTime::from_utc_ns(self.instance.store().handle.clock().anchor().utc_ns);
        let (first, last) = (report.generation_first, report.generation_last);
        DatabaseHeader {
            state: DatabaseState::Dirty,
            generation_min_required: first,
            generation_max_required: last,
            generation_max_committed: last,
            current_full_backup: BackupMark {
                position: log.framing().position(self.started_at),
                time: now,
                generation_min: first,
                generation_max: last,
            },
            ..self.database.header()
        }
    }
}
