//! Which pages were touched since a place in the log: those that a copy which was right at that
//! place has to fetch, and no others.
//!
//! Every change of a page is logged with its page, also what recovery undoes and what is
//! cleaned up outside any transaction. So the log from the place on names every page whose content
//! can differ; a page that it does not name is the same at both ends. Where the log is gone, the
//! database time of the pages says the same ([`jobs::touched`](crate::jobs::touched)). The flush
//! map does not: its two bits are as they were after every third write.

use std::collections::{BTreeMap, BTreeSet};

use super::Lsn;
use super::generation::Generation;
use super::history::HistoryReader;
use super::reader::LogReader;
use super::record::LogRecord;
use crate::PageNumber;
use crate::error::{EngineError, Result};

/// Pages by database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    pages: BTreeMap<u8, BTreeSet<PageNumber>>,
    pages_owned: BTreeMap<u8, u32>,
    upto: Lsn,
}

impl Touched {
    /// Adds the pages of a record.
    pub fn add(&mut self, record: &LogRecord) {
        match record {
            LogRecord::Row(row) => self.add_page(row.database, row.page),
            LogRecord::Structure(structure) => {
                for edits in &structure.pages {
                    self.add_page(structure.database, edits.page);
                }
                let owned = self.pages_owned.entry(structure.database).or_default();
                *owned = structure.pages_owned.max(*owned);
            }
            // Recovery puts the whole page in its place.
            LogRecord::Image(image) => self.add_page(image.database, image.page),
            LogRecord::Attach { .. }
            | LogRecord::Detach { .. }
            | LogRecord::Commit { .. }
            | LogRecord::RolledBack { .. }
            | LogRecord::RecoveryUndo
            | LogRecord::Term
            | LogRecord::Checkpoint { .. } => {}
        }
    }

    fn add_page(&mut self, database: u8, page: PageNumber) {
        self.pages.entry(database).or_default().insert(page);
    }

    /// The pages of a database.
    pub fn pages(&self, database: u8) -> BTreeSet<PageNumber> {
        self.pages.get(&database).cloned().unwrap_or_default()
    }

    /// Pages that the database has grown to, if it has grown.
    pub fn grown_to(&self, database: u8) -> Option<u32> {
        self.pages_owned.get(&database).copied().filter(|pages| *pages > 0)
    }

    /// Where the log that was read ends.
    pub fn upto(&self) -> Lsn {
        self.upto
    }

    /// Every page that a history touches from `from` on.
    ///
    /// # Errors
    /// Whatever reading finds.
    pub async fn of_history(mut history: HistoryReader, from: Lsn) -> Result<Touched> {
        let mut touched = Touched::default();
        let mut first: Option<Generation> = None;
        while let Some(generation) = history.next().await? {
            if let Some(first) = first.take() {
                first.check_reaches(from)?;
            }
            for record in generation.records(0) {
                let (at, record) = record?;
                if at >= from {
                    touched.add(&record);
                }
            }
            touched.upto = generation.end();
            first = Some(generation).filter(|read| read.header.generation == from.generation);
        }
        Ok(touched)
    }
}

impl LogReader {
    /// Every page that the stream touches from `from` on, as far as it has come now. Hold the log
    /// meanwhile, or [`EngineError::LogMissing`] may be all it says.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] for log that was purged, [`EngineError::ForeignLog`] where the
    /// place lies behind the end of its generation or of the log, and whatever reading finds.
    pub async fn touched_since(&self, from: Lsn) -> Result<Touched> {
        let files = self.generations().await?;
        self.check_has_come_to(&files, from)?;
        let first = from.generation.max(1);
        if files.last().is_some_and(|last| last.generation >= first)
            && !files.iter().any(|file| file.generation == first)
        {
            let path = self.names().directory().to_owned();
            return Err(EngineError::LogMissing { generation: first, path });
        }
        Touched::of_history(self.read_history(first).await?, from).await
    }
}
