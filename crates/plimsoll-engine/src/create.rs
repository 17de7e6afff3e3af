//! A new database without user tables: header pair, root, catalog. Laid out like a fresh database
//! made by Windows.

pub(crate) mod system;

use std::path::Path;

use plimsoll_io::{Context, Durability, File, Files, OpenMode, Purpose};

use crate::PageSize;
use crate::catalog::system::{LOCALES_OBJECT, USER_PAGE_MIN};
use crate::catalog::system_tables;
use crate::error::Result;
use crate::header::DatabaseHeader;
use crate::logtime::Signature;

use self::system::SystemPages;

/// Pages of a fresh database, as Windows makes it: 256 with the header pair.
pub const FRESH_PAGES: u32 = 254;
/// Above the database time of every page of a fresh database.
const FRESH_DBTIME: u64 = 0x100;

/// Creates a database of [`FRESH_PAGES`] pages. The path must be free. On failure what was begun is
/// deleted.
///
/// # Errors
/// When the path is taken or the disk cannot hold it.
pub async fn create_database(
    files: &Files,
    path: &Path,
    size: PageSize,
    signature: Signature,
    context: Context,
) -> Result<()> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let file = files.open(path, OpenMode::Create, metadata).await?;
    let mut made = fill(&file, size, signature, context).await;
    let closed = file.close(metadata).await;
    if made.is_ok() {
        let directory = path.parent().unwrap_or(Path::new("."));
        made = match closed {
            Ok(()) => files.sync_directory(directory, metadata).await.map_err(Into::into),
            Err(error) => Err(error.into()),
        };
    }
    if made.is_err() {
        // The first error is the one to report; a file that cannot be deleted either has to be
        // deleted by hand.
        let _ = files.delete(path, metadata).await;
    }
    made
}

async fn fill(file: &File, size: PageSize, signature: Signature, context: Context) -> Result<()> {
    let prepare = Context { purpose: Purpose::Prepare, ..context };
    file.extend(size.file_bytes(FRESH_PAGES), prepare).await?;
    let mut header = DatabaseHeader::new(size, signature, Signature::default());
    header.dbtime_max = FRESH_DBTIME;
    header.object_max = LOCALES_OBJECT;
    let header_bytes = header.encode();
    let available = [(FRESH_PAGES, FRESH_PAGES + 1 - USER_PAGE_MIN)];
    let system = SystemPages::new(size, FRESH_PAGES, &system_tables(), &available);
    let pages = [&header_bytes, &header_bytes].into_iter().chain(&system.pages);
    for (index, page) in pages.enumerate() {
        let mut buffer = file.allocate(size.bytes());
        buffer.copy_from_slice(page);
        file.write(index as u64 * size.bytes() as u64, buffer, Durability::Volatile, prepare)
            .await?;
    }
    file.sync(prepare).await?;
    Ok(())
}
