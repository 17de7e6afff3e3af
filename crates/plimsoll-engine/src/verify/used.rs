//! How far a database reaches by its own account. A device is as long as it is, and behind the
//! database lies what nobody wrote; a file that ends earlier has lost pages, however sound those
//! are that it still has.
//!
//! The last page that the database root owns is the last key of its tree of owned extents. The few
//! pages on the way there are read by themselves. Where one of them is damaged the whole device is
//! checked, which then finds too much rather than too little; of a file the damaged page itself is
//! then the finding. A file is made longer, durably, before its log speaks of the new pages, so
//! this holds for databases that need recovery, too.

use plimsoll_io::{Buffer, Context, DiskError, File, Purpose};

use crate::page::{PageView, SPACE_HEADER_BYTES};
use crate::page_class::{PageClass, classify};
use crate::space::SpaceHeader;
use crate::{PageNumber, PageSize};

/// Deeper than any tree of extents gets.
const LEVELS_MAX: usize = 8;
/// Later formats have a flag byte in front of the header of space and a counter behind.
const LONG_HEADER_BYTES: usize = 25;

/// How far a database reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Up to this page.
    To(PageNumber),
    /// At least up to this page, which is needed to know and lies behind the end of the file.
    AtLeast(PageNumber),
    /// This page is needed to know, and was never written.
    Blank(PageNumber),
    /// That cannot be known.
    Unknown,
}

impl Reach {
    /// The last page that the database is known to own.
    pub(crate) fn last_known(self) -> Option<PageNumber> {
        match self {
            Reach::To(last) | Reach::AtLeast(last) => Some(last),
            Reach::Blank(_) | Reach::Unknown => None,
        }
    }

    /// How many pages a file of this length lacks, and whether more may be missing.
    pub(crate) fn pages_missing(self, size: PageSize, length_bytes: u64) -> (u64, bool) {
        let missing = self.last_known().map_or(0, |last| size.pages_missing(last, length_bytes));
        (missing, missing > 0 && matches!(self, Reach::AtLeast(_)))
    }
}

/// Why a page cannot be used.
enum Lacking {
    Behind,
    Blank,
    Unusable,
    Unread(DiskError),
}

/// Asks the database how far it reaches.
///
/// # Errors
/// A page that is needed to know cannot be read.
pub(crate) async fn reach(file: &File, size: PageSize) -> Result<Reach, DiskError> {
    let mut page = 1;
    for level in 0..LEVELS_MAX {
        let bytes = match read(file, size, page).await {
            Ok(bytes) => bytes,
            Err(Lacking::Behind) => return Ok(Reach::AtLeast(page)),
            Err(Lacking::Blank) => return Ok(Reach::Blank(page)),
            Err(Lacking::Unusable) => return Ok(Reach::Unknown),
            Err(Lacking::Unread(error)) => return Err(error),
        };
        let view = PageView::new(&bytes, size);
        let next = match level {
            0 => owned_root(&view),
            _ if view.is_leaf() => return Ok(last_key(&view).map_or(Reach::Unknown, Reach::To)),
            _ => view.lines().checked_sub(1).and_then(|line| view.child(line).ok()),
        };
        match next {
            Some(next) if next > 0 => page = next,
            _ => return Ok(Reach::Unknown),
        }
    }
    Ok(Reach::Unknown)
}

fn owned_root(root: &PageView<'_>) -> Option<PageNumber> {
    let external = root.external().ok()?;
    let bytes = match external.len() {
        LONG_HEADER_BYTES => &external[1..1 + SPACE_HEADER_BYTES],
        _ => external,
    };
    let header = SpaceHeader::from_bytes(bytes)?;
    (header.parent == 0 && header.is_multiple()).then_some(header.owned_root_or_bitmap)
}

fn last_key(leaf: &PageView<'_>) -> Option<PageNumber> {
    let key = leaf.node(leaf.lines().checked_sub(1)?).ok()?.key();
    let start = key.len().checked_sub(4)?;
    Some(u32::from_be_bytes(key[start..].try_into().ok()?))
}

async fn read(file: &File, size: PageSize, page: PageNumber) -> Result<Buffer, Lacking> {
    let offset = size.offset_of(page);
    if offset + size.bytes() as u64 > file.opened().length_bytes {
        return Err(Lacking::Behind);
    }
    let buffer = file.allocate(size.bytes());
    let read = file.read(offset, buffer, Context::of(Purpose::Checksum)).await;
    let bytes = read.map_err(Lacking::Unread)?;
    match classify(&bytes, page) {
        PageClass::Ok if PageView::new(&bytes, size).check_bounds().is_ok() => Ok(bytes),
        PageClass::Uninitialized => Err(Lacking::Blank),
        _ => Err(Lacking::Unusable),
    }
}
