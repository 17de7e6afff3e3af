//! A node as a page keeps it: of its key only what the page's prefix does not say.
//!
//! Thousands of long keys fit a page on which they share a prefix, and nowhere else: written whole,
//! they are megabytes. So who makes a page keeps its nodes in this form, in memory and in the log,
//! where a node takes no more room than on the page.

use crate::log::wire::{PutWire, TakeWire};
use crate::page::{PageMut, node_flags, page_flags};

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidNode {
    /// See [`node_flags`]; whether the key is compressed follows from the prefix.
    flags: u8,
    /// So many bytes of the page's external header are the beginning of the key.
    prefix_bytes: usize,
    /// The rest of the key.
    suffix: Vec<u8>,
    data: Vec<u8>,
}

impl LaidNode {
    /// How a page with these flags (see [`page_flags`]) and this external header keeps a node.
    pub fn new(of_page: u32, external: &[u8], flags: u8, key: &[u8], data: Vec<u8>) -> Self {
        let is_root = of_page & page_flags::ROOT != 0;
        let prefix_bytes = PageMut::prefix_bytes(external, is_root, key);
        let suffix = key[prefix_bytes..].to_vec();
        Self { flags: flags & !node_flags::COMPRESSED, prefix_bytes, suffix, data }
    }

    /// See [`node_flags`].
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The whole key, on a page with this external header.
    pub fn key(&self, external: &[u8]) -> Vec<u8> {
        [&external[..self.prefix_bytes], &self.suffix].concat()
    }

    /// Bytes of the whole key.
    pub fn key_bytes(&self) -> usize {
        self.prefix_bytes + self.suffix.len()
    }

    /// Data.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Appends the wire form: flags with whether the key is compressed, the length of the prefix if
    /// it is, the rest of the key, the data.
    pub(crate) fn encode(&self, wire: &mut Vec<u8>) {
        if self.prefix_bytes > 0 {
            wire.push(self.flags | node_flags::COMPRESSED);
            wire.put_number(self.prefix_bytes as u64);
        } else {
            wire.push(self.flags);
        }
        wire.put_bytes(&self.suffix);
        wire.put_bytes(&self.data);
    }

    /// Reads the wire form of a node of a page with this external header; none where the node asks
    /// for more of it than there is.
    pub(crate) fn decode(wire: &mut TakeWire<'_>, external: &[u8]) -> Option<Self> {
        let flags = wire.byte().filter(|flags| flags & !node_flags::ALL == 0)?;
        let prefix_bytes = match flags & node_flags::COMPRESSED {
            0 => 0,
            _ => wire.size().filter(|bytes| (1..=external.len()).contains(bytes))?,
        };
        let (suffix, data) = (wire.bytes()?.to_vec(), wire.bytes()?.to_vec());
        Some(Self { flags: flags & !node_flags::COMPRESSED, prefix_bytes, suffix, data })
    }
}
