//! Long values: a size, then chunks, each under the value's number and its own offset.

use std::borrow::Cow;

use super::{DatabaseReader, LoadedPage, ReadError, TreeScan, decompress};
use crate::FormatError;
use crate::catalog::Place;

/// Streams one long value.
pub struct LongValueScan {
    scan: TreeScan,
    place: Place,
    long_value: u64,
    key: Vec<u8>,
    is_compressed: bool,
    line: usize,
    size_bytes: u64,
    /// Offset of the next chunk.
    offset: u64,
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
        is_compressed: bool,
    ) -> Result<Self, ReadError> {
        let key = key_of(long_value);
        let mut long_value_scan = Self {
            scan: reader.scan_from(place, &key).with_read_ahead(2),
            place,
            long_value,
            key,
            is_compressed,
            line: 0,
            size_bytes: 0,
            offset: 0,
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
    /// When a chunk is missing, out of place or damaged.
    pub async fn next_chunk(&mut self) -> Result<Option<Cow<'_, [u8]>>, ReadError> {
        if self.offset >= self.size_bytes {
            return Ok(None);
        }
        while self
            .scan
            .leaf()
            .is_some_and(|leaf| self.line >= leaf.view().lines())
        {
            self.line = 0;
            if self.scan.next_leaf().await?.is_none() {
                return Err(self.fault("cut off"));
            }
        }
        let line = self.line;
        self.line += 1;
        let left_bytes = self.size_bytes - self.offset;
        let leaf = self.scan.leaf().ok_or_else(|| self.fault("cut off"))?;
        let chunk = self.chunk(leaf, line, left_bytes)?;
        self.offset += chunk.len() as u64;
        Ok(Some(chunk))
    }

    fn chunk<'l>(
        &self,
        leaf: &'l LoadedPage,
        line: usize,
        left_bytes: u64,
    ) -> Result<Cow<'l, [u8]>, ReadError> {
        let reader = self.scan.reader();
        let node = reader.view_fault(leaf.number(), leaf.view(), |view| view.node(line))?;
        let offset = u32::try_from(self.offset).unwrap_or(u32::MAX);
        let expected_key = [&self.key[..], &offset.to_be_bytes()].concat();
        if node.key() != expected_key || node.is_deleted() {
            return Err(self.fault("missing a chunk"));
        }
        let page_bytes = reader.page_size().bytes();
        let chunk = if self.is_compressed {
            let chunk = decompress(node.data, page_bytes * 2);
            Cow::Owned(chunk.map_err(|_| self.fault("compressed in a way that cannot be read"))?)
        } else {
            Cow::Borrowed(node.data)
        };
        if chunk.is_empty() || chunk.len() as u64 > left_bytes {
            return Err(self.fault("longer or shorter than it says"));
        }
        Ok(chunk)
    }

    /// The whole value. Memory grows with the chunks that are really there, not with the size the value claims.
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
