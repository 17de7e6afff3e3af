//! Ghosts: records that are no longer on a page but whose bytes still lie in its free space.
//! Removing a node leaves its bytes behind, and moving nodes together leaves copies of their ends,
//! so without ghosts most of a residue would be of these.

use super::compose::{Composer, Content};
use super::numbers::{push_difference, push_number, take_difference, take_number};
use plimsoll_io::first_difference;

use crate::PreparedDatabase;
use plimsoll_engine::page::PageView;

/// A record lying in free space, from the end of the page header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ghost {
    pub offset: usize,
    number: u64,
    version: u32,
}

/// So many equal bytes are no accident.
const SAMPLE_BYTES: usize = 24;

impl Ghost {
    /// The node as it was on this page.
    pub(super) fn node(&self, composer: &Composer<'_>) -> (u8, Vec<u8>) {
        let database = composer.database;
        let record = database.record(self.number, self.version);
        composer.node(&database.record_key(self.number), &record)
    }
}

/// What ghosts have left on the page that is composed: the place and the bytes of each.
pub(super) fn remains(ghosts: &[Ghost], composer: &Composer<'_>) -> Vec<(usize, Vec<u8>)> {
    ghosts.iter().map(|ghost| (ghost.offset, ghost.node(composer).1)).collect()
}

pub(super) fn push(coded: &mut Vec<u8>, ghosts: &[Ghost]) {
    push_number(coded, ghosts.len() as u64);
    let (mut offset, mut number) = (0, 0);
    for ghost in ghosts {
        push_difference(coded, ghost.offset as u64, offset);
        push_difference(coded, ghost.number, number);
        push_number(coded, ghost.version.into());
        (offset, number) = (ghost.offset as u64, ghost.number);
    }
}

pub(super) fn take(coded: &mut &[u8]) -> Vec<Ghost> {
    let count = take_number(coded);
    let (mut offset, mut number) = (0, 0);
    (0..count)
        .map(|_| {
            offset = take_difference(coded, offset);
            number = take_difference(coded, number);
            Ghost { offset: offset as usize, number, version: take_number(coded) as u32 }
        })
        .collect()
}

/// The records found in the free space of a composed page, where it is not as prepared.
pub(super) fn find(
    database: &PreparedDatabase,
    composer: &Composer<'_>,
    view: &PageView<'_>,
) -> Vec<Ghost> {
    if composer.content != Content::Records {
        return Vec::new();
    }
    let area = &view.bytes()[view.size().header_bytes()..];
    let prepared = &composer.generated.bytes()[view.size().header_bytes()..];
    let mut ghosts = Vec::new();
    for (start, end) in free_spans(composer, view) {
        let mut from = start;
        // A ghost explains a stretch; look again behind it.
        while let Some(equal_bytes) = first_difference(&area[from..end], &prepared[from..end]) {
            let differs_at = from + equal_bytes;
            let found = find_whole(database, composer, area, differs_at, end)
                .or_else(|| find_remains(database, composer, area, differs_at, end));
            let Some((ghost, node_bytes)) = found else {
                from = end.min(differs_at + SAMPLE_BYTES);
                continue;
            };
            from = end.min((ghost.offset + node_bytes).max(differs_at + 1));
            ghosts.push(ghost);
        }
    }
    ghosts
}

/// Stretches between the nodes, and from the last one to the tags.
fn free_spans(composer: &Composer<'_>, view: &PageView<'_>) -> Vec<(usize, usize)> {
    let mut used: Vec<_> =
        composer.nodes().iter().map(|node| (node.offset, node.offset + node.bytes.len())).collect();
    let area_end = view.size().bytes() - view.size().header_bytes() - 4 * (view.lines() + 1);
    used.push((area_end, area_end));
    used.sort_unstable();
    let mut spans = Vec::new();
    let mut position = composer.external_bytes();
    for (start, end) in used {
        if start > position {
            spans.push((position, start));
        }
        position = position.max(end);
    }
    spans
}

/// A record whose beginning is intact at or shortly before the difference.
fn find_whole(
    database: &PreparedDatabase,
    composer: &Composer<'_>,
    area: &[u8],
    differs_at: usize,
    end: usize,
) -> Option<(Ghost, usize)> {
    let record_bytes = database.form.bytes();
    // The first byte that differs lies in the key or in the first columns of the record.
    (differs_at.saturating_sub(64)..end.min(differs_at + 64)).find_map(|start| {
        let head = area[start..end].get(..40.min(record_bytes))?;
        let (number, version) = database.form.identify_head(head)?;
        let record = database.record(number, version);
        let length = record.len().min(end - start);
        let sample = length.min(40 + SAMPLE_BYTES);
        let key_bytes = node_key_bytes(database, composer, number);
        (record[..sample] == area[start..start + sample] && start >= key_bytes).then(|| {
            let offset = start - key_bytes;
            let ghost = Ghost { offset, number, version };
            (ghost, key_bytes + record_bytes)
        })
    })
}

fn node_key_bytes(database: &PreparedDatabase, composer: &Composer<'_>, number: u64) -> usize {
    composer.node(&database.record_key(number), &[]).1.len()
}

/// What is left of the end of a record that is still on the page, one or more nodes' length further
/// down.
fn find_remains(
    database: &PreparedDatabase,
    composer: &Composer<'_>,
    area: &[u8],
    differs_at: usize,
    end: usize,
) -> Option<(Ghost, usize)> {
    let sample = area[..end].get(differs_at..differs_at + SAMPLE_BYTES)?;
    composer.nodes().iter().find_map(|node| {
        let key_bytes = node.bytes.len().checked_sub(database.form.bytes())?;
        let (number, version) = database.form.identify(&node.bytes[key_bytes..])?;
        let windows = &mut node.bytes.windows(SAMPLE_BYTES);
        let at = windows.position(|window| window == sample)?;
        let offset = differs_at.checked_sub(at)?;
        let ghost = Ghost { offset, number, version };
        Some((ghost, node.bytes.len()))
    })
}
