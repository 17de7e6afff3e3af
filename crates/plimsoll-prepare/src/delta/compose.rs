//! Composing a page out of prepared lines, known records and literal nodes. Writing a script and
//! running it both go through here, so both always agree on what a step gives and on what comes
//! next.

use std::borrow::Cow;

use super::numbers::{
    push_bytes, push_difference, push_number, take_bytes, take_difference, take_number,
};
use crate::PreparedDatabase;
use crate::keys::number_of_key;
use plimsoll_engine::page::{PageMut, PageView, page_flags};
use plimsoll_engine::whole_pages::{PlacedNode, node_bytes, place_nodes, set_all_flags};
use plimsoll_engine::{PageNumber, PageSize};

/// The header fields of a page that the script cannot compute, and its external header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    dbtime: u64,
    object: u32,
    flags: u32,
    previous: PageNumber,
    next: PageNumber,
    external: Vec<u8>,
}

impl Heading {
    pub(super) fn of(view: &PageView<'_>) -> Option<Self> {
        Some(Self {
            dbtime: view.dbtime(),
            object: view.object(),
            flags: view.flags(),
            previous: view.previous(),
            next: view.next(),
            external: view.external().ok()?.to_vec(),
        })
    }

    fn push(&self, coded: &mut Vec<u8>, generated: &PageView<'_>, page: PageNumber) {
        push_difference(coded, self.dbtime, generated.dbtime());
        push_difference(coded, self.object.into(), generated.object().into());
        push_number(coded, u64::from(self.flags ^ generated.flags()));
        push_neighbour(coded, self.previous, generated.previous(), page);
        push_neighbour(coded, self.next, generated.next(), page);
        let is_kept = generated.external() == Ok(&self.external[..]);
        push_number(coded, u64::from(!is_kept));
        if !is_kept {
            push_bytes(coded, &self.external);
        }
    }

    pub(super) fn take(coded: &mut &[u8], generated: &PageView<'_>, page: PageNumber) -> Self {
        let dbtime = take_difference(coded, generated.dbtime());
        let object = take_difference(coded, generated.object().into()) as u32;
        let flags = take_number(coded) as u32 ^ generated.flags();
        let previous = take_neighbour(coded, generated.previous(), page);
        let next = take_neighbour(coded, generated.next(), page);
        let external = match take_number(coded) {
            0 => generated.external().unwrap_or_default(),
            _ => take_bytes(coded),
        };
        Self { dbtime, object, flags, previous, next, external: external.to_vec() }
    }
}

/// A neighbour is the prepared one (0) or near the page itself.
fn push_neighbour(
    coded: &mut Vec<u8>,
    neighbour: PageNumber,
    prepared: PageNumber,
    page: PageNumber,
) {
    push_number(coded, u64::from(neighbour != prepared));
    if neighbour != prepared {
        push_difference(coded, neighbour.into(), page.into());
    }
}

fn take_neighbour(coded: &mut &[u8], prepared: PageNumber, page: PageNumber) -> PageNumber {
    match take_number(coded) {
        0 => prepared,
        _ => take_difference(coded, page.into()) as PageNumber,
    }
}

/// What the nodes of a page hold, which decides how a number is turned into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Records,
    Entries,
    Values,
    Other,
}

/// A page being composed line by line.
pub(super) struct Composer<'a> {
    pub database: &'a PreparedDatabase,
    pub generated: PageView<'a>,
    pub content: Content,
    page: PageNumber,
    heading: Heading,
    keeps_external: bool,
    nodes: Vec<PlacedNode<'a>>,
    /// Next prepared line.
    pub cursor: usize,
    /// How far prepared nodes have moved.
    pub shift: u64,
    /// Where the last node ended.
    pub end: usize,
    /// The number after that of the last record placed by its number.
    pub next_number: Option<u64>,
    /// The identifier of the last long value.
    pub last_value: u64,
}

impl<'a> Composer<'a> {
    pub(super) fn new(
        database: &'a PreparedDatabase,
        generated: &'a [u8],
        page: PageNumber,
        heading: Heading,
    ) -> Self {
        let generated = PageView::new(generated, database.page_size());
        let content = match heading.flags & (page_flags::TREE_KIND | page_flags::LEAF) {
            page_flags::LEAF => Content::Records,
            flags if flags == page_flags::LEAF | page_flags::INDEX => Content::Entries,
            flags if flags == page_flags::LEAF | page_flags::LONG_VALUE => Content::Values,
            _ => Content::Other,
        };
        Self {
            keeps_external: generated.external() == Ok(&heading.external[..]),
            end: heading.external.len(),
            database,
            generated,
            content,
            page,
            heading,
            nodes: Vec::new(),
            cursor: 0,
            shift: 0,
            next_number: None,
            last_value: 0,
        }
    }

    pub(super) fn push_heading(&self, coded: &mut Vec<u8>) {
        self.heading.push(coded, &self.generated, self.page);
    }

    fn size(&self) -> PageSize {
        self.database.page_size()
    }

    /// The bytes and flags of a node with this key on this page.
    pub(super) fn node(&self, key: &[u8], data: &[u8]) -> (u8, Vec<u8>) {
        let is_root = self.heading.flags & page_flags::ROOT != 0;
        node_bytes(self.size(), &self.heading.external, is_root, key, data)
    }

    /// Where the prepared node at the cursor is expected.
    pub(super) fn expected_prepared(&self) -> u64 {
        let offset = self.generated.node_place(self.cursor).map_or(0, |(offset, ..)| offset);
        (offset as u64).wrapping_add(self.shift)
    }

    /// The prepared node at the cursor as it looks on this page.
    pub(super) fn prepared(&self) -> Option<(u8, Cow<'a, [u8]>)> {
        if self.keeps_external {
            let (offset, length, flags) = self.generated.node_place(self.cursor)?;
            let start = self.size().header_bytes() + offset;
            return Some((flags, Cow::Borrowed(&self.generated.bytes()[start..start + length])));
        }
        let node = self.generated.node(self.cursor).ok()?;
        let (flags, bytes) = self.node(&node.key(), node.data);
        Some((flags, Cow::Owned(bytes)))
    }

    pub(super) fn place(&mut self, offset: u64, (flags, bytes): (u8, Cow<'a, [u8]>)) {
        let offset = offset as usize;
        self.end = offset + bytes.len();
        self.nodes.push(PlacedNode { offset, flags, bytes });
    }

    /// The nodes placed so far.
    pub(super) fn nodes(&self) -> &[PlacedNode<'a>] {
        &self.nodes
    }

    /// Bytes of the external header.
    pub(super) fn external_bytes(&self) -> usize {
        self.heading.external.len()
    }

    /// The number the next record is expected to have.
    pub(super) fn expected_number(&self) -> u64 {
        let after_prepared = || {
            let line = self.cursor.saturating_sub(1);
            let key = self.generated.node(line).ok()?.key();
            Some(number_of_key(&key)? + 1)
        };
        self.next_number.or_else(after_prepared).unwrap_or(0)
    }

    /// Makes the page out of a copy of the prepared one, checksums aside: what is free still holds
    /// what was there, the prepared page and then `remains`: nodes of records that have come and
    /// gone, each with its place from the end of the page header.
    pub(super) fn finish(self, remains: &[(usize, Vec<u8>)], bytes: &mut [u8]) {
        let size = self.size();
        let header_bytes = size.header_bytes();
        let heading = &self.heading;
        let tags_start = size.bytes() - 4 * (self.nodes.len() + 1);
        let area_end = tags_start.max(header_bytes);
        let external_end = header_bytes + heading.external.len();
        let prepared_end = area_end.min(size.bytes() - 4 * (self.generated.lines() + 1));
        // Nothing is left of prepared tags.
        bytes[prepared_end.max(external_end)..].fill(0);
        PageMut::new(bytes, size).format_ends(
            self.page,
            heading.object,
            heading.flags,
            &heading.external,
        );
        for (offset, node) in remains {
            paint(&mut bytes[header_bytes..area_end], *offset, node);
        }
        place_nodes(bytes, size, heading.external.len(), &self.nodes);
        set_all_flags(bytes, heading.flags);
        let mut page = PageMut::new(bytes, size);
        page.set_dbtime(heading.dbtime);
        page.set_siblings(heading.previous, heading.next);
    }
}

/// Copies as much of `source` as there is room for.
fn paint(area: &mut [u8], offset: usize, source: &[u8]) {
    let Some(room) = area.get_mut(offset..) else {
        return;
    };
    let length = room.len().min(source.len());
    room[..length].copy_from_slice(&source[..length]);
}
