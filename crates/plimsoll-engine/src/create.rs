//! A new database without user tables: header pair, root, catalog. Laid out like a fresh database made by Windows.

use std::path::Path;

use plimsoll_io::{Context, Durability, Files, OpenMode, Purpose};

use crate::PageSize;
use crate::catalog::system::{LOCALES_OBJECT, USER_PAGE_MIN};
use crate::catalog::system_tables;
use crate::error::Result;
use crate::header::DatabaseHeader;
use crate::logtime::Signature;
use crate::prepare::system::System;

/// Pages of a fresh database, as Windows makes it: 256 with the header pair.
pub const FRESH_PAGES: u32 = 254;
/// Above the database time of every page of a fresh database.
const FRESH_DBTIME: u64 = 0x100;

/// Creates a database of [`FRESH_PAGES`] pages. The path must be free.
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
    let metadata = Context {
        purpose: Purpose::Metadata,
        ..context
    };
    let prepare = Context {
        purpose: Purpose::Prepare,
        ..context
    };
    let file = files.open(path, OpenMode::Create, metadata).await?;
    file.extend(size.file_bytes(FRESH_PAGES), prepare).await?;
    let mut header = DatabaseHeader::new(size, signature, Signature::default());
    header.dbtime_max = FRESH_DBTIME;
    header.object_max = LOCALES_OBJECT;
    let header_bytes = header.encode();
    let available = [(FRESH_PAGES, FRESH_PAGES + 1 - USER_PAGE_MIN)];
    let system = System::of_tables(size, FRESH_PAGES, &system_tables(), &available);
    let pages = [&header_bytes, &header_bytes].into_iter().chain(&system.pages);
    for (index, page) in pages.enumerate() {
        let mut buffer = file.allocate(size.bytes());
        buffer.copy_from_slice(page);
        file.write(
            index as u64 * size.bytes() as u64,
            buffer,
            Durability::Volatile,
            prepare,
        )
        .await?;
    }
    file.sync(prepare).await?;
    files
        .sync_directory(path.parent().unwrap_or(Path::new(".")), metadata)
        .await?;
    file.close(metadata).await?;
    Ok(())
}
