//! Changing a page. The caller has checked that what it adds fits; wrong use is a bug and panics.

use super::view::u16_at;
use super::{PREFIX_WORTH_BYTES, PageView, TAG_BYTES, TAGS_MAX, field, node_flags, page_flags};
use crate::{PageNumber, PageSize};

/// A page to be changed.
pub struct PageMut<'a> {
    bytes: &'a mut [u8],
    size: PageSize,
}

/// How many leading bytes of `key` come from the page's prefix.
fn shared_prefix_bytes(key: &[u8], prefix: &[u8]) -> usize {
    let shared = key.iter().zip(prefix).take_while(|(left, right)| left == right).count();
    if shared > PREFIX_WORTH_BYTES { shared } else { 0 }
}

impl<'a> PageMut<'a> {
    /// Takes `bytes` as a page.
    ///
    /// # Panics
    /// When `bytes` is not exactly one page.
    pub fn new(bytes: &'a mut [u8], size: PageSize) -> Self {
        assert_eq!(bytes.len(), size.bytes(), "a page needs exactly its size");
        Self { bytes, size }
    }

    /// Reading side of the same page.
    pub fn view(&self) -> PageView<'_> {
        PageView::new(self.bytes, self.size)
    }

    fn put_u16(&mut self, offset: usize, value: usize) {
        let value = u16::try_from(value).expect("page fields are below 64 KiB");
        self.bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, offset: usize, value: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Makes an empty page. `flags` are the kind and level bits; the always-set bits are added. The
    /// flush type is kept.
    pub fn format(&mut self, page: PageNumber, object: u32, flags: u32, external: &[u8]) {
        self.bytes[self.size.header_bytes()..].fill(0);
        self.format_ends(page, object, flags, external);
    }

    /// What [`PageMut::format`] does to both ends of the page: header, external header and first
    /// tag. The area between keeps what it holds.
    pub fn format_ends(&mut self, page: PageNumber, object: u32, flags: u32, external: &[u8]) {
        let flush_type = self.view().flags() & page_flags::FLUSH_TYPE_MASK;
        self.bytes[..self.size.header_bytes()].fill(0);
        self.put_u32(field::OBJECT, object);
        let always = page_flags::NEW_RECORD_FORMAT | page_flags::NEW_CHECKSUM;
        self.put_u32(field::FLAGS, (flags & !page_flags::FLUSH_TYPE_MASK) | always | flush_type);
        if self.size.is_large() {
            self.put_u32(field::OWN_PAGE, page);
        }
        self.put_u16(field::TAG_COUNT, 1);
        let area_bytes = self.size.bytes() - self.size.header_bytes();
        self.put_u16(field::FREE, area_bytes - TAG_BYTES - external.len());
        self.put_u16(field::DATA_END, external.len());
        self.write_tag(0, 0, external.len(), 0);
        let start = self.size.header_bytes();
        self.bytes[start..start + external.len()].copy_from_slice(external);
    }

    /// Sets the database time of the last change.
    pub fn set_dbtime(&mut self, dbtime: u64) {
        self.bytes[field::DBTIME..field::DBTIME + 8].copy_from_slice(&dbtime.to_le_bytes());
    }

    /// Sets the leaf neighbours.
    pub fn set_siblings(&mut self, previous: PageNumber, next: PageNumber) {
        self.put_u32(field::PREVIOUS, previous);
        self.put_u32(field::NEXT, next);
    }

    /// Sets the kind and level bits, keeping the always-set bits and the flush type.
    pub fn set_flags(&mut self, flags: u32) {
        let kept =
            page_flags::FLUSH_TYPE_MASK | page_flags::NEW_RECORD_FORMAT | page_flags::NEW_CHECKSUM;
        let flags = (flags & !kept) | (self.view().flags() & kept);
        self.put_u32(field::FLAGS, flags);
    }

    /// Sets the 2-bit flush type.
    pub fn set_flush_type(&mut self, flush_type: u8) {
        let flags = self.view().flags() & !page_flags::FLUSH_TYPE_MASK;
        self.put_u32(
            field::FLAGS,
            flags | (u32::from(flush_type & 3) << page_flags::FLUSH_TYPE_SHIFT),
        );
    }

    /// How many leading bytes of a key a page with this external header keeps only there.
    pub fn prefix_bytes(external: &[u8], is_root: bool, key: &[u8]) -> usize {
        if is_root { 0 } else { shared_prefix_bytes(key, external) }
    }

    /// Bytes a node takes, its tag included, on a page with this external header.
    pub fn node_cost_bytes(external: &[u8], is_root: bool, key: &[u8], data: &[u8]) -> usize {
        let prefix_bytes = Self::prefix_bytes(external, is_root, key);
        let prefix_word = if prefix_bytes > 0 { 2 } else { 0 };
        TAG_BYTES + prefix_word + 2 + key.len() - prefix_bytes + data.len()
    }

    /// Bytes this node would take here, its tag included.
    pub fn cost_here_bytes(&self, key: &[u8], data: &[u8]) -> usize {
        let view = self.view();
        Self::node_cost_bytes(self.external(), view.is_root(), key, data)
    }

    fn external(&self) -> &[u8] {
        self.view().external().expect("the page was checked when it was read")
    }

    fn write_tag(&mut self, tag: usize, offset: usize, length: usize, flags: u8) {
        let slot = self.size.bytes() - TAG_BYTES * (tag + 1);
        let flag_bits = if self.size.is_large() { 0 } else { usize::from(flags) << 13 };
        self.put_u16(slot, length);
        self.put_u16(slot + 2, offset | flag_bits);
    }

    fn contiguous_free_bytes(&self) -> usize {
        let tags = self.view().tag_count() * TAG_BYTES;
        self.size.bytes() - self.size.header_bytes() - self.view().data_end() - tags
    }

    /// Moves all data together so that the free space is one piece.
    fn defragment(&mut self) {
        let header_bytes = self.size.header_bytes();
        let count = self.view().tag_count();
        let mut packed = Vec::with_capacity(self.view().data_end());
        let mut tags = Vec::with_capacity(count);
        for tag in 0..count {
            let (offset, length, flags) = self.view().tag(tag).expect("checked page");
            tags.push((packed.len(), length, flags));
            packed.extend_from_slice(
                &self.bytes[header_bytes + offset..header_bytes + offset + length],
            );
        }
        for (tag, (offset, length, flags)) in tags.into_iter().enumerate() {
            self.write_tag(tag, offset, length, flags);
        }
        self.bytes[header_bytes..header_bytes + packed.len()].copy_from_slice(&packed);
        self.put_u16(field::DATA_END, packed.len());
    }

    /// Finds `length` contiguous bytes at the end of the data, leaving room for `new_tags` more
    /// tags.
    fn claim(&mut self, length: usize, new_tags: usize) -> usize {
        let needed = length + new_tags * TAG_BYTES;
        assert!(self.view().free_bytes() >= needed, "the caller checks that a node fits");
        if self.contiguous_free_bytes() < needed {
            self.defragment();
        }
        let offset = self.view().data_end();
        self.put_u16(field::DATA_END, offset + length);
        offset
    }

    fn give(&mut self, freed_bytes: usize) {
        self.put_u16(field::FREE, self.view().free_bytes() + freed_bytes);
    }

    fn take(&mut self, taken_bytes: usize) {
        self.put_u16(field::FREE, self.view().free_bytes() - taken_bytes);
    }

    /// Inserts a node before `line`.
    pub fn insert(&mut self, line: usize, flags: u8, key: &[u8], data: &[u8]) {
        let lines = self.view().lines();
        assert!(line <= lines, "line {line} of {lines}");
        assert!(self.view().tag_count() < TAGS_MAX, "the caller checks that a node can be counted");
        let prefix_bytes = Self::prefix_bytes(self.external(), self.view().is_root(), key);
        let mut flags = flags & !node_flags::COMPRESSED;
        let mut node = Vec::with_capacity(4 + key.len() + data.len());
        if prefix_bytes > 0 {
            flags |= node_flags::COMPRESSED;
            node.extend_from_slice(&(prefix_bytes as u16).to_le_bytes());
        }
        node.extend_from_slice(&((key.len() - prefix_bytes) as u16).to_le_bytes());
        node.extend_from_slice(&key[prefix_bytes..]);
        node.extend_from_slice(data);
        if self.size.is_large() {
            node[1] = (node[1] & 0x1F) | (flags << 5);
        }
        let offset = self.claim(node.len(), 1);
        let start = self.size.header_bytes() + offset;
        self.bytes[start..start + node.len()].copy_from_slice(&node);
        // Tags grow downwards: shift the later ones down by one slot.
        let end = self.size.bytes();
        let (first_slot, last_slot) = (end - TAG_BYTES * (line + 1), end - TAG_BYTES * (lines + 1));
        self.bytes.copy_within(last_slot..first_slot, last_slot - TAG_BYTES);
        self.put_u16(field::TAG_COUNT, lines + 2);
        self.write_tag(line + 1, offset, node.len(), flags);
        self.take(node.len() + TAG_BYTES);
    }

    /// Removes the node of `line`.
    pub fn remove(&mut self, line: usize) {
        let lines = self.view().lines();
        let (offset, length, _) = self.view().tag(line + 1).expect("checked page");
        let end = self.size.bytes();
        let (removed_slot, last_slot) =
            (end - TAG_BYTES * (line + 2), end - TAG_BYTES * (lines + 1));
        self.bytes.copy_within(last_slot..removed_slot, last_slot + TAG_BYTES);
        self.bytes[last_slot..last_slot + TAG_BYTES].fill(0);
        self.put_u16(field::TAG_COUNT, lines);
        if offset + length == self.view().data_end() {
            self.put_u16(field::DATA_END, offset);
        }
        self.give(length + TAG_BYTES);
    }

    /// Removes every node from `line` on.
    pub fn truncate(&mut self, line: usize) {
        while self.view().lines() > line {
            self.remove(self.view().lines() - 1);
        }
    }

    /// Sets the flags of a node; whether its key is compressed cannot change.
    pub fn set_node_flags(&mut self, line: usize, flags: u8) {
        let (offset, length, old_flags) = self.view().tag(line + 1).expect("checked page");
        if self.size.is_large() {
            let at = self.size.header_bytes() + offset + 1;
            let kept = (self.bytes[at] >> 5) & node_flags::COMPRESSED;
            self.bytes[at] =
                (self.bytes[at] & 0x1F) | (((flags & !node_flags::COMPRESSED) | kept) << 5);
        } else {
            let kept = old_flags & node_flags::COMPRESSED;
            self.write_tag(line + 1, offset, length, (flags & !node_flags::COMPRESSED) | kept);
        }
    }

    /// Replaces `removed_bytes` bytes of a node's data from `at` by `inserted`.
    pub fn splice(&mut self, line: usize, at: usize, removed_bytes: usize, inserted: &[u8]) {
        let (offset, length, flags) = self.view().tag(line + 1).expect("checked page");
        let data_bytes = self.view().node(line).expect("checked page").data.len();
        assert!(at + removed_bytes <= data_bytes, "a splice stays inside the data");
        let header_bytes = self.size.header_bytes();
        let data_start = length - data_bytes;
        if inserted.len() == removed_bytes {
            let start = header_bytes + offset + data_start + at;
            self.bytes[start..start + inserted.len()].copy_from_slice(inserted);
            return;
        }
        let old = self.bytes[header_bytes + offset..header_bytes + offset + length].to_vec();
        let mut node = Vec::with_capacity(length - removed_bytes + inserted.len());
        node.extend_from_slice(&old[..data_start + at]);
        node.extend_from_slice(inserted);
        node.extend_from_slice(&old[data_start + at + removed_bytes..]);
        // Free the old place first so that growing needs only the difference.
        self.write_tag(line + 1, 0, 0, flags);
        if offset + length == self.view().data_end() {
            self.put_u16(field::DATA_END, offset);
        }
        self.give(length);
        let offset = self.claim(node.len(), 0);
        let start = header_bytes + offset;
        self.bytes[start..start + node.len()].copy_from_slice(&node);
        self.write_tag(line + 1, offset, node.len(), flags);
        self.take(node.len());
    }

    /// Replaces the external header. Only where no node is compressed against it, or with the same
    /// bytes.
    pub fn set_external(&mut self, external: &[u8]) {
        let (offset, length, _) = self.view().tag(0).expect("checked page");
        let header_bytes = self.size.header_bytes();
        if external.len() == length {
            self.bytes[header_bytes + offset..header_bytes + offset + length]
                .copy_from_slice(external);
            return;
        }
        self.write_tag(0, 0, 0, 0);
        self.give(length);
        let offset = self.claim(external.len(), 0);
        self.bytes[header_bytes + offset..header_bytes + offset + external.len()]
            .copy_from_slice(external);
        self.write_tag(0, offset, external.len(), 0);
        self.take(external.len());
    }

    /// Tag count including the external header; used by tests of the format.
    pub fn tag_count(&self) -> usize {
        usize::from(u16_at(self.bytes, field::TAG_COUNT)) & TAGS_MAX
    }

    /// Clears the version-store bookkeeping field, which no running engine of ours uses.
    pub fn clear_uncommitted_free(&mut self) {
        self.put_u16(field::UNCOMMITTED_FREE, 0);
    }
}
