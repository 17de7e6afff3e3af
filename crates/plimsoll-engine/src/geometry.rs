//! Page sizes and where a page lies in its file.
//!
//! A database file is a header page, its shadow, then data pages: logical page `p` (counted from 1)
//! starts at byte `(p + 1) * page size`. Pages of 16 and 32 KiB ("large") have a longer header and
//! four checksum blocks.

use std::fmt;

/// A logical page number; 1 is the database root, 0 means "none".
pub type PageNumber = u32;

/// A valid page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

impl PageSize {
    /// Exchange 2003.
    pub const KIB_4: PageSize = PageSize(4096);
    /// Exchange 2007.
    pub const KIB_8: PageSize = PageSize(8192);
    /// Not used by any Exchange version, valid in the format.
    pub const KIB_16: PageSize = PageSize(16384);
    /// Exchange 2010 and later.
    pub const KIB_32: PageSize = PageSize(32768);
    /// All of them.
    pub const ALL: [PageSize; 4] = [Self::KIB_4, Self::KIB_8, Self::KIB_16, Self::KIB_32];

    /// The page size of `bytes` bytes, if the format knows it.
    pub fn from_bytes(bytes: u32) -> Option<PageSize> {
        Self::ALL.into_iter().find(|size| size.0 == bytes)
    }

    /// Bytes per page.
    pub fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Whether pages have the long header and four checksum blocks.
    pub fn is_large(self) -> bool {
        self.0 > 8192
    }

    /// Bytes of page header: 40 or 80.
    pub fn header_bytes(self) -> usize {
        if self.is_large() { 80 } else { 40 }
    }

    /// Bytes of one checksum block: the page, or a quarter of a large page.
    pub fn block_bytes(self) -> usize {
        if self.is_large() { self.bytes() / 4 } else { self.bytes() }
    }

    /// Byte offset of a logical page in its file.
    pub fn offset_of(self, page: PageNumber) -> u64 {
        (u64::from(page) + 1) * u64::from(self.0)
    }

    /// File length of a database that owns pages 1 to `pages_owned`.
    pub fn file_bytes(self, pages_owned: u32) -> u64 {
        (u64::from(pages_owned) + 2) * u64::from(self.0)
    }

    /// How many pages a file of this length lacks of a database that owns pages 1 to `pages_owned`.
    pub fn pages_missing(self, pages_owned: u32, length_bytes: u64) -> u64 {
        let pages = (length_bytes / u64::from(self.0)).saturating_sub(2);
        u64::from(pages_owned).saturating_sub(pages)
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} KiB", self.0 / 1024)
    }
}
