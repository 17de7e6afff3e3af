//! Writing a page front to back, for pages whose whole content is known: no searching, no moving,
//! one pass. The result is byte for byte what [`super::PageMut`] gives when the same nodes are
//! inserted in order.

use std::borrow::Cow;

use super::{PageMut, PageView, TAG_BYTES, TAGS_MAX, field, node_flags};
use crate::{PageNumber, PageSize};

/// The flush type of a page written front to back: it is written for the first time.
pub const PREPARED_FLUSH_TYPE: u8 = 1;

/// Key words, the longest separator of a prepared tree and the child.
const CHILD_NODE_BYTES_MAX: usize = 4 + 16 + 4;

/// A page being filled in key order.
pub struct PageBuilder<'a> {
    bytes: &'a mut [u8],
    size: PageSize,
    data_end: usize,
    tags: usize,
}

impl<'a> PageBuilder<'a> {
    /// Starts an empty page. `external` is the space header of a root, else the key prefix.
    /// Whatever was in `bytes` is written over: by nodes, or by zeros where none comes.
    pub fn new(
        bytes: &'a mut [u8],
        size: PageSize,
        page: PageNumber,
        object: u32,
        flags: u32,
        external: &[u8],
    ) -> Self {
        let mut formatted = PageMut::new(bytes, size);
        formatted.format_ends(page, object, flags, external);
        formatted.set_flush_type(PREPARED_FLUSH_TYPE);
        Self { bytes, size, data_end: external.len(), tags: 1 }
    }

    /// Adds a node whose key is `prefix_bytes` of the external header and then `suffix`; returns
    /// the place of its data.
    #[inline]
    pub fn push(&mut self, prefix_bytes: usize, suffix: &[u8], data_bytes: usize) -> &mut [u8] {
        let key_words = if prefix_bytes > 0 { 4 } else { 2 };
        let node_bytes = key_words + suffix.len() + data_bytes;
        let start = self.size.header_bytes() + self.data_end;
        let flags = if prefix_bytes > 0 { u16::from(node_flags::COMPRESSED) } else { 0 };
        let (in_tag, in_node) =
            if self.size.is_large() { (0, flags << 13) } else { (flags << 13, 0) };
        let mut first_word = suffix.len() as u16;
        if prefix_bytes > 0 {
            self.put_u16(start + 2, first_word);
            first_word = prefix_bytes as u16;
        }
        self.put_u16(start, first_word | in_node);
        self.add_tag(node_bytes, in_tag);
        let (suffix_start, data_start) = (start + key_words, start + key_words + suffix.len());
        self.bytes[suffix_start..data_start].copy_from_slice(suffix);
        &mut self.bytes[data_start..data_start + data_bytes]
    }

    /// Adds a branch entry, which is short: it is put together first and written at once.
    #[inline]
    pub fn push_child(&mut self, prefix_bytes: usize, suffix: &[u8], child: PageNumber) {
        let mut node = [0; CHILD_NODE_BYTES_MAX];
        let is_compressed = prefix_bytes > 0;
        let flags = u16::from(if is_compressed { node_flags::COMPRESSED } else { 0 }) << 13;
        let (in_tag, in_node) = if self.size.is_large() { (0, flags) } else { (flags, 0) };
        let key_words = if is_compressed { 4 } else { 2 };
        node[key_words - 2..key_words].copy_from_slice(&(suffix.len() as u16).to_le_bytes());
        let first_word = if is_compressed { prefix_bytes } else { suffix.len() };
        node[..2].copy_from_slice(&(first_word as u16 | in_node).to_le_bytes());
        let child_start = key_words + suffix.len();
        node[key_words..child_start].copy_from_slice(suffix);
        node[child_start..child_start + 4].copy_from_slice(&child.to_le_bytes());
        let start = self.size.header_bytes() + self.data_end;
        let tags_start = self.size.bytes() - TAG_BYTES * self.tags;
        if start + CHILD_NODE_BYTES_MAX <= tags_start {
            // A copy of a constant length is a few instructions. What lies behind the node is
            // written over later.
            self.bytes[start..start + CHILD_NODE_BYTES_MAX].copy_from_slice(&node);
        } else {
            self.bytes[start..start + child_start + 4].copy_from_slice(&node[..child_start + 4]);
        }
        self.add_tag(child_start + 4, in_tag);
    }

    /// Adds a node as [`node_bytes`] made it.
    pub fn push_stored(&mut self, (flags, node): (u8, Vec<u8>)) {
        let start = self.size.header_bytes() + self.data_end;
        self.bytes[start..start + node.len()].copy_from_slice(&node);
        let in_tag = if self.size.is_large() { 0 } else { u16::from(flags) << 13 };
        self.add_tag(node.len(), in_tag);
    }

    #[inline]
    fn add_tag(&mut self, node_bytes: usize, flag_bits: u16) {
        self.tags += 1;
        let slot = self.size.bytes() - TAG_BYTES * self.tags;
        self.put_u16(slot, node_bytes as u16);
        self.put_u16(slot + 2, self.data_end as u16 | flag_bits);
        self.data_end += node_bytes;
    }

    /// Writes the counts and the remaining header fields.
    ///
    /// # Panics
    /// When more was pushed than a page holds.
    pub fn finish(mut self, dbtime: u64, previous: PageNumber, next: PageNumber) {
        assert!(self.tags <= TAGS_MAX, "the layout counted the nodes of a page");
        let area_bytes = self.size.bytes() - self.size.header_bytes();
        let free_bytes = area_bytes
            .checked_sub(self.data_end + self.tags * TAG_BYTES)
            .expect("the layout counted what fits");
        let free_start = self.size.header_bytes() + self.data_end;
        self.bytes[free_start..free_start + free_bytes].fill(0);
        self.put_u16(field::FREE, free_bytes as u16);
        self.put_u16(field::DATA_END, self.data_end as u16);
        self.put_u16(field::TAG_COUNT, self.tags as u16);
        let mut page = PageMut::new(self.bytes, self.size);
        page.set_dbtime(dbtime);
        page.set_siblings(previous, next);
    }

    #[inline]
    fn put_u16(&mut self, offset: usize, value: u16) {
        self.bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
    }
}

/// The flags and bytes of a node as [`PageMut::insert`] would store it on a page with this external
/// header. On large pages the flags are part of the bytes.
pub fn node_bytes(
    size: PageSize,
    external: &[u8],
    is_root: bool,
    key: &[u8],
    data: &[u8],
) -> (u8, Vec<u8>) {
    let cost_bytes = PageMut::node_cost_bytes(external, is_root, key, data) - TAG_BYTES;
    let shared = key.iter().zip(external).take_while(|(left, right)| left == right);
    // The cost tells whether the prefix is worth compressing, so that this rule is stated once.
    let is_compressed = cost_bytes != 2 + key.len() + data.len();
    let prefix_bytes = if is_compressed { shared.count() } else { 0 };
    let mut node = Vec::with_capacity(cost_bytes);
    if is_compressed {
        node.extend_from_slice(&(prefix_bytes as u16).to_le_bytes());
    }
    node.extend_from_slice(&((key.len() - prefix_bytes) as u16).to_le_bytes());
    node.extend_from_slice(&key[prefix_bytes..]);
    node.extend_from_slice(data);
    let flags = if is_compressed { node_flags::COMPRESSED } else { 0 };
    if size.is_large() {
        node[1] |= flags << 5;
    }
    (flags, node)
}

impl PageView<'_> {
    /// Offset from the end of the header, length, and the flags kept in the tag of a small page.
    pub fn node_place(&self, line: usize) -> Option<(usize, usize, u8)> {
        (line < self.lines()).then(|| self.tag(line + 1).ok()).flatten()
    }
}

/// Puts nodes of a formatted page at given places, in line order, and sets the counts.
pub fn place_nodes(
    bytes: &mut [u8],
    size: PageSize,
    external_bytes: usize,
    nodes: &[PlacedNode<'_>],
) {
    let put_u16 = |bytes: &mut [u8], at: usize, value: usize| {
        bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
    };
    let (mut data_end, mut used_bytes) = (external_bytes, external_bytes + TAG_BYTES);
    for (line, node) in nodes.iter().enumerate() {
        let start = size.header_bytes() + node.offset;
        bytes[start..start + node.bytes.len()].copy_from_slice(&node.bytes);
        let slot = size.bytes() - TAG_BYTES * (line + 2);
        let flags = if size.is_large() { 0 } else { usize::from(node.flags) << 13 };
        put_u16(bytes, slot, node.bytes.len());
        put_u16(bytes, slot + 2, node.offset | flags);
        data_end = data_end.max(node.offset + node.bytes.len());
        used_bytes += node.bytes.len() + TAG_BYTES;
    }
    let area_bytes = size.bytes() - size.header_bytes();
    put_u16(bytes, field::FREE, area_bytes.saturating_sub(used_bytes));
    put_u16(bytes, field::DATA_END, data_end);
    put_u16(bytes, field::TAG_COUNT, nodes.len() + 1);
}

/// A node with its place on a page.
pub struct PlacedNode<'a> {
    /// From the end of the page header.
    pub offset: usize,
    /// Flags kept in the tag of a small page.
    pub flags: u8,
    /// Key and data as stored.
    pub bytes: Cow<'a, [u8]>,
}

/// Sets the flags word as it is, flush type included.
pub fn set_all_flags(bytes: &mut [u8], flags: u32) {
    bytes[field::FLAGS..field::FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
}
