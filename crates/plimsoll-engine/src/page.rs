//! One database page: header fields, tag array, nodes. Reading ([`PageView`]) works on any bytes
//! without panicking; changing ([`PageMut`]) is only for pages that were checked when they came
//! from disk.
//!
//! ```text
//! | header 40 or 80 B | external header (tag 0) | node (tag 1) | node (tag 2) | .. free .. | tag 2 | tag 1 | tag 0 |
//! tag  = u16 length, u16 offset from the end of the header; small pages keep the node flags in the top 3 offset bits
//! node = [u16 prefix length if compressed] u16 suffix length, suffix, data; large pages keep the flags in its first u16
//! ```
//!
//! A *line* counts nodes from 0; line `n` is tag `n + 1`. The key of a compressed node starts with
//! that many bytes of the external header, which on every page but a root is nothing but that
//! prefix.

mod bulk;
mod change;
mod view;

pub use bulk::{
    PREPARED_FLUSH_TYPE, PageBuilder, PlacedNode, node_bytes, place_nodes, set_all_flags,
};
pub use change::PageMut;
pub use view::{Node, PageFault, PageView};

/// Bits of the page flags word.
pub mod page_flags {
    /// Root of a tree.
    pub const ROOT: u32 = 0x1;
    /// Leaf.
    pub const LEAF: u32 = 0x2;
    /// Branch whose children are leaves.
    pub const PARENT_OF_LEAF: u32 = 0x4;
    /// Freed page.
    pub const EMPTY: u32 = 0x8;
    /// Page of an owned- or available-extent tree.
    pub const SPACE: u32 = 0x20;
    /// Page of a secondary index.
    pub const INDEX: u32 = 0x40;
    /// Page of a long-value tree.
    pub const LONG_VALUE: u32 = 0x80;
    /// Always set: record format.
    pub const NEW_RECORD_FORMAT: u32 = 0x800;
    /// Always set: checksum format.
    pub const NEW_CHECKSUM: u32 = 0x2000;
    /// Two bits that cycle 1, 2, 3 with every write of the page.
    pub const FLUSH_TYPE_SHIFT: u32 = 15;
    /// Mask of the flush type in place.
    pub const FLUSH_TYPE_MASK: u32 = 0x3 << FLUSH_TYPE_SHIFT;
    /// The bits that tell which kind of tree a page belongs to.
    pub const TREE_KIND: u32 = SPACE | INDEX | LONG_VALUE;
}

/// Bits of a node's three flag bits.
pub mod node_flags {
    /// A version of this node is kept in memory.
    pub const VERSIONED: u8 = 1;
    /// Deleted, waiting to be removed.
    pub const DELETED: u8 = 2;
    /// The key shares a prefix with the external header.
    pub const COMPRESSED: u8 = 4;
    /// All there are: a tag has three bits for them.
    pub const ALL: u8 = VERSIONED | DELETED | COMPRESSED;
}

/// Byte offsets of the header fields.
mod field {
    pub const DBTIME: usize = 8;
    pub const PREVIOUS: usize = 16;
    pub const NEXT: usize = 20;
    pub const OBJECT: usize = 24;
    pub const FREE: usize = 28;
    pub const UNCOMMITTED_FREE: usize = 30;
    pub const DATA_END: usize = 32;
    pub const TAG_COUNT: usize = 34;
    pub const FLAGS: usize = 36;
    pub const OWN_PAGE: usize = 64;
}

pub(crate) const TAG_BYTES: usize = 4;
/// What the root page of a tree says of its space lies where others have their prefix.
pub(crate) const SPACE_HEADER_BYTES: usize = 16;
/// A page counts its tags in 12 bits. A large one has room for more of the smallest nodes.
pub(crate) const TAGS_MAX: usize = 0x0FFF;
/// A node gives the length of its key in 13 bits.
pub(crate) const KEY_BYTES_MAX: usize = 0x1FFF;
/// A shared prefix of up to this many bytes costs more to compress than it saves.
const PREFIX_WORTH_BYTES: usize = 2;
