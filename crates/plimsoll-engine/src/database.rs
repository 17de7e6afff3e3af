//! One open database file: its header pair, its flush map, and page I/O with every check a page has
//! to pass.

mod headers;
mod page_checks;
mod recent_writes;

pub use headers::{peek_header, read_header};
pub use page_checks::PageStatistics;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, Durability, File, Files, Handle, OpenMode, Purpose};

use self::headers::{HeaderPair, read_headers};
use self::page_checks::PageChecks;
use self::recent_writes::RecentWrites;
use crate::error::{EngineError, PageDamage, Result};
use crate::flushmap::{flush_map_path, flush_map_path_of_device, open_flush_map, save_flush_map};
use crate::free_space::FreeSpace;
use crate::header::{DatabaseHeader, FORMAT_UPDATE, FORMAT_VERSION};
use crate::page::PageView;
use crate::{PageNumber, PageSize};

/// An open database file. The instance owns the rest: cache, log, transactions.
pub struct Database {
    number: u8,
    size: PageSize,
    file: File,
    context: Context,
    headers: Rc<HeaderPair>,
    pages_owned: Cell<u32>,
    pages_in_use: Cell<u32>,
    checks: PageChecks,
    flush_map_file: File,
    unsynced: Cell<bool>,
    writes: RefCell<RecentWrites>,
    free_space: FreeSpace,
}

impl Database {
    /// Opens a database file for writing, whatever its state; checking the state is the caller's
    /// part.
    ///
    /// `log_directory` takes the flush map of a database that is a whole block device.
    pub async fn open(
        files: &Files,
        handle: &Handle,
        path: &Path,
        log_directory: &Path,
        number: u8,
        context: Context,
    ) -> Result<Database> {
        let context = Context { database: number, ..context };
        let metadata = Context { purpose: Purpose::Metadata, ..context };
        let file = files.open(path, OpenMode::Write, metadata).await?;
        let flush_map_path = if file.opened().is_device {
            flush_map_path_of_device(log_directory, number)
        } else {
            flush_map_path(path)
        };
        match Self::with_file(files, handle, file.clone(), flush_map_path, number, context).await {
            Ok(database) => Ok(database),
            Err(error) => {
                file.close(metadata).await?;
                Err(error)
            }
        }
    }

    async fn with_file(
        files: &Files,
        handle: &Handle,
        file: File,
        flush_map_path: PathBuf,
        number: u8,
        context: Context,
    ) -> Result<Database> {
        let header_context = Context { purpose: Purpose::Header, ..context };
        let (header, header_copy_damaged) = read_headers(&file, header_context).await?;
        check_format(&header, file.path())?;
        let size = header.page_size().expect("a decoded header has a page size");
        let pages_owned =
            (file.opened().length_bytes / size.bytes() as u64).saturating_sub(2) as u32;
        // A map that lies beside a backup is that of the database it takes the place of.
        let of_pages = (pages_owned, header.is_backup_copy());
        let (flush_map_file, flush_map, damaged) =
            open_flush_map(files, flush_map_path, header.signature, of_pages, header_context)
                .await?;
        let statistics = PageStatistics {
            flush_map_pages_damaged: damaged,
            header_copy_damaged,
            ..PageStatistics::default()
        };
        Ok(Database {
            number,
            size,
            headers: Rc::new(HeaderPair::new(file.clone(), handle.clone(), header, context)),
            file,
            context,
            pages_owned: Cell::new(pages_owned),
            pages_in_use: Cell::new(pages_owned),
            checks: PageChecks::new(size, flush_map, statistics),
            flush_map_file,
            // What an earlier process wrote may be in a volatile cache, where it reads as if it
            // were on the disk.
            unsynced: Cell::new(true),
            writes: RefCell::default(),
            free_space: FreeSpace::default(),
        })
    }

    /// Where its free space may lie.
    pub(crate) fn free_space(&self) -> &FreeSpace {
        &self.free_space
    }

    /// Its number in the instance, from 1.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Its page size.
    pub fn size(&self) -> PageSize {
        self.size
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A copy of the header as last written or changed.
    pub fn header(&self) -> DatabaseHeader {
        self.headers.header().clone()
    }

    /// Pages the file has room for.
    pub fn pages_owned(&self) -> u32 {
        self.pages_owned.get()
    }

    /// Whether the database is a whole block device.
    pub fn is_device(&self) -> bool {
        self.file.opened().is_device
    }

    /// Pages the database has taken: of a file all there is room for, of a block device those up to
    /// the last it owns.
    pub fn pages_in_use(&self) -> u32 {
        if self.is_device() { self.pages_in_use.get() } else { self.pages_owned.get() }
    }

    /// Notes which page is the last that the database root owns.
    pub(crate) fn set_last_owned(&self, last: PageNumber) {
        self.pages_in_use.set(last);
    }

    /// Makes the next pages of a block device blank, as the new pages of a file are: nobody knows
    /// what lies there.
    pub(crate) async fn blank(&self, first: PageNumber, pages: u32) -> Result<()> {
        const RUN_BYTES: usize = 1 << 20;
        let (mut offset, end) = (self.size.offset_of(first), self.size.offset_of(first + pages));
        while offset < end {
            let mut zeros = self.file.allocate(RUN_BYTES.min((end - offset) as usize));
            zeros.fill(0);
            let written =
                self.file.write(offset, zeros, Durability::Volatile, self.label(Purpose::Prepare));
            offset += written.await?.len() as u64;
        }
        Ok(())
    }

    /// What page checks found.
    pub fn statistics(&self) -> PageStatistics {
        self.checks.statistics()
    }

    /// The latest database time given out.
    pub fn dbtime(&self) -> u64 {
        self.headers.dbtime()
    }

    /// The next database time.
    pub fn next_dbtime(&self) -> u64 {
        self.headers.raise_dbtime(self.dbtime() + 1);
        self.dbtime()
    }

    /// Makes sure times given out later are above `dbtime`.
    pub fn raise_dbtime(&self, dbtime: u64) {
        self.headers.raise_dbtime(dbtime);
    }

    /// A damaged-page error for this database.
    pub fn damaged(&self, page: PageNumber, damage: PageDamage) -> EngineError {
        EngineError::DamagedPage { path: self.path().to_owned(), page, damage }
    }

    fn label(&self, purpose: Purpose) -> Context {
        Context { purpose, ..self.context }
    }

    /// Notes that the number of an object is taken. The header says so when it is next written.
    pub(crate) fn note_object(&self, object: u32) {
        self.headers.note(|header| header.object_max = header.object_max.max(object));
    }

    /// Changes the header and writes both copies, the first made durable before the second is
    /// touched. It goes on to the end when nobody waits for it any longer.
    pub async fn update_header(
        self: &Rc<Self>,
        change: impl FnOnce(&mut DatabaseHeader) + 'static,
    ) -> Result<()> {
        self.headers.update(change).await
    }

    /// Makes the header say that recovery needs the log up to `required`, before a page that
    /// depends on it is written, and that the log on stable storage goes up to `committed`.
    pub async fn require_generation(self: &Rc<Self>, required: u32, committed: u32) -> Result<()> {
        self.headers.require_generation(required, committed).await
    }

    /// Makes the header say that there is log up to `generation`, before anything in it is
    /// acknowledged: without that nobody would miss it.
    pub async fn note_generation(self: &Rc<Self>, generation: u32) -> Result<()> {
        self.headers.note_generation(generation).await
    }

    /// Accepts a page as it was read, if it passes every check. `check_flush_type` is off during
    /// redo, where the map may be older than the file.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`], which is counted.
    pub fn accept_page(
        &self,
        page: PageNumber,
        buffer: &mut Buffer,
        check_flush_type: bool,
    ) -> Result<()> {
        match self.checks.check_buffer(page, buffer, 0, check_flush_type) {
            Ok(()) => {
                self.checks.count(|statistics| statistics.pages_read += 1);
                Ok(())
            }
            Err(damage) => {
                self.checks.count(|statistics| statistics.refused += 1);
                Err(self.damaged(page, damage))
            }
        }
    }

    /// Checks the page that begins at `position` of what was read. Where the disk vouches for it,
    /// that is what the check finds.
    pub fn check_buffer(
        &self,
        page: PageNumber,
        buffer: &mut Buffer,
        position: usize,
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        self.checks.check_buffer(page, buffer, position, check_flush_type)
    }

    /// The flush type of a page's latest write: the map's, or else what the page says.
    pub fn flush_type(&self, page: PageNumber, on_page: u8) -> u8 {
        self.checks.flush_type(page, on_page)
    }

    /// Reads `count` pages side by side, unchecked.
    pub async fn read_run(
        &self,
        first: PageNumber,
        count: u32,
        purpose: Purpose,
    ) -> Result<Buffer> {
        let buffer = self.file.allocate(count as usize * self.size.bytes());
        Ok(self.file.read(self.size.offset_of(first), buffer, self.label(purpose)).await?)
    }

    /// A mark in the order of writes: everything finished by now lies before it. See
    /// [`Database::was_written_since`].
    pub fn write_mark(&self) -> u64 {
        self.writes.borrow().mark()
    }

    /// Whether a write of this page is under way, or was at any time since `write_mark` gave
    /// `since`.
    pub fn was_written_since(&self, page: PageNumber, since: u64) -> bool {
        self.writes.borrow().touches(page, since)
    }

    /// Writes already framed pages (checksums set) that lie next to each other, starting with
    /// `first`.
    pub async fn write_pages(
        &self,
        first: PageNumber,
        pages: Buffer,
        purpose: Purpose,
    ) -> Result<()> {
        let count = (pages.len() / self.size.bytes()) as u64;
        self.unsynced.set(true);
        let number = self.writes.borrow_mut().start(first, count as u32);
        let offset = self.size.offset_of(first);
        let written =
            self.file.write(offset, pages, Durability::Volatile, self.label(purpose)).await;
        self.writes.borrow_mut().end(number);
        let written = written?;
        // A sync that ran meanwhile does not cover this write.
        self.unsynced.set(true);
        {
            let mut map = self.checks.flush_map.borrow_mut();
            for (index, page) in written.chunks_exact(self.size.bytes()).enumerate() {
                map.set(first + index as u32, PageView::new(page, self.size).flush_type());
            }
        }
        self.checks.count(|statistics| statistics.pages_written += count);
        Ok(())
    }

    /// Makes everything written so far durable: pages first, then the flush map that speaks of
    /// them.
    pub async fn sync(&self) -> Result<()> {
        if self.unsynced.get() {
            self.unsynced.set(false);
            let synced = self.file.sync(self.label(Purpose::DatabaseWrite)).await;
            if synced.is_err() {
                self.unsynced.set(true);
            }
            synced?;
        }
        let changed = self.checks.flush_map.borrow_mut().take_changed();
        if changed.is_empty() {
            return Ok(());
        }
        save_flush_map(&self.flush_map_file, changed, self.label(Purpose::Header)).await
    }

    /// Extends the file so that it has room for `pages_owned` pages. Durable after
    /// [`Database::sync_length`].
    pub async fn extend(&self, pages_owned: u32) -> Result<()> {
        if pages_owned <= self.pages_owned.get() {
            return Ok(());
        }
        self.file
            .extend(self.size.file_bytes(pages_owned), self.label(Purpose::DatabaseWrite))
            .await?;
        self.unsynced.set(true);
        self.pages_owned.set(self.pages_owned.get().max(pages_owned));
        Ok(())
    }

    /// Makes the length durable, so that a full file system shows before the log speaks of the new
    /// pages.
    pub async fn sync_length(&self) -> Result<()> {
        self.file.sync(self.label(Purpose::DatabaseWrite)).await?;
        Ok(())
    }

    /// Closes both files.
    pub async fn close(&self) -> Result<()> {
        self.file.close(self.label(Purpose::Metadata)).await?;
        self.flush_map_file.close(self.label(Purpose::Metadata)).await?;
        Ok(())
    }
}

/// A path and the pages found damaged in it.
pub type DamageList = Vec<(PathBuf, PageNumber, PageDamage)>;

/// Fails where the format is newer than what is written here: pages of ours among those of a newer
/// engine are understood by neither.
fn check_format(header: &DatabaseHeader, path: &Path) -> Result<()> {
    if (header.version, header.update) <= (FORMAT_VERSION, FORMAT_UPDATE) {
        return Ok(());
    }
    Err(EngineError::BadHeader {
        path: path.to_owned(),
        why: format!(
            "its format {:#x},{:#x} is newer than {FORMAT_VERSION:#x},{FORMAT_UPDATE:#x}, which is \
             written here; it can be read and verified, not opened for changes",
            header.version, header.update
        ),
    })
}
