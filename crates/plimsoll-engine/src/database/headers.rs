//! The two copies of a database header, and the database times that it bounds.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use plimsoll_io::{Context, Durability, File, Files, Handle, OpenMode, Permits, Purpose};

use crate::PageSize;
use crate::error::{EngineError, Result};
use crate::header::{DatabaseHeader, DatabaseState};
use crate::log::GENERATION_BYTES;

/// Every change of a page takes a database time and at least one byte of log.
const DBTIMES_PER_GENERATION: u64 = GENERATION_BYTES;

/// What a header promises of the log.
#[derive(Clone, Copy)]
struct Promised {
    /// Pages may depend on the log up to this generation.
    required: u32,
    /// There is log up to this generation.
    committed: u32,
}

impl Promised {
    fn by(header: &DatabaseHeader) -> Promised {
        Promised {
            required: header.generation_max_required,
            committed: header.generation_max_committed,
        }
    }
}

/// See the module text.
pub(super) struct HeaderPair {
    file: File,
    handle: Handle,
    context: Context,
    header: RefCell<DatabaseHeader>,
    /// What is in the file for certain: a header in memory may be on its way there.
    durable: Cell<Promised>,
    /// One who changes the header at a time.
    turn: Permits,
    dbtime: Cell<u64>,
}

impl HeaderPair {
    /// The header as it was read.
    pub(super) fn new(
        file: File,
        handle: Handle,
        header: DatabaseHeader,
        context: Context,
    ) -> HeaderPair {
        HeaderPair {
            file,
            handle,
            context: Context { purpose: Purpose::Header, ..context },
            dbtime: Cell::new(header.dbtime_max),
            durable: Cell::new(Promised::by(&header)),
            header: RefCell::new(header),
            turn: Permits::new(1),
        }
    }

    /// The header as last written or changed.
    pub(super) fn header(&self) -> std::cell::Ref<'_, DatabaseHeader> {
        self.header.borrow()
    }

    /// The latest database time given out.
    pub(super) fn dbtime(&self) -> u64 {
        self.dbtime.get()
    }

    /// Makes sure times given out later are above `dbtime`.
    pub(super) fn raise_dbtime(&self, dbtime: u64) {
        self.dbtime.set(self.dbtime.get().max(dbtime));
    }

    /// Changes the header in memory; it is written with the next change.
    pub(super) fn note(&self, change: impl FnOnce(&mut DatabaseHeader)) {
        change(&mut self.header.borrow_mut());
    }

    /// Changes the header and writes both copies, the first made durable before the second is
    /// touched.
    ///
    /// That is a task of its own: who stops waiting must not leave one copy written, nor let the
    /// next one write while that is under way.
    pub(super) async fn update(
        self: &Rc<Self>,
        change: impl FnOnce(&mut DatabaseHeader) + 'static,
    ) -> Result<()> {
        let this = self.clone();
        let changed = self.handle.spawn(async move { this.change(change).await });
        changed.await
    }

    /// The same where what is in the file does not promise enough. Whoever asks meanwhile waits
    /// until it does.
    async fn promise(
        self: &Rc<Self>,
        is_enough: impl Fn(Promised) -> bool + 'static,
        change: impl FnOnce(&mut DatabaseHeader) + 'static,
    ) -> Result<()> {
        if is_enough(self.durable.get()) {
            return Ok(());
        }
        let this = self.clone();
        let promised = self.handle.spawn(async move {
            let _turn = this.turn.acquire().await;
            match is_enough(this.durable.get()) {
                true => Ok(()),
                false => this.change_alone(change).await,
            }
        });
        promised.await
    }

    async fn change(&self, change: impl FnOnce(&mut DatabaseHeader)) -> Result<()> {
        let _turn = self.turn.acquire().await;
        self.change_alone(change).await
    }

    async fn change_alone(&self, change: impl FnOnce(&mut DatabaseHeader)) -> Result<()> {
        let (bytes, promised) = {
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
            (header.encode(), Promised::by(&header))
        };
        self.write(&bytes).await?;
        self.durable.set(promised);
        Ok(())
    }

    async fn write(&self, bytes: &[u8]) -> Result<()> {
        for copy in 0..2 {
            let mut buffer = self.file.allocate(bytes.len());
            buffer.copy_from_slice(bytes);
            let offset = copy * bytes.len() as u64;
            self.file.write(offset, buffer, Durability::Durable, self.context).await?;
        }
        Ok(())
    }

    /// Makes the header say that recovery needs the log up to `required`, before a page that
    /// depends on it is written, and that the log on stable storage goes up to `committed`.
    pub(super) async fn require_generation(
        self: &Rc<Self>,
        required: u32,
        committed: u32,
    ) -> Result<()> {
        let raise = move |header: &mut DatabaseHeader| {
            header.generation_max_required = header.generation_max_required.max(required);
            header.generation_max_committed =
                header.generation_max_committed.max(required.max(committed));
        };
        self.promise(move |durable| durable.required >= required, raise).await
    }

    /// Makes the header say that there is log up to `generation`, before anything in it is
    /// acknowledged: without that nobody would miss it.
    pub(super) async fn note_generation(self: &Rc<Self>, generation: u32) -> Result<()> {
        let raise = move |header: &mut DatabaseHeader| {
            header.generation_max_committed = header.generation_max_committed.max(generation);
        };
        self.promise(move |durable| durable.committed >= generation, raise).await
    }
}

/// Reads a header by the shadow rule.
pub async fn read_header(file: &File, context: Context) -> Result<DatabaseHeader> {
    Ok(read_headers(file, context).await?.0)
}

/// Reads a header by the shadow rule, and says whether the other copy is damaged though the
/// database was shut down cleanly.
pub(super) async fn read_headers(file: &File, context: Context) -> Result<(DatabaseHeader, bool)> {
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
