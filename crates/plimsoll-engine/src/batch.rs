//! A structural change of several pages that happens whole or not at all.
//!
//! Work on a tree never waits in the middle. A step looks at pages in memory; if one is missing it
//! stops with [`Stop::Fault`], the caller reads the page and starts the step again. Between two
//! waits nothing else runs, so a step needs no latches: it sees one state of the database and
//! leaves the next.
//!
//! Changes are first made to drafts. When all is done, one log record describes them, and only then
//! the drafts become the pages. A step that stops half-way has changed nothing.

use std::collections::BTreeMap;

use plimsoll_io::Buffer;

use crate::bounds::{image_bytes_max, row_bytes_max, structure_bytes_max};
use crate::cache::{Cache, PageKey};
use crate::database::Database;
use crate::edit::Edit;
use crate::error::{EngineError, PageDamage};
use crate::log::record::{ImageRecord, LogRecord, PageEdits, RowRecord, StructureRecord};
use crate::log::writer::{Appended, Log};
use crate::page::{PageFault, PageMut, PageView};
use crate::{PageNumber, PageSize};

/// Why a step could not be finished.
#[derive(Debug)]
pub enum Stop {
    /// A page must be read first.
    Fault(PageNumber),
    /// The database file must grow first, by at least this many pages.
    Grow {
        /// Pages.
        pages: u32,
    },
    /// It has gone on for long: others may run before it is started again. What it has found out
    /// until then is noted.
    Breathe,
    /// It cannot be done.
    Failed(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Stop::Failed(error)
    }
}

/// Result of a step.
pub type Step<T> = Result<T, Stop>;

struct Draft {
    bytes: Vec<u8>,
    dbtime_before: u64,
    edits: Vec<Edit>,
}

/// Whether torn writes can be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageImages {
    /// Before the first change after a write (or read) of a page its image is logged. So between
    /// the position a dirty page holds the checkpoint at and its changes there is always its whole
    /// content.
    Logged,
    /// Torn pages are found and named, not mended.
    NotLogged,
}

/// Where steps find pages and put changes.
pub struct Batch<'a> {
    cache: &'a Cache,
    log: &'a Log,
    database: &'a Database,
    images: PageImages,
    drafts: BTreeMap<PageNumber, Draft>,
    pages_owned: u32,
}

impl<'a> Batch<'a> {
    /// An empty batch for one database.
    pub fn new(cache: &'a Cache, log: &'a Log, database: &'a Database, images: PageImages) -> Self {
        Self { cache, log, database, images, drafts: BTreeMap::new(), pages_owned: 0 }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        self.database
    }

    fn key(&self, page: PageNumber) -> PageKey {
        PageKey { database: self.database.number(), page }
    }

    /// A failed step because of a damaged page.
    pub fn damaged(&self, page: PageNumber, damage: PageDamage) -> Stop {
        Stop::Failed(self.database.damaged(page, damage))
    }

    /// Looks at a page as this batch leaves it.
    pub fn with<R>(
        &self,
        page: PageNumber,
        look: impl FnOnce(PageView<'_>) -> Result<R, PageFault>,
    ) -> Step<R> {
        let size = self.database.size();
        let result = if let Some(draft) = self.drafts.get(&page) {
            look(PageView::new(&draft.bytes, size))
        } else {
            if page == 0 || page > self.database.pages_owned() {
                return Err(
                    self.damaged(page, PageDamage::Link("a page number outside the database"))
                );
            }
            let frame = self.cache.resident(self.key(page)).ok_or(Stop::Fault(page))?;
            let bytes = frame.bytes();
            look(PageView::new(&bytes, size))
        };
        result.map_err(|fault| self.damaged(page, fault.into()))
    }

    /// Changes a page.
    pub fn edit(&mut self, page: PageNumber, edit: Edit) -> Step<()> {
        let size = self.database.size();
        if !self.drafts.contains_key(&page) {
            let (bytes, dbtime_before) = if edit.makes_anew() {
                (vec![0; size.bytes()], 0)
            } else {
                self.with(page, |view| Ok((view.bytes().to_vec(), view.dbtime())))?
            };
            self.drafts.insert(page, Draft { bytes, dbtime_before, edits: Vec::new() });
        }
        let draft = self.drafts.get_mut(&page).expect("it was just put there");
        edit.apply(&mut PageMut::new(&mut draft.bytes, size), page);
        if edit.makes_anew() {
            draft.edits.clear();
        }
        draft.edits.push(edit);
        Ok(())
    }

    /// Notes that the database owns pages up to this one when the batch is done.
    pub fn set_pages_owned(&mut self, pages_owned: u32) {
        self.pages_owned = pages_owned;
    }

    /// Whether anything was changed.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Logs the changes and makes the drafts the pages.
    pub fn commit(mut self) {
        if self.drafts.is_empty() {
            return;
        }
        let dbtime = self.database.next_dbtime();
        let drafts = std::mem::take(&mut self.drafts);
        for (page, draft) in &drafts {
            if !draft.edits[0].makes_anew() {
                self.log_image(*page);
            }
        }
        let pages = drafts
            .iter()
            .map(|(page, draft)| PageEdits {
                page: *page,
                dbtime_before: draft.dbtime_before,
                edits: draft.edits.clone(),
            })
            .collect();
        let record = StructureRecord {
            database: self.database.number(),
            dbtime,
            pages_owned: self.pages_owned,
            pages,
        };
        let appended = self.log.append(&LogRecord::Structure(record));
        self.check_length(appended, structure_bytes_max);
        for (page, mut draft) in drafts {
            PageMut::new(&mut draft.bytes, self.database.size()).set_dbtime(dbtime);
            let anew = draft.edits[0].makes_anew();
            let frame = match self.cache.peek(self.key(page)) {
                Some(frame) => {
                    frame.bytes_mut(self.database).copy_from_slice(&draft.bytes);
                    frame
                }
                None => self.cache.install(self.key(page), self.page_buffer(&draft.bytes)),
            };
            if anew {
                // Redo makes the page anew from this record, whatever a torn write left.
                frame.set_imaged(true);
            }
            self.cache.mark_dirty(&frame, appended.start, appended.end);
        }
    }

    /// That every record fits a generation is true as far as these bounds are.
    fn check_length(&self, appended: Appended, bytes_max: fn(PageSize) -> usize) {
        let bytes = (appended.end.offset - appended.start.offset) as usize;
        let bytes_max = bytes_max(self.database.size());
        debug_assert!(
            bytes <= bytes_max,
            "a record of {bytes} bytes, and {bytes_max} were expected"
        );
    }

    fn page_buffer(&self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.database.file().allocate(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Logs an image of a page in memory if a torn write of it could not be mended otherwise.
    fn log_image(&self, page: PageNumber) {
        if self.images == PageImages::NotLogged {
            return;
        }
        let Some(frame) = self.cache.peek(self.key(page)) else {
            return;
        };
        if frame.is_imaged() {
            return;
        }
        let (front, back) = {
            let bytes = frame.bytes();
            let view = PageView::new(&bytes, self.database.size());
            let (front_bytes, back_bytes) = view.used_ends();
            (bytes[..front_bytes].to_vec(), bytes[bytes.len() - back_bytes..].to_vec())
        };
        let record = ImageRecord { database: self.database.number(), page, front, back };
        let appended = self.log.append(&LogRecord::Image(record));
        self.check_length(appended, image_bytes_max);
        frame.set_imaged(true);
        self.cache.mark_dirty(&frame, appended.start, appended.end);
    }

    /// Logs and makes one row change on a leaf in memory; the batch must be empty. `record` comes
    /// without database times.
    pub fn row(&self, mut record: RowRecord) -> Step<()> {
        assert!(self.drafts.is_empty(), "a row change is a step of its own");
        let frame = self.cache.resident(self.key(record.page)).ok_or(Stop::Fault(record.page))?;
        self.log_image(record.page);
        record.dbtime_before = PageView::new(&frame.bytes(), self.database.size()).dbtime();
        record.dbtime = self.database.next_dbtime();
        let (line, dbtime) = (usize::from(record.line), record.dbtime);
        let record = LogRecord::Row(record);
        let appended = self.log.append(&record);
        self.check_length(appended, row_bytes_max);
        let LogRecord::Row(record) = record else { unreachable!("it was made a row record above") };
        {
            let mut bytes = frame.bytes_mut(self.database);
            let mut page = PageMut::new(&mut bytes, self.database.size());
            record.change.apply(&mut page, line, &record.key);
            page.set_dbtime(dbtime);
        }
        self.cache.mark_dirty(&frame, appended.start, appended.end);
        Ok(())
    }
}
