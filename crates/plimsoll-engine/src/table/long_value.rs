//! Long values: a head with the size, then chunks of fixed length, each a node of the table's
//! long-value tree. Written and read in pieces, so a value may be larger than memory.
//!
//! A long value is never changed once it is written, so several columns may refer to one. Its head
//! counts the references; the value goes with the last of them. The count is replaced, not added
//! to: of two transactions that change it the second meets a conflict, so each knows whether its
//! reference is the last.

use std::ops::{Bound, Range};
use std::rc::Rc;

use super::OpenTable;
use super::usage::TableUse;
use crate::PageSize;
use crate::btree::Tree;
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::transaction::{Steps, Work};

/// Bytes of a chunk: as many as fill a page of this size nearly exactly.
pub(super) fn chunk_bytes(size: PageSize) -> usize {
    match size.bytes() {
        16384 => 4050,
        32768 => 8150,
        small => small - 82,
    }
}

fn head_key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn chunk_key(number: u32, offset: u32) -> Vec<u8> {
    [number.to_be_bytes(), offset.to_be_bytes()].concat()
}

fn head(bytes: u32) -> Vec<u8> {
    [1u32.to_le_bytes(), bytes.to_le_bytes()].concat()
}

/// A long value that is wholly written and that no record refers to yet.
pub(super) struct Finished {
    /// What a record calls it.
    pub(super) number: u32,
    /// The steps that began with the value, see `Work::end_steps`.
    pub(super) steps: Steps,
}

/// Writes one long value piece by piece. One that is dropped before it is a column's value leaves a
/// transaction that can only be rolled back. So does one of which a part was taken back: from a
/// savepoint between two pieces the value does not go on.
pub struct LongValueWriter<'a> {
    work: &'a Work,
    tree: Tree,
    number: u32,
    steps: Steps,
    chunk_bytes: usize,
    pending: Vec<u8>,
    written_bytes: u32,
    /// A write was begun and not finished: nobody knows how much of it is there.
    is_broken: bool,
    _in_use: Rc<TableUse>,
}

impl<'a> LongValueWriter<'a> {
    pub(super) async fn start(table: &OpenTable, work: &'a Work) -> Result<LongValueWriter<'a>> {
        let tree = table.long_value_tree()?;
        let number = table.in_use.next_long_value().unwrap_or(1);
        // Numbers are given out once: a handle that still knows an old value must not read a new
        // one.
        let next = number.checked_add(1).ok_or_else(|| {
            EngineError::BadRow(
                "its table has given out every number there is for a long value".into(),
            )
        })?;
        table.in_use.set_next_long_value(next);
        let steps = work.begin_steps();
        if let Err(error) = work.insert(tree, &head_key(number), &head(0)).await {
            // One step, so nothing has happened.
            work.end_steps(&steps);
            return Err(error);
        }
        let chunk_bytes = chunk_bytes(table.size);
        Ok(LongValueWriter {
            work,
            tree,
            number,
            steps,
            chunk_bytes,
            pending: Vec::new(),
            written_bytes: 0,
            is_broken: false,
            _in_use: table.in_use.clone(),
        })
    }

    /// Appends bytes. If this fails or is abandoned, the value cannot be finished.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let work = self.work;
        let _changing = work.begin_change()?;
        self.write_on(bytes).await
    }

    pub(super) async fn write_on(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_whole()?;
        self.is_broken = true;
        self.append(bytes).await?;
        self.is_broken = false;
        self.work.go_on(&self.steps);
        Ok(())
    }

    /// Fails unless the value was begun for this table in this transaction.
    pub(super) fn check_belongs(&self, table: &OpenTable, work: &Work) -> Result<()> {
        if std::ptr::eq(self.work, work) && table.long_value_tree()? == self.tree {
            return Ok(());
        }
        let why = "a long value is attached in the transaction and to the table it was begun for";
        Err(EngineError::BadRow(why.into()))
    }

    /// Refuses to go on where what was written is not all there.
    fn check_whole(&self) -> Result<()> {
        let why = if self.is_broken {
            "a piece of this long value was not written to its end; roll the transaction back"
        } else if !self.work.is_begun(&self.steps) {
            "the transaction has gone back to before this long value; write it again"
        } else if self.work.is_broken(&self.steps) {
            "the transaction has gone back behind a part of this long value; roll it back to \
             before the value, and write that again"
        } else {
            return Ok(());
        };
        Err(EngineError::BadRow(why.into()))
    }

    async fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let (begun, rest) = bytes.split_at(bytes.len().min(self.chunk_bytes - self.pending.len()));
        self.pending.extend_from_slice(begun);
        if self.pending.len() < self.chunk_bytes {
            return Ok(());
        }
        let first = std::mem::take(&mut self.pending);
        self.write_chunk(&first).await?;
        let mut chunks = rest.chunks_exact(self.chunk_bytes);
        for chunk in &mut chunks {
            self.write_chunk(chunk).await?;
        }
        self.pending = chunks.remainder().to_vec();
        Ok(())
    }

    async fn write_chunk(&mut self, chunk: &[u8]) -> Result<()> {
        let after = self
            .written_bytes
            .checked_add(chunk.len() as u32)
            .filter(|bytes| *bytes < i32::MAX as u32);
        let after = after
            .ok_or_else(|| EngineError::BadRow("a long value is at most 2 GiB long".into()))?;
        self.work.insert(self.tree, &chunk_key(self.number, self.written_bytes), chunk).await?;
        self.written_bytes = after;
        Ok(())
    }

    /// Writes what is left and the size.
    pub(super) async fn finish(mut self) -> Result<Finished> {
        self.check_whole()?;
        if !self.pending.is_empty() {
            let chunk = std::mem::take(&mut self.pending);
            self.write_chunk(&chunk).await?;
        }
        self.work.replace(self.tree, &head_key(self.number), &head(self.written_bytes)).await?;
        Ok(Finished { number: self.number, steps: self.steps })
    }
}

/// Reads one long value chunk by chunk.
pub struct LongValueReader<'a> {
    work: &'a Work,
    walk: Walk,
    size_bytes: u32,
    read_bytes: u32,
    _in_use: Rc<TableUse>,
}

impl<'a> LongValueReader<'a> {
    pub(super) async fn open(
        table: &OpenTable,
        work: &'a Work,
        number: u32,
    ) -> Result<LongValueReader<'a>> {
        let range = KeyRange::prefix(&head_key(number));
        let mut walk = Walk::new(work, table.long_value_tree()?, range, Direction::Forward);
        let (_, head) = walk.next(work).await?.ok_or(EngineError::RowNotFound)?;
        let size = head.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let size_bytes = size
            .ok_or_else(|| EngineError::BadRow("the head of a long value is cut short".into()))?;
        Ok(LongValueReader { work, walk, size_bytes, read_bytes: 0, _in_use: table.in_use.clone() })
    }

    /// Length of the value.
    pub fn size_bytes(&self) -> u32 {
        self.size_bytes
    }

    /// The next piece, `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let work = self.work;
        let _reading = work.begin_read()?;
        self.read_on().await
    }

    async fn read_on(&mut self) -> Result<Option<Vec<u8>>> {
        match self.walk.next(self.work).await? {
            Some((_, chunk)) => {
                self.read_bytes += chunk.len() as u32;
                Ok(Some(chunk))
            }
            None if self.read_bytes == self.size_bytes => Ok(None),
            None => Err(EngineError::BadRow(format!(
                "a long value has {} bytes where its head says {}",
                self.read_bytes, self.size_bytes
            ))),
        }
    }

    /// All of it.
    pub async fn read_all(self) -> Result<Vec<u8>> {
        let work = self.work;
        let _reading = work.begin_read()?;
        let bytes = self.size_bytes as usize;
        self.read_start(bytes).await
    }

    /// At least its first `bytes` bytes, all of it where it is not as long.
    pub(super) async fn read_start(mut self, bytes: usize) -> Result<Vec<u8>> {
        let whole = bytes >= self.size_bytes as usize;
        let mut value = Vec::with_capacity(bytes.min(self.size_bytes as usize));
        while (whole || value.len() < bytes)
            && let Some(chunk) = self.read_on().await?
        {
            value.extend_from_slice(&chunk);
        }
        Ok(value)
    }
}

/// Some of the bytes of a long value, whatever the size of its chunks.
pub(super) async fn read_long_value_range(
    table: &OpenTable,
    work: &Work,
    number: u32,
    range: Range<u32>,
) -> Result<Vec<u8>> {
    let tree = table.long_value_tree()?;
    let size_bytes = LongValueReader::open(table, work, number).await?.size_bytes;
    let (start, end) = (range.start, range.end.min(size_bytes));
    if start >= end {
        return Ok(Vec::new());
    }
    let cut = || {
        EngineError::BadRow(format!("long value {number} has no bytes at {start}, of {size_bytes}"))
    };
    // The chunk that holds the first byte is the last that begins before it or with it.
    let before = KeyRange {
        low: Bound::Included(chunk_key(number, 0)),
        high: Bound::Included(chunk_key(number, start)),
    };
    let mut back = Walk::new(work, tree, before, Direction::Backward);
    let (first, _) = back.next(work).await?.ok_or_else(cut)?;
    let offset = first.get(4..8).and_then(|bytes| bytes.try_into().ok());
    let mut at = u32::from_be_bytes(offset.ok_or_else(cut)?);
    let from =
        KeyRange { low: Bound::Included(first), high: Bound::Excluded(chunk_key(number, end)) };
    let mut walk = Walk::new(work, tree, from, Direction::Forward);
    let mut value = Vec::with_capacity((end - start) as usize);
    while at < end {
        let (_, chunk) = walk.next(work).await?.ok_or_else(cut)?;
        let within = |byte: u32| (byte.saturating_sub(at) as usize).min(chunk.len());
        value.extend_from_slice(&chunk[within(start)..within(end)]);
        at += chunk.len() as u32;
    }
    Ok(value)
}

/// How many columns refer to the long value with this head.
fn references(head: &[u8]) -> Option<u32> {
    head.first_chunk().map(|count| u32::from_le_bytes(*count))
}

/// The head with another number of references.
fn with_references(head: &[u8], count: u32) -> Vec<u8> {
    [&count.to_le_bytes(), &head[4..]].concat()
}

/// Notes that one more column refers to a long value.
pub(super) async fn share_long_value(table: &OpenTable, work: &Work, number: u32) -> Result<()> {
    let (tree, key) = (table.long_value_tree()?, head_key(number));
    let head = work.get(tree, &key).await?.ok_or(EngineError::RowNotFound)?;
    let count = references(&head).and_then(|count| count.checked_add(1));
    let count = count.ok_or_else(|| {
        EngineError::BadRow("a long value has as many references as its head can count".into())
    })?;
    work.replace(tree, &key, &with_references(&head, count)).await
}

/// Takes a reference to a long value away, and deletes it with the last.
pub(super) async fn release_long_value(table: &OpenTable, work: &Work, number: u32) -> Result<()> {
    let tree = table.long_value_tree()?;
    let range = KeyRange::prefix(&head_key(number));
    let mut walk = Walk::new(work, tree, range, Direction::Forward);
    let mut is_head = true;
    while let Some((key, data)) = walk.next(work).await? {
        let others = references(&data).filter(|count| is_head && *count > 1);
        if let Some(count) = others {
            return work.replace(tree, &key, &with_references(&data, count - 1)).await;
        }
        is_head = false;
        work.delete(tree, &key).await?;
    }
    Ok(())
}
