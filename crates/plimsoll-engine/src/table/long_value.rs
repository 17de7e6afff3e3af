//! Long values: a head with the size, then chunks of fixed length, each a node of the table's long-value tree. Written and read in pieces, so a value
//! may be larger than memory.

use super::OpenTable;
use crate::PageSize;
use crate::btree::Tree;
use crate::cursor::{Cursor, Direction, KeyRange};
use crate::error::{EngineError, Result};
use crate::transaction::Transaction;

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
    /// Ends the steps that began with the value, see `Transaction::end_steps`.
    pub(super) before: Option<usize>,
}

/// Writes one long value piece by piece. One that is dropped before it is a column's value leaves a transaction that can only be rolled back.
pub struct LongValueWriter<'a> {
    transaction: &'a Transaction,
    tree: Tree,
    number: u32,
    before: Option<usize>,
    chunk_bytes: usize,
    pending: Vec<u8>,
    written_bytes: u32,
    /// A write was begun and not finished: nobody knows how much of it is there.
    is_broken: bool,
}

impl<'a> LongValueWriter<'a> {
    pub(super) async fn start(
        table: &OpenTable,
        transaction: &'a Transaction,
    ) -> Result<LongValueWriter<'a>> {
        let tree = table.long_value_tree()?;
        let number = table.next_long_value.get();
        table.next_long_value.set(number + 1);
        let before = transaction.begin_steps();
        if let Err(error) = transaction.insert(tree, &head_key(number), &head(0)).await {
            // One step, so nothing has happened.
            transaction.end_steps(before);
            return Err(error);
        }
        let chunk_bytes = chunk_bytes(table.size);
        Ok(LongValueWriter {
            transaction,
            tree,
            number,
            before,
            chunk_bytes,
            pending: Vec::new(),
            written_bytes: 0,
            is_broken: false,
        })
    }

    /// Appends bytes. If this fails or is abandoned, the value cannot be finished.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(broken());
        }
        self.append(bytes).await?;
        self.is_broken = false;
        Ok(())
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
        let after = after.ok_or_else(|| EngineError::BadRow("a long value is at most 2 GiB long".into()))?;
        self.transaction
            .insert(self.tree, &chunk_key(self.number, self.written_bytes), chunk)
            .await?;
        self.written_bytes = after;
        Ok(())
    }

    /// Writes what is left and the size.
    pub(super) async fn finish(mut self) -> Result<Finished> {
        if self.is_broken {
            return Err(broken());
        }
        if !self.pending.is_empty() {
            let chunk = std::mem::take(&mut self.pending);
            self.write_chunk(&chunk).await?;
        }
        self.transaction
            .replace(self.tree, &head_key(self.number), &head(self.written_bytes))
            .await?;
        Ok(Finished {
            number: self.number,
            before: self.before,
        })
    }
}

fn broken() -> EngineError {
    EngineError::BadRow(
        "a piece of this long value was not written to its end; roll the transaction back".into(),
    )
}

/// Reads one long value chunk by chunk.
pub struct LongValueReader<'a> {
    cursor: Cursor<'a>,
    size_bytes: u32,
    read_bytes: u32,
}

impl<'a> LongValueReader<'a> {
    pub(super) async fn open(
        table: &OpenTable,
        transaction: &'a Transaction,
        number: u32,
    ) -> Result<LongValueReader<'a>> {
        let tree = table.long_value_tree()?;
        let mut cursor = Cursor::new(
            transaction,
            tree,
            KeyRange::prefix(&head_key(number)),
            Direction::Forward,
        );
        let (_, head) = cursor.next().await?.ok_or(EngineError::RowNotFound)?;
        let size = head
            .get(4..8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes);
        let size_bytes =
            size.ok_or_else(|| EngineError::BadRow("the head of a long value is cut short".into()))?;
        Ok(LongValueReader {
            cursor,
            size_bytes,
            read_bytes: 0,
        })
    }

    /// Length of the value.
    pub fn size_bytes(&self) -> u32 {
        self.size_bytes
    }

    /// The next piece, `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>> {
        match self.cursor.next().await? {
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
    pub async fn read_all(mut self) -> Result<Vec<u8>> {
        let mut value = Vec::with_capacity(self.size_bytes as usize);
        while let Some(chunk) = self.next_chunk().await? {
            value.extend_from_slice(&chunk);
        }
        Ok(value)
    }
}

/// Deletes a long value.
pub(super) async fn delete_long_value(
    table: &OpenTable,
    transaction: &Transaction,
    number: u32,
) -> Result<()> {
    let tree = table.long_value_tree()?;
    let mut cursor = Cursor::new(
        transaction,
        tree,
        KeyRange::prefix(&head_key(number)),
        Direction::Forward,
    );
    while let Some((key, _)) = cursor.next().await? {
        transaction.delete(tree, &key).await?;
    }
    Ok(())
}
