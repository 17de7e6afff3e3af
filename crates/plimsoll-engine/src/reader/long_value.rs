//! Long values: a size, then chunks, each under the value's number and its own offset.
//!
//! A chunk may be stored compressed, and nothing but its length says so: each holds the stretch of
//! the value from its own offset to that of the next chunk, or to the value's end, and is
//! compressed where its bytes are not as many. The bit in the record is of no help, as Windows does
//! not set it for values outside the record.

use std::borrow::Cow;

use super::{
    CompressionFault, DatabaseReader, LoadedPage, Packed, ReadError, TreeScan, decompress,
};
use crate::FormatError;
use crate::catalog::Place;
use crate::page::Node;

/// Streams one long value.
pub struct LongValueScan {
    scan: TreeScan,
    place: Place,
    long_value: u64,
    key: Vec<u8>,
    line: usize,
    size_bytes: u64,
    /// Offset of the next chunk.
    offset: u64,
    /// The current chunk as it is stored: its leaf may be left to see where the next one begins.
    stored: Vec<u8>,
}

/// Numbers above this are stored with eight bytes; only later formats than ours have them.
fn key_of(long_value: u64) -> Vec<u8> {
    match u32::try_from(long_value) {
        Ok(number) => number.to_be_bytes().to_vec(),
        Err(_) => long_value.to_be_bytes().to_vec(),
    }
}

impl LongValueScan {
    /// Looks a long value up in the tree at `place`.
    ///
    /// # Errors
    /// When it is not there or a page on the way is damaged.
    pub async fn open(
        reader: &DatabaseReader,
        place: Place,
        long_value: u64,
    ) -> Result<Self, ReadError> {
        let key = key_of(long_value);
        let mut long_value_scan = Self {
            scan: reader.scan_from(place, &key).with_read_ahead(2),
            place,
            long_value,
            key,
            line: 0,
            size_bytes: 0,
            offset: 0,
            stored: Vec::new(),
        };
        let Some(leaf) = long_value_scan.scan.next_leaf().await? else {
            return Err(long_value_scan.fault("missing"));
        };
        let key = &long_value_scan.key;
        let found = reader.view_fault(leaf.number(), leaf.view(), |view| view.find(key))?;
        let Ok(line) = found else {
            return Err(long_value_scan.fault("missing"));
        };
        let node = reader.view_fault(leaf.number(), leaf.view(), |view| view.node(line))?;
        // Reference count, then size.
        let size: Option<&[u8; 4]> = node.data.get(4..).and_then(|rest| rest.first_chunk());
        let Some(size) = size.filter(|_| !node.is_deleted()) else {
            return Err(long_value_scan.fault("without a size"));
        };
        long_value_scan.size_bytes = u64::from(u32::from_le_bytes(*size));
        long_value_scan.line = line + 1;
        Ok(long_value_scan)
    }

    /// Its length, as the value itself states it.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn fault(&self, problem: &'static str) -> ReadError {
        self.scan.reader().fault(FormatError::LongValue {
            object: self.place.object,
            long_value: self.long_value,
            problem,
        })
    }

    /// The next piece, or `None` when all were given.
    ///
    /// # Errors
    /// When a chunk is missing, out of place, damaged, or compressed by a method that is not known
    /// here.
    pub async fn next_chunk(&mut self) -> Result<Option<Cow<'_, [u8]>>, ReadError> {
        if self.offset >= self.size_bytes {
            return Ok(None);
        }
        if !self.step_to_line().await? {
            return Err(self.fault("cut off"));
        }
        self.take_chunk()?;
        let begin = self.offset;
        self.offset = self.next_offset().await?;
        let stretch_bytes = self.offset.saturating_sub(begin);
        let page_bytes = self.scan.reader().page_size().bytes();
        match Packed::of(&self.stored, stretch_bytes, page_bytes) {
            Packed::Plain => Ok(Some(Cow::Borrowed(&self.stored))),
            Packed::Compressed { bytes } => match decompress(&self.stored, bytes) {
                Ok(plain) if plain.len() == bytes => Ok(Some(Cow::Owned(plain))),
                Err(CompressionFault::Method { method }) if CompressionFault::is_later(method) => {
                    Err(self.scan.reader().packed(method))
                }
                _ => Err(self.fault("not as long as its chunks say, or compressed and damaged")),
            },
            Packed::Impossible => Err(self.fault("missing a chunk")),
        }
    }

    /// Goes on to the next leaf if this one has no more lines; says whether there is a line.
    async fn step_to_line(&mut self) -> Result<bool, ReadError> {
        while self.scan.leaf().is_some_and(|leaf| self.line >= leaf.view().lines()) {
            self.line = 0;
            if self.scan.next_leaf().await?.is_none() {
                return Ok(false);
            }
        }
        Ok(self.scan.leaf().is_some())
    }

    /// Takes the chunk at the current line, which must be the one that follows.
    fn take_chunk(&mut self) -> Result<(), ReadError> {
        let mut stored = std::mem::take(&mut self.stored);
        let leaf = self.scan.leaf().ok_or_else(|| self.fault("cut off"))?;
        let node = self.node(leaf)?;
        let offset = u32::try_from(self.offset).unwrap_or(u32::MAX);
        let expected_key = [&self.key[..], &offset.to_be_bytes()].concat();
        if node.key() != expected_key || node.is_deleted() || node.data.is_empty() {
            return Err(self.fault("missing a chunk"));
        }
        stored.clear();
        stored.extend_from_slice(node.data);
        self.stored = stored;
        self.line += 1;
        Ok(())
    }

    fn node<'l>(&self, leaf: &'l LoadedPage) -> Result<Node<'l>, ReadError> {
        let reader = self.scan.reader();
        reader.view_fault(leaf.number(), leaf.view(), |view| view.node(self.line))
    }

    /// Where the chunk after the current one begins, or where the value ends.
    async fn next_offset(&mut self) -> Result<u64, ReadError> {
        // The usual last chunk needs no look at what follows.
        if self.offset + self.stored.len() as u64 == self.size_bytes || !self.step_to_line().await?
        {
            return Ok(self.size_bytes);
        }
        let leaf = self.scan.leaf().ok_or_else(|| self.fault("cut off"))?;
        let key = self.node(leaf)?.key();
        let own = key.strip_prefix(&self.key[..]);
        let offset = own.and_then(|rest| <[u8; 4]>::try_from(rest).ok());
        Ok(offset.map_or(self.size_bytes, |offset| u64::from(u32::from_be_bytes(offset))))
    }

    /// The whole value. Memory grows with the chunks that are really there, not with the size the
    /// value claims.
    ///
    /// # Errors
    /// As [`LongValueScan::next_chunk`].
    pub async fn read_all(mut self) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next_chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}
