//! One open database file: its header pair, its flush map, and page I/O with every check a page has
//! to pass.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, Durability, File, Files, Handle, OpenMode, Permits, Purpose};

use crate::error::{EngineError, PageDamage, Result};
use crate::flushmap::{
    FlushMap, flush_map_path, flush_map_path_of_device, open_flush_map, save_flush_map,
};
use crate::free_space::FreeSpace;
use crate::header::{DatabaseHeader, DatabaseState};
use crate::known_page::KnownPage;
use crate::log::GENERATION_BYTES;
use crate::page::PageView;
use crate::page_class::{PageClass, classify, correct};
use crate::{PageNumber, PageSize};

/// Every change of a page takes a database time and at least one byte of log.
const DBTIMES_PER_GENERATION: u64 = GENERATION_BYTES;

/// What page checks found while the database was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageStatistics {
    /// Pages read and used.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Single flipped bits corrected.
    pub corrected: u64,
    /// Pages refused.
    pub refused: u64,
    /// Flush map pages that were damaged when the map was loaded.
    pub flush_map_pages_damaged: u32,
    /// Whether one copy of the header was damaged after a clean end; opening the database mends it.
    /// After a crash that is no damage.
    pub header_copy_damaged: bool,
}

/// Writes remembered for readers that go around the cache.
const RECENT_WRITES: usize = 4096;

/// Which pages are being written or were written lately.
#[derive(Default)]
struct RecentWrites {
    started: u64,
    under_way: BTreeMap<u64, (PageNumber, u32)>,
    recent: VecDeque<(u64, PageNumber, u32)>,
}

impl RecentWrites {
    fn start(&mut self, first: PageNumber, count: u32) -> u64 {
        self.started += 1;
        self.under_way.insert(self.started, (first, count));
        self.recent.push_back((self.started, first, count));
        if self.recent.len() > RECENT_WRITES {
            self.recent.pop_front();
        }
        self.started
    }

    fn touches(&self, page: PageNumber, since: u64) -> bool {
        let holds = |first: PageNumber, count: u32| page >= first && page - first < count;
        let forgotten = self.recent.front().is_some_and(|(oldest, _, _)| *oldest > since + 1);
        forgotten
            || self.under_way.values().any(|(first, count)| holds(*first, *count))
            || self
                .recent
                .iter()
                .rev()
                .take_while(|(number, _, _)| *number > since)
                .any(|(_, first, count)| holds(*first, *count))
    }
}

/// An open database file. The instance owns the rest: cache, log, transactions.
pub struct Database {
    number: u8,
    size: PageSize,
    file: File,
    handle: Handle,
    context: Context,
    header: RefCell<DatabaseHeader>,
    /// One who changes the header at a time.
    header_turn: Permits,
    dbtime: Cell<u64>,
    pages_owned: Cell<u32>,
    pages_in_use: Cell<u32>,
    flush_map: RefCell<FlushMap>,
    flush_map_file: File,
    unsynced: Cell<bool>,
    writes: RefCell<RecentWrites>,
    statistics: Cell<PageStatistics>,
    free_space: FreeSpace,
}

impl Database {
    /// Opens a database file for writing, whatever its state; judging the state is the caller's
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
        let size = header.page_size().expect("a decoded header has a page size");
        let pages_owned =
            (file.opened().length_bytes / size.bytes() as u64).saturating_sub(2) as u32;
        let (flush_map_file, flush_map, damaged) =
            open_flush_map(files, flush_map_path, header.signature, pages_owned, header_context)
                .await?;
        Ok(Database {
            number,
            size,
            file,
            context,
            dbtime: Cell::new(header.dbtime_max),
            handle: handle.clone(),
            header: RefCell::new(header),
            header_turn: Permits::new(1),
            pages_owned: Cell::new(pages_owned),
            pages_in_use: Cell::new(pages_owned),
            flush_map: RefCell::new(flush_map),
            flush_map_file,
            // What an earlier process wrote may be in a volatile cache, where it reads as if it
            // were on the disk.
            unsynced: Cell::new(true),
            writes: RefCell::default(),
            statistics: Cell::new(PageStatistics {
                flush_map_pages_damaged: damaged,
                header_copy_damaged,
                ..PageStatistics::default()
            }),
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
        self.header.borrow().clone()
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
        self.statistics.get()
    }

    fn count(&self, change: impl FnOnce(&mut PageStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// The latest database time given out.
    pub fn dbtime(&self) -> u64 {
        self.dbtime.get()
    }

    /// The next database time.
    pub fn next_dbtime(&self) -> u64 {
        self.dbtime.set(self.dbtime.get() + 1);
        self.dbtime.get()
    }

    /// Makes sure times given out later are above `dbtime`.
    pub fn raise_dbtime(&self, dbtime: u64) {
        self.dbtime.set(self.dbtime.get().max(dbtime));
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
        let mut header = self.header.borrow_mut();
        header.object_max = header.object_max.max(object);
    }

    /// Changes the header and writes both copies, the first made durable before the second is
    /// touched.
    ///
    /// That is a task of its own: who stops waiting must not leave one copy written, nor let the
    /// next one write while that is under way.
    pub async fn update_header(
        self: &Rc<Self>,
        change: impl FnOnce(&mut DatabaseHeader) + 'static,
    ) -> Result<()> {
        let this = self.clone();
        let changed = self.handle.spawn(async move { this.change_header(change).await });
        changed.await
    }

    async fn change_header(&self, change: impl FnOnce(&mut DatabaseHeader)) -> Result<()> {
        let _turn = self.header_turn.acquire().await;
        let bytes = {
            let mut header = self.header.borrow_mut();
            change(&mut header);
            // In a dirty header the time runs ahead by more changes than a generation can hold. The
            // header is written again for every generation that changes pages, so no page ever
            // carries a time above its header's, and times given out after recovery are new even
            // when the checkpoint has passed all changes of this database.
            header.dbtime_max = match header.state {
                DatabaseState::Dirty => {
                    header.dbtime_max.max(self.dbtime.get() + DBTIMES_PER_GENERATION)
                }
                _ => self.dbtime.get(),
            };
            header.encode()
        };
        self.write_header(&bytes).await
    }

    async fn write_header(&self, bytes: &[u8]) -> Result<()> {
        for copy in 0..2 {
            let mut buffer = self.file.allocate(bytes.len());
            buffer.copy_from_slice(bytes);
            let offset = copy * bytes.len() as u64;
            self.file
                .write(offset, buffer, Durability::Durable, self.label(Purpose::Header))
                .await?;
        }
        Ok(())
    }

    /// Makes the header say that recovery needs the log up to `required`, before a page that
    /// depends on it is written, and that the log on stable storage goes up to `committed`.
    pub async fn require_generation(self: &Rc<Self>, required: u32, committed: u32) -> Result<()> {
        if self.header.borrow().generation_max_required >= required {
            return Ok(());
        }
        self.update_header(move |header| {
            header.generation_max_required = header.generation_max_required.max(required);
            header.generation_max_committed =
                header.generation_max_committed.max(required.max(committed));
        })
        .await
    }

    /// Makes the header say that there is log up to `generation`, before anything in it is
    /// acknowledged: without that nobody would miss it.
    pub async fn note_generation(self: &Rc<Self>, generation: u32) -> Result<()> {
        if self.header.borrow().generation_max_committed >= generation {
            return Ok(());
        }
        self.update_header(move |header| {
            header.generation_max_committed = header.generation_max_committed.max(generation);
        })
        .await
    }

    /// Reads a page and checks it. `check_flush_type` is off during redo, where the map may be
    /// older than the file.
    pub async fn read_page(
        &self,
        page: PageNumber,
        purpose: Purpose,
        check_flush_type: bool,
    ) -> Result<Buffer> {
        let buffer = self.file.allocate(self.size.bytes());
        let mut buffer =
            self.file.read(self.size.offset_of(page), buffer, self.label(purpose)).await?;
        match self.check_buffer(page, &mut buffer, 0, check_flush_type) {
            Ok(()) => {
                self.count(|statistics| statistics.pages_read += 1);
                Ok(buffer)
            }
            Err(damage) => {
                self.count(|statistics| statistics.refused += 1);
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
        match buffer.vouch(position).and_then(|vouch| KnownPage::of(vouch, page)) {
            Some(KnownPage::Empty) => Err(PageDamage::Uninitialized),
            Some(KnownPage::Sound { flush_type }) => {
                self.check_flush_type(page, flush_type, check_flush_type)
            }
            None => {
                let bytes = &mut buffer[position..position + self.size.bytes()];
                self.check_page(page, bytes, check_flush_type)
            }
        }
    }

    /// Checks a page as read from its place; corrects single flipped bits in memory.
    pub fn check_page(
        &self,
        page: PageNumber,
        bytes: &mut [u8],
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        match classify(bytes, page) {
            PageClass::Ok => {}
            PageClass::Uninitialized => return Err(PageDamage::Uninitialized),
            PageClass::Correctable { .. } => {
                correct(bytes, page);
                self.count(|statistics| statistics.corrected += 1);
            }
            PageClass::Bad { .. } => return Err(PageDamage::Checksum),
            PageClass::WrongPageNumber { found, .. } => {
                return Err(PageDamage::WrongPageNumber { found });
            }
        }
        let view = PageView::new(bytes, self.size);
        view.check_bounds()?;
        self.check_flush_type(page, view.flush_type(), check_flush_type)
    }

    fn check_flush_type(
        &self,
        page: PageNumber,
        found: u8,
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        let expected = self.flush_map.borrow().get(page);
        if check_flush_type && expected != 0 && found != expected {
            return Err(PageDamage::LostFlush { found, expected });
        }
        if expected == 0 || !check_flush_type {
            self.flush_map.borrow_mut().set(page, found);
        }
        Ok(())
    }

    /// The flush type of a page's latest write: the map's, or else what the page says.
    pub fn flush_type(&self, page: PageNumber, on_page: u8) -> u8 {
        match self.flush_map.borrow().get(page) {
            0 => on_page,
            known => known,
        }
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
        let writes = self.writes.borrow();
        writes.under_way.first_key_value().map_or(writes.started, |(number, _)| number - 1)
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
        self.writes.borrow_mut().under_way.remove(&number);
        let written = written?;
        // A sync that ran meanwhile does not cover this write.
        self.unsynced.set(true);
        {
            let mut map = self.flush_map.borrow_mut();
            for (index, page) in written.chunks_exact(self.size.bytes()).enumerate() {
                map.set(first + index as u32, PageView::new(page, self.size).flush_type());
            }
        }
        self.count(|statistics| statistics.pages_written += count);
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
        let changed = self.flush_map.borrow_mut().take_changed();
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

/// Reads a header by the shadow rule.
pub async fn read_header(file: &File, context: Context) -> Result<DatabaseHeader> {
    Ok(read_headers(file, context).await?.0)
}

/// Reads a header by the shadow rule, and says whether the other copy is damaged though the
/// database was shut down cleanly.
async fn read_headers(file: &File, context: Context) -> Result<(DatabaseHeader, bool)> {
    let two_pages = 2 * PageSize::KIB_32.bytes() as u64;
    let bytes = file.opened().length_bytes.min(two_pages) as usize;
    let bad = |why: String| EngineError::BadHeader { path: file.path().to_owned(), why };
    if bytes < 2 * PageSize::KIB_4.bytes() {
        return Err(bad(format!("the file has only {bytes} bytes")));
    }
    let bytes = bytes / PageSize::KIB_4.bytes() * PageSize::KIB_4.bytes();
    let start = file.read(0, file.allocate(bytes), context).await?;
    let (header, _) = DatabaseHeader::choose(&start).map_err(|error| bad(error.to_string()))?;
    let page_bytes = header.page_size().expect("a decoded header has a page size").bytes();
    let mut copies = start.chunks(page_bytes).take(2);
    let is_damaged = !copies.all(|copy| DatabaseHeader::decode(copy).is_ok());
    let is_clean = header.state == DatabaseState::Clean;
    Ok((header, is_damaged && is_clean))
}

/// Reads the header of a database that is not open.
pub async fn peek_header(files: &Files, path: &Path, context: Context) -> Result<DatabaseHeader> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let file = files.open(path, OpenMode::Read, metadata).await?;
    let header = read_header(&file, context).await;
    file.close(metadata).await?;
    header
}

/// A path and the pages found damaged in it.
pub type DamageList = Vec<(PathBuf, PageNumber, PageDamage)>;
