//! How much of a block device a database takes: a device is as long as it is, and behind the database lies what nobody wrote.
//!
//! The last page that the database root owns is the last key of its tree of owned extents. The few pages on the way there are
//! read by themselves. Where one of them is damaged the whole device is checked, which then finds too much rather than too little.

use plimsoll_io::{Buffer, Context, File, Purpose};

use crate::page::PageView;
use crate::page_class::{PageClass, classify};
use crate::space::SpaceHeader;
use crate::{PageNumber, PageSize};

/// Deeper than any tree of extents gets.
const LEVELS_MAX: usize = 8;

/// Bytes from the start of the device to the end of the database; `None` where that cannot be known.
pub(super) async fn used_bytes(file: &File, size: PageSize) -> Option<u64> {
    let root = read(file, size, 1).await?;
    let header = SpaceHeader::from_bytes(PageView::new(&root, size).external().ok()?)?;
    let mut page = header.is_multiple().then_some(header.owned_root_or_bitmap)?;
    for _ in 0..LEVELS_MAX {
        let bytes = read(file, size, page).await?;
        let view = PageView::new(&bytes, size);
        let last = view.node(view.lines().checked_sub(1)?).ok()?;
        if view.is_leaf() {
            let key = last.key();
            let start = key.len().checked_sub(4)?;
            let end = u32::from_be_bytes(key[start..].try_into().ok()?);
            return Some(size.file_bytes(end)).filter(|bytes| *bytes <= file.opened().length_bytes);
        }
        page = view.child(view.lines() - 1).ok()?;
    }
    None
}

async fn read(file: &File, size: PageSize, page: PageNumber) -> Option<Buffer> {
    let offset = size.offset_of(page);
    if page == 0 || offset + size.bytes() as u64 > file.opened().length_bytes {
        return None;
    }
    let buffer = file.allocate(size.bytes());
    let bytes = file
        .read(offset, buffer, Context::of(Purpose::Checksum))
        .await
        .ok()?;
    (classify(&bytes, page) == PageClass::Ok && PageView::new(&bytes, size).check_bounds().is_ok())
        .then_some(bytes)
}
