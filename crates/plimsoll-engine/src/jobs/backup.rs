//! A streaming backup: all pages in order while transactions go on, and the generations that make the copy consistent.
//!
//! The pages are read as they are in the file, so the copy is of many moments; replaying the log from the checkpoint at the start to the tip at the
//! end makes it one. The log needed is held back from deletion until the backup is finished or dropped.

use std::rc::Rc;

use plimsoll_io::{Buffer, Purpose};

use super::scan::read_chunk;
use crate::PageNumber;
use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::log::Lsn;

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
    /// First generation the copy needs.
    pub generation_first: u32,
    /// Last generation the copy needs.
    pub generation_last: u32,
}

/// A backup under way.
pub struct Backup {
    instance: Rc<Instance>,
    database: Rc<Database>,
    holder: String,
    started_at: Lsn,
    next: PageNumber,
    last: PageNumber,
    pages_per_read: u32,
}

impl Backup {
    /// Begins a backup of one database in reads of `read_bytes`.
    pub fn start(instance: &Rc<Instance>, database: u8, read_bytes: usize) -> Result<Backup> {
        let target = instance.database(database)?;
        let started_at = instance.store().checkpoint.get();
        let holder = format!("backup of database {database}");
        instance.hold_log(&holder, started_at.generation);
        Ok(Backup {
            instance: instance.clone(),
            holder,
            started_at,
            next: 1,
            last: target.pages_in_use(),
            pages_per_read: (read_bytes / target.size().bytes()).max(1) as u32,
            database: target,
        })
    }

    /// The next run of pages, `None` at the end.
    ///
    /// # Errors
    /// A damaged page ends the backup: a copy of damage is no copy.
    pub async fn next_chunk(&mut self) -> Result<Option<BackupChunk>> {
        if self.next > self.last {
            return Ok(None);
        }
        let count = self.pages_per_read.min(self.last + 1 - self.next);
        let handle = &self.instance.store().handle;
        let chunk = read_chunk(handle, &self.database, self.next, count, Purpose::Backup).await?;
        if let Some((page, damage)) = chunk.damaged.into_iter().next() {
            let path = self.database.path().to_owned();
            return Err(EngineError::DamagedPage { path, page, damage });
        }
        self.next += count;
        Ok(Some(BackupChunk {
            first: chunk.first,
            bytes: chunk.bytes,
        }))
    }

    /// Makes durable the log that the copy needs and says which generations that is. They stay until the backup is dropped.
    pub async fn finish(&self) -> Result<BackupReport> {
        let store = self.instance.store();
        store.log.make_durable(store.log.tip()).await?;
        Ok(BackupReport {
            pages: self.next - 1,
            bytes: u64::from(self.next - 1) * self.database.size().bytes() as u64,
            generation_first: self.started_at.generation,
            generation_last: store.log.durable().generation,
        })
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.instance.release_log(&self.holder);
    }
}
