//! A new, bare database: header pair and the root with its two extent trees. Catalog and tables come on top.

use std::path::Path;

use plimsoll_io::{Context, Durability, Files, OpenMode, Purpose};

use crate::checksum::set_checksum;
use crate::edit::{Edit, NewNode};
use crate::error::Result;
use crate::header::DatabaseHeader;
use crate::logtime::Signature;
use crate::page::{PageMut, page_flags};
use crate::space::{SPACE_HEADER_BYTES, SpaceHeader};
use crate::{PageNumber, PageSize};

/// Object of the database root.
pub const ROOT_OBJECT: u32 = 1;
/// Pages the root and its extent trees take.
const ROOT_PAGES: u32 = 3;
/// Pages of a fresh database, as Windows makes it: 256 with the header pair.
pub const FRESH_PAGES: u32 = 254;
/// Database time of the first pages.
const FIRST_DBTIME: u64 = 0x40;

/// Creates a bare database of [`FRESH_PAGES`] pages. The path must be free.
pub async fn create_bare_database(
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
    header.dbtime_max = FIRST_DBTIME + u64::from(ROOT_PAGES);
    header.object_max = ROOT_OBJECT;
    let header_bytes = header.encode();
    for copy in 0..2 {
        let mut buffer = file.allocate(size.bytes());
        buffer.copy_from_slice(&header_bytes);
        file.write(copy * size.bytes() as u64, buffer, Durability::Volatile, prepare)
            .await?;
    }
    for page in 1..=ROOT_PAGES {
        let mut buffer = file.allocate(size.bytes());
        buffer.fill(0);
        root_page(&mut buffer, size, page);
        file.write(size.offset_of(page), buffer, Durability::Volatile, prepare)
            .await?;
    }
    file.sync(prepare).await?;
    files
        .sync_directory(path.parent().unwrap_or(Path::new(".")), metadata)
        .await?;
    file.close(metadata).await?;
    Ok(())
}

fn root_page(bytes: &mut [u8], size: PageSize, number: PageNumber) {
    let extent = |last: PageNumber, pages: u32| NewNode {
        flags: 0,
        key: last.to_be_bytes().to_vec(),
        data: pages.to_le_bytes().to_vec(),
    };
    let leaf_root = page_flags::ROOT | page_flags::LEAF;
    let (flags, external, nodes) = match number {
        1 => (
            leaf_root,
            SpaceHeader::multiple(FRESH_PAGES, 0, 2).to_bytes(),
            Vec::new(),
        ),
        2 => (
            leaf_root | page_flags::SPACE,
            vec![0; SPACE_HEADER_BYTES],
            vec![extent(FRESH_PAGES, FRESH_PAGES)],
        ),
        _ => (
            leaf_root | page_flags::SPACE,
            vec![0; SPACE_HEADER_BYTES],
            vec![extent(FRESH_PAGES, FRESH_PAGES - ROOT_PAGES)],
        ),
    };
    let mut page = PageMut::new(bytes, size);
    Edit::Format {
        object: ROOT_OBJECT,
        flags,
        previous: 0,
        next: 0,
        external,
        nodes,
    }
    .apply(&mut page, number);
    page.set_dbtime(FIRST_DBTIME + u64::from(number));
    page.set_flush_type(1);
    set_checksum(bytes, number);
}
