//! Reads a database without attaching it: no log, no cache, no lock, nothing written.
//!
//! It accepts what Windows leaves in its files (deleted nodes, leftover version flags, compressed
//! keys, old checksums, columns and flags of later formats) and trusts nothing: every page is
//! checked before it is used, a single flipped bit is corrected in memory and counted, and damage
//! ends the scan with an error that names the place. A dirty database is read only on request; its
//! pages may then be from different moments.

mod compression;
mod long_value;
mod row;
mod text;
mod tree;
mod value;

use std::cell::Cell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, DiskError, File, Files, Handle, OpenMode, Purpose};

pub(crate) use compression::Packed;
pub use compression::{CompressionFault, decompress};
pub use long_value::LongValueScan;
pub use row::{Row, Rows};
pub use text::{TextCounts, TextFormat, write_table};
pub use tree::{LoadedPage, TreeScan};
pub use value::Value;

use crate::catalog::{CatalogDecoder, Place, PlacedTable, system};
use crate::page::PageView;
use crate::verify::used::reach;
use crate::{
    DatabaseHeader, DatabaseState, FormatError, HeaderCopy, PageClass, PageNumber, PageSize,
    classify, mend,
};

/// Why a database cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk reported an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The content is wrong.
    #[error("{path}: {fault}", path = path.display())]
    Format {
        /// Database file.
        path: PathBuf,
        /// Where and what.
        fault: FormatError,
    },
    /// The table inherits columns from a table that is not in the catalog, and where its own lie in
    /// a record depends on those.
    #[error(
        "{path}: the table {table} inherits columns from {template}, which the database does not \
         have, so that its rows cannot be read; \
         list or count it",
        path = path.display()
    )]
    Inherits {
        /// Database file.
        path: PathBuf,
        /// The table.
        table: String,
        /// Where its other columns are declared.
        template: String,
    },
    /// A value is compressed in a way of a later format.
    #[error(
        "{path}: a value is compressed by method {method}, which later versions of Windows use and \
         this program cannot expand; \
         the database is not damaged for that, read the value with another program",
        path = path.display()
    )]
    Packed {
        /// Database file.
        path: PathBuf,
        /// Number of the method.
        method: u8,
    },
    /// The database was not shut down cleanly.
    #[error("{path} was not shut down cleanly (-550); recover it with its log first",
        path = path.display())]
    Dirty {
        /// Database file.
        path: PathBuf,
    },
}

/// What to do with a database that was not shut down cleanly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenDirty {
    /// Refuse it.
    Refuse,
    /// Read what is there.
    Read,
}

/// A database open for reading. Cheap to clone.
#[derive(Clone)]
pub struct DatabaseReader {
    shared: Rc<Shared>,
}

struct Shared {
    file: File,
    handle: Handle,
    context: Context,
    header: DatabaseHeader,
    header_copy: HeaderCopy,
    page_size: PageSize,
    page_max: PageNumber,
    tables: Vec<PlacedTable>,
    corrected: Cell<u64>,
}

/// Two copies of the longest header.
const HEADERS_BYTES_MAX: u64 = 2 * 32768;

/// A page on its way.
struct PendingPage {
    page: PageNumber,
    answer: Pin<Box<dyn Future<Output = Result<Buffer, DiskError>>>>,
}

impl DatabaseReader {
    /// Opens a database and reads its catalog; if the catalog is damaged, its shadow.
    ///
    /// # Errors
    /// When the file cannot be read, is no database, is dirty and should not be, or both copies of
    /// its catalog are damaged.
    pub async fn open(
        files: &Files,
        handle: &Handle,
        path: impl AsRef<Path>,
        when_dirty: WhenDirty,
    ) -> Result<Self, ReadError> {
        let mut reader = Self::open_without_catalog(files, handle, path, when_dirty).await?;
        let tables = reader.read_catalog().await?;
        let shared = Rc::get_mut(&mut reader.shared).expect("nobody else has seen the reader yet");
        shared.tables = tables;
        Ok(reader)
    }

    /// Opens a database for reading its pages and trees; it has no tables then.
    ///
    /// # Errors
    /// When the file cannot be read, is no database, or is dirty and should not be.
    pub async fn open_without_catalog(
        files: &Files,
        handle: &Handle,
        path: impl AsRef<Path>,
        when_dirty: WhenDirty,
    ) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let context = Context::of(Purpose::DatabaseRead);
        let file = files.open(path, OpenMode::Read, context).await?;
        let (header, header_copy) = read_header(&file).await?;
        if header.state != DatabaseState::Clean && when_dirty == WhenDirty::Refuse {
            return Err(ReadError::Dirty { path: path.to_owned() });
        }
        let page_size = header.page_size().expect("a decoded header has a valid page size");
        let pages = file.opened().length_bytes / page_size.bytes() as u64;
        Ok(Self {
            shared: Rc::new(Shared {
                handle: handle.clone(),
                context,
                header,
                header_copy,
                page_size,
                page_max: u32::try_from(pages.saturating_sub(2)).unwrap_or(u32::MAX),
                tables: Vec::new(),
                corrected: Cell::new(0),
                file,
            }),
        })
    }

    async fn read_catalog(&self) -> Result<Vec<PlacedTable>, ReadError> {
        let place = |object, root| Place { object, root };
        let primary = self.catalog_of(place(system::CATALOG_OBJECT, system::CATALOG_ROOT)).await;
        let Err(error @ ReadError::Format { .. }) = primary else {
            return primary;
        };
        let shadow = self.catalog_of(place(system::SHADOW_OBJECT, system::SHADOW_ROOT)).await;
        shadow.map_err(|_| error)
    }

    async fn catalog_of(&self, place: Place) -> Result<Vec<PlacedTable>, ReadError> {
        let mut scan = self.scan(place);
        let mut decoder = CatalogDecoder::new(self.page_size());
        while let Some(leaf) = scan.next_leaf().await? {
            let page = leaf.number();
            for line in 0..leaf.view().lines() {
                let node = leaf
                    .view()
                    .node(line)
                    .map_err(|fault| self.fault(FormatError::Page { page, fault }))?;
                if !node.is_deleted() {
                    let pushed = decoder.push(node.data);
                    pushed
                        .map_err(|fault| self.fault(FormatError::Catalog { page, line, fault }))?;
                }
            }
        }
        Ok(decoder.finish())
    }

    /// Closes the file. Other clones of this reader become useless.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn close(self) -> Result<(), ReadError> {
        Ok(self.shared.file.close(self.shared.context).await?)
    }

    /// The header.
    pub fn header(&self) -> &DatabaseHeader {
        &self.shared.header
    }

    /// Which copy of the header was whole.
    pub fn header_copy(&self) -> HeaderCopy {
        self.shared.header_copy
    }

    /// The page size.
    pub fn page_size(&self) -> PageSize {
        self.shared.page_size
    }

    /// Number of the last page in the file.
    pub fn page_max(&self) -> PageNumber {
        self.shared.page_max
    }

    /// How many pages the file lacks that the database owns, and whether more may be missing,
    /// because what says how far it reaches is among them.
    ///
    /// # Errors
    /// When a page cannot be read that is needed to know.
    pub async fn pages_missing(&self) -> Result<(u64, bool), ReadError> {
        let Shared { file, page_size, .. } = &*self.shared;
        Ok(reach(file, *page_size).await?.pages_missing(*page_size, file.opened().length_bytes))
    }

    /// Every table, the system's included, in the order of their object numbers.
    pub fn tables(&self) -> &[PlacedTable] {
        &self.shared.tables
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<&PlacedTable> {
        self.tables().iter().find(|placed| placed.table.name.eq_ignore_ascii_case(name))
    }

    /// How many pages were read with a flipped bit, corrected in memory.
    pub fn corrected(&self) -> u64 {
        self.shared.corrected.get()
    }

    /// All nodes of a tree, page by page, in the order of their keys.
    pub fn scan(&self, place: Place) -> TreeScan {
        TreeScan::new(self.clone(), place, Vec::new())
    }

    /// The nodes of a tree, page by page, from the first whose key is at least `key`.
    pub fn scan_from(&self, place: Place, key: &[u8]) -> TreeScan {
        TreeScan::new(self.clone(), place, key.to_vec())
    }

    /// The rows of a table in the order of its primary key.
    pub fn rows(&self, placed: &PlacedTable) -> Rows {
        Rows::new(self.scan(placed.place), placed)
    }

    /// Reads and checks a page.
    ///
    /// # Errors
    /// When there is no such page, it cannot be read or it is damaged.
    pub async fn read_page(&self, page: PageNumber) -> Result<LoadedPage, ReadError> {
        let pending = self.start_read(page)?;
        self.finish_read(pending).await
    }

    fn start_read(&self, page: PageNumber) -> Result<PendingPage, ReadError> {
        let page_max = self.page_max();
        if page == 0 || page > page_max {
            return Err(self.fault(FormatError::PageOutside { page, page_max }));
        }
        let shared = &self.shared;
        let buffer = shared.file.allocate(shared.page_size.bytes());
        let answer = shared.file.read(shared.page_size.offset_of(page), buffer, shared.context);
        Ok(PendingPage { page, answer: Box::pin(answer) })
    }

    async fn finish_read(&self, pending: PendingPage) -> Result<LoadedPage, ReadError> {
        let PendingPage { page, answer } = pending;
        let mut buffer = answer.await?;
        let class = classify(&buffer, page);
        if class != PageClass::Ok {
            if mend(&mut buffer, page).is_none() {
                return Err(self.fault(FormatError::PageDamaged { page, class }));
            }
            self.shared.corrected.set(self.corrected() + 1);
        }
        Ok(LoadedPage::new(page, buffer, self.page_size()))
    }

    fn fault(&self, fault: FormatError) -> ReadError {
        ReadError::Format { path: self.shared.file.path().to_owned(), fault }
    }

    fn packed(&self, method: u8) -> ReadError {
        ReadError::Packed { path: self.shared.file.path().to_owned(), method }
    }

    fn view_fault<'a, T>(
        &self,
        page: PageNumber,
        view: PageView<'a>,
        look: impl FnOnce(PageView<'a>) -> Result<T, crate::page::PageFault>,
    ) -> Result<T, ReadError> {
        look(view).map_err(|fault| self.fault(FormatError::Page { page, fault }))
    }

    /// Lets other tasks run; called once per page so that a scan of cached pages does not hold the
    /// executor.
    async fn pause(&self) {
        self.shared.handle.yield_now().await;
    }
}

/// Reads the header of an open file by the shadow rule.
///
/// # Errors
/// When it cannot be read or neither copy is whole.
async fn read_header(file: &File) -> Result<(DatabaseHeader, HeaderCopy), ReadError> {
    let alignment = u64::from(file.opened().alignment_bytes.max(1));
    let length = file.opened().length_bytes.min(HEADERS_BYTES_MAX) / alignment * alignment;
    let mut start = file.allocate(length as usize);
    if length > 0 {
        start = file.read(0, start, Context::of(Purpose::Header)).await?;
    }
    DatabaseHeader::choose(&start).map_err(|fault| ReadError::Format {
        path: file.path().to_owned(),
        fault: fault.of_file(file.opened().length_bytes),
    })
}
